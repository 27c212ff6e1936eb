"""`presence.json`: presences of spark, as they must be, and as they must not."""

from typing import Any

from vectors.forge import LINE, PRESENCE, TS, Key, b64, compact, notation, sha
from vectors.world import CHAIN, MAC, OTHER_WIRE, SPARK, WIRE

Members = dict[str, Any]
HEAD = sha(b"the head of a line")
TRUST = f"3:{sha(CHAIN[2][0])[:16]}"


def members(**changed: Any) -> Members:
    """Return honest members in their order, with changes; those that are None are left out."""
    honest = {
        "v": 1, "wire": WIRE, "agent": "spark", "instance": "00112233445566778899aabbccddeeff", "counter": 7, "ts": TS,
        "trust": TRUST, "state": "idle", "tier": "T0", "interval_ms": 90_000, "note": None, "eta": None,
        "channels": {"mac/spark": [3, HEAD, 2]},
    }  # fmt: skip
    return {name: value for name, value in {**honest, **changed}.items() if value is not None}


def sign(body: bytes, key: Key = SPARK, kind: bytes = PRESENCE, identifier: str | None = None) -> bytes:
    """Return members, in braces, with key and signature behind them."""
    signed = body[:-1] + b',"key":"%s"}' % (identifier or key.id).encode()
    return signed[:-1] + b',"sig":"%s"}' % b64(key.sign(kind, signed)).encode()


def presence(**changed: Any) -> bytes:
    return sign(compact(members(**changed)).encode())


def make() -> Members:
    about = "Presences of spark, signed with its key, without their newline; see README.md."
    return {"about": about, "public": b64(SPARK.public), "vectors": list(_vectors())}


def _vectors() -> Any:
    def case(name: str, raw: bytes, verdict: str, reason: str) -> Members:
        return {"name": name, "presence": notation(raw), "verdict": verdict, "reason": reason}

    yield case("nothing said but where it is", presence(), "ok", "note and eta may be left out")
    yield case("all members", presence(state="busy", note="tests é", eta=TS), "ok", "in their order")
    yield case("no channels", presence(channels={}), "ok", "a channel that is not named says nothing")
    many = {"mac/spark": [1, HEAD, 0], "mac/all": [10**14, HEAD, 10**14], "ana/review": [2, HEAD, 2]}
    yield case("a group and all", presence(channels=many), "ok", "whatever is addressed to it")
    yield case("the largest counter", presence(counter=10**15 - 1), "ok", "15 digits")
    yield case("a day", presence(interval_ms=86_400_000), "ok", "the longest promise")
    yield case("200 characters of a note", presence(note="é" * 200), "ok", "code points, not bytes")
    for state in ("idle", "busy", "blocked", "paused"):
        yield case(f"state {state}", presence(state=state), "ok", "one of four")
    for tier in ("hot", "T0", "T1", "T2", "T3", "-"):
        yield case(f"tier {tier}", presence(tier=tier), "ok", "one of six")

    body = compact(members()).encode()
    yield case("signed as a line", sign(body, kind=LINE), "SIGNATURE", "a signature is of one type")
    yield case("signed by another key", sign(body, MAC, identifier=SPARK.id), "SIGNATURE", "not its key's")
    yield case("a byte changed", presence().replace(b'"idle"', b'"busy"'), "SIGNATURE", "the exact bytes are signed")
    yield case("no signature", body, "SIGNATURE", "no trailer")
    yield case("empty", b"", "SIGNATURE", "no trailer")
    yield case("a blank behind it", presence() + b" ", "SIGNATURE", "the trailer is the end")
    yield case("another spelling", presence()[:-5] + b'B=="}', "SIGNATURE", "not canonical base64")
    room = 65_536 - len(presence(note="x")) + 1 - 1
    long = sign(compact(members(note="x")).encode()[:-1] + b" " * (room - 1) + b"}")
    yield case("as long as it may be", long, "ok", "65,536 bytes with the newline; blanks between tokens are JSON")
    yield case("a byte more", long[:-200] + b" " + long[-200:], "SIZE", "65,537 bytes with the newline")

    def odd(name: str, reason: str = "not of its form", **changed: Any) -> Members:
        return case(name, presence(**changed), "SCHEMA", reason)

    yield odd("version 2", v=2)
    yield odd("version true", v=True)
    yield odd("a wire in capitals", wire=WIRE.upper())
    yield odd("a wire of 31 digits", wire=OTHER_WIRE[:31])
    yield odd("an agent called all", "reserved", agent="all")
    yield odd("an agent that is a number", agent=7)
    yield odd("an instance of 31 digits", instance="0" * 31)
    for counter in (0, -1, 10**15, 2**53, True, "7", [7]):
        yield odd(f"counter {counter!r}", "a number from 1 of at most 15 digits", counter=counter)
    yield odd("a time without milliseconds", ts="2026-11-29T11:20:00Z")
    yield odd("an eta in words", eta="soon")
    yield odd("trust version 0", trust="0:" + "0" * 16)
    yield odd("an unknown state", state="asleep")
    yield odd("an unknown tier", tier="T4")
    for interval in (0, -1, 86_400_001, True, "90"):
        yield odd(f"interval {interval!r}", "1 to 86,400,000", interval_ms=interval)
    yield odd("201 characters of a note", "at most 200", note="é" * 201)
    yield odd("a note that is a list", note=[])
    yield odd("channels in a list", channels=[])
    for name, channels in {
        "its own channel": {"spark/mac": [1, HEAD, 0]},
        "no channel": {"mac": [1, HEAD, 0]},
        "a channel with a reserved name": {"trust/spark": [1, HEAD, 0]},
        "a place of two": {"mac/spark": [1, HEAD]},
        "a place of four": {"mac/spark": [1, HEAD, 0, 0]},
        "a place before line 1": {"mac/spark": [0, HEAD, 0]},
        "read beyond what was accepted": {"mac/spark": [1, HEAD, 2]},
        "read below 0": {"mac/spark": [1, HEAD, -1]},
        "read null": {"mac/spark": [1, HEAD, None]},
        "a head of 63 digits": {"mac/spark": [1, HEAD[1:], 0]},
        "a head in capitals": {"mac/spark": [1, HEAD.upper(), 0]},
        "a seq that is true": {"mac/spark": [True, HEAD, 0]},
    }.items():
        yield odd(name, channels=channels)
    yield odd("an unknown member", "exactly these members", channels={}, mood="fine")
    without = {name: value for name, value in members().items() if name != "state"}
    yield case("no state", sign(compact(without).encode()), "SCHEMA", "exactly these members")
    turned = dict(reversed(members().items()))
    yield case("another order", sign(compact(turned).encode()), "SCHEMA", "in this order")
    yield case("a duplicate", sign(body[:-1] + b',"v":1}'), "SCHEMA", "strict JSON")
    yield case("a float", presence(counter=7.5), "SCHEMA", "floats stand nowhere")
    yield case(
        "no UTF-8", sign(compact(members(note="x")).encode().replace(b'"x"', b'"\xe9"')), "SCHEMA", "strict JSON"
    )
    surrogate = compact(members(note="x")).encode().replace(b'"x"', b'"\\ud83d"')
    yield case("a lone surrogate", sign(surrogate), "SCHEMA", "strict JSON")
