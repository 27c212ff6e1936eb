"""What proves that a message reached somebody (PROTOCOL.md, section "States of a message"). Pure.

A recipient proves that it has our line by naming a number and a head, in a signed presence or in the `ack` member of a
signed line of its own. Both count only where the head is the one that our own accepted line has at that number: a
number alone proves nothing, nor does a head that we never made, nor one from behind our end.

    for proof in of_presence(presence, {"mac"}, heads): …
"""

from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

from wire.protocol.line import Line
from wire.protocol.presence import Presence

DELIVERED, READ = "delivered", "read"
ANSWERS = frozenset({"ack", "reply", "accept", "reject", "counter", "receipt"})
"""The types of lines that answer the message which they name in `re`."""
MACHINE_TYPES = frozenset({"heartbeat", "incident"})
"""The types of lines that daemons write by themselves: nobody owes them a look."""

Heads = Callable[[str, int], str | None]
"""Returns the head of our own accepted line at a number of a channel, None where there is none."""


class Proof(NamedTuple):
    """That an agent has, or had in front of it, every line of a channel up to `seq`, whose head is `head`."""

    channel: str
    agent: str
    state: str
    seq: int
    head: str


def of_presence(presence: Presence, local: Container[str], heads: Heads) -> Iterator[Proof]:
    """Yield what a presence proves about the channels of local agents.

    Args:
        local: the agents of this machine, whose lines are meant.
    """
    for channel, (seq, head, read) in presence.channels.items():
        if channel.partition("/")[0] not in local or seq < 1 or heads(channel, seq) != head:
            continue
        yield Proof(channel, presence.agent, DELIVERED, seq, head)
        read = min(read, seq)
        if read >= 1:
            yield Proof(channel, presence.agent, READ, read, head if read == seq else heads(channel, read) or head)


def of_ack(line: Line, ack: object, local: Container[str], heads: Heads) -> Proof | None:
    """Return what the `ack` member of somebody's accepted line proves about our channel to it, if anything."""
    if line.recipient not in local or not isinstance(ack, list) or len(ack) != 2:
        return None
    seq, head = ack
    channel = f"{line.recipient}/{line.sender}"
    if not isinstance(seq, int) or seq < 1 or heads(channel, seq) != head:
        return None
    return Proof(channel, line.sender, DELIVERED, seq, head)
