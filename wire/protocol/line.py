"""A line: sealed by its author, opened by everybody (PROTOCOL.md, section "Lines").

The exact bytes are signed and nothing is canonicalised. What decides about the chain is read by position, from a
prefix and a trailer of fixed form; JSON is parsed after the signature held, and only to show the content.

    raw = seal(signer, wire=wire, sender="mac", recipient="spark", seq=1, prev=genesis(wire, "mac/spark"),
               ts="2026-11-29T11:20:00.123Z", trust="2:0011223344556677", type="message", body="hello")
    line = parse(raw[:-1])
    assert verify(signer.public, line.signature, LINE_TYPE, line.body_bytes)

This module does not know which keys are trusted, nor where in a channel a line belongs: see `chain`.
"""

import re
from binascii import a2b_base64
from collections.abc import Mapping
from typing import Any, NamedTuple

from wire.errors import UsageError
from wire.protocol import strictjson
from wire.protocol.codes import Code
from wire.protocol.encoding import LINE_TYPE, Signer, b64, sha256_hex
from wire.protocol.messages import FIXED, OPTIONAL, TRAILING, check_content
from wire.protocol.names import valid_channel

LINE_MAX = 65_536
"""Bytes of one line, its newline included."""
LINE_MIN = 361
"""Bytes that no line has fewer of, without its newline."""

_PREFIX = re.compile(
    r'\{"v":1,"wire":"([0-9a-f]{32})","from":"([a-z0-9-]{1,32})","to":"([a-z0-9-]{1,32})","seq":([1-9][0-9]{0,14}),'
    r'"prev":"([0-9a-f]{64})","ts":"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)",'
    r'"trust":"([1-9][0-9]{0,8}:[0-9a-f]{16})","type":"([a-z][a-z0-9_-]{0,31})",'
)
# Two bits of the 86th character belong to the signature; only these four spell the other four as zero.
_TRAILER = re.compile(r',"key":"([0-9a-f]{32})","sig":"([A-Za-z0-9+/]{85}[AQgw]==)"\}')
TRAILER_BYTES = 139
_ELSEWHERE = frozenset((*FIXED, *TRAILING))
"""What stands in the prefix and the trailer, and may not stand between them."""
SIGNATURE_MEMBER_BYTES = 98


class LineError(ValueError):
    """These bytes are not the line that they should be; `code` is the verdict and `str()` the reason."""

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class Line(NamedTuple):
    """What stands at the fixed places of a line. Its signature is not checked by having one of these."""

    raw: bytes
    wire: str
    sender: str
    recipient: str
    seq: int
    prev: str
    ts: str
    trust: str
    type: str
    key_id: str
    signature: bytes
    middle_at: int
    """Where the optional members begin in `raw`."""

    @property
    def channel(self) -> str:
        """The channel that the line names, `<from>/<to>`."""
        return f"{self.sender}/{self.recipient}"

    @property
    def id(self) -> str:
        """The line's id, `<from>/<to>/<seq>`."""
        return f"{self.sender}/{self.recipient}/{self.seq}"

    @property
    def head(self) -> str:
        """SHA-256 of the line's bytes, the `prev` of the next one."""
        return sha256_hex(self.raw)

    @property
    def body_bytes(self) -> bytes:
        """The bytes that were signed."""
        return self.raw[:-SIGNATURE_MEMBER_BYTES] + b"}"

    @property
    def trust_version(self) -> int:
        """The number of the trust version that the author held."""
        return int(self.trust.partition(":")[0])


def head(raw: bytes) -> str:
    """Return the head that a line makes: SHA-256 over its bytes without the newline."""
    return sha256_hex(raw)


def genesis(wire: str, channel: str) -> str:
    """Return the `prev` of a channel's first line."""
    return sha256_hex(f"wire/v1/genesis\n{wire}\n{channel}".encode("ascii"))


