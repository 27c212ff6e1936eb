"""Closed letters: a subject, body and refs that only the holders of some keys can read (PROTOCOL.md, section "Closed
letters").

A fresh content key encrypts what is said; it is sealed once for each key that may open it, and a hash in the line
commits to it, so that nobody can be given another text than the others. Everything is bound to the wire and to the
channel. The line that carries it is signed like any other: who does not open it verifies it all the same.

    enc = close({"body": "hello"}, {key_id(public): public}, wire=wire, channel="mac/spark")
    letter = opened(enc, signer, wire=wire, channel="mac/spark")
    letter.members                              {"body": "hello"}

What it does not do: say who may read, or trust anybody: the keys are the caller's.
"""

import binascii
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import nacl.bindings
import nacl.exceptions

from wire.protocol import strictjson
from wire.protocol.encoding import Signer, b64, seal_for, sha256_hex, unb64
from wire.protocol.messages import OPTIONAL, SEALED, SEALED_BY

KEY_BYTES = 32
NONCE_BYTES = 24
TAG_BYTES = 16
BOX_BYTES = KEY_BYTES + 48
"""A content key in a sealed box: an ephemeral key of 32 bytes and a tag of 16 come with it."""
KEY_COST = 146
"""Bytes of a line that each key takes that may open it."""

_HEX32 = re.compile(r"[0-9a-f]{32}", re.ASCII)
_HEX64 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FORM = {"alg", "commit", "boxes", "data"}


class SealedError(ValueError):
    """A closed letter does not open; `str()` says why, in words that may be shown."""


class NotForUs(SealedError):
    """It is closed for other keys than the one at hand."""


class Letter(NamedTuple):
    """What a closed letter says: its members, and the very text that its author closed."""

    members: dict[str, Any]
    text: bytes


def close(said: Mapping[str, Any], keys: Mapping[str, bytes], *, wire: str, channel: str) -> dict[str, Any]:
    """Return the `enc` member that closes a subject, body and refs for some keys.

    Args:
        said: members of `messages.SEALED`; those that are None are left out. Lawful ones: `line.seal` cannot see them.
        keys: the 32-byte Ed25519 keys that may open it, by their ids.

    Raises:
        StrictError: what is said cannot be written as strict JSON.
    """
    members = {name: said[name] for name in SEALED if said.get(name) is not None}
    text = strictjson.dumps_members(members)
    strictjson.loads(text)
    secret, nonce = os.urandom(KEY_BYTES), os.urandom(NONCE_BYTES)
    data = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(text, _bound(wire, channel), nonce, secret)
    return {
        "alg": SEALED_BY,
        "commit": commitment(secret),
        "boxes": {key_id: b64(seal_for(public, secret)) for key_id, public in sorted(keys.items())},
        "data": b64(nonce + data),
    }


def opened(enc: Mapping[str, Any], signer: Signer, *, wire: str, channel: str) -> Letter:
    """Return what a closed letter says to the holder of a key.

    Args:
        enc: the `enc` member of a line whose content is lawful.
        wire, channel: where the line stands.

    Raises:
        NotForUs: no box is for this key.
        SealedError: the letter cannot be opened, or what is in it is not lawful.
    """
    if not is_known(enc):
        raise SealedError("it is closed in a way that this version does not know")
    box = enc["boxes"].get(signer.key_id)
    if box is None:
        raise NotForUs("it is closed for other keys")
    secret = signer.unseal(unb64(box, BOX_BYTES))
    if secret is None:
        raise SealedError("the box for this key does not open")
    if commitment(secret) != enc["commit"]:
        # Without this an author could show each recipient another text in one letter.
        raise SealedError("the box for this key holds another content key than the one that the letter commits to")
    sealed = binascii.a2b_base64(enc["data"])
    nonce, data = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
    try:
        text = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(data, _bound(wire, channel), nonce, secret)
    except nacl.exceptions.CryptoError:
        raise SealedError("its content was damaged, or was closed for another channel or wire") from None
    return Letter(_lawful(text), text)


def is_known(enc: Mapping[str, Any]) -> bool:
    """Return whether a lawful `enc` member is closed in the way of this version."""
    return enc.get("alg") == SEALED_BY


def key_ids(enc: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the keys that may open a letter, none where that is not known."""
    return tuple(enc["boxes"]) if is_known(enc) else ()


def commitment(secret: bytes) -> str:
    """Return what a letter says of its content key: 64 hex digits."""
    return sha256_hex(b"wire/v1/content-key" + secret)


def is_form(enc: Mapping[str, Any]) -> bool:
    """Return whether an `enc` member has the form of its `alg`; nothing is opened for that."""
    commit, boxes, data = enc.get("commit"), enc.get("boxes"), enc.get("data")
    if enc.keys() != _FORM or not isinstance(commit, str) or _HEX64.fullmatch(commit) is None:
        return False
    if not isinstance(boxes, dict) or not boxes or not isinstance(data, str):
        return False
    try:
        for key_id, box in boxes.items():
            if _HEX32.fullmatch(key_id) is None or not isinstance(box, str):
                return False
            unb64(box, BOX_BYTES)
        # The least that can be said is `{}`.
        least = NONCE_BYTES + TAG_BYTES + 2
        return len(unb64(data, len(data) // 4 * 3 - data[-2:].count("="))) >= least
    except ValueError:
        return False


def _bound(wire: str, channel: str) -> bytes:
    return f"wire/v1/closed\n{wire}\n{channel}".encode("ascii")


def _lawful(text: bytes) -> dict[str, Any]:
    if b"\n" in text:
        raise SealedError("what is in it has more than one line")
    try:
        members = strictjson.loads(text)
    except strictjson.StrictError as error:
        raise SealedError(f"what is in it is no strict JSON: {error}") from error
    if [name for name in SEALED if name in members] != list(members):
        raise SealedError("what is in it is not a subject, a body and refs, in this order")
    for name, value in members.items():
        check, expected = OPTIONAL[name]
        if not check(value):
            raise SealedError(f"what is in it is not lawful: {name!r} is not {expected}")
    return members
