"""The index: where each accepted line stands, in SQLite. A hint, and never the truth.

Rules that it keeps: it can be thrown away and rebuilt from the accepted bytes; whoever is pointed somewhere by it
verifies what stands there; one that is damaged, of another version or of another wire is moved aside, a new one takes
its place, and the caller is told once.

    index, note = Index.open(places.index_file, wire)
    index.add([Entry("mac/spark", 42, 1, 20481, 512, head, "message", None, None, ts)])
    index.locate("mac/spark", 42)

What it does not do: fill itself. One process writes (under the wire's lock); any number read.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Self

from wire.errors import Busy, Corrupt, DiskFull, StoreError
from wire.store.files import locked, move_aside

VERSION = 1
_WAIT = 5.0
_SIDE_FILES = ("-journal", "-wal", "-shm")
_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE lines (
    channel TEXT NOT NULL, seq INTEGER NOT NULL, segment INTEGER NOT NULL, "offset" INTEGER NOT NULL,
    length INTEGER NOT NULL, head TEXT NOT NULL, type TEXT NOT NULL, thread TEXT, re TEXT, ts TEXT NOT NULL,
    PRIMARY KEY (channel, seq)
) WITHOUT ROWID;
CREATE INDEX lines_thread ON lines (thread) WHERE thread IS NOT NULL;
"""


class Entry(NamedTuple):
    """One accepted line: its place (bytes, `length` with the newline), and what it can be found by."""

    channel: str
    seq: int
    segment: int
    offset: int
    length: int
    head: str
    type: str
    thread: str | None
    re: str | None
    ts: str


class Spot(NamedTuple):
    """Where a line stands: segment, and offset and length in bytes, with the newline."""

    segment: int
    offset: int
    length: int


class Index:
    """An open index; made by `Index.open`."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path

    @classmethod
    def open(cls, path: str, wire: str, *, anew: bool = False) -> tuple[Self, str | None]:
        """Open the index of a wire, or begin one.

        Args:
            path: `WirePlaces.index_file`; its folder is made when missing.
            wire: the wire id.
            anew: move aside what is there; after a `Corrupt` of another method.

        Returns:
            The index, and a sentence for people when an old one was moved aside: it is empty then.

        Raises:
            Busy: somebody holds it for more than some seconds.
            DiskFull, StoreError: it cannot be made.
        """
        why = "it was found damaged in use" if anew else ""
        if not anew and os.path.exists(path):
            try:
                return cls._existing(path, wire), None
            except Corrupt as error:
                why = error.message
        with locked(f"{path}.lock", what="the index", timeout=_WAIT):
            if os.path.exists(path):
                if not anew:
                    # Somebody else may have been quicker to put a new one there.
                    with suppress(Corrupt):
                        return cls._existing(path, wire), None
                aside = move_aside(path)
                for suffix in _SIDE_FILES:
                    # A journal that stays behind would be played back into the new file.
                    if os.path.exists(path + suffix):
                        os.rename(path + suffix, aside + suffix)
                return cls._new(path, wire), f"the index was moved aside to {aside} and is rebuilt: {why}"
            return cls._new(path, wire), None

    @classmethod
    def _existing(cls, path: str, wire: str) -> Self:
        with _failures(path):
            connection = _connect(path)
            try:
                meta = dict(connection.execute("SELECT name, value FROM meta"))
                connection.execute(f"SELECT {', '.join(map(_quoted, Entry._fields))} FROM lines LIMIT 1").fetchone()  # noqa: S608 - our own column names
            except sqlite3.OperationalError as error:
                connection.close()
                if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:  # that one is: no such table, no such column
                    raise
                raise Corrupt(f"it is no index of ours ({error})", reason="index-corrupt") from error
            except BaseException:
                connection.close()
                raise
        if meta != {"version": str(VERSION), "wire": wire}:
            connection.close()
            raise Corrupt("it belongs to another version or another wire", reason="index-corrupt")
        return cls(connection, path)

    @classmethod
    def _new(cls, path: str, wire: str) -> Self:
        with _failures(path):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            connection = _connect(path)
            try:
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    for statement in _SCHEMA.split(";"):
                        connection.execute(statement)
                    connection.executemany(
                        "INSERT INTO meta VALUES (?, ?)", [("version", str(VERSION)), ("wire", wire)]
                    )
            except BaseException:
                connection.close()
                raise
        return cls(connection, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; nothing is pending, every `add` was whole."""
        self._connection.close()

    def add(self, entries: Iterable[Entry]) -> None:
        """Add lines, or replace those of the same channel and `seq`: all of them or none.

        Raises:
            Busy, Corrupt (`index-corrupt`), DiskFull, StoreError: none was added.
        """
        with _failures(self._path), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO lines VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", entries)

    def drop_after(self, channel: str, seq: int) -> None:
        """Forget the lines of a channel after `seq`."""
        with _failures(self._path), self._connection:
            self._connection.execute("DELETE FROM lines WHERE channel = ? AND seq > ?", (channel, seq))

    def locate(self, channel: str, seq: int) -> Spot | None:
        """Return where a line stands, or None when it is not known; the reader verifies what it finds there."""
        row = self._one('SELECT segment, "offset", length FROM lines WHERE channel = ? AND seq = ?', channel, seq)
        # Rows can be edited by hand, and SQLite keeps any type in any column.
        if row is None or not all(isinstance(number, int) for number in row):
            return None
        segment, offset, length = row
        return Spot(segment, offset, length) if segment >= 1 and offset >= 0 and length >= 1 else None

    def count(self, channel: str) -> int:
        """Return how many lines of a channel are known."""
        row = self._one("SELECT count(*) FROM lines WHERE channel = ?", channel)
        return int(row[0]) if row is not None else 0

    def last(self, channel: str) -> int:
        """Return the highest `seq` of a channel that is known; 0 for none."""
        row = self._one("SELECT max(seq) FROM lines WHERE channel = ?", channel)
        return row[0] if row is not None and isinstance(row[0], int) else 0

    def thread(self, root: str) -> list[tuple[str, int]]:
        """Return (channel, seq) of the lines that name `root` as their thread, by channel and number."""
        with _failures(self._path):
            return self._connection.execute(
                "SELECT channel, seq FROM lines WHERE thread = ? ORDER BY channel, seq", (root,)
            ).fetchall()

    def _one(self, statement: str, *values: str | int) -> tuple[Any, ...] | None:
        with _failures(self._path):
            row: tuple[Any, ...] | None = self._connection.execute(statement, values).fetchone()
            return row


def _quoted(name: str) -> str:
    return f'"{name}"'


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level="IMMEDIATE")
    # Bytes that are not UTF-8 in a text column would otherwise raise in the middle of a row.
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextmanager
def _failures(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if _is_busy(error):
            raise Busy(f"the index {path} is in use by another process", next_step="try again in a moment") from error
        if code == sqlite3.SQLITE_FULL:
            raise DiskFull(f"no space left: cannot write the index {path}") from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise Corrupt(f"the index {path} is damaged: {error}", reason="index-corrupt") from error
        raise StoreError(f"cannot use the index {path}: {error}") from error
    except OSError as error:
        raise StoreError(f"cannot use the index {path}: {error.strerror or error}") from error
