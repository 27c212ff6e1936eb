"""The invitations that this machine gave out, and who took them: one file each, for the owner alone.

What is kept is the code itself, since a person who lost it may ask for it again while it is good, and the key id that
took it, so that a second one is noticed.
"""

import os
from typing import NamedTuple

from wire.protocol.names import check_name
from wire.protocol.strictjson import StrictError, dumps, loads
from wire.store.files import atomic_write, private_folder, read_bytes


class Given(NamedTuple):
    """One invitation: its code, and the id of the key that was enrolled by it, empty before."""

    code: str
    taken_by: str = ""


def load(directory: str, name: str) -> Given | None:
    """Return the invitation that was given for a name, or None; a damaged file counts as none."""
    data = read_bytes(_path(directory, name))
    try:
        found = loads(data, floats_below=None) if data else {}
    except StrictError:
        return None
    code, taken = found.get("code"), found.get("taken_by")
    return Given(code, taken) if isinstance(code, str) and isinstance(taken, str) else None


def save(directory: str, name: str, given: Given) -> None:
    """Keep an invitation, in the place of an earlier one for the name; raises StoreError, DiskFull."""
    private_folder(directory)
    atomic_write(_path(directory, name), dumps({"v": 1, "code": given.code, "taken_by": given.taken_by}) + b"\n")


def names(directory: str) -> list[str]:
    """Return the names for which an invitation was given."""
    try:
        return sorted(name.removesuffix(".json") for name in os.listdir(directory) if name.endswith(".json"))
    except FileNotFoundError:
        return []


def _path(directory: str, name: str) -> str:
    return os.path.join(directory, f"{check_name(name, 'agent')}.json")
