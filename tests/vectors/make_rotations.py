"""`rotations.json`: an agent's next key, and where the old one ends, signed by both."""

from collections.abc import Iterator
from typing import Any

from vectors.forge import Key, b64, compact, notation, sha
from vectors.world import ANA, CREATED, MAC, MAC_NEXT, OTHER_WIRE, WIRE, proof

Vector = dict[str, Any]
ROTATION = b"application/vnd.git-wire.rotation+json;v=1"
SIGNED = ("v", "wire", "name", "role", "public", "created", "proof", "replaces", "positions")
HEAD = sha(b"the head of line 2")


def make() -> dict[str, Any]:
    about = "Rotations, each with the name of its file and the agent's active key; see README.md."
    return {"about": about, "wire": WIRE, "vectors": list(_rotations())}


def rotation(*, closer: Key = MAC, opener: Key = MAC_NEXT, **changed: Any) -> dict[str, Any]:
    """Return an honest rotation of mac's with changes, signed as it then stands."""
    members = {
        "v": 1, "wire": WIRE, "name": "mac", "role": "agent", "public": b64(MAC_NEXT.public), "created": CREATED,
        "proof": proof(MAC_NEXT, WIRE, "mac"), "replaces": MAC.id,
        "positions": {"mac/all": [9, HEAD], "mac/spark": [2, HEAD]},
        **changed,
    }  # fmt: skip
    payload = compact({name: members[name] for name in SIGNED}).encode()
    both = {"closed": b64(closer.sign(ROTATION, payload)), "opened": b64(opener.sign(ROTATION, payload))}
    return {**members, **{name: members.pop(name, signature) for name, signature in both.items()}}


def _rotations() -> Iterator[Vector]:
    def case(name: str, members: dict[str, Any] | bytes, reason: str | None, why: str, file: str = "") -> Vector:
        raw = members if isinstance(members, bytes) else compact(members).encode() + b"\n"
        file = file or f"mac.{MAC_NEXT.id}.json"
        answer = {"verdict": reason or "ok", "reason": why}
        return {"name": name, "file": file, "active": b64(MAC.public), "rotation": notation(raw), **answer}

    good, bad = compact(rotation()).encode() + b"\n", "request-malformed"
    yield case("as it is", good, None, "both keys signed it")
    yield case("of an agent that sent nothing", rotation(positions={}), None, "no line is a position, too")
    yield case("of a human", rotation(role="human", proof=proof(MAC_NEXT, WIRE, "mac", "human")), None, "a role")
    for name, raw in (
        ("empty", b""), ("without a newline", good[:-1]), ("with a newline more", good + b"\n"),
        ("with spaces", good.replace(b'":', b'": ')), ("with CR LF", good[:-1] + b"\r\n"), ("no JSON", b"{\n"),
        ("with a member twice", good.replace(b'"v":1,', b'"v":1,"v":1,')),
        ("with an escape", good.replace(b'"mac"', b'"m\\u0061c"')),
        ("in another order", compact(dict(reversed(rotation().items()))).encode() + b"\n"),
        ("with another member", compact({**rotation(), "x": 1}).encode() + b"\n"),
        ("without a signature", compact({k: v for k, v in rotation().items() if k != "opened"}).encode() + b"\n"),
    ):  # fmt: skip
        yield case(name, raw, bad, "not of the one form")
    for member, values in {
        "v": [2, "1", True], "role": ["root", None], "created": ["now", None], "wire": [None],
        "public": ["", b64(MAC_NEXT.public[:31]), None], "proof": ["", b64(bytes(63))], "closed": ["", None],
        "opened": ["", b64(bytes(63))], "replaces": ["", MAC.id.upper(), MAC.id[:31], None], "positions": [[], None],
    }.items():  # fmt: skip
        for value in values:
            yield case(f"{member} of {value!r:.50}", rotation(**{member: value}), bad, "not what this member may be")
    places = (
        ("mac/spark", 2), ("mac/spark", [2]), ("mac/spark", [2, HEAD, 0]), ("mac/spark", [0, HEAD]),
        ("mac/spark", [True, HEAD]), ("mac/spark", ["2", HEAD]), ("mac/spark", [2, HEAD[:63]]),
        ("mac/spark", [2, HEAD.upper()]), ("mac/spark", [2, None]), ("spark/mac", [2, HEAD]), ("mac", [2, HEAD]),
        ("mac/mac", [2, HEAD]), ("mac/..", [2, HEAD]), ("mac/spark/1", [2, HEAD]), ("", [2, HEAD]),
    )  # fmt: skip
    for number, (channel, at) in enumerate(places, 1):
        name = f"position {number} in {channel!r}"
        yield case(name, rotation(positions={channel: at}), "position-invalid", "no position of this agent")
    for name in ("Mac", "all", "trust", ""):
        file = f"{name}.{MAC_NEXT.id}.json"
        yield case(f"for {name!r}", rotation(name=name, positions={}), "name-invalid", "no name", file)
    neutral = b64(bytes([1, *([0] * 31)]))
    yield case("of an unusable key", rotation(public=neutral), "key-invalid", "the neutral element")
    yield case("that replaces itself", rotation(replaces=MAC_NEXT.id), "key-invalid", "the old key is another one")
    yield case("for another wire", rotation(wire=OTHER_WIRE), "wrong-wire", "it stands on this one")
    for file in (f"mac.{MAC.id}.json", f"spark.{MAC_NEXT.id}.json", "mac.json"):
        yield case(f"in the file {file}", good, "request-misplaced", "the file is named after name and new key", file)
    for what, other in (
        ("another name", proof(MAC_NEXT, WIRE, "spark")),
        ("another role", proof(MAC_NEXT, WIRE, "mac", "human")),
        ("another key", proof(ANA, WIRE, "mac")),
    ):
        yield case(f"with a proof of {what}", rotation(proof=other), "proof-invalid", "it does not hold")
    unsigned, closing = good.replace(b'"mac/spark":[2,', b'"mac/spark":[3,'), "closing-invalid"
    yield case("moved by somebody else", unsigned, closing, "the positions are signed")
    yield case("dated by somebody else", good.replace(CREATED.encode(), b"2030-01-01T00:00:00.000Z"), closing, "signed")
    yield case("opened by another key", rotation(opener=ANA), closing, "the new key did not sign it")
    yield case("opened by the old key", rotation(opener=MAC), closing, "the new key did not sign it")
    yield case("closed by the new key", rotation(closer=MAC_NEXT), closing, "the active key did not sign it")
    yield case("closed by another key", rotation(closer=ANA), closing, "the active key did not sign it")
    yield case("of another old key", rotation(closer=ANA, replaces=ANA.id), closing, "it is not the active one")
