"""The clone's per-direction files against what they must hold: comparing, mending, and noticing changes.

Rules that it keeps:

- A regular file is mended in place, on the inode that somebody may be tailing. When it only lacks bytes at its end,
  it is only appended to. At every moment of a mending it is a beginning of what it must hold, or what it was.
- Nothing is cut before a copy of it is on disk in the folder for things set aside.
- An unterminated end may be a line that somebody is still writing: it is left alone for a time of grace.
- Links are never followed; they, and anything else that is not a file, are moved out of the way.
- Whatever somebody put into a file, only as much of it is read as could be lawful.

What it does not do: locks, git, or judging a line. For files of our own channels the caller holds the channel's lock.
"""

import errno
import os
import shutil
import stat
import time
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from wire.errors import DiskFull, StoreError
from wire.protocol.chain import SEGMENT_MAX, Position
from wire.protocol.line import LINE_MAX
from wire.protocol.names import parse_segment_name, segment_name
from wire.store.clonefiles import NotRegular, open_file, open_folder
from wire.store.files import atomic_write, private_folder, store_error, write_all
from wire.store.segments import Kept, common_length, keep, read_part, read_range

CANDIDATES_MAX = 4 << 20
"""Bytes behind the journal's end that one inspection reads at most."""

_ROUNDS = 3
_CHUNK = 1 << 18
# What a candidate costs at least of `CANDIDATES_MAX`: no signed line is this short, and four million newlines are.
_LEAST = 256
# A file that changed this shortly before it was looked at can change again without its time changing.
_RACY_NS = 2_000_000_000


class Odd(NamedTuple):
    """Something in a file that is not ours: where, and how many bytes."""

    kind: Literal["differs", "not-a-file", "overlong", "surplus"]
    path: str
    offset: int
    length: int


class Loose(NamedTuple):
    """An unterminated end of a file, and the seconds since it last changed."""

    path: str
    offset: int
    length: int
    age: float


@dataclass(frozen=True, slots=True)
class Inspection:
    """What the clone has of a channel of ours, compared with the journal's end.

    Attributes:
        end: the journal's end.
        behind: files that lack bytes of the journal at their end.
        missing: files that are not there, or whose folder is not.
        candidates: complete lines behind the journal's end, without newlines; nobody has verified them.
        loose: the unterminated end behind the journal's, if there is one.
        odd: what is neither the journal's nor a candidate.
        beyond: files of later segments than the journal's last.
    """

    end: Position
    behind: tuple[str, ...]
    missing: tuple[str, ...]
    candidates: tuple[bytes, ...]
    loose: Loose | None
    odd: tuple[Odd, ...]
    beyond: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether the files hold the journal's bytes and nothing else."""
        return not (self.behind or self.missing or self.candidates or self.loose or self.odd or self.beyond)


class Mended(NamedTuple):
    """What was done to a file.

    `waiting`: its unterminated end is younger than the time of grace, so nothing was done. `aside` are the bytes that
    had to go; `moved` is where something that was no file went.
    """

    action: Literal["unchanged", "appended", "created", "rewritten", "removed", "waiting"]
    aside: Kept | None = None
    moved: str | None = None


