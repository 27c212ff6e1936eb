"""notify."""

import os
import threading
import time

import click

from wire.cli.common import for_a_wire, here_of
from wire.cli.console import flush, leave, safe, say, say_json
from wire.cli.groups import Group
from wire.errors import DONE, FAILED, UsageError, WireError
from wire.verbs.here import Here


@click.group(cls=Group)
def notify() -> None:
    """How agents are told that something came, where no hook of their runtime does it."""


@notify.command("test")
@click.argument("agent", required=False)
@for_a_wire
def test(ctx: click.Context, agent: str | None, as_json: bool) -> None:
    """Send one notification to a local agent through each configured way, to the end.

    The daemon sends it, since its environment counts. Without one it is sent from here, which is said. Exit 0: every
    way said that it went through.
    """
    from wire.surfacing import beside, notifying
    from wire.surfacing.adapters import Runner

    here = _of(here_of(ctx), agent)
    name = here.agent()
    if name not in here.config.notify:
        raise UsageError(
            f"no way of notifying {name} is configured in {here.settings.config_file}",
            reason="no-notify",
            next_step=f"put a table [wire.notify.{name}] below that wire, as docs/notify.md says",
        )
    found = beside.ask(here)
    by = "daemon" if found is not None else "this command"
    if found is None:
        found = notifying.test(here, Runner(os.environ, threading.Event()))
    failed = [one for one in found if one.why]
    if as_json:
        results = [{"by": one.adapter, "surfaced": not one.why, "why": one.why} for one in found]
        say_json({"agent": name, "sent_by": by, "results": results})
        flush()
        leave(FAILED if failed else DONE)
    for one in found:
        say(f"{name} by {one.adapter}: " + (f"failed: {safe(one.why)}" if one.why else "went through"))
    if by != "daemon":
        say("no daemon is running: this was sent from here, and nothing will be sent by itself")
    flush()
    if failed:
        raise WireError(
            f"{len(failed)} of {len(found)} way(s) of notifying {name} failed",
            reason="not-surfaced",
            next_step=f"mend [wire.notify.{name}] in {here.settings.config_file}, or what it names, and test again",
        )


@notify.command("status")
@for_a_wire
def status(ctx: click.Context, as_json: bool) -> None:
    """Say what was delivered and is not yet surfaced, and why; exit 1 where there is any."""
    from wire.store import surfaces

    here = here_of(ctx)
    found = surfaces.troubles(here.places, here.config.notify, here.config.drop)
    for one in found:
        if as_json:
            say_json(one._asdict())
        else:
            say(safe(one.told(time.time())))
    if not found and not as_json:
        ways = [f"{name} by {', '.join(one.adapters)}" for name, one in here.config.notify.items() if one.adapters]
        ways += [f"{name} in {folder}" for name, folder in here.config.drop.items()]
        say(f"everything is surfaced ({'; '.join(ways)})" if ways else "no way of notifying anybody is configured")
    flush()
    leave(FAILED if found else DONE)


def _of(here: Here, agent: str | None) -> Here:
    return here if agent is None else here._replace(settings=here.settings.choosing(agent=agent))
