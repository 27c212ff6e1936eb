"""Lines that lost their place: accepted once, and behind the position of a key that was retired or revoked since.

They are kept as they were signed, for evidence, for who has read them, and for their author, who may send them again.

    keep(places, "mac/spark", 4, data)          the bytes behind line 4
    for line in read(places, "mac/spark"): …    everything that was ever cut there, each line once

What it does not do: say whether they count again. A later position may give a line its place back.
"""

import os
from collections.abc import Iterator

from wire.protocol.chain import lines_of
from wire.protocol.encoding import sha256_hex
from wire.protocol.line import Line, LineError, parse
from wire.protocol.names import valid_channel
from wire.store.files import atomic_write, private_folder, read_bytes
from wire.store.paths import WirePlaces

_BEGINS = "cut."


def keep(places: WirePlaces, channel: str, seq: int, data: bytes) -> None:
    """Keep what stood behind line `seq` of a channel; raises StoreError."""
    if not data:
        return
    private_folder(places.aside_dir)
    name = f"{_BEGINS}{channel.replace('/', '.')}.after-{seq}.{sha256_hex(data)[:12]}.jsonl"
    atomic_write(os.path.join(places.aside_dir, name), data)


def read(places: WirePlaces, channel: str) -> list[Line]:
    """Return all lines that were ever cut from a channel, by their numbers; raises StoreError."""
    found = {line.head: line for line in _read(places, channel)}
    return sorted(found.values(), key=lambda line: (line.seq, line.ts))


def channels(places: WirePlaces) -> set[str]:
    """Return the channels of which something was ever cut."""
    try:
        names = os.listdir(places.aside_dir)
    except OSError:
        return set()
    parts = (name.removeprefix(_BEGINS).split(".") for name in names if name.startswith(_BEGINS))
    return {f"{part[0]}/{part[1]}" for part in parts if len(part) > 2 and valid_channel(part[0], part[1])}


def _read(places: WirePlaces, channel: str) -> Iterator[Line]:
    begins = f"{_BEGINS}{channel.replace('/', '.')}.after-"
    try:
        names = sorted(name for name in os.listdir(places.aside_dir) if name.startswith(begins))
    except OSError:
        return
    for name in names:
        for raw in lines_of(read_bytes(os.path.join(places.aside_dir, name)) or b""):
            try:
                line = parse(raw)
            except LineError:
                continue
            if line.channel == channel:
                yield line
