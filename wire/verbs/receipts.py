"""What became of our messages, for each recipient: every state with the moment since when it is known.

    for one in sent(here, unacked=True):
        one.id, one.state, [(r.agent, r.state) for r in one.recipients]

A state is told only when it is proved (see `wire.store.proofs`), and silence proves nothing: a recipient that was never
heard of stands at `pushed`, and is named. What is later includes what comes before it, whether or not that was told
apart: who answered a message had it.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wire.errors import Busy, Corrupt, IntegrityError, NotReached, UsageError
from wire.protocol.chain import Position
from wire.protocol.line import LineError, check, parse
from wire.protocol.names import parse_id
from wire.store import accounts, journal, presences
from wire.store.accounts import NOBODY
from wire.store.members import Members
from wire.store.paths import WirePlaces
from wire.store.pin import Pin
from wire.store.proofs import ANSWERS, MACHINE_TYPES
from wire.store.receipts import Answer, Kept, Known, Receipts, opened
from wire.verbs.here import Here
from wire.verbs.states import ACKED, COMMITTED, DELIVERED, PUSHED, READ, STATES, STORED, least, state_of

COUNT = 20
"""How many messages are listed unless more are asked for."""
_STEP = 64
_NAMED = 5
_POLL_SECONDS = 0.05
_NEAR = 500
"""How many lines from the end of a channel are looked through for closed letters."""


class Reached(NamedTuple):
    """A state that is proved.

    Attributes:
        since: since when this machine knows it (UTC text), None where only a later one was told apart.
        how: `disk`, `commit`, `fetch`, `presence`, or the id of the line that proves it.
    """

    state: str
    since: str | None
    how: str


class Recipient(NamedTuple):
    """How far a message came to one recipient.

    Attributes:
        reached: every state that is proved, in order.
        heard: when it was last heard of, by our clock (seconds of the epoch); None when it never was.
    """

    agent: str
    reached: tuple[Reached, ...]
    heard: float | None = None

    @property
    def state(self) -> str:
        """The furthest state that is proved."""
        return self.reached[-1].state


class Traced(NamedTuple):
    """A message of ours and what became of it.

    Attributes:
        line: what is kept of it.
        recipients: everybody it is for, by name; its author is none of them.
        sealed: whether it is known to be a closed letter; `sent` looks, and has its subject then.
    """

    line: Kept
    recipients: tuple[Recipient, ...]
    sealed: bool = False

    @property
    def id(self) -> str:
        """The message's id."""
        return self.line.id

    @property
    def state(self) -> str:
        """What every recipient is proved to have reached."""
        return least([one.state for one in self.recipients])

    def missing(self, state: str) -> tuple[str, ...]:
        """Return the recipients that are not proved to have reached a state."""
        return tuple(one.agent for one in self.recipients if STATES.index(one.state) < STATES.index(state))


def ladder(
    base: Sequence[Reached], delivered: Known | None, read: Known | None, answer: Answer | None
) -> tuple[Reached, ...]:
    """Return every state of a message at one recipient, in order (pure).

    Args:
        base: what is known of it whoever the recipient is: `stored`, and what came after that.
        delivered, read: since when each is proved for this line or a later one of the channel.
        answer: the recipient's first answer.
    """
    own = {one.state: one for one in base}
    if answer is not None:
        own[ACKED] = Reached(ACKED, answer.seen, answer.id)
    for state, known in ((READ, read), (DELIVERED, delivered)):
        if known is not None:
            own[state] = Reached(state, known.when, known.how)
    last = max(STATES.index(state) for state in own)
    by = own[STATES[last]].how
    return tuple(own.get(state) or Reached(state, None, by) for state in STATES[: last + 1])


