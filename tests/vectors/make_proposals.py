"""`proposals.json`: next trust versions on their way to enough signatures, and lines that carry a new root's key."""

import base64
from collections.abc import Iterator
from typing import Any

from vectors.forge import Key, b64, compact, notation, sha
from vectors.world import (
    CREATED,
    FIRST,
    MAC,
    MALLORY,
    OTHER_WIRE,
    ROOT,
    SECOND_ROOT,
    WIRE,
    document,
    follow,
    proof,
    signatures,
)

Vector = dict[str, Any]
PROPOSAL = b"application/vnd.git-wire.proposal+json;v=1"
NEXT = document(**follow(FIRST, threshold=2, roots=[b64(ROOT.public), b64(SECOND_ROOT.public)]))
LATER = "2026-12-13T10:00:00.000Z"


def make() -> dict[str, Any]:
    about = "Proposals, each with the name of its file, and lines of root keys; see README.md."
    roots = [b64(ROOT.public)]
    return {"about": about, "wire": WIRE, "roots": roots, "vectors": list(_proposals()), "root_lines": list(_lines())}


def proposal(*, key: Key = ROOT, **changed: Any) -> dict[str, Any]:
    """Return an honest proposal with changes, offered as it then stands."""
    members = {
        "v": 1, "wire": WIRE, "base": [1, sha(FIRST)], "created": CREATED, "expires": LATER, "by": key.id,
        "note": "two of us", "document": b64(NEXT), **changed,
    }  # fmt: skip
    offered = members.pop("offered", None) or b64(key.sign(PROPOSAL, compact(members).encode()))
    return {**members, "offered": offered}


def _proposals() -> Iterator[Vector]:
    def case(
        name: str, members: dict[str, Any] | bytes, reason: str | None, why: str, file: str = "", signed: bytes = b""
    ) -> Vector:
        raw = members if isinstance(members, bytes) else compact(members).encode() + b"\n"
        file = file or f"trust.{ROOT.id}.json"
        return {
            "name": name, "file": file, "proposal": notation(raw + signed), "verdict": reason or "ok", "reason": why
        }  # fmt: skip

    good, bad = compact(proposal()).encode() + b"\n", "request-malformed"
    yield case("as it is", good, None, "offered, and signed by nobody yet")
    yield case("signed by one", good, None, "as a signature file", signed=signatures(NEXT, ROOT))
    yield case("signed by two", good, None, "as a signature file", signed=signatures(NEXT, ROOT, SECOND_ROOT))
    yield case("signed by a stranger", good, None, "it counts nothing", signed=signatures(NEXT, MALLORY))
    yield case("without a note", proposal(note=""), None, "there need be none")
    yield case("of a document that is none", proposal(document=b64(b"{}")), None, "that is judged with the trust")
    for name, raw in (
        ("empty", b""), ("without a newline", good[:-1] + b"\r"), ("with spaces", good.replace(b'":', b'": ')),
        ("no JSON", b"{\n"), ("with a member twice", good.replace(b'"v":1,', b'"v":1,"v":1,')),
        ("in another order", compact(dict(reversed(proposal().items()))).encode() + b"\n"),
        ("with another member", compact({**proposal(), "x": 1}).encode() + b"\n"),
        ("without who offers it", compact({k: v for k, v in proposal().items() if k != "offered"}).encode() + b"\n"),
    ):  # fmt: skip
        yield case(name, raw, bad, "not of the one form")
    for member, values in {
        "v": [2, "1", True], "created": ["now", None, LATER], "expires": ["never", None, CREATED], "wire": [None],
        "by": ["", ROOT.id.upper(), ROOT.id[:31], None], "note": [None, "x" * 201],
        "document": ["", None, "e30", "e31="], "offered": [b64(bytes(63)), b64(bytes(65))],
        "base": [None, [], [1], ["1", sha(FIRST)], [0, sha(FIRST)], [True, sha(FIRST)], [1, sha(FIRST)[:63]],
                 [1, sha(FIRST).upper()], [1, sha(FIRST), 0], [999_999_999, sha(FIRST)]],
    }.items():  # fmt: skip
        for number, value in enumerate(values, 1):
            yield case(f"{member} {number}", proposal(**{member: value}), bad, "not what this member may be")
    for name, signed in (
        ("another form", b"x\n"), ("no newline", signatures(NEXT, ROOT)[:-1]), ("an empty line", b"\n"),
        ("a space more", signatures(NEXT, ROOT).replace(b":", b": ")),
    ):  # fmt: skip
        yield case(f"signatures of {name}", good, "signatures-malformed", "no signature file", signed=signed)
    yield case("for another wire", proposal(wire=OTHER_WIRE), "wrong-wire", "it stands on this one")
    for file in (f"trust.{MAC.id}.json", f"mac.{ROOT.id}.json", "trust.json"):
        yield case(f"in the file {file}", good, "request-misplaced", "the file is named after the root's key", file)
    unknown = "proposer-unknown"
    for key in (SECOND_ROOT, MAC, MALLORY):
        yield case(f"offered by {key.title}", proposal(key=key), unknown, "no root in force", f"trust.{key.id}.json")
    yield case("offered by another key", proposal(offered=proposal(key=MAC)["offered"]), unknown, "not the root's")
    yield case("its time moved", good.replace(LATER.encode(), b"2030-01-01T00:00:00.000Z"), unknown, "that is signed")
    yield case("its note changed", good.replace(b"two of us", b"two of me"), unknown, "that is signed")


