"""Changing what a journal already holds: lines that are issued again, and damage that is made good.

Both run under the channel's lock and survive a kill between any two of their steps.

Issuing again (`replace_from`), when a second copy of this machine was faster and our lines have no place any more:
    1  the bytes from the position on are copied aside                     nothing has happened yet
    2  the plan (position, new bytes, their hash) is written by a rename   from here on it has happened
    3  later segments are removed, the last first; the position's segment is cut there
    4  the new lines are written and fsync'd, the record follows
    5  the plan is removed
  A kill before 2 leaves the old lines, and at most a copy of them aside. After 2, whoever holds the lock next finds
  the plan before it looks at anything else and does 3 to 5 from their beginning; each of them can be done twice.

Rebuilding (`rebuild`), when accepted bytes are damaged or missing: every segment that differs is copied aside and
replaced by a rename; lines behind the accepted end that still continue it are kept. A kill leaves some segments
mended and others not, which the next rebuild finishes.

What it does not do: decide that one of these is needed, or sign.
"""

import json
import os
from collections.abc import Iterable, Sequence
from hashlib import sha256

from wire.errors import StoreError
from wire.protocol.chain import SEGMENT_MAX, Position, lines_of
from wire.protocol.line import head, parse
from wire.store import sent as record
from wire.store.files import atomic_write, fsync_folder, move_aside, private_folder, read_bytes, store_error
from wire.store.held import PLAN, Held, clean
from wire.store.segments import (
    Kept,
    Residue,
    cut,
    keep_part,
    next_position,
    numbers,
    read_part,
    runs_of,
    segment_path,
    write_runs,
)
from wire.store.sent import Sent


def replace_from(held: Held, position: Position, lines: Sequence[bytes]) -> tuple[Position, list[Kept]]:
    """Replace everything behind a position by other lines, each with its newline.

    Args:
        position: an end that the journal holds.
        lines: signed lines that follow it: accepted ones that another instance wrote, then ours under new numbers.

    Returns:
        The new end, and the copies of the old bytes, one per segment.

    Raises:
        StoreError: reason `not-next`, the lines do not follow or the position is not of this journal; nothing changed.
        DiskFull: nothing changed; or, when it names the plan, the next holder of the lock finishes it.
    """
    if not stands(held, position):
        raise StoreError(f"{held.channel}/{position.seq} is not an end in the journal", reason="not-next")
    end = position
    for line in lines:
        after = next_position(end, line[:-1], wire=held.wire, channel=held.channel)
        if after is None:
            raise StoreError(f"a line to issue again does not follow {held.channel}/{end.seq}", reason="not-next")
        end = after
    kept = [
        keep_part(held.places.aside_dir, held.channel, held.folder, residue)
        for residue in _behind(held, position)
        if residue.length
    ]
    private_folder(held.folder)
    atomic_write(os.path.join(held.folder, PLAN), _plan(position, b"".join(lines)))
    resume(held)
    return end, kept


def resume(held: Held) -> None:
    """Do steps 3 to 5 of a re-issue whose plan is there.

    Raises:
        StoreError: reason `journal-damaged`: the plan does not hold; it was moved aside.
    """
    path = os.path.join(held.folder, PLAN)
    data = read_bytes(path)
    if data is None:
        return
    position, lines = _read_plan(path, data)
    for residue in reversed(_behind(held, position)):
        cut(held.folder, residue.segment, residue.offset)
    runs, ends = runs_of(position, [line + b"\n" for line in lines])
    write_runs(held.folder, runs)
    end = ends[-1] if ends else position
    _set_record(held, end)
    try:
        os.unlink(path)
    except OSError as error:
        raise store_error(error, "finish the plan", path) from error
    fsync_folder(held.folder)


