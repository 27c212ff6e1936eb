"""The files of one journal folder: following a chain through them, adding runs of lines, cutting and keeping.

Rules that it keeps:

- A segment never grows past what the protocol allows, so whatever is read at once is bounded by `SEGMENT_MAX`.
- A batch of lines is in the segments whole or not at all, unless the process dies in between.
- Bytes are cut only after a copy of them is on disk in another folder.

What it does not do: locks, the record of what was sent, or signatures. `journal` is the room's front door.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from wire.errors import StoreError, WireError
from wire.protocol.chain import SEGMENT_MAX, Position, lines_of
from wire.protocol.line import LINE_MAX, LineError, head, parse
from wire.protocol.names import parse_segment_name, segment_name
from wire.store.files import append_whole, fsync_folder, private_folder, store_error, write_all

_CHUNK = 1 << 18
_SHOWN = 40


class Residue(NamedTuple):
    """Bytes in a segment that do not continue the chain; `complete` when a newline is among them."""

    segment: int
    offset: int
    length: int
    complete: bool


class Followed(NamedTuple):
    """The end of a chain as far as the files carry it, and what stands behind it."""

    end: Position
    residues: tuple[Residue, ...]


class Run(NamedTuple):
    """Lines that stand together in one segment: where, and their bytes."""

    segment: int
    offset: int
    data: bytes


class Kept(NamedTuple):
    """A copy of bytes that were set aside, with what evidence says of them."""

    path: str
    offset: int
    length: int
    sha256: str
    starts: str


def segment_path(folder: str, number: int) -> str:
    """Return the path of a segment."""
    return os.path.join(folder, segment_name(number))


def numbers(folder: str) -> list[int]:
    """Return the numbers of the segments in a folder, ascending; a folder that is missing has none."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise store_error(error, "list", folder) from error
    return sorted(number for number in map(parse_segment_name, names) if number is not None)


def read_part(folder: str, number: int, start: int, stop: int) -> bytes | None:
    """Return the bytes from `start` up to `stop` that a segment has, or None when there is no such file."""
    descriptor = _open_segment(folder, number)
    if descriptor is None:
        return None
    try:
        return read_range(descriptor, start, stop)
    except OSError as error:
        raise store_error(error, "read", segment_path(folder, number)) from error
    finally:
        os.close(descriptor)


def _open_segment(folder: str, number: int) -> int | None:
    path = segment_path(folder, number)
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise store_error(error, "read", path) from error


def read_range(descriptor: int, start: int, stop: int) -> bytes:
    """Return what a file has from `start` up to `stop`, in as many calls as it takes; raises `OSError`."""
    parts: list[bytes] = []
    while start < stop:
        part = os.pread(descriptor, stop - start, start)
        if not part:
            break
        parts.append(part)
        start += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def next_position(end: Position, raw: bytes, *, wire: str, channel: str) -> Position | None:
    """Return the end after a line, or None unless it names this channel and follows `end`; no signature is checked."""
    try:
        line = parse(raw)
    except LineError:
        return None
    if line.seq != end.seq + 1 or line.prev != end.head or line.wire != wire or line.channel != channel:
        return None
    return end.after(len(raw) + 1, head(raw))


def follow(folder: str, start: Position, *, wire: str, channel: str) -> Followed:
    """Follow the chain from a position that the files hold, through every further segment.

    A file that is empty and stands behind the end is reported as a residue of no length.
    """
    end = start
    residues: list[Residue] = []
    number = start.segment
    while (opened := _open_segment(folder, number)) is not None:
        first = offset = start.size if number == start.segment else 0
        try:
            size = os.fstat(opened).st_size
            data = read_range(opened, first, SEGMENT_MAX)
        except OSError as error:
            raise store_error(error, "read", segment_path(folder, number)) from error
        finally:
            os.close(opened)
        # Behind the first bytes that do not belong nothing belongs: no writer begins there.
        for raw in () if residues else lines_of(data):
            after = next_position(end, raw, wire=wire, channel=channel)
            if after is None or after.segment != number:
                break
            end, offset = after, after.size
        if size > offset or (size == 0 and number > end.segment):
            residues.append(Residue(number, offset, size - offset, b"\n" in data[offset - first :]))
        number += 1
    return Followed(end, tuple(residues))


def runs_of(start: Position, lines: Iterable[bytes]) -> tuple[list[Run], list[Position]]:
    """Place lines (each with its newline) behind a position; return the runs per segment, and the end after each line.

    Raises:
        StoreError: reason `bad-line`: one of them is not a single terminated line within the limit.
    """
    gathered: list[tuple[int, int, list[bytes]]] = []
    ends: list[Position] = []
    end = start
    for line in lines:
        if not line.endswith(b"\n") or line.count(b"\n") != 1 or len(line) > LINE_MAX:
            raise StoreError(
                f"line {end.seq + 1}: {len(line)} bytes that are not one line of at most {LINE_MAX} bytes",
                reason="bad-line",
            )
        after = end.after(len(line), head(line[:-1]))
        if not gathered or gathered[-1][0] != after.segment:
            gathered.append((after.segment, after.size - len(line), []))
        gathered[-1][2].append(line)
        ends.append(after)
        end = after
    return [Run(segment, offset, b"".join(parts)) for segment, offset, parts in gathered], ends


