"""What is known of the messages to and from this machine's agents: who has them, who read them, who answered.

Three kinds of records, in one SQLite file:

    lines      what our agents sent, and what others asked of them: number, head, times, what is asked
    answers    which line of whom answers which of them
    proofs     how far a recipient is proved to have come in a channel of ours, and since when that is known

Rules that it keeps: only what was accepted goes in, see `accounts`; a proof names a number and a head of our own
accepted line, so that it falls with the line; what was proved stays proved although its author says less later; the
whole can be thrown away and made again from the lines and the presences, but for the times at which something became
known.

    with Receipts.open(places, wire, ("mac",)) as receipts:
        receipts.reached("mac/spark", "spark", "read", 42)      when it was known, and by what

What it does not do: read lines or presences, or decide who the recipients are.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from wire.errors import Corrupt
from wire.protocol.chain import Position
from wire.store import sqlite
from wire.store.paths import WirePlaces

VERSION = "1"
FILE = "receipts.sqlite"
_WHAT = "the receipts"
_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE scanned (channel TEXT PRIMARY KEY, seq INTEGER NOT NULL, head TEXT NOT NULL, segment INTEGER NOT NULL,
    size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE lines (channel TEXT NOT NULL, seq INTEGER NOT NULL, head TEXT NOT NULL, ts TEXT NOT NULL,
    seen TEXT NOT NULL, type TEXT NOT NULL, trust INTEGER NOT NULL, priority TEXT NOT NULL, ack_required INTEGER NOT
    NULL, expires TEXT NOT NULL, subject TEXT NOT NULL, own INTEGER NOT NULL, asks INTEGER NOT NULL,
    PRIMARY KEY (channel, seq)) WITHOUT ROWID;
CREATE INDEX lines_asks ON lines (own) WHERE asks;
CREATE TABLE answers (channel TEXT NOT NULL, seq INTEGER NOT NULL, agent TEXT NOT NULL, answer TEXT NOT NULL,
    seen TEXT NOT NULL, PRIMARY KEY (channel, seq, agent)) WITHOUT ROWID;
CREATE TABLE proofs (channel TEXT NOT NULL, agent TEXT NOT NULL, state TEXT NOT NULL, seq INTEGER NOT NULL,
    head TEXT NOT NULL, known TEXT NOT NULL, how TEXT NOT NULL, PRIMARY KEY (channel, agent, state, seq)) WITHOUT ROWID
"""


class Kept(NamedTuple):
    """A line that is kept here.

    Attributes:
        seen: when this machine accepted it (UTC text), its `ts` where that is not known.
        trust: the trust version that it names, by which its recipients are decided.
        own: whether an agent of this machine wrote it.
    """

    channel: str
    seq: int
    head: str
    ts: str
    seen: str
    type: str
    trust: int
    priority: str = ""
    ack_required: bool = False
    expires: str = ""
    subject: str = ""
    own: bool = True

    @property
    def id(self) -> str:
        """The message's id."""
        return f"{self.channel}/{self.seq}"

    @property
    def sender(self) -> str:
        """Who wrote it."""
        return self.channel.partition("/")[0]

    @property
    def recipient(self) -> str:
        """The agent, group or `all` that it is for."""
        return self.channel.partition("/")[2]

    @property
    def asks(self) -> bool:
        """Whether somebody has to do something about it, or in time."""
        return self.ack_required or self.priority == "urgent" or self.type == "request" or self.expires != ""


class Known(NamedTuple):
    """Since when something is known (UTC text), and by what: `presence`, or the id of a line."""

    when: str
    how: str


class Answer(NamedTuple):
    """The first answer of an agent to a message: its id, and when this machine accepted it."""

    agent: str
    id: str
    seen: str


class Count(NamedTuple):
    """How many lines name a trust version, and the number of the first of them."""

    trust: int
    lines: int
    first: int


