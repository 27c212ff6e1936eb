"""When, and in which commit, each line was first seen: an append-only file of ranges.

Rules that it keeps: one record per acceptance, never changed; what a crash left unfinished at the end is cut by the
next append and passed over by readers; a look-up reads a few pages of the file, however long it is.

    append(places.seen_file, "2026-11-29T11:20:00.123Z", commit, {"mac/spark": (40, 42)})
    with Seen(places.seen_file) as seen:
        seen.lookup("mac/spark", 41)

What it does not do: prove anything. Time is this machine's clock, the commit is the host's word, and nothing is
fsync'd: after a power cut the newest records can be missing. Appending is for the one who holds the wire's lock.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from wire.errors import StoreError
from wire.protocol.names import split_channel
from wire.protocol.strictjson import StrictError, dumps, loads
from wire.store.files import append_whole, store_error

if TYPE_CHECKING:
    from mmap import mmap

_PAGE = 4096


class SeenAt(NamedTuple):
    """When (UTC text) and in which commit a line was first seen here."""

    time: str
    commit: str


def append(path: str, time: str, commit: str, channels: Mapping[str, tuple[int, int]]) -> None:
    """Record that lines were accepted.

    Args:
        path: `WirePlaces.seen_file`; its folder exists.
        time: UTC text of now.
        commit: the remote's commit that carried them, hex.
        channels: first and last accepted `seq` per channel.

    Raises:
        DiskFull, StoreError: nothing was recorded.
    """
    ranges = {}
    for channel, (first, last) in channels.items():
        split_channel(channel)
        if not 1 <= first <= last:
            raise ValueError(f"{channel}: lines {first} to {last}")
        ranges[channel] = [first, last]
    if ranges:
        _append(path, {"t": time, "commit": commit, "channels": ranges})


def cut(path: str, time: str, channel: str, seq: int) -> None:
    """Record that lines after `seq` were taken back (a key was revoked there), so that their numbers come again."""
    split_channel(channel)
    _append(path, {"t": time, "cut": {channel: seq}})


class Seen:
    """The file, opened for looking up; see also `refresh`. Missing is the same as empty."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._data: mmap | bytes = b""
        self._size = 0
        self.refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if not isinstance(self._data, bytes):
            self._data.close()
        self._data = b""
        self._size = 0

    def refresh(self) -> None:
        """Take in what was appended since; for readers that follow.

        Raises:
            StoreError: the file is there and cannot be read.
        """
        from mmap import ACCESS_READ, mmap

        self.close()
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            raise store_error(error, "read", self._path) from error
        try:
            # Only whole records are mapped: what is behind them may be cut at any time, and touching it would be fatal.
            self._size = _whole(descriptor)
            if self._size:
                self._data = mmap(descriptor, self._size, access=ACCESS_READ)
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot read {self._path}: {error}") from error
        finally:
            os.close(descriptor)

    def lookup(self, channel: str, seq: int) -> SeenAt | None:
        """Return when and where line `seq` of a channel was first seen, or None when that is not recorded."""
        split_channel(channel)
        low, high = 0, self._size
        # After a cut, numbers come again: of the stretches between cuts the newest that can hold `seq` is the one.
        while (at := self._data.rfind(b'"cut":{"%s":' % channel.encode(), low, high)) >= 0:
            kept = self._record(at).get("cut", {}).get(channel)
            if isinstance(kept, int) and seq > kept:
                low = at
                break
            high = at
        return self._search(channel, seq, low, high)

    def _search(self, channel: str, seq: int, low: int, high: int) -> SeenAt | None:
        """Bisect between two offsets, where the ranges of one channel only rise."""
        needle = b'"%s":[' % channel.encode()
        while low < high:
            middle = (low + high) // 2
            # The first record of the channel that begins in the upper half, [middle, high).
            at = self._data.find(needle, middle, high + len(needle) - 1)
            if at < 0:
                high = middle
                continue
            record = self._record(at)
            bounds = record.get("channels", {}).get(channel)
            if not isinstance(bounds, list) or len(bounds) != 2 or not all(isinstance(n, int) for n in bounds):
                return None
            if seq < bounds[0]:
                high = middle
            elif seq > bounds[1]:
                low = at + 1
            else:
                time, commit = record.get("t"), record.get("commit")
                return SeenAt(time, commit) if time is not None and commit is not None else None
        return None

    def _record(self, at: int) -> dict[str, Any]:
        """Return the record around an offset, without members of a wrong kind; empty when it is damaged."""
        start = self._data.rfind(b"\n", 0, at) + 1
        stop = self._data.find(b"\n", at)
        try:
            record = loads(self._data[start:stop])
        except StrictError:
            return {}
        kinds = {"t": str, "commit": str, "channels": dict, "cut": dict}
        return {name: value for name, value in record.items() if isinstance(value, kinds.get(name, ()))}


def _append(path: str, record: Mapping[str, Any]) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise store_error(error, "append to", path) from error
    try:
        whole = _whole(descriptor)
        if whole != os.fstat(descriptor).st_size:
            os.ftruncate(descriptor, whole)
        append_whole(descriptor, dumps(record) + b"\n", path=path)
    except OSError as error:
        raise store_error(error, "append to", path) from error
    finally:
        os.close(descriptor)


def _whole(descriptor: int) -> int:
    """Return the length of a file without what stands behind its last newline: a crash left it, it is only a note."""
    at = os.fstat(descriptor).st_size
    while at > 0:
        start = max(0, at - _PAGE)
        newline = os.pread(descriptor, at - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        at = start
    return 0
