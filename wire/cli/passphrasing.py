"""keys passphrase."""

import sys

import click

from wire.cli.common import for_a_wire, wire_of
from wire.cli.console import say, say_json, warn
from wire.errors import UsageError

_INPUT_MAX = 8_192


@click.command("passphrase")
@click.option("--root", is_flag=True, help="The root key of this machine in place of an agent's.")
@click.option("--remove", is_flag=True, help="Let the key need none.")
@click.option("--stdin", "by_stdin", is_flag=True, help="Read from standard input, see above.")
@for_a_wire
def passphrase(ctx: click.Context, root: bool, remove: bool, by_stdin: bool, as_json: bool) -> None:
    """Put a key of this machine under a passphrase, change it, or take it away.

    Keys that it followed go with it. With --stdin each passphrase is a line of its own, first the current one, if there
    is one, then the new one; the current one may be left out where it is at hand (a credential of systemd,
    WIRE_PASSPHRASE_FILE).
    """
    from wire import keeping

    wire = wire_of(ctx)
    # Whoever types is asked for the current one first.
    had = keeping.has_passphrase(wire, root=root, opened=not by_stdin)
    current, new = _lines(had, remove) if by_stdin else _typed(remove)
    done = keeping.set_passphrase(wire, new, current=current, root=root)
    if as_json:
        shown = {"kind": done.kind, "name": done.name, "fingerprint": done.fingerprint}
        say_json({**shown, "passphrase": done.has, "files": list(done.files)})
        return
    whose = f"the {done.kind} key of {done.name}" if done.kind == "agent" else "the root key"
    if not done.has:
        say(f"{whose} needs no passphrase" + (" any more" if done.had else ""))
        return
    say(f"{whose} has a {'new ' if done.had else ''}passphrase; without it nobody can use the key, you neither")
    if done.kind == "agent":
        warn("a service or an agent needs it in a file (docs/keys.md):  wire service install --passphrase-file FILE")


def _lines(had: bool, remove: bool) -> tuple[str | None, str | None]:
    """Return the current passphrase and the new one from standard input, None for what is not there."""
    text = sys.stdin.read(_INPUT_MAX)
    lines = text.removesuffix("\n").split("\n") if text else []
    if len(lines) not in ({0, 1} if remove else {1, 2} if had else {1}):
        raise UsageError(
            f"{len(lines)} line(s) on standard input; expected "
            + ("the current one" if remove else "the current one and the new one" if had else "the new one"),
            reason="usage",
        )
    new = None if remove else lines.pop()
    return (lines[0] if lines else None), new


def _typed(remove: bool) -> tuple[str | None, str | None]:
    """Return the new passphrase as a person types it, twice; the current one is asked for where it is needed."""
    from wire.keys import passphrases

    if remove:
        return None, None
    if not passphrases.can_ask():
        raise UsageError(
            "nobody is at a terminal to type a passphrase",
            reason="usage",
            next_step="wire keys passphrase --stdin < FILE",
        )
    new = click.prompt("new passphrase", hide_input=True, err=True)
    if click.prompt("the same again", hide_input=True, err=True) != new:
        raise UsageError("the two are not the same; nothing was changed", reason="passphrase-differs")
    return None, str(new)
