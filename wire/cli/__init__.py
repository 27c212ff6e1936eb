"""The command line: parse, call a verb, print.

Only this room reads the environment, prints and exits. Commands are loaded by name when they are asked for, so that
`wire send` does not pay for the others. Exit statuses are a contract (see `wire.errors`), and with `--json` every error
is one JSON object on standard output with the same `reason`.
"""

import gc
import os
import sys

import click

from wire.cli.console import broken_pipe, fail, prepare, told
from wire.cli.groups import Group
from wire.errors import FAILED, REMOTE, USAGE, WireError

_COMMANDS = {
    "send": "messages",
    "reply": "messages",
    "ack": "messages",
    "sent": "receipts",
    "tail": "reading",
    "inbox": "inbox",
    "read": "inbox",
    "wait": "waiting",
    "monitor": "waiting",
    "search": "finding",
    "summary": "finding",
    "show": "reading",
    "log": "reading",
    "thread": "reading",
    "agents": "receipts",
    "state": "receipts",
    "sync": "operating",
    "heal": "operating",
    "repair": "operating",
    "status": "watching",
    "incidents": "watching",
    "verify": "proving",
    "evidence": "proving",
    "init": "beginning",
    "join": "beginning",
    "invite": "beginning",
    "trust": "trusting",
    "keys": "trusting",
    "group": "trusting",
    "remote": "remote",
    "daemon": "running",
    "service": "service",
    "hooks": "hooks",
    "hook": "hook",
    "skill": "hook",
    "mcp": "mcp",
    "notify": "notifying",
    "doctor": "doctor",
    "demo": "demo",
}

_HEADINGS = (
    ("Begin, and let others in", ("demo", "init", "join", "invite", "trust", "keys", "group", "remote")),
    ("Write", ("send", "reply", "ack", "state")),
    ("Read", ("inbox", "read", "tail", "wait", "monitor", "show", "thread", "log", "search", "summary")),
    ("How far messages got, and who is there", ("sent", "agents")),
    ("Keep it going", ("daemon", "service", "sync", "status", "doctor")),
    ("When something is wrong", ("incidents", "verify", "evidence", "heal", "repair")),
    ("Agents' programs", ("hooks", "hook", "mcp", "skill", "notify")),
)

_EPILOG = """Exit statuses: 0 done, 1 failed, 2 wrong use, 3 the awaited state was not reached in time, 4 integrity (an
open incident concerns what was asked), 5 identity or trust, 6 the remote cannot be reached."""


class _Commands(Group):
    """Commands that are imported when they are called."""

    headings = _HEADINGS

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        loaded = __import__(f"wire.cli.{module}", fromlist=[cmd_name])
        command: click.Command = getattr(loaded, cmd_name.replace("-", "_"))
        return command


@click.group(cls=_Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--wire", "wire_name", metavar="NAME", help="The wire that is meant, where there are several.")
@click.option("--as", "agent", metavar="NAME", help="The local agent that is meant, where there are several.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda c, p, v: _version(c, v),
    help="Show the version and exit.",
)
@click.pass_context
def cli(ctx: click.Context, wire_name: str | None, agent: str | None) -> None:
    """Signed messages between agents, carried by one git repository."""
    # Everything is loaded by now (see `wire.__main__`), and stays: only what comes after it can become garbage.
    gc.freeze()
    gc.enable()
    ctx.obj = {"wire": wire_name, "agent": agent}


def _version(ctx: click.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"wire {version('git-wire')}")
        ctx.exit()


def _nobody_answered() -> WireError:
    error = WireError(
        "nobody is here to answer this question; nothing was changed",
        reason="not-answered",
        next_step="in a terminal the same command; or with what answers it beforehand, which its --help names",
    )
    error.exit_status = USAGE
    return error


def main() -> None:
    """Run the command line and exit."""
    prepare()
    argv = sys.argv[1:]
    if sys.getfilesystemencoding() != "utf-8":
        # Arguments are UTF-8, as messages are: a locale that says otherwise must not change what is sent.
        argv = [os.fsencode(word).decode("utf-8", "surrogateescape") for word in argv]
    try:
        status = cli.main(args=argv, prog_name="wire", standalone_mode=False)
        sys.stdout.flush()
    except WireError as error:
        if error.exit_status == REMOTE and not error.next_step:
            error.next_step = "wire doctor"
        status = fail(error, as_json="--json" in argv)
    except click.exceptions.Exit as error:
        status = error.exit_code
    except click.ClickException as error:
        shown = WireError(_without_secrets(error.format_message()), reason="usage")
        shown.exit_status = USAGE
        usage = getattr(error, "ctx", None)
        if usage is not None:
            shown.next_step = f"{usage.command_path} --help" + _dashes(error, usage)
        # A group without a command: click's message is its help.
        helped = usage is not None and shown.message.startswith("Usage: ")
        status = told(shown) if helped else fail(shown, as_json="--json" in argv)
    except (click.Abort, KeyboardInterrupt) as error:
        # A question that met the end of standard input: nobody is there who could answer it.
        unanswered = isinstance(error.__context__, EOFError)
        status = fail(_nobody_answered(), as_json="--json" in argv) if unanswered else 130
    except (BrokenPipeError, SystemExit):
        # click turns a broken pipe into a plain exit, and exits for no other reason here.
        status = broken_pipe()
    except OSError as error:
        status = fail(
            WireError(
                f"the system refused: {error.strerror or error} ({error.filename or 'no file'})", reason="system"
            ),
            as_json="--json" in argv,
        )
    except Exception as error:  # noqa: BLE001  # the edge: no traceback reaches a user, and none is lost
        status = fail(internal(error), as_json="--json" in argv)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = broken_pipe()
    except OSError:
        status = status or FAILED
    if "wire.gitio" in sys.modules:
        from wire.gitio import leave_connections

        leave_connections()
    # The interpreter's own teardown costs a tenth of a send, and everything is flushed.
    os._exit(status if isinstance(status, int) else 0)


def _dashes(error: click.ClickException, usage: click.Context) -> str:
    """Return what helps where a text that begins with a dash was taken for an option."""
    texts = usage.info_name in ("send", "reply", "ack", "state", "search")
    return (
        "; a text that begins with a dash stands behind --" if texts and isinstance(error, click.NoSuchOption) else ""
    )


def _without_secrets(text: str) -> str:
    """Return a text without the credentials of remotes that it may quote."""
    if "://" not in text:
        return text
    from wire.gitio import redact_url

    return redact_url(text)


def internal(error: Exception) -> WireError:
    """Write the traceback down for a report, and return what to tell the user."""
    import traceback

    from wire.store.files import atomic_write, private_folder, utc_now
    from wire.store.paths import Settings

    text = "".join(traceback.format_exception(error))
    where = "it could not be written down"
    try:
        state = Settings.from_environ(os.environ, os.getcwd()).state_dir
        path = os.path.join(state, f"error-{utc_now().replace(':', '')}.txt")
        private_folder(state)
        atomic_write(path, _without_secrets(text).encode("utf-8", "backslashreplace"))
        where = f"the details are in {path}"
    except (OSError, WireError):
        pass
    return WireError(f"an error inside wire: {type(error).__name__}; {where}", reason="internal", next_step="report it")
