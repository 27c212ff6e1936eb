"""The ground of a machine that joined the wire: its pin, its trust, its accepted bytes, its journal."""

from wire.daemon.accepted import Accepted, Blobs
from wire.daemon.shape import segment_path
from wire.daemon.site import Site
from wire.errors import StoreError
from wire.gitio import Git
from wire.hooks.ground import Channel, Ground
from wire.keys.trust import Chain
from wire.protocol.chain import Position
from wire.store import journal
from wire.store.config import WireConfig
from wire.store.paths import Settings, WirePlaces


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

    def channel(name: str, _: Chain) -> Channel:
        end = pin.accepted.get(name, Position.start(pin.wire, name))
        mine = name.partition("/")[0] in config.agents
        stored = _stored(site.places, pin.wire, name, end) if mine else {}
        return Channel(
            end,
            lambda number: accepted.segment(name, number),
            lambda number: accepted.oids().get(segment_path(name, number)),
            stored,
        )

    return Ground(site.trust(pin), frozenset(config.agents), channel, alone=True)


def _stored(places: WirePlaces, wire: str, channel: str, end: Position) -> dict[int, bytes]:
    """Return what the journal has behind the accepted end; one that cannot be read is the daemon's to mend."""
    try:
        tail = journal.tail(places, wire, channel)
        lines = list(journal.read_lines(places, channel, end, tail)) if tail.seq > end.seq else []
    except StoreError:
        return {}
    return {end.seq + 1 + index: raw for index, raw in enumerate(lines)}
