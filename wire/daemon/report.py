"""What one cycle did and found, and which incident each kind of trouble with the remote is."""

from dataclasses import dataclass, field

from wire.errors import WireError
from wire.gitio import Kind
from wire.store.incidents import Incident
from wire.store.pin import Frozen

TROUBLE = {
    Kind.AUTH: "AUTH",
    Kind.HOST_KEY: "HOST_KEY",
    Kind.NETWORK: "NETWORK",
    Kind.TIMEOUT: "NETWORK",
    Kind.NOT_FOUND: "NOT_FOUND",
    Kind.NO_REF: "NOT_FOUND",
    Kind.REJECTED: "REJECTED",
    Kind.RATE_LIMIT: "RATE_LIMIT",
    Kind.TOO_LARGE: "TOO_LARGE",
    Kind.DISK_FULL: "DISK_FULL",
    Kind.CORRUPT: "CORRUPT",
    Kind.CLONE: "CLONE_STATE",
}
"""Incident codes of failures; everything else is `UNKNOWN`."""


@dataclass(slots=True)
class Report:
    """What one cycle did and found.

    Attributes:
        tip: the remote's tip that was judged, None when it was not reached.
        accepted: number of lines accepted from others, per channel.
        collected: number of our own lines that became accepted, per channel.
        pushed: number of our lines that this cycle brought to the remote.
        heartbeats: how many of the accepted lines only show that their author is alive.
        alive: how many of our own lines only show that an agent is alive.
        beats: how many presences were pushed by themselves.
        pushed_at: when the remote last took a push of this cycle, seconds of the epoch.
        waiting: lines of agents that are not approved yet.
        locked: agents whose key could not sign, since no passphrase was at hand.
        raised: incidents that are new or were counted again.
        failure: why the remote was not reached or refused; None when fetch and push went well.
        frozen: why nothing is accepted or published.
    """

    tip: str | None = None
    fetched: bool = False
    accepted: dict[str, int] = field(default_factory=dict)
    collected: dict[str, int] = field(default_factory=dict)
    pushed: int = 0
    heartbeats: int = 0
    alive: int = 0
    beats: int = 0
    pushed_at: float | None = None
    waiting: dict[str, int] = field(default_factory=dict)
    locked: tuple[str, ...] = ()
    raised: list[Incident] = field(default_factory=list)
    failure: WireError | None = None
    frozen: Frozen | None = None

    @property
    def moved(self) -> bool:
        """Whether anything was sent or received; what only shows that somebody is alive is no traffic."""
        received, sent = sum(self.accepted.values()), max(sum(self.collected.values()), self.pushed)
        return received > self.heartbeats or sent > self.alive
