"""Revoking a key: it counts up to a line of each channel, and for nothing behind it, on every machine.

    survey(here, "mac")                      where the key stands, channel by channel, before anything is changed
    revoke(here, "mac", reason="lost")       a new trust version that says so

A key counts by position and never by time. The position proposed is the end that this machine has accepted; who may
have seen more or less than that is told, and another line may be named instead. A later version may move a position.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wire.daemon import trusting
from wire.daemon.proposing import TERMS
from wire.daemon.site import Site
from wire.errors import UsageError
from wire.keys.trust import ACTIVE, REMOVED, REVOKED, Agent, Chain, Key, retire
from wire.protocol.chain import Position, lines_of
from wire.protocol.encoding import LINE_TYPE, fingerprint, verify
from wire.protocol.line import Line, LineError, genesis, parse
from wire.protocol.names import parse_id, split_channel
from wire.store import cutlines, presences
from wire.store.files import utc_now
from wire.store.pin import Pin
from wire.verbs.here import Here
from wire.verbs.proposing import Pending, waits

REASONS = ("lost", "stolen", "left")
_ACK = re.compile(rb'"ack":\[([1-9][0-9]{0,14}),"([0-9a-f]{64})"\]')
_SEGMENTS = 2
"""How many of a channel's newest segments are searched for the highest ack in it."""
_POSITION = re.compile(r"(.+/(?:0|[1-9][0-9]{0,14}))(?::([0-9a-f]{64}))?", re.ASCII)


class Acked(NamedTuple):
    """The furthest that somebody said to have come in a channel, and who."""

    seq: int
    by: str


@dataclass(frozen=True, slots=True)
class Row:
    """One channel of the key's agent.

    Attributes:
        last: number of the last line that is accepted here.
        acked: the furthest that anybody else said to have come, None where nobody said anything.
        keep: number of the last line that is to count.
        head: its head.
        warning: what a person should know of it before agreeing, empty for nothing.
    """

    channel: str
    last: int
    acked: Acked | None
    keep: int
    head: str
    warning: str

    @property
    def cut(self) -> int:
        """How many accepted lines stop counting."""
        return max(0, self.last - self.keep)


@dataclass(frozen=True, slots=True)
class Survey:
    """What a revocation would say.

    Attributes:
        status: of the key now.
        removes: whether the agent itself is taken off the wire.
    """

    name: str
    reason: str
    key_id: str
    fingerprint: str
    status: str
    removes: bool
    rows: tuple[Row, ...]

    @property
    def warnings(self) -> list[str]:
        """What a person should know before agreeing."""
        return [row.warning for row in self.rows if row.warning]


@dataclass(frozen=True, slots=True)
class Revoked:
    """A revocation that is in force, by the checkpoint of the trust that says so; or a proposal of one."""

    survey: Survey
    checkpoint: str
    proposal: Pending | None = None


def survey(here: Here, name: str, key: str | None = None, *, reason: str, at: Sequence[str] = ()) -> Survey:
    """Return what revoking a key would say, by the tip as it is now.

    Args:
        key: id or fingerprint; the agent's active key, or its last one, when omitted.
        reason: one of `REASONS`.
        at: the last line of a channel that is to count: `mac/spark/42`, `mac/spark/0` for none; with `:` and its head
            behind it where two lines claim that place.

    Raises:
        UsageError: no such agent or key (`name-unknown`, `key-unknown`), reason (`bad-reason`) or line (`no-message`).
        RemoteError: the remote cannot be reached.
    """
    site = Site.open(here.settings, here.config)
    return _survey(here, site, trusting.fetched(site), name, key, reason, at)


def revoke(
    here: Here,
    name: str,
    key: str | None = None,
    *,
    reason: str,
    at: Sequence[str] = (),
    beside: bool = False,
    confirm: Callable[[Survey], bool],
) -> Revoked:
    """Let a key count no further: a new trust version, pushed at once, or a proposal of one.

    Args:
        key, reason, at: as for `survey`; `left` also takes the agent off the wire.
        beside: also while another proposal is open.
        confirm: asked once with what would be said.

    Raises:
        UsageError: as `survey`, or not confirmed (`not-confirmed`).
        TrustError, RemoteError: see `trusting.change`.
    """
    seen = survey(here, name, key, reason=reason, at=at)
    site = Site.open(here.settings, here.config)
    trusting.root_here(site, site.trust(site.pin()))
    if not confirm(seen):
        raise UsageError(f"the key of {name!r} was not revoked; nothing was changed", reason="not-confirmed")
    positions = {row.channel: (row.keep, row.head) for row in seen.rows}

    def build(chain: Chain) -> bytes | None:
        agent = _agent(chain, name)
        held = agent.key(seen.key_id)
        done = agent.status == REMOVED or not seen.removes
        if held is not None and held.status == REVOKED and dict(held.positions) == positions and done:
            return None
        return retire(
            chain.newest,
            chain.wire,
            name=name,
            key_id=seen.key_id,
            status=REVOKED,
            positions=positions,
            created=utc_now(),
            remove=seen.removes,
        )

    terms = TERMS._replace(beside=beside)
    done = trusting.change(site, build, f"trust: revoke the key of {name} ({reason})", terms=terms)
    return Revoked(seen, done.chain.newest.checkpoint, waits(site, done))


