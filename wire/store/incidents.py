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

import json
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from typing import Any

from wire.errors import Busy, DiskFull, StoreError, UsageError
from wire.store.evidence import VALUE_MAX, bounded, cut
from wire.store.files import atomic_write, locked, move_aside, read_bytes, utc_now
from wire.store.incident_codes import CODES, INTEGRITY_CODES, OPERATIONAL_CODES

__all__ = [
    "INTEGRITY_CODES",
    "OPERATIONAL_CODES",
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

OPEN, ACKED, RESOLVED = "open", "acked", "resolved"
MOST_PER_CODE = 1000
"""Files of one code; beyond, the oldest resolved one goes, and when all are open further ones are counted in one."""

_TEXT_MAX = 2048
_WAIT = 10.0
_SHORT_WAIT = 1.0
_MORE = "further ones, counted here"
# A full disk is itself an incident. These bytes are given up for it, and taken again once there is space.
_RESERVE = 8192


@dataclass(frozen=True, slots=True)
class Incident:
    """One violation or breakdown.

    Attributes:
        id: `i-` and 12 hex of code, scope and subject.
        code: see `incident_codes`.
        scope: the channel concerned, `wire`, or a path.
        subject: what tells two of one code and scope apart; may be empty.
        first: UTC time of the first one.
        last: UTC time of the newest one.
        count: how often it was found.
        evidence: of the newest one; bounded, see `evidence.bounded`.
        message: what was found and what was expected, of the newest one.
        next_step: a sentence or command that helps in this state.
        state: `open`, `acked` (known, goes on) or `resolved`.
        ended: UTC time at which the condition was seen to be over, or None.
        published: UTC time at which it was last told to the others, or None.
    """

    id: str
    code: str
    scope: str
    subject: str
    first: str
    last: str
    count: int
    evidence: Mapping[str, Any]
    message: str
    next_step: str
    state: str = OPEN
    ended: str | None = None
    published: str | None = None

    @property
    def integrity(self) -> bool:
        """Whether it is about bytes that do not hold, and not about a breakdown."""
        return self.code in INTEGRITY_CODES


def incident_id(code: str, scope: str, subject: str = "") -> str:
    """Return the id that an incident of this code, scope and subject has."""
    # Paths can hold bytes that are not UTF-8; Python keeps them as lone surrogates.
    key = "\n".join((code, scope, subject)).encode("utf-8", "surrogatepass")
    return f"i-{sha256(key).hexdigest()[:12]}"


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
    found, damaged = _scan(directory)
    if damaged:
        found, damaged = _move_damaged(directory, damaged, found)
    if damaged:
        report = _report(directory, damaged, utc_now())
        found = [*(incident for incident in found if incident.id != report.id), report]
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
    paths = (_path(directory, code, wanted) for code in CODES) if "/" not in wanted else ()
    with suppress(ValueError):
        return next((found for path in paths if (found := _read(path)) is not None), None)
    return None


def find(directory: str, code: str, scope: str, subject: str = "") -> Incident | None:
    """Return the incident of that code, scope and subject, or None when there is none or it is damaged."""
    try:
        return _read(_path(directory, code, incident_id(code, scope, subject)))
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
            for incident in _scan(directory, codes)[0]
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
            _write(directory, incident)
            ended.append(incident)
    return ended


def concerning(directory: str, channels: Iterable[str]) -> list[Incident]:
    """Return the open incidents about bytes that do not hold in these channels or in the whole wire, oldest first."""
    scopes = {*channels, "wire"}
    # Readers ask this at every start: only the files of these codes are opened, unless one of them is damaged.
    found, damaged = _scan(directory, INTEGRITY_CODES)
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
    _write(directory, incident, durable=known is None)
    return incident


def _room(directory: str, code: str) -> bool:
    """Return whether one more record of a code may be made, giving up the oldest resolved one if need be."""
    names = [name for name in os.listdir(directory) if _code_of(name) == code]
    if len(names) < MOST_PER_CODE:
        return True
    resolved = [incident for incident in _scan(directory, (code,))[0] if incident.state == RESOLVED]
    if not resolved:
        return False
    oldest = min(resolved, key=lambda incident: (incident.last, incident.id))
    os.unlink(_path(directory, code, oldest.id))
    return True


def _read_or_move(directory: str, code: str, name: str) -> Incident | None:
    path = _path(directory, code, name)
    try:
        return _read(path)
    except ValueError:
        move_aside(path)
        _write(directory, _report(directory, [os.path.basename(path)], utc_now()))
        return None


def _write(directory: str, incident: Incident, *, durable: bool = True) -> None:
    path = _path(directory, incident.code, incident.id)
    data = json.dumps(asdict(incident), indent=1).encode("ascii") + b"\n"
    reserve = os.path.join(directory, ".reserve")
    try:
        atomic_write(path, data, durable=durable)
    except DiskFull:
        if not os.path.exists(reserve):
            raise
        os.unlink(reserve)
        atomic_write(path, data, durable=durable)
        return
    if not os.path.exists(reserve):
        with suppress(DiskFull):
            atomic_write(reserve, bytes(_RESERVE), durable=False)


def _set(directory: str, wanted: str, **changes: Any) -> Incident:
    name = get(directory, wanted).id
    with locked(directory, what="the incidents", timeout=_WAIT):
        incident = replace(get(directory, name), **changes)
        _write(directory, incident)
    return incident


# ------------------------------------------------------------------------------------------ the files


def _path(directory: str, code: str, name: str) -> str:
    # The code stands in the name, so that those of one code are found and counted without reading the others.
    return os.path.join(directory, f"{code}.{name}.json")


def _code_of(name: str) -> str | None:
    code, _, rest = name.partition(".")
    return code if rest.startswith("i-") and rest.endswith(".json") and code in CODES else None


def _scan(directory: str, codes: Collection[str] | None = None) -> tuple[list[Incident], list[str]]:
    """Return the incidents of some codes, and the names of damaged records."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise StoreError(f"cannot read the incidents in {directory}: {error.strerror}") from error
    found: list[Incident] = []
    damaged: list[str] = []
    for name in sorted(names):
        code = _code_of(name)
        if code is None or (codes is not None and code not in codes):
            continue
        try:
            incident = _read(os.path.join(directory, name))
        except ValueError:
            damaged.append(name)
            continue
        if incident is not None:
            found.append(incident)
    return found, damaged


def _move_damaged(directory: str, damaged: list[str], found: list[Incident]) -> tuple[list[Incident], list[str]]:
    """Move damaged records aside; return the incidents as they are then, and what could not be moved."""
    moved: list[str] = []
    try:
        with locked(directory, what="the incidents", timeout=_SHORT_WAIT):
            _, still = _scan(directory)
            for name in still:
                move_aside(os.path.join(directory, name))
                moved.append(name)
            if moved:
                _write(directory, _report(directory, moved, utc_now()))
            return _scan(directory)[0], []
    except (Busy, StoreError):  # a list that cannot be tidied is still a list
        return found, damaged


def _report(directory: str, names: list[str], now: str) -> Incident:
    scope = directory
    name = incident_id("CORRUPT", scope, "incidents")
    try:
        known = _read(_path(directory, "CORRUPT", name))
    except ValueError:
        known = None
    return Incident(
        id=name,
        code="CORRUPT",
        scope=scope,
        subject="incidents",
        first=known.first if known else now,
        last=now,
        count=known.count + 1 if known else 1,
        evidence=bounded({"files": names[:20], "number": len(names)}),
        message=f"{len(names)} incident records in {directory} are damaged; what they told is lost",
        next_step=f"look at the files named *.corrupt-* in {directory}, then `wire incidents resolve {name}`",
    )


_FIELDS = {field.name for field in fields(Incident)}
_TEXTS = ("id", "code", "scope", "subject", "first", "last", "message", "next_step")


def _read(path: str) -> Incident | None:
    """Return the incident in a file, None when there is none; raises ValueError for a damaged one."""
    data = read_bytes(path)
    if data is None:
        return None
    try:
        found = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(found, dict) or found.keys() != _FIELDS:
        raise ValueError("not an incident")
    count = found["count"]
    if (
        not all(isinstance(found[name], str) for name in _TEXTS)
        or not isinstance(count, int)
        or isinstance(count, bool)
        or not isinstance(found["evidence"], dict)
        or found["state"] not in (OPEN, ACKED, RESOLVED)
        or not all(found[name] is None or isinstance(found[name], str) for name in ("ended", "published"))
        or os.path.basename(path) != f"{found['code']}.{found['id']}.json"
    ):
        raise ValueError("not an incident")
    return Incident(**found)
