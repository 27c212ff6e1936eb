"""Reading accepted lines from files that anybody may have touched.

The pin says how an accepted channel ends: number, head, and where. Every line's head hashes its bytes, and every line
names the head of the one before it, so the end vouches for all of them: whatever is read here was walked backward from
it, and nothing is handed out before that. Signatures need no second look, locks are not needed, and the files may lie.

    sources = [clone_source(places.coordination, "mac/spark"), git_source]
    for item in lines_after(sources, wire, "mac/spark", accepted=pin.accepted["mac/spark"], cursor=cursor):
        show(item.line); cursor = item.after

One segment is in memory at a time. Where one source is damaged, the next one is asked for that segment.

What it does not do: say who signed, whether the content is lawful, or what a cursor is for.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from wire.errors import IntegrityError
from wire.protocol.chain import Position, lines_of
from wire.protocol.encoding import sha256, sha256_hex
from wire.protocol.line import Line, LineError, genesis, parse
from wire.protocol.names import segment_name
from wire.store.clonefiles import read_segment


class LostPlace(IntegrityError):
    """A cursor names a line that is not on the accepted chain."""

    reason = "lost-place"


class Source(Protocol):
    """Where the bytes of a channel's segments are read from."""

    def read(self, segment: int) -> bytes | None:
        """Return a segment's bytes from its beginning, or None when there are none; more than accepted is no harm."""
        ...

    def name(self, segment: int) -> str:
        """Return what to call the segment in a message."""
        ...


class Read(NamedTuple):
    """An accepted line, and the end of the channel after it."""

    line: Line
    after: Position


class Damage(NamedTuple):
    """A source that does not hold the accepted bytes: its name for the segment, and where they part."""

    name: str
    offset: int
    why: str


class CloneSource(NamedTuple):
    """The clone's per-direction files."""

    coordination: str
    channel: str

    def read(self, segment: int) -> bytes | None:
        """Return a segment's bytes, never through a link."""
        return read_segment(self.coordination, self.channel, segment)

    def name(self, segment: int) -> str:
        """Return the file's path."""
        return f"{self.coordination}/{self.channel}/{segment_name(segment)}"


class _Span(NamedTuple):
    """Accepted lines that stand together in one segment, walked and found right."""

    segment: int
    start: int
    stop: int
    digest: bytes


OnDamage = Callable[[Damage], None]


def lines_after(
    sources: Sequence[Source],
    wire: str,
    channel: str,
    *,
    accepted: Position,
    cursor: Position,
    on_damage: OnDamage | None = None,
) -> Iterator[Read]:
    """Return the accepted lines behind a cursor, in order.

    All of them are walked before this returns; the iterator reads them again segment by segment.

    Args:
        sources: asked in this order, for each segment.
        accepted: the channel's end, from the pin.
        cursor: the last line that was read; its number and head count, not its place.
        on_damage: told of each source that does not hold the accepted bytes of a segment.

    Raises:
        LostPlace: the cursor's line is not on the accepted chain.
        IntegrityError: reason `view-damaged`: no source holds the accepted bytes; names file and byte offset. The
            iterator raises it too, when files change while it runs.
    """
    if cursor.seq > accepted.seq:
        raise _lost(channel, cursor, f"the accepted channel ends with line {accepted.seq}")
    walk = _Walk(sources, wire, channel, on_damage)
    head = walk.back(accepted, cursor.seq)
    if head != cursor.head:
        raise _lost(channel, cursor, "another line has this number")
    return walk.forward()


def newest(
    sources: Sequence[Source],
    wire: str,
    channel: str,
    count: int,
    *,
    accepted: Position,
    on_damage: OnDamage | None = None,
) -> Iterator[Read]:
    """Return the last `count` accepted lines, oldest first; only the segments that hold them are read.

    Raises:
        IntegrityError: reason `view-damaged`; see `lines_after`.
    """
    walk = _Walk(sources, wire, channel, on_damage)
    walk.back(accepted, max(accepted.seq - count, 0))
    return walk.forward()


def line_at(
    sources: Sequence[Source],
    wire: str,
    channel: str,
    seq: int,
    *,
    accepted: Position,
    on_damage: OnDamage | None = None,
) -> Read | None:
    """Return one accepted line by its number, or None when the channel has no such line.

    Everything behind it is walked, since only the end is known to be right.

    Raises:
        IntegrityError: reason `view-damaged`; see `lines_after`.
    """
    if not 1 <= seq <= accepted.seq:
        return None
    walk = _Walk(sources, wire, channel, on_damage)
    walk.back(accepted, seq - 1)
    return next(walk.forward())


