"""How a wire stands on this machine: a snapshot of files and locks, and what it means (pure).

    report = judge(snapshot(places, config, pin, keys_dir), now)

The headline is the age of the last success. A daemon is alive when its lock is held and its last beat is young: a
stopped process keeps its lock, and a file with a process id proves nothing.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wire.errors import DONE, FAILED, INTEGRITY, REMOTE, StoreError
from wire.gitio import REMOTE_KINDS
from wire.keys import keyfile
from wire.protocol.line import parse
from wire.store import incidents, journal, presences, surfaces
from wire.store.config import WireConfig
from wire.store.files import is_locked, lock_holder, utc_text
from wire.store.incidents import Incident
from wire.store.paths import WirePlaces
from wire.store.pin import Frozen, Pin
from wire.store.presences import Refusal
from wire.store.progress import ALIVE_SECONDS, Progress

RUNNING, STUCK, STOPPED = "running", "stuck", "stopped"
LOCKED = (
    "no passphrase was at hand, so that no presence, receipt, notice or line is signed in its name; all is fetched and "
    "verified, and what was signed goes out"
)


class Owed(NamedTuple):
    """A channel of ours and what the remote lacks of it: how many lines, and the author's time of the oldest."""

    channel: str
    stored: int
    committed: int
    pushed: int
    oldest: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the files of a wire said at one moment."""

    config: WireConfig
    pin: Pin
    progress: Progress
    locked: bool
    holder: int | None
    owed: Sequence[Owed]
    incidents: Sequence[Incident]
    unsurfaced: Sequence[surfaces.Trouble] = ()
    refusal: Refusal | None = None
    keyless: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """What a snapshot means.

    Attributes:
        daemon: `running`, `stuck` (it holds its lock and shows no life) or `stopped`.
        fetch_age, push_age: seconds since the last success, None for never.
        troubles: every reason not to be healthy, in plain words.
        exit_status: 0 when there is none.
    """

    snapshot: Snapshot
    daemon: str
    fetch_age: float | None
    push_age: float | None
    next_look: float | None
    unpushed: int
    oldest_unpushed: str | None
    frozen: Frozen | None
    troubles: tuple[str, ...] = field(default=())
    exit_status: int = DONE


def snapshot(places: WirePlaces, config: WireConfig, pin: Pin, keys_dir: str) -> Snapshot:
    """Read the state of a wire; takes no lock, opens no key, and changes nothing."""
    lock = places.lock("daemon")
    held = is_locked(lock)
    return Snapshot(
        config,
        pin,
        Progress.load(places),
        held,
        lock_holder(lock) if held else None,
        [_owed(places, pin, channel) for channel in _own_channels(places, config)],
        [one for one in incidents.list_(places.incidents_dir) if one.state != incidents.RESOLVED],
        surfaces.troubles(places, config.notify, config.drop),
        presences.refusal(places),
        [path for path in _key_paths(config, pin, keys_dir) if not os.path.lexists(path)],
    )


def _key_paths(config: WireConfig, pin: Pin, keys_dir: str) -> list[str]:
    enrolled = [agent for agent in config.agents if agent in pin.names.agents]
    return [keyfile.key_path(keys_dir, wire=pin.wire, kind=keyfile.AGENT, name=agent) for agent in enrolled]


def judge(seen: Snapshot, now: float) -> Status:
    """Return what a snapshot means at a time (seconds since the epoch)."""
    progress, pin = seen.progress, seen.pin
    beat_age = None if progress.beat is None else now - progress.beat
    alive = seen.locked and beat_age is not None and beat_age <= ALIVE_SECONDS
    daemon = RUNNING if alive else STUCK if seen.locked else STOPPED
    opened = [one for one in seen.incidents if one.state == incidents.OPEN]
    integrity = [one for one in opened if one.integrity]
    unpushed = sum(one.stored - one.pushed for one in seen.owed)
    troubles: list[str] = []
    status = DONE
    if daemon != RUNNING:
        troubles.append(
            "no daemon is running; nothing is fetched or pushed by itself: "
            "`wire daemon run`, or `wire service install`, starts one"
            if daemon == STOPPED
            else f"the daemon (pid {seen.holder or progress.pid}) holds its lock and has shown no life for "
            f"{'ever' if beat_age is None else f'{beat_age:.0f} s'}"
        )
        status = FAILED
    if progress.failure:
        since = "" if progress.failing_since is None else f", since {utc_text(progress.failing_since)}"
        told = progress.failure_text or progress.failure
        left = f", {unpushed} message(s) unpushed" if unpushed else ""
        step = next((f" ({_step(one)})" for one in opened if one.message == progress.failure_text), "")
        troubles.append(f"the last look failed{since}{left}: {told}{step}")
        status = REMOTE if progress.failure.removeprefix("git-") in REMOTE_KINDS else FAILED
    if not progress.recent(now):
        troubles += [] if progress.blind else ["the remote was not reached lately"]
        status = REMOTE
    for agent in progress.locked.split():
        troubles.append(f"the key of {agent} is locked: {LOCKED} (wire service install --passphrase-file FILE)")
        status = status or FAILED
    for path in seen.keyless:
        troubles.append(
            f"there is no key at {path}: nothing can be signed; bring it back from a copy, or see docs/keys.md"
        )
        status = status or FAILED
    if pin.frozen is not None:
        troubles.append(f"publishing and accepting are frozen since {pin.frozen.since} ({pin.frozen.code})")
    troubles += [f"{channel} accepts nothing: two valid lines claim one place" for channel in pin.forks]
    told_already = progress.failure_text
    troubles += [
        f"{one.code} in {one.scope}: {one.message} ({_step(one)})" for one in opened if one.message != told_already
    ]
    troubles += [one.told(now) for one in seen.unsurfaced]
    if integrity or pin.frozen is not None or pin.forks:
        status = INTEGRITY
    elif (opened or seen.unsurfaced) and status == DONE:
        status = FAILED
    return Status(
        seen,
        daemon,
        progress.fetch_age(now),
        None if progress.pushed is None else max(0.0, now - progress.pushed),
        None if progress.next_look is None or daemon != RUNNING else max(0.0, progress.next_look - now),
        unpushed,
        min((one.oldest for one in seen.owed if one.oldest is not None), default=None),
        pin.frozen,
        tuple(troubles),
        status,
    )


def _step(incident: Incident) -> str:
    """Return the command that shows an incident with what helps."""
    return f"wire incidents show {incident.id}"


def _own_channels(places: WirePlaces, config: WireConfig) -> list[str]:
    return [channel for channel in journal.channels(places) if channel.partition("/")[0] in config.agents]


def _owed(places: WirePlaces, pin: Pin, channel: str) -> Owed:
    accepted = pin.accepted.get(channel)
    committed = accepted.seq if accepted is not None else 0
    pushed = pin.remote_seq.get(channel, 0)
    try:
        stored = max(journal.tail(places, pin.wire, channel).seq, committed)
    except StoreError:
        stored = committed
    oldest = _time_of(places, channel, pushed + 1) if stored > pushed else None
    return Owed(channel, stored, committed, pushed, oldest)


def _time_of(places: WirePlaces, channel: str, seq: int) -> str | None:
    """Return the author's time of a line of our journal, searched from its newest segment back."""
    for number in reversed(journal.segments(places, channel)):
        for raw in journal.read_segment(places, channel, number).split(b"\n")[:-1]:
            try:
                line = parse(raw)
            except ValueError:
                return None
            if line.seq > seq:
                break
            if line.seq == seq:
                return line.ts
    return None