def parse(raw: bytes) -> Line:
    """Read the fixed places of one line.

    Args:
        raw: the line's bytes without the newline.

    Raises:
        LineError: `SIZE`, or `SIGNATURE` when the bytes cannot be a signed line of this version.
    """
    if len(raw) >= LINE_MAX:
        raise LineError(Code.SIZE, f"a line of {len(raw) + 1} bytes; the limit is {LINE_MAX}")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LineError(Code.SIGNATURE, f"invalid UTF-8 at byte {error.start}") from None
    start = len(text) - TRAILER_BYTES
    prefix = _PREFIX.match(text)
    trailer = _TRAILER.fullmatch(text, start)
    if trailer is None or prefix is None or prefix.end() > start + 1:
        raise LineError(Code.SIGNATURE, _guess(raw))
    wire, sender, recipient, seq, prev, ts, trust, kind = prefix.groups()
    signature = a2b_base64(trailer[2])
    return Line(
        raw, wire, sender, recipient, int(seq), prev, ts, trust, kind, trailer[1], signature, prefix.end()
    )  # fmt: skip


def seal(
    signer: Signer,
    *,
    wire: str,
    sender: str,
    recipient: str,
    seq: int,
    prev: str,
    ts: str,
    trust: str,
    type: str,
    **optional: Any,
) -> bytes:
    """Return one signed line, newline included, that every reader accepts at its place.

    Args:
        ts: the author's wall clock, `2026-11-29T11:20:00.123Z`.
        trust: `<version>:<first 16 hex of its hash>` of the trust that the author holds.
        optional: members of `messages.OPTIONAL`; those that are None are left out.

    Raises:
        UsageError: the content is not lawful, or the line would be longer than `LINE_MAX` bytes. Nothing was written.
    """
    if not optional.keys() <= OPTIONAL.keys():
        unknown = min(optional.keys() - OPTIONAL.keys())
        raise UsageError(f"a line has no member {unknown!r}", reason="bad-content")
    members = {name: optional[name] for name in OPTIONAL if name in optional and optional[name] is not None}
    prefix = _prefix(wire, sender, recipient, seq, prev, ts, trust, type)
    if _PREFIX.fullmatch(prefix) is None or not valid_channel(sender, recipient):
        raise UsageError(
            f"the message was not sent: {prefix[:400]} is not the beginning of a line", reason="bad-content"
        )
    problem = check_content(recipient, type, members)
    if problem is not None:
        raise UsageError(f"the message was not sent: {problem[1]}", reason="bad-content")
    try:
        written = strictjson.dumps_members(members)
        if any(isinstance(member, (dict, list)) for member in members.values()):
            strictjson.loads(written)
    except strictjson.StrictError as error:
        raise UsageError(f"the message cannot be written as strict JSON: {error}", reason="bad-content") from error
    return _signed(signer, prefix, written[1:-1] + b"," if members else b"")


def seal_again(signer: Signer, line: Line, *, seq: int, prev: str, trust: str, moved: Mapping[str, str]) -> bytes:
    """Return what a line says, to the byte, as another line of its channel, newline included.

    Args:
        seq, prev, trust: as for `seal`.
        moved: new ids by old ones; a `thread` or `re` of the line follows them.

    Raises:
        UsageError: the line would be longer than `LINE_MAX` bytes.
    """
    middle = line.raw[line.middle_at : len(line.raw) - TRAILER_BYTES + 1]
    try:
        members = _optional(line)
    except LineError:
        members = {}
    for name in ("thread", "re"):
        old = members.get(name)
        new = moved.get(old) if isinstance(old, str) else None
        if new is not None:
            # Both stand in front of anything in which the same text could occur.
            middle = middle.replace(f'"{name}":"{old}"'.encode(), f'"{name}":"{new}"'.encode(), 1)
    prefix = _prefix(line.wire, line.sender, line.recipient, seq, prev, line.ts, trust, line.type)
    return _signed(signer, prefix, middle)


