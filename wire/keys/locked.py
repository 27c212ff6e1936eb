"""A private key under a passphrase: Argon2id makes a key of it, SecretBox closes the seed (PROTOCOL.md, "Keys").

    members = close(seed, b"a passphrase")          what a key file holds in place of the seed
    sealed = parse(members)                         None where it is not of the form, or would cost too much to try
    seed = sealed.open(b"a passphrase")             None for another one

A `LockedSigner` is such a key: everybody may know whose it is, and it is opened when it first signs. Opened keys are
kept for as long as the process lives, and so are the passphrases that opened them: one for several keys is asked for
once. Nothing here is written anywhere or shown by any representation.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import nacl.bindings
import nacl.exceptions

from wire.errors import IdentityError
from wire.keys import passphrases
from wire.protocol.encoding import SEED_BYTES, Signer, b64, key_id, unb64

MEMBERS = ("kdf", "salt", "ops", "memory", "sealed")
KDF = "argon2id"
OPS = 3
MEMORY = 64 << 20
"""Passes and bytes of a new file: a tenth of a second or two, and 64 MiB, for each guess."""
OPS_MOST = 10
MEMORY_LEAST, MEMORY_MOST = 8 << 20, 256 << 20
"""What a file may ask for: what it says is spent before it is known who wrote it."""
_SALT = nacl.bindings.crypto_pwhash_SALTBYTES
_NONCE = nacl.bindings.crypto_secretbox_NONCEBYTES
_BOX = SEED_BYTES + nacl.bindings.crypto_secretbox_MACBYTES


class Sealed(NamedTuple):
    """A seed that a passphrase opens."""

    salt: bytes
    ops: int
    memory: int
    nonce: bytes
    box: bytes

    def open(self, passphrase: bytes) -> bytes | None:
        """Return the seed, or None where it is another passphrase that opens it."""
        try:
            return nacl.bindings.crypto_secretbox_open(
                self.box, self.nonce, _key(passphrase, self.salt, self.ops, self.memory)
            )
        except nacl.exceptions.CryptoError:
            return None

    def __repr__(self) -> str:
        return f"Sealed(ops={self.ops}, memory={self.memory})"


def close(seed: bytes, passphrase: bytes, *, ops: int = OPS, memory: int = MEMORY) -> dict[str, Any]:
    """Return the members of a key file that hold a seed under a passphrase."""
    salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
    box = nacl.bindings.crypto_secretbox(seed, nonce, _key(passphrase, salt, ops, memory))
    return dict(zip(MEMBERS, (KDF, b64(salt), ops, memory, b64(nonce + box)), strict=True))


def parse(members: Mapping[str, Any]) -> Sealed | None:
    """Return what the members hold, None where they are not of the form or ask for more than is ever spent."""
    kdf, salt, ops, memory, box = (members.get(name) for name in MEMBERS)
    if kdf != KDF or type(ops) is not int or type(memory) is not int:
        return None
    if not 1 <= ops <= OPS_MOST or not MEMORY_LEAST <= memory <= MEMORY_MOST:
        return None
    if not isinstance(salt, str) or not isinstance(box, str):
        return None
    try:
        data = unb64(box, _NONCE + _BOX)
        return Sealed(unb64(salt, _SALT), ops, memory, data[:_NONCE], data[_NONCE:])
    except ValueError:
        return None


class LockedSigner(Signer):
    """A key whose public half is known and whose private one opens by a passphrase, when it is first needed.

    Attributes:
        path: the key's file, for messages.
    """

    __slots__ = ("_environ", "_kind", "_name", "_sealed", "path")

    locked = True

    def __init__(
        self, public: bytes, sealed: Sealed, *, kind: str, name: str, path: str, environ: Mapping[str, str]
    ) -> None:
        self.public = public
        self.key_id = key_id(public)
        self.path = path
        self._sealed = sealed
        self._kind, self._name = kind, name
        self._environ = environ

    @property
    def _secret(self) -> bytes:  # type: ignore[override]
        return _OPENED[self._opened(ask=False)][0]._secret

    def ready(self, *, ask: bool = False) -> None:
        """Open the key; at a terminal, and where `ask` is set, by what a person types.

        Raises:
            IdentityError: no passphrase is at hand (`key-locked`), or only others (`passphrase-wrong`).
        """
        self._opened(ask=ask)

    def passphrase(self) -> bytes:
        """Return what opened the key; raises as `ready`."""
        return _OPENED[self._opened(ask=False)][1]

    def open_with(self, passphrase: bytes) -> bool:
        """Return whether a passphrase opens the key, and keep it open then."""
        pair = (self._sealed, passphrase)
        if pair in _FAILED:
            return False
        seed = self._sealed.open(passphrase)
        signer = Signer(seed) if seed is not None else None
        if signer is None or signer.public != self.public:
            _FAILED.add(pair)
            return False
        _OPENED[self._sealed] = (signer, passphrase)
        return True

    def _opened(self, *, ask: bool) -> Sealed:
        if self._sealed in _OPENED:
            return self._sealed
        used = {passphrase: None for _, passphrase in _OPENED.values()}
        if any(self.open_with(passphrase) for passphrase in used):
            return self._sealed
        found = passphrases.at_hand(self._kind, self._name, self._environ)
        if any(one.passphrase and self.open_with(one.passphrase) for one in found):
            return self._sealed
        if ask:
            typed = passphrases.typed(f"passphrase of the {self._kind} key {self._name}: ", self.open_with)
            if typed:
                return self._sealed
            if typed is not None:
                found.append(passphrases.Source("the terminal", b"-", ""))
        self._refuse(found)

    def _refuse(self, found: "list[passphrases.Source]") -> NoReturn:
        tried = [one.what for one in found if one.passphrase]
        troubles = "".join(f"; {one.trouble}" for one in found if one.trouble)
        whose = f"the {self._kind} key of {self._name!r} ({self.path}) has a passphrase"
        details = {"path": self.path, "key": self.key_id}
        if tried:
            raise IdentityError(
                f"{whose}, and another one came from {', '.join(tried)}{troubles}; nothing was signed",
                reason="passphrase-wrong",
                next_step=passphrases.NEXT_STEP,
                details=details,
            )
        raise IdentityError(
            f"{whose}, and none is at hand: not in a credential of systemd, not in WIRE_PASSPHRASE_FILE, and nobody "
            f"is here to be asked{troubles}; nothing was signed",
            reason="key-locked",
            next_step=passphrases.NEXT_STEP,
            details=details,
        )


_OPENED: dict[Sealed, tuple[Signer, bytes]] = {}
_FAILED: set[tuple[Sealed, bytes]] = set()
"""What was tried and is another key's: a daemon meets the same file at every beat, and each try costs its time."""


def _key(passphrase: bytes, salt: bytes, ops: int, memory: int) -> bytes:
    return nacl.bindings.crypto_pwhash_alg(
        nacl.bindings.crypto_secretbox_KEYBYTES,
        passphrase,
        salt,
        ops,
        memory,
        nacl.bindings.crypto_pwhash_ALG_ARGON2ID13,
    )
