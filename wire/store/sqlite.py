"""Opening an SQLite file of ours, or beginning a new one where it is damaged or another's.

Such a file holds what can be made again from accepted lines. One that is damaged, of another version or of another wire
is moved aside with its side files, a new one takes its place, and the caller is told once.

    connection, note = open_file(path, {"version": "1", "wire": wire}, SCHEMA, what="the receipts")
    with failures(path, "the receipts"), connection:
        connection.execute(…)

What it does not do: keep what cannot be made again. That has a file of its own.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from wire.errors import Busy, Corrupt, DiskFull, StoreError
from wire.store.files import locked, move_aside

WAIT_SECONDS = 5.0
SIDE_FILES = ("-journal", "-wal", "-shm")


def open_file(
    path: str, meta: Mapping[str, str], schema: str, *, what: str, anew: bool = False
) -> tuple[sqlite3.Connection, str | None]:
    """Open the file at a path, or begin one.

    Args:
        path: the file; its folder exists.
        meta: what its table `meta` must say; a file that says otherwise is another's.
        schema: statements that make its tables, separated by semicolons.
        what: what it is, for messages ("the receipts").
        anew: move aside what is there; after a `Corrupt` of a later use.

    Returns:
        The connection, and a sentence for people when an old file was moved aside: it is empty then.

    Raises:
        Busy: somebody holds it for more than some seconds.
        DiskFull, StoreError: it cannot be made.
    """
    why = "it was found damaged in use" if anew else ""
    if not anew and os.path.exists(path):
        try:
            return existing(path, meta, what), None
        except Corrupt as error:
            why = error.message
    with locked(f"{path}.lock", what=what, timeout=WAIT_SECONDS):
        if not os.path.exists(path):
            return begin(path, meta, schema, what), None
        if not anew:
            # Somebody else may have been quicker to put a new one there.
            with suppress(Corrupt):
                return existing(path, meta, what), None
        aside = move_aside(path)
        for suffix in SIDE_FILES:
            # A journal that stays behind would be played back into the new file.
            if os.path.exists(path + suffix):
                os.rename(path + suffix, aside + suffix)
        return begin(path, meta, schema, what), f"{what} were moved aside to {aside} and are made anew: {why}"


@contextmanager
def failures(path: str, what: str) -> Iterator[None]:
    """Turn what SQLite raises into ours.

    Raises:
        Busy, Corrupt, DiskFull, StoreError: each with the file's name.
    """
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Busy(f"{what} in {path} are in use by another process", next_step="try again in a moment") from error
        if code == sqlite3.SQLITE_FULL:
            raise DiskFull(f"no space left: cannot write {what} in {path}") from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise Corrupt(f"{what} in {path} are damaged: {error}") from error
        raise StoreError(f"cannot use {what} in {path}: {error}") from error
    except OSError as error:
        raise StoreError(f"cannot use {what} in {path}: {error.strerror or error}") from error


def existing(path: str, meta: Mapping[str, str], what: str, *, probe: str = "") -> sqlite3.Connection:
    """Open a file that is there.

    Args:
        probe: one more statement that must hold for it to be ours.

    Raises:
        Busy, StoreError; Corrupt: it is damaged, or none of ours.
    """
    with failures(path, what):
        connection = _connect(path)
        try:
            said = dict(connection.execute("SELECT name, value FROM meta"))
            connection.execute(probe).fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:  # that one is: no such table, no such column
                raise
            raise Corrupt(f"it is no file of ours ({error})") from error
        except BaseException:
            connection.close()
            raise
    if said != meta:
        connection.close()
        raise Corrupt("it belongs to another version, or to another wire or agent")
    return connection


def begin(path: str, meta: Mapping[str, str], schema: str, what: str) -> sqlite3.Connection:
    """Make a file where there is none; raises as `open_file`."""
    with failures(path, what):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        connection = _connect(path)
        try:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                for statement in schema.split(";"):
                    connection.execute(statement)
                connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        except BaseException:
            connection.close()
            raise
    return connection


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level="IMMEDIATE")
    # Bytes that are not UTF-8 in a text column would otherwise raise in the middle of a row.
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    # It can be made again: a power cut may cost the newest rows, and no commit waits for the disk.
    connection.execute("PRAGMA synchronous = OFF")
    return connection
