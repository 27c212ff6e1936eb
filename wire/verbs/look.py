"""One look at what is accepted: messages, proved by the pin, and who each of them is for.

    look = Look(here, here.pin())
    for read in look.after("mac/spark", cursor): item = look.item(read)

What a reader is shown is what was accepted: the pin's heads vouch for every byte, and neither the clone's files nor the
index can change it. Where a clone's file is damaged, the copy that git holds is read instead, and the damage is noted.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wire.protocol.chain import Position
from wire.protocol.line import Line, LineError, content
from wire.protocol.names import split_channel
from wire.store import reading
from wire.store.pin import Pin
from wire.store.reading import CloneSource, Read, Source
from wire.verbs.here import Here
from wire.verbs.order import seconds_of
from wire.verbs.states import state_of

if TYPE_CHECKING:
    from wire.store.seen import Seen
    from wire.verbs.opening import Opener, Sealed

CLOCK_TOLERANCE_SECONDS = 120.0
"""How far ahead of our first sight an author's clock may be before the message is flagged."""


SILENT = frozenset({"heartbeat"})
"""Types that say nothing to an agent: they are never unread, and only a log shows them unless they are asked for."""


class Item(NamedTuple):
    """One accepted message, as it is shown.

    Attributes:
        members: the line's members, or None when its content is unlawful; of an opened letter also what it closed.
        why: why it cannot be read.
        verdict: `verified`; `unreadable`: its place is proved and its content cannot be shown; or `revoked`: it was
            accepted once, and counts no longer since its key was revoked before it.
        state: for our own what is proved of it, for others' `delivered`.
        flags: `clock-ahead`, `trust-ahead`, `expired`, `sealed`, and those of `opening.Sealed`.
        first_seen: when this machine accepted it (UTC text), empty when that is not known.
        commit: the remote's commit that first carried it here, empty for our own before the push.
        own: whether an agent of this machine wrote it.
        sealed: what is known of a closed letter, None for an open one.
    """

    line: Line
    members: Mapping[str, Any] | None
    why: str
    verdict: str
    state: str
    flags: tuple[str, ...]
    first_seen: str
    commit: str
    own: bool = False
    sealed: "Sealed | None" = None

    @property
    def id(self) -> str:
        """The message's id."""
        return self.line.id


