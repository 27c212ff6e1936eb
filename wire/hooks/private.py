"""Private keys in bytes that are about to be shared (pure).

Found are wire's own key files, under a passphrase or not, as they are, reformatted or quoted in something else, and the
usual armoured forms: PEM (PKCS#1, PKCS#8, SEC1, encrypted or not), OpenSSH, OpenPGP and PuTTY. Words about keys are
none: behind the first line there must be a body.

    find(b"-----BEGIN OPENSSH PRIVATE KEY-----\\n…")     # [Found(offset=0, what="an OpenSSH private key")]
"""

import re
from typing import NamedTuple

from wire.protocol.encoding import SEED_BYTES, Signer, b64, unb64


class Found(NamedTuple):
    """Where a private key begins, and what it is."""

    offset: int
    what: str


_ARMOUR = re.compile(rb"-----BEGIN (?P<kind>(?:[A-Z0-9]+ ){0,3})PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(rb"[A-Za-z0-9+/=]{32}")
_BODY_WITHIN = 400
"""Bytes behind the first line, headers such as Proc-Type among them, in which the body must begin."""
_PUTTY = re.compile(rb"PuTTY-User-Key-File-[0-9]: ")
_PUTTY_BODY = b"Private-Lines: "
_NEAR = 4096
"""Bytes in which the parts of one key file stand together."""
_SECRET = re.compile(rb'\\*"secret\\*"\s*:\s*\\*"(?P<seed>[A-Za-z0-9+/]{43}=)\\*"')
_LOCKED = re.compile(rb'\\*"sealed\\*"\s*:\s*\\*"[A-Za-z0-9+/]{96}\\*"')
_KDF = b"argon2id"
_KINDS = {b"OPENSSH ": "an OpenSSH", b"PGP ": "an OpenPGP"}


def find(data: bytes) -> list[Found]:
    """Return every private key in the bytes, in their order."""
    found = [
        Found(match.start(), f"{_KINDS.get(match['kind'], 'a PEM')} private key")
        for match in _ARMOUR.finditer(data)
        if _BODY.search(_behind(data, match.end()))
    ]
    found += [
        Found(match.start(), "a PuTTY private key")
        for match in _PUTTY.finditer(data)
        if data.find(_PUTTY_BODY, match.end(), match.end() + _NEAR) >= 0
    ]
    publics: dict[bytes, bytes] = {}
    found += [
        Found(match.start(), "a private key of wire") for match in _SECRET.finditer(data) if _ours(match, data, publics)
    ]
    found += [
        Found(match.start(), "a private key of wire under a passphrase")
        for match in _LOCKED.finditer(data)
        if data.find(_KDF, max(0, match.start() - _NEAR), match.end() + _NEAR) >= 0
    ]
    return sorted(found)


def _behind(data: bytes, offset: int) -> bytes:
    """Return what may be an armour's headers and body: in a message it ends with the string that holds it."""
    return data[offset : offset + _BODY_WITHIN].partition(b'"')[0]


def _ours(match: re.Match[bytes], data: bytes, publics: dict[bytes, bytes]) -> bool:
    """A seed is one of ours when its own public key stands with it, as in every key file."""
    seed = match["seed"]
    if seed not in publics:
        try:
            publics[seed] = b64(Signer(unb64(seed, SEED_BYTES)).public).encode("ascii")
        except ValueError:
            return False
    return data.find(publics[seed], max(0, match.start() - _NEAR), match.end() + _NEAR) >= 0
