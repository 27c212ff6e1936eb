"""Taking into the receipts what was accepted since, and what the recipients' presences prove.

    update(places, pin, ("mac",))

Called by the daemon after its rounds, and by whoever wants to know how far a message got: both do the same, and what
one took in the other finds. Lines are read as every reader reads them, proved by the pin; nothing is taken from a file
that does not hold.

What it does not do: look at the remote, or decide what is shown.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from wire.errors import IntegrityError, UsageError, WireError
from wire.protocol.chain import SEGMENT_MAX, Position
from wire.protocol.encoding import seconds_of
from wire.protocol.line import Line, LineError, check
from wire.protocol.names import parse_id
from wire.store import journal, outlook, presences, reading
from wire.store import pin as pins
from wire.store.files import utc_now, utc_text
from wire.store.members import Members
from wire.store.outlook import Channel, Outlook, Promise, Unread
from wire.store.paths import WirePlaces
from wire.store.pin import Pin
from wire.store.presences import Heard
from wire.store.proofs import ANSWERS, MACHINE_TYPES, READ, of_ack, of_presence
from wire.store.reading import CloneSource, Source
from wire.store.receipts import Answer, Kept, Known, Receipts, opened
from wire.store.seen import Seen

PUSHED = "pushed"
NOBODY = ""
"""In the place of the recipient of a proof that is about the remote."""

_AT_ONCE = 1_000
"""Lines that are taken in with one write, so that nobody else waits for long."""

Sources = Callable[[str], Sequence[Source]]


def update(places: WirePlaces, pin: Pin, agents: Iterable[str], sources: Sources | None = None) -> None:
    """Take in what is new, and write down what senders should know.

    Args:
        agents: the agents of this machine.
        sources: where a channel's segments are read from; the clone, and the journal for our own, when omitted.

    Raises:
        IntegrityError: some accepted lines cannot be read just now; what could be read was taken in.
        Busy, DiskFull, StoreError: the receipts cannot be used.
    """
    with opened(places, pin.wire, agents) as receipts:
        _Accounts(places, pin, frozenset(agents), receipts, sources).update()


class _JournalSource:
    """Our own lines as this machine sent them."""

    def __init__(self, places: WirePlaces, channel: str) -> None:
        self._places = places
        self._channel = channel

    def read(self, segment: int) -> bytes | None:
        return journal.read_segment(self._places, self._channel, segment, SEGMENT_MAX) or None

    def name(self, segment: int) -> str:
        return f"the journal of {self._channel}, segment {segment}"


class _Accounts:
    def __init__(
        self, places: WirePlaces, pin: Pin, local: frozenset[str], receipts: Receipts, sources: Sources | None
    ) -> None:
        self._places = places
        self._pin = pin
        self._local = local
        self._receipts = receipts
        self._sources = sources or self._files
        self._members = Members(places, pin)
        self._seen: Seen | None = None
        self._now = utc_now()

    def update(self) -> None:
        trouble: IntegrityError | None = None
        scanned = self._receipts.scanned()
        # Our own first: the others' acks are judged by them.
        for channel in sorted(self._pin.accepted, key=lambda one: (one.partition("/")[0] not in self._local, one)):
            try:
                self._scan(channel, scanned.get(channel))
            except IntegrityError as error:
                trouble = error
        heard = presences.load(self._places)
        with self._receipts.writing():
            for channel, seq in self._pin.remote_seq.items():
                head = self._receipts.head_at(channel, seq)
                if head is not None:
                    self._receipts.prove(channel, NOBODY, PUSHED, seq, head, Known(self._now, "fetch"))
            for one in heard.values():
                for proof in of_presence(one.presence, self._local, self._receipts.head_at):
                    self._receipts.prove(*proof, Known(utc_text(one.changed), "presence"))
        outlook.save(self._places, self._outlook(heard))
        if trouble is not None:
            raise trouble

    # Lines

    def _scan(self, channel: str, done: Position | None) -> None:
        end = self._pin.accepted[channel]
        start = done or Position.start(self._pin.wire, channel)
        if (start.seq, start.head) == (end.seq, end.head):
            return
        lines = self._lines(channel, end, start)
        if lines is None and self._is_older():
            return  # somebody with a newer pin took in more than we know of
        if lines is None:
            # Accepted lines were taken back: what stands in their places has to prove itself again.
            with self._receipts.writing():
                self._receipts.forget(channel)
            lines = self._lines(channel, end, Position.start(self._pin.wire, channel)) or iter(())
        while taken := list(islice(lines, _AT_ONCE)):
            with self._receipts.writing():
                for one in taken:
                    self._take(one.line)
                self._receipts.set_scanned(channel, taken[-1].after)

    def _lines(self, channel: str, end: Position, start: Position) -> Iterator[reading.Read] | None:
        try:
            return reading.lines_after(self._sources(channel), self._pin.wire, channel, accepted=end, cursor=start)
        except reading.LostPlace:
            return None

    def _is_older(self) -> bool:
        """Return whether something was accepted since our pin was read."""
        try:
            return pins.load(self._places.pin_file) != self._pin
        except WireError:
            return False

    def _take(self, line: Line) -> None:
        own = line.sender in self._local
        raw = line.raw
        answers = line.type in ANSWERS and b'"re":"' in raw
        acks = line.recipient in self._local and b'"ack":[' in raw
        asks = not own and self._may_concern(line) and _may_ask(line)
        if not (own or answers or acks or asks):
            return
        try:
            members = check(line)
        except LineError:
            members = {}
        if own or asks:
            self._keep(line, members, own)
        if answers and "re" in members:
            self._answer(line, str(members["re"]))
        proof = of_ack(line, members.get("ack"), self._local, self._receipts.head_at) if acks else None
        if proof is not None:
            self._receipts.prove(*proof, Known(self._seen_at(line), line.id))

    def _keep(self, line: Line, members: Mapping[str, object], own: bool) -> None:
        kept = kept_of(line, members, seen=self._seen_at(line), own=own)
        if own or kept.asks:
            self._receipts.keep(kept)

    def _answer(self, line: Line, asked: str) -> None:
        try:
            channel, seq = parse_id(asked)
        except UsageError:
            return
        author = channel.partition("/")[0]
        if author != line.sender and (author in self._local or line.sender in self._local):
            self._receipts.answered(channel, seq, Answer(line.sender, line.id, self._seen_at(line)))

    def _may_concern(self, line: Line) -> bool:
        return line.recipient in self._local or line.recipient not in self._pin.names.agents

    def _seen_at(self, line: Line) -> str:
        if self._seen is None:
            self._seen = Seen(self._places.seen_file)
        found = self._seen.lookup(line.channel, line.seq)
        return found.time if found is not None else line.ts

    def _files(self, channel: str) -> Sequence[Source]:
        clone = CloneSource(self._places.coordination, channel)
        own = channel.partition("/")[0] in self._local
        return [clone, _JournalSource(self._places, channel)] if own else [clone]

    # What senders should know

    def _outlook(self, heard: Mapping[str, Heard]) -> Outlook:
        names = self._pin.names
        others = [name for name in names.agents if name not in self._local]
        speakers = {channel.partition("/")[0] for channel, end in self._pin.accepted.items() if end.seq}
        urgent = Counter(
            one.channel
            for one in self._receipts.asks(own=True)
            if one.priority == "urgent" and not self._receipts.answers(one.channel, one.seq)
        )
        promises = {
            name: Promise(round(heard[name].changed, 3), heard[name].presence.interval)
            for name in others
            if name in heard
        }
        channels = {
            channel: self._channel(channel, urgent[channel], heard)
            for channel in self._receipts.channels()
            if channel in self._pin.accepted
        }
        silent = tuple(name for name in others if name not in heard and name not in speakers) if heard else ()
        return Outlook(promises, channels, silent)

    def _channel(self, channel: str, urgent: int, heard: Mapping[str, Heard]) -> Channel:
        sender, _, recipient = channel.partition("/")
        unread = {}
        for agent in self._members.of(recipient, self._pin.trust_version):
            # Of whom nothing was heard nothing is known, and that it did not read least of all.
            if agent in heard and agent != sender:
                waiting = unproved(self._receipts, self._members, self._pin, channel, agent, READ)
                if waiting.messages:
                    oldest = seconds_of(self._receipts.ts_at(channel, waiting.first))
                    unread[agent] = Unread(waiting.messages, round(oldest, 3))
        return Channel(self._pin.accepted[channel], urgent, unread)


class Unproved(NamedTuple):
    """How many of our messages at the remote an agent is not proved to have come to, and the number of the oldest."""

    messages: int
    first: int


def unproved(receipts: Receipts, members: Members, pin: Pin, channel: str, agent: str, state: str) -> Unproved:
    """Return what of a channel of ours an agent is not proved to have come to with a state."""
    reached = receipts.furthest(channel, agent, state)
    recipient = channel.partition("/")[2]
    found = [
        one
        for one in receipts.count(channel, reached, pin.remote_seq.get(channel, 0), MACHINE_TYPES)
        if agent in members.of(recipient, one.trust)
    ]
    return Unproved(sum(one.lines for one in found), min((one.first for one in found), default=0))


def kept_of(line: Line, members: Mapping[str, object], *, seen: str, own: bool) -> Kept:
    """Return what is kept of a line."""
    return Kept(
        line.channel, line.seq, line.head, line.ts, seen, line.type, line.trust_version,
        str(members.get("priority", "")), members.get("ack_required") is True, str(members.get("expires", "")),
        str(members.get("subject", "")), own,
    )  # fmt: skip


def _may_ask(line: Line) -> bool:
    raw = line.raw
    return (
        line.type == "request"
        or b'"ack_required":true' in raw
        or b'"priority":"urgent"' in raw
        or b'"expires":"' in raw
    )
