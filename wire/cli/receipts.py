"""sent, agents, state; and what `wire status` and `wire show` say of recipients."""

import time
from typing import Any

import click

from wire.api import Wire
from wire.cli.common import for_a_wire, wire_of
from wire.cli.console import flush, say, say_json, styled, warn
from wire.errors import WireError
from wire.protocol.encoding import seconds_of
from wire.protocol.presence import STATES as AGENT_STATES
from wire.store.files import utc_text
from wire.store.progress import Progress
from wire.verbs.agents import AgentView, Peer
from wire.verbs.order import until_text
from wire.verbs.owed import Overdue
from wire.verbs.receipts import COUNT, Reached, Recipient, Traced
from wire.verbs.render import age, one_line
from wire.verbs.states import READ, STATES

_LISTED = 10


@click.command()
@click.argument("to", required=False)
@click.option("--unread", is_flag=True, help="Only what some recipient is not proved to have read.")
@click.option("--unacked", is_flag=True, help="Only what some recipient did not answer.")
@click.option("-n", "count", type=click.IntRange(min=1), default=COUNT, show_default=True, help="How many messages.")
@for_a_wire
def sent(ctx: click.Context, to: str | None, unread: bool, unacked: bool, count: int, as_json: bool) -> None:
    """Show the last messages of this agent and how far each came, to everybody or TO one.

    A state is shown when it is proved: `delivered` and `read` by what the recipient signed, `acked` by its answer. A
    recipient that says nothing stays at `pushed`.
    """
    wire = wire_of(ctx)
    found = wire.sent(unread=unread, unacked=unacked, count=count, to=to)
    for one in found:
        if as_json:
            say_json(traced_json(one))
        else:
            for line in _lines(one):
                say(line)
    if not found and not as_json:
        what, whom = "read" if unread else "answered", f" to {one_line(to, 80)}" if to else ""
        say(
            f"everything that was sent{whom} is proved to be {what}" if unread or unacked else "nothing was sent" + whom
        )
    flush()
    _warn_if_deaf(wire)


@click.command()
@for_a_wire
def agents(ctx: click.Context, as_json: bool) -> None:
    """Show everybody on the wire: role, state, when last heard of, unread messages and open requests each way.

    State and note are what an agent says of itself. An agent that was never heard of has no state. "Unread there" is
    what this agent sent and the other is not proved to have read, "here" what came from it and is unread.
    """
    wire = wire_of(ctx)
    for one in wire.agents():
        if as_json:
            say_json(_agent_json(one))
        else:
            say(_agent_line(one))
    flush()
    _warn_if_deaf(wire)


@click.command()
@click.argument("state", required=False, type=click.Choice(AGENT_STATES))
@click.argument("note", required=False)
@click.option("--eta", metavar="TIME", help="Until when: 30m, 2h, or a UTC time.")
@for_a_wire
def state(ctx: click.Context, state: str | None, note: str | None, eta: str | None, as_json: bool) -> None:
    """Say how this agent stands, for the others to see; without STATE, show what it says."""
    wire = wire_of(ctx)
    said = wire.state(state, note=note or "", eta=until_text(eta, time.time()) if eta else None)
    if as_json:
        say_json({"agent": wire.here.agent(), **said._asdict()})
    else:
        say(_said(said.state, said.note, said.eta))


def traced_json(one: Traced) -> dict[str, Any]:
    """Return what became of a message as the object that `--json` prints."""
    return {
        "id": one.id,
        "to": one.line.recipient,
        "type": one.line.type,
        "subject": one.line.subject,
        "ts": one.line.ts,
        "age_s": _age_of(one.line.ts),
        "ack_required": one.line.ack_required,
        "priority": one.line.priority or "normal",
        "sealed": one.sealed,
        "expires": one.line.expires or None,
        "state": one.state,
        "unread_by": list(one.missing("read")),
        "unacked_by": list(one.missing("acked")),
        "recipients": {who.agent: recipient_json(who) for who in one.recipients},
    }


def recipient_json(who: Recipient) -> dict[str, Any]:
    """Return how far a message came to one recipient as an object."""
    return {
        "state": who.state,
        "heard_age_s": None if who.heard is None else round(max(0.0, time.time() - who.heard), 1),
        "states": [
            {"state": one.state, "since": one.since, "age_s": _age_of(one.since), "how": one.how} for one in who.reached
        ],
    }


def recipient_line(who: Recipient) -> str:
    """Return every state of a message at one recipient, each with time and age, for people."""
    return f"{who.agent}: " + ", ".join(map(_when, who.reached)) + _silence(who)


def peers_json(wire: Wire) -> dict[str, Any]:
    """Return what `wire status --json` says of the recipients."""
    try:
        peers, overdue = wire.peers(), wire.overdue()
    except WireError as error:
        return {"peers": None, "overdue": None, "receipts_failure": error.message}
    now = time.time()
    return {
        "peers": {
            one.name: {
                "state": one.state or None,
                "presence_age_s": one.age,
                "stale": one.stale,
                "undelivered": one.undelivered,
                "unread": one.unread,
                "unanswered": one.unanswered,
                "oldest_unanswered_age_s": None if one.oldest is None else max(0.0, now - one.oldest),
            }
            for one in peers
        },
        "overdue": [
            {"id": one.id, "wanted": one.wanted, "missing": list(one.missing), "since": utc_text(one.due)}
            for one in overdue
        ],
    }


