"""Noticing that something in a few folders changed, at once where the system tells, never later than the next look.

    watcher = Watcher(bell.set, off=False)
    watcher.arm({journal: None, root: frozenset({"journal"})})      again and again: it mends itself
    watcher.mode                                                    "inotify" or "polling"

Rules that it keeps:

- An event is a hint. Who gets one looks with `stat`, and looks by the clock as well: nothing depends on an event.
- Reading causes no events: only what changes a folder or a file is asked for.
- A watch belongs to a folder's inode, not to its path. `arm` compares the two, and watches what stands at the path now.
- That the observer's threads are alive proves nothing. `expect` announces a file that is about to be written in a
  watched folder; if no event comes of it, everything is set up anew.
- Without inotify, or where its limits are reached, the mode is `polling`: one warning, a new try every few minutes.

This is the only module that imports watchdog. What it does not do: decide which folders matter, or what changed.
"""

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping

from watchdog import events
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

INOTIFY, POLLING = "inotify", "polling"
ANSWER_SECONDS = 5.0
"""How long an announced event may take."""
RETRY_SECONDS = 300.0
"""Seconds between two tries to leave polling."""

Wanted = Mapping[str, frozenset[str] | None]
"""Folders, each with the names in it that matter; None for all."""

# Among them none that reading causes: an open or a close after reading would wake us for our own look.
_KINDS: list[type[events.FileSystemEvent]] = [
    events.FileModifiedEvent,
    events.FileClosedEvent,
    events.FileCreatedEvent,
    events.FileMovedEvent,
    events.FileDeletedEvent,
    events.DirCreatedEvent,
    events.DirMovedEvent,
    events.DirDeletedEvent,
]


class Watcher:
    """Watches over one wire's folders; one thread uses it, and `on_event` is called from another.

    Args:
        on_event: called at each event that matters.
        warn: told, once, why events are not to be had.
        off: use no events at all, for tests and for who wants it so.

    Attributes:
        mode: `inotify`, or `polling` where nobody tells and the clock alone counts.
        last_event: when something that matters last happened, seconds of the epoch.
    """

    def __init__(self, on_event: Callable[[], None], warn: Callable[[str], None], *, off: bool = False) -> None:
        self.mode = POLLING
        self.last_event: float | None = None
        self._on_event = on_event
        self._warn = warn
        self._off = off
        self._wanted: Wanted = {}
        self._observer: BaseObserver | None = None
        self._armed: dict[str, tuple[ObservedWatch, tuple[int, int]]] = {}
        self._warned = ""
        self._retry_at = 0.0
        self._expected = ""
        self._asked = 0.0
        self._answered = 0.0

    def arm(self, wanted: Wanted) -> list[str]:
        """Watch these folders and no others; return those whose watch was dead or on another inode.

        Cheap where nothing changed (one `stat` per folder), so it is called at every look. A folder that is missing is
        noticed through the one above it, if that is among them.
        """
        # watchdog does not follow a link that stands at the end of a path.
        wanted = {os.path.realpath(path): names for path, names in wanted.items()}
        self._wanted = wanted
        if self._off or (self.mode == POLLING and time.monotonic() < self._retry_at):
            return []
        mended: list[str] = []
        try:
            if self._observer is None or not self._healthy():
                mended += self._armed
                self._begin()
            mended += self._compare(wanted)
        except OSError as error:
            self._poll_instead(error)
        else:
            self.mode = INOTIFY
            self._warned = ""
        return mended

    def expect(self, path: str) -> None:
        """Announce that a file in a watched folder is about to be replaced; no event of it is passed on."""
        if self.mode == INOTIFY and self._asked <= self._answered:
            self._expected = os.path.realpath(path)
            self._asked = time.monotonic()

    def expect_nothing(self) -> None:
        """Take back what `expect` announced: the write failed."""
        self._asked = self._answered

    def close(self) -> None:
        """End all threads and give the descriptors back."""
        observer, self._observer = self._observer, None
        self._armed = {}
        self.mode = POLLING
        if observer is not None:
            observer.stop()
            with contextlib.suppress(RuntimeError):  # it never ran
                observer.join(5)

    def _healthy(self) -> bool:
        observer = self._observer
        if observer is None or not observer.is_alive():
            return False
        return self._answered >= self._asked or time.monotonic() - self._asked < ANSWER_SECONDS

    def _begin(self) -> None:
        self.close()
        self._asked = self._answered = 0.0
        observer = Observer()
        observer.start()
        self._observer = observer

    def _compare(self, wanted: Wanted) -> list[str]:
        observer = self._observer
        if observer is None:
            return []
        alive = {emitter.watch for emitter in observer.emitters if emitter.is_alive()}
        present = {path: at for path in wanted if (at := _inode(path)) is not None}
        mended = []
        for path, (watch, inode) in list(self._armed.items()):
            if present.get(path) == inode and watch in alive:
                continue
            del self._armed[path]
            with contextlib.suppress(KeyError):
                observer.unschedule(watch)
            if path in wanted:
                mended.append(path)
        for path in present.keys() - self._armed.keys():
            # The inode is the one from before: if another came in between, the next comparison notices.
            with contextlib.suppress(FileNotFoundError):
                watch = observer.schedule(_Handler(self._happened), path, event_filter=_KINDS)
                self._armed[path] = (watch, present[path])
        return mended

    def _happened(self, paths: Iterable[str]) -> None:
        """Take an event, in watchdog's thread."""
        matters = False
        for path in paths:
            folder, name = os.path.split(path)
            if path == self._expected:
                self._answered = time.monotonic()
                continue
            names = self._wanted.get(folder)
            matters = matters or names is None or name in names
        if matters:
            self.last_event = time.time()
            self._on_event()

    def _poll_instead(self, error: OSError) -> None:
        self.close()
        self._retry_at = time.monotonic() + RETRY_SECONDS
        why = error.strerror or str(error)
        if error.errno in (errno.EMFILE, errno.ENOSPC, errno.ENFILE):
            why += (
                "; raise fs.inotify.max_user_instances and fs.inotify.max_user_watches with sysctl,"
                " or close programs that watch many files"
            )
        if why != self._warned:
            self._warned = why
            self._warn(f"the system cannot tell of changes in files ({why}); the folders are looked at by the clock")


class _Handler(events.FileSystemEventHandler):
    """What watchdog calls."""

    def __init__(self, happened: Callable[[Iterable[str]], None]) -> None:
        self._happened = happened

    def dispatch(self, event: events.FileSystemEvent) -> None:
        self._happened([os.fsdecode(path) for path in (event.src_path, event.dest_path) if path])


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if os.path.isdir(path) else None
