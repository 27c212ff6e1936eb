"""The per-direction files in the clone, opened without following anybody's links.

The clone is a view that people and other programs can touch at any time: a folder in it may be a link, a file may
have become a fifo. So every step from `_coordination` down is opened by itself and never through a link, and only
regular files are read or written.

    copy_append(places.coordination, "mac/spark", runs)     # the copy that `wire send` makes; never raises

What it does not do: compare or mend (see `mending`), or decide which bytes are right.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from wire.protocol.chain import SEGMENT_MAX
from wire.protocol.names import segment_name
from wire.store.segments import Run, read_range

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a fifo that somebody put there would hang.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def open_folder(coordination: str, parts: Iterable[str], *, create: bool = False) -> Iterator[int]:
    """Open `_coordination` or a folder below it and yield its descriptor.

    Args:
        coordination: the clone's `_coordination`; the way to the clone itself may lead through links.
        parts: the folders' names on the way below it.
        create: make those that are missing.

    Raises:
        OSError: one of them is missing, or is no folder (a link to one is none).
    """
    clone, top = os.path.split(coordination)
    current = os.open(clone, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in (top, *parts):
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o777, dir_fd=current)
            below = os.open(part, _FOLDER, dir_fd=current)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


@contextmanager
def open_file(folder: int, name: str, flags: int) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file in an open folder and yield its descriptor and its status.

    Raises:
        OSError: it is missing or cannot be opened.
        NotRegular: it is something else.
    """
    descriptor = os.open(name, flags | _FILE, 0o666, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegular(name)
        yield descriptor, status
    finally:
        os.close(descriptor)


class NotRegular(OSError):
    """Something that is not a regular file stands where one was expected."""


def read_segment(coordination: str, channel: str, number: int) -> bytes | None:
    """Return a segment as the clone has it, up to the size that the protocol allows, or None when it cannot be read."""
    try:
        with (
            open_folder(coordination, channel.split("/")) as folder,
            open_file(folder, segment_name(number), os.O_RDONLY) as (descriptor, _),
        ):
            return read_range(descriptor, 0, SEGMENT_MAX)
    except OSError:
        return None


def copy_append(coordination: str, channel: str, runs: Iterable[Run]) -> bool:
    """Append what was just sent to the clone's files, as far as they are the journal's to the byte in size.

    A file that is missing, longer, shorter or of another kind is left for the daemon, which mends it from the journal.
    Nothing is fsync'd: the journal is the truth. The caller holds the channel's lock.

    Returns:
        Whether everything was copied.
    """
    try:
        with open_folder(coordination, channel.split("/"), create=True) as folder:
            return all(_copy(folder, run) for run in runs)
    except OSError:
        return False  # the line is safe in the journal; a view that lags is normal and mended at the next cycle


def _copy(folder: int, run: Run) -> bool:
    flags = os.O_WRONLY | os.O_APPEND | (0 if run.offset else os.O_CREAT)
    with open_file(folder, segment_name(run.segment), flags) as (descriptor, status):
        if status.st_size != run.offset:
            return False
        # What a full disk leaves of this is a beginning of the right bytes: the daemon adds the rest.
        return os.write(descriptor, run.data) == len(run.data)
