"""Noting what was accepted, for people and for speed: when it was first seen, and where it stands.

Called after the pin was saved. Nothing here decides what a reader is shown, so trouble with it never stops a cycle and
is returned instead: a damaged index is moved aside and made anew, and what it lacks is read from the lines themselves.
"""

from collections.abc import Callable, Mapping, Sequence

from wire.errors import Busy, Corrupt, StoreError
from wire.protocol.chain import Position, place
from wire.protocol.line import Line, LineError, content
from wire.store import seen
from wire.store.index import Entry, Index
from wire.store.paths import WirePlaces


def record(
    places: WirePlaces,
    wire: str,
    starts: Mapping[str, Position],
    new: Mapping[str, Sequence[Line]],
    commit: str | None,
    now: str,
) -> list[str]:
    """Note newly accepted lines, and return what went wrong with that.

    Args:
        starts: the end of each channel before its new lines.
        new: the lines, in order.
        commit: the remote's commit that carried them; None for our own before the first push.
        now: UTC text.
    """
    if not new:
        return []
    spans = {channel: (lines[0].seq, lines[-1].seq) for channel, lines in new.items()}
    entries = [entry for channel, lines in new.items() for entry in _entries(channel, starts[channel], lines)]
    return _try(
        lambda: seen.append(places.seen_file, now, commit or "", spans),
        lambda: _with_index(places, wire, lambda index: index.add(entries)),
    )


def cut(places: WirePlaces, wire: str, channel: str, seq: int, now: str) -> list[str]:
    """Forget what was noted of lines after `seq`, which no longer count; return what went wrong with that."""
    return _try(
        lambda: seen.cut(places.seen_file, now, channel, seq),
        lambda: _with_index(places, wire, lambda index: index.drop_after(channel, seq)),
    )


def _try(*steps: Callable[[], None]) -> list[str]:
    trouble = []
    for step in steps:
        try:
            step()
        except (StoreError, Busy) as error:
            trouble.append(str(error))
    return trouble


def _with_index(places: WirePlaces, wire: str, work: Callable[[Index], None]) -> None:
    index, _ = Index.open(places.index_file, wire)
    with index:
        try:
            work(index)
            return
        except Corrupt:
            pass
    index, _ = Index.open(places.index_file, wire, anew=True)
    with index:
        work(index)


def _entries(channel: str, end: Position, lines: Sequence[Line]) -> list[Entry]:
    entries = []
    for line in lines:
        length = len(line.raw) + 1
        segment, offset = place(end, length)
        end = end._replace(segment=segment, size=offset + length)
        try:
            members = content(line)
        except LineError:
            members = {}
        entries.append(
            Entry(
                channel, line.seq, segment, offset, length, line.head, line.type, members.get("thread"),
                members.get("re"), line.ts,
            )
        )  # fmt: skip
    return entries
