"""sync, heal, repair."""

import click

from wire.cli.common import for_a_wire, wire_of
from wire.cli.console import flush, leave, say, say_json, warn
from wire.daemon.report import Report
from wire.daemon.status import LOCKED
from wire.errors import DONE, IDENTITY, INTEGRITY


@click.command()
@for_a_wire
def sync(ctx: click.Context, as_json: bool) -> None:
    """Fetch, verify and push once, now."""
    _tell(wire_of(ctx).sync(), as_json)


@click.command()
@for_a_wire
def heal(ctx: click.Context, as_json: bool) -> None:
    """Put back every accepted line that the remote lacks; nothing is ever removed by it."""
    _tell(wire_of(ctx).heal(), as_json)


@click.command()
@for_a_wire
def repair(ctx: click.Context, as_json: bool) -> None:
    """Make the clone's repository anew when git's own files are damaged; no accepted line is given up."""
    done = wire_of(ctx).repair()
    if as_json:
        say_json({"lines": done.lines, "aside": done.aside, "remote_reached": done.remote_reached})
        return
    say(f"{done.lines} accepted message(s) are back in a new repository; the damaged one is kept in {done.aside}")
    if not done.remote_reached:
        warn("the remote could not be reached; run `wire sync` when it can")


def _tell(report: Report, as_json: bool) -> None:
    received, collected = sum(report.accepted.values()), sum(report.collected.values())
    if as_json:
        say_json(
            {
                "tip": report.tip,
                "fetched": report.fetched,
                "received": received,
                "pushed": report.pushed,
                "waiting": report.waiting,
                "locked": list(report.locked),
                "incidents": [{"id": one.id, "code": one.code, "scope": one.scope} for one in report.raised],
                "frozen": report.frozen and report.frozen.code,
                "failure": report.failure and report.failure.as_json(),
            }
        )
    else:
        if report.failure is None or report.fetched or received or report.pushed:
            say(f"received {received}, pushed {report.pushed}" + (f", tip {report.tip[:12]}" if report.tip else ""))
        if collected > report.pushed:
            say(f"{collected - report.pushed} message(s) are committed here and not on the remote yet")
    for agent, count in report.waiting.items():
        if count:
            warn(f"{agent} is not approved yet, {count} message(s) wait here")
    for agent in report.locked:
        warn(f"the key of {agent} is locked: {LOCKED}")
    last_word = report.failure.message if report.failure is not None and not as_json else None
    for incident in report.raised:
        what = f": {incident.message}" if incident.message != last_word else ""
        warn(f"incident {incident.id} {incident.code} in {incident.scope}{what}")
    flush()
    if report.failure is not None:
        if as_json:
            leave(report.failure.exit_status)
        if report.raised and not report.failure.next_step:
            report.failure.next_step = f"wire incidents show {report.raised[-1].id}"
        raise report.failure
    if report.frozen is not None or any(one.integrity for one in report.raised):
        leave(INTEGRITY)
    leave(IDENTITY if any(one.code == "KEY" for one in report.raised) else DONE)
