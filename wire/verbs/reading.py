"""Reading: accepted messages, from the clone's files, proved by the pin; no lock, no git, no network.

    reading = tail(here, Filters())
    for item in reading.items: show(item)
    reading.save(shown)                         after the output was flushed, never before

What a reader is shown is what was accepted: the pin's heads vouch for every byte, and neither the clone's files nor the
index can change it. Where a clone's file is damaged, the copy that git holds is read instead.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wire.errors import UsageError
from wire.protocol.chain import Position
from wire.protocol.line import Line, LineError, content
from wire.protocol.names import parse_id, split_channel
from wire.store import cursors, reading
from wire.store.cursors import DEFAULT_READER
from wire.store.pin import Pin
from wire.store.progress import Progress
from wire.store.reading import CloneSource, Read, Source
from wire.verbs.here import Here
from wire.verbs.order import merged, seconds_of
from wire.verbs.states import state_of

if TYPE_CHECKING:
    from wire.store.incidents import Incident
    from wire.store.seen import Seen

CLOCK_TOLERANCE_SECONDS = 120.0
"""How far ahead of our first sight an author's clock may be before the message is flagged."""


class Item(NamedTuple):
    """One accepted message, as it is shown.

    Attributes:
        members: the line's members, or None when its content is unlawful.
        why: why it cannot be read.
        verdict: `verified`, or `unreadable`: its place is proved and its content cannot be shown.
        state: for our own what is proved of it, for others' `delivered`.
        flags: `clock-ahead`, `trust-ahead`.
        first_seen: when this machine accepted it (UTC text), empty when that is not known.
        commit: the remote's commit that first carried it here, empty for our own before the push.
    """

    line: Line
    members: Mapping[str, Any] | None
    why: str
    verdict: str
    state: str
    flags: tuple[str, ...]
    first_seen: str
    commit: str

    @property
    def id(self) -> str:
        """The message's id."""
        return self.line.id


class Filters(NamedTuple):
    """Which messages are wanted; what is empty or None does not filter.

    Attributes:
        senders: only from these; each has a cursor of its own, so that reading one moves no other.
        since: only messages first seen at or after this (UTC text).
    """

    senders: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    thread: str | None = None
    since: str | None = None

    @property
    def by_content(self) -> bool:
        """Whether messages may be left out in the middle of a channel, so that a cursor must not pass them."""
        return bool(self.types or self.thread or self.since)


class Health(NamedTuple):
    """What a reader has to know beside the messages.

    Attributes:
        age: seconds since the last successful fetch, None for never.
        looked: whether that is recent enough to say "nothing new".
        concerning: open incidents about what was asked.
        lost: channels in which the reader's place was lost, with the reason; they are read from the beginning again.
        damaged: clone files that do not hold the accepted bytes; another copy was read.
    """

    age: float | None
    looked: bool
    concerning: "tuple[Incident, ...]" = ()
    lost: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


class Reading:
    """What `tail` found; `items` is read lazily, `health` is complete before it."""

    def __init__(
        self,
        agent: str,
        items: Iterator[Item],
        health: Health,
        save: Callable[[Mapping[str, Position]], None],
        ends: dict[str, Position],
    ) -> None:
        self.agent = agent
        self.items = items
        self.health = health
        self._save = save
        self._ends = ends

    def save(self) -> None:
        """Move the cursor behind everything that was taken from `items`; call it after the output was flushed."""
        if self._ends:
            self._save(self._ends)
            self._ends.clear()


