"""What goes into the verifier, and what comes out of it. Data only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wire.daemon.bounds import Said
from wire.daemon.findings import Finding
from wire.gitio import Change
from wire.keys.trust import ACTIVE, Chain
from wire.protocol.chain import Position
from wire.protocol.line import Line
from wire.store.trustforks import Kept


@dataclass(frozen=True, slots=True)
class Before:
    """What this machine held before the tip was judged.

    Attributes:
        verified: the last verified commit of the remote, None before the first.
        ends: accepted end per channel.
        published: per own channel, the number of the last line that the verified commit carried.
        own: names of this machine's approved agents.
        forks: channels in which two valid lines claimed one place before, with the key that signed them.
        decided: by number, trust documents that a person decided to follow where there are two.
    """

    chain: Chain
    verified: str | None
    ends: Mapping[str, Position]
    published: Mapping[str, int]
    own: frozenset[str]
    forks: Mapping[str, str]
    decided: Mapping[int, Kept] = field(default_factory=dict)


@dataclass(slots=True)
class Judged:
    """What a tip turned out to be. `accepted` of the verifier holds the new bytes unless `frozen`.

    Attributes:
        chain: the trust in force after the tip.
        ends: new accepted ends of the channels that changed.
        new: lines that were accepted, per channel.
        carried: per own channel that differs, the number of the last line that the tip carries without a hole.
        adopted: own channels whose new lines came from the remote, with the end behind which they stand.
        displaced: our own lines, per channel, that nobody has and whose place is taken.
        restore: own folders or trust files at the tip are not as they must be.
        forks: channels in which two valid lines claim one place, with the key that signed them.
        unknown: where the first of the lines of `pending` stands, per channel.
        other: a chain that ends in another document than the one held, as validly signed, if the tip has one.
        cut: bytes of accepted lines that no longer count, per channel.
        beyond: by author and channel, acks of lines that the tip does not have.
        requests: object ids of what newcomers ask for, by file name.
        pending: channels with lines of keys that nobody vouched for yet.
        frozen: the finding that freezes the wire, if one does.
        changes: all differences from the accepted commit to the tip.
    """

    chain: Chain
    ends: dict[str, Position] = field(default_factory=dict)
    new: dict[str, list[Line]] = field(default_factory=dict)
    carried: dict[str, int] = field(default_factory=dict)
    adopted: dict[str, Position] = field(default_factory=dict)
    displaced: dict[str, bytes] = field(default_factory=dict)
    restore: bool = False
    forks: dict[str, str] = field(default_factory=dict)
    other: Chain | None = None
    cut: dict[str, bytes] = field(default_factory=dict)
    beyond: dict[tuple[str, str], Said] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, dict[str, Any]] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    frozen: Finding | None = None
    changes: Sequence[Change] = ()


def end_of(before: Before, judged: Judged, channel: str) -> Position:
    """Return the accepted end of a channel, as far as the tip was judged."""
    start = Position.start(judged.chain.wire, channel)
    return judged.ends.get(channel) or before.ends.get(channel) or start


def forks_in_force(forks: Mapping[str, str], chain: Chain) -> dict[str, str]:
    """Return the forks that are not over.

    A fork is over when its key no longer counts without bounds: a person revoked it at the position to keep.
    """
    return {
        channel: key_id
        for channel, key_id in forks.items()
        if (owner := chain.owner(key_id)) is None or owner[1].status == ACTIVE
    }
