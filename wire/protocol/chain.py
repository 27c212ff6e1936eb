"""The chain of a channel: one step, and the walk over what a remote carries (PROTOCOL.md, section "Verification").

The accepted chain is what a machine has verified; a file at the remote's tip only carries it. So a file is never
compared with another file: its lines are walked against the accepted end. The next valid line is accepted, a line that
is already accepted advances, everything else is foreign and is never kept.

The numbers are those of PROTOCOL.md:
    6a  size                    SIZE
    6b  form, UTF-8, trailer    SIGNATURE
    6c  key                     KEY_UNKNOWN
    6d  signature               SIGNATURE
    6e  place                   MISPLACED
    6f  position of the key     KEY_RETIRED
    6g  seq and prev            REPLAY, GAP, FORK
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from wire.protocol.codes import Code
from wire.protocol.encoding import LINE_TYPE, verify
from wire.protocol.line import LINE_MIN, Line, LineError, genesis, head, parse

SEGMENT_MAX = 262_144
"""Bytes of one segment; a line goes to the next segment if and only if it would exceed this."""


class Position(NamedTuple):
    """The end of a chain: its last line's number and head, and where the next byte goes."""

    seq: int
    head: str
    segment: int
    size: int

    @classmethod
    def start(cls, wire: str, channel: str) -> "Position":
        """Return the end of a channel without lines."""
        return cls(0, genesis(wire, channel), 1, 0)

    def after(self, length: int, new_head: str) -> "Position":
        """Return the end after one more line of `length` bytes, newline included."""
        segment, offset = place(self, length)
        return Position(self.seq + 1, new_head, segment, offset + length)


class KeyLike(Protocol):
    """What the chain needs to know of a key; `wire.keys.trust.Key` is one."""

    @property
    def public(self) -> bytes: ...
    @property
    def status(self) -> str: ...
    @property
    def positions(self) -> Mapping[str, tuple[int, str]]: ...


class KeyRing(Protocol):
    """Where keys are looked up; `wire.keys.trust.Chain` is one."""

    def owner(self, key_id: str) -> tuple[str, KeyLike] | None:
        """Return the name that a key id belongs to, and the key."""
        ...


class Step(NamedTuple):
    """The verdict on one line. `code` None means: it is the valid next one, and `after` is the new end."""

    code: Code | None
    why: str
    line: Line | None
    after: Position


FOREIGN_MAX = 1_000
"""Foreign pieces of a walk that are listed, but for forks; beyond, they are counted: a million newlines cost little."""

_COPY = "a copy of an accepted line in another place"


class Foreign(NamedTuple):
    """Bytes in a segment that are not the accepted chain's."""

    code: Code
    why: str
    segment: int
    offset: int
    length: int
    line: Line | None
    raw: bytes


class Walk(NamedTuple):
    """What a walk over a channel at one tip found."""

    end: Position
    new: tuple[Line, ...]
    foreign: tuple[Foreign, ...]
    """The first `FOREIGN_MAX` of them, or a few more."""
    lacking: tuple[int, ...]
    """The numbers of accepted lines that the tip lacks, ascending."""
    more: int = 0
    """How many foreign pieces there are beyond those listed."""


def place(position: Position, length: int) -> tuple[int, int]:
    """Return (segment, offset) of the next line of `length` bytes: a pure function of the accepted bytes."""
    if position.size + length > SEGMENT_MAX:
        return position.segment + 1, 0
    return position.segment, position.size


def step(position: Position, raw: bytes, *, wire: str, channel: str, keys: KeyRing) -> Step:
    """Judge one line as the next of a channel.

    Args:
        position: the accepted end.
        raw: the line's bytes without the newline.
    """
    try:
        line = parse(raw)
    except LineError as error:
        return Step(error.code, error.why, None, position)
    owner = keys.owner(line.key_id)
    if owner is None:
        return Step(Code.KEY_UNKNOWN, f"no trusted key has the id {line.key_id}", line, position)
    name, key = owner
    if not verify(key.public, line.signature, LINE_TYPE, line.body_bytes):
        return Step(Code.SIGNATURE, f"the signature is not that of {name!r}'s key {line.key_id}", line, position)
    if name != line.sender:
        return Step(Code.SIGNATURE, f"it names {line.sender!r} and is signed by {name!r}", line, position)
    if line.wire != wire or line.channel != channel:
        stands = channel if line.wire == wire else f"wire {wire}"
        named = line.channel if line.wire == wire else f"wire {line.wire}"
        return Step(Code.MISPLACED, f"it was signed for {named} and stands in {stands}", line, position)
    if not _key_counts(key, line):
        return Step(
            Code.KEY_RETIRED,
            f"key {line.key_id} is {key.status} and this line is past its position",
            line,
            position,
        )
    if line.seq <= position.seq:
        return Step(Code.REPLAY, f"line {line.seq} again; the chain is at {position.seq}", line, position)
    if line.seq > position.seq + 1:
        return Step(Code.GAP, f"line {line.seq} where {position.seq + 1} is next", line, position)
    if line.prev != position.head:
        return Step(
            Code.FORK,
            f"line {line.seq} follows another line {position.seq} than the accepted one",
            line,
            position,
        )
    return Step(None, "", line, position.after(len(raw) + 1, head(raw)))