def line(members: dict[str, Any]) -> str:
    """Return the line that carries a root's key."""
    raw = compact(members).encode()
    return f"wire-root-1.{base64.urlsafe_b64encode(raw).decode().rstrip('=')}.{sha(raw)[:8]}"


def root_key(key: Key = SECOND_ROOT, name: str = "sam", wire: str = WIRE, **changed: Any) -> dict[str, Any]:
    """Return what such a line says, with changes."""
    members = {"wire": wire, "name": name, "public": b64(key.public), "proof": proof(key, wire, name, "root")}
    return {**members, **changed}


def _lines() -> Iterator[Vector]:
    good = line(root_key())

    def case(name: str, text: str, reason: str | None, why: str) -> Vector:
        return {"name": name, "line": text, "for": "sam", "verdict": reason or "ok", "reason": why}

    yield case("as it is", good, None, "")
    yield case("broken by a mail", f" {good[:40]}\r\n  {good[40:]}\n", None, "white space does no harm")
    bad = "root-line-invalid"
    for name, text in (
        ("empty", ""), ("cut short", good[:-1]), ("a letter changed", good[:40] + good[40].swapcase() + good[41:]),
        ("of another kind", good.replace("wire-root-1", "wire-join-1")), ("without its sum", good.rpartition(".")[0]),
        ("with a member more", line(root_key(x="1"))), ("without a proof", line({"wire": WIRE, "name": "sam"})),
        ("a proof of 63 bytes", line(root_key(proof=b64(bytes(63))))),
        ("a key of 31", line(root_key(public=b64(bytes(31))))),
    ):  # fmt: skip
        yield case(name, text, bad, "not a whole line")
    yield case("for another wire", line(root_key(wire=OTHER_WIRE)), "wrong-wire", "it was made for that one")
    yield case("of another name", line(root_key(name="lea")), "name-invalid", "it agreed to that one")
    yield case(
        "an unusable key", line(root_key(public=b64(bytes([1, *([0] * 31)])))), "key-invalid", "the neutral element"
    )
    for what, other in (
        ("an agent's proof", proof(SECOND_ROOT, WIRE, "sam")), ("another key's", proof(MAC, WIRE, "sam", "root")),
        ("another wire's", proof(SECOND_ROOT, OTHER_WIRE, "sam", "root")),
    ):  # fmt: skip
        yield case(f"with {what}", line(root_key(proof=other)), "proof-invalid", "it does not hold")