def content(line: Line) -> dict[str, Any]:
    """Return all members of a line, strictly parsed and checked; call it after the signature held.

    Raises:
        LineError: `SCHEMA` or `SIZE`; the line keeps its place in the chain and is shown as unreadable.
    """
    optional = check(line)
    return {
        "v": 1, "wire": line.wire, "from": line.sender, "to": line.recipient, "seq": line.seq, "prev": line.prev,
        "ts": line.ts, "trust": line.trust, "type": line.type, **optional, "key": line.key_id,
        "sig": line.raw[-SIGNATURE_MEMBER_BYTES + 8 : -2].decode("ascii"),
    }  # fmt: skip


def check(line: Line) -> dict[str, Any]:
    """Return the optional members of a line as `content` does, without the fixed ones; raises LineError as it does."""
    optional = _optional(line)
    problem = check_content(line.recipient, line.type, optional)
    if problem is not None:
        raise LineError(*problem)
    return optional


def _optional(line: Line) -> dict[str, Any]:
    """Parse what stands between prefix and trailer.

    Those two are JSON by their form, so the whole is strict JSON if and only if the middle, in braces, is an object
    with members of its own and none of theirs. Parsing them again would be half of the work.
    """
    end = len(line.raw) - TRAILER_BYTES
    if line.middle_at > end:  # prefix and trailer share their comma
        return {}
    try:
        members = strictjson.loads(b"{%s}" % line.raw[line.middle_at : end])
    except strictjson.StrictError as error:
        raise LineError(Code.SCHEMA, str(error)) from error
    if not members:
        raise LineError(Code.SCHEMA, "not JSON: two commas without a member between them")
    if not _ELSEWHERE.isdisjoint(members):
        name = next(name for name in members if name in _ELSEWHERE)
        raise LineError(Code.SCHEMA, f"duplicate key {name!r}")
    return members


def _prefix(wire: str, sender: str, recipient: str, seq: int, prev: str, ts: str, trust: str, type: str) -> str:
    return (
        f'{{"v":1,"wire":"{wire}","from":"{sender}","to":"{recipient}","seq":{seq},"prev":"{prev}",'
        f'"ts":"{ts}","trust":"{trust}","type":"{type}",'
    )


def _signed(signer: Signer, prefix: str, middle: bytes) -> bytes:
    signed = b'%s%s"key":"%s"}' % (prefix.encode("ascii"), middle, signer.key_id.encode("ascii"))
    signature = b64(signer.sign(LINE_TYPE, signed)).encode("ascii")
    raw = b'%s,"sig":"%s"}\n' % (signed[:-1], signature)
    if len(raw) > LINE_MAX:
        raise UsageError(
            f"the message was not sent: its line would have {len(raw)} bytes; the limit is {LINE_MAX}, and it is"
            f" {len(raw) - LINE_MAX} over",
            reason="too-large",
        )
    return raw


def _guess(raw: bytes) -> str:
    """Say what these bytes look like, for a person who has to find the cause."""
    if not raw:
        return "an empty line"
    guesses = (
        (raw.startswith(b"\xef\xbb\xbf"), "it begins with a byte order mark"),
        (raw.endswith(b"\r"), "it ends in CR LF"),
        (b"\0" in raw, "it holds NUL bytes"),
        (raw.startswith((b"<<<<<<<", b"=======", b">>>>>>>")), "it is a conflict marker"),
        (raw.startswith(b'{"v":') and not raw.startswith(b'{"v":1,'), "it has another protocol version"),
        (not raw.endswith(b"}") and raw.startswith(b'{"'), "it is torn"),
        (b'"sig"' not in raw, "it carries no signature"),
        (raw.endswith(b'=="}'), "its signature or a member at a fixed place is not spelled as it must be"),
    )
    return "not a signed line: " + next((text for found, text in guesses if found), "its form is not that of version 1")
