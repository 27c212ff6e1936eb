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
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from wire.errors import StoreError
from wire.protocol.chain import SEGMENT_MAX, Position, lines_of
from wire.protocol.line import LineError, head, parse
from wire.protocol.names import valid_channel
from wire.store import sent as record
from wire.store.clonefiles import copy_append
from wire.store.files import fsync_folder, locked, store_error
from wire.store.paths import WirePlaces
from wire.store.segments import (
    Kept,
    Residue,
    cut,
    follow,
    fsync_segment,
    keep_part,
    lines_from,
    next_position,
    numbers,
    read_part,
    runs_of,
    segment_path,
    write_runs,
)
from wire.store.sent import Sent

PLAN = "reissue.plan"
_LOCK_TIMEOUT = 60.0


class Finding(NamedTuple):
    """Something that a person should hear of: `incidents.raise_(places.incidents_dir, **finding._asdict())`."""

    code: str
    scope: str
    subject: str
    message: str
    evidence: dict[str, Any]


Build = Callable[[Position], list[bytes]]
"""Gets a channel's end, under its lock, and returns signed lines that follow it, each with its newline."""
OnIncident = Callable[[Finding], None]


class Held(NamedTuple):
    """One channel's journal while its lock is held; only `hold` makes one."""

    places: WirePlaces
    wire: str
    channel: str
    folder: str
    lock: str
    on_incident: OnIncident | None

    def sent(self) -> Sent | None:
        """Return the record of what was sent, if one holds."""
        try:
            return record.read(self.lock)
        except OSError as error:
            raise store_error(error, "read", self.lock) from error

    def note(self, end: Position, length: int) -> None:
        """Bring the record up to an end that is on disk; it never goes down by this."""
        before = self.sent()
        if before is not None and before.end.seq > end.seq:
            return
        try:
            record.write(self.lock, Sent(end, length))
        except OSError:
            # The lines are on disk, and saying otherwise would have them sent twice. The record now lags or counts
            # as none, and the next holder finds the end by following the chain.
            return


@contextmanager
def hold(
    places: WirePlaces,
    wire: str,
    channel: str,
    *,
    timeout: float | None = _LOCK_TIMEOUT,
    on_incident: OnIncident | None = None,
) -> Iterator[Held]:
    """Hold a channel's lock: nobody sends in it meanwhile.

    Args:
        wire: the wire's id, 32 hex digits.
        channel: `<from>/<to>`, one of this machine's own.
        timeout: seconds to wait for the lock.
        on_incident: told of what was set aside, before it is cut.

    Raises:
        Busy: another process holds the lock for longer than `timeout`.
    """
    lock = lock_of(places, channel)
    with locked(lock, what=f"the channel {channel}", timeout=timeout):
        yield Held(places, wire, channel, places.journal_of(channel), lock, on_incident)


def lock_of(places: WirePlaces, channel: str) -> str:
    """Return the folder of a channel's lock and of its record; raises UsageError for what is no channel."""
    places.journal_of(channel)
    return os.path.join(places.locks_dir, channel.replace("/", "."))  # no name holds a dot


