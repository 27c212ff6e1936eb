"""Who is on the wire, how everybody stands, and what lies between them and the chosen agent.

    for one in agents(here): one.name, one.state, one.age, one.unread_by_them, one.unread_by_us
    declare(here, "busy", note="the parser", eta="2h")

What an agent says of itself (state, note) is its claim; how old that is, is told by our own clock. An agent of which
nothing was heard has no state at all, which is something else than idle.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple

from wire.keys.trust import ACTIVE
from wire.protocol.encoding import seconds_of
from wire.store import presences, trustfiles
from wire.store.accounts import unproved
from wire.store.cursors import DEFAULT_READER
from wire.store.members import Members
from wire.store.pin import Pin
from wire.store.presences import Declared, Heard
from wire.store.progress import Progress
from wire.store.proofs import DELIVERED, READ
from wire.store.receipts import Kept, Receipts, opened
from wire.verbs import inbox, leaks
from wire.verbs.here import Here
from wire.verbs.owed import asks_for_answer, stored_answers
from wire.verbs.receipts import update


class AgentView(NamedTuple):
    """One agent, as the chosen one sees it.

    Attributes:
        role: `agent` or `human`.
        local: whether it belongs to this machine.
        chosen: whether it is the chosen agent itself.
        state: what it says of itself, empty when nothing was heard of it.
        note: what it says about that; a stranger's text.
        eta: until when, by its own word, or None.
        tier: how its machine looks.
        age: seconds since its presence last changed, by our clock; None when nothing was heard of it.
        stale: whether it broke its promise to be heard of. While we could not look ourselves nobody is.
        undelivered: our messages to it at the remote that it is not proved to have.
        unread_by_them: our messages to it that it is not proved to have read; None when nothing was heard of it.
        unread_by_us: its messages that the chosen agent has not read.
        we_owe: its requests to the chosen agent that this has not answered, and what else asks for an answer.
        they_owe: the same the other way.
    """

    name: str
    role: str
    local: bool
    state: str
    note: str
    eta: str | None
    tier: str
    age: float | None
    stale: bool
    undelivered: int
    unread_by_them: int | None
    unread_by_us: int
    we_owe: tuple[str, ...]
    they_owe: tuple[str, ...]
    chosen: bool = False


class Peer(NamedTuple):
    """How far an agent of another machine has come with what all agents of this one sent it.

    Attributes:
        age, stale: as of `AgentView`.
        undelivered: messages at the remote that it is not proved to have.
        unread: messages at the remote that it is not proved to have read; None when nothing was heard of it.
        unanswered: how many of our messages wait for an answer of it.
        oldest: when the oldest of them was sent (seconds of the epoch), None where there is none.
    """

    name: str
    state: str
    age: float | None
    stale: bool
    undelivered: int
    unread: int | None
    unanswered: int
    oldest: float | None


def agents(here: Here) -> list[AgentView]:
    """Return everybody who is active in the trust, by name.

    Raises:
        UsageError, IdentityError, Corrupt: as `Here`.
        TrustError: the trust does not hold.
    """
    agent, pin = here.agent(), here.pin()
    update(here, pin)
    chain = trustfiles.read(here.places.trust_dir)
    heard = presences.load(here.places)
    looked = Progress.load(here.places).fetched
    with opened(here.places, pin.wire, here.config.agents) as receipts:
        seen = _Seen(here, pin, receipts, agent, heard)
        return [
            seen.view(name, known.role, looked)
            for name, known in sorted(chain.newest.agents.items())
            if known.status == ACTIVE
        ]


def peers(here: Here) -> list[Peer]:
    """Return how far every agent of another machine has come with our messages; raises as `agents`."""
    pin = here.pin()
    update(here, pin)
    heard = presences.load(here.places)
    looked = Progress.load(here.places).fetched
    found = []
    with opened(here.places, pin.wire, here.config.agents) as receipts:
        members = Members(here.places, pin)
        mine, asks = receipts.channels(), receipts.asks(own=True)

        def without(name: str, state: str) -> int:
            return sum(unproved(receipts, members, pin, channel, name, state).messages for channel in mine)

        for name in sorted(set(pin.names.agents) - set(here.config.agents)):
            said = heard.get(name)
            waiting = [line for line in asks if asks_for_answer(line) and _is_open(receipts, members, line, name)]
            found.append(
                Peer(
                    name,
                    said.presence.state if said is not None else "",
                    max(0.0, time.time() - said.changed) if said is not None else None,
                    said is not None and presences.stale(said, looked),
                    without(name, DELIVERED),
                    without(name, READ) if said is not None else None,
                    len(waiting),
                    min((seconds_of(line.ts) for line in waiting), default=None),
                )
            )
    return found


def declare(here: Here, state: str, *, note: str = "", eta: str | None = None) -> Declared:
    """Set what the chosen agent says of itself; the daemon publishes it within a few seconds.

    Args:
        eta: until when, as UTC text.

    Raises:
        UsageError: reason `bad-state`, `bad-note` or `bad-eta`; the note looks as if it held a secret
            (`likely-secret`).
    """
    leaks.refuse("the note", note)
    says = Declared(state, note, eta)
    presences.declare(here.places, here.agent(), says)
    return says


def declared(here: Here) -> Declared:
    """Return what the chosen agent says of itself."""
    return presences.declared(here.places, here.agent())


class _Seen:
    """What one agent of this machine sees of the others."""

    def __init__(self, here: Here, pin: Pin, receipts: Receipts, agent: str, heard: Mapping[str, Heard]) -> None:
        self._here = here
        self._pin = pin
        self._receipts = receipts
        self._agent = agent
        self._heard = heard
        self._members = Members(here.places, pin)
        self._answered = stored_answers(here, pin, agent)
        self._unread = inbox.unread(here, reader=DEFAULT_READER, limit=0).senders

    def view(self, name: str, role: str, looked: float | None) -> AgentView:
        heard = self._heard.get(name)
        said = heard.presence if heard is not None else None
        local = name in self._here.config.agents
        # Of an agent of this machine its own word is here, published or not.
        own = presences.declared(self._here.places, name) if local else None
        word = own or said
        return AgentView(
            name=name,
            role=role,
            local=local,
            state=word.state if word is not None else "",
            note=word.note if word is not None else "",
            eta=word.eta if word is not None else None,
            tier=said.tier if said is not None else "-",
            age=max(0.0, time.time() - heard.changed) if heard is not None else None,
            stale=heard is not None and not local and presences.stale(heard, looked),
            undelivered=self._without(name, DELIVERED),
            unread_by_them=self._without(name, READ) if heard is not None else None,
            unread_by_us=self._unread.get(name, 0),
            we_owe=self._open(name, self._agent, own=False) + self._open(name, self._agent, own=True),
            they_owe=self._open(self._agent, name, own=True),
            chosen=name == self._agent,
        )

    def _without(self, name: str, state: str) -> int:
        """Return how many messages of the chosen agent another is not proved to have come to."""
        if name == self._agent:
            return 0
        mine = [one for one in self._receipts.channels() if one.partition("/")[0] == self._agent]
        return sum(unproved(self._receipts, self._members, self._pin, one, name, state).messages for one in mine)

    def _open(self, asker: str, asked: str, *, own: bool) -> tuple[str, ...]:
        """Return the open requests of one agent to another, oldest first."""
        return tuple(
            line.id
            for line in self._receipts.asks(own=own)
            if line.sender == asker != asked
            and (line.type == "request" or asks_for_answer(line))
            and _is_open(self._receipts, self._members, line, asked)
            and not (asked == self._agent and line.id in self._answered)
        )


def _is_open(receipts: Receipts, members: Members, line: Kept, asked: str) -> bool:
    """Return whether a message is for an agent that has not answered it."""
    return asked in members.of(line.recipient, line.trust) and not any(
        one.agent == asked for one in receipts.answers(line.channel, line.seq)
    )
