"""Which blobs a repository leaves out, because a host was asked not to send the huge ones; see `secondtry`.

Their ids stand in a file of the repository. What is listed there counts as a blob that is too large to be read, and
what is missing without being listed is damage, as ever. Nothing ever asks the remote for either.
"""

import os
import re

FILE = "wire-left-out"
BESIDE = "wire-second-try"
"""The folder of the repository in which a second try is made."""
LIMIT = (1 << 20) + 1
"""Bytes from which on a blob is left out: one more than the largest thing that is ever read, a trust document."""
MOST = 100_000
"""Ids that are listed at most; who leaves out more gives up instead."""

_IDS = re.compile(rb"(?m)^(?:[0-9a-f]{40}|[0-9a-f]{64})$")


def read(git_dir: str) -> frozenset[str]:
    """Return the ids of what is left out; a file that is not there stands for none."""
    try:
        with open(os.path.join(git_dir, FILE), "rb") as file:
            return frozenset(one.decode("ascii") for one in _IDS.findall(file.read()))
    except FileNotFoundError:
        return frozenset()


def some(git_dir: str) -> bool:
    """Tell whether a repository leaves anything out, or did."""
    return os.path.exists(os.path.join(git_dir, FILE))


def add(git_dir: str, oids: frozenset[str]) -> bool:
    """List further ids, on the disk when this returns; return False where they are too many, and none was added."""
    listed = read(git_dir) | oids
    if len(listed) > MOST:
        return False
    path = os.path.join(git_dir, FILE)
    with open(path + ".new", "wb") as file:
        file.write("".join(f"{oid}\n" for oid in sorted(listed)).encode("ascii"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    fsync_folder(git_dir)
    return True


def fsync_folder(path: str) -> None:
    """Put a folder's names on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