def append(
    places: WirePlaces,
    wire: str,
    channel: str,
    build: Build,
    *,
    copy_to: str | None = None,
    on_incident: OnIncident | None = None,
    floor: Position | None = None,
    timeout: float | None = _LOCK_TIMEOUT,
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
    timeout: float | None = _LOCK_TIMEOUT,
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
    end = _settle(held, None, behind=True)
    after = end
    given = list(lines)
    for line in given:
        follows = next_position(after, line[:-1], wire=held.wire, channel=held.channel)
        if follows is None:
            raise StoreError(f"a line to adopt does not follow {held.channel}/{after.seq}", reason="not-next")
        after = follows
    return _add(held, end, given, copy_to)


def settle(held: Held, *, floor: Position | None = None) -> Position:
    """Return the end of a channel, with everything up to it on disk and nothing behind it.

    Raises:
        StoreError: reason `journal-behind`, `journal-damaged` or `floor`'s; see `append`.
    """
    return _settle(held, floor, behind=False)


def tail(places: WirePlaces, wire: str, channel: str) -> Position:
    """Return the end of a channel as its files show it, without a lock and without changing anything.

    For a look from outside: a line of which this tells may not be on disk yet.

    Raises:
        StoreError: reason `journal-behind` or `journal-damaged`.
    """
    held = Held(places, wire, channel, places.journal_of(channel), lock_of(places, channel), None)
    known = held.sent()
    start = _confirmed(held, known) if known is not None else _last_known(held)
    return follow(held.folder, start, wire=wire, channel=channel).end


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


def _settle(held: Held, floor: Position | None, *, behind: bool) -> Position:
    if os.path.lexists(os.path.join(held.folder, PLAN)):
        from wire.store.amend import resume  # only after a kill in the middle of a re-issue

        resume(held)
    known = held.sent()
    if known is None or not _is_end(held.folder, known):
        return clean(held, floor, behind=behind)
    _check_floor(held, known.end, floor)
    return known.end


def clean(
    held: Held, floor: Position | None = None, *, behind: bool = False, start: Position | None = None
) -> Position:
    """Find a channel's end by following the chain, and keep aside, report and cut what stands behind it.

    Args:
        behind: a journal that lags behind its record is no error.
        start: where to begin, when the caller has made sure that the files hold everything up to there.
    """
    known = held.sent()
    certain = known is not None or start is not None
    if start is None:
        try:
            start = _confirmed(held, known) if known is not None else _last_known(held)
        except StoreError:
            if not behind:
                raise
            start, certain = _last_known(held), False
    found = follow(held.folder, start, wire=held.wire, channel=held.channel)
    _check_floor(held, found.end, floor)
    for residue in found.residues:
        # Before an end that nobody vouches for, these may be lines that were sent: only unfinished ones may go.
        if residue.complete and not certain:
            raise _damaged(held, residue.segment, residue.offset)
    _set_aside(held, found.residues)
    # Lines behind the record were written by somebody who died before the fsync.
    for number in range(start.segment, found.end.segment + 1):
        if found.end.seq > start.seq:
            fsync_segment(held.folder, number)
    if found.end.seq > start.seq:
        fsync_folder(held.folder)
    if found.end.seq:
        last = _last_line(held.folder, found.end)
        held.note(found.end, len(last) + 1)
    return found.end


def _set_aside(held: Held, residues: Iterable[Residue]) -> None:
    for residue in reversed(list(residues)):  # the last first: a kill in between leaves the chain's end where it is
        if residue.length:
            kept = keep_part(held.places.aside_dir, held.channel, held.folder, residue)
            if held.on_incident is not None:
                held.on_incident(_torn(held, residue, kept))
        cut(held.folder, residue.segment, residue.offset)


def _torn(held: Held, residue: Residue, kept: Kept) -> Finding:
    path = segment_path(held.folder, residue.segment)
    what = "bytes that do not continue the channel" if residue.complete else "bytes of an incomplete line"
    evidence = {"file": path, "offset": residue.offset, "length": residue.length, "sha256": kept.sha256}
    return Finding(
        "TORN",
        held.channel,
        f"{residue.segment}:{residue.offset}",
        f"{path}, byte {residue.offset}: {residue.length} {what}; kept in {kept.path}",
        {**evidence, "starts": kept.starts, "aside": kept.path},
    )


def _is_end(folder: str, known: Sent) -> bool:
    """Return whether the journal ends exactly where the record says."""
    try:
        size = os.stat(segment_path(folder, known.end.segment), follow_symlinks=False).st_size
    except OSError:
        return False
    return (
        size == known.end.size
        and _holds(folder, known)
        and not os.path.lexists(segment_path(folder, known.end.segment + 1))
    )


def _holds(folder: str, known: Sent) -> bool:
    """Return whether the recorded line stands where the record says."""
    _, last_head, segment, size = known.end
    line = read_part(folder, segment, size - known.length, size)
    return line is not None and line.endswith(b"\n") and head(line[:-1]) == last_head


def _confirmed(held: Held, known: Sent) -> Position:
    if _holds(held.folder, known):
        return known.end
    path = segment_path(held.folder, known.end.segment)
    try:
        size = os.stat(path).st_size
    except FileNotFoundError:
        size = 0
    if size >= known.end.size:
        raise _damaged(held, known.end.segment, known.end.size - known.length)
    raise StoreError(
        f"{path} has {size} bytes, and line {held.channel}/{known.end.seq} that was sent ends at byte {known.end.size}:"
        f" the journal lost lines",
        reason="journal-behind",
        next_step="run `wire sync`; it rebuilds the journal from what was accepted",
    )


def _last_known(held: Held) -> Position:
    """Return an end near the end of the journal when there is no record: one or two segments are read."""
    listed = numbers(held.folder)
    while listed:
        number = listed.pop()
        if number > 1 and number - 1 not in listed:
            raise _damaged(held, number - 1, 0)
        if lines_of(read_part(held.folder, number, 0, SEGMENT_MAX) or b""):
            break
    else:
        return Position.start(held.wire, held.channel)
    if number == 1:
        return Position.start(held.wire, held.channel)
    before = read_part(held.folder, number - 1, 0, SEGMENT_MAX) or b""
    complete = lines_of(before)
    try:
        last = parse(complete[-1]) if before.endswith(b"\n") else None
    except LineError:
        last = None
    if last is None:
        raise _damaged(held, number - 1, len(before))
    return Position(last.seq, last.head, number - 1, len(before))


def _last_line(folder: str, end: Position) -> bytes:
    data = read_part(folder, end.segment, 0, end.size) or b""
    return lines_of(data)[-1]


def _check_floor(held: Held, end: Position, floor: Position | None) -> None:
    if floor is not None and end.seq < floor.seq:
        raise StoreError(
            f"the journal of {held.channel} ends with line {end.seq}, and line {floor.seq} of it is accepted:"
            f" this machine's state is older than what it sent",
            reason="journal-behind",
            next_step="run `wire sync`; it takes the missing lines over",
        )


def _damaged(held: Held, number: int, offset: int) -> StoreError:
    return StoreError(
        f"{segment_path(held.folder, number)}, byte {offset}: the line that was sent does not stand there",
        reason="journal-damaged",
        next_step="run `wire sync`; it rebuilds the journal from what was accepted",
    )
