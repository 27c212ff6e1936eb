"""Sending again what an agent of this machine had sent, and what lost its place when its key was revoked.

    for one in cut_lines(here): one.id, one.line, one.foreign
    reissue(here, ["mac/spark/7"])              the same words, to the byte, as new lines under the key at hand

Nothing is sent again by itself: with a stolen key the lines may be the thief's, and only their author knows. `foreign`
marks those that came to this machine from the remote, under its own key.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from wire.errors import UsageError
from wire.protocol import strictjson
from wire.protocol.chain import Position
from wire.protocol.line import Line, LineError, content, head, seal_again
from wire.store import cutlines, incidents, journal
from wire.verbs.here import Here
from wire.verbs.revoking import readable
from wire.verbs.sending import AgentKey, refuse_a_taken_name


class Cut(NamedTuple):
    """A line of the agent that counts no longer.

    Attributes:
        foreign: it came from the remote: this machine did not write it, or had forgotten it.
    """

    line: Line
    foreign: bool

    @property
    def id(self) -> str:
        """The id that it had."""
        return self.line.id


class Reissued(NamedTuple):
    """A line that was sent again: the id that it had, and the one that it has."""

    old: str
    id: str


def cut_lines(here: Here) -> list[Cut]:
    """Return the chosen agent's lines that were cut and do not stand in its journal again, channel by channel."""
    agent = here.agent()
    pin = here.pin()
    told = [one for one in incidents.list_(here.places.incidents_dir) if one.code in ("STATE_LOST", "CLONED")]
    read = partial(journal.read_segment, here.places)
    found = []
    for channel in sorted({*journal.channels(here.places), *pin.accepted}):
        if channel.partition("/")[0] != agent:
            continue
        gone = cutlines.read(here.places, channel)
        if not gone:
            continue
        there = Counter(_said(line) for line in readable(read, channel, journal.segments(here.places, channel)))
        adopted = {seq for one in told if one.scope == channel for seq in _numbers(one.evidence)}
        for line in gone:
            if there[_said(line)] > 0:
                there[_said(line)] -= 1
            else:
                found.append(Cut(line, line.seq in adopted))
    return found


def reissue(here: Here, ids: Sequence[str]) -> list[Reissued]:
    """Send cut lines again, in the order in which they had stood; what was sent again before is not in question.

    Raises:
        UsageError: there is no such cut line, or several with that id (`no-message`); nothing was sent.
        IdentityError: the agent's key cannot be used.
        DiskFull, StoreError: as `sending.send`.
    """
    pin, agent = here.pin(), here.agent()
    cut = [one.line for one in cut_lines(here)]
    counts = Counter(line.id for line in cut)
    for wanted in ids:
        if counts[wanted] != 1:
            raise UsageError(
                f"{wanted[:80]} is not one line that was cut and not sent again: there are {counts[wanted]}",
                reason="no-message",
                next_step="`wire keys reissue` lists them",
            )
    chosen = [line for line in cut if line.id in ids]
    key = AgentKey(here, pin.wire, agent)
    if key.signer.key_id not in pin.names.keys.get(agent, ()):
        refuse_a_taken_name(here, agent, key.signer)
    moved: dict[str, str] = {}
    trust = f"{pin.trust_version}:{pin.trust_hash[:16]}"
    for channel in dict.fromkeys(line.channel for line in chosen):

        def build(end: Position, channel: str = channel) -> list[bytes]:
            signer, lines = key.now(), []
            seq, prev = end.seq, end.head
            for line in chosen:
                if line.channel != channel:
                    continue
                seq += 1
                moved[line.id] = f"{channel}/{seq}"
                lines.append(seal_again(signer, line, seq=seq, prev=prev, trust=trust, moved=moved))
                prev = head(lines[-1][:-1])
            return lines

        journal.append(
            here.places,
            pin.wire,
            channel,
            build,
            copy_to=here.places.coordination,
            floor=pin.accepted.get(channel),
        )
    return [Reissued(line.id, moved[line.id]) for line in chosen]


def _said(line: Line) -> bytes:
    """Return what stays the same when a line is sent again: its time and what it says, but for ids that moved."""
    try:
        members = {name: value for name, value in content(line).items() if name in ("type", "subject", "body", "enc")}
    except LineError:
        return line.raw
    return line.ts.encode("ascii") + strictjson.dumps(members)


def _numbers(evidence: object) -> range:
    first, last = (evidence.get(name) if isinstance(evidence, dict) else None for name in ("first", "last"))
    return range(first, last + 1) if isinstance(first, int) and isinstance(last, int) else range(0)
