"""The text index: which accepted lines may hold some text, in SQLite's FTS5. A hint, and never the truth.

Rules that it keeps: it is filled by whoever searches, from accepted lines alone, so that nobody else pays for it; it
holds the threes of characters of folded text, not the text, and nothing of what a closed letter says: those are named
for every search, and the searcher opens them. It names lines by number and head, and the searcher reads and proves
them before anything is shown. A file that is not byte for byte what was left here is thrown away and made
anew: an edited one would else hide what it no longer points to.

    index, note = TextIndex.open(path, wire)
    with index:
        index.add("mac/spark", [Row(1, head, ts, "hello")])
        list(index.candidates(["ello"]))        newest first

What it does not do: read lines, decide whether one matches, or lock: the caller holds the lock for all of it.
"""

import hashlib
import os
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Self

from wire.errors import Corrupt, StoreError
from wire.store.files import atomic_write, read_bytes
from wire.store.sqlite import SIDE_FILES, begin, existing, failures

VERSION = "2"
_WHAT = "the text index's entries"
NOT_AS_LEFT = "the text index was not as it was left (damaged, edited, or a search was killed); it was made anew"
_GRAM = 3
_GRAMS_ASKED = 24
_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE lines (id INTEGER PRIMARY KEY, channel TEXT NOT NULL, seq INTEGER NOT NULL, head TEXT NOT NULL,
    ts TEXT NOT NULL, sealed INTEGER NOT NULL);
CREATE INDEX lines_sealed ON lines (id) WHERE sealed;
CREATE UNIQUE INDEX lines_place ON lines (channel, seq);
CREATE VIRTUAL TABLE texts USING fts5(text, content='', detail=none, columnsize=0, tokenize='trigram case_sensitive 1');
"""
_PROBE = "SELECT rowid FROM texts WHERE texts MATCH '\"abc\"' LIMIT 1"


class Row(NamedTuple):
    """An accepted line as it is indexed: number, head, its author's time, its folded text, and whether it is closed."""

    seq: int
    head: str
    ts: str
    text: str
    sealed: bool = False


class Candidate(NamedTuple):
    """A line that may match."""

    channel: str
    seq: int
    head: str


def fold(text: str) -> str:
    """Return text in the form in which it is compared: case and spelling of characters make no difference."""
    plain = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", plain).casefold())


class TextIndex:
    """An open text index; made by `TextIndex.open`."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._changed = False

    @classmethod
    def open(cls, path: str, wire: str, *, anew: bool = False) -> tuple[Self, str | None]:
        """Open the index of a wire, or begin one.

        Args:
            path: `WirePlaces.text_index_file`.
            wire: the wire id.
            anew: throw away what is there.

        Returns:
            The index, and a sentence for people when one was found that is not as it was left.

        Raises:
            Busy, DiskFull, StoreError: it cannot be made, or this SQLite has no such index.
        """
        if anew or not os.path.lexists(path):
            return cls._new(path, wire), None
        if _is_sealed(path):
            with suppress(Corrupt):
                return cls(existing(path, _meta(wire), _WHAT, probe=_PROBE), path), None
        return cls._new(path, wire), NOT_AS_LEFT

    @classmethod
    def _new(cls, path: str, wire: str) -> Self:
        for name in (path, *(path + suffix for suffix in SIDE_FILES)):
            # A journal that stays behind would be played back into the new file.
            with failures(path, _WHAT), suppress(FileNotFoundError):
                os.unlink(name)
        index = cls(begin(path, _meta(wire), _SCHEMA, _WHAT), path)
        index._changed = True
        return index

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it, and note what the file holds now."""
        self._connection.close()
        if self._changed:
            atomic_write(_seal_of(self._path), _digest(self._path).encode("ascii"), durable=False)

    def ends(self) -> Mapping[str, tuple[int, str]]:
        """Return number and head of the last line of each channel that is indexed.

        Raises:
            Corrupt: lines are missing before it.
        """
        with failures(self._path, _WHAT):
            rows = self._connection.execute(
                "SELECT channel, count(*), max(seq), (SELECT head FROM lines AS l WHERE l.channel = lines.channel "
                "ORDER BY seq DESC LIMIT 1) FROM lines GROUP BY channel"
            ).fetchall()
        if any(count != last or not isinstance(head, str) for _, count, last, head in rows):
            raise Corrupt(f"the text index {self._path} lacks lines", reason="index-corrupt")
        return {channel: (last, head) for channel, _, last, head in rows}

    def add(self, channel: str, rows: Iterable[Row]) -> None:
        """Add lines of a channel that follow those which are there, all or none.

        Raises:
            Busy, Corrupt, DiskFull, StoreError: none was added.
        """
        self._changed = True
        with failures(self._path, _WHAT), self._connection:
            for seq, head, ts, text, sealed in rows:
                added = self._connection.execute(
                    "INSERT INTO lines (channel, seq, head, ts, sealed) VALUES (?, ?, ?, ?, ?)",
                    (channel, seq, head, ts, int(sealed)),
                )
                if text:
                    self._connection.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (added.lastrowid, text))

    def candidates(self, needles: Sequence[str]) -> Iterator[Candidate]:
        """Yield the lines that may hold all of these folded texts, by their authors' times, the newest first.

        Every line that does hold them is among them, and every closed letter.
        """
        grams = [gram for needle in needles for gram in _grams(needle)]
        with failures(self._path, _WHAT):
            if grams:
                asked = " AND ".join('"' + gram.replace('"', '""') + '"' for gram in dict.fromkeys(grams))
                found = self._connection.execute(
                    "SELECT channel, seq, head FROM lines WHERE id IN (SELECT rowid FROM texts WHERE texts MATCH ?) "
                    "OR sealed ORDER BY ts DESC, id DESC",
                    (asked,),
                )
            else:
                found = self._connection.execute("SELECT channel, seq, head FROM lines ORDER BY ts DESC, id DESC")
            while rows := found.fetchmany(256):
                yield from (Candidate(*row) for row in rows if isinstance(row[1], int))


def _meta(wire: str) -> dict[str, str]:
    return {"version": VERSION, "wire": wire}


def _grams(needle: str) -> list[str]:
    """Return threes of characters that a text with this needle has; of a long one, some from all over it."""
    all_of_them = [needle[at : at + _GRAM] for at in range(len(needle) - _GRAM + 1)]
    step = max(1, -(-len(all_of_them) // _GRAMS_ASKED))
    return all_of_them[::step]


def _seal_of(path: str) -> str:
    return f"{path}.sum"


def _is_sealed(path: str) -> bool:
    """Return whether the file is what was left when it was last closed."""
    if any(os.path.exists(path + suffix) for suffix in SIDE_FILES):
        return False
    return read_bytes(_seal_of(path)) == _digest(path).encode("ascii")


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"cannot read the text index {path}: {error.strerror or error}") from error
