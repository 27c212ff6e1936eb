"""service: the daemon as a service of its user."""

import click

from wire.cli.common import json_option, settings_of
from wire.cli.console import flush, leave, safe, say, say_json, styled, warn
from wire.cli.groups import Group
from wire.errors import DONE, FAILED
from wire.systemd.state import State
from wire.verbs.render import age


@click.group(cls=Group)
def service() -> None:
    """Run the daemon as a systemd service of this user."""


@service.command()
@click.option("--no-start", is_flag=True, help="Install and enable it; do not start it now.")
@click.option("--force", is_flag=True, help="Replace a unit that was edited; it is kept beside the new one.")
@click.option("--passphrase-file", metavar="FILE", help="Its first line opens the agents' keys; '' for no file.")
@json_option
@click.pass_context
def install(ctx: click.Context, no_start: bool, force: bool, passphrase_file: str | None, as_json: bool) -> None:
    """Install the service and start it; doing it again brings it up to date."""
    from wire.systemd import service as verbs

    done = verbs.install(settings_of(ctx), start=not no_start, force=force, passphrase_file=passphrase_file)
    if as_json:
        say_json(
            {
                "action": done.action,
                "unit": done.path,
                "running": done.running,
                "kept": done.kept,
                "lingering": done.lingering.state,
                "notes": done.notes,
            }
        )
        return
    say(f"service {done.action}: {done.path}")
    if done.kept is not None:
        say(f"the unit that was there is kept as {done.kept}")
    say(
        "it runs and says that it is ready"
        if done.running
        else "it starts with your next session, or: wire service start"
    )
    for note in done.notes:
        warn(safe(note))


@service.command()
@click.option("--force", is_flag=True, help="Remove a unit that was edited, too.")
@click.pass_context
def uninstall(ctx: click.Context, force: bool) -> None:
    """Stop the service and remove it; messages, keys and configuration stay."""
    from wire.systemd import service as verbs

    path = verbs.uninstall(settings_of(ctx), force=force)
    say("the service is not installed" if path is None else f"service stopped and removed: {path}")


@service.command()
@click.pass_context
def start(ctx: click.Context) -> None:
    """Start the service; return when it is ready."""
    from wire.systemd import service as verbs

    verbs.start(settings_of(ctx))
    say("the service runs and says that it is ready")


@service.command()
@click.pass_context
def stop(ctx: click.Context) -> None:
    """Stop the service; return when it ended."""
    from wire.systemd import service as verbs

    verbs.stop(settings_of(ctx))
    say("the service is stopped")


@service.command()
@click.pass_context
def restart(ctx: click.Context) -> None:
    """Stop the service and start it again."""
    from wire.systemd import service as verbs

    verbs.restart(settings_of(ctx))
    say("the service runs and says that it is ready")


@service.command()
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Show what systemd says of the service, and what is proved; exit 0 only when both are well."""
    from wire.systemd.state import look

    state = look(settings_of(ctx))
    if as_json:
        say_json(_as_json(state))
    else:
        _print(state)
    flush()
    if state.manager is not None and not as_json:
        raise state.manager
    leave(FAILED if state.troubles else DONE)


@service.command()
@click.option("-n", "count", type=click.IntRange(0), default=50, show_default=True, help="How many lines.")
@click.option("-f", "follow", is_flag=True, help="Go on with what it prints from now on.")
@click.pass_context
def logs(ctx: click.Context, count: int, follow: bool) -> None:
    """Show what the service printed."""
    from wire.systemd import service as verbs

    settings = settings_of(ctx)
    command, said = verbs.logs(settings, count=count, follow=follow)
    if said is not None:
        warn(safe(said))
    flush()
    leave(verbs.show_logs(settings, command))


def _print(state: State) -> None:
    known = state.properties
    if known:
        active, sub = known.get("ActiveState", "unknown"), known.get("SubState", "unknown")
        about = f"pid {known.get('MainPID', '?')}, {known.get('NRestarts', '?')} restart(s)"
        say(f"service {styled(active, bold=True)} ({sub}), {about}, unit {state.origin}: {state.path}")
    say(f"lingering {state.lingering.state}" + (f" ({safe(state.lingering.why)})" if state.lingering.why else ""))
    for proof in state.proofs:
        holder = f", pid {proof.pid}" if proof.pid else ""
        say(f"{proof.name}: daemon {proof.daemon}{holder}, last fetch {_ago(proof.fetch_age)}")
    for trouble in state.troubles if state.manager is None else ():
        warn(safe(trouble))


def _ago(seconds: float | None) -> str:
    return "never" if seconds is None else f"{age(seconds)} ago"


def _as_json(state: State) -> dict[str, object]:
    return {
        "healthy": not state.troubles,
        "unit": state.path,
        "origin": state.origin,
        "systemd": dict(state.properties),
        "manager": state.manager and state.manager.as_json(),
        "lingering": {"state": state.lingering.state, "why": state.lingering.why},
        "wires": [
            {"wire": one.name, "daemon": one.daemon, "pid": one.pid, "fetch_age_s": one.fetch_age, "why": one.why}
            for one in state.proofs
        ],
        "troubles": state.troubles,
    }