def _survey(
    here: Here, site: Site, chain: Chain, name: str, wanted: str | None, reason: str, at: Sequence[str]
) -> Survey:
    if reason not in REASONS:
        raise UsageError(f"{reason[:40]!r} is no reason to revoke a key: {', '.join(REASONS)}", reason="bad-reason")
    agent = _agent(chain, name)
    key = _key(agent, wanted)
    removes = reason == "left"
    if removes and agent.active_key not in (None, key):
        raise UsageError(
            f"{name!r} leaves with its active key, and {key.id} is {key.status}",
            reason="key-unknown",
            next_step=f"wire trust revoke {name} --reason left",
        )
    pin = site.pin()
    segments = site.accepted(pin).segment
    named = _named(here, chain, pin, segments, agent, key, at)
    rows = []
    for channel in sorted({one for one in pin.accepted if one.startswith(f"{name}/")} | {*key.positions, *named}):
        end = pin.accepted.get(channel) or Position.start(chain.wire, channel)
        known = key.positions.get(channel) or ((end.seq, end.head) if key.status == ACTIVE and end.seq else None)
        keep = named.get(channel) or known
        if keep is None:
            continue
        acked = _acked(here, pin, segments, channel)
        rows.append(Row(channel, end.seq, acked, *keep, _warning(channel, end, acked, keep, reason)))
    return Survey(name, reason, key.id, fingerprint(key.public), key.status, removes, tuple(rows))


def _agent(chain: Chain, name: str) -> Agent:
    agent = chain.newest.agents.get(name)
    if agent is None:
        raise UsageError(
            f"there is no agent {name[:64]!r} on this wire", reason="name-unknown", next_step="wire trust show"
        )
    return agent


def _key(agent: Agent, wanted: str | None) -> Key:
    if wanted is None:
        return agent.active_key or agent.keys[-1]
    found = [key for key in agent.keys if wanted in (key.id, fingerprint(key.public))]
    if not found:
        raise UsageError(
            f"{agent.name!r} has no key {wanted[:64]!r}; it has {', '.join(key.id for key in agent.keys)}",
            reason="key-unknown",
            next_step="wire trust show",
        )
    return found[0]


def _named(
    here: Here,
    chain: Chain,
    pin: Pin,
    segments: Callable[[str, int], bytes],
    agent: Agent,
    key: Key,
    at: Sequence[str],
) -> dict[str, tuple[int, str]]:
    """Return number and head of the lines that a person named, per channel."""
    found: dict[str, tuple[int, str]] = {}
    for text in at:
        match = _POSITION.fullmatch(text)
        channel, _, number = (match[1] if match else text).rpartition("/")
        seq = int(number) if match else 0
        if match is None or seq:
            parse_id(match[1] if match else text)
        split_channel(channel)
        if channel.partition("/")[0] != agent.name:
            raise UsageError(f"{text[:80]} is no line of {agent.name!r}", reason="bad-id")
        if seq == 0:
            found[channel] = (0, genesis(chain.wire, channel))
            continue
        heads = [match[2]] if match and match[2] else list(_heads(here, chain, pin, segments, channel, seq, agent))
        if len(heads) != 1:
            what = "there is none here" if not heads else f"these were accepted one after the other: {', '.join(heads)}"
            raise UsageError(
                f"--at {text[:80]} does not name one line: {what}",
                reason="no-message",
                next_step=f"say which, with its head: --at {channel}/{seq}:HEAD",
            )
        found[channel] = (seq, heads[0])
    return found


def _heads(
    here: Here,
    chain: Chain,
    pin: Pin,
    segments: Callable[[str, int], bytes],
    channel: str,
    seq: int,
    agent: Agent,
) -> Iterator[str]:
    """Yield the head of the accepted line with a number; where there is none, those of lines that were cut there."""
    end = pin.accepted.get(channel)
    if end is not None and seq <= end.seq:
        for line in readable(segments, channel, range(end.segment, 0, -1)):
            if line.seq == seq:
                yield line.head
                return
    for line in cutlines.read(here.places, channel):
        signed_by = agent.key(line.key_id)
        genuine = signed_by is not None and verify(signed_by.public, line.signature, LINE_TYPE, line.body_bytes)
        if line.seq == seq and line.wire == chain.wire and genuine:
            yield line.head


def readable(segments: Callable[[str, int], bytes], channel: str, numbers: Sequence[int]) -> Iterator[Line]:
    """Yield the lines of some segments of a channel that can be read."""
    for number in numbers:
        for raw in lines_of(segments(channel, number)):
            try:
                yield parse(raw)
            except LineError:
                continue


def _acked(here: Here, pin: Pin, segments: Callable[[str, int], bytes], channel: str) -> Acked | None:
    """Return the furthest that anybody but the author said to have come in a channel, by lines and by presence."""
    sender, recipient = split_channel(channel)
    said = []
    back = f"{recipient}/{sender}"
    end = pin.accepted.get(back)
    if end is not None:
        for number in range(end.segment, max(0, end.segment - _SEGMENTS), -1):
            said += [Acked(int(one[1]), recipient) for one in _ACK.finditer(segments(back, number))]
    heard: Mapping[str, presences.Heard] = presences.load(here.places)
    for name, one in heard.items():
        at = one.presence.channels.get(channel)
        if at is not None and name != sender:
            said.append(Acked(at[0], name))
    return max(said, default=None)


def _warning(channel: str, end: Position, acked: Acked | None, keep: tuple[int, str], reason: str) -> str:
    if acked is not None and acked.seq > end.seq:
        return (
            f"{channel}: {acked.by} says to have line {acked.seq}, and this machine has {end.seq}: lines after"
            f" {keep[0]} that are genuine would be cut there. Let {acked.by} sync first, or ask what they are"
        )
    confirmed = acked.seq if acked is not None else 0
    if keep[0] > confirmed and reason == "stolen":
        return (
            f"{channel}: nobody says to have lines {confirmed + 1} to {keep[0]}: if the thief wrote them, name the last"
            f" good line with --at {channel}/{confirmed}"
        )
    if keep[0] < confirmed:
        return (
            f"{channel}: {acked.by if acked else ''} has lines up to {confirmed}; those after {keep[0]} are cut there"
        )
    return ""
