"""status, incidents."""

import time
from typing import Any

import click

from wire.api import Wire
from wire.cli.common import choosing, for_a_wire, here_of, settings_of, wire_of
from wire.cli.console import flush, leave, safe, say, say_json, styled, warn
from wire.cli.groups import Group
from wire.cli.receipts import peers_json, print_peers
from wire.daemon.status import RUNNING, Status
from wire.errors import DONE, WireError
from wire.gitio import redact_url
from wire.store import config as configs
from wire.store import incidents as store
from wire.store.files import utc_text
from wire.store.incidents import Incident
from wire.store.paths import WirePlaces
from wire.verbs.here import Here
from wire.verbs.order import seconds_of
from wire.verbs.render import age


@click.command()
@for_a_wire
def status(ctx: click.Context, as_json: bool) -> None:
    """Show how each wire stands; exit 0 only when everything is well."""
    settings = settings_of(ctx)
    config = configs.load(settings)
    wires = config.wires if settings.wire is None else (configs.choose_wire(config, settings),)
    if not wires:
        configs.choose_wire(config, settings)
    worst = DONE
    for wire in wires:
        here = Here(settings, wire, WirePlaces(settings.state_dir, wire.name, wire.clone))
        try:
            found = Wire(here).status()
        except WireError as error:
            # One wire that cannot be read must not hide the others.
            worst = max(worst, error.exit_status)
            if as_json:
                say_json({"wire": wire.name, "healthy": False, **error.as_json()})
            else:
                warn(
                    f"{wire.name}: {safe(error.message)}"
                    + (f"\n      next: {error.next_step}" if error.next_step else "")
                )
            continue
        worst = max(worst, found.exit_status)
        if as_json:
            say_json({**_as_json(found), **peers_json(Wire(here))})
        else:
            _print(found)
            print_peers(Wire(here))
    flush()
    leave(worst)


@click.group(cls=Group, invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="Resolved ones, too.")
@for_a_wire
def incidents(ctx: click.Context, everything: bool, as_json: bool) -> None:
    """List what went wrong; a repeat is counted, never listed twice."""
    if ctx.invoked_subcommand is not None:
        return
    found = wire_of(ctx).incidents(everything=everything)
    for one in found:
        if as_json:
            say_json(_incident(one))
        else:
            over = ", over" if one.ended else ""
            count = f"x{one.count} {one.state}{over}, last {one.last}"
            say(f"{one.id} {styled(one.code, bold=True)} {safe(one.scope)} {count}")
            say(f"    {safe(one.message)}")
    if found and not as_json:
        say(f"what to do about one: wire incidents show {found[-1].id}")
    if not found and not as_json:
        say("no open incidents")


@incidents.command("show")
@click.argument("incident")
@for_a_wire
def show(ctx: click.Context, incident: str, as_json: bool) -> None:
    """Show one incident with its evidence and the next step."""
    one = store.get(here_of(ctx).places.incidents_dir, incident)
    if as_json:
        say_json(_incident(one))
        return
    say(f"{one.id} {one.code} in {safe(one.scope)}: {safe(one.message)}")
    say(f"  first {one.first}, last {one.last}, {one.count} time(s), {one.state}")
    if one.ended:
        say(f"  over since {one.ended}")
    for name, value in one.evidence.items():
        text = safe(str(value)).strip()
        say(f"  {safe(str(name))}: " + text.replace("\n", "\n    "))
    say(f"  next: {safe(one.next_step)}")


@incidents.command("ack")
@click.argument("incident")
@choosing
@click.pass_context
def acknowledge(ctx: click.Context, incident: str) -> None:
    """Note that a person has seen an incident; it goes on being counted."""
    one = store.ack(here_of(ctx).places.incidents_dir, incident)
    say(f"{one.id} {one.code} {one.state}")


@incidents.command("resolve")
@click.argument("incident")
@choosing
@click.pass_context
def resolve(ctx: click.Context, incident: str) -> None:
    """Close an incident; should it be found again, it is open again."""
    one = store.resolve(here_of(ctx).places.incidents_dir, incident)
    say(f"{one.id} {one.code} {one.state}")