def print_peers(wire: Wire) -> None:
    """Print what `wire status` says of the recipients."""
    try:
        peers, overdue = wire.peers(), wire.overdue()
    except WireError as error:
        say(styled(f"  ! what became of messages cannot be told: {one_line(error.message, 1000)}", fg="red"))
        return
    for peer in peers:
        say(f"  {_peer_line(peer)}")
    for late in overdue[:_LISTED]:
        say(styled(f"  overdue: {_overdue_line(late)}", fg="yellow"))
    if len(overdue) > _LISTED:
        say(f"  … and {len(overdue) - _LISTED} more overdue; see `wire sent --unacked -n 100`")


def _lines(one: Traced) -> list[str]:
    subject = f"  {one_line(one.line.subject, 80)}" if one.line.subject else ""
    head = f"{one.id}  {one.line.type}{', sealed' if one.sealed else ''}, sent {age(_age_of(one.line.ts))} ago"
    if len(one.recipients) == 1:
        who = one.recipients[0]
        return [f"{styled(head, bold=True)}: {_state(who, who.agent + ' was ')}{subject}"]
    return [
        f"{styled(head, bold=True)}: {one.state} by all{subject}",
        *(f"    {who.agent}: {_state(who)}" for who in one.recipients),
    ]


def _state(who: Recipient, name: str = "") -> str:
    last = who.reached[-1]
    since = f" {age(_age_of(last.since))} ago" if last.since else ""
    by = f" by {last.how}" if "/" in last.how else ""
    return f"{last.state}{since}{by}{_silence(who, name)}"


def _silence(who: Recipient, name: str = "") -> str:
    """Say of a recipient that is not known to have read when it was last heard of.

    Args:
        name: stands in front of it, where nothing else says of whom this is.
    """
    if STATES.index(who.state) >= STATES.index(READ):
        return ""
    if who.heard is None:
        return f", {name}never heard of"
    return f", {name}{'last ' if name else ''}heard of {age(max(0.0, time.time() - who.heard))} ago"


def _when(one: Reached) -> str:
    since = f" {one.since} ({age(_age_of(one.since))} ago)" if one.since else ""
    by = f" by {one.how}" if "/" in one.how else ""
    return f"{one.state}{since}{by}"


def _agent_line(one: AgentView) -> str:
    if one.chosen:
        where = "this agent"
    elif one.local:
        where = "on this machine"
    elif one.age is None:
        where = "never heard of"
    else:
        where = f"heard of {age(one.age)} ago{', STALE' if one.stale else ''}"
    says = _said(one.state, one.note, one.eta) if one.state else "state unknown"
    parts = [f"{one.name:<16} {one.role:<6} {says}", where]
    if not one.chosen:
        there = "not known" if one.unread_by_them is None else str(one.unread_by_them)
        parts.append(f"unread there: {there}, here: {one.unread_by_us}")
    if one.they_owe:
        parts.append(f"has to answer {', '.join(one.they_owe[:_LISTED])}")
    if one.we_owe:
        parts.append(f"waits for an answer to {', '.join(one.we_owe[:_LISTED])}")
    return "; ".join(parts)


def _agent_json(one: AgentView) -> dict[str, Any]:
    return {
        "name": one.name,
        "role": one.role,
        "local": one.local,
        "state": one.state or None,
        "note": one.note,
        "eta": one.eta,
        "tier": one.tier,
        "presence_age_s": one.age,
        "stale": one.stale,
        "undelivered": one.undelivered,
        "unread_by_them": one.unread_by_them,
        "unread_by_us": one.unread_by_us,
        "we_owe": list(one.we_owe),
        "they_owe": list(one.they_owe),
    }


def _peer_line(one: Peer) -> str:
    heard = "never heard of" if one.age is None else f"heard of {age(one.age)} ago{', STALE' if one.stale else ''}"
    unread = "reading unknown" if one.unread is None else f"{one.unread} unread"
    oldest = "" if one.oldest is None else f", the oldest {age(max(0.0, time.time() - one.oldest))} old"
    waiting = f", {one.unanswered} unanswered{oldest}" if one.unanswered else ""
    return f"{one.name}: {one.state or 'state unknown'}, {heard}; {one.undelivered} undelivered, {unread}{waiting}"


def _overdue_line(late: Overdue) -> str:
    who = ", ".join(late.missing[:_LISTED])
    return f"{late.id} was to be {late.wanted} by {who} {age(max(0.0, time.time() - late.due))} ago"


def _said(state: str, note: str, eta: str | None) -> str:
    return state + (f" until {eta}" if eta else "") + (f" ({one_line(note)})" if note else "")


def _age_of(ts: str | None) -> float | None:
    return None if ts is None else round(max(0.0, time.time() - seconds_of(ts)), 1)


def _warn_if_deaf(wire: Wire) -> None:
    progress, now = Progress.load(wire.here.places), time.time()
    if not progress.looked(now):
        fetched = progress.fetch_age(now)
        ago = " ago" if fetched is not None else ""
        warn(f"the last successful fetch was {age(fetched)}{ago}: what happened since is not known here")
