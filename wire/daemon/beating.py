"""The presences of this machine's agents: what they say, when the next is due, and how it gets to the remote.

    beats = ready(site, pin, chain, signers, promise, riding=True)      those that are due, signed
    results = push(site, pin, beats, "<commit>:refs/heads/main")        in one request with the lines
    told = taken(site, beats, results)                                  what became of them

A presence is due when what it says has changed, and before the time that the last one promised is over. It rides for
nothing where lines are pushed anyway; alone it costs one request. Where the host takes no such refs, a line of type
`heartbeat` carries the same signed presence, seldom.

What it does not do: touch the branch, the pin or the clone's files. When a change alone is worth a push, `pulse` says.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from wire.daemon.ledger import BEAT, FILE, HEARD, Ledger
from wire.daemon.site import Site
from wire.gitio import REPLACEABLE, GitFailed, Kind, PushResult, Put, RefUpdate, refs_below
from wire.keys.trust import Chain
from wire.protocol.chain import Position
from wire.protocol.encoding import Signer
from wire.protocol.line import Line, LineError, content
from wire.protocol.line import seal as seal_line
from wire.protocol.names import EVERYONE
from wire.protocol.presence import COUNTER_MAX, TIERS, Presence, parse
from wire.protocol.presence import seal as seal_presence
from wire.store import cursors, journal, presences
from wire.store.cursors import DEFAULT_READER
from wire.store.files import is_locked, utc_text
from wire.store.paths import WirePlaces
from wire.store.pin import Pin
from wire.store.presences import Heard, Refusal
from wire.store.progress import LEAST_SECONDS, SLOWEST_SECONDS, Progress

HEARTBEAT = "heartbeat"
CHANNELS_MAX = 256
"""Channels that one presence names: those to the agent itself first."""
BY_HAND = "-"
"""The tier where no daemon runs."""
RETRY_SECONDS = 21_600.0
"""How often presences are tried again where the host refused them."""


class Promise(NamedTuple):
    """What a machine can promise about its next presence.

    Attributes:
        tier: the tier's name, `-` where no daemon runs.
        interval: seconds after which the next presence is promised.
        looks: seconds until the next look, at which it could be published.
        eager: publish what has changed at once, without waiting for more.
    """

    tier: str = BY_HAND
    interval: float = SLOWEST_SECONDS
    looks: float = 0.0
    eager: bool = True


def by_hand(places: WirePlaces) -> Promise:
    """Return what somebody may promise who syncs by hand: what the daemon did, where one runs, and else little."""
    if not is_locked(places.lock("daemon")):
        return Promise()
    progress = Progress.load(places)
    tier = progress.tier if progress.tier in TIERS else BY_HAND
    return Promise(tier, max(progress.interval, LEAST_SECONDS) * 3 if tier != BY_HAND else SLOWEST_SECONDS)


class Beat(NamedTuple):
    """One presence that is about to be published: its commit, and what the remote's ref is expected to hold."""

    agent: str
    presence: Presence
    commit: str
    expected: str

    @property
    def ref(self) -> str:
        """The remote's ref."""
        return REPLACEABLE + self.agent


class Says(NamedTuple):
    """What an agent's presence says, apart from when and by which instance."""

    state: str
    note: str
    eta: str | None
    trust: str
    channels: Mapping[str, tuple[int, str, int]]


def says(places: WirePlaces, pin: Pin, agent: str, own: Collection[str]) -> Says:
    """Return what an agent's presence is to say now: its state, and how far it has received and read.

    Of lines of this machine's own agents it says nothing before the remote carries them: others would miss them.

    Args:
        own: the agents of this machine.
    """
    groups = [name for name, members in pin.names.groups.items() if agent in members]
    rank = {name: number for number, name in enumerate([agent, *sorted(groups), EVERYONE])}
    found = []
    for channel, end in pin.accepted.items():
        sender, _, recipient = channel.partition("/")
        if end.seq and sender != agent and recipient in rank:
            found.append((rank[recipient], channel))
    read = cursors.load(places.cursors_dir, agent, DEFAULT_READER).positions if found else {}
    channels = {}
    for _, channel in sorted(found)[:CHANNELS_MAX]:
        end, cursor = pin.accepted[channel], read.get(channel)
        seq, head = end.seq, end.head
        carried = pin.remote_seq.get(channel, 0)
        if seq > carried and channel.partition("/")[0] in own:
            seq, head = _said_before(places, agent, channel)
            if not 0 < seq <= carried:
                continue
        channels[channel] = (seq, head, min(seq, cursor.seq) if cursor is not None else 0)
    return Says(*presences.declared(places, agent), f"{pin.trust_version}:{pin.trust_hash[:16]}", channels)


