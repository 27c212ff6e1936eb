"""Searching: accepted messages that hold some text, each proved before it is shown.

    found = search(here, ["parser branch", "review"])
    for item in found.items: show(item)

A message is found when every text that was asked for stands in its subject, body or refs, wherever, in any case. The
text index only makes that faster: it is filled here, up to what is accepted, and each line that it names is read from
the accepted chain and looked at again. Where the index cannot be used, everything is read instead; what is found is the
same. Closed letters are opened for each search, since nothing of what they say is written down.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wire.errors import Busy, Corrupt, StoreError, UsageError
from wire.protocol.chain import Position
from wire.protocol.line import Line, LineError, content
from wire.store import reading
from wire.store.files import locked
from wire.store.reading import Read
from wire.store.textindex import NOT_AS_LEFT, Candidate, Row, TextIndex, fold
from wire.verbs.health import Health, health
from wire.verbs.here import Here
from wire.verbs.look import Item, Look
from wire.verbs.reading import Filters, in_time, passes
from wire.verbs.render import body_text

_LOCK_SECONDS = 5.0
_BATCH = 2000


class Searched(NamedTuple):
    """What a search found.

    Attributes:
        items: the newest matches, oldest first.
        more: whether there are older ones.
        health: how far this can be trusted.
        notes: what people should know: an index that was made anew, or could not be used.
    """

    items: tuple[Item, ...]
    more: bool
    health: Health
    notes: tuple[str, ...]


def search(here: Here, texts: Sequence[str], filters: Filters | None = None, *, count: int = 20) -> Searched:
    """Return the newest messages of the whole wire in which all texts stand.

    Args:
        texts: each is looked for as it is, blanks included.
        filters: which messages are wanted besides.
        count: how many at most.

    Raises:
        UsageError: nothing was asked for.
        IntegrityError: no copy holds the accepted bytes.
    """
    needles = [folded for text in texts if (folded := fold(text))]
    if not needles:
        raise UsageError("say what to look for: wire search TEXT", reason="usage", next_step="wire search --help")
    wanted = filters or Filters()
    wanted.check()
    look = Look(here, here.pin())
    hunt = _Hunt(look, needles, wanted, count + 1)
    notes: list[str] = []
    if not _by_index(here, look, hunt, notes):
        hunt.found.clear()
        hunt.everything()
    newest = sorted(hunt.found, key=in_time)[-(count + 1) :]
    items = tuple(newest[-count:])
    told = health(here, sorted(look.pin.accepted), (), look.damaged)
    return Searched(items, len(newest) > count, told, tuple(notes))


class _Hunt:
    """The matches, as they are found."""

    def __init__(self, look: Look, needles: Sequence[str], filters: Filters, enough: int) -> None:
        self._look = look
        self.needles = needles
        self._filters = filters
        self.enough = enough
        self.found: list[Item] = []

    def everything(self) -> None:
        """Look at every accepted line."""
        for channel in self._look.pin.accepted:
            for one in self._look.after(channel, Position.start(self._look.pin.wire, channel)):
                self.take(one)

    def take(self, one: Read) -> None:
        """Look at one line."""
        if self._filters.senders and one.line.sender not in self._filters.senders:
            return
        item = None
        text, sealed = _text(one.line)
        if sealed:
            item = self._look.item(one)
            text = _folded(item.members or {})
        if all(needle in text for needle in self.needles):
            item = item or self._look.item(one)
            if passes(item, self._filters):
                self.found.append(item)

    def follow(self, candidates: Iterator[Candidate]) -> None:
        """Read and look at what an index names, until enough is found.

        Raises:
            Corrupt: it names a line that is not accepted.
        """
        size = 2 * self.enough
        while len(self.found) < self.enough:
            named = [candidate for _, candidate in zip(range(size), candidates, strict=False)]
            if not named:
                return
            wanted: dict[str, dict[int, str]] = {}
            for channel, seq, head in named:
                wanted.setdefault(channel, {})[seq] = head
            for channel, heads in wanted.items():
                self._follow_in(channel, heads)
            size = min(2 * size, 4096)

    def _follow_in(self, channel: str, heads: Mapping[int, str]) -> None:
        end = self._look.end(channel)
        if not all(1 <= seq <= end.seq for seq in heads):
            raise Corrupt(f"the text index names lines that {channel} does not have", reason="index-corrupt")
        for one in self._look.newest(channel, end.seq - min(heads) + 1):
            head = heads.get(one.line.seq)
            if head is None:
                continue
            if head != one.line.head:
                raise Corrupt(f"the text index names another line as {one.line.id}", reason="index-corrupt")
            self.take(one)


def _by_index(here: Here, look: Look, hunt: _Hunt, notes: list[str]) -> bool:
    """Search by the index, which is brought up to date first; return False where it cannot be used."""
    path, wire = here.places.text_index_file, look.pin.wire
    try:
        with locked(f"{path}.lock", what="the text index", timeout=_LOCK_SECONDS):
            index, note = TextIndex.open(path, wire)
            notes += [note] if note is not None else []
            try:
                with index:
                    _fill(look, index)
                    hunt.follow(index.candidates(hunt.needles))
                return True
            except reading.LostPlace:
                pass  # lines were cut, and others may have come in their places
            except Corrupt:
                notes.append(NOT_AS_LEFT)
            hunt.found.clear()
            with TextIndex.open(path, wire, anew=True)[0] as index:
                _fill(look, index)
                hunt.follow(index.candidates(hunt.needles))
            return True
    except (Busy, StoreError) as error:
        notes.append(f"the text index could not be used, so that everything was read: {error.message}")
        return False


def _fill(look: Look, index: TextIndex) -> None:
    """Index what was accepted since; raises LostPlace where something that is indexed no longer counts."""
    ends = index.ends()
    for channel, end in look.pin.accepted.items():
        start = Position.start(look.pin.wire, channel)
        if channel in ends:
            start = Position(*ends[channel], start.segment, start.size)
        if (start.seq, start.head) == (end.seq, end.head):
            continue
        rows: list[Row] = []
        for one in look.after(channel, start):
            rows.append(Row(one.line.seq, one.line.head, one.line.ts, *_text(one.line)))
            if len(rows) == _BATCH:
                index.add(channel, rows)
                rows = []
        index.add(channel, rows)


def _text(line: Line) -> tuple[str, bool]:
    """Return the folded text that stands open in a line, empty where it is unlawful, and whether it is closed."""
    try:
        members = content(line)
    except LineError:
        return "", False
    return _folded(members), "enc" in members


def _folded(members: Mapping[str, Any]) -> str:
    return fold("\n".join([members.get("subject", ""), body_text(members, compact=True), *members.get("refs", ())]))