def rebuild(held: Held, accepted: Iterable[bytes]) -> Position:
    """Make the journal hold the accepted bytes again, and what it has behind them that still follows.

    A channel whose unpublished lines are gone stays closed for sending: their numbers must not be signed twice.

    Args:
        accepted: the accepted bytes of the channel's segments, from the first one on; read one at a time.

    Returns:
        The journal's end.

    Raises:
        DiskFull, StoreError: a segment could not be replaced; what was there is still there.
    """
    private_folder(held.folder)
    plan = os.path.join(held.folder, PLAN)
    if os.path.lexists(plan):
        try:
            resume(held)
        except StoreError as error:
            if error.reason != "journal-damaged":
                raise
    end = Position.start(held.wire, held.channel)
    held_back = b""
    for number, data in enumerate(accepted, 1):
        if held_back:
            _mend_segment(held, number - 1, held_back, last=None)
        held_back = data
        lines = lines_of(data)
        end = Position(parse(lines[-1]).seq, head(lines[-1]), number, len(data))
    if held_back:
        _mend_segment(held, end.segment, held_back, last=end)
    return clean(held, start=end)


def _set_record(held: Held, end: Position) -> None:
    """Make the record say `end`, even when it said more: what it spoke of was replaced or given up."""
    try:
        if end.seq:
            last = lines_of(read_part(held.folder, end.segment, 0, end.size) or b"")[-1]
            record.write(held.lock, Sent(end, len(last) + 1))
        else:
            os.unlink(os.path.join(held.lock, record.FILE))
    except FileNotFoundError:
        return  # there was no record to remove
    except OSError as error:
        raise store_error(error, "write the record of what was sent in", held.lock) from error


def _mend_segment(held: Held, number: int, data: bytes, *, last: Position | None) -> None:
    """Make a segment hold accepted bytes; the last one keeps what still follows them."""
    path = segment_path(held.folder, number)
    present = read_part(held.folder, number, 0, SEGMENT_MAX + 1) or b""
    if present == data or (last is not None and present.startswith(data)):
        return
    rest = b""
    if last is not None:
        end = last
        for raw in lines_of(present[len(data) :]):
            after = next_position(end, raw, wire=held.wire, channel=held.channel)
            if after is None or after.segment != number:
                break
            end, rest = after, rest + raw + b"\n"
    if not data.startswith(present):
        size = os.stat(path).st_size
        keep_part(held.places.aside_dir, held.channel, held.folder, Residue(number, 0, size, complete=True))
    atomic_write(path, data + rest)


def _behind(held: Held, position: Position) -> list[Residue]:
    """Return what stands behind a position, one entry per segment that has anything or is another one."""
    found: list[Residue] = []
    for number in numbers(held.folder):
        offset = position.size if number == position.segment else 0
        size = os.stat(segment_path(held.folder, number)).st_size
        if number >= position.segment and (size > offset or number > position.segment):
            found.append(Residue(number, offset, size - offset, complete=True))
    return found


def stands(held: Held, position: Position) -> bool:
    """Return whether a position is an end that the journal has, or had."""
    if position.seq == 0:
        return position == Position.start(held.wire, held.channel)
    data = read_part(held.folder, position.segment, 0, position.size) or b""
    lines = lines_of(data)
    return len(data) == position.size and data.endswith(b"\n") and head(lines[-1]) == position.head


def _plan(position: Position, data: bytes) -> bytes:
    said = {"v": 1, "position": list(position), "length": len(data), "sha256": sha256(data).hexdigest()}
    return json.dumps(said).encode("ascii") + b"\n" + data


def _read_plan(path: str, plan: bytes) -> tuple[Position, list[bytes]]:
    said, _, data = plan.partition(b"\n")
    try:
        fields = json.loads(said)
        seq, last_head, segment, size = fields["position"]
        if fields["v"] != 1 or fields["length"] != len(data) or fields["sha256"] != sha256(data).hexdigest():
            raise ValueError("its hash does not hold")
    except (ValueError, KeyError, TypeError) as error:
        aside = move_aside(path)
        raise StoreError(
            f"the plan {path} for lines that were to be issued again does not hold ({error}); moved to {aside}",
            reason="journal-damaged",
            next_step="run `wire sync`; it rebuilds the journal from what was accepted",
        ) from error
    return Position(seq, last_head, segment, size), lines_of(data)
