"""How bytes are signed, hashed and written down (PROTOCOL.md, sections "Signatures" and "Keys").

Signatures are Ed25519 over the DSSE v1 pre-authentication encoding of a payload type and the exact payload bytes, so
that a signature made for one kind of object can never pass for another. Base64 is accepted only in the one spelling
that it re-encodes to: the last character of an encoded signature has unused bits, and a channel must not be split by
people who spell them differently.

    signer = Signer(new_seed())
    signature = signer.sign(LINE_TYPE, b"{}")
    assert verify(signer.public, signature, LINE_TYPE, b"{}")
"""

import binascii
import os
from collections.abc import Callable

import nacl.bindings
import nacl.exceptions

from wire.errors import UsageError

LINE_TYPE = b"application/vnd.git-wire.line+json;v=1"
TRUST_TYPE = b"application/vnd.git-wire.trust+json;v=1"
PROOF_TYPE = b"application/vnd.git-wire.proof+json;v=1"
PRESENCE_TYPE = b"application/vnd.git-wire.presence+json;v=1"
ROTATION_TYPE = b"application/vnd.git-wire.rotation+json;v=1"
PROPOSAL_TYPE = b"application/vnd.git-wire.proposal+json;v=1"

SEED_BYTES = 32
PUBLIC_BYTES = 32
SIGNATURE_BYTES = 64


def pae(payload_type: bytes, payload: bytes) -> bytes:
    """Return the DSSE v1 pre-authentication encoding of `payload`."""
    return _encoded(b"", payload_type, payload)


def b64(data: bytes) -> str:
    """Return standard base64 with padding, without a newline."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def unb64(text: str | bytes, length: int) -> bytes:
    """Decode base64 that is the canonical spelling of exactly `length` bytes.

    Raises:
        ValueError: other characters, another length, or another spelling of the same bytes.
    """
    encoded = text.encode("ascii", "strict") if isinstance(text, str) else text
    data = binascii.a2b_base64(encoded, strict_mode=True)
    if len(data) != length:
        raise ValueError(f"{len(data)} bytes where {length} are expected")
    if binascii.b2a_base64(data, newline=False) != encoded:
        raise ValueError("not the canonical spelling of these bytes")
    return data


def sha256(data: bytes) -> bytes:
    """Return SHA-256, 32 bytes."""
    return _digest(data)


def sha256_hex(data: bytes) -> str:
    """Return SHA-256 as 64 lower-case hex digits."""
    return _digest(data).hex()


def key_id(public: bytes) -> str:
    """Return the 32 hex digits that look a public key up; never enough to recognise a key by."""
    return sha256_hex(b"wire/v1/key" + public)[:32]


def fingerprint(public: bytes) -> str:
    """Return the `SHA256:<43 base64>` form that people compare."""
    return _unpadded(sha256(public))


def format_checkpoint(version: int, digest: bytes) -> str:
    """Return `<version>:SHA256:<43 base64>` for the 32-byte hash of a trust version."""
    return f"{version}:{_unpadded(digest)}"


def parse_checkpoint(text: str) -> tuple[int, bytes]:
    """Return (version, 32-byte hash) of a checkpoint.

    Raises:
        ValueError: it is not of the form `<version>:SHA256:<43 base64>`.
    """
    number, _, rest = text.partition(":SHA256:")
    canonical = number.isascii() and number.isdigit() and not number.startswith("0") and len(number) <= 9
    if not canonical or len(rest) != 43:
        raise ValueError("a checkpoint has the form 3:SHA256:<43 base64 characters>")
    return int(number), unb64(rest + "=", 32)


def check_checkpoint(text: str) -> tuple[int, bytes]:
    """Return what `parse_checkpoint` does, for what a person gave.

    Raises:
        UsageError: reason `bad-checkpoint`.
    """
    try:
        return parse_checkpoint(text)
    except ValueError as error:
        raise UsageError(f"{text[:80]!r} is no checkpoint: {error}", reason="bad-checkpoint") from error


def seconds_of(ts: str) -> float:
    """Return a line's time as seconds of the epoch, by arithmetic on its text; 0 for a date that no calendar has."""
    if ts[4:17:3] != "--T::":
        return 0.0
    from datetime import datetime  # sending needs no times of others

    try:
        return datetime.fromisoformat(ts[:19] + "+00:00").timestamp() + float(ts[19:23])
    except ValueError:
        return 0.0