def walk(
    end: Position,
    carried: Mapping[int, bytes],
    accepted: Callable[[int], bytes],
    *,
    wire: str,
    channel: str,
    keys: KeyRing,
) -> Walk:
    """Walk what a tip carries of one channel against its accepted chain.

    Args:
        end: the accepted end.
        carried: the bytes at the tip of every segment that may differ from the accepted one; a segment that the tip
            lacks is given as empty. Segments left out count as carried exactly as accepted.
        accepted: returns the accepted bytes of a segment up to `end.segment`.
    """
    new: list[Line] = []
    foreign: list[Foreign] = []
    lacking: list[int] = []
    more = 0
    position = end
    for number in sorted(carried):
        known = accepted(number) if number <= end.segment else b""
        unknown, lost, copies = _sort(known, carried[number])
        foreign.extend(Foreign(Code.REPLAY, _COPY, number, at, len(raw) + 1, None, raw) for at, raw in copies)
        lacking.extend(parse(raw).seq for raw in lost)
        for offset, raw, complete in unknown:
            full = len(foreign) >= FOREIGN_MAX
            if full and len(raw) < LINE_MIN:
                more += 1
                continue
            verdict = _judge(position, raw, complete, number, wire=wire, channel=channel, keys=keys)
            if verdict.code is None and verdict.line is not None:
                new.append(verdict.line)
                position = verdict.after
                continue
            code, why = verdict.code or Code.SIGNATURE, verdict.why
            if code is Code.REPLAY and verdict.line is not None:
                seq = verdict.line.seq
                taken = line_at(seq, end.segment, accepted) if seq <= end.seq else new[seq - end.seq - 1].raw
                if taken != raw:
                    code, why = Code.FORK, f"a second valid line {seq}"
            if full and code is not Code.FORK:
                more += 1
            else:
                foreign.append(Foreign(code, why, number, offset, len(raw) + complete, verdict.line, raw))
    return Walk(position, tuple(new), tuple(foreign), tuple(lacking), more)


def lacking(known: bytes, carried: bytes) -> bool:
    """Return whether a segment as it is carried lacks some of its accepted lines."""
    return bool(_sort(known, carried)[1])


def lines_of(data: bytes) -> list[bytes]:
    """Return the complete lines of a segment without their newlines; split on `\\n` only."""
    return data.split(b"\n")[:-1]


def line_at(seq: int, segments: int, accepted: Callable[[int], bytes]) -> bytes | None:
    """Return the accepted line with this number, by bisection over the first lines of the segments.

    Args:
        segments: how many there are.
        accepted: returns the accepted bytes of a segment.
    """
    low, high = 1, segments
    while low <= high:
        middle = (low + high) // 2
        lines = lines_of(accepted(middle))
        first = parse(lines[0]).seq if lines else seq + 1
        if seq < first:
            high = middle - 1
        elif seq >= first + len(lines):
            low = middle + 1
        else:
            return lines[seq - first]
    return None


def _key_counts(key: KeyLike, line: Line) -> bool:
    if key.status == "active":
        return True
    last = key.positions.get(line.channel)
    if last is None:
        return False
    seq, last_head = last
    return line.seq < seq or (line.seq == seq and line.head == last_head)


def _split(data: bytes, start: int) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (offset, bytes, complete) of the lines from `start` on."""
    pieces = data[start:].split(b"\n")
    last = pieces.pop()
    for raw in pieces:
        yield start, raw, True
        start += len(raw) + 1
    if last:
        yield start, last, False


def _sort(
    known: bytes, carried: bytes
) -> tuple[Iterable[tuple[int, bytes, bool]], list[bytes], list[tuple[int, bytes]]]:
    """Sort a carried segment into (unknown pieces, known lines that it lacks, copies of known ones out of place)."""
    if carried.startswith(known):
        return _split(carried, len(known)), [], []
    order = lines_of(known)
    rank = {raw: index for index, raw in enumerate(order)}
    copies: list[tuple[int, bytes]] = []
    lost: list[bytes] = []
    expected = 0
    for offset, raw, complete in _split(carried, 0):
        index = rank.get(raw) if complete else None
        if index is None:
            continue
        if index < expected:
            copies.append((offset, raw))
        else:
            lost.extend(order[expected:index])
            expected = index + 1
    # Not gathered in the loop above: there may be a million of them.
    unknown = (piece for piece in _split(carried, 0) if not (piece[2] and piece[1] in rank))
    return unknown, lost + order[expected:], copies


def _judge(
    position: Position, raw: bytes, complete: bool, number: int, *, wire: str, channel: str, keys: KeyRing
) -> Step:
    if not complete:
        return Step(Code.SIGNATURE, "unterminated bytes at the end of the segment", None, position)
    verdict = step(position, raw, wire=wire, channel=channel, keys=keys)
    if verdict.code is None and verdict.after.segment != number:
        why = f"it stands in segment {number} and belongs into segment {verdict.after.segment}"
        return Step(Code.MISPLACED, why, verdict.line, position)
    return verdict
