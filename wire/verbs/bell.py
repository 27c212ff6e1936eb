"""A bell for who waits in the foreground: it rings when a file in a folder was replaced.

    with Bell(places.root) as bell:
        select(…, bell.fileno(), …); bell.hush()

It shortens a wait and nothing depends on it: who hears it looks at the files, and looks by the clock as well. Where the
system has no such thing, or no more of it, `fileno()` is None. The daemon's own watch is `wire.daemon.watch`; what is
here costs a waiting command no library.
"""

import os
from contextlib import suppress
from typing import Self

_MOVED_TO, _ONLY_FOLDERS = 0x80, 0x01000000
_READ_MOST = 1 << 16


class Bell:
    """Rings when a name in a folder was given to another file, from the first question on."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._watch: int | None = None
        self._asked = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._watch is not None:
            os.close(self._watch)
            self._watch = None

    def fileno(self) -> int | None:
        """Return what becomes readable when it rings; None where nobody can tell."""
        if not self._asked:
            self._asked = True
            self._watch = _watch(self._folder)
        return self._watch

    def hush(self) -> None:
        """Take back all ringing so far."""
        if self._watch is not None:
            with suppress(BlockingIOError):
                while os.read(self._watch, _READ_MOST):
                    pass


def _watch(folder: str) -> int | None:
    import ctypes  # some milliseconds, which only who waits can spare

    libc = ctypes.CDLL(None)
    if not hasattr(libc, "inotify_init1"):
        return None
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return None
    if libc.inotify_add_watch(descriptor, os.fsencode(folder), _MOVED_TO | _ONLY_FOLDERS) < 0:
        os.close(descriptor)
        return None
    return descriptor
