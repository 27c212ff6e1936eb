"""An agent's presence: one signed line that says where it stands (PROTOCOL.md, section "Presence").

It has an encoding type of its own, so that it can never pass for a message, nor a message for it. As with lines the
exact bytes are signed, the key and the signature are read by position, and JSON is parsed after the signature held.

    raw = seal(signer, wire=wire, agent="spark", instance=instance, counter=7, ts="2026-11-29T11:20:00.123Z",
               trust="2:0011223344556677", state="busy", tier="T0", interval=90.0, channels={"mac/spark": (3, head, 2)})
    signed = opened(raw[:-1])
    assert verify(public, signed.signature, PRESENCE_TYPE, signed.body_bytes)
    presence = parse(raw[:-1])

This module does not know which keys are trusted, nor which presence of an agent is the newest: see `wire.daemon.heard`.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from wire.errors import UsageError
from wire.protocol import strictjson
from wire.protocol.codes import Code
from wire.protocol.encoding import PRESENCE_TYPE, Signer, b64, unb64
from wire.protocol.line import SIGNATURE_MEMBER_BYTES, LineError
from wire.protocol.names import valid_channel, valid_name

PRESENCE_MAX = 65_536
"""Bytes of one presence, its newline included."""
STATES = ("idle", "busy", "blocked", "paused")
TIERS = ("hot", "T0", "T1", "T2", "T3", "-")
NOTE_MAX = 200
"""Characters of a note."""
INTERVAL_MAX = 86_400.0
"""Seconds that an agent promises at most between two of its presences."""
COUNTER_MAX = 999_999_999_999_999

_ORDER = (
    "v", "wire", "agent", "instance", "counter", "ts", "trust", "state", "tier", "interval_ms", "note", "eta",
    "channels", "key", "sig",
)  # fmt: skip
_OPTIONAL = frozenset({"note", "eta"})
_TRAILER = r',"key":"([0-9a-f]{32})","sig":"([A-Za-z0-9+/]{85}[AQgw]==)"\}'
_TRAILER_BYTES = 139
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
_FORMS = {
    "wire": r"[0-9a-f]{32}",
    "instance": r"[0-9a-f]{32}",
    "ts": _TIME,
    "trust": r"[1-9][0-9]{0,8}:[0-9a-f]{16}",
    "eta": _TIME,
}
_HEAD = r"[0-9a-f]{64}"


class Presence(NamedTuple):
    """What a presence says. Its signature is not checked by having one of these.

    Attributes:
        wire: id of the wire, 32 hex.
        agent: whose it is.
        instance: id of the state folder that published it, 32 hex.
        counter: from 1; higher in every later presence of the agent.
        ts: the agent's own wall clock, for display.
        state: one of `STATES`.
        note: what the agent says about it, empty for nothing; a stranger's text.
        eta: until when, as a time of the form of `ts`, or None.
        tier: how its machine looks, one of `TIERS`; `-` where no daemon runs.
        interval: the seconds after which the next presence is promised.
        trust: `<version>:<16 hex>` of the trust that it holds.
        channels: per channel addressed to the agent the number and head of the last line that it accepted, and the
            number of the last one that was put in front of it.
        key: id of the key.
        raw: the line's bytes without the newline.
    """

    wire: str
    agent: str
    instance: str
    counter: int
    ts: str
    state: str
    note: str
    eta: str | None
    tier: str
    interval: float
    trust: str
    channels: Mapping[str, tuple[int, str, int]]
    key: str
    raw: bytes


class Opened(NamedTuple):
    """What stands at the fixed places of a presence: enough to check its signature."""

    key: str
    signature: bytes
    body_bytes: bytes


def opened(raw: bytes) -> Opened:
    """Read the trailer of a presence.

    Args:
        raw: the bytes without the newline.

    Raises:
        LineError: `SIZE`, or `SIGNATURE` when the bytes cannot be signed as a presence is.
    """
    if len(raw) >= PRESENCE_MAX:
        raise LineError(Code.SIZE, f"a presence of {len(raw) + 1} bytes; the limit is {PRESENCE_MAX}")
    trailer = re.fullmatch(_TRAILER.encode("ascii"), raw[-_TRAILER_BYTES:])
    if trailer is None:
        raise LineError(Code.SIGNATURE, "not a signed presence: it does not end in a key and a signature")
    return Opened(trailer[1].decode("ascii"), unb64(trailer[2], 64), raw[:-SIGNATURE_MEMBER_BYTES] + b"}")


def parse(raw: bytes) -> Presence:
    """Return what a presence says; call it after the signature held.

    Args:
        raw: the bytes without the newline.

    Raises:
        LineError: `SIZE`, `SIGNATURE` as `opened`; `SCHEMA` for anything that is not as it must be.
    """
    key = opened(raw).key
    try:
        found = strictjson.loads(raw, floats_below=None)
    except strictjson.StrictError as error:
        raise LineError(Code.SCHEMA, str(error)) from error
    names = [name for name in _ORDER if name in found or name not in _OPTIONAL]
    if list(found) != names:
        raise LineError(Code.SCHEMA, "a presence has exactly the members " + ", ".join(names) + ", in this order")
    problem = _problem(found)
    if problem:
        raise LineError(Code.SCHEMA, problem)
    channels = {channel: (seq, head, read) for channel, (seq, head, read) in found["channels"].items()}
    return Presence(
        found["wire"], found["agent"], found["instance"], found["counter"], found["ts"], found["state"],
        found.get("note", ""), found.get("eta"), found["tier"], found["interval_ms"] / 1000, found["trust"],
        channels, key, raw,
    )  # fmt: skip


def seal(
    signer: Signer,
    *,
    wire: str,
    agent: str,
    instance: str,
    counter: int,
    ts: str,
    trust: str,
    state: str,
    tier: str,
    interval: float,
    channels: Mapping[str, tuple[int, str, int]],
    note: str = "",
    eta: str | None = None,
) -> bytes:
    """Return one signed presence, newline included, that every reader takes.

    Channels that would make it longer than `PRESENCE_MAX` are left out from the end: what is not named says nothing.

    Args:
        interval: seconds, as a person would count them; bounded by `INTERVAL_MAX`, to the millisecond.
        channels: see `Presence`, in the order in which they matter.

    Raises:
        UsageError: reason `bad-content`: a member is not as it must be.
    """
    members: dict[str, Any] = {
        "v": 1, "wire": wire, "agent": agent, "instance": instance, "counter": counter, "ts": ts, "trust": trust,
        "state": state, "tier": tier, "interval_ms": max(1, round(min(interval, INTERVAL_MAX) * 1000)),
        **({"note": note} if note else {}), **({"eta": eta} if eta is not None else {}),
        "channels": {channel: list(place) for channel, place in channels.items()},
    }  # fmt: skip
    problem = _problem(members)
    if problem:
        raise UsageError(f"the presence of {agent!r} was not made: {problem}", reason="bad-content")
    room = PRESENCE_MAX - SIGNATURE_MEMBER_BYTES - 64 - len(strictjson.dumps({**members, "channels": {}}))
    fitting = {}
    for channel, place in members["channels"].items():
        room -= len(strictjson.dumps({channel: place})) - 1  # two braces, in place of a comma
        if room < 0:
            break
        fitting[channel] = place
    signed = strictjson.dumps({**members, "channels": fitting, "key": signer.key_id})
    return b'%s,"sig":"%s"}\n' % (signed[:-1], b64(signer.sign(PRESENCE_TYPE, signed)).encode("ascii"))


def check_declared(state: str, note: str, eta: str | None) -> None:
    """Check what an agent says of itself.

    Raises:
        UsageError: reason `bad-state`, `bad-note` or `bad-eta`.
    """
    if state not in STATES:
        raise UsageError(f"{state[:40]!r} is no state; one is {', '.join(STATES)}", reason="bad-state")
    if not _is_note(note):
        raise UsageError(f"a note has at most {NOTE_MAX} characters of valid text", reason="bad-note")
    if eta is not None and not _matches(_TIME, eta):
        raise UsageError(f"{eta[:40]!r} is no time like 2026-11-29T11:20:00.123Z", reason="bad-eta")


def _problem(found: Mapping[str, Any]) -> str:
    """Return what is wrong with the members, empty when nothing is."""
    if found["v"] != 1 or isinstance(found["v"], bool):
        return "its version is not 1"
    for name, form in _FORMS.items():
        if name in found and not _matches(form, found[name]):
            return f"{name!r} is not as it must be"
    agent = found["agent"]
    if not isinstance(agent, str) or not valid_name(agent):
        return "'agent' is not a name"
    if not _is_count(found["counter"], 1) or found["counter"] > COUNTER_MAX:
        return "'counter' is not a number from 1"
    if found["state"] not in STATES:
        return "'state' is not one of " + ", ".join(STATES)
    if found["tier"] not in TIERS:
        return "'tier' is not one of " + ", ".join(TIERS)
    if not _is_count(found["interval_ms"], 1) or found["interval_ms"] > INTERVAL_MAX * 1000:
        return "'interval_ms' is not a number of milliseconds up to a day"
    if "note" in found and not _is_note(found["note"]):
        return f"'note' is not a string of up to {NOTE_MAX} characters"
    if not isinstance(found["channels"], dict):
        return "'channels' is not an object"
    for channel, place in found["channels"].items():
        sender, _, recipient = channel.partition("/")
        if not valid_channel(sender, recipient) or sender == agent:
            return f"{channel[:80]!r} is not a channel to {agent}"
        if not _is_place(place):
            return f"the place in {channel} is not [seq, head, read]"
    return ""


def _is_place(place: object) -> bool:
    if not isinstance(place, list) or len(place) != 3:
        return False
    seq, head, read = place
    return _is_count(seq, 1) and _matches(_HEAD, head) and _is_count(read, 0) and read <= seq


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_note(value: object) -> bool:
    return isinstance(value, str) and len(value) <= NOTE_MAX and not any("\ud800" <= c <= "\udfff" for c in value)


def _matches(form: str, value: object) -> bool:
    # Compiled at the first use: most commands never see a presence.
    return isinstance(value, str) and re.fullmatch(form, value, re.ASCII) is not None