def sent(
    here: Here, *, unread: bool = False, unacked: bool = False, count: int = COUNT, to: str | None = None
) -> list[Traced]:
    """Return the last messages that the chosen agent sent, oldest first.

    Args:
        unread: only those that some recipient is not proved to have read.
        unacked: only those that some recipient did not answer; answers are not answered.
        count: how many at most.
        to: only those to this agent or group, or to `all`.

    Raises:
        UsageError, IdentityError, Corrupt: as `Here`.
        IntegrityError: accepted lines cannot be read.
    """
    agent, pin = here.agent(), here.pin()
    update(here, pin)
    with opened(here.places, pin.wire, here.config.agents) as receipts:
        trace = _Trace(here, pin, receipts)
        found = []
        for channel in _channels(here.places, pin, agent):
            if to is not None and channel != f"{agent}/{to}":
                continue
            found += _last(trace.newest(channel), count, unread=unread, unacked=unacked)
    found.sort(key=lambda one: (one.line.ts, one.line.channel, one.line.seq))
    return _with_subjects(here, pin, found[-count:])


def _with_subjects(here: Here, pin: Pin, found: list[Traced]) -> list[Traced]:
    """Return messages with the subjects of closed letters, which are kept nowhere: their author opens them here."""
    wanted: dict[str, set[int]] = {}
    for one in found:
        if not one.line.subject:
            wanted.setdefault(one.line.channel, set()).add(one.line.seq)
    if not wanted:
        return found
    from wire.verbs.look import Look  # most lists need it, and none of the other questions to receipts do

    look = Look(here, pin)
    subjects: dict[str, str] = {}
    for channel, numbers in wanted.items():
        end = look.end(channel).seq
        near = [seq for seq in numbers if end - _NEAR < seq <= end]
        reads = list(look.newest(channel, end - min(near) + 1)) if near else []
        reads += [read for seq in sorted(numbers) if seq > end and (read := look.at(channel, seq)) is not None]
        for read in reads:
            if read.line.seq in numbers and b'"enc":' in read.line.raw:
                item = look.item(read)
                subjects[item.id] = str((item.members or {}).get("subject", ""))
    return [
        one._replace(line=one.line._replace(subject=subjects[one.id]), sealed=True) if one.id in subjects else one
        for one in found
    ]


def trace(here: Here, message_id: str) -> Traced:
    """Return what became of one message of an agent of this machine.

    Raises:
        UsageError: reason `no-message`, or `not-yours`.
    """
    return trace_all(here, [message_id])[0]


def trace_all(here: Here, ids: Sequence[str]) -> list[Traced]:
    """Return what became of several messages of agents of this machine; raises as `trace`."""
    pin = here.pin()
    update(here, pin)
    with opened(here.places, pin.wire, here.config.agents) as receipts:
        looked = _Trace(here, pin, receipts)
        return [looked.one(one) for one in ids]


def update(here: Here, pin: Pin) -> None:
    """Take in what was accepted and heard since; where somebody else does that just now, it is left to them."""
    try:
        _update(here, pin)
    except Corrupt:
        _update(here, pin)  # the damaged file was moved aside


def _update(here: Here, pin: Pin) -> None:
    agents = here.config.agents
    try:
        accounts.update(here.places, pin, agents)
    except Busy:
        return
    except IntegrityError:
        from wire.verbs.look import sources_of  # where the clone is damaged, git's own copy is read

        accounts.update(here.places, pin, agents, lambda channel: sources_of(here, pin, channel))


def wait(here: Here, ids: Sequence[str], state: str, timeout: float) -> list[Traced]:
    """Wait until every recipient of all messages is proved to have reached a state.

    Raises:
        NotReached: they had not, after `timeout` seconds; the text and `details` name who is missing.
    """
    deadline = time.monotonic() + timeout
    before: object = None
    while True:
        news = presences.news(here.places)
        if news != before:
            before, found = news, trace_all(here, ids)
            behind = [one for one in found if one.missing(state)]
            if not behind:
                return found
        if time.monotonic() >= deadline:
            raise _not_reached(here, found, behind, state, timeout)
        time.sleep(_POLL_SECONDS)


def _not_reached(
    here: Here, found: Sequence[Traced], behind: Sequence[Traced], state: str, timeout: float
) -> NotReached:
    from wire.verbs.health import outward

    first = behind[0]
    still_here = f"; {outward(here)}" if first.state in (STORED, COMMITTED) else ""
    states = [f"{one.agent} ({one.state})" for one in first.recipients if one.agent in first.missing(state)]
    more = f", and {len(states) - _NAMED} more" if len(states) > _NAMED else ""
    return NotReached(
        f"{first.id} was not {state} within {timeout:g} s by {', '.join(states[:_NAMED])}{more}; it is safe here,"
        f" so do not send it again{still_here}",
        next_step=f"wire show {first.id}",
        details={
            "ids": [one.id for one in found],
            "states": [one.state for one in found],
            "missing": {one.id: list(one.missing(state)) for one in behind},
            "awaited": state,
        },
    )