def tail(
    here: Here,
    filters: Filters,
    *,
    count: int | None = None,
    everything: bool = False,
    peek: bool = False,
    reader: str = DEFAULT_READER,
) -> Reading:
    """Return messages for the chosen agent: those behind its cursor, or the last `count`, or all.

    The cursor is moved by `Reading.save` alone, and only where nothing was left out: with a filter on content, a count
    or `everything`, it stays.

    Raises:
        UsageError: no such wire, agent or sender.
        IdentityError, Corrupt: the pin is missing or damaged.
    """
    agent = here.agent()
    pin = here.pin()
    channels = [
        channel
        for channel in pin.accepted
        if _concerns(channel, agent, pin) and (not filters.senders or channel.partition("/")[0] in filters.senders)
    ]
    damaged: list[str] = []
    look = _Look(here, pin, damaged)
    place = cursors.load(here.places.cursors_dir, agent, reader)
    lost = [f"the cursor was damaged: {place.why}"] if place.lost else []
    streams: list[Iterator[Read]] = []
    for channel in channels:
        if count is not None:
            streams.append(look.newest(channel, count))
            continue
        start = Position.start(pin.wire, channel)
        cursor = start if everything else place.positions.get(channel, start)
        try:
            streams.append(look.after(channel, cursor))
        except reading.LostPlace as error:
            lost.append(str(error))
            streams.append(look.after(channel, start))
    ends: dict[str, Position] = {}
    keeps = peek or everything or count is not None or filters.by_content
    items = look.items(merged(streams), agent, filters, None if keeps else ends)
    if count is not None:
        items = iter(list(items)[-count:] if count else [])
    # Opening the streams walked every segment, so damage and lost places are known before anything is shown.
    health = _health(here, [f"{name}/{agent}" for name in filters.senders] or channels, lost, damaged)

    def save(positions: Mapping[str, Position]) -> None:
        cursors.save(here.places.cursors_dir, agent, reader, positions, rewind=bool(lost))

    return Reading(agent, items, health, save, ends)


def find(here: Here, message_id: str) -> Item:
    """Return one accepted message, or one of our own that is only stored.

    Raises:
        UsageError: reason `no-message`.
        IntegrityError: no copy holds the accepted bytes.
    """
    channel, seq = parse_id(message_id)
    pin = here.pin()
    look = _Look(here, pin, [])
    found = look.at(channel, seq)
    if found is None:
        raise UsageError(
            f"there is no message {message_id} here; {channel} ends with line {look.end(channel).seq}",
            reason="no-message",
        )
    return look.item(found)


def concerning(here: Here, channels: Sequence[str]) -> "tuple[Incident, ...]":
    """Return the open incidents about bytes that do not hold in these channels or in the whole wire, oldest first."""
    directory = here.places.incidents_dir
    try:
        if not any(name.endswith(".json") for name in os.listdir(directory)):
            return ()
    except FileNotFoundError:
        return ()
    except OSError:
        pass  # whoever reads the records says what is wrong
    from wire.store import incidents  # where there are none, that is not worth its import

    return tuple(incidents.concerning(directory, channels))


def log(here: Here, *, count: int, channels: Sequence[str] = (), by_commit: bool = False) -> list[Item]:
    """Return the last `count` messages of the whole wire in causal order, or in the order of first sight.

    The causal order is the same on every machine: `seq` within a channel; across channels what a line names by `ack`,
    `re` or `thread` comes before it; ties by `ts`, then id.
    """
    pin = here.pin()
    look = _Look(here, pin, [])
    wanted = [channel for channel in pin.accepted if not channels or channel in channels]
    items = list(look.items(merged([look.newest(channel, count) for channel in wanted]), None, Filters(), None))
    if by_commit:
        items.sort(key=lambda item: item.first_seen)
    return items[-count:]


def thread(here: Here, message_id: str) -> list[Item]:
    """Return one conversation in causal order: the root, everything that names it as its thread, and their answers.

    Raises:
        UsageError: reason `no-message`.
    """
    root = find(here, message_id)
    root_id = str((root.members or {}).get("thread") or root.id)
    pin = here.pin()
    look = _Look(here, pin, [])
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
    return items


