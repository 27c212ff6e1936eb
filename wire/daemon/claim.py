"""The right to serve a wire: held by one daemon, for its life.

    with Claim.take(places) as claim:
        claim.crashed                           whether the one before ended without a word

It is held twice: at a lock in the state folder, whose holder is known by name, and at the clone's repository itself, so
that whoever deletes lock files lets no second daemon in. The kernel gives both back when the process dies. See
`wire.store.files` for the locks.
"""

import os
from contextlib import ExitStack, suppress
from typing import Self

from wire.errors import Busy, StoreError
from wire.store.files import atomic_write, lock_folder, lock_holder, locked
from wire.store.paths import WirePlaces
from wire.store.progress import Progress

_MARK = "serving"


class Claim:
    """The right to serve one wire; made by `take`.

    Attributes:
        crashed: the last holder did not give it back: it was killed, or the machine went down.
    """

    def __init__(self, places: WirePlaces, held: ExitStack) -> None:
        self._places = places
        self._held = held
        self._clone: ExitStack | None = None
        self._inode: tuple[int, int] | None = None
        self._mark = os.path.join(places.lock("daemon"), _MARK)
        self.crashed = os.path.exists(self._mark)

    @classmethod
    def take(cls, places: WirePlaces) -> Self:
        """Take the right to serve a wire.

        Raises:
            Busy: reason `daemon-running`: another daemon has it; the text names its process where that is known.
            StoreError: the state folder cannot be used.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(places.lock("daemon"), what=places.name, timeout=0))
                claim = cls(places, stack)
                claim.renew()
            except Busy as error:
                raise _served(places) from error
            with suppress(StoreError):  # a full disk must not keep the daemon from starting
                atomic_write(claim._mark, b"%d\n" % os.getpid(), durable=False)
            claim._held = stack.pop_all()
            return claim

    def renew(self) -> None:
        """Hold the repository that stands in the clone now; it may have been made anew.

        Raises:
            Busy: another daemon holds it.
        """
        try:
            status = os.stat(self._places.git_dir)
        except OSError:
            return  # a wire without a clone is told by its cycles
        inode = (status.st_dev, status.st_ino)
        if inode == self._inode:
            return
        with ExitStack() as stack:
            stack.enter_context(lock_folder(self._places.git_dir, what=self._places.name, timeout=0))
            if self._clone is not None:
                self._clone.close()
            self._clone = stack.pop_all()
            self._inode = inode

    def release(self) -> None:
        """Give it back, in order."""
        with suppress(FileNotFoundError):
            os.unlink(self._mark)
        if self._clone is not None:
            self._clone.close()
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def sole(state_dir: str) -> ExitStack:
    """Hold the lock of the one daemon that serves everything below a state folder; close the result to give it back.

    Raises:
        Busy: reason `daemon-running`.
    """
    path = os.path.join(state_dir, ".locks", "daemon")
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path, what="this machine", timeout=0))
        except Busy as error:
            raise _running("a daemon serves this machine already", lock_holder(path)) from error
        return stack.pop_all()


def _served(places: WirePlaces) -> Busy:
    pid = lock_holder(places.lock("daemon"))
    if pid in (None, os.getpid()):
        # Its lock files were deleted; the stamp still says who wrote it.
        with suppress(StoreError):
            pid = Progress.load(places).pid or None
    return _running(f"a daemon serves the wire {places.name!r} already", pid)


def _running(text: str, pid: int | None) -> Busy:
    if pid is None or pid == os.getpid():
        return Busy(text, reason="daemon-running", next_step="wire status")
    return Busy(f"{text} (process {pid})", reason="daemon-running", next_step="wire status", details={"pid": pid})
