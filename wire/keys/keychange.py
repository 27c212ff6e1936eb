"""The next key of an agent in place of the one that this machine has, and the keys that it had before.

    agent-mac.key                   the key that new lines are signed with
    agent-mac.next.key              the one that is about to take its place, for a moment
    agent-mac.<key id>.key          keys that this machine signed with before; they stay, and sign nothing new

    new = change(path, name="mac", wire=wire)       the old key is among `former(path, …)` now

A kill at any point leaves a whole key at the first of these, and doing it again goes on.
"""

import os
import re

from wire.errors import IdentityError
from wire.keys import keyfile
from wire.protocol.encoding import Signer

_FORMER = re.compile(r"\.([0-9a-f]{32})\.key", re.ASCII)


def change(path: str, *, name: str, wire: str, allow_loose: bool = False) -> Signer:
    """Put a fresh key in the place of an agent's key, which is kept beside it; return the fresh one.

    Args:
        path: of the key that counts now.

    Raises:
        IdentityError, DiskFull: as `keyfile`; the old key is still in its place.
    """
    stem = path.removesuffix(".key")
    old = keyfile.load_for(path, name=name, kind="agent", wire=wire, allow_loose=allow_loose)
    waiting = f"{stem}.next.key"
    if os.path.lexists(waiting):
        new = keyfile.load_for(waiting, name=name, kind="agent", wire=wire, allow_loose=allow_loose)
    else:
        new = keyfile.create(waiting, name=name, kind="agent", wire=wire, allow_loose=allow_loose)
    keyfile.keep_copy(path, f"{stem}.{old.key_id}.key")
    keyfile.move(waiting, path)
    return new


def former(path: str, *, name: str, wire: str, allow_loose: bool = False) -> dict[str, Signer]:
    """Return the keys that this machine signed with before, by their ids; one that cannot be read is left out.

    Args:
        path: of the key that counts now.
    """
    folder, base = os.path.split(path)
    stem = base.removesuffix(".key")
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    found = {}
    for one in sorted(names):
        match = _FORMER.fullmatch(one[len(stem) :]) if one.startswith(stem) else None
        if match is None:
            continue
        try:
            signer = keyfile.load_for(
                os.path.join(folder, one), name=name, kind="agent", wire=wire, allow_loose=allow_loose
            )
        except IdentityError:
            continue
        if signer.key_id == match[1]:
            found[signer.key_id] = signer
    return found