def _said_before(places: WirePlaces, agent: str, channel: str) -> tuple[int, str]:
    held = presences.load_one(places, agent)
    return held.presence.channels.get(channel, (0, "", 0))[:2] if held is not None else (0, "")


def differs(published: Heard | None, wanted: Says, instance: str) -> bool:
    """Return whether what this instance published last is not what is to be said now."""
    if published is None or published.presence.instance != instance:
        return True
    was = published.presence
    return Says(was.state, was.note, was.eta, was.trust, was.channels) != wanted


def ready(
    site: Site, pin: Pin, chain: Chain, signers: Mapping[str, Signer], promise: Promise, *, riding: bool
) -> list[Beat]:
    """Return the presences that are due, signed and committed.

    Args:
        signers: the keys of this machine's approved agents.
        riding: lines are pushed anyway, so that whatever changed goes with them.

    Raises:
        GitFailed: one could not be made.
    """
    now = time.time()
    refused = presences.refusal(site.places)
    if refused is not None and 0 <= now - refused.tried < RETRY_SECONDS:
        return []
    floors = Ledger.load(site.places).floors
    beats: list[Beat] = []
    for agent, signer in signers.items():
        held = presences.load_one(site.places, agent)
        wanted = says(site.places, pin, agent, site.config.agents)
        if agent not in floors and not _due(held, wanted, pin.instance, promise, now, riding=riding):
            continue
        presence = _sealed(pin, agent, signer, wanted, promise, held, floors.get(agent, 0), now)
        put = Put(FILE.encode("ascii"), presence.raw + b"\n")
        commit = site.git.write_commit(BEAT + agent, base=None, parents=[], message="presence", changes=[put])
        beats.append(Beat(agent, presence, commit, _expected(site, agent)))
    return beats


def push(site: Site, pin: Pin, beats: Sequence[Beat], refspec: str | None = None) -> dict[str, PushResult]:
    """Push presences, and the branch with them where its refspec is given; return the result of each remote ref.

    A host may refuse the whole because of one. What is refused is pushed again as the branch alone: whatever a host
    thinks of presences, it must not stop the lines.

    Raises:
        GitFailed: nothing could be pushed.
    """
    if beats:
        ledger = Ledger.load(site.places)
        ledger.tried |= {beat.agent: beat.commit for beat in beats}
        ledger.save()
    results = _pushed(site, pin, beats, refspec)
    raced = [beat for beat in beats if beat.ref in results and results[beat.ref].status == "race"]
    if raced:
        # Somebody removed it: that shows in no fetch. What somebody replaced is judged with the next one.
        there = site.git.ls_remote(pin.remote, *(beat.ref for beat in raced))
        gone = [beat._replace(expected="") for beat in raced if beat.ref not in there]
        again = _pushed(site, pin, gone, None) if gone else {}
        # Not there, and not to be made either: something else stands in its place, above or below its name.
        results |= {ref: one._replace(status="rejected") if one.status == "race" else one for ref, one in again.items()}
    return results


def _pushed(site: Site, pin: Pin, beats: Sequence[Beat], refspec: str | None) -> dict[str, PushResult]:
    refspecs = [*([refspec] if refspec else []), *(f"{beat.commit}:{beat.ref}" for beat in beats)]
    replace = {beat.ref: beat.expected for beat in beats}
    if refspec is None or not beats:
        return site.git.push_refs(pin.remote, refspecs, replace=replace)
    branch = refspec.rpartition(":")[2]
    try:
        results = site.git.push_refs(pin.remote, refspecs, replace=replace)
    except GitFailed as error:
        if error.kind not in (Kind.REJECTED, Kind.UNKNOWN, Kind.MALFORMED):
            raise
        results = {}
    if branch not in results or results[branch].status == "rejected":
        alone = site.git.push(pin.remote, refspec)
        if alone.status == "rejected":
            return {branch: alone}  # what the host would say of presences is not known
        results[branch] = alone
    return results


