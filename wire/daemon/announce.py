"""Telling the others of bytes that do not hold: once, as a signed line of type `incident` to `all`.

Rules that it keeps (PROTOCOL.md, section "Incidents"): at most one line per code, channel and day; only by an agent
that the trust vouches for; none about lines of type `incident`, so that an act of a vandal costs each machine one line;
in the body only numbers, ids and hashes, never a stranger's bytes. What cannot be told today is told another day.

    announce(site, utc_now())                   after a cycle; the next cycle publishes the lines

What it does not do: decide what is an incident. To its readers such a line is a peer's claim.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from wire.daemon.findings import WIRE
from wire.daemon.site import Site, able
from wire.gitio import GitFailed
from wire.protocol import strictjson
from wire.protocol.chain import Position, lines_of
from wire.protocol.encoding import Signer
from wire.protocol.line import head, parse, seal
from wire.protocol.names import EVERYONE, valid_channel
from wire.store import incidents, journal
from wire.store.files import locked
from wire.store.incidents import Incident
from wire.store.pin import Pin

TYPE = "incident"
MOST = 16
"""Lines of one go; the rest is told with the next cycle."""

_LOCK_SECONDS = 30.0
_SHOWN = 8
_DEPTH = 4
_SAFE = re.compile(
    r"[0-9a-f]{12,64}|[a-z0-9-]{1,32}/[a-z0-9-]{1,32}(?:/[1-9][0-9]{0,14})?|[1-9][0-9]{0,8}:[0-9a-f]{16}"
)
_NAME = re.compile(r"[a-z0-9_]{1,32}")


def announce(site: Site, now: str) -> list[str]:
    """Store the lines that are due and return their ids.

    Args:
        now: UTC text; its date is the day.

    Raises:
        WireError: the pin, the trust or the journal cannot be used; nothing counts as told.
    """
    if not _untold(incidents.list_(site.places.incidents_dir)):
        return []
    pin = site.pin()
    chain = site.trust(pin)
    signers = able(site.approved(chain)[0])
    if not signers:
        return []
    agent = next(iter(signers))
    channel = f"{agent}/{EVERYONE}"
    # Two processes (the daemon and `wire sync`) must not tell the same.
    with locked(site.places.lock("announce"), what="the telling of incidents", timeout=_LOCK_SECONDS):
        groups = _due(site, pin, incidents.list_(site.places.incidents_dir), now[:10])[:MOST]
        if not groups:
            return []
        ends = journal.append(
            site.places,
            pin.wire,
            channel,
            # By the key at hand, also before the trust names it: `wire keys rotate` waits for the channel's lock.
            lambda end: _lines(site, pin, channel, site.signer(agent, chain.wire), end, groups, now),
            copy_to=site.places.coordination,
            floor=pin.accepted.get(channel),
        )
        for group in groups:
            for incident in group:
                incidents.mark_published(site.places.incidents_dir, incident.id, now=now)
    return [f"{channel}/{end.seq}" for end in ends]


def _untold(found: Sequence[Incident]) -> list[Incident]:
    return [
        one
        for one in found
        if one.integrity
        and one.state != incidents.RESOLVED
        and one.published is None
        and (one.scope == WIRE or valid_channel(*one.scope.partition("/")[::2]))
    ]


def _due(site: Site, pin: Pin, found: Sequence[Incident], day: str) -> list[list[Incident]]:
    """Return what is to be told today: of each code and scope all together, as one line."""
    told = {(one.code, one.scope) for one in found if one.published is not None and one.published[:10] == day}
    groups: dict[tuple[str, str], list[Incident]] = {}
    for one in _untold(found):
        if (one.code, one.scope) not in told and not _about_incident_lines(site, pin, one):
            groups.setdefault((one.code, one.scope), []).append(one)
    return list(groups.values())


def _lines(
    site: Site, pin: Pin, channel: str, signer: Signer, end: Position, groups: Sequence[Sequence[Incident]], now: str
) -> list[bytes]:
    sender, _, recipient = channel.partition("/")
    recent = b"".join(
        journal.read_segment(site.places, channel, number) for number in range(max(1, end.segment - 1), end.segment + 1)
    )
    lines = []
    seq, prev = end.seq, end.head
    for group in groups:
        newest = max(group, key=lambda one: one.last)
        idem = f"incident {newest.id} {now[:10]}"
        if b'"idem":' + strictjson.dumps(idem) in recent:
            continue  # told before a kill that came before it was noted
        seq += 1
        line = seal(
            signer,
            wire=pin.wire,
            sender=sender,
            recipient=recipient,
            seq=seq,
            prev=prev,
            ts=now,
            trust=f"{pin.trust_version}:{pin.trust_hash[:16]}",
            type=TYPE,
            body={
                "code": newest.code,
                "scope": newest.scope,
                "evidence": facts(newest.evidence),
                "first": min(one.first for one in group),
                "last": newest.last,
                "count": sum(one.count for one in group),
            },
            idem=idem,
        )
        prev = head(line[:-1])
        lines.append(line)
    return lines


def facts(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of an incident's evidence may be told: numbers, hashes, commits, ids of channels and messages."""
    kept = {}
    for name, value in evidence.items():
        safe = _fact(value, _DEPTH) if _NAME.fullmatch(name) else None
        if safe is not None:
            kept[name] = safe
    return kept


def _fact(value: Any, depth: int) -> Any:
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**53):
        return value
    if isinstance(value, str):
        return value if _SAFE.fullmatch(value) else None
    if depth and isinstance(value, list):
        return [safe for one in value[:_SHOWN] if (safe := _fact(one, depth - 1)) is not None] or None
    if depth and isinstance(value, dict):
        below = {
            name: safe
            for name, one in list(value.items())[:_SHOWN]
            if _NAME.fullmatch(str(name)) and name != "start" and (safe := _fact(one, depth - 1)) is not None
        }
        return below or None
    return None


def _about_incident_lines(site: Site, pin: Pin, incident: Incident) -> bool:
    """Return whether every line that an incident is about is an incident line itself.

    Only what their authors signed counts: a vandal must not silence us by what junk calls itself.
    """
    types = incident.evidence.get("types")
    if isinstance(types, list) and types:
        return types == [TYPE]
    first, last = incident.evidence.get("first"), incident.evidence.get("last")
    if incident.code != "PREFIX" or not incident.scope.endswith(f"/{EVERYONE}"):
        return False
    if not isinstance(first, int) or not isinstance(last, int):
        return False
    return _all_are_incident_lines(site, pin, incident.scope, first, last)


def _all_are_incident_lines(site: Site, pin: Pin, channel: str, first: int, last: int) -> bool:
    end = pin.accepted.get(channel)
    if end is None:
        return False
    accepted = site.accepted(pin)
    found = False
    for number in range(1, end.segment + 1):
        try:
            lines = [parse(raw) for raw in lines_of(accepted.segment(channel, number))]
        except GitFailed:
            return False
        for line in lines:
            if first <= line.seq <= last:
                if line.type != TYPE:
                    return False
                found = True
    return found
