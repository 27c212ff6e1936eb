"""What others signed to have of a channel, as a lower bound of it (PROTOCOL.md, "Verification", step 8).

    weigh(said, chain, end, segment)            does that fit what is accepted here?
    bounds = Bounds.load(places)
    bounds.acks(judged.beyond, view, tip)       at each judged tip: what is told of acks that are ahead of us
    bounds.presences(heard, view, tip)          after each look: the same of presences

Whoever acknowledges a line has fetched it, and his ack stands behind it in the history: a tip that has the ack and not
the line lacks something, also for a newcomer, who cannot know more than the tip shows. A presence is no part of the
history and can be a moment ahead of it, so that it has to be ahead for several looks. What is ahead of us is kept until
we have as much, and is compared then: that is when two histories show.

A claim is a peer's word. It freezes nothing, and is told with its exact words.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from wire.daemon.findings import WIRE, Finding
from wire.keys.trust import ACTIVE, Chain, Document
from wire.protocol.chain import Position, line_at
from wire.protocol.encoding import sha256_hex
from wire.protocol.names import EVERYONE, valid_channel
from wire.protocol.presence import Presence
from wire.store import incidents, presences
from wire.store.files import atomic_write, read_bytes
from wire.store.paths import WirePlaces

LOOKS = 3
"""Looks in a row at which a presence has to be ahead of what the remote shows."""
BY_PRESENCE = "presence of "
"""How the subjects of what one presence tells begin; the agent follows."""
BY_PRESENCES = "presences"
"""The subject of what the remote withholds by the word of presences: one incident, however many say so."""

_TRUST = "trust"

Segment = Callable[[str, int], bytes]
"""Returns the accepted bytes of a channel's segment."""


class Said(NamedTuple):
    """That an agent has accepted a channel up to a line.

    Attributes:
        seq, head: of that line.
        trust: the version that the agent held, `3:<16 hex>`.
        source: the id of the line that says it, empty for the agent's presence.
    """

    agent: str
    channel: str
    seq: int
    head: str
    trust: str
    source: str = ""

    @property
    def by(self) -> str:
        """What says it, in our words."""
        return self.source or f"the presence of {self.agent}"


class Fit(Enum):
    """How a claim fits what is accepted here."""

    SAME = auto()
    OTHER = auto()
    AHEAD = auto()
    UNKNOWN = auto()


class View(NamedTuple):
    """What is accepted here.

    Attributes:
        ends: of the accepted channels.
        own: names of this machine's agents.
        forks: channels that stand still, of which machines may hold different parts.
    """

    chain: Chain
    ends: Mapping[str, Position]
    segment: Segment
    own: Iterable[str]
    forks: Iterable[str]

    def fit(self, said: Said) -> Fit:
        """Return how a claim fits."""
        if said.channel in self.forks:
            return Fit.UNKNOWN
        return weigh(said, self.chain, self.ends.get(said.channel), self.segment)


def weigh(said: Said, chain: Chain, end: Position | None, segment: Segment) -> Fit:
    """Return how a claim fits a channel that ends here at `end` (None: nothing of it is accepted).

    Where a key was retired or revoked since the claim was made, the lines that it cut are not held against anybody.
    """
    if not _still_counts(said, chain):
        return Fit.UNKNOWN
    if end is None or said.seq > end.seq:
        return Fit.AHEAD
    return Fit.SAME if head_at(said.channel, said.seq, end, segment) == said.head else Fit.OTHER


def head_at(channel: str, seq: int, end: Position, segment: Segment) -> str:
    """Return the head of an accepted line, by number."""
    if seq == end.seq:
        return end.head
    raw = line_at(seq, end.segment, lambda number: segment(channel, number))
    return sha256_hex(raw) if raw is not None else ""


def _still_counts(said: Said, chain: Chain) -> bool:
    then = chain.at(int(said.trust.partition(":")[0]))
    sender = said.channel.partition("/")[0]
    author = chain.newest.agents.get(sender)
    if then is None or then.reference != said.trust or author is None:
        return False
    before = then.agents.get(sender)
    for key in author.keys if before is not None else ():
        known = before.key(key.id) if before is not None else None
        if key.status == ACTIVE or known is None or (known.status, known.positions) == (key.status, key.positions):
            continue
        last = key.positions.get(said.channel, (0, ""))[0]
        if known.status != ACTIVE:
            last = min(last, known.positions.get(said.channel, (0, ""))[0])
        if said.seq > last:
            return False
    return True


# What is told