def _print(found: Status) -> None:
    seen = found.snapshot
    pin, progress = seen.pin, seen.progress
    fetched = f"fetched {age(found.fetch_age)}" + (" ago" if found.fetch_age is not None else "")
    pushed = f"pushed {age(found.push_age)}" + (" ago" if found.push_age is not None else "")
    say(styled(f"{seen.config.name}: {fetched}, {pushed}", bold=True))
    look = f", looks at the remote every {age(progress.interval)} or so" if found.daemon == RUNNING else ""
    look += f", next in {age(found.next_look)}" if found.next_look is not None else ""
    say(f"  daemon {found.daemon}{look}")
    if found.daemon == RUNNING and (progress.event is not None or progress.rescan is not None):
        now = time.time()
        last_event = age(None if progress.event is None else now - progress.event)
        rescan = age(None if progress.rescan is None else now - progress.rescan)
        say(f"  folders watched by {progress.watching}: last change {last_event}, last whole scan {rescan}")
    where = safe(redact_url(seen.config.remote))
    say(f"  remote {where}, branch {seen.config.branch}, trust version {pin.trust_version}")
    if found.unpushed:
        oldest = f", the oldest from {found.oldest_unpushed}" if found.oldest_unpushed else ""
        say(f"  {found.unpushed} message(s) are not on the remote yet{oldest}")
    if progress.waiting:
        say(f"  {progress.waiting} message(s) wait until their agent is approved")
    if seen.refusal is not None:
        since = utc_text(seen.refusal.since)
        say(f"  the remote takes no presences since {since} ({safe(seen.refusal.why)}); a line shows life instead")
    owed = {one.channel: one for one in seen.owed}
    for channel in sorted({*pin.accepted, *owed}):
        end = pin.accepted.get(channel)
        seq, head = (end.seq, end.head[:16]) if end is not None else (0, "-" * 16)
        mine = owed.get(channel)
        states = f"  stored {mine.stored}, committed {mine.committed}, pushed {mine.pushed}" if mine is not None else ""
        say(f"  {channel:<24} {seq:>7} {head}{states}")
    for trouble in found.troubles:
        say(styled(f"  ! {safe(trouble)}", fg="red"))


def _as_json(found: Status) -> dict[str, Any]:
    seen = found.snapshot
    pin, progress = seen.pin, seen.progress
    owed = {one.channel: one for one in seen.owed}
    now = time.time()
    return {
        "wire": seen.config.name,
        "id": pin.wire,
        "healthy": found.exit_status == DONE,
        "exit_status": found.exit_status,
        "fetch_age_s": found.fetch_age,
        "push_age_s": found.push_age,
        "daemon": found.daemon,
        "pid": seen.holder,
        "tier": progress.tier,
        "interval_s": progress.interval,
        "next_look_s": found.next_look,
        "watching": progress.watching,
        "event_age_s": None if progress.event is None else now - progress.event,
        "rescan_age_s": None if progress.rescan is None else now - progress.rescan,
        "failure": progress.failure,
        "failure_text": progress.failure_text,
        "failing_since": progress.failing_since,
        "remote": redact_url(seen.config.remote),
        "branch": seen.config.branch,
        "verified": pin.verified,
        "trust": pin.trust_version,
        "agents": list(seen.config.agents),
        "unpushed": found.unpushed,
        "oldest_unpushed": found.oldest_unpushed,
        "oldest_unpushed_age_s": None if found.oldest_unpushed is None else now - seconds_of(found.oldest_unpushed),
        "waiting_for_approval": progress.waiting,
        "locked": progress.locked.split(),
        "presence_refused": seen.refusal
        and {"since": utc_text(seen.refusal.since), "tried": utc_text(seen.refusal.tried), "why": seen.refusal.why},
        "frozen": pin.frozen and {"code": pin.frozen.code, "since": pin.frozen.since},
        "forks": list(pin.forks),
        "channels": {
            channel: {
                "seq": end.seq if (end := pin.accepted.get(channel)) is not None else 0,
                "head": end.head if end is not None else None,
                **(
                    {"stored": mine.stored, "committed": mine.committed, "pushed": mine.pushed}
                    if (mine := owed.get(channel)) is not None
                    else {}
                ),
            }
            for channel in sorted({*pin.accepted, *owed})
        },
        "incidents": [_incident(one) for one in seen.incidents],
        "troubles": list(found.troubles),
    }


def _incident(one: Incident) -> dict[str, Any]:
    return {
        "id": one.id,
        "code": one.code,
        "scope": one.scope,
        "subject": one.subject,
        "state": one.state,
        "first": one.first,
        "last": one.last,
        "count": one.count,
        "ended": one.ended,
        "integrity": one.integrity,
        "message": one.message,
        "evidence": dict(one.evidence),
        "next_step": one.next_step,
    }
