"""One channel's journal under its lock: what it says was sent, and where it ends.

The record of what was sent is confirmed by one look at the last line. Where it and the files disagree, the chain is
followed: lines that continue it are taken over, anything else is kept aside, reported and cut.

    with hold(places, wire, "mac/spark", on_incident=told.append) as held:
        end = settle(held)

What it does not do: write lines; see `journal` and `amend`.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from wire.errors import StoreError
from wire.protocol.chain import SEGMENT_MAX, Position, lines_of
from wire.protocol.line import LineError, head, parse
from wire.store import sent as record
from wire.store.files import fsync_folder, locked, store_error
from wire.store.paths import WirePlaces
from wire.store.segments import (
    Kept,
    Residue,
    cut,
    follow,
    fsync_segment,
    keep_part,
    numbers,
    read_part,
    segment_path,
)
from wire.store.sent import Sent

PLAN = "reissue.plan"
LOCK_TIMEOUT = 60.0


class Finding(NamedTuple):
    """Something that a person should hear of: `incidents.raise_(places.incidents_dir, **finding._asdict())`."""

    code: str
    scope: str
    subject: str
    message: str
    evidence: dict[str, Any]


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
    timeout: float | None = LOCK_TIMEOUT,
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


def settle(held: Held, floor: Position | None = None, *, behind: bool = False) -> Position:
    """Return the end of a channel, with everything up to it on disk and nothing behind it.

    Args:
        floor: an end that is known to be accepted.
        behind: a journal that lags behind its record is no error.

    Raises:
        StoreError: reason `journal-behind` or `journal-damaged`: the daemon has to rebuild the journal first.
    """
    if os.path.lexists(os.path.join(held.folder, PLAN)):
        from wire.store.amend import resume  # only after a kill in the middle of a re-issue

        resume(held)
    known = held.sent()
    if known is None or not _is_end(held.folder, known):
        return clean(held, floor, behind=behind)
    _check_floor(held, known.end, floor)
    return known.end


def glance(held: Held) -> Position:
    """Return the end as the files show it, changing nothing: a line of which this tells may not be on disk yet.

    Raises:
        StoreError: reason `journal-behind` or `journal-damaged`.
    """
    known = held.sent()
    start = _confirmed(held, known) if known is not None else _last_known(held)
    return follow(held.folder, start, wire=held.wire, channel=held.channel).end


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
