"""The sender's durable copy of the channels of this machine's own agents.

The journal is the truth for what this machine sent: `journal/<from>/<to>/000001.jsonl …`, byte for byte what belongs
into the clone's segments, which are only its carrier and view.

Rules that it keeps:

- Under the channel's lock, in this order:
    1  finish a re-issue that a kill interrupted (see `amend`)
    2  find the end: the record of what was sent, confirmed by one look at the last line (a seek, never a scan)
    3  if they disagree, judge what stands behind the recorded end: lines that continue the chain are taken over,
       anything else is kept aside, reported and cut
    4  sign
    5  one write and one fsync per touched segment; what does not fit is taken back, all of the batch
    6  the record
    7  the same bytes to the clone's file, without fsync
  A kill between any two of them leaves whole lines or none: step 3 of the next holder sees to it.
- It never signs a second line for a number that it sent: when the journal is behind its record, or behind what the
  caller knows as accepted, sending stops until the daemon has rebuilt it.

    ends = append(places, wire, "mac/spark", lambda end: [seal(signer, seq=end.seq + 1, prev=end.head, …)])

What it does not do: verify signatures (the daemon verifies its own lines like anybody's), or know git.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack

from wire.errors import StoreError
from wire.protocol.chain import SEGMENT_MAX, Position
from wire.protocol.names import valid_channel
from wire.store.clonefiles import copy_append
from wire.store.files import store_error
from wire.store.held import LOCK_TIMEOUT, Finding, Held, OnIncident, glance, hold, lock_of, settle
from wire.store.paths import WirePlaces
from wire.store.segments import lines_from, next_position, numbers, read_part, runs_of, write_runs

__all__ = [
    "Build",
    "Finding",
    "Held",
    "append",
    "append_all",
    "channels",
    "extend",
    "hold",
    "lock_of",
    "read_lines",
    "read_segment",
    "segments",
    "settle",
    "tail",
]

Build = Callable[[Position], list[bytes]]
"""Gets a channel's end, under its lock, and returns signed lines that follow it, each with its newline."""


def append(
    places: WirePlaces,
    wire: str,
    channel: str,
    build: Build,
    *,
    copy_to: str | None = None,
    on_incident: OnIncident | None = None,
    floor: Position | None = None,
    timeout: float | None = LOCK_TIMEOUT,
) -> list[Position]:
    """Add lines to one channel; see `append_all`."""
    builds = {channel: (build, floor)}
    return append_all(places, wire, builds, copy_to=copy_to, on_incident=on_incident, timeout=timeout)[channel]


def append_all(
    places: WirePlaces,
    wire: str,
    builds: Mapping[str, tuple[Build, Position | None]],
    *,
    copy_to: str | None = None,
    on_incident: OnIncident | None = None,
    timeout: float | None = LOCK_TIMEOUT,
) -> dict[str, list[Position]]:
    """Add lines to channels, all lines of a channel durably or none; none is written before all are built.

    Args:
        builds: per channel what makes its lines (what it raises leaves all channels as they were), and the end that is
            known to be accepted: a journal that is behind it lost something.
        copy_to: the clone's `_coordination`, to append the same bytes to its view; a failing copy is left for the
            daemon.
        timeout: seconds to wait for a channel's lock.

    Returns the end after each line, per channel.

    Raises:
        DiskFull: no space; nothing was added to the channel. The text names the lines of others written before.
        StoreError: reason `journal-behind` or `journal-damaged`: the daemon has to rebuild the journal first.
        Busy: a lock is held for longer than `timeout`.
    """
    done: dict[str, list[Position]] = {}
    with ExitStack() as stack:
        # In one order everywhere, so that two who want the same channels do not wait for each other.
        held = [
            stack.enter_context(hold(places, wire, channel, timeout=timeout, on_incident=on_incident))
            for channel in sorted(builds)
        ]
        ready = []
        for one in held:
            build, floor = builds[one.channel]
            end = settle(one, floor=floor)
            ready.append((one, end, build(end)))
        for one, end, lines in ready:
            try:
                done[one.channel] = _add(one, end, lines, copy_to)
            except StoreError as error:
                if stored := [f"{channel}/{after.seq}" for channel, ends in done.items() for after in ends]:
                    error.message += f"; stored before, not to be sent again: {', '.join(stored)}"
                    error.args = (error.message,)
                raise
    return done


def extend(held: Held, lines: Iterable[bytes], *, copy_to: str | None = None) -> list[Position]:
    """Add lines that somebody else wrote with our key, each with its newline, as the next ones.

    They come from the clone's file or from the remote, and the caller has verified them. The journal may be behind
    its record: this is how it catches up.

    Raises:
        StoreError: reason `not-next`: one does not follow; nothing was added.
    """
    end = settle(held, behind=True)
    after = end
    given = list(lines)
    for line in given:
        follows = next_position(after, line[:-1], wire=held.wire, channel=held.channel)
        if follows is None:
            raise StoreError(f"a line to adopt does not follow {held.channel}/{after.seq}", reason="not-next")
        after = follows
    return _add(held, end, given, copy_to)


def tail(places: WirePlaces, wire: str, channel: str) -> Position:
    """Return the end of a channel as its files show it, without a lock and without changing anything.

    For a look from outside: a line of which this tells may not be on disk yet.

    Raises:
        StoreError: reason `journal-behind` or `journal-damaged`.
    """
    held = Held(places, wire, channel, places.journal_of(channel), lock_of(places, channel), None)
    return glance(held)


def read_lines(places: WirePlaces, channel: str, after: Position, until: Position | None = None) -> Iterator[bytes]:
    """Yield the complete lines of a channel behind a position, without newlines, one segment in memory at a time.

    Args:
        after: an end of this journal.
        until: a later end, from `settle`: what lies before it stays as it is after the lock was given back.

    Raises:
        StoreError: reason `journal-behind`: the files end before `until`.
    """
    return lines_from(places.journal_of(channel), after, until)


def read_segment(places: WirePlaces, channel: str, number: int, size: int = SEGMENT_MAX) -> bytes:
    """Return the first `size` bytes of a segment; a segment that is missing is empty."""
    return read_part(places.journal_of(channel), number, 0, size) or b""


def segments(places: WirePlaces, channel: str) -> list[int]:
    """Return the numbers of a channel's segments, ascending."""
    return numbers(places.journal_of(channel))


def channels(places: WirePlaces) -> list[str]:
    """Return the channels that have a journal on this machine, sorted."""
    return sorted(
        f"{sender}/{recipient}"
        for sender in _names(places.journal_dir)
        for recipient in _names(os.path.join(places.journal_dir, sender))
        if valid_channel(sender, recipient)
    )


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise store_error(error, "list", folder) from error


def _add(held: Held, end: Position, lines: list[bytes], copy_to: str | None) -> list[Position]:
    if not lines:
        return []
    runs, ends = runs_of(end, lines)
    write_runs(held.folder, runs)
    held.note(ends[-1], len(lines[-1]))
    if copy_to is not None:
        copy_append(copy_to, held.channel, runs)
    return ends
