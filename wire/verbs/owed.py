"""What is still to be answered: by an agent of this machine, and by others.

    owed(here)          messages that ask the chosen agent for an answer and did not get one, oldest first
    overdue(here)       messages of ours that were not answered, or not read, in time, and by whom

A message asks for an answer when it says `ack_required` or is `urgent`. It is answered by any line of the types in
`wire.store.proofs.ANSWERS` that names it in `re`; `wire ack ID` is the shortest. It is overdue at its `expires`, and
without one an hour after it was sent. One that only expires asks to be read in time.
"""

import time
from collections.abc import Container, Iterator
from typing import NamedTuple

from wire.protocol.chain import Position
from wire.protocol.encoding import seconds_of
from wire.protocol.line import check, parse
from wire.store import journal
from wire.store.members import Members
from wire.store.pin import Pin
from wire.store.proofs import ANSWERS
from wire.store.receipts import Kept, Receipts, opened
from wire.verbs.here import Here
from wire.verbs.receipts import update
from wire.verbs.states import ACKED, READ

ANSWER_SECONDS = 3600.0
"""How long an answer may take where the message does not say by when it is wanted."""
FORGET_SECONDS = 7 * 86400.0
"""How long a message that expired unread is listed."""


class Owed(NamedTuple):
    """A message that an agent of this machine has not answered.

    Attributes:
        agent: who owes the answer.
        since: seconds of the epoch at which this machine accepted it.
        due: seconds of the epoch by which the answer is wanted.
        overdue: whether that has passed.
        expired: whether the message itself says that it is not worth reading any more.
    """

    line: Kept
    agent: str
    since: float
    due: float
    overdue: bool
    expired: bool

    @property
    def id(self) -> str:
        """The message's id."""
        return self.line.id


class Overdue(NamedTuple):
    """A message of ours for which the time has passed.

    Attributes:
        wanted: the state that was wanted in time: `acked` or `read`.
        missing: who is not proved to have reached it.
        due: seconds of the epoch by which it was wanted.
    """

    line: Kept
    wanted: str
    missing: tuple[str, ...]
    due: float

    @property
    def id(self) -> str:
        """The message's id."""
        return self.line.id


def owed(here: Here) -> list[Owed]:
    """Return what the chosen agent owes an answer to, oldest first.

    Raises:
        UsageError, IdentityError, Corrupt: as `Here`.
    """
    agent, pin = here.agent(), here.pin()
    update(here, pin)
    with opened(here.places, pin.wire, here.config.agents) as receipts:
        return owed_by(receipts, Members(here.places, pin), agent, stored_answers(here, pin, agent), time.time())


def owed_by(receipts: Receipts, members: Members, agent: str, answered: Container[str], now: float) -> list[Owed]:
    """Return what an agent of this machine owes an answer to, oldest first.

    Args:
        answered: what it answered with lines that are not accepted yet, see `stored_answers`.
    """
    found = []
    for line in (*receipts.asks(own=False), *receipts.asks(own=True)):
        if line.sender == agent or not asks_for_answer(line) or agent not in members.of(line.recipient, line.trust):
            continue
        if line.id in answered or any(one.agent == agent for one in receipts.answers(line.channel, line.seq)):
            continue
        due = due_of(line, from_=line.seen)
        expired = line.expires != "" and seconds_of(line.expires) <= now
        found.append(Owed(line, agent, seconds_of(line.seen), due, due <= now, expired))
    return sorted(found, key=lambda one: (one.since, one.id))


def stored_answers(here: Here, pin: Pin, agent: str) -> frozenset[str]:
    """Return the ids that an agent of this machine answered in lines that are only stored: it did its part."""
    found = set()
    for channel in journal.channels(here.places):
        if channel.partition("/")[0] != agent:
            continue
        end = pin.accepted.get(channel) or Position.start(pin.wire, channel)
        for raw in journal.read_lines(here.places, channel, end):
            line = parse(raw)
            if line.type in ANSWERS and b'"re":"' in raw:
                found.add(str(check(line).get("re")))
    return frozenset(found)


def overdue(here: Here) -> list[Overdue]:
    """Return what others should have answered, or read, by now, of all agents of this machine, oldest first."""
    pin = here.pin()
    update(here, pin)
    with opened(here.places, pin.wire, here.config.agents) as receipts:
        return list(overdue_of(receipts, Members(here.places, pin), pin, time.time()))


def overdue_of(receipts: Receipts, members: Members, pin: Pin, now: float) -> Iterator[Overdue]:
    """Yield the messages of our agents for which the time has passed; who left the wire is asked for nothing."""
    for line in receipts.asks(own=True):
        wanted = ACKED if asks_for_answer(line) else READ
        due = due_of(line, from_=line.ts)
        if due > now or (wanted == READ and (not line.expires or due + FORGET_SECONDS < now)):
            continue
        done = {one.agent for one in receipts.answers(line.channel, line.seq)}
        missing = tuple(
            agent
            for agent in members.of(line.recipient, line.trust)
            if agent not in (line.sender, *done)
            and agent in pin.names.agents
            and (wanted == ACKED or receipts.reached(line.channel, agent, READ, line.seq) is None)
        )
        if missing:
            yield Overdue(line, wanted, missing, due)


def asks_for_answer(line: Kept) -> bool:
    """Return whether a message wants to be answered, and not only to be read."""
    return line.ack_required or line.priority == "urgent"


def due_of(line: Kept, *, from_: str) -> float:
    """Return by when an answer is wanted: when the message expires, or some time after a moment (UTC text)."""
    return seconds_of(line.expires) if line.expires else seconds_of(from_) + ANSWER_SECONDS
