"""Read small objects through one `git cat-file` that stays, where a child for each look would cost more than the look.

    reader = Reader(…)
    reader.read(["<id>", "<commit>:path"], max_size=1 << 20)    what each is, in order; or None: ask the ordinary way
    reader.end()                                                and its process is gone

Rules that it keeps:

- It is a shorter way and never another answer. Whatever is odd (an object that is missing or damaged, a word on
  standard error, a child that hangs or died, a repository that was made anew) gives None, and who asked takes the
  ordinary way, which knows how to tell what is wrong.
- One child per repository, started at the first question, ended after `IDLE_SECONDS` without one (`rest`), after a
  packing, and with the process: its standard input closes then.
- Little is asked at a time, so that neither side ever waits for the other to read.
"""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

from wire.errors import WireError
from wire.gitio import groups
from wire.gitio.child import NotStarted
from wire.gitio.parse import HEX

IDLE_SECONDS = 5.0
MOST = 128
"""Names in one question; who wants more is better served by a child of its own."""
TOTAL_MAX = 8 << 20
"""Bytes that one answer holds at most."""

_CHUNK = 1 << 16
_TICK = 0.5
_HEADER_MAX = 4096


class Object(NamedTuple):
    """One object: id, kind, size in bytes, and the content; None where it is larger than was asked for."""

    oid: str
    kind: str
    size: int
    data: bytes | None


class _Odd(Exception):
    """Something that the ordinary way has to look at."""


class Reader:
    """Reads through a lasting child; one thread uses it, and only `interrupt` may be called from any other.

    Args:
        git_dir: the repository.
        start: starts `git cat-file --batch-command` with pipes; raises whatever it likes.
        timeout: seconds that an answer may take.
    """

    def __init__(self, git_dir: str, start: Callable[[], "subprocess.Popen[bytes]"], timeout: float) -> None:
        self._objects = os.path.join(git_dir, "objects")
        self._start = start
        self._timeout = timeout
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._used = 0.0
        self._interrupted = False
        self._stopped = False

    def read(self, names: Sequence[str], *, max_size: int) -> list[Object] | None:
        """Return what stands behind each name, in order; None where that is not told here.

        Args:
            names: ids, or what git takes for one object; at most `MOST`, without line ends.
            max_size: bytes; the content of a larger object is not read, and with -1 none is.
        """
        if not names:
            return []
        if len(names) > MOST or any("\n" in name or len(name) > 1024 for name in names):
            return None
        try:
            child = self._awake()
            return child.ask(names, max_size, time.monotonic() + self._timeout, self._wanted)
        except (_Odd, OSError, ValueError, NotStarted, WireError):
            self.end()
            return None
        except BaseException:
            self.end()  # half an answer would be taken for the next one
            raise
        finally:
            self._used = time.monotonic()

    def rest(self) -> float:
        """End a child that nobody has asked for a while; return in how many seconds that is due, if it is."""
        if self._child is None:
            return float("inf")
        left = self._used + IDLE_SECONDS - time.monotonic()
        if left <= 0:
            self.end()
        return left if left > 0 else float("inf")

    def end(self) -> None:
        """End the child, if there is one; the next question starts another."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.end()

    def interrupt(self, *, stop: bool = False) -> None:
        """Let a question that is being answered end without an answer; from any thread.

        Args:
            stop: every later one, too.
        """
        self._stopped = self._stopped or stop
        self._interrupted = True
        with self._lock:
            if self._child is not None:
                self._child.kill()

    def _wanted(self) -> bool:
        return not self._interrupted

    def _awake(self) -> "_Child":
        self._interrupted = self._stopped
        if self._stopped:
            raise _Odd
        at = inode(self._objects)
        child = self._child
        if child is not None and child.at == at:
            return child
        self.end()
        if at is None:
            raise _Odd
        child = _Child(self._start(), at)
        with self._lock:
            self._child = child
        return child


class _Child:
    """The process, and the talk with it."""

    def __init__(self, process: "subprocess.Popen[bytes]", at: tuple[int, int]) -> None:
        self.at = at
        self._pid = process.pid
        self._wanted: Callable[[], bool] = bool
        self._end = weakref.finalize(self, _end, process)
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise _Odd
        self._ask = process.stdin.fileno()
        self._answer = process.stdout.fileno()
        self._trouble = process.stderr.fileno()
        self._buffer = bytearray()
        self._poll = select.poll()
        for descriptor in (self._answer, self._trouble):
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, select.POLLIN)

    def end(self) -> None:
        self._end()

    def kill(self) -> None:
        groups.signal_group(self._pid, signal.SIGKILL)

    def ask(self, names: Sequence[str], max_size: int, deadline: float, wanted: Callable[[], bool]) -> list[Object]:
        self._wanted = wanted
        if len(names) == 1 and max_size >= 0:
            return [self._whole(names[0], max_size, deadline)]
        self._say(b"".join(b"info %s\n" % os.fsencode(name) for name in names))
        told = [self._header(deadline) for _ in names]
        if sum(size for _, _, size in told if size <= max_size) > TOTAL_MAX:
            raise _Odd
        return [Object(*about, self._content(about, deadline) if about[2] <= max_size else None) for about in told]

    def _whole(self, name: str, max_size: int, deadline: float) -> Object:
        """Ask for one object without asking for its size first; one that is too large ends the talk."""
        self._say(b"contents %s\n" % os.fsencode(name))
        about = self._header(deadline)
        if about[2] > min(max_size, TOTAL_MAX):
            raise _Odd
        return Object(*about, self._body(about[2], deadline))

    def _content(self, about: tuple[str, str, int], deadline: float) -> bytes:
        oid, _, size = about
        self._say(b"contents %s\n" % oid.encode("ascii"))
        if self._header(deadline) != about:
            raise _Odd
        return self._body(size, deadline)

    def _body(self, size: int, deadline: float) -> bytes:
        while len(self._buffer) <= size:
            self._hear(deadline)
        data = bytes(self._buffer[:size])
        if self._buffer[size : size + 1] != b"\n":
            raise _Odd
        del self._buffer[: size + 1]
        return data

    def _header(self, deadline: float) -> tuple[str, str, int]:
        while (stop := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _HEADER_MAX:
                raise _Odd
            self._hear(deadline)
        parts = self._buffer[:stop].decode("ascii", "replace").split(" ")
        del self._buffer[: stop + 1]
        if len(parts) != 3 or not HEX.match(parts[0]) or not parts[2].isdigit():
            raise _Odd  # missing, most likely
        return parts[0], parts[1], int(parts[2])

    def _say(self, words: bytes) -> None:
        while words:
            words = words[os.write(self._ask, words) :]

    def _hear(self, deadline: float) -> None:
        ready: list[tuple[int, int]] = []
        while not ready:
            left = deadline - time.monotonic()
            if left <= 0 or not self._wanted():
                raise _Odd
            ready = self._poll.poll(min(left, _TICK) * 1000)
        if any(descriptor == self._trouble for descriptor, _ in ready):
            raise _Odd
        heard = os.read(self._answer, _CHUNK)
        if not heard:
            raise _Odd
        self._buffer += heard


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a child: it goes by itself when nobody can ask any more, and is made to where it does not."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        groups.signal_group(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def inode(path: str) -> tuple[int, int] | None:
    """Return what tells a file or folder from another that stood at its path before; None for none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
