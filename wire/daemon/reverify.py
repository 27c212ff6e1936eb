"""Checking everything again, from the checkpoint: every signature, every link, every place, on all cores.

Segments are independent: each one is judged from what its own first line says of the chain before it, and the ends are
compared afterwards. So a long history is checked in parallel, and the first line that does not hold is still named.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from wire.keys.trust import Chain
from wire.protocol.chain import Position, lines_of, step
from wire.protocol.line import LineError, check, parse


class Problem(NamedTuple):
    """A line, or a place between lines, that does not hold."""

    channel: str
    segment: int
    offset: int
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Segment:
    """One accepted segment, as it is held."""

    channel: str
    number: int
    data: bytes


class Checked(NamedTuple):
    """What the check of one segment came to: where it began and ended, lines, and problems."""

    channel: str
    number: int
    begin: Position
    end: Position
    lines: int
    unreadable: int
    problems: tuple[Problem, ...]


class Total(NamedTuple):
    """What the check of everything came to."""

    lines: int
    unreadable: int
    problems: tuple[Problem, ...]
    ends: dict[str, Position]


def check_segment(segment: Segment, chain: Chain) -> Checked:
    """Judge every line of a segment as the next one of its channel, from what the first one says before it."""
    channel, number = segment.channel, segment.number
    lines = lines_of(segment.data)
    problems = []
    try:
        first = parse(lines[0])
        begin = Position(first.seq - 1, first.prev, number, 0)
    except (IndexError, LineError) as error:
        why = str(error) if lines else "the segment has no line"
        nowhere = Position.start(chain.wire, channel)
        return Checked(channel, number, nowhere, nowhere, 0, 0, (Problem(channel, number, 0, "SIGNATURE", why),))
    position = begin
    unreadable = offset = 0
    for raw in lines:
        verdict = step(position, raw, wire=chain.wire, channel=channel, keys=chain)
        if verdict.code is not None or verdict.line is None:
            problems.append(Problem(channel, number, offset, str(verdict.code), verdict.why))
            break
        position = verdict.after
        if position.segment != number:
            problems.append(Problem(channel, number, offset, "MISPLACED", "it belongs into the next segment"))
            break
        try:
            check(verdict.line)
        except LineError:
            unreadable += 1
        offset += len(raw) + 1
    if not problems and offset != len(segment.data):
        problems.append(Problem(channel, number, offset, "SIGNATURE", "unterminated bytes at the end"))
    return Checked(channel, number, begin, position, len(lines), unreadable, tuple(problems))


def check_links(
    segments: Sequence[Segment], chain: Chain, *, jobs: int | None = None, progress: Callable[[int], None] | None = None
) -> Total:
    """Check as `check_all`, with hashes, links and places alone: enough where a pinned head vouches for the end."""
    del jobs  # hashing a segment costs less than handing it to another process
    return _total((_told(_link_segment(one, chain), n, progress) for n, one in enumerate(segments, 1)), chain)


def check_all(
    segments: Sequence[Segment], chain: Chain, *, jobs: int | None = None, progress: Callable[[int], None] | None = None
) -> Total:
    """Check segments, each channel's in order, and that they follow each other.

    Args:
        jobs: processes; the number of cores when omitted, none beside this one for 1.
        progress: told the number of segments done so far.
    """
    results = _checked(segments, chain, jobs or os.cpu_count() or 1)
    return _total((_told(one, n, progress) for n, one in enumerate(results, 1)), chain)


def _told(checked: Checked, number: int, progress: Callable[[int], None] | None) -> Checked:
    if progress is not None:
        progress(number)
    return checked


def _link_segment(segment: Segment, chain: Chain) -> Checked:
    channel, number = segment.channel, segment.number
    position: Position | None = None
    begin = Position.start(chain.wire, channel)
    offset = 0
    lines = lines_of(segment.data)
    for raw in lines:
        try:
            line = parse(raw)
        except LineError as error:
            return Checked(
                channel, number, begin, begin, 0, 0, (Problem(channel, number, offset, error.code, error.why),)
            )
        if position is None:
            position = begin = Position(line.seq - 1, line.prev, number, 0)
        if (line.seq, line.prev, line.channel, line.wire) != (position.seq + 1, position.head, channel, chain.wire):
            problem = Problem(channel, number, offset, "GAP", f"{line.id} does not follow line {position.seq}")
            return Checked(channel, number, begin, position, 0, 0, (problem,))
        position = position.after(len(raw) + 1, line.head)
        offset += len(raw) + 1
    return Checked(channel, number, begin, position or begin, len(lines), 0, ())


def _total(results: Iterable[Checked], chain: Chain) -> Total:
    problems: list[Problem] = []
    ends: dict[str, Position] = {}
    lines = unreadable = 0
    for checked in results:
        lines += checked.lines
        unreadable += checked.unreadable
        before = ends.get(checked.channel, Position.start(chain.wire, checked.channel))
        problems += checked.problems
        if (before.seq, before.head) != (checked.begin.seq, checked.begin.head):
            why = f"it begins behind line {checked.begin.seq}, the segment before it ends with line {before.seq}"
            problems.append(Problem(checked.channel, checked.number, 0, "GAP", why))
        ends[checked.channel] = checked.end
    return Total(lines, unreadable, tuple(problems), ends)


def _checked(segments: Sequence[Segment], chain: Chain, jobs: int) -> Iterator[Checked]:
    if jobs == 1 or len(segments) < 2:
        for segment in segments:
            yield check_segment(segment, chain)
        return
    with ProcessPoolExecutor(jobs, initializer=_prepare, initargs=(segments, chain)) as pool:
        waiting: list[Future[Checked]] = [pool.submit(_check, index) for index in range(len(segments))]
        for future in waiting:
            yield future.result()


_segments: Sequence[Segment]
_chain: Chain


def _prepare(segments: Sequence[Segment], chain: Chain) -> None:
    """Give a worker process everything at once: where processes are forked, it has it without a copy."""
    global _segments, _chain
    _segments, _chain = segments, chain


def _check(index: int) -> Checked:
    return check_segment(_segments[index], _chain)