def valid_public(public: bytes) -> bool:
    """Return whether these bytes are a usable Ed25519 key: right length, a point of the prime-order group."""
    return len(public) == PUBLIC_BYTES and nacl.bindings.crypto_core_ed25519_is_valid_point(public)


def new_seed() -> bytes:
    """Return 32 fresh random bytes to make a key from."""
    return os.urandom(SEED_BYTES)


class Signer:
    """One Ed25519 secret key in memory; its representation never shows the secret."""

    __slots__ = ("_secret", "key_id", "public")

    locked = False
    """Whether a passphrase stands before the secret."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
        self.public, self._secret = nacl.bindings.crypto_sign_seed_keypair(seed)
        self.key_id = key_id(self.public)

    def ready(self, *, ask: bool = False) -> None:
        """Raise IdentityError where the key cannot sign; `ask` lets a person at a terminal help."""

    def sign(self, payload_type: bytes, payload: bytes) -> bytes:
        """Return the 64-byte signature over the pre-authentication encoding of `payload`."""
        return nacl.bindings.crypto_sign(pae(payload_type, payload), self._secret)[:SIGNATURE_BYTES]

    def unseal(self, box: bytes) -> bytes | None:
        """Return what `seal_for` sealed for this key, None where it is no such box."""
        public = nacl.bindings.crypto_sign_ed25519_pk_to_curve25519(self.public)
        secret = nacl.bindings.crypto_sign_ed25519_sk_to_curve25519(self._secret)
        try:
            return nacl.bindings.crypto_box_seal_open(box, public, secret)
        except nacl.exceptions.CryptoError:
            return None

    def __repr__(self) -> str:
        return f"Signer(key_id={self.key_id!r})"


def seal_for(public: bytes, data: bytes) -> bytes:
    """Return a box that only the holder of an Ed25519 key can open: X25519 with a key of its own (libsodium's sealed
    box), 48 bytes longer than `data`."""
    return nacl.bindings.crypto_box_seal(data, nacl.bindings.crypto_sign_ed25519_pk_to_curve25519(public))


def verify(public: bytes, signature: bytes, payload_type: bytes, payload: bytes) -> bool:
    """Return whether `signature` is `public`'s over `payload`; lengths are checked before any cryptography."""
    if len(public) != PUBLIC_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        nacl.bindings.crypto_sign_open(_encoded(signature, payload_type, payload), public)
    except nacl.exceptions.BadSignatureError:
        return False
    return True


def _encoded(before: bytes, payload_type: bytes, payload: bytes) -> bytes:
    """Return the pre-authentication encoding behind other bytes, put together in one go."""
    return b"%sDSSEv1 %d %s %d %s" % (before, len(payload_type), payload_type, len(payload), payload)


def _few(data: bytes) -> bytes:
    """Hash with what is loaded already: who sends one line hashes three times, and OpenSSL takes longer to load."""
    global _digest, _few_bytes
    _few_bytes -= len(data)
    if _few_bytes < 0:
        _digest = _many()
        return _digest(data)
    return nacl.bindings.crypto_hash_sha256(data)


def _many() -> Callable[[bytes], bytes]:
    """Return OpenSSL's way to hash, which is several times as fast."""
    from hashlib import sha256 as new

    return lambda data: new(data).digest()


_digest: Callable[[bytes], bytes] = _few
_few_bytes = 65_536


def _unpadded(digest: bytes) -> str:
    return "SHA256:" + b64(digest).rstrip("=")
