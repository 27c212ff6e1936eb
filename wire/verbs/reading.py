"""Reading: accepted messages in order, from the clone's files, proved by the pin; no lock, no git, no network.

    reading = tail(here, Filters())
    for item in reading.items: show(item)
    reading.save()                              after the output was flushed, never before

    with claim(here, what="wire tail -f") as held: …    says whether another live process reads from the same place

See `wire.verbs.look` for what is shown, `wire.verbs.inbox` for what is unread, message by message.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from wire.errors import Busy, StoreError, UsageError
from wire.protocol.chain import Position
from wire.protocol.messages import valid_type
from wire.protocol.names import EVERYONE, parse_id
from wire.store import cursors, reading
from wire.store.cursors import DEFAULT_READER as DEFAULT_READER
from wire.store.files import lock_holder, locked
from wire.store.reading import Read
from wire.verbs.health import Health as Health
from wire.verbs.health import concerning as concerning
from wire.verbs.health import health
from wire.verbs.here import Here
from wire.verbs.look import SILENT, Look, concerns
from wire.verbs.look import Item as Item
from wire.verbs.order import merged


class Filters(NamedTuple):
    """Which messages are wanted; what is empty or None does not filter.

    Attributes:
        senders: only from these; each has a cursor of its own, so that reading one moves no other.
        since: only messages first seen at or after this (UTC text).
        re: only what answers this message.
    """

    senders: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    thread: str | None = None
    since: str | None = None
    re: str | None = None

    @property
    def by_content(self) -> bool:
        """Whether messages may be left out in the middle of a channel, so that a cursor must not pass them."""
        return bool(self.types or self.thread or self.since or self.re)

    def check(self) -> None:
        """Raise UsageError for an id or type that no message can have: nothing would ever fit it."""
        for one in (self.thread, self.re):
            if one is not None:
                parse_id(one)
        for one in self.types:
            if not valid_type(one):
                raise UsageError(f"{one[:40]!r} is no message type", reason="bad-type")


class Reading:
    """What `tail` found; `items` is read lazily, `health` is complete before it.

    Attributes:
        moves: whether `save` moves the reader's place.
        passed: how far each channel was read by what was taken from `items`.
    """

    def __init__(
        self,
        agent: str,
        items: Iterator[Item],
        health: Health,
        save: Callable[[Mapping[str, Position]], None] | None,
        passed: dict[str, Position],
    ) -> None:
        self.agent = agent
        self.items = items
        self.health = health
        self.moves = save is not None
        self.passed = passed
        self._save = save
        self._saved: dict[str, Position] = {}

    def save(self) -> None:
        """Move the cursor behind everything that was taken from `items`; call it after the output was flushed."""
        if self._save is not None and self.passed != self._saved:
            self._save(self.passed)
            self._saved = dict(self.passed)


def tail(
    here: Here,
    filters: Filters,
    *,
    count: int | None = None,
    everything: bool = False,
    peek: bool = False,
    reader: str | None = None,
    after: Mapping[str, Position] | None = None,
) -> Reading:
    """Return messages for the chosen agent: those behind its cursor, or the last `count`, or all.

    The cursor is moved by `Reading.save` alone, and only where nothing was left out: with a filter on content, a count,
    `everything` or `after`, it stays.

    Args:
        after: what `passed` of an earlier reading says: go on from there, where the cursor stayed behind.

    Raises:
        UsageError: no such wire, agent or sender.
        IdentityError, Corrupt: the pin is missing or damaged.
    """
    filters.check()
    agent, reader = here.agent(), here.reader(reader)
    pin = here.pin()
    channels = [
        channel
        for channel in pin.accepted
        if concerns(channel, agent, pin) and (not filters.senders or channel.partition("/")[0] in filters.senders)
    ]
    look = Look(here, pin)
    place = cursors.load(here.places.cursors_dir, agent, reader)
    lost = [f"the cursor was damaged: {place.why}"] if place.lost else []
    streams: list[Iterator[Read]] = []
    for channel in channels:
        if count is not None:
            streams.append(look.newest(channel, count))
            continue
        start = Position.start(pin.wire, channel)
        cursor = start if everything else place.positions.get(channel, start)
        cursor = (after or {}).get(channel, cursor)
        try:
            streams.append(look.after(channel, cursor))
        except reading.LostPlace as error:
            lost.append(str(error))
            streams.append(look.after(channel, start))
    passed: dict[str, Position] = {}
    stays = peek or everything or count is not None or filters.by_content or after is not None
    read = {} if everything or count is not None else place.beyond
    items = _items(look, merged(streams), filters, agent=agent, read=read, ends=passed)
    if count is not None:
        items = iter(list(items)[-count:] if count else [])
    # Opening the streams walked every segment, so damage and lost places are known before anything is shown.
    told = health(here, [f"{name}/{agent}" for name in filters.senders] or channels, lost, look.damaged)

    def save(positions: Mapping[str, Position]) -> None:
        cursors.save(here.places.cursors_dir, agent, reader, positions, rewind=bool(lost))

    return Reading(agent, items, told, None if stays else save, passed)


class Held(NamedTuple):
    """The claim of a live reader; `warning` says that another live process reads from the same place."""

    warning: str | None = None


@contextmanager
def claim(here: Here, *, reader: str | None = None, what: str) -> Iterator[Held]:
    """Say for the time of a reading that it is alive, and find out whether another one is.

    Two processes that read from one place take messages from each other: nothing is lost, and neither sees everything.
    The second is told, and goes on.

    Args:
        what: the command or surface that reads.
    """
    agent, name = here.agent(), here.reader(reader)
    folder = os.path.join(here.places.cursors_dir, f"{agent}.{name}.live")
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder, what=what, timeout=0))
            held = Held()
        except Busy:
            pid = lock_holder(folder)
            who = f"process {pid}" if pid is not None else "another process"
            held = Held(
                f"{who} reads from the same place (reader {name!r} of {agent}): what one of the two is shown, the "
                f"other is not; a session of its own reads with --reader NAME"
            )
        except StoreError:
            held = Held()  # a state folder that cannot be written must not keep anybody from reading
        yield held


def find(here: Here, message_id: str) -> Item:
    """Return one accepted message, one of our own that is only stored, or one that counts no longer (`revoked`).

    Raises:
        UsageError: reason `no-message`.
        IntegrityError: no copy holds the accepted bytes.
    """
    channel, seq = parse_id(message_id)
    pin = here.pin()
    look = Look(here, pin)
    found = look.at(channel, seq)
    if found is not None:
        return look.item(found)
    if (revoked := look.revoked(channel, seq)) is not None:
        return revoked
    last = look.end(channel).seq
    strange = [
        repr(name)
        for name in channel.split("/")
        if not last and name not in {*pin.names.agents, *pin.names.groups, EVERYONE}
    ]
    raise UsageError(
        f"there is no message {message_id} here; "
        + (f"{channel} ends with line {last}" if last else f"nothing of {channel} is here")
        + (f", and {' and '.join(strange)} is not in this machine's copy of the trust" if strange else ""),
        reason="no-message",
    )


def log(here: Here, *, count: int, channels: Sequence[str] = (), by_commit: bool = False) -> list[Item]:
    """Return the last `count` messages of the whole wire in causal order, or in the order of first sight.

    The causal order is the same on every machine: `seq` within a channel; across channels what a line names by `ack`,
    `re` or `thread` comes before it; ties by `ts`, then id. Messages that were revoked stand, marked, where their
    authors' times put them.
    """
    pin = here.pin()
    look = Look(here, pin)
    wanted = [channel for channel in pin.accepted if not channels or channel in channels]
    items = list(_items(look, merged([look.newest(channel, count) for channel in wanted]), Filters()))
    if by_commit:
        items.sort(key=lambda item: item.first_seen)
    else:
        items = _with_revoked(items, look.all_revoked(channels))
    return items[-count:]


def _with_revoked(items: list[Item], revoked: Sequence[Item]) -> list[Item]:
    """Put revoked messages in front of the first that is younger by its author's time."""
    for item in revoked:
        at = next((at for at, one in enumerate(items) if one.line.ts > item.line.ts), len(items))
        items = [*items[:at], item, *items[at:]]
    return items


