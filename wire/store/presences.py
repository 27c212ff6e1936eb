"""The presences that this machine accepted, and what its own agents say of themselves.

Rules that it keeps: what stands here was verified before it was stored; one file per agent, replaced as a whole, so
that a reader needs no lock; a file that is damaged counts as none, which only means that the agent was not heard of.

    presences/<agent>          when its counter last changed by our clock, and the presence as it was signed
    presences/<agent>.says     what `wire state` set for an agent of this machine
    presences/shown/<sha256>   what an incident is about, where it is too long to stand in its record
    presences/refused.json     since when the remote takes no presences, see `Refusal`

    heard = load(places)["spark"]
    stale(heard, Progress.load(places).fetched)

What it does not do: verify, or publish. Who declares a state only writes a file; the daemon notices it.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from wire.errors import UsageError
from wire.protocol.encoding import sha256_hex
from wire.protocol.line import LineError
from wire.protocol.names import check_name, valid_name
from wire.protocol.presence import Presence, check_declared, parse
from wire.protocol.strictjson import dumps
from wire.store import pin as pins
from wire.store.files import atomic_write, private_folder, read_bytes
from wire.store.paths import WirePlaces

FOLDER = "presences"
MISSED_INTERVALS = 3
"""Promised intervals without a changed counter after which an agent counts as stale."""

SHOWN_MOST = 32
"""Presences that are kept as evidence; beyond, the oldest go."""

_SHOWN_BYTES = 3000
_SAYS = ".says"
_REFUSED = "refused.json"


class Heard(NamedTuple):
    """A presence as this machine has it.

    Attributes:
        changed: seconds of the epoch, by our clock, when its counter was last found changed.
    """

    presence: Presence
    changed: float


class Declared(NamedTuple):
    """What an agent of this machine says of itself, see `wire.protocol.presence.Presence`."""

    state: str = "idle"
    note: str = ""
    eta: str | None = None


class Refusal(NamedTuple):
    """That the remote takes no presences.

    Attributes:
        since: seconds of the epoch of the first refusal.
        tried: when it was last tried.
        why: the remote's own words.
        told: when the agents of this machine last showed life by a line instead.
        lines: whether it took lines since the first refusal, so that it is presences that it refuses.
    """

    since: float
    tried: float
    why: str
    told: float = 0.0
    lines: bool = False


def load(places: WirePlaces) -> dict[str, Heard]:
    """Return the newest accepted presence of every agent by name, our own as they were published."""
    try:
        names = os.listdir(_folder(places))
    except OSError:
        return {}
    found = {}
    for name in sorted(names):
        heard = load_one(places, name) if valid_name(name) else None
        if heard is not None:
            found[name] = heard
    return found


def load_one(places: WirePlaces, agent: str) -> Heard | None:
    """Return the newest accepted presence of one agent, None when there is none that holds.

    Raises:
        UsageError: what is asked for is no name.
    """
    data = read_bytes(os.path.join(_folder(places), check_name(agent, "agent")))
    if data is None:
        return None
    changed, _, rest = data.partition(b"\n")
    try:
        presence = parse(rest.removesuffix(b"\n"))
        heard = Heard(presence, float(changed))
    except (LineError, ValueError):
        return None
    return heard if presence.agent == agent and rest.endswith(b"\n") else None


def keep(places: WirePlaces, presence: Presence, changed: float) -> Heard:
    """Store a presence that was verified; the caller holds the wire's lock.

    Raises:
        DiskFull, StoreError: not written; the one before is still there.
    """
    private_folder(_folder(places))
    path = os.path.join(_folder(places), check_name(presence.agent, "agent"))
    atomic_write(path, b"%.3f\n%s\n" % (changed, presence.raw), durable=False)
    return Heard(presence, changed)


def stale(heard: Heard, looked: float | None) -> bool:
    """Return whether an agent broke its promise: no changed counter within three promised intervals, by our clock.

    What happened since our last look nobody here can know: an agent is not stale because *we* could not look.

    Args:
        looked: when this machine last looked with success (`Progress.fetched`), None for never.
    """
    return looked is not None and looked - heard.changed > MISSED_INTERVALS * heard.presence.interval


def declared(places: WirePlaces, agent: str) -> Declared:
    """Return what an agent of this machine says of itself; a damaged file counts as nothing said."""
    data = read_bytes(os.path.join(_folder(places), check_name(agent, "agent") + _SAYS))
    try:
        found = json.loads(data) if data else {}
        says = Declared(found.get("state", "idle"), found.get("note", ""), found.get("eta"))
        check_declared(*says)
    except (ValueError, AttributeError, TypeError, UsageError):
        return Declared()
    return says


def declare(places: WirePlaces, agent: str, says: Declared) -> None:
    """Store what an agent says of itself; the daemon publishes it within a few seconds.

    Raises:
        UsageError: reason `bad-state`, `bad-note` or `bad-eta`.
        DiskFull, StoreError: not written; what was said before holds.
    """
    check_declared(*says)
    private_folder(_folder(places))
    path = os.path.join(_folder(places), check_name(agent, "agent") + _SAYS)
    atomic_write(path, dumps(says._asdict()) + b"\n", durable=False)


def shown(places: WirePlaces, raw: bytes) -> dict[str, object]:
    """Return a presence as evidence of an incident, which keeps short texts only: anything else goes into a file.

    Raises:
        DiskFull, StoreError: it could not be kept.
    """
    text = raw.decode("utf-8", "replace")
    evidence: dict[str, object] = {"presence": text}
    if len(raw) <= _SHOWN_BYTES and text.encode("utf-8") == raw:
        return evidence
    name = sha256_hex(raw)
    folder = os.path.join(_folder(places), "shown")
    private_folder(_folder(places))
    private_folder(folder)
    there = sorted(os.scandir(folder), key=lambda entry: entry.stat().st_mtime_ns)
    for entry in there[: max(0, len(there) - SHOWN_MOST + 1)]:
        os.unlink(entry.path)
    atomic_write(os.path.join(folder, name), raw, durable=False)
    return {**evidence, "presence_sha256": name}


def as_shown(places: WirePlaces, evidence: Mapping[str, object]) -> bytes | None:
    """Return the bytes of the presence that an incident is about, None where it is about none, or they are gone."""
    name, text = evidence.get("presence_sha256"), evidence.get("presence")
    if isinstance(name, str):
        raw = read_bytes(os.path.join(_folder(places), "shown", os.path.basename(name)))
        return raw if raw is not None and sha256_hex(raw) == name else None
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else None


def instance(places: WirePlaces) -> str:
    """Return the random id of this state folder, 32 hex; it was made with the pin.

    Raises:
        IdentityError, Corrupt: the pin is missing or damaged.
    """
    return pins.load(places.pin_file).instance


def refusal(places: WirePlaces) -> Refusal | None:
    """Return that the remote takes no presences, None when it does or was never asked."""
    data = read_bytes(os.path.join(_folder(places), _REFUSED))
    try:
        found = json.loads(data) if data else None
        if not found:
            return None
        since, tried, told = (float(found[name]) for name in ("since", "tried", "told"))
        return Refusal(since, tried, str(found["why"]), told, found["lines"] is True)
    except (ValueError, TypeError, KeyError):
        return None


def refuse(places: WirePlaces, refused: Refusal | None) -> None:
    """Note that the remote takes no presences, or with None that it does."""
    path = os.path.join(_folder(places), _REFUSED)
    if refused is None:
        with suppress(FileNotFoundError):
            os.unlink(path)
        return
    private_folder(_folder(places))
    atomic_write(path, json.dumps(refused._asdict()).encode("ascii") + b"\n", durable=False)


def _folder(places: WirePlaces) -> str:
    return os.path.join(places.root, FOLDER)


def news(places: WirePlaces) -> object:
    """Return what is another value whenever something was accepted or heard."""
    try:
        status = os.stat(places.pin_file)
        pinned = status.st_ino, status.st_mtime_ns
    except OSError:
        pinned = 0, 0
    try:
        with os.scandir(os.path.join(places.root, FOLDER)) as entries:
            heard = max((entry.stat().st_mtime_ns for entry in entries), default=0)
    except OSError:
        heard = 0
    return pinned, heard
