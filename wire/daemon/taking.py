"""What a judged tip does to the journals of this machine: lines that came back are taken over, cut ones put aside."""

from collections.abc import Mapping

from wire.daemon.collect import cut_back, take_over
from wire.daemon.findings import Finding
from wire.daemon.hearing import Tell
from wire.daemon.judged import Judged
from wire.daemon.site import Site
from wire.errors import StoreError, UsageError
from wire.store import cutlines


def take(site: Site, judged: Judged, published: Mapping[str, int], tell: Tell) -> bool:
    """Bring journals and the record of cut lines up to a judged tip; return whether lines are to be sent again.

    Args:
        published: of this machine's channels, the number of the last line that the verified commit carried.
        tell: told of each finding before what it tells of is done.
    """
    moved = False
    for channel, keep in judged.adopted.items():
        signer, new = site.signer(channel.partition("/")[0], judged.chain.wire), judged.new[channel]
        try:
            moved |= take_over(site, judged.chain, channel, keep, new, signer, tell)
        except (StoreError, UsageError) as error:
            # Stops this channel's journal and nothing else: what was accepted is what it is rebuilt from.
            tell(Finding("CORRUPT", channel, f"the journal of {channel} cannot be used: {error}"))
            cutlines.keep(site.places, channel, keep.seq, judged.displaced.get(channel, b""))
    for channel, data in judged.cut.items():
        cutlines.keep(site.places, channel, judged.ends[channel].seq, data)
        end, had = judged.ends[channel], published.get(channel, 0)
        if end.seq < had and channel.partition("/")[0] in site.local(judged.chain):
            cut_back(site, judged.chain, channel, end, had, tell)
    return moved
