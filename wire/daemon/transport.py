"""What kind of remote a wire has, what that asks of the cadence, and a glance at one that lies on this machine.

    transport = of("/srv/hub.git")
    transport.minimum                           seconds between two looks
    glance("/srv/hub.git", "main")              the tip's id, read from the files, or None

A glance is a hint: it says whether a look is worth while, and nothing of anybody is ever accepted because of it. That
our own push arrived is told by git; what it shows then is that nobody was faster. Where it cannot
tell (another form of storage, somebody else's rights) the ordinary looks go on.
"""

import itertools
import os
import re
import stat
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from wire.gitio import REPLACEABLE
from wire.protocol.names import valid_name

_OID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_PACKED_MAX = 4 << 20
_PRESENCES_MAX = 256
_CROWD_BYTES = 1 << 17


class Transport(NamedTuple):
    """How a remote is reached.

    Attributes:
        kind: `local`, `ssh`, `http`, or `other`.
        minimum: seconds between two looks, below which no configuration goes.
        budgeted: whether requests cost somebody else anything.
        path: the repository of a local remote.
    """

    kind: str
    minimum: float
    budgeted: bool
    path: str | None = None


def of(remote: str) -> Transport:
    """Return how a remote is reached, by the form of its URL."""
    scheme, separator, _ = remote.partition("://")
    if not separator:
        # `host:path` is ssh's, unless a slash stands before the colon.
        head, colon, _ = remote.partition(":")
        if colon and "/" not in head:
            return Transport("ssh", 0.1, True)
        return Transport("local", 0.0, False, os.path.abspath(remote))
    scheme = scheme.lower()
    if scheme == "file":
        return Transport("local", 0.0, False, os.path.abspath(unquote(urlsplit(remote).path)))
    if scheme in ("ssh", "git+ssh", "ssh+git"):
        return Transport("ssh", 0.1, True)
    if scheme in ("http", "https"):
        return Transport("http", 1.0, True)
    return Transport("other", 1.0, True)


def folders(path: str, branch: str) -> dict[str, frozenset[str] | None]:
    """Return the folders of a local remote in which a push shows, each with the names that matter there."""
    git_dir = _git_dir(path)
    ref = os.path.join(git_dir, "refs", "heads", branch)
    return {os.path.dirname(ref): frozenset({os.path.basename(ref)}), git_dir: frozenset({"packed-refs"})}


def glance(path: str, branch: str) -> str | None:
    """Return the id of a local remote's branch, or None where its files do not tell."""
    git_dir = _git_dir(path)
    name = f"refs/heads/{branch}"
    try:
        held = _read(os.path.join(git_dir, name), 80).strip()
        return held.decode("ascii") if _OID.match(held) else None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        pass
    except OSError:
        return None
    try:
        packed = _read(os.path.join(git_dir, "packed-refs"), _PACKED_MAX)
    except OSError:
        return None
    found = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(name.encode()) + rb"$", packed, re.MULTILINE)
    return found[1].decode("ascii") if found and _OID.match(found[1]) else None


def crowded(path: str) -> bool:
    """Return whether a local remote has so many refs that whoever lists all of them takes longer than a fetch."""
    try:
        return os.stat(os.path.join(_git_dir(path), "packed-refs")).st_size > _CROWD_BYTES
    except OSError:
        return False


def shows(remote: str, branch: str, commit: str) -> bool:
    """Return whether a remote on this machine shows a commit at a branch; False where its files do not tell.

    What was pushed just now, and git says is there, need not be fetched where this shows it.
    """
    path = of(remote).path
    return path is not None and glance(path, branch) == commit


def presence_folder(path: str) -> str:
    """Return the folder of a local remote in which presences show."""
    return os.path.join(_git_dir(path), *REPLACEABLE.rstrip("/").split("/"))


def presences(path: str, without: Collection[str]) -> dict[str, bytes]:
    """Return what the presence refs of a local remote hold, by agent, without some; at most `_PRESENCES_MAX` of them.

    Those that are packed do not show: whoever publishes next has a file again.
    """
    folder = presence_folder(path)
    found = {}
    try:
        with os.scandir(folder) as entries:
            for entry in itertools.islice(entries, _PRESENCES_MAX):
                if valid_name(entry.name) and entry.name not in without and entry.is_file(follow_symlinks=False):
                    found[entry.name] = _read(entry.path, 80)
    except OSError:
        return {}
    return found


def _read(path: str, most: int) -> bytes:
    """Return the beginning of a file, and nothing of a fifo: that would let us wait for whoever put it there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(path)
        return os.read(descriptor, most) if stat.S_ISREG(mode) else b""
    finally:
        os.close(descriptor)


def _git_dir(path: str) -> str:
    inside = os.path.join(path, ".git")
    return inside if os.path.isdir(inside) else path
