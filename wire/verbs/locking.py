"""Giving a key of this machine a passphrase, another one, or none.

    changed = change(here, "agent", "mac", new=b"…")        the keys that it had before go with it

All files are opened before the first is written, and each is replaced in one step: after a kill in between some open by
the old passphrase and some by the new one, and doing it again takes both.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wire.errors import IdentityError
from wire.keys import keychange, keyfile
from wire.keys.locked import LockedSigner
from wire.protocol.encoding import Signer, fingerprint
from wire.store.files import locked
from wire.verbs.here import Here

_LOCK_SECONDS = 60.0


class Changed(NamedTuple):
    """What became of a key's passphrase.

    Attributes:
        had, has: whether the key had one before, and has one now.
        files: the key files that were written anew.
    """

    kind: str
    name: str
    fingerprint: str
    had: bool
    has: bool
    files: tuple[str, ...]


def change(here: Here, kind: str, name: str, *, new: bytes | None, current: bytes | None = None) -> Changed:
    """Put a key, and those that it followed, under a passphrase.

    Args:
        kind: `agent` or `root`.
        new: the passphrase from now on, None for none.
        current: the one that opens it now; where None it is looked for, and a person at a terminal asked.

    Raises:
        IdentityError: the key is not here or cannot be used, or opens by another passphrase (`key-locked`,
            `passphrase-wrong`); nothing was written.
        DiskFull, Busy: as they say.
    """
    pin = here.pin()
    path = keyfile.key_path(here.settings.keys_dir, wire=pin.wire, kind=kind, name=name)
    _open_all(here, path, pin.wire, kind, name, current)  # a person is asked before anybody has to wait
    with locked(here.places.lock("keys"), what="the key files of this wire", timeout=_LOCK_SECONDS):
        opened = _open_all(here, path, pin.wire, kind, name, current)
        written = []
        # The key that signs comes last: while it is as it was, nothing was changed that anybody would notice.
        for one, (_, old) in reversed(opened.items()):
            if old is not None or new is not None:
                keyfile.relock(one, old, new, allow_loose=here.settings.allow_loose_keys)
                written.append(one)
    signer, old = opened[path]
    return Changed(kind, name, fingerprint(signer.public), old is not None, new is not None, tuple(written))


def is_locked(here: Here, kind: str, name: str, *, opened: bool = False) -> bool:
    """Return whether a key of this machine has a passphrase.

    Args:
        opened: open it as well, asking a person at a terminal if need be.

    Raises:
        IdentityError: there is no such key, or it was to be opened and cannot be.
    """
    pin = here.pin()
    path = keyfile.key_path(here.settings.keys_dir, wire=pin.wire, kind=kind, name=name)
    signer = _load(here, path, pin.wire, kind, name)
    if opened:
        signer.ready(ask=True)
    return signer.locked


def _open_all(
    here: Here, path: str, wire: str, kind: str, name: str, current: bytes | None
) -> dict[str, tuple[Signer, bytes | None]]:
    """Return the keys by their files, the one that signs first, each with the passphrase that opens it."""
    found: dict[str, tuple[Signer, bytes | None]] = {}
    for one in _files(path, kind):
        signer = _load(here, one, wire, kind, name)
        old = None
        if isinstance(signer, LockedSigner):
            if current is None or not signer.open_with(current):
                if current is not None and one == path:
                    raise IdentityError(
                        f"the {kind} key of {name!r} ({one}) opens by another passphrase; nothing was changed",
                        reason="passphrase-wrong",
                        details={"path": one},
                    )
                signer.ready(ask=current is None)
            old = signer.passphrase()
        found[one] = (signer, old)
    return found


def _files(path: str, kind: str) -> Iterator[str]:
    yield path
    if kind == keyfile.AGENT:
        yield from keychange.beside(path)


def _load(here: Here, path: str, wire: str, kind: str, name: str) -> Signer:
    environ = here.settings.environ
    return keyfile.load_for(
        path, name=name, kind=kind, wire=wire, allow_loose=here.settings.allow_loose_keys, environ=environ
    )