class Signatures:
    """Which files are as they were when they were last looked at, at the price of one stat each."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], object]] = {}

    def changed(self, path: str, tag: object = None) -> bool:
        """Return whether a file has to be looked at: it changed, is new, or was remembered with another tag."""
        return self._known.get(path) != (_signature(path), tag)

    def remember(
        self, path: str, tag: object = None, *, seen: os.stat_result | None = None, ours: bool = False
    ) -> None:
        """Note that a file was looked at.

        Args:
            tag: what it was compared with.
            seen: its status before it was read; taken now when omitted.
            ours: we changed it ourselves just now, and somebody else's change in the same moment may wait.
        """
        signature = _signature(path) if seen is None else _signature_of(seen)
        if signature and not ours and time.time_ns() - signature[3] < _RACY_NS:
            self._known.pop(path, None)
        else:
            self._known[path] = (signature, tag)

    def forget(self, path: str) -> None:
        """Have a file looked at again."""
        self._known.pop(path, None)


def inspect(
    coordination: str, journal: str, channel: str, end: Position, *, signatures: Signatures | None = None
) -> Inspection:
    """Compare the clone's files of a channel with its journal.

    Args:
        coordination: the clone's `_coordination`.
        journal: the channel's journal folder.
        end: the journal's end, from `journal.settle`.
        signatures: what is remembered there as equal is not read again.

    Raises:
        StoreError: a file of either side cannot be read.
    """
    found = _Found()
    beyond = [number for number in _segments(coordination, channel) if number > end.segment]
    for number in (*range(1, end.segment + 1), *beyond):
        path = os.path.join(coordination, channel, segment_name(number))
        tag = end.head if number >= end.segment else None
        if signatures is not None and not signatures.changed(path, tag):
            continue
        wanted = b""
        if number <= end.segment:
            wanted = read_part(journal, number, 0, SEGMENT_MAX if number < end.segment else end.size) or b""
        seen = _compare(coordination, channel, number, wanted, number >= end.segment, found)
        if seen is not None and signatures is not None:
            signatures.remember(path, tag, seen=seen)
    return Inspection(
        end,
        tuple(found.behind),
        tuple(found.missing),
        tuple(found.candidates),
        found.loose,
        tuple(found.odd),
        tuple(f"{channel}/{segment_name(number)}" for number in beyond),
    )


@dataclass(slots=True)
class _Found:
    behind: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    candidates: list[bytes] = field(default_factory=list)
    loose: Loose | None = None
    odd: list[Odd] = field(default_factory=list)
    room: int = CANDIDATES_MAX


def _segments(coordination: str, channel: str) -> list[int]:
    try:
        with open_folder(coordination, channel.split("/")) as folder:
            names = os.listdir(folder)
    except OSError:
        return []  # what is wrong with the folder shows at its files
    return sorted(number for number in map(parse_segment_name, names) if number is not None)


def _compare(
    coordination: str, channel: str, number: int, wanted: bytes, last: bool, found: _Found
) -> os.stat_result | None:
    """Sort what one file has; return its status when it holds exactly what it must."""
    name = f"{channel}/{segment_name(number)}"
    try:
        with (
            open_folder(coordination, channel.split("/")) as folder,
            open_file(folder, segment_name(number), os.O_RDONLY) as (descriptor, status),
        ):
            present = read_range(descriptor, 0, len(wanted))
            same = common_length(present, wanted)
            if same < len(present):
                found.odd.append(Odd("differs", name, same, status.st_size - same))
            elif same < len(wanted):
                found.behind.append(name)
            elif status.st_size == len(wanted):
                return status
            elif last:
                _read_candidates(descriptor, name, len(wanted), status, found)
            else:
                found.odd.append(Odd("surplus", name, len(wanted), status.st_size - len(wanted)))
    except NotRegular:
        found.odd.append(Odd("not-a-file", name, 0, 0))
    except OSError as error:
        if error.errno == errno.ENOENT:
            if wanted:
                found.missing.append(name)
        elif error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
            found.odd.append(Odd("not-a-file", name, 0, 0))
        else:
            raise store_error(error, "read", os.path.join(coordination, name)) from error
    return None


def _read_candidates(descriptor: int, name: str, start: int, status: os.stat_result, found: _Found) -> None:
    """Sort what stands behind the journal's end into lines, overlong lines and an unterminated end."""
    pending = b""  # the line under way, as much of it as could be lawful
    begin = at = start
    while at < status.st_size and found.room > 0:
        part = os.pread(descriptor, min(_CHUNK, status.st_size - at), at)
        if not part:
            break
        position = 0
        while (stop := part.find(b"\n", position)) >= 0:
            length = at + stop + 1 - begin
            if length > LINE_MAX:
                found.odd.append(Odd("overlong", name, begin, length))
            else:
                found.candidates.append(pending + part[position:stop])
                found.room -= max(length, _LEAST)
            pending = b""
            begin, position = begin + length, stop + 1
        pending = (pending + part[position:])[:LINE_MAX]
        at += len(part)
    left = status.st_size - begin
    if at < status.st_size:
        found.odd.append(Odd("surplus", name, begin, left))
    elif left >= LINE_MAX:
        found.odd.append(Odd("overlong", name, begin, left))
    elif left > 0:
        found.loose = Loose(name, begin, left, _age(status, time.time()))


