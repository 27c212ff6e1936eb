"""What is unread, message by message; and the place of a reader, which moves only over what was shown.

    box = unread(here, limit=20)                        looks; changes nothing
    digest = render.digest(box.items, 9000, agent=box.agent, total=box.total)
    print(digest.text); sys.stdout.flush()
    box.save(digest.shown)                              now these are read, and no others

Whatever puts messages in front of an agent (a hook, a tool, a command) works like that: hand over, flush, then `save`.
A crash in between shows them again. Messages may be read in any order: the place moves over what was read without a
gap, what was read out of turn is remembered beside it, and neither is unread again.

`read` is for messages by their ids. Nothing here touches git, waits for a lock while it looks, or needs a daemon; what
`Inbox.health` says stands beside every answer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from wire.protocol.chain import Position
from wire.store import cursors, reading
from wire.store.cursors import Cursors
from wire.store.reading import Read
from wire.verbs.health import Health, health
from wire.verbs.here import Here
from wire.verbs.look import SILENT, Item, Look, concerns
from wire.verbs.order import merged
from wire.verbs.reading import Filters, find, passes

LIMIT = 200
"""Messages that are held at once; the rest is counted."""


class Inbox(NamedTuple):
    """What one reader has not seen.

    Attributes:
        items: oldest first, at most as many as were asked for.
        total: how many there are.
        senders: how many from each.
        health: how far this can be trusted.
        walked: what `save` needs.
    """

    agent: str
    wire: str
    reader: str
    items: tuple[Item, ...]
    total: int
    senders: Mapping[str, int]
    health: Health
    walked: "Walked"

    @property
    def left(self) -> int:
        """How many messages are not in `items`."""
        return self.total - len(self.items)

    def save(self, shown: Iterable[Item] | None = None) -> None:
        """Take messages as read; call it after they were handed over and flushed.

        Args:
            shown: those of `items` that were shown; all of them when omitted.

        Raises:
            Busy, DiskFull, StoreError: it was not noted, and they will be shown again.
        """
        self.walked.save(self.items if shown is None else tuple(shown))


class Passed(NamedTuple):
    """A line that was walked over: its end, and whether it needs no reading, see `_is_done`."""

    after: Position
    done: bool


class Walked(NamedTuple):
    """The lines behind a cursor, as far as they were kept."""

    here: Here
    agent: str
    reader: str
    lines: dict[str, list[Passed]]
    rewind: bool

    def save(self, shown: Sequence[Item]) -> None:
        """Move the place over what was shown without a gap, and remember what was shown beyond one."""
        heads = {item.line.head for item in shown}
        ends: dict[str, Position] = {}
        beyond: dict[str, dict[int, str]] = {}
        for channel, passed in self.lines.items():
            whole = True
            for after, done in passed:
                shown_now = after.head in heads
                whole = whole and (done or shown_now)
                if whole:
                    ends[channel] = after
                elif shown_now:
                    beyond.setdefault(channel, {})[after.seq] = after.head
        if ends or beyond:
            cursors.save(self.here.places.cursors_dir, self.agent, self.reader, ends, beyond=beyond, rewind=self.rewind)


def unread(
    here: Here,
    filters: Filters | None = None,
    *,
    reader: str | None = None,
    limit: int = LIMIT,
) -> Inbox:
    """Return what a reader of the chosen agent has not seen; nothing is changed by looking.

    Args:
        filters: which messages are wanted; others stay unread.
        reader: the place that counts; see `Here.reader`.
        limit: how many messages to hold.

    Raises:
        UsageError: no such wire or agent.
        IdentityError, Corrupt: the pin is missing or damaged.
        IntegrityError: no copy holds the accepted bytes.
    """
    agent, reader = here.agent(), here.reader(reader)
    wanted = filters or Filters()
    wanted.check()
    look = Look(here, here.pin())
    place = cursors.load(here.places.cursors_dir, agent, reader)
    lost = [f"the cursor was damaged: {place.why}"] if place.lost else []
    channels = [channel for channel in look.pin.accepted if concerns(channel, agent, look.pin)]
    streams = [_behind(look, channel, place, lost) for channel in channels]
    lines: dict[str, list[Passed]] = {}
    items: list[Item] = []
    senders: dict[str, int] = {}
    for one in merged(streams):
        line = one.line
        done = _is_done(look, place, one, agent)
        if len(items) < limit:
            lines.setdefault(line.channel, []).append(Passed(one.after, done))
        if done or (wanted.senders and line.sender not in wanted.senders):
            continue
        # Beyond the limit a message is only counted, without a look at what it says unless that is asked for.
        if len(items) < limit or wanted.by_content:
            item = look.item(one)
            if not passes(item, wanted):
                continue
            if len(items) < limit:
                items.append(item)
        senders[line.sender] = senders.get(line.sender, 0) + 1
    concerned = [channel for channel in channels if not wanted.senders or channel.partition("/")[0] in wanted.senders]
    told = health(here, concerned, lost, look.damaged)
    walked = Walked(here, agent, reader, lines, bool(lost))
    return Inbox(agent, here.config.name, reader, tuple(items), sum(senders.values()), senders, told, walked)


class Picked(NamedTuple):
    """Messages that were asked for by their ids, in that order; `save` takes them as read, as `Inbox.save` does."""

    items: tuple[Item, ...]
    health: Health
    walked: Walked

    def save(self) -> None:
        """Take those as read that are for this agent; call it after they were handed over and flushed."""
        self.walked.save(self.items)


def read(here: Here, ids: Sequence[str], *, reader: str | None = None) -> Picked:
    """Return messages by their ids; also our own, and those for others, for which no place moves.

    Raises:
        UsageError: reason `no-message`: one of them is not here; nothing was read.
        IntegrityError: no copy holds the accepted bytes.
    """
    agent, reader = here.agent(), here.reader(reader)
    items = tuple(find(here, one) for one in dict.fromkeys(ids))
    look = Look(here, here.pin())
    place = cursors.load(here.places.cursors_dir, agent, reader)
    lost = [f"the cursor was damaged: {place.why}"] if place.lost else []
    last: dict[str, int] = {}
    for item in items:
        channel = item.line.channel
        if concerns(channel, agent, look.pin):
            last[channel] = max(item.line.seq, last.get(channel, 0))
    lines: dict[str, list[Passed]] = {}
    for channel, seq in last.items():
        for one in _behind(look, channel, place, lost):
            done = _is_done(look, place, one, agent)
            if one.line.seq > seq and not done:
                break
            lines.setdefault(channel, []).append(Passed(one.after, done))
    told = health(here, list(last), lost, look.damaged)
    return Picked(items, told, Walked(here, agent, reader, lines, bool(lost)))


def _behind(look: Look, channel: str, place: Cursors, lost: list[str]) -> Iterator[Read]:
    """Return the lines behind a reader's place, all of them where that place was lost."""
    start = Position.start(look.pin.wire, channel)
    try:
        return look.after(channel, place.positions.get(channel, start))
    except reading.LostPlace as error:
        lost.append(str(error))
        return look.after(channel, start)


def _is_done(look: Look, place: Cursors, one: Read, agent: str) -> bool:
    """Return whether a line needs no reading: it was read before, it is silent, or it is not for the agent."""
    line = one.line
    if line.type in SILENT:
        return True
    return place.beyond.get(line.channel, {}).get(line.seq) == line.head or not look.is_for(line, agent)