class _Walk:
    """One walk: backward from the accepted end, then forward over what was found right."""

    def __init__(self, sources: Sequence[Source], wire: str, channel: str, on_damage: OnDamage | None) -> None:
        self._sources = sources
        self._wire = wire
        self._channel = channel
        self._on_damage = on_damage
        self._spans: list[_Span] = []
        # The lines of the span that was walked last, newest first: it is the first to be handed out.
        self._lines: list[Line] = []

    def back(self, end: Position, until: int) -> str:
        """Walk from `end` back to behind line number `until`; return the head of that line."""
        seq, head, segment, size = end
        stop: int | None = size
        while seq > until:
            seq, head = self._back_in(segment, stop, seq, head, until)
            segment, stop = segment - 1, None
        if seq == 0 and head != genesis(self._wire, self._channel):
            raise IntegrityError(
                f"line 1 of {self._channel} does not follow the genesis of this wire", reason="view-damaged"
            )
        return head

    def forward(self) -> Iterator[Read]:
        """Yield the lines of all spans, oldest first."""
        lines, self._lines = self._lines, []
        while self._spans:
            span = self._spans.pop()
            at = span.start
            for line in reversed(lines or self._again(span)):
                at += len(line.raw) + 1
                yield Read(line, Position(line.seq, line.head, span.segment, at))
            lines = []

    def _back_in(self, segment: int, stop: int | None, seq: int, head: str, until: int) -> tuple[int, str]:
        """Walk back through one segment; return the number and head of the line before its lines."""
        damages: list[Damage] = []
        for source in self._sources:
            data = (source.read(segment) if segment > 0 else None) or b""
            try:
                start, stop_at, lines = self._lines_back(data, stop, seq, head, until)
            except _Mismatch as mismatch:
                damages.append(Damage(source.name(segment), mismatch.offset, mismatch.why))
                continue
            self._tell(damages)
            first = lines[-1]
            self._spans.append(_Span(segment, start, stop_at, sha256(data[start:stop_at])))
            self._lines = lines
            return first.seq - 1, first.prev
        self._tell(damages)
        raise _damaged(self._channel, damages)

    def _lines_back(
        self, data: bytes, stop: int | None, seq: int, head: str, until: int
    ) -> tuple[int, int, list[Line]]:
        """Return where the lines from number `seq` back to `until` + 1 stand in a segment, and the lines, newest first.

        `stop` is where line `seq` ends; None: wherever that is, since others may have written behind it.
        """
        if stop is None:
            stop = _end_of(data, head)
        elif len(data) < stop:
            raise _Mismatch(len(data), f"the file ends here; accepted are {stop} bytes")
        lines: list[Line] = []
        at = stop
        for raw in reversed(lines_of(data[:stop])):
            begins = at - len(raw) - 1
            if sha256_hex(raw) != head:
                raise _Mismatch(begins, f"the bytes are not those of line {seq}")
            try:
                line = parse(raw)
            except LineError as error:
                raise _Mismatch(begins, f"line {seq}: {error}") from error
            if line.seq != seq or line.channel != self._channel or line.wire != self._wire:
                raise _Mismatch(begins, f"{line.id} stands in the place of {self._channel}/{seq}")
            lines.append(line)
            at, seq, head = begins, seq - 1, line.prev
            if seq == until:
                break
        if seq == 0 and at > 0:
            raise _Mismatch(0, "line 1 does not begin here")
        if not lines or data[stop - 1 : stop] != b"\n":
            raise _Mismatch(stop, f"line {seq} does not end here")
        return at, stop, lines

    def _again(self, span: _Span) -> list[Line]:
        """Return the lines of a span, newest first, from whichever source still has exactly these bytes."""
        damages: list[Damage] = []
        for source in self._sources:
            data = (source.read(span.segment) or b"")[span.start : span.stop]
            if sha256(data) == span.digest:
                self._tell(damages)
                return [parse(raw) for raw in reversed(lines_of(data))]
            damages.append(Damage(source.name(span.segment), span.start, "the bytes changed while they were read"))
        self._tell(damages)
        raise _damaged(self._channel, damages)

    def _tell(self, damages: list[Damage]) -> None:
        if self._on_damage is not None:
            for damage in damages:
                self._on_damage(damage)


class _Mismatch(Exception):
    def __init__(self, offset: int, why: str) -> None:
        super().__init__(why)
        self.offset = offset
        self.why = why


def _end_of(data: bytes, head: str) -> int:
    """Return where the last line with this head ends; what stands behind it is not looked at any further."""
    stop = data.rfind(b"\n") + 1
    while stop:
        start = data.rfind(b"\n", 0, stop - 1) + 1
        if sha256_hex(data[start : stop - 1]) == head:
            return stop
        stop = start
    raise _Mismatch(len(data), "the accepted line that ends this segment is not in it")


def _damaged(channel: str, damages: Sequence[Damage]) -> IntegrityError:
    found = "; ".join(f"{damage.name}, byte {damage.offset}: {damage.why}" for damage in damages)
    return IntegrityError(
        f"the accepted lines of {channel} cannot be read: {found}",
        reason="view-damaged",
        next_step="run `wire sync`; it mends the clone from what was accepted",
        details={"damage": [damage._asdict() for damage in damages]},
    )


def _lost(channel: str, cursor: Position, why: str) -> LostPlace:
    return LostPlace(
        f"lost the place in {channel}: line {cursor.seq} was read, and {why}",
        details={"channel": channel, "seq": cursor.seq, "head": cursor.head},
    )