def other(said: Said, end: Position, segment: Segment, evidence: Mapping[str, object]) -> Finding:
    """Return what is told of a claim that names another line than the one accepted here."""
    held = head_at(said.channel, said.seq, end, segment)
    if said.source:
        facts: dict[str, object] = {"acknowledged": said.head, "accepted": held, "ack": said.source}
        why = f"{said.source} acknowledges another line {said.channel}/{said.seq} than the one accepted here"
        return Finding("SPLIT_VIEW", said.channel, why, {**facts, **evidence})
    why = f"{said.agent} has another line {said.channel}/{said.seq} than the one accepted here"
    facts = {"claimed": said.head, "accepted": held, "seq": said.seq}
    return Finding("SPLIT_VIEW", said.channel, why, {**facts, **evidence}, subject=BY_PRESENCE + said.agent)


def ahead(said: Said, seq: int, evidence: Mapping[str, object], *, own: bool = False) -> Finding:
    """Return what is told of a claim that is ahead of us.

    Args:
        seq: where the channel ends here.
        own: whether it is an agent of this machine whose lines are missing.
    """
    facts = {"seq": said.seq, "acknowledged": said.head, "end": seq, "by": said.agent, **evidence}
    if said.source:
        facts["ack"] = said.source
    subject = f"acknowledged by {said.agent}" if said.source else BY_PRESENCES
    if own:
        name = said.channel.partition("/")[0]
        return Finding(
            "STATE_LOST",
            said.channel,
            f"{said.by} says to have {said.channel}/{said.seq}, and this machine has sent {seq} line(s) there: either "
            f"what it sent was lost here and is withheld by the remote, or {said.agent} is wrong",
            facts,
            subject,
            f"send nothing as {name!r} before you know: ask {said.agent} for `wire show {said.channel}/{said.seq}`, by "
            "another way than this wire; where it is yours, `wire heal` there brings it back",
        )
    return Finding(
        "GAP",
        said.channel,
        f"{said.by} says to have {said.channel}/{said.seq}, and the remote shows {seq} line(s) of that channel here: "
        "the others are withheld from this machine, or were taken away",
        facts,
        subject,
        f"compare `wire status` with {said.agent} and {said.channel.partition('/')[0]}, by another way than this wire; "
        "who has the missing lines runs `wire heal`",
    )


# What is kept


