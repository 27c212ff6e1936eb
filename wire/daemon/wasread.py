"""What somebody on this machine had read of lines that were cut: told in one incident, and the places taken back."""

from collections.abc import Callable, Mapping
from contextlib import suppress

from wire.daemon.findings import WIRE, Finding
from wire.daemon.site import Site
from wire.errors import Busy, StoreError
from wire.keys.trust import Chain
from wire.protocol.chain import Position, lines_of
from wire.protocol.line import parse
from wire.store import cursors

_NAMED = 8
_KEPT = 64


def was_read(
    site: Site,
    chain: Chain,
    ends: Mapping[str, Position],
    cut: Mapping[str, bytes],
    tell: Callable[[Finding], None],
) -> None:
    """Tell of lines that were read here and count no longer, if there are any.

    Readers that had come behind a cut stand before it from then on, so that what follows in its place is new to them.

    Args:
        ends: the accepted ends after the cut.
        cut: the bytes that were cut, per channel.
        tell: told before a place is taken back, so that a kill in between forgets nothing.
    """
    lines = {channel: [parse(raw) for raw in lines_of(data)] for channel, data in cut.items()}
    read: dict[str, set[str]] = {}
    back: dict[tuple[str, str], dict[str, Position]] = {}
    for agent in site.config.agents if lines else ():
        for reader in cursors.readers(site.places.cursors_dir, agent):
            place = cursors.load(site.places.cursors_dir, agent, reader)
            for channel, gone in lines.items():
                at, apart = place.positions.get(channel), place.beyond.get(channel, {})
                for line in gone:
                    if (at is not None and line.seq <= at.seq) or apart.get(line.seq) == line.head:
                        read.setdefault(line.id, set()).add(agent)
                if at is not None and at.seq > ends[channel].seq:
                    back.setdefault((agent, reader), {})[channel] = ends[channel]
    if read:
        tell(_told(chain, read))
    for (agent, reader), places in back.items():
        # Where this fails, the next reading tells that the place is lost, and shows everything again.
        with suppress(StoreError, Busy):
            cursors.save(site.places.cursors_dir, agent, reader, places, rewind=True)


def _told(chain: Chain, read: Mapping[str, set[str]]) -> Finding:
    ids = sorted(read, key=lambda one: (one.rpartition("/")[0], int(one.rpartition("/")[2])))
    shown = ", ".join(ids[:_NAMED]) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
    return Finding(
        "KEY_RETIRED",
        WIRE,
        f"{len(ids)} message(s) that were read here count no longer, since their key was revoked before them: {shown}",
        {
            "count": len(ids),
            "read": ids[:_KEPT],
            "agents": sorted({agent for agents in read.values() for agent in agents}),
            "trust": chain.newest.reference,
        },
        subject=f"read-{chain.newest.version}",
        next_step="look at what was done because of them: `wire log` shows them, marked as revoked",
    )
