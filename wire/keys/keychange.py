"""The next key of an agent in place of the one that this machine has, and the keys that it had before.

    agent-mac.key                   the key that new lines are signed with
    agent-mac.next.key              the one that is about to take its place, for a moment
    agent-mac.<key id>.key          keys that this machine signed with before; they stay, and sign nothing new

    new = change(path, name="mac", wire=wire)       the old key is among `former(path, …)` now

A kill at any point leaves a whole key at the first of these, and doing it again goes on.
"""

import os
import re
from collections.abc import Mapping

from wire.errors import IdentityError
from wire.keys import keyfile
from wire.keys.locked import LockedSigner
from wire.protocol.encoding import Signer

_FORMER = re.compile(r"\.([0-9a-f]{32})\.key", re.ASCII)


def change(
    path: str, *, name: str, wire: str, allow_loose: bool = False, environ: Mapping[str, str] | None = None
) -> Signer:
    """Put a fresh key in the place of an agent's key, which is kept beside it; return the fresh one.

    The passphrase of the old one is that of the fresh one, too.

    Args:
        path: of the key that counts now.
        environ: where that passphrase is looked for, as of `keyfile.read`.

    Raises:
        IdentityError, DiskFull: as `keyfile`; the old key is still in its place.
    """
    stem = path.removesuffix(".key")
    old = _load(path, name, wire, allow_loose, environ)
    waiting = f"{stem}.next.key"
    passphrase = old.passphrase() if isinstance(old, LockedSigner) else None
    if not os.path.lexists(waiting):
        keyfile.create(waiting, name=name, kind="agent", wire=wire, passphrase=passphrase, allow_loose=allow_loose)
    new = _load(waiting, name, wire, allow_loose, environ)
    if not new.locked and passphrase is not None:
        # One that a crash had left, from before the key had a passphrase.
        keyfile.relock(waiting, None, passphrase, allow_loose=allow_loose)
        new = _load(waiting, name, wire, allow_loose, environ)
    keyfile.keep_copy(path, f"{stem}.{old.key_id}.key")
    keyfile.move(waiting, path)
    return new


def former(
    path: str, *, name: str, wire: str, allow_loose: bool = False, environ: Mapping[str, str] | None = None
) -> dict[str, Signer]:
    """Return the keys that this machine signed with before, by their ids; one that cannot be read is left out.

    Args:
        path: of the key that counts now.
    """
    found = {}
    for one, key_id in _former(path):
        try:
            signer = _load(one, name, wire, allow_loose, environ)
        except IdentityError:
            continue
        if signer.key_id == key_id:
            found[signer.key_id] = signer
    return found


def beside(path: str) -> list[str]:
    """Return the files of the other keys of an agent: those it had before, and the next one, where there are any."""
    waiting = f"{path.removesuffix('.key')}.next.key"
    return [*(one for one, _ in _former(path)), *([waiting] if os.path.lexists(waiting) else [])]


def _former(path: str) -> list[tuple[str, str]]:
    """Return the files of the keys before the one at `path`, and their ids by their names."""
    folder, base = os.path.split(path)
    stem = base.removesuffix(".key")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    matches = [(one, _FORMER.fullmatch(one[len(stem) :])) for one in names if one.startswith(stem)]
    return [(os.path.join(folder, one), match[1]) for one, match in matches if match is not None]


def _load(path: str, name: str, wire: str, allow_loose: bool, environ: Mapping[str, str] | None) -> Signer:
    return keyfile.load_for(path, name=name, kind="agent", wire=wire, allow_loose=allow_loose, environ=environ)