class _Trace:
    """What became of messages, by one pin."""

    def __init__(self, here: Here, pin: Pin, receipts: Receipts) -> None:
        self._here = here
        self._pin = pin
        self._receipts = receipts
        self._members = Members(here.places, pin)
        self._heard = {name: one.changed for name, one in presences.load(here.places).items()}

    def one(self, message_id: str) -> Traced:
        channel, seq = parse_id(message_id)
        if channel.partition("/")[0] not in self._here.config.agents:
            raise UsageError(
                f"{message_id} was sent by somebody else; how far it got only its sender can see", reason="not-yours"
            )
        end = self._end(channel)
        if 1 <= seq <= end.seq:
            lines = self._receipts.after(channel, seq - 1, seq)
        else:
            lines = [line for line in self._stored(channel) if line.seq == seq]
        if not lines:
            raise UsageError(f"there is no message {message_id} here", reason="no-message")
        return self._traced(lines[0])

    def newest(self, channel: str) -> Iterator[Traced]:
        """Yield the messages of a channel of ours, newest first, without what daemons write."""
        for line in reversed(self._stored(channel)):
            if line.type not in MACHINE_TYPES:
                yield self._traced(line)
        until = self._end(channel).seq
        while until > 0:
            for line in reversed(self._receipts.after(channel, max(0, until - _STEP), until)):
                if line.type not in MACHINE_TYPES:
                    yield self._traced(line)
            until -= _STEP

    def _end(self, channel: str) -> Position:
        return self._pin.accepted.get(channel) or Position.start(self._pin.wire, channel)

    def _stored(self, channel: str) -> list[Kept]:
        """Return the lines of a channel of ours that are stored and no more."""
        found = []
        for raw in journal.read_lines(self._here.places, channel, self._end(channel)):
            line = parse(raw)
            try:
                members: Mapping[str, object] = check(line)
            except LineError:
                members = {}
            found.append(accounts.kept_of(line, members, seen="", own=True))
        return found

    def _traced(self, line: Kept) -> Traced:
        channel, seq = line.channel, line.seq
        base = [Reached(STORED, line.ts, "disk")]
        state = state_of(self._pin, channel, seq)
        if state != STORED:
            base.append(Reached(COMMITTED, line.seen or None, "commit"))
        if state == PUSHED:
            known = self._receipts.reached(channel, NOBODY, PUSHED, seq)
            base.append(Reached(PUSHED, known and known.when, "fetch"))
        answers = {one.agent: one for one in self._receipts.answers(channel, seq)} if state != STORED else {}
        found = []
        for agent in self._members.of(line.recipient, line.trust):
            if agent == line.sender:
                continue
            delivered = read = None
            if state != STORED:
                delivered = self._receipts.reached(channel, agent, DELIVERED, seq)
                read = self._receipts.reached(channel, agent, READ, seq)
            states = ladder(base, delivered, read, answers.get(agent))
            found.append(Recipient(agent, states, self._heard.get(agent)))
        return Traced(line, tuple(found) or (Recipient(line.recipient, tuple(base)),))


def _last(traced: Iterator[Traced], count: int, *, unread: bool, unacked: bool) -> list[Traced]:
    found: list[Traced] = []
    for one in traced:
        if len(found) == count:
            break
        if (not unread or one.missing(READ)) and (not unacked or _waits(one)):
            found.append(one)
    return found


def _waits(one: Traced) -> bool:
    """Return whether an answer is missing; nobody answers an answer, unless it asks for that."""
    line = one.line
    return one.missing(ACKED) != () and (line.type not in ANSWERS or line.ack_required or line.priority == "urgent")


def _channels(places: WirePlaces, pin: Pin, agent: str) -> list[str]:
    return sorted(
        channel for channel in {*pin.accepted, *journal.channels(places)} if channel.partition("/")[0] == agent
    )