def thread(here: Here, message_id: str) -> list[Item]:
    """Return one conversation in causal order: the root, everything that names it as its thread, and their answers.

    What was revoked of it stands in it, marked.

    Raises:
        UsageError: reason `no-message`.
    """
    root = find(here, message_id)
    root_id = str((root.members or {}).get("thread") or root.id)
    pin = here.pin()
    look = Look(here, pin)
    ids = {root_id}
    items = []
    streams = [look.after(channel, Position.start(pin.wire, channel)) for channel in pin.accepted]
    for read in merged(streams):
        if not any(f'"{one}"'.encode() in read.line.raw for one in ids) and read.line.id != root_id:
            continue
        item = look.item(read)
        members = item.members or {}
        if item.id == root_id or members.get("thread") == root_id or members.get("re") in ids:
            ids.add(item.id)
            items.append(item)
    about = [one for one in look.all_revoked() if not ids.isdisjoint(_named(one))]
    return _with_revoked(items, about)


def _named(item: Item) -> set[str]:
    members = item.members or {}
    return {item.id, str(members.get("thread")), str(members.get("re"))}


def _items(
    look: Look,
    reads: Iterable[Read],
    filters: Filters,
    *,
    agent: str | None = None,
    read: Mapping[str, Mapping[int, str]] | None = None,
    ends: dict[str, Position] | None = None,
) -> Iterator[Item]:
    """Yield what passes the filters.

    Args:
        agent: only what is for this one.
        read: lines that were read out of turn, which are no longer new.
        ends: takes how far each channel was read.
    """
    for one in reads:
        line = one.line
        known = (read or {}).get(line.channel, {}).get(line.seq) == line.head
        known = known or (agent is not None and line.type in SILENT - filters.types)
        if not known and (agent is None or look.is_for(line, agent)):
            item = look.item(one)
            if passes(item, filters):
                yield item
        if ends is not None:
            ends[line.channel] = one.after


def passes(item: Item, filters: Filters) -> bool:
    """Return whether a message is wanted; its sender is not asked for again."""
    if filters.types and item.line.type not in filters.types:
        return False
    if filters.since and item.first_seen < filters.since:
        return False
    if filters.re and (item.members or {}).get("re") != filters.re:
        return False
    return not filters.thread or filters.thread in (item.id, (item.members or {}).get("thread"))


def in_time(item: Item) -> tuple[str, str, int]:
    """Return what messages are sorted by for display: their authors' times, then channel and number."""
    return item.line.ts, item.line.channel, item.line.seq
