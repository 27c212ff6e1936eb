"""What `wire send` should know of its recipients, in one small file that it can read at once.

    <seconds of the epoch>      before this moment there is nothing to warn of, unless something urgent is sent
    {"agents":…,"channels":…}

Whoever takes in what was accepted writes it (`accounts.update`); a sender reads the first line, and the rest only when
the moment has come. A file that is missing or damaged says nothing, which costs a warning and nothing else.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from wire.protocol.chain import Position
from wire.store.files import atomic_write, read_bytes
from wire.store.paths import WirePlaces
from wire.store.pin import position

STALE_INTERVALS = 3
UNREAD_SECONDS = 3600.0
"""The age from which on an unread message is worth a warning."""
NEVER = 9_999_999_999.0


class Promise(NamedTuple):
    """When an agent was last heard of by our clock, and after how many seconds it promised to be heard of again."""

    heard: float
    interval: float

    @property
    def stale_at(self) -> float:
        """From when on the agent is stale, if we look and hear nothing of it."""
        return self.heard + STALE_INTERVALS * self.interval


class Unread(NamedTuple):
    """How many of our messages an agent is known not to have read, and since when the oldest lies there (seconds)."""

    messages: int
    oldest: float


class Channel(NamedTuple):
    """What is known of a channel of ours.

    Attributes:
        end: up to where this speaks of it.
        urgent: how many urgent messages in it nobody answered.
        unread: by recipient.
    """

    end: Position
    urgent: int
    unread: Mapping[str, Unread]


class Outlook(NamedTuple):
    """What is known of the recipients.

    Attributes:
        agents: those that were heard of.
        silent: approved agents of which this machine has neither a presence nor a line.
    """

    agents: Mapping[str, Promise]
    channels: Mapping[str, Channel]
    silent: tuple[str, ...] = ()

    @property
    def due(self) -> float:
        """The first moment at which there may be something to warn of."""
        moments = [promise.stale_at for promise in self.agents.values()]
        for channel in self.channels.values():
            moments += [one.oldest + UNREAD_SECONDS for one in channel.unread.values()]
        return 0.0 if self.silent else min(moments, default=NEVER)


def load(places: WirePlaces) -> Outlook | None:
    """Return what the file says, None when there is none that can be read."""
    data = read_bytes(places.outlook_file)
    try:
        found = json.loads((data or b"").partition(b"\n")[2])
        return Outlook(
            {name: Promise(float(heard), float(interval)) for name, (heard, interval) in found["agents"].items()},
            {name: _channel(name, said) for name, said in found["channels"].items()},
            tuple(map(str, found["silent"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def save(places: WirePlaces, outlook: Outlook) -> None:
    """Write the file if it says something else; not durably, since it is made again.

    Raises:
        DiskFull, StoreError: the old one is still there.
    """
    said = {
        "agents": outlook.agents,
        "channels": {name: [one.end, one.urgent, one.unread] for name, one in outlook.channels.items()},
        "silent": outlook.silent,
    }
    data = f"{outlook.due:.3f}\n{json.dumps(said, separators=(',', ':'))}\n".encode("ascii")
    path = places.outlook_file
    if read_bytes(path) != data:
        atomic_write(path, data, durable=False)


def _channel(name: str, said: Any) -> Channel:
    end, urgent, unread = said
    return Channel(
        position(end, name), int(urgent), {who: Unread(int(count), float(at)) for who, (count, at) in unread.items()}
    )
