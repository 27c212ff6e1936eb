"""Limit what a child and all that it starts may write, without a shell in front of it.

    if can_limit(): limit(pid, max_file=16 << 20)

A limit is inherited by what is started after it was set, so it is set on the child first, and then on whatever that had
started before, and so on downwards. A limit on a file's size counts from the file's beginning: it holds also where a
process had begun to write. Only Linux can do this from outside; elsewhere a shell sets the limits before the child
(`core`).
"""

import contextlib
import functools
import os
import resource
import sys


@functools.cache
def can_limit() -> bool:
    """Return whether limits of another process can be set here, and its children be listed."""
    return sys.platform == "linux" and os.path.exists(_children_file(os.getpid()))


def limit(pid: int, *, max_file: int) -> None:
    """Let a child of ours, and all below it, write no core dump and no file beyond `max_file` bytes.

    A stricter limit stays. One that has ended needs none.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(ProcessLookupError):
        for kind, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, max_file)):
            _, hard = resource.prlimit(pid, kind)
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(pid, kind, (most, most))
        for child in _children(pid):
            limit(child, max_file=max_file)


def _children(pid: int) -> list[int]:
    try:
        with open(_children_file(pid), "rb") as file:
            return [int(one) for one in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _children_file(pid: int) -> str:
    return f"/proc/{pid}/task/{pid}/children"


def in_force(max_file: int) -> int:
    """Return what a limit of so many bytes comes to: where a stricter hard limit is in force, that one stays."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    return max_file if hard == resource.RLIM_INFINITY else min(max_file, hard)
