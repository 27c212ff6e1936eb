"""What staged changes are judged against: the trust, and the accepted end and bytes of each channel.

`pinned` is the ground of a machine that joined the wire: its pin, its trust, its accepted bytes. `unpinned` is what the
repository's own HEAD says, for a clone that is no machine's: the trust chain must hold, but whether it is the right one
nobody can tell there, nor who is sitting at the keyboard.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from wire.daemon.accepted import Accepted, Blobs
from wire.daemon.shape import ROOT, Kind, classify, segment_path, trust_path
from wire.daemon.site import Site
from wire.errors import StoreError
from wire.gitio import Entry, Git
from wire.keys.trust import Chain
from wire.protocol.chain import Position, place, walk
from wire.store import journal
from wire.store.config import WireConfig
from wire.store.paths import Settings, WirePlaces


@dataclass(frozen=True, slots=True)
class Channel:
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
    stored: Mapping[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ground:
    """The ground of one repository.

    Attributes:
        own: the agents of this machine; None where that is not known.
        channel: returns what is accepted of a channel.
    """

    chain: Chain
    own: frozenset[str] | None
    channel: Callable[[str], Channel]


def pinned(settings: Settings, config: WireConfig, git: Git, blobs: Blobs) -> Ground:
    """Return the ground of a wire that this machine joined.

    Args:
        git: the repository of the work tree, which shares the clone's objects.

    Raises:
        WireError: pin or trust are missing, damaged, or do not fit each other.
    """
    site = Site.open(settings, config)
    pin = site.pin()
    accepted = Accepted(git, blobs, pin.accepted_commit)

    def channel(name: str) -> Channel:
        end = pin.accepted.get(name, Position.start(pin.wire, name))
        mine = name.partition("/")[0] in config.agents
        stored = _stored(site.places, pin.wire, name, end) if mine else {}
        return Channel(
            end,
            lambda number: accepted.segment(name, number),
            lambda number: accepted.oids().get(segment_path(name, number)),
            stored,
        )

    return Ground(site.trust(pin), frozenset(config.agents), channel)


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

    def channel(name: str) -> Channel:
        carried = {
            number: blobs.get(entry.oid) or b"" for number, entry in segments(entries, name).items() if number > 0
        }
        start = Position.start(chain.wire, name)
        found = walk(start, carried, lambda number: b"", wire=chain.wire, channel=name, keys=chain)
        accepted: dict[int, bytes] = {}
        end = start
        for line in found.new:
            number, _ = place(end, len(line.raw) + 1)
            accepted[number] = accepted.get(number, b"") + line.raw + b"\n"
            end = end.after(len(line.raw) + 1, line.head)
        return Channel(found.end, lambda number: accepted.get(number, b""))

    return Ground(chain, None, channel)


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


def _stored(places: WirePlaces, wire: str, channel: str, end: Position) -> dict[int, bytes]:
    """Return what the journal has behind the accepted end; one that cannot be read is the daemon's to mend."""
    try:
        tail = journal.tail(places, wire, channel)
        lines = list(journal.read_lines(places, channel, end, tail)) if tail.seq > end.seq else []
    except StoreError:
        return {}
    return {end.seq + 1 + index: raw for index, raw in enumerate(lines)}
