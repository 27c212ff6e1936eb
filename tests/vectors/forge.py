"""What the vectors are made with: keys of fixed seeds, lines and documents of any kind, and the notation for bytes.

Everything here is written out by hand from PROTOCOL.md, so that the product is never asked what the right answer is.
It can make what no honest writer makes.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nacl.bindings

LINE = b"application/vnd.git-wire.line+json;v=1"
TRUST = b"application/vnd.git-wire.trust+json;v=1"
PROOF = b"application/vnd.git-wire.proof+json;v=1"
PRESENCE = b"application/vnd.git-wire.presence+json;v=1"
ORDER = 2**252 + 27742317777372353535851937790883648493
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
TS = "2026-11-29T11:20:00.123Z"
LINE_MAX = 65_536
SEGMENT_MAX = 262_144
WORDS = Path(__file__).parents[2] / "wire" / "keys" / "words.txt"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def words(digest: bytes) -> str:
    """Return the ten words of a fingerprint: the list has 6^5 words, so that its first 16 bytes are read by fives."""
    number, rolls = int.from_bytes(digest[:16], "big"), ""
    while number or len(rolls) < 50:
        rolls = str(number % 6) + rolls
        number //= 6
    known = WORDS.read_text("ascii").splitlines()
    return " ".join(known[int(rolls[start : start + 5], 6)] for start in range(0, 50, 5))


def pae(payload_type: bytes, payload: bytes) -> bytes:
    return b"DSSEv1 %d %s %d %s" % (len(payload_type), payload_type, len(payload), payload)


class Key:
    """A key pair whose seed is SHA-256 over `wire test vectors/` and its title."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.seed = hashlib.sha256(b"wire test vectors/" + title.encode()).digest()
        self.public, self._secret = nacl.bindings.crypto_sign_seed_keypair(self.seed)
        self.id = sha(b"wire/v1/key" + self.public)[:32]
        self.fingerprint = "SHA256:" + b64(hashlib.sha256(self.public).digest()).rstrip("=")

    def sign(self, payload_type: bytes, payload: bytes) -> bytes:
        return nacl.bindings.crypto_sign(pae(payload_type, payload), self._secret)[:64]

    def sign_with_r(self, r_bytes: bytes, r: int, message: bytes) -> bytes:
        """Return R and S for a chosen R: what only the owner of a key can make, and no library does."""
        clamped = bytearray(hashlib.sha512(self.seed).digest()[:32])
        clamped[0] &= 248
        clamped[31] = clamped[31] & 63 | 64
        h = int.from_bytes(hashlib.sha512(r_bytes + self.public + message).digest(), "little")
        s = (r + h * int.from_bytes(clamped, "little")) % ORDER
        return r_bytes + s.to_bytes(32, "little")


@dataclass(frozen=True)
class End:
    """The end of a channel."""

    seq: int
    head: str
    segment: int = 1
    size: int = 0

    def after(self, raw: bytes) -> "End":
        length = len(raw) + 1
        roll = self.size + length > SEGMENT_MAX
        return End(self.seq + 1, sha(raw), self.segment + roll, (0 if roll else self.size) + length)

    def json(self) -> dict[str, Any]:
        return {"seq": self.seq, "head": self.head, "segment": self.segment, "size": self.size}


def start(wire: str, channel: str) -> End:
    return End(0, sha(f"wire/v1/genesis\n{wire}\n{channel}".encode()))


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def middle(**members: object) -> bytes:
    """Return optional members as an honest writer writes them; `from_` and the like are not needed here."""
    return (compact(members)[1:-1] + ",").encode() if members else b""


def prefix(**fields: object) -> bytes:
    """Return a prefix; `fields` are its members in order, written as they are."""
    return ("{" + "".join(f'"{name}":{compact(value)},' for name, value in fields.items())).encode()


def seal(key: Key, front: bytes, between: bytes = b"", *, key_id: str | None = None) -> bytes:
    """Return prefix, middle and trailer, signed by `key` whatever they say; without newline."""
    signed = front + between + b'"key":"%s"}' % (key_id or key.id).encode()
    return resign(signed, b64(key.sign(LINE, signed)))


def resign(signed: bytes, signature: str) -> bytes:
    """Return the line of signed bytes and a signature's text."""
    return signed[:-1] + b',"sig":"%s"}' % signature.encode()


def unsigned(raw: bytes) -> bytes:
    """Return the signed bytes of a line."""
    return raw[:-98] + b"}"


def signature(raw: bytes) -> str:
    """Return the signature's text of a line."""
    return raw[-90:-2].decode()


class Author:
    """Somebody who writes lines into one channel, behind a given end."""

    def __init__(self, key: Key, wire: str, channel: str, trust: str, end: End | None = None) -> None:
        self.key, self.wire, self.channel, self.trust = key, wire, channel, trust
        self.end = end or start(wire, channel)

    def front(self, **changed: object) -> bytes:
        """Return the prefix of the next line, with some members changed."""
        sender, _, recipient = self.channel.partition("/")
        fields: dict[str, object] = {
            "v": 1, "wire": self.wire, "from": sender, "to": recipient, "seq": self.end.seq + 1, "prev": self.end.head,
            "ts": TS, "trust": self.trust, "type": "message",
        }  # fmt: skip
        return prefix(**{**fields, **changed})

    def line(self, between: bytes = b"", **changed: object) -> bytes:
        """Return the next line without moving on."""
        return seal(self.key, self.front(**changed), between)

    def write(self, between: bytes = b"", **changed: object) -> bytes:
        """Return the next line and move on."""
        raw = self.line(between, **changed)
        self.end = self.end.after(raw)
        return raw

    def sized(self, total: int) -> bytes:
        """Return the next line with a body that makes it `total` bytes long, newline included, without moving on."""
        rest = len(self.line(middle(body=""))) + 1
        return self.line(middle(body="x" * (total - rest)))


def segment(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


# The notation for bytes

_RUN = re.compile(r"(.{1,6}?)\1{47,}", re.DOTALL)
_RAW = re.compile("([\udc80-\udcff]+)")


def notation(data: bytes) -> Any:
    """Return bytes as a JSON value: a string where they are UTF-8, else a list of pieces. See README.md."""
    pieces: list[Any] = []
    for part in _RAW.split(data.decode("utf-8", "surrogateescape")):
        if _RAW.fullmatch(part):
            pieces.append({"hex": part.encode("utf-8", "surrogateescape").hex()})
        elif part:
            pieces.extend(_runs(part))
    if not pieces:
        return ""
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], str) else pieces


def _runs(text: str) -> Iterable[Any]:
    at = 0
    for run in _RUN.finditer(text):
        if run.start() > at:
            yield text[at : run.start()]
        yield {"repeat": run[1], "times": len(run[0]) // len(run[1])}
        at = run.end()
    if at < len(text):
        yield text[at:]


def expand(value: Any) -> bytes:
    """Return the bytes of a notation."""
    if isinstance(value, list):
        return b"".join(map(expand, value))
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"]) if "hex" in value else value["repeat"].encode() * value["times"]
    assert isinstance(value, str)
    return value.encode()