class Look:
    """One look at what is accepted, by one pin.

    Attributes:
        pin: by which everything is proved.
        damaged: clone files that do not hold the accepted bytes; another copy was read.
    """

    def __init__(self, here: Here, pin: Pin) -> None:
        self._here = here
        self.pin = pin
        self.damaged: list[str] = []
        self._seen: Seen | None = None
        self._opener: Opener | None = None

    def end(self, channel: str) -> Position:
        """Return where a channel ends."""
        return self.pin.accepted.get(channel) or Position.start(self.pin.wire, channel)

    def after(self, channel: str, cursor: Position) -> Iterator[Read]:
        """Return the lines behind a cursor, walked and found right; raises LostPlace, IntegrityError."""
        end = self.end(channel)
        if cursor.seq == end.seq and cursor.head == end.head:
            return iter(())
        return reading.lines_after(
            self._sources(channel), self.pin.wire, channel, accepted=end, cursor=cursor, on_damage=self._note
        )

    def newest(self, channel: str, count: int) -> Iterator[Read]:
        """Return the last lines of a channel, oldest first; raises IntegrityError."""
        return reading.newest(
            self._sources(channel), self.pin.wire, channel, count, accepted=self.end(channel), on_damage=self._note
        )

    def at(self, channel: str, seq: int) -> Read | None:
        """Return one line, also one of our own that is only stored; None when there is none."""
        end = self.end(channel)
        if seq > end.seq and channel.partition("/")[0] in self._here.config.agents:
            return self._stored(channel, seq, end)
        return reading.line_at(self._sources(channel), self.pin.wire, channel, seq, accepted=end, on_damage=self._note)

    def item(self, read: Read) -> Item:
        """Return a line as it is shown."""
        line = read.line
        why = ""
        members: Mapping[str, Any] | None
        try:
            members = content(line)
        except LineError as error:
            members, why = None, str(error)
        sealed = None
        if members is not None and "enc" in members:
            sealed, members = self.opener.open(line, members)
        if self._seen is None:
            from wire.store.seen import Seen  # only who has something to show looks it up

            self._seen = Seen(self._here.places.seen_file)
        seen = self._seen.lookup(line.channel, line.seq)
        flags = []
        if seen is not None and seconds_of(line.ts) > seconds_of(seen.time) + CLOCK_TOLERANCE_SECONDS:
            flags.append("clock-ahead")
        if line.trust_version > self.pin.trust_version:
            flags.append("trust-ahead")
        if members is not None and "expires" in members and seconds_of(members["expires"]) <= time.time():
            flags.append("expired")
        if sealed is not None:
            flags += ["sealed", *sealed.flags]
        own = line.sender in self._here.config.agents
        return Item(
            line,
            members,
            why,
            "unreadable" if members is None else "verified",
            state_of(self.pin, line.channel, line.seq) if own else "delivered",
            tuple(flags),
            seen.time if seen is not None else "",
            seen.commit if seen is not None else "",
            own,
            sealed,
        )

    @property
    def opener(self) -> "Opener":
        """What opens closed letters, made when the first one is met."""
        if self._opener is None:
            from wire.verbs.opening import Opener

            self._opener = Opener(self._here, self.pin)
        return self._opener

    def revoked(self, channel: str, seq: int) -> Item | None:
        """Return a line that was cut and has no other in its place, None when there is none."""
        from wire.store import cutlines

        found = [line for line in cutlines.read(self._here.places, channel) if line.seq == seq]
        if not found:
            return None
        return self._revoked(found[-1])

    def all_revoked(self, wanted: Collection[str] = ()) -> list[Item]:
        """Return all lines that were cut and do not count again, by their authors' times.

        Args:
            wanted: channels; all when empty.
        """
        from wire.store import cutlines

        found = []
        for channel in sorted(cutlines.channels(self._here.places)):
            if wanted and channel not in wanted:
                continue
            start = Position.start(self.pin.wire, channel)
            standing = {read.line.head for read in self.after(channel, start)}
            found += [line for line in cutlines.read(self._here.places, channel) if line.head not in standing]
        return [self._revoked(line) for line in sorted(found, key=lambda line: (line.ts, line.channel, line.seq))]

    def _revoked(self, line: Line) -> Item:
        item = self.item(Read(line, Position(line.seq, line.head, 0, 0)))
        # Another line may have its number now, and what is known by the number is that one's.
        return item._replace(verdict="revoked", flags=(*item.flags, "revoked"), first_seen="", commit="")

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
        return sources_of(self._here, self.pin, channel)

    def _note(self, damage: reading.Damage) -> None:
        self.damaged.append(f"{damage.name}, byte {damage.offset}: {damage.why}")

    def is_for(self, line: Line, agent: str) -> bool:
        """Return whether a line is for an agent: to a group or to all, if it belonged at the line's trust version."""
        if line.recipient == agent:
            return True
        if line.sender == agent:
            return False
        if line.trust_version == self.pin.trust_version:
            names = self.pin.names
            return agent in (names.agents if line.recipient == "all" else names.groups.get(line.recipient, ()))
        from wire.store import trustfiles

        chain = trustfiles.read(self._here.places.trust_dir)
        return agent in chain.members(line.recipient, line.trust_version)


def sources_of(here: Here, pin: Pin, channel: str) -> list[Source]:
    """Return where the accepted bytes of a channel are read from: the clone's files, and git's own copy."""
    return [CloneSource(here.places.coordination, channel), _GitSource(here, pin, channel)]


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


def concerns(channel: str, agent: str, pin: Pin) -> bool:
    """Return whether a channel may hold messages for an agent."""
    sender, recipient = split_channel(channel)
    return sender != agent and (recipient == agent or recipient not in pin.names.agents)
