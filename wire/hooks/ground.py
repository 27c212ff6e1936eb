"""What changes are judged against: the trust, and the accepted end and bytes of each channel.

`pinned.pinned` is the ground of a machine that joined the wire: its pin, its trust, its accepted bytes. `unpinned` is
what the repository's own HEAD says, for a clone that is no machine's: the trust chain must hold, but whether it is the
right one nobody can tell there, nor who is sitting at the keyboard. On a host `prereceive` makes one of the tip.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from wire.daemon.accepted import Blobs
from wire.daemon.shape import ROOT, Kind, classify, trust_path
from wire.gitio import Entry
from wire.keys.trust import Chain
from wire.protocol.chain import Position, place, walk

_NOTHING: Mapping[int, bytes] = MappingProxyType({})

GROUP = 64
"""Segments that are read at a time."""


class Channel(NamedTuple):
    """What is accepted of one channel.

    Attributes:
        end: its accepted end.
        segment: returns the accepted bytes of a segment, empty for none.
        blob: returns the object that holds exactly these bytes, None where that is not known.
        stored: lines without newline that this machine's journal has behind the end, by number.
    """

    end: Position
    segment: Callable[[int], bytes]
    blob: Callable[[int], str | None] = lambda number: None
    stored: Mapping[int, bytes] = _NOTHING


class Ground(NamedTuple):
    """The ground of one repository.

    Attributes:
        own: the agents of this machine; None where that is not known.
        channel: returns what is accepted of a channel, given the trust that the changes make.
        alone: the branch holds the wire and nothing else.
    """

    chain: Chain
    own: frozenset[str] | None
    channel: Callable[[str, Chain], Channel]
    alone: bool


def unpinned(blobs: Blobs, entries: Mapping[bytes, Entry]) -> Ground:
    """Return the ground that a tree gives by itself.

    Args:
        entries: the files of HEAD.

    Raises:
        TrustError: its trust chain does not hold.
    """
    files: list[tuple[bytes, bytes]] = []
    while True:
        path = trust_path(len(files) + 1).encode()
        held = [entries.get(path), entries.get(path + b".sig")]
        read = [blobs.get(entry.oid) for entry in held if entry is not None and entry.kind == "blob"]
        if len(read) < 2:
            break
        files.append((read[0] or b"", read[1] or b""))
    chain = Chain.replay(files)

    return Ground(chain, None, lambda name, trust: carried(trust, name, segments(entries, name), blobs)[0], alone=False)


def carried(chain: Chain, name: str, there: Mapping[int, Entry], blobs: Blobs) -> tuple[Channel, bool]:
    """Return what a tree carries of a channel, walked from the first line on, and whether it carries nothing else.

    Args:
        there: the segments in the tree, by number.
    """
    parts: dict[int, list[bytes]] = {}
    end = Position.start(chain.wire, name)
    clean = sorted(there) == list(range(1, len(there) + 1))
    numbers = sorted(number for number in there if number > 0)
    for index, number in enumerate(numbers):
        if index % GROUP == 0:
            blobs.fetch(there[one].oid for one in numbers[index : index + GROUP])
        data = blobs.get(there[number].oid) or b""
        found = walk(end, {number: data}, lambda n: b"", wire=chain.wire, channel=name, keys=chain)
        clean = clean and not (found.foreign or found.more)
        for line in found.new:
            parts.setdefault(place(end, len(line.raw) + 1)[0], []).append(line.raw)
            end = end.after(len(line.raw) + 1, line.head)
    accepted = {number: b"\n".join([*lines, b""]) for number, lines in parts.items()}
    blob = (lambda number: there[number].oid if number in there else None) if clean else (lambda number: None)
    return Channel(end, lambda number: accepted.get(number, b""), blob), clean


def segments(entries: Mapping[bytes, Entry], channel: str) -> dict[int, Entry]:
    """Return the segments of a channel among the files of a tree, by number."""
    prefix = f"{ROOT}/{channel}/".encode()
    found = {}
    for path, entry in entries.items():
        if path.startswith(prefix):
            shape = classify(path, entry.mode)
            if shape.kind is Kind.SEGMENT:
                found[shape.number] = entry
    return found