class Receipts:
    """The open file; made by `Receipts.open`, and one thread's alone."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path

    @classmethod
    def open(cls, places: WirePlaces, wire: str, agents: Iterable[str], *, anew: bool = False) -> Self:
        """Open the receipts of a wire for the agents of this machine; those of other agents are begun anew.

        Raises:
            Busy, DiskFull, StoreError: they cannot be used.
        """
        path = os.path.join(places.root, FILE)
        meta = {"version": VERSION, "wire": wire, "agents": " ".join(sorted(agents))}
        connection, _ = sqlite.open_file(path, meta, _SCHEMA, what=_WHAT, anew=anew)
        return cls(connection, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Do several writes as one, or none of them."""
        with self._failures(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    # How far the channels were taken in

    def scanned(self) -> dict[str, Position]:
        """Return up to where each channel was taken in."""
        rows = self._all("SELECT channel, seq, head, segment, size FROM scanned")
        return {channel: Position(seq, head, segment, size) for channel, seq, head, segment, size in rows}

    def set_scanned(self, channel: str, end: Position) -> None:
        """Note that a channel was taken in up to `end`."""
        self._do("INSERT OR REPLACE INTO scanned VALUES (?, ?, ?, ?, ?)", channel, *end)

    def forget(self, channel: str) -> None:
        """Forget everything of a channel of which accepted lines were taken back."""
        for table in ("scanned", "lines", "proofs"):
            self._do(f"DELETE FROM {table} WHERE channel = ?", channel)  # noqa: S608 - our own table names
        self._do("DELETE FROM answers WHERE answer LIKE ?", channel + "/%")

    # Writing

    def keep(self, line: Kept) -> None:
        """Keep a line."""
        self._do(f"INSERT OR REPLACE INTO lines VALUES ({', '.join('?' * 13)})", *line, line.asks)  # noqa: S608 - marks

    def answered(self, channel: str, seq: int, answer: Answer) -> None:
        """Note that a line answers a message; the first one of an agent counts."""
        self._do("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", channel, seq, *answer)

    def prove(self, channel: str, agent: str, state: str, seq: int, head: str, known: Known) -> bool:
        """Note that an agent is proved to have come to line `seq` with a state; return whether that was news."""
        last = self._all(
            "SELECT max(seq) FROM proofs WHERE channel = ? AND agent = ? AND state = ?", channel, agent, state
        )[0][0]
        if last is not None and last >= seq:
            return False
        self._do("INSERT INTO proofs VALUES (?, ?, ?, ?, ?, ?, ?)", channel, agent, state, seq, head, *known)
        return True

    # Reading

    def head_at(self, channel: str, seq: int) -> str | None:
        """Return the head of a line of ours, None when it is not known here."""
        rows = self._all("SELECT head FROM lines WHERE channel = ? AND seq = ? AND own", channel, seq)
        return rows[0][0] if rows else None

    def reached(self, channel: str, agent: str, state: str, seq: int) -> Known | None:
        """Return since when it is known that line `seq` has a state at an agent, None when it is not."""
        rows = self._all(
            "SELECT known, how FROM proofs WHERE channel = ? AND agent = ? AND state = ? AND seq >= ?"
            " ORDER BY seq LIMIT 1",
            channel, agent, state, seq,
        )  # fmt: skip
        return Known(*rows[0]) if rows else None

    def furthest(self, channel: str, agent: str, state: str) -> int:
        """Return up to which line an agent is proved to have come with a state; 0 for none."""
        rows = self._all(
            "SELECT max(seq) FROM proofs WHERE channel = ? AND agent = ? AND state = ?", channel, agent, state
        )
        return rows[0][0] or 0

    def answers(self, channel: str, seq: int) -> list[Answer]:
        """Return the answers to a message, by agent."""
        rows = self._all(
            "SELECT agent, answer, seen FROM answers WHERE channel = ? AND seq = ? ORDER BY agent", channel, seq
        )
        return [Answer(*row) for row in rows]

    def asks(self, *, own: bool) -> list[Kept]:
        """Return the messages that ask something, of our agents or of others, oldest first."""
        return self._kept("asks AND own = ? ORDER BY seen, channel, seq", own)

    def after(self, channel: str, seq: int, until: int) -> list[Kept]:
        """Return our lines of a channel behind `seq` and up to `until`, in order."""
        return self._kept("channel = ? AND seq > ? AND seq <= ? AND own ORDER BY seq", channel, seq, until)

    def count(self, channel: str, seq: int, until: int, without: Iterable[str]) -> list[Count]:
        """Return how many lines of ours stand behind `seq` and up to `until`, by the trust version that they name.

        Args:
            without: types that are not counted.
        """
        types = tuple(without)
        marks = ", ".join("?" for _ in types)
        rows = self._all(
            "SELECT trust, count(*), min(seq) FROM lines WHERE channel = ? AND seq > ? AND seq <= ? AND own"  # noqa: S608
            f" AND type NOT IN ({marks}) GROUP BY trust ORDER BY min(seq)",
            channel, seq, until, *types,
        )  # fmt: skip
        return [Count(*row) for row in rows]

    def ts_at(self, channel: str, seq: int) -> str:
        """Return the author's time of a line, empty when it is not known here."""
        rows = self._all("SELECT ts FROM lines WHERE channel = ? AND seq = ?", channel, seq)
        return rows[0][0] if rows else ""

    def channels(self) -> list[str]:
        """Return the channels of our agents in which something was sent."""
        return [row[0] for row in self._all("SELECT DISTINCT channel FROM lines WHERE own ORDER BY channel")]

    def _kept(self, where: str, *values: Any) -> list[Kept]:
        columns = ", ".join(Kept._fields)
        rows = self._all(f"SELECT {columns} FROM lines WHERE {where}", *values)  # noqa: S608 - our own words
        return [_kept(row) for row in rows]

    def _do(self, statement: str, *values: Any) -> None:
        with self._failures():
            self._connection.execute(statement, values)

    def _all(self, statement: str, *values: Any) -> Sequence[tuple[Any, ...]]:
        with self._failures():
            return self._connection.execute(statement, values).fetchall()

    def _failures(self) -> Any:
        return sqlite.failures(self._path, _WHAT)


def _kept(row: Sequence[Any]) -> Kept:
    *first, ack_required, expires, subject, own = row
    return Kept._make([*first, bool(ack_required), expires, subject, bool(own)])


@contextmanager
def opened(places: WirePlaces, wire: str, agents: Iterable[str]) -> Iterator[Receipts]:
    """Open the receipts for one use; those that are found damaged in it are moved aside, and the use fails.

    Raises:
        Corrupt: they were damaged; the next use begins with new ones.
        Busy, DiskFull, StoreError: they cannot be used.
    """
    agents = tuple(agents)
    with Receipts.open(places, wire, agents) as receipts:
        try:
            yield receipts
        except Corrupt:
            with Receipts.open(places, wire, agents, anew=True):
                raise
