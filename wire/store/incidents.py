"""The record of what went wrong: one file per incident, counted, bounded, never in the way.

Rules that it keeps: an incident is its code, scope and subject, so that a repeat is counted and never a second entry;
what a stranger can cause is bounded in size (evidence) and in number (per code), so that nobody fills the disk with
it; a damaged record becomes an incident itself and stops nobody; listing takes no lock.

    incident = raise_(places.incidents_dir, code="GAP", scope="mac/spark", subject="", message="line 9 where 7 is next")
    end(places.incidents_dir, "GAP", "mac/spark")     the condition is over
    resolve(places.incidents_dir, incident.id)        a person says so

What it does not do: decide what is an incident, publish it, or clean texts for a terminal. Texts and evidence can be a
stranger's words.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from wire.errors import Busy, StoreError, UsageError
from wire.store.evidence import VALUE_MAX, bounded, cut
from wire.store.files import locked, move_aside, utc_now
from wire.store.incident_codes import CODES, INTEGRITY_CODES, OPERATIONAL_CODES
from wire.store.incident_files import (
    ACKED,
    OPEN,
    RESOLVED,
    Incident,
    code_of,
    incident_id,
    path_of,
    read,
    report,
    scan,
    write,
)

__all__ = [
    "ACKED",
    "INTEGRITY_CODES",
    "OPEN",
    "OPERATIONAL_CODES",
    "RESOLVED",
    "Incident",
    "ack",
    "concerning",
    "end",
    "find",
    "get",
    "incident_id",
    "list_",
    "mark_published",
    "raise_",
    "resolve",
]

MOST_PER_CODE = 1000
"""Files of one code; beyond, the oldest resolved one goes, and when all are open further ones are counted in one."""

_TEXT_MAX = 2048
_WAIT = 10.0
_SHORT_WAIT = 1.0
_MORE = "further ones, counted here"


def raise_(
    directory: str,
    *,
    code: str,
    scope: str,
    message: str,
    subject: str = "",
    evidence: Mapping[str, Any] | None = None,
    next_step: str | None = None,
    now: str | None = None,
) -> Incident:
    """Record an incident, or count it once more, and return it.

    One that is resolved, or whose condition had ended, is open again; one that was acknowledged and went on stays so.

    Args:
        directory: `WirePlaces.incidents_dir`; made when missing.
        code: one of `incident_codes.CODES`.
        scope: a channel, `wire`, or a path.
        message: what was found and what was expected.
        subject: tells two of one code and scope apart.
        evidence: facts by name; bytes are kept as hash, length and beginning only.
        next_step: instead of the code's own.
        now: UTC text; this machine's clock when omitted.

    Raises:
        Busy: somebody held the lock for ten seconds.
        DiskFull, StoreError: not recorded.
    """
    if code not in CODES:
        raise ValueError(f"{code!r} is not an incident code")
    with locked(directory, what="the incidents", timeout=_WAIT):
        return _raise(directory, code, scope, subject, message, evidence or {}, next_step, now or utc_now())


def list_(directory: str) -> list[Incident]:
    """Return all incidents, the oldest first.

    Damaged records are moved aside and stand in the list as one `CORRUPT`, also where they could not be moved.

    Raises:
        StoreError: the folder is there and cannot be read.
    """
    found, damaged = scan(directory)
    if damaged:
        found, damaged = _move_damaged(directory, damaged, found)
    if damaged:
        told = report(directory, damaged, utc_now())
        found = [*(incident for incident in found if incident.id != told.id), told]
    return sorted(found, key=lambda incident: (incident.first, incident.id))


def get(directory: str, wanted: str) -> Incident:
    """Return the incident with that id, or the one whose id begins so.

    Raises:
        UsageError: reason `incident-unknown`, there is none or more than one.
    """
    known = _at_once(directory, wanted)
    if known is not None:
        return known
    matching = [incident for incident in list_(directory) if incident.id.startswith(wanted)]
    exact = [incident for incident in matching if incident.id == wanted]
    if len(exact or matching) == 1:
        return (exact or matching)[0]
    found = "several begin so" if matching else "there is none"
    raise UsageError(
        f"no single incident {wanted[:64]!r}: {found}",
        reason="incident-unknown",
        next_step="`wire incidents` lists them",
    )


def _at_once(directory: str, wanted: str) -> Incident | None:
    """Return the incident with exactly this id, without reading the others; there may be thousands."""
    paths = (path_of(directory, code, wanted) for code in CODES) if "/" not in wanted else ()
    with suppress(ValueError):
        return next((found for path in paths if (found := read(path)) is not None), None)
    return None


def find(directory: str, code: str, scope: str, subject: str = "") -> Incident | None:
    """Return the incident of that code, scope and subject, or None when there is none or it is damaged."""
    try:
        return read(path_of(directory, code, incident_id(code, scope, subject)))
    except ValueError:
        return None


def ack(directory: str, wanted: str) -> Incident:
    """Mark an incident as known; it is no longer counted as open, and goes on being counted."""
    return _set(directory, wanted, state=ACKED)


def resolve(directory: str, wanted: str, *, now: str | None = None) -> Incident:
    """Mark an incident as done with; found again, it is open again."""
    return _set(directory, wanted, state=RESOLVED, ended=now or utc_now())


def mark_published(directory: str, wanted: str, *, now: str | None = None) -> Incident:
    """Note that an incident was told to the others."""
    return _set(directory, wanted, published=now or utc_now())


def end(
    directory: str, code: str | Collection[str], scope: str, subject: str | None = None, *, now: str | None = None
) -> list[Incident]:
    """Note that a condition is over, and return the incidents which that ended.

    A breakdown is resolved by it; one about bytes that do not hold stays open until a person has seen it.

    Args:
        directory: `WirePlaces.incidents_dir`; may be missing.
        code: one code, or several.
        scope: as raised.
        subject: only that one; all of the scope when omitted.
        now: UTC text; this machine's clock when omitted.
    """
    codes = (code,) if isinstance(code, str) else tuple(code)
    kept_scope = cut(scope, _TEXT_MAX)
    kept_subject = None if subject is None else cut(subject, _TEXT_MAX)

    def concerned() -> list[Incident]:
        return [
            incident
            for incident in scan(directory, codes)[0]
            if incident.scope == kept_scope and incident.ended is None and kept_subject in (None, incident.subject)
        ]

    # Asked after every cycle that went well: nearly always there is nothing, and then no lock and no write.
    if not concerned():
        return []
    ended: list[Incident] = []
    with locked(directory, what="the incidents", timeout=_WAIT):
        for incident in concerned():
            state = RESOLVED if incident.code in OPERATIONAL_CODES else incident.state
            incident = replace(incident, ended=now or utc_now(), state=state)
            write(directory, incident)
            ended.append(incident)
    return ended


def concerning(directory: str, channels: Iterable[str]) -> list[Incident]:
    """Return the open incidents about bytes that do not hold in these channels or in the whole wire, oldest first."""
    scopes = {*channels, "wire"}
    # Readers ask this at every start: only the files of these codes are opened, unless one of them is damaged.
    found, damaged = scan(directory, INTEGRITY_CODES)
    if damaged:
        found = list_(directory)
    return sorted(
        (one for one in found if one.state == OPEN and one.integrity and one.scope in scopes),
        key=lambda incident: (incident.first, incident.id),
    )


# ----------------------------------------------------------------------------------- with the lock held


def _raise(
    directory: str,
    code: str,
    scope: str,
    subject: str,
    message: str,
    evidence: Mapping[str, Any],
    next_step: str | None,
    now: str,
) -> Incident:
    name = incident_id(code, scope, subject)
    scope, subject = cut(scope, _TEXT_MAX), cut(subject, _TEXT_MAX)
    known = _read_or_move(directory, code, name)
    if known is None and not _room(directory, code):
        scope, subject = "wire", _MORE
        name = incident_id(code, scope, subject)
        known = _read_or_move(directory, code, name)
    over = known is not None and (known.state == RESOLVED or known.ended is not None)
    template = next_step if next_step is not None else CODES[code].next_step
    incident = Incident(
        id=name,
        code=code,
        scope=scope,
        subject=subject,
        first=known.first if known else now,
        last=now,
        count=known.count + 1 if known else 1,
        evidence=bounded(evidence),
        message=cut(message, VALUE_MAX),
        next_step=cut(
            template if next_step is not None else template.format(id=name, scope=scope, subject=subject), _TEXT_MAX
        ),
        state=known.state if known and not over else OPEN,
        # What was over and is there again is told again, but not twice a day.
        published=known.published if known and not (over and (known.published or "")[:10] < now[:10]) else None,
    )
    write(directory, incident, durable=known is None)
    return incident


def _room(directory: str, code: str) -> bool:
    """Return whether one more record of a code may be made, giving up the oldest resolved one if need be."""
    names = [name for name in os.listdir(directory) if code_of(name) == code]
    if len(names) < MOST_PER_CODE:
        return True
    resolved = [incident for incident in scan(directory, (code,))[0] if incident.state == RESOLVED]
    if not resolved:
        return False
    oldest = min(resolved, key=lambda incident: (incident.last, incident.id))
    os.unlink(path_of(directory, code, oldest.id))
    return True


def _read_or_move(directory: str, code: str, name: str) -> Incident | None:
    path = path_of(directory, code, name)
    try:
        return read(path)
    except ValueError:
        move_aside(path)
        write(directory, report(directory, [os.path.basename(path)], utc_now()))
        return None


def _set(directory: str, wanted: str, **changes: Any) -> Incident:
    name = get(directory, wanted).id
    with locked(directory, what="the incidents", timeout=_WAIT):
        incident = replace(get(directory, name), **changes)
        write(directory, incident)
    return incident


def _move_damaged(directory: str, damaged: list[str], found: list[Incident]) -> tuple[list[Incident], list[str]]:
    """Move damaged records aside; return the incidents as they are then, and what could not be moved."""
    moved: list[str] = []
    try:
        with locked(directory, what="the incidents", timeout=_SHORT_WAIT):
            _, still = scan(directory)
            for name in still:
                move_aside(os.path.join(directory, name))
                moved.append(name)
            if moved:
                write(directory, report(directory, moved, utc_now()))
            return scan(directory)[0], []
    except (Busy, StoreError):  # a list that cannot be tidied is still a list
        return found, damaged
