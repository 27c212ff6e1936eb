"""The file by which an incident is shown to somebody else (PROTOCOL.md, section "Evidence").

One JSON object: the claim in the words of who made the file, the trust chain, and the bytes that speak for the claim,
each as it was found. Nothing in it is believed: see `weighing` for what it proves.

    raw = write(Bundle(wire, Claim("FORK", "mac/spark", ""), ((document, signatures), …), (Exhibit("line", line), …)))
    bundle = read(raw)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wire.errors import IntegrityError
from wire.keys.document import DOCUMENT_MAX
from wire.keys.signatures import SIGNATURES_MAX
from wire.protocol import strictjson
from wire.protocol.codes import Code
from wire.protocol.encoding import b64, unb64

BUNDLE_MAX = 33_554_432
"""Bytes of an evidence file."""
EXHIBITS_MAX = 64
VERSIONS_MAX = 100_000
TEXT_MAX = 8_192
"""Characters of one text of the claim, and of the place where something was found."""

TYPE = "wire-evidence"
LINE, PRESENCE, DOCUMENT, BYTES = "line", "presence", "document", "bytes"
KINDS = (LINE, PRESENCE, DOCUMENT, BYTES)
"""What an exhibit is offered as: a line or a presence without its newline, a trust document, or bytes of no form."""

_TOP = ("v", "type", "wire", "claim", "trust", "exhibits")
_CLAIM = ("code", "scope", "message", "first", "last", "count")
_EXHIBIT = ("kind", "found", "bytes")


@dataclass(frozen=True, slots=True)
class Claim:
    """What the maker of the file says: an incident as his machine recorded it."""

    code: str
    scope: str
    message: str = ""
    first: str = ""
    last: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Some bytes.

    Attributes:
        kind: one of `KINDS`.
        data: the bytes.
        found: where, in the words of the maker: a commit and a path, or `accepted`.
        signatures: of a trust document its signature file.
    """

    kind: str
    data: bytes
    found: str = ""
    signatures: bytes = b""


@dataclass(frozen=True, slots=True)
class Bundle:
    """An evidence file.

    Attributes:
        wire: id of the wire, 32 hex.
        trust: (document, signature file) of every version from 1 on.
    """

    wire: str
    claim: Claim
    trust: tuple[tuple[bytes, bytes], ...]
    exhibits: tuple[Exhibit, ...]


def write(bundle: Bundle) -> bytes:
    """Return the file of a bundle, newline included."""
    claim = bundle.claim
    return (
        strictjson.dumps(
            {
                "v": 1,
                "type": TYPE,
                "wire": bundle.wire,
                "claim": {name: getattr(claim, name) for name in _CLAIM},
                "trust": [[b64(raw), b64(signatures)] for raw, signatures in bundle.trust],
                "exhibits": [_written(one) for one in bundle.exhibits],
            }
        )
        + b"\n"
    )


def looks_like_one(raw: bytes) -> bool:
    """Return whether bytes begin as an evidence file does; a line begins otherwise."""
    return raw.startswith(b'{"v":1,"type":"%s",' % TYPE.encode("ascii"))


def read(raw: bytes) -> Bundle:
    """Return what a file holds; nothing of it is checked but its form.

    Raises:
        IntegrityError: reason `evidence-malformed`.
    """
    if len(raw) > BUNDLE_MAX:
        raise _malformed(f"{len(raw)} bytes; the limit is {BUNDLE_MAX}")
    try:
        found = strictjson.loads(raw.removesuffix(b"\n"), floats_below=None)
    except strictjson.StrictError as error:
        raise _malformed(str(error)) from error
    _members(found, _TOP, "the file")
    if found["v"] != 1 or isinstance(found["v"], bool) or found["type"] != TYPE:
        raise _malformed("it is of another version or type")
    wire, claim = found["wire"], found["claim"]
    if not isinstance(wire, str) or len(wire) != 32 or wire.strip("0123456789abcdef"):
        raise _malformed("'wire' is not 32 hex digits")
    return Bundle(
        wire,
        _claim(claim),
        tuple(_version(pair) for pair in _list(found["trust"], VERSIONS_MAX, "trust")),
        tuple(_exhibit(one) for one in _list(found["exhibits"], EXHIBITS_MAX, "exhibits")),
    )


def _written(exhibit: Exhibit) -> dict[str, Any]:
    members = {"kind": exhibit.kind, "found": exhibit.found[:TEXT_MAX], "bytes": b64(exhibit.data)}
    return members | ({"signatures": b64(exhibit.signatures)} if exhibit.kind == DOCUMENT else {})


def _claim(found: Any) -> Claim:
    _members(found, _CLAIM, "'claim'")
    texts = [found[name] for name in _CLAIM[:-1]]
    if not all(isinstance(text, str) and len(text) <= TEXT_MAX for text in texts):
        raise _malformed("'claim' has a member that is no text, or a long one")
    count = found["count"]
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise _malformed("'count' is not a number from 1 on")
    if texts[0] not in {str(code) for code in Code}:
        raise _malformed("'code' is no code of an incident about bytes")
    code, scope, message, first, last = texts
    return Claim(code, scope, message, first, last, count)


def _version(pair: Any) -> tuple[bytes, bytes]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise _malformed("a trust version is a pair of document and signatures")
    return _bytes(pair[0], DOCUMENT_MAX), _bytes(pair[1], SIGNATURES_MAX)


def _exhibit(found: Any) -> Exhibit:
    kind = found.get("kind") if isinstance(found, dict) else None
    if kind not in KINDS:
        raise _malformed("an exhibit of no known kind")
    _members(found, (*_EXHIBIT, "signatures") if kind == DOCUMENT else _EXHIBIT, "an exhibit")
    if not isinstance(found["found"], str) or len(found["found"]) > TEXT_MAX:
        raise _malformed("'found' is no text, or a long one")
    signatures = _bytes(found["signatures"], SIGNATURES_MAX) if kind == DOCUMENT else b""
    return Exhibit(kind, _bytes(found["bytes"], DOCUMENT_MAX), found["found"], signatures)


def _members(found: Any, names: Sequence[str], what: str) -> None:
    if not isinstance(found, dict) or list(found) != list(names):
        raise _malformed(f"{what} is not an object with exactly {', '.join(names)}, in this order")


def _list(found: Any, most: int, what: str) -> list[Any]:
    if not isinstance(found, list) or len(found) > most:
        raise _malformed(f"'{what}' is not a list of at most {most}")
    return found


def _bytes(text: Any, most: int) -> bytes:
    if not isinstance(text, str):
        raise _malformed("a text of base64 is missing")
    length = len(text) // 4 * 3 - text[-2:].count("=")
    if length > most:
        raise _malformed(f"a text of base64 holds {length} bytes; the limit is {most}")
    try:
        return unb64(text, length)
    except ValueError as error:
        raise _malformed(f"a text is not canonical base64: {error}") from error


def _malformed(why: str) -> IntegrityError:
    return IntegrityError(
        f"this is no evidence file as `wire evidence` writes it: {why}; nothing in it was believed",
        reason="evidence-malformed",
        next_step="ask for the file again: wire evidence INCIDENT -o FILE",
    )
