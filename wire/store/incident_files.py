"""The files of incidents: one for each, which holds the newest of its kind and how often it was found.

What may be written, and by whom, is for `incidents`; here is how it is read, found and kept.
"""

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from typing import Any

from wire.errors import DiskFull, StoreError
from wire.store.evidence import bounded
from wire.store.files import atomic_write, read_bytes
from wire.store.incident_codes import CODES, INTEGRITY_CODES

OPEN, ACKED, RESOLVED = "open", "acked", "resolved"

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


def path_of(directory: str, code: str, name: str) -> str:
    """Return the path of an incident, by its code and id."""
    # The code stands in the name, so that those of one code are found and counted without reading the others.
    return os.path.join(directory, f"{code}.{name}.json")


def code_of(name: str) -> str | None:
    """Return the code in a file's name, None where it is no incident's."""
    code, _, rest = name.partition(".")
    return code if rest.startswith("i-") and rest.endswith(".json") and code in CODES else None


def scan(directory: str, codes: Collection[str] | None = None) -> tuple[list[Incident], list[str]]:
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
        code = code_of(name)
        if code is None or (codes is not None and code not in codes):
            continue
        try:
            incident = read(os.path.join(directory, name))
        except ValueError:
            damaged.append(name)
            continue
        if incident is not None:
            found.append(incident)
    return found, damaged


def write(directory: str, incident: Incident, *, durable: bool = True) -> None:
    """Write an incident; raises DiskFull, StoreError."""
    path = path_of(directory, incident.code, incident.id)
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


def report(directory: str, names: list[str], now: str) -> Incident:
    """Return the incident that tells of damaged records."""
    scope = directory
    name = incident_id("CORRUPT", scope, "incidents")
    try:
        known = read(path_of(directory, "CORRUPT", name))
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


def read(path: str) -> Incident | None:
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