class _Look:
    """One look at what is accepted, by one pin."""

    def __init__(self, here: Here, pin: Pin, damaged: list[str]) -> None:
        self._here = here
        self._pin = pin
        self._damaged = damaged
        self._seen: Seen | None = None

    def end(self, channel: str) -> Position:
        return self._pin.accepted.get(channel) or Position.start(self._pin.wire, channel)

    def after(self, channel: str, cursor: Position) -> Iterator[Read]:
        end = self.end(channel)
        if cursor.seq == end.seq and cursor.head == end.head:
            return iter(())
        return reading.lines_after(
            self._sources(channel), self._pin.wire, channel, accepted=end, cursor=cursor, on_damage=self._note
        )

    def newest(self, channel: str, count: int) -> Iterator[Read]:
        return reading.newest(
            self._sources(channel), self._pin.wire, channel, count, accepted=self.end(channel), on_damage=self._note
        )

    def at(self, channel: str, seq: int) -> Read | None:
        end = self.end(channel)
        if seq > end.seq and channel.partition("/")[0] in self._here.config.agents:
            return self._stored(channel, seq, end)
        return reading.line_at(self._sources(channel), self._pin.wire, channel, seq, accepted=end, on_damage=self._note)

    def items(
        self, reads: Iterable[Read], agent: str | None, filters: Filters, ends: dict[str, Position] | None
    ) -> Iterator[Item]:
        """Yield what passes the filters; note in `ends` how far each channel was read."""
        for read in reads:
            line = read.line
            if agent is None or self._is_for(line, agent):
                item = self.item(read)
                if _passes(item, filters):
                    yield item
            if ends is not None:
                ends[line.channel] = read.after

    def item(self, read: Read) -> Item:
        line = read.line
        why = ""
        members: Mapping[str, Any] | None
        try:
            members = content(line)
        except LineError as error:
            members, why = None, str(error)
        if self._seen is None:
            from wire.store.seen import Seen  # only who has something to show looks it up

            self._seen = Seen(self._here.places.seen_file)
        seen = self._seen.lookup(line.channel, line.seq)
        flags = []
        if seen is not None and seconds_of(line.ts) > seconds_of(seen.time) + CLOCK_TOLERANCE_SECONDS:
            flags.append("clock-ahead")
        if line.trust_version > self._pin.trust_version:
            flags.append("trust-ahead")
        own = line.sender in self._here.config.agents
        return Item(
            line,
            members,
            why,
            "unreadable" if members is None else "verified",
            state_of(self._pin, line.channel, line.seq) if own else "delivered",
            tuple(flags),
            seen.time if seen is not None else "",
            seen.commit if seen is not None else "",
        )

    def _stored(self, channel: str, seq: int, end: Position) -> Read | None:
        from wire.store import journal

        position = end
        for raw in journal.read_lines(self._here.places, channel, end):
            from wire.protocol.line import parse

            line = parse(raw)
            position = position.after(len(raw) + 1, line.head)
            if line.seq == seq:
                return Read(line, position)
        return None

    def _sources(self, channel: str) -> list[Source]:
        clone = CloneSource(self._here.places.coordination, channel)
        return [clone, _GitSource(self._here, self._pin, channel)]

    def _note(self, damage: reading.Damage) -> None:
        self._damaged.append(f"{damage.name}, byte {damage.offset}: {damage.why}")

    def _is_for(self, line: Line, agent: str) -> bool:
        """A line to a group or to all is for those who belonged to it at the trust version that the line names."""
        if line.recipient == agent:
            return True
        if line.sender == agent:
            return False
        if line.trust_version == self._pin.trust_version:
            names = self._pin.names
            return agent in (names.agents if line.recipient == "all" else names.groups.get(line.recipient, ()))
        from wire.store import trustfiles

        chain = trustfiles.read(self._here.places.trust_dir)
        return agent in chain.members(line.recipient, line.trust_version)


class _GitSource(NamedTuple):
    """The accepted bytes as git holds them, for when a clone's file does not."""

    here: Here
    pin: Pin
    channel: str

    def read(self, segment: int) -> bytes | None:
        from wire.daemon.site import Site
        from wire.gitio import GitFailed

        if self.pin.accepted_commit is None:
            return None
        site = Site.open(self.here.settings, self.here.config)
        try:
            return site.accepted(self.pin).segment(self.channel, segment)
        except GitFailed:
            return None

    def name(self, segment: int) -> str:
        return f"refs/wire/accepted:{self.channel}/{segment:06d}.jsonl"


def _concerns(channel: str, agent: str, pin: Pin) -> bool:
    sender, recipient = split_channel(channel)
    return sender != agent and (recipient == agent or recipient not in pin.names.agents)


def _passes(item: Item, filters: Filters) -> bool:
    if filters.types and item.line.type not in filters.types:
        return False
    if filters.since and item.first_seen < filters.since:
        return False
    return not filters.thread or filters.thread in (item.id, (item.members or {}).get("thread"))


def _health(here: Here, channels: Sequence[str], lost: Sequence[str], damaged: Sequence[str]) -> Health:
    progress = Progress.load(here.places)
    age = progress.fetch_age(time.time())
    return Health(
        age,
        progress.looked(time.time()),
        concerning(here, channels),
        tuple(lost),
        tuple(dict.fromkeys(damaged)),
    )
