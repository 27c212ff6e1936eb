"""How far each reader of each agent has come, per channel.

Rules that it keeps: a cursor is no cache and has a file of its own; loading takes no lock, so that a reader reads
whoever holds what; two readers that save at once never bring each other back; a file that is damaged is moved aside
and the loss is told, because "nothing new" and "lost my place" are different answers.

    cursors = load(places.cursors_dir, "mac", "tail")
    save(places.cursors_dir, "mac", "tail", {"spark/mac": position})
    save(places.cursors_dir, "mac", "tail", {}, beyond={"spark/mac": {44: head}})      # 44 was read, 43 was not

A position is the end of what was read without a gap; what was read out of turn stands beyond it, by number and head,
until the gap closes.

What it does not do: check a position against the accepted chain, or decide where a reader without one begins. Nothing
is fsync'd: after a power cut a reader may see some messages again, and never misses one.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from wire.errors import Busy
from wire.protocol.chain import Position
from wire.protocol.names import check_name, split_channel, valid_channel
from wire.protocol.strictjson import dumps, loads
from wire.store.files import atomic_write, locked, move_aside, read_bytes, store_error
from wire.store.pin import position

DEFAULT_READER = "tail"
"""The reader that stands for the agent itself: what it was shown, the agent has read."""

VERSION = 1
BEYOND_MAX = 1024
_WAIT = 10.0
_SHORT_WAIT = 1.0


class Cursors(NamedTuple):
    """The place of one reader.

    Attributes:
        positions: per channel the end of what was read without a gap.
        lost: the file was damaged, and this is the first to find it.
        aside: where the damaged file is now; None when it could not be moved, see `load`.
        why: what is wrong with it, when lost.
        beyond: per channel number and head of lines that were read out of turn.
    """

    positions: Mapping[str, Position]
    lost: bool = False
    aside: str | None = None
    why: str = ""
    beyond: Mapping[str, Mapping[int, str]] = {}


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
        return _read(path)
    except ValueError:
        pass
    try:
        with locked(directory, what="the cursors", timeout=_SHORT_WAIT):
            return _read_or_move(path)
    except Busy:
        try:
            return _read(path)
        except ValueError as error:
            return Cursors({}, lost=True, why=str(error))


def save(
    directory: str,
    agent: str,
    reader: str,
    positions: Mapping[str, Position],
    *,
    beyond: Mapping[str, Mapping[int, str]] | None = None,
    rewind: bool = False,
) -> Cursors:
    """Move a reader on, and return its place afterwards.

    Args:
        directory: `WirePlaces.cursors_dir`; made when missing.
        agent: whose reader.
        reader: its name, of the form of an agent's ("tail").
        positions: the new ends; channels that are not named stay.
        beyond: lines that were read out of turn, number and head; each channel keeps `BEYOND_MAX` of them, and what
            is dropped will be shown again.
        rewind: take the ends as they are, also backwards; otherwise the higher `seq` of old and new holds.

    Raises:
        UsageError: a name or channel that is none.
        Busy: somebody held the lock for ten seconds.
        DiskFull, StoreError: not written; the old place holds.
    """
    path = _path(directory, agent, reader)
    for channel in (*positions, *(beyond or {})):
        split_channel(channel)
    with locked(directory, what="the cursors", timeout=_WAIT):
        old = _read_or_move(path)
        merged = dict(old.positions)
        for channel, new in positions.items():
            held = merged.get(channel)
            if rewind or held is None or new.seq >= held.seq:
                merged[channel] = new
        apart = _beyond(old.beyond, beyond or {}, merged)
        if merged != old.positions or apart != old.beyond or old.lost:
            body: dict[str, Any] = {"v": VERSION, "channels": {name: list(at) for name, at in sorted(merged.items())}}
            if apart:
                body["beyond"] = {name: {str(seq): head for seq, head in one.items()} for name, one in apart.items()}
            atomic_write(path, dumps(body) + b"\n", durable=False)
    return Cursors(merged, old.lost, old.aside, old.why, apart)


def _beyond(
    old: Mapping[str, Mapping[int, str]], new: Mapping[str, Mapping[int, str]], ends: Mapping[str, Position]
) -> dict[str, dict[int, str]]:
    """Return old and new lines that still stand beyond the end of what was read."""
    result = {}
    for channel in sorted({*old, *new}):
        end = ends[channel].seq if channel in ends else 0
        both = {**old.get(channel, {}), **new.get(channel, {})}
        kept = sorted(seq for seq in both if seq > end)[-BEYOND_MAX:]
        if kept:
            result[channel] = {seq: both[seq] for seq in kept}
    return result


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


def forget(directory: str, agent: str, reader: str) -> None:
    """Remove the place of a reader that will not come back; raises StoreError."""
    path = _path(directory, agent, reader)
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error(error, "remove", path) from error


def _path(directory: str, agent: str, reader: str) -> str:
    # Names hold no dot, so that no two pairs share a file.
    return os.path.join(directory, f"{check_name(agent, 'agent')}.{check_name(reader, 'reader')}.json")


def _read_or_move(path: str) -> Cursors:
    try:
        return _read(path)
    except ValueError as error:
        return Cursors({}, lost=True, aside=move_aside(path), why=str(error))


def _read(path: str) -> Cursors:
    data = read_bytes(path)
    if data is None:
        return Cursors({})
    if not data.strip(b"\0"):
        raise ValueError(f"{len(data)} bytes, all NUL" if data else "0 bytes")
    found = loads(data, floats_below=None)
    channels, beyond = found.get("channels"), found.get("beyond", {})
    known = found.keys() <= {"v", "channels", "beyond"} and found.get("v") == VERSION
    if not known or not isinstance(channels, dict) or not isinstance(beyond, dict):
        raise ValueError("not the places of a reader")
    for channel in (*channels, *beyond):
        if not valid_channel(*channel.partition("/")[::2]):
            raise ValueError(f"{channel[:80]!r} is not a channel")
    return Cursors(
        {channel: position(entry, channel) for channel, entry in channels.items()},
        beyond={channel: _apart(entry, channel) for channel, entry in beyond.items()},
    )


def _apart(entry: Any, channel: str) -> dict[int, str]:
    good = isinstance(entry, dict) and all(
        name.isascii() and name.isdigit() and len(name) <= 15 and isinstance(head, str) and len(head) == 64
        for name, head in entry.items()
    )
    if not good:
        raise ValueError(f"what was read out of turn in {channel} is not numbers and heads")
    return {int(name): head for name, head in entry.items()}
