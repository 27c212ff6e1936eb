"""How far each reader of each agent has come, per channel.

Rules that it keeps: a cursor is no cache and has a file of its own; loading takes no lock, so that a reader reads
whoever holds what; two readers that save at once never bring each other back; a file that is damaged is moved aside
and the loss is told, because "nothing new" and "lost my place" are different answers.

    cursors = load(places.cursors_dir, "mac", "tail")
    save(places.cursors_dir, "mac", "tail", {"spark/mac": position})

What it does not do: check a position against the accepted chain, or decide where a reader without one begins. Nothing
is fsync'd: after a power cut a reader may see some messages again, and never misses one.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from wire.errors import Busy
from wire.protocol.chain import Position
from wire.protocol.names import check_name, split_channel, valid_channel
from wire.protocol.strictjson import dumps, loads
from wire.store.files import atomic_write, locked, move_aside, read_bytes
from wire.store.pin import position

DEFAULT_READER = "tail"
"""The reader that stands for the agent itself: what it was shown, the agent has read."""

VERSION = 1
_WAIT = 10.0
_SHORT_WAIT = 1.0


class Cursors(NamedTuple):
    """The place of one reader.

    Attributes:
        positions: per channel the end of what was read.
        lost: the file was damaged, and this is the first to find it.
        aside: where the damaged file is now; None when it could not be moved, see `load`.
        why: what is wrong with it, when lost.
    """

    positions: Mapping[str, Position]
    lost: bool = False
    aside: str | None = None
    why: str = ""


def load(directory: str, agent: str, reader: str) -> Cursors:
    """Return the place of a reader; without any position when it never saved one.

    A damaged file is moved aside, for which the lock is needed; where somebody sits on that, the file stays and the
    loss is told again next time.

    Raises:
        UsageError: a name that is none.
        StoreError: the file is there and cannot be read or moved.
    """
    path = _path(directory, agent, reader)
    try:
        return Cursors(_read(path))
    except ValueError:
        pass
    try:
        with locked(directory, what="the cursors", timeout=_SHORT_WAIT):
            return _read_or_move(path)
    except Busy:
        try:
            return Cursors(_read(path))
        except ValueError as error:
            return Cursors({}, lost=True, why=str(error))


def save(
    directory: str, agent: str, reader: str, positions: Mapping[str, Position], *, rewind: bool = False
) -> Cursors:
    """Move a reader on, and return its place afterwards.

    Args:
        directory: `WirePlaces.cursors_dir`; made when missing.
        agent: whose reader.
        reader: its name, of the form of an agent's ("tail").
        positions: the new ends; channels that are not named stay.
        rewind: take them as they are, also backwards; otherwise the higher `seq` of old and new holds.

    Raises:
        UsageError: a name or channel that is none.
        Busy: somebody held the lock for ten seconds.
        DiskFull, StoreError: not written; the old place holds.
    """
    path = _path(directory, agent, reader)
    for channel in positions:
        split_channel(channel)
    with locked(directory, what="the cursors", timeout=_WAIT):
        old = _read_or_move(path)
        merged = dict(old.positions)
        for channel, new in positions.items():
            held = merged.get(channel)
            if rewind or held is None or new.seq >= held.seq:
                merged[channel] = new
        if merged != old.positions or old.lost:
            body = {channel: list(place) for channel, place in sorted(merged.items())}
            atomic_write(path, dumps({"v": VERSION, "channels": body}) + b"\n", durable=False)
    return Cursors(merged, old.lost, old.aside, old.why)


def readers(directory: str, agent: str) -> list[str]:
    """Return the names of the readers of an agent that have saved a place."""
    prefix = f"{check_name(agent, 'agent')}."
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    return sorted(
        name[len(prefix) : -len(".json")] for name in names if name.startswith(prefix) and name.endswith(".json")
    )


def _path(directory: str, agent: str, reader: str) -> str:
    # Names hold no dot, so that no two pairs share a file.
    return os.path.join(directory, f"{check_name(agent, 'agent')}.{check_name(reader, 'reader')}.json")


def _read_or_move(path: str) -> Cursors:
    try:
        return Cursors(_read(path))
    except ValueError as error:
        return Cursors({}, lost=True, aside=move_aside(path), why=str(error))


def _read(path: str) -> dict[str, Position]:
    data = read_bytes(path)
    if data is None:
        return {}
    if not data.strip(b"\0"):
        raise ValueError(f"{len(data)} bytes, all NUL" if data else "0 bytes")
    found = loads(data, floats_below=None)
    channels = found.get("channels")
    if found.keys() != {"v", "channels"} or found["v"] != VERSION or not isinstance(channels, dict):
        raise ValueError("not the places of a reader")
    for channel in channels:
        if not valid_channel(*channel.partition("/")[::2]):
            raise ValueError(f"{channel[:80]!r} is not a channel")
    return {channel: position(entry, channel) for channel, entry in channels.items()}