@dataclass(slots=True)
class Bounds:
    """Claims that are ahead of us: acks, and of presences the first number that is missing, with the looks it missed.

    There is at most one of each for an agent and a channel: the one that says most, or has been waiting longest.
    """

    places: WirePlaces
    acked: dict[tuple[str, str], Said] = field(default_factory=dict)
    heard: dict[tuple[str, str], tuple[Said, int]] = field(default_factory=dict)
    _changed: bool = False

    @classmethod
    def load(cls, places: WirePlaces) -> "Bounds":
        """Read them; a damaged file counts as none, which only means that claims are heard anew."""
        bounds = cls(places)
        data = read_bytes(_path(places))
        try:
            found = json.loads(data) if data else {"acked": [], "heard": []}
            for one in found["acked"]:
                said = _said(one)
                bounds.acked[said.agent, said.channel] = said
            for *one, looks in found["heard"]:
                said = _said(one)
                bounds.heard[said.agent, said.channel] = said, int(looks)
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls(places)
        return bounds

    def save(self) -> None:
        """Write them where they changed; not durably."""
        if not self._changed:
            return
        found = {"acked": list(self.acked.values()), "heard": [[*said, looks] for said, looks in self.heard.values()]}
        atomic_write(_path(self.places), json.dumps(found).encode("ascii") + b"\n", durable=False)
        self._changed = False

    def acks(self, beyond: Mapping[tuple[str, str], Said], view: View, tip: str) -> list[Finding]:
        """Return what is told of acks that a tip does not bear out; it is to be told before the tip is settled.

        Args:
            beyond: of the lines that are new, what is ahead of their tip.
        """
        for who, said in beyond.items():
            if who not in self.acked or said.seq > self.acked[who].seq:
                self.acked[who], self._changed = said, True
        told = []
        for who, said in list(self.acked.items()):
            fit = view.fit(said)
            if fit is Fit.AHEAD:
                told.append(self._ahead(said, view, {"tip": tip}))
                continue
            del self.acked[who]
            self._changed = True
            if fit is Fit.OTHER:
                told.append(other(said, view.ends[said.channel], view.segment, {"tip": tip}))
        self.save()
        return told

    def presences(self, heard: Iterable[Presence], view: View) -> list[Finding]:
        """Count one look; return what is told of presences that are ahead of what the remote shows; end what is over.

        Args:
            heard: those that are new since the look before.
        """
        for presence in heard:
            self._hear(presence, view, looks=0)
        told: list[Finding] = []
        for who, (said, looks) in list(self.heard.items()):
            if said.channel == _TRUST:
                told += self._trust(who, said, looks, view)
                continue
            fit = view.fit(said)
            if fit is Fit.AHEAD:
                if self._told(said.channel, by_acks=True):
                    continue
                if looks == LOOKS - 1 and not self._told(said.channel):
                    told.append(self._ahead(said, view, self._presence(said.agent)))
                if looks < LOOKS:
                    self.heard[who], self._changed = (said, looks + 1), True
                continue
            self._over(who, looks, view)
            if fit is Fit.OTHER:
                told.append(other(said, view.ends[said.channel], view.segment, self._presence(said.agent)))
        self.save()
        return told

    def _hear(self, presence: Presence, view: View, *, looks: int) -> None:
        """Take down what of a presence is ahead of us and is not waited for already."""
        agent = presence.agent
        # Names of recipients are anybody's to make up, without end; what was for nobody on the wire nobody misses.
        claims = [
            Said(agent, channel, seq, head, presence.trust)
            for channel, (seq, head, _) in presence.channels.items()
            if _is_listed(channel.partition("/")[2], view.chain.newest)
        ]
        for said in claims:
            if (agent, said.channel) not in self.heard and view.fit(said) is Fit.AHEAD:
                self.heard[agent, said.channel], self._changed = (said, looks), True
        if (agent, _TRUST) not in self.heard and _version(presence.trust) > view.chain.newest.version:
            self.heard[agent, _TRUST] = Said(agent, _TRUST, 0, "", presence.trust), looks
            self._changed = True

    def _over(self, who: tuple[str, str], looks: int, view: View) -> None:
        """A claim is borne out, or means nothing any more: look at what its agent says by now."""
        del self.heard[who]
        self._changed = True
        agent, channel = who
        if looks == LOOKS and not self._told(channel):
            incidents.end(self.places.incidents_dir, ("GAP", "STATE_LOST"), channel, BY_PRESENCES)
        held = presences.load_one(self.places, agent)
        if held is not None:
            self._hear(held.presence, view, looks=0)

    def _told(self, channel: str, *, by_acks: bool = False) -> bool:
        """Return whether it is told already that a channel is withheld."""
        if by_acks:
            return any(one == channel for _, one in self.acked)
        return any(one == channel and looks == LOOKS for (_, one), (_, looks) in self.heard.items())

    def _trust(self, who: tuple[str, str], said: Said, looks: int, view: View) -> Iterable[Finding]:
        newest = view.chain.newest.version
        if _version(said.trust) <= newest:
            self._over(who, 0, view)
            return
        if looks < LOOKS:
            self.heard[who], self._changed = (said, looks + 1), True
        known = incidents.find(self.places.incidents_dir, "TRUST_WITHHELD", WIRE)
        if looks == LOOKS - 1 and (known is None or known.ended is not None):
            yield Finding(
                "TRUST_WITHHELD",
                WIRE,
                f"the presence of {said.agent} names trust version {_version(said.trust)}, the newest that the remote "
                f"shows is {newest}",
                {"named": said.trust, **self._presence(said.agent)},
                BY_PRESENCE + said.agent,
            )

    def _ahead(self, said: Said, view: View, evidence: Mapping[str, object]) -> Finding:
        end = view.ends.get(said.channel)
        own = said.channel.partition("/")[0] in view.own
        return ahead(said, end.seq if end is not None else 0, evidence, own=own)

    def _presence(self, agent: str) -> dict[str, object]:
        held = presences.load_one(self.places, agent)
        return presences.shown(self.places, held.presence.raw) if held is not None else {}


def _said(found: list[object]) -> Said:
    agent, channel, seq, head, trust, source = found
    said = Said(str(agent), str(channel), int(str(seq)), str(head), str(trust), str(source))
    if channel != _TRUST and not valid_channel(*said.channel.partition("/")[::2]):
        raise ValueError("not a channel")
    _version(said.trust)
    return said


def _is_listed(recipient: str, document: Document) -> bool:
    return recipient == EVERYONE or recipient in document.agents or recipient in document.groups


def _version(reference: str) -> int:
    return int(reference.partition(":")[0])


def _path(places: WirePlaces) -> str:
    return os.path.join(places.root, "bounds.json")