def taken(site: Site, beats: Sequence[Beat], results: Mapping[str, PushResult], *, lines: bool = False) -> int:
    """Note what became of presences that were pushed, and return how many the remote took.

    Args:
        lines: whether the remote took lines just now.
    """
    refused = presences.refusal(site.places)
    if not beats:
        if lines and refused is not None and not refused.lines:
            # It refused something else than presences, or more: that shows when they are tried now.
            presences.refuse(site.places, refused._replace(tried=0.0, lines=True))
        return 0
    now = time.time()
    ledger = Ledger.load(site.places)
    why = ""
    updates: list[RefUpdate] = []
    for beat in beats:
        result = results.get(beat.ref)
        if result is None:
            continue
        if result.status in ("ok", "up-to-date"):
            presences.keep(site.places, beat.presence, now)
            ledger.floors.pop(beat.agent, None)
            ledger.pushed[beat.agent] = beat.commit
            updates.append(RefUpdate(HEARD + beat.agent, beat.commit))
        elif result.status == "rejected":
            why = result.reason
    if updates:
        # So that the next fetch shows whether it is still there.
        site.git.update_refs(updates)
    ledger.save()
    if why:
        first = refused or Refusal(now, now, why)
        presences.refuse(site.places, first._replace(tried=now, why=why, lines=first.lines or lines))
    elif updates and refused is not None:
        presences.refuse(site.places, None)
    return len(updates)


def heartbeats(site: Site, pin: Pin, signers: Mapping[str, Signer], promise: Promise) -> int:
    """Store the lines that show life where the host takes no presences, when they are due; return how many.

    Raises:
        WireError: the journal cannot be used.
    """
    now = time.time()
    refused = presences.refusal(site.places)
    if refused is None:
        return 0
    # Who refuses everything is not helped by one line more.
    before = refused.told if refused.lines else max(refused.told, refused.since)
    if 0 <= now - before < SLOWEST_SECONDS:
        return 0
    for agent, signer in signers.items():
        held = presences.load_one(site.places, agent)
        slow = promise._replace(interval=SLOWEST_SECONDS)
        presence = _sealed(pin, agent, signer, says(site.places, pin, agent, site.config.agents), slow, held, 0, now)
        channel = f"{agent}/{EVERYONE}"

        def build(end: Position, agent: str = agent, said: Presence = presence) -> list[bytes]:
            body = {"state": said.state, "presence": said.raw.decode("utf-8")}
            # By the key at hand, also before the trust names it: `wire keys rotate` waits for the channel's lock.
            return [
                seal_line(
                    site.signer(agent, pin.wire), wire=pin.wire, sender=agent, recipient=EVERYONE, seq=end.seq + 1,
                    prev=end.head, ts=said.ts, trust=said.trust, type=HEARTBEAT, body=body,
                )
            ]  # fmt: skip

        journal.append(
            site.places,
            pin.wire,
            channel,
            build,
            copy_to=site.places.coordination,
            floor=pin.accepted.get(channel),
        )
        presences.keep(site.places, presence, now)
    presences.refuse(site.places, refused._replace(told=now))
    return len(signers)


def in_lines(lines: Iterable[Line]) -> list[tuple[str, bytes]]:
    """Return the presences that lines of type `heartbeat` carry, by their authors."""
    found = []
    for line in lines:
        if line.type != HEARTBEAT or line.recipient != EVERYONE:
            continue
        with suppress(LineError):
            body = content(line).get("body")
            said = body.get("presence") if isinstance(body, dict) else None
            if isinstance(said, str):
                found.append((line.sender, said.encode("utf-8")))
    return found


def _due(held: Heard | None, wanted: Says, instance: str, promise: Promise, now: float, *, riding: bool) -> bool:
    if held is None or held.presence.instance != instance:
        return True
    if held.presence.tier == BY_HAND and promise.tier != BY_HAND:
        return True  # a daemon is there now, which promises more
    if (riding or promise.eager) and differs(held, wanted, instance):
        return True
    age = now - held.changed
    return age < 0 or age >= held.presence.interval - promise.looks


def _sealed(
    pin: Pin, agent: str, signer: Signer, wanted: Says, promise: Promise, held: Heard | None, floor: int, now: float
) -> Presence:
    # The clock makes a counter that no push whose outcome is unknown has had, and that a lost state does not lower.
    counter = max(int(now * 1000), floor + 1, held.presence.counter + 1 if held is not None else 1)
    raw = seal_presence(
        signer,
        wire=pin.wire,
        agent=agent,
        instance=pin.instance,
        counter=min(counter, COUNTER_MAX),
        ts=utc_text(now),
        trust=wanted.trust,
        state=wanted.state,
        tier=promise.tier,
        interval=promise.interval,
        channels=wanted.channels,
        note=wanted.note,
        eta=wanted.eta,
    )
    return parse(raw[:-1])


def _expected(site: Site, agent: str) -> str:
    """Return what the remote's ref is expected to hold, empty for nothing."""
    return refs_below(site.git, HEARD).get(HEARD + agent, "")