def mend(coordination: str, name: str, wanted: bytes | None, aside_dir: str, *, grace: float) -> Mended:
    """Make a file below `_coordination` hold exactly `wanted`, in place.

    Args:
        coordination: the clone's `_coordination`, made when missing.
        name: path below it, such as `mac/spark/000001.jsonl`; missing folders are made.
        wanted: the whole content; None when there must be no such file.
        aside_dir: where bytes that must go are copied, and things that are no file are moved.
        grace: seconds for which an unterminated end is left alone.

    Raises:
        DiskFull: what is there is what it was, or a beginning of `wanted`.
        StoreError: the file cannot be read or written, or (reason `view-busy`) keeps changing meanwhile.
    """
    path = os.path.join(coordination, name)
    moved = _clear_way(coordination, name, aside_dir)
    flags = os.O_RDWR | os.O_APPEND
    if not os.path.lexists(path):
        if wanted is None:
            return Mended("unchanged", None, moved)
        flags |= os.O_CREAT
    *parts, base = name.split("/")
    try:
        with (
            open_folder(coordination, parts, create=True) as folder,
            open_file(folder, base, flags) as (descriptor, _),
        ):
            for _ in range(_ROUNDS):
                done = _mend_open(descriptor, name, wanted or b"", aside_dir, grace)
                if done is None:
                    continue
                if wanted is None and done.action != "waiting":
                    os.unlink(base, dir_fd=folder)
                    done = done._replace(action="removed")
                elif flags & os.O_CREAT:
                    done = done._replace(action="created")
                return done._replace(moved=moved)
    except OSError as error:
        problem = store_error(error, "mend", path)
        if isinstance(problem, DiskFull):
            problem = DiskFull(
                f"no space left: {path} holds only a beginning of what it must; the next cycle adds the rest",
                next_step=problem.next_step,
            )
        raise problem from error
    raise StoreError(f"{path} keeps changing while it is mended", reason="view-busy")


def _mend_open(descriptor: int, name: str, wanted: bytes, aside_dir: str, grace: float) -> Mended | None:
    """Mend an open file, or return None when somebody wrote into it meanwhile."""
    status = os.fstat(descriptor)
    same = common_length(read_range(descriptor, 0, len(wanted)), wanted)
    if status.st_size == same == len(wanted):
        return Mended("unchanged")
    # A line under way can begin like the one that must stand here: lines of one channel differ late.
    unfinished = status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n"
    if unfinished and _age(status, time.time()) < grace:
        return Mended("waiting")
    kept = None
    if status.st_size > same:
        same = wanted.rfind(b"\n", 0, same) + 1  # what is set aside begins where a line begins
        kept = keep(aside_dir, f"{name.replace('/', '.')}.{same}", descriptor, same, status.st_size - same)
        if _signature_of(os.fstat(descriptor)) != _signature_of(status):
            return None
        os.ftruncate(descriptor, same)
    write_all(descriptor, wanted[same:])
    if not _holds(descriptor, wanted):
        return None
    return Mended("rewritten", kept) if kept else Mended("appended")


def _holds(descriptor: int, wanted: bytes) -> bool:
    return os.fstat(descriptor).st_size == len(wanted) and read_range(descriptor, 0, len(wanted)) == wanted


def _clear_way(coordination: str, name: str, aside_dir: str) -> str | None:
    """Move aside what stands where a folder or the file must be and is something else; return where it went."""
    *parts, base = os.path.basename(coordination), *name.split("/")
    path = os.path.dirname(coordination)
    for part in (*parts, base):
        path = os.path.join(path, part)
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return None
        except OSError as error:
            raise store_error(error, "look at", path) from error
        is_right = stat.S_ISREG if part is base else stat.S_ISDIR
        if not is_right(mode):
            return _move_aside(path, os.path.relpath(path, os.path.dirname(coordination)), aside_dir)
    return None


def _move_aside(path: str, name: str, aside_dir: str) -> str:
    private_folder(aside_dir)
    target = os.path.join(aside_dir, f"{name.replace('/', '.')}.{os.urandom(6).hex()}")
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            atomic_write(target, b"a symbolic link to: " + os.fsencode(os.readlink(path)) + b"\n")
            os.unlink(path)
        elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            shutil.move(path, target)  # the state folder may be on another disk than the clone
        else:
            atomic_write(target, b"not a file: mode %o\n" % mode)
            os.unlink(path)
    except OSError as error:  # shutil.Error is one
        raise store_error(error, "move aside", path) from error
    return target


def _age(status: os.stat_result, now: float) -> float:
    """Return the seconds since a file changed; a time in the future, which anybody can set, is not believed."""
    for changed in (status.st_mtime, status.st_ctime):
        if changed <= now:
            return now - changed
    return float("inf")


def _signature(path: str) -> tuple[int, ...]:
    try:
        return _signature_of(os.stat(path, follow_symlinks=False))
    except OSError:
        return ()


def _signature_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