def write_runs(folder: str, runs: Iterable[Run]) -> None:
    """Append runs to their segments and bring them to disk, or take all of them back.

    Each run is one write(2) and one fsync, in ascending order: what a power cut leaves is a beginning of the batch.

    Raises:
        DiskFull, StoreError: nothing of the batch is left, or the text says what could not be taken back.
    """
    done: list[Run] = []
    for run in runs:
        try:
            _write_run(folder, run)
        except WireError as error:
            for earlier in reversed(done):  # the last first, so that a kill in between leaves a beginning
                _take_back(folder, earlier, error)
            raise
        done.append(run)


def _write_run(folder: str, run: Run) -> None:
    path = segment_path(folder, run.segment)
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    if run.offset == 0:
        private_folder(folder)
        flags |= os.O_CREAT
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise store_error(error, "append to", path) from error
    try:
        if os.fstat(descriptor).st_size != run.offset:
            raise StoreError(f"{path} does not end at byte {run.offset}: another program wrote into the journal")
        try:
            append_whole(descriptor, run.data, path=path)
            _fsync(descriptor, path)
            if run.offset == 0:
                fsync_folder(folder)
        except WireError as error:
            _take_back(folder, run, error)
            raise
    finally:
        os.close(descriptor)


def _fsync(descriptor: int, path: str) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise store_error(error, "bring to disk", path) from error


def _take_back(folder: str, run: Run, error: WireError) -> None:
    try:
        cut(folder, run.segment, run.offset)
    except WireError as problem:
        raise StoreError(
            f"{error}; what was written before could not be taken back and may still be sent: {problem}",
            reason="not-taken-back",
            next_step="look at the newest lines of the channel before sending this again",
        ) from error


def cut(folder: str, number: int, size: int) -> None:
    """Shorten a segment, or remove it when nothing of it is left, and bring that to disk.

    Raises:
        StoreError: the system refused.
    """
    path = segment_path(folder, number)
    try:
        if size == 0:
            os.unlink(path)
        else:
            os.truncate(path, size)
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error(error, "shorten", path) from error
    if size == 0:
        fsync_folder(folder)
    else:
        fsync_segment(folder, number)


def fsync_segment(folder: str, number: int) -> None:
    """Bring a segment to disk.

    Raises:
        DiskFull, StoreError: the system could not.
    """
    descriptor = _open_segment(folder, number)
    if descriptor is None:
        raise StoreError(f"{segment_path(folder, number)} is gone: it was there a moment ago")
    try:
        _fsync(descriptor, segment_path(folder, number))
    finally:
        os.close(descriptor)


def keep(aside_dir: str, name: str, descriptor: int, offset: int, length: int) -> Kept:
    """Copy bytes of an open file into a folder and bring the copy to disk, whatever its size, in bounded memory.

    The copy's name ends in the first digits of its hash: the same bytes kept twice are one file.

    Args:
        aside_dir: made when missing.
        name: what the copy's name begins with: channel, segment and byte offset.

    Raises:
        DiskFull, StoreError: there is no copy; the caller leaves the original as it is.
    """
    from hashlib import sha256  # for what is hashed in pieces, which is seldom

    private_folder(aside_dir)
    temporary = os.path.join(aside_dir, f".{name}.{os.urandom(6).hex()}.tmp")
    digest = sha256()
    copied = 0
    try:
        starts = os.pread(descriptor, min(_SHOWN, length), offset)
        target = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            while copied < length and (part := os.pread(descriptor, min(_CHUNK, length - copied), offset + copied)):
                digest.update(part)
                write_all(target, part)
                copied += len(part)
            os.fsync(target)
        finally:
            os.close(target)
        path = os.path.join(aside_dir, f"{name}.{digest.hexdigest()[:12]}")
        os.rename(temporary, path)
    except OSError as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise store_error(error, "keep a copy in", aside_dir) from error
    fsync_folder(aside_dir)
    return Kept(path, offset, copied, digest.hexdigest(), escaped(starts))


def keep_part(aside_dir: str, channel: str, folder: str, residue: Residue) -> Kept:
    """Copy a residue of a segment aside; see `keep`."""
    descriptor = _open_segment(folder, residue.segment)
    if descriptor is None:
        raise StoreError(f"{segment_path(folder, residue.segment)} is gone: it was there a moment ago")
    try:
        name = f"{channel.replace('/', '.')}.{residue.segment:06d}.{residue.offset}"
        return keep(aside_dir, name, descriptor, residue.offset, residue.length)
    finally:
        os.close(descriptor)


def escaped(data: bytes) -> str:
    """Return bytes as printable ASCII, everything else as a backslash escape."""
    return repr(data)[2:-1]


def lines_from(folder: str, after: Position, until: Position | None = None) -> Iterator[bytes]:
    """Yield the complete lines behind a position, without newlines, one segment in memory at a time.

    Args:
        until: where to stop; the files must reach it.

    Raises:
        StoreError: reason `journal-behind`, the files end before `until`.
    """
    number, start = after.segment, after.size
    while until is None or number <= until.segment:
        stop = until.size if until is not None and number == until.segment else SEGMENT_MAX
        data = read_part(folder, number, start, stop)
        if until is None:
            if data is None:
                return
        elif stop > start and (data is None or (number == until.segment and start + len(data) < stop)):
            raise StoreError(
                f"{segment_path(folder, number)} ends before byte {stop}; line {until.seq} was expected in the journal",
                reason="journal-behind",
            )
        yield from lines_of(data or b"")
        number, start = number + 1, 0


def common_length(left: bytes, right: bytes) -> int:
    """Return the length of the common beginning."""
    if right.startswith(left):
        return len(left)
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
