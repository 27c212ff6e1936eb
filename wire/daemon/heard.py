"""What a presence is worth: pure, one at a time (PROTOCOL.md, section "Presence").

    presence = judge(raw, "spark", known, chain)        raises Refused; None: it is the one that is known
    mine = judge_own(raw, "mac", published, instance, chain, now=time.time(), seen=False)

One rule orders the presences of an agent, whichever instance made them: the higher counter is the newer one, and what
is not newer than what is known is a replay. Under the key of another time nothing is compared: a stolen key must not
decide how high the next one has to count.
"""

import calendar
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from wire.daemon.bounds import Fit, Said, other, weigh
from wire.daemon.findings import WIRE, Finding
from wire.keys.trust import ACTIVE, Chain
from wire.protocol.chain import Position
from wire.protocol.encoding import PRESENCE_TYPE, verify
from wire.protocol.line import LineError
from wire.protocol.presence import Presence, opened, parse
from wire.store.presences import MISSED_INTERVALS

REF = "refs/wire/presence/"
"""Where the presences stand, by name; the scope of what is told about one: no message is concerned."""


class Refused(Exception):
    """A presence that does not count; `str()` says why.

    Attributes:
        over: it counted once, under a key that was retired or revoked since: nobody did anything.
    """

    def __init__(self, why: str, *, over: bool = False) -> None:
        super().__init__(why)
        self.over = over


class Own(NamedTuple):
    """What stands at the ref of an agent of this machine, where that is not what this machine published.

    Attributes:
        floor: the counter above which the next presence has to be, 0 where nothing counts.
        problem: what is to be told, None where this machine's own lost state explains it.
        odd: whether only a copy of this machine's state, or a backup that was restored, explains it.
    """

    floor: int
    problem: Finding | None
    odd: bool = False


def judge(raw: bytes | None, agent: str, known: Presence | None, chain: Chain) -> Presence | None:
    """Return a presence that counts and is newer than the one known, or None when it is that one.

    Args:
        raw: the file's bytes with the newline, None for what is no small file.
        agent: whose name the ref has.
        known: the newest one that was accepted.

    Raises:
        Refused: it does not count.
    """
    presence = _genuine(raw, agent, chain)
    if known is None or not _counts(chain, agent, known.key):
        return presence
    if presence.raw == known.raw:
        return None
    if presence.counter == known.counter:
        raise Refused(f"it has the counter {presence.counter} and differs from the one that had it before")
    if presence.counter < known.counter:
        raise Refused(f"it has the counter {presence.counter}, and {known.counter} was seen before: an old one again")
    return presence


def judge_own(
    raw: bytes | None, agent: str, published: Presence | None, instance: str, chain: Chain, *, now: float, seen: bool
) -> Own | None:
    """Judge what stands at the ref of an agent of this machine; None: it is what this machine published.

    Args:
        published: what this state folder published last.
        instance: the id of this state folder.
        now: seconds of the epoch.
        seen: whether this happened before with our own instance, so that a backup that was restored once is no reason.
    """
    if published is not None and raw == published.raw + b"\n":
        return None
    try:
        presence = _genuine(raw, agent, chain)
    except Refused as refused:
        return Own(0, None if refused.over else _not_ours(agent, f"what stands there does not count: {refused}"))
    counted = published.counter if published is not None and published.instance == instance else 0
    if presence.counter <= counted:
        return Own(0, _not_ours(agent, f"it has the counter {presence.counter}, and {counted} was published"))
    odd = presence.instance == instance
    if odd and not seen:
        return Own(presence.counter, None, odd=True)
    if odd or counted or _is_young(presence, now):
        return Own(presence.counter, _cloned(presence), odd=odd)
    return Own(presence.counter, None)


def contradictions(
    presence: Presence,
    before: Presence | None,
    accepted: Mapping[str, Position],
    segment: Callable[[str, int], bytes],
    chain: Chain,
) -> Iterator[Finding]:
    """Yield where a presence shows that its agent holds another history than this machine.

    An agent that is ahead contradicts nobody until we have as much (see `bounds`), and neither does one that holds
    another trust version: a key that was revoked may have cut a channel here or there. What the presence before it said
    was compared then. The presence itself is the evidence, which the caller adds.

    Args:
        accepted: the ends of the accepted channels.
        segment: returns the accepted bytes of a channel's segment.
    """
    compared = before.channels if before is not None and before.trust == presence.trust else {}
    for channel, (seq, head, _) in presence.channels.items() if presence.trust == chain.newest.reference else ():
        end = accepted.get(channel)
        if end is None or compared.get(channel, (0, ""))[:2] == (seq, head):
            continue
        said = Said(presence.agent, channel, seq, head, presence.trust)
        if weigh(said, chain, end, segment) is Fit.OTHER:
            yield other(said, end, segment, {})
    version = chain.at(int(presence.trust.partition(":")[0]))
    if version is not None and version.reference != presence.trust:
        yield Finding(
            "SPLIT_VIEW",
            WIRE,
            f"{presence.agent} holds another trust version {version.version} than this machine",
            {"named": presence.trust, "held": version.reference},
            subject=f"trust of {presence.agent}",
        )


def _genuine(raw: bytes | None, agent: str, chain: Chain) -> Presence:
    """Return the presence that these bytes are, signed by a key of the agent that counts."""
    if raw is None:
        raise Refused("there is no small file in it")
    line, newline, rest = raw.partition(b"\n")
    if not newline or rest:
        raise Refused("it is not one line")
    try:
        signed = opened(line)
        key = chain.key(agent, signed.key)
        if key is None:
            raise Refused("its key is none of that agent's")
        if not verify(key.public, signed.signature, PRESENCE_TYPE, signed.body_bytes):
            raise Refused("its signature does not hold")
        if not _counts(chain, agent, signed.key):
            raise Refused("its key counts no longer", over=True)
        presence = parse(line)
    except LineError as error:
        raise Refused(str(error)) from error
    if presence.wire != chain.wire or presence.agent != agent:
        raise Refused(f"it is {presence.agent}'s on the wire {presence.wire}")
    return presence


def _counts(chain: Chain, agent: str, key_id: str) -> bool:
    key = chain.key(agent, key_id)
    return key is not None and key.status == ACTIVE and chain.newest.agents[agent].status == ACTIVE


def _is_young(presence: Presence, now: float) -> bool:
    """Return whether, by its author's clock, the next one of that instance is still to be expected."""
    try:
        made = calendar.timegm(time.strptime(presence.ts[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return True
    return now - made <= MISSED_INTERVALS * presence.interval


def _cloned(presence: Presence) -> Finding:
    agent = presence.agent
    return Finding(
        "CLONED",
        WIRE,
        f"another machine shows itself under {agent}'s key (instance {presence.instance[:12]}, at {presence.ts}); or "
        "this machine's state was made anew a moment ago",
        {"other": presence.instance, "counter": presence.counter},
        subject=f"presence of {agent}",
        next_step=f"if two machines have {agent}'s key, stop one (`wire service stop`) and let it join under a name of "
        "its own; if this is the same machine with new state, `wire incidents resolve {id}`",
    )


def _not_ours(agent: str, why: str) -> Finding:
    return Finding(
        "PRESENCE",
        f"{REF}{agent}",
        f"somebody replaced {agent}'s presence at the remote; {why}. It is published again",
    )
