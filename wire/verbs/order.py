"""The order of messages across channels, the same on every machine; and the reading of times.

Within a channel the order is `seq`. Across channels what a line names by `ack`, `re` or `thread` comes before it; ties
are broken by `ts`, then id. An author's clock never decides against what the lines themselves say.
"""

from collections.abc import Iterator, Mapping, Sequence

from wire.errors import UsageError
from wire.protocol.encoding import seconds_of as seconds_of
from wire.protocol.line import Line, LineError, content
from wire.protocol.names import parse_id
from wire.store.files import utc_text
from wire.store.reading import Read


def merged(streams: Sequence[Iterator[Read]]) -> Iterator[Read]:
    """Merge channels in causal order, holding one line of each."""
    heads: dict[str, tuple[Read, Iterator[Read]]] = {}
    for stream in streams:
        _advance(heads, stream)
    while heads:
        ready = [read for read, _ in heads.values() if not _waits(read.line, heads)]
        # Two lines that name each other cannot both be honest; then the clock decides, so that reading goes on.
        chosen = min(ready or [read for read, _ in heads.values()], key=lambda read: (read.line.ts, read.line.id))
        _, stream = heads.pop(chosen.line.channel)
        yield chosen
        _advance(heads, stream)


def _advance(heads: dict[str, tuple[Read, Iterator[Read]]], stream: Iterator[Read]) -> None:
    read = next(stream, None)
    if read is not None:
        heads[read.line.channel] = (read, stream)


def _waits(line: Line, heads: Mapping[str, tuple[Read, Iterator[Read]]]) -> bool:
    """Return whether a line names one that is still to come from another channel."""
    if len(heads) == 1:
        return False
    try:
        members = content(line)
    except LineError:
        return False
    named = [members[name] for name in ("re", "thread") if name in members]
    if "ack" in members:
        named.append(f"{line.recipient}/{line.sender}/{members['ack'][0]}")
    for message_id in named:
        channel, seq = parse_id(message_id)
        if channel != line.channel and channel in heads and heads[channel][0].line.seq <= seq:
            return True
    return False


def since_text(text: str, now: float) -> str:
    """Return the UTC text of `2h`, `30m`, `7d`, or of a time given as UTC text or a date.

    Raises:
        UsageError: it is neither.
    """
    if (moment := _moved(text, now, -1)) is not None:
        return moment
    if len(text) >= 10 and seconds_of((text + "T00:00:00.000Z")[:24] if len(text) == 10 else (text[:19] + ".000Z")):
        return text
    raise UsageError(
        f"{text[:40]!r} is not a time: 30m, 2h, 7d, 2026-11-29 or 2026-11-29T11:20:00.000Z", reason="bad-time"
    )


def until_text(text: str, now: float) -> str:
    """Return the UTC text of a moment to come: of `2h`, `30m`, `3d` from now, or of a time given as UTC text.

    Raises:
        UsageError: it is neither.
    """
    if (moment := _moved(text, now, 1)) is not None:
        return moment
    whole = text[:19] + ".000Z" if len(text) == 20 and text[-1] == "Z" else text
    if len(whole) == 24 and whole[-1] == "Z" and seconds_of(whole):
        return whole
    raise UsageError(f"{text[:40]!r} is not a time to come: 30m, 2h, 3d, or 2026-11-29T11:20:00Z", reason="bad-time")


def _moved(text: str, now: float, way: int) -> str | None:
    """Return the UTC text of so much before or after now; None for what is no such text, or leaves the calendar."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    if text[-1:] not in units or not (text.isascii() and text[:-1].isdigit()) or len(text) > 9:
        return None
    try:
        moment = utc_text(now + way * int(text[:-1]) * units[text[-1]])
    except (ValueError, OverflowError, OSError):
        return None
    return moment if len(moment) == 24 else None
