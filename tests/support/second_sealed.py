"""Closed letters for the second implementation, written from PROTOCOL.md alone; see `second`.

The ciphers that no library at hand has are written out: XSalsa20 and XChaCha20 differ from what there is by one core.
"""

import base64
import hashlib
import hmac
import struct
from collections.abc import Sequence
from typing import Any

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.poly1305 import Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from support import second_forms

CONSTANT = struct.unpack("<4I", b"expand 32-byte k")
CLOSED = ("subject", "body", "refs")


def is_lawful(enc: Any) -> bool:
    """Return whether an `enc` member is lawful, whoever may open it."""
    if not isinstance(enc, dict) or not isinstance(enc.get("alg"), str):
        return False
    if enc["alg"] != "x25519-xchacha20poly1305":
        return True
    if enc.keys() != {"alg", "commit", "boxes", "data"} or not second_forms.matches(enc["commit"], "[0-9a-f]{64}"):
        return False
    boxes, data = enc["boxes"], enc["data"]
    if not isinstance(boxes, dict) or not boxes or not isinstance(data, str):
        return False
    try:
        for key_id, box in boxes.items():
            second_forms.need(second_forms.matches(key_id, "[0-9a-f]{32}"), "SCHEMA")
            second_forms.unb64(box, 80)
        length = len(data) * 3 // 4 - data.count("=")
        second_forms.unb64(data, length)
    except ValueError:
        return False
    return length >= 42


def opened(enc: dict[str, Any], seed: bytes, key_id: str, wire: str, channel: str) -> tuple[str, Any]:
    """Return `opened` and what was closed, or `other-keys`, `refused` or `SCHEMA` and None."""
    if not is_lawful(enc):
        return "SCHEMA", None
    if enc["alg"] != "x25519-xchacha20poly1305":
        return "refused", None
    if key_id not in enc["boxes"]:
        return "other-keys", None
    try:
        k = unboxed(base64.b64decode(enc["boxes"][key_id]), hashlib.sha512(seed).digest()[:32])
        second_forms.need(len(k) == 32, "refused")
        second_forms.need(second_forms.sha(b"wire/v1/content-key" + k) == enc["commit"], "refused")
        data = base64.b64decode(enc["data"])
        bound = f"wire/v1/closed\n{wire}\n{channel}".encode()
        text = ChaCha20Poly1305(hchacha20(k, data[:16])).decrypt(bytes(4) + data[16:24], data[24:], bound)
        second_forms.need(b"\n" not in text, "refused")
        said = second_forms.strict(text, "body")
        second_forms.need(list(said) == [name for name in CLOSED if name in said], "refused")
        second_forms.need(all(second_forms.MEMBERS[name](said[name]) is True for name in said), "refused")
    except (InvalidTag, InvalidSignature, ValueError):
        return "refused", None
    return "opened", said


def unboxed(box: bytes, scalar: bytes) -> bytes:
    """Return what is in a sealed box."""
    private = X25519PrivateKey.from_private_bytes(scalar)
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    shared = private.exchange(X25519PublicKey.from_public_bytes(box[:32]))
    nonce = hashlib.blake2b(box[:32] + public, digest_size=24).digest()
    key = hsalsa20(hsalsa20(shared, bytes(16)), nonce[:16])
    stream = b"".join(salsa20(key, nonce[16:], block) for block in range(2))
    tag, sealed = box[32:48], box[48:]
    if not hmac.compare_digest(Poly1305.generate_tag(stream[:32], sealed), tag):
        raise ValueError("refused")
    return bytes(a ^ b for a, b in zip(sealed, stream[32:], strict=False))


def rounds(words: list[int], quarters: Sequence[tuple[int, ...]], quarter: Any) -> list[int]:
    """Run ten double rounds on sixteen words."""
    for _ in range(10):
        for places in quarters:
            quarter(words, *places)
    return words


def rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & 0xFFFFFFFF


def salsa_quarter(x: list[int], a: int, b: int, c: int, d: int) -> None:
    for to, one, other, bits in ((b, a, d, 7), (c, b, a, 9), (d, c, b, 13), (a, d, c, 18)):
        x[to] ^= rotated((x[one] + x[other]) & 0xFFFFFFFF, bits)


def chacha_quarter(x: list[int], a: int, b: int, c: int, d: int) -> None:
    for to, add, mix, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[to] = (x[to] + x[add]) & 0xFFFFFFFF
        x[mix] = rotated(x[mix] ^ x[to], bits)


SALSA = [(0, 4, 8, 12), (5, 9, 13, 1), (10, 14, 2, 6), (15, 3, 7, 11), (0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9),
         (15, 12, 13, 14)]  # fmt: skip
CHACHA = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13),
          (3, 4, 9, 14)]  # fmt: skip


def salsa_words(key: bytes, rest: bytes) -> list[int]:
    k, n, c = struct.unpack("<8I", key), struct.unpack("<4I", rest), CONSTANT
    return [c[0], *k[:4], c[1], *n, c[2], *k[4:], c[3]]


def salsa20(key: bytes, nonce: bytes, block: int) -> bytes:
    before = salsa_words(key, nonce + struct.pack("<Q", block))
    after = rounds(list(before), SALSA, salsa_quarter)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(before, after, strict=True)))


def hsalsa20(key: bytes, nonce: bytes) -> bytes:
    x = rounds(salsa_words(key, nonce), SALSA, salsa_quarter)
    return struct.pack("<8I", *(x[at] for at in (0, 5, 10, 15, 6, 7, 8, 9)))


def hchacha20(key: bytes, nonce: bytes) -> bytes:
    words = [*CONSTANT, *struct.unpack("<8I", key), *struct.unpack("<4I", nonce)]
    x = rounds(words, CHACHA, chacha_quarter)
    return struct.pack("<8I", *x[:4], *x[12:])
