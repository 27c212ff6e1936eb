"""What one machine remembers about the presences at the remote: what was judged, what was pushed, what went wrong."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from wire.store import presences
from wire.store.files import atomic_write, private_folder, read_bytes
from wire.store.paths import WirePlaces

HEARD = "refs/wire/heard/"
"""Where the remote's presences stand in the clone, by name."""
BEAT = "refs/wire/beat/"
"""Where our own newest presences stand in the clone, by name."""
FILE = "presence.json"
"""The one file of a presence's commit."""
HOLD_SECONDS = 900.0


@dataclass(slots=True)
class Ears:
    """What one process remembers about the remote's presences.

    Attributes:
        held_until: monotonic seconds until which only the `names` are asked for, since there was trouble.
        names: those whose presence was there.
    """

    held_until: float = 0.0
    names: tuple[str, ...] = ()

    def hold(self, now: float, names: Iterable[str]) -> None:
        """Ask for these names alone for a while; after trouble during that, for none."""
        self.names = () if now < self.held_until else tuple(names)
        self.held_until = now + HOLD_SECONDS


@dataclass(slots=True)
class Ledger:
    """What was judged, so that it is judged once.

    Attributes:
        judged: the commit that was found last, by agent.
        tried: the commit of each of our own presences that was offered to the remote last, by agent.
        pushed: the same for those that it took.
        floors: agents of this machine whose ref does not hold what this machine published, each with the counter that
            its next presence must be above.
        odd: agents of this machine whose own instance was once found ahead of us.
    """

    path: str
    judged: dict[str, str] = field(default_factory=dict)
    tried: dict[str, str] = field(default_factory=dict)
    pushed: dict[str, str] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, places: WirePlaces) -> "Ledger":
        """Read it; a damaged one counts as empty, which only means that everything is judged again."""
        path = os.path.join(places.root, presences.FOLDER, "ledger.json")
        data = read_bytes(path)
        try:
            found = json.loads(data) if data else {}
            judged, tried, pushed = (
                {str(k): str(v) for k, v in found[name].items()} for name in ("judged", "tried", "pushed")
            )
            floors = {str(k): int(v) for k, v in found["floors"].items()}
            return cls(path, judged, tried, pushed, floors, [str(name) for name in found["odd"]])
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls(path)

    def save(self) -> None:
        """Write it; not durably."""
        private_folder(os.path.dirname(self.path))
        data = {name: getattr(self, name) for name in ("judged", "tried", "pushed", "floors", "odd")}
        atomic_write(self.path, json.dumps(data).encode("ascii") + b"\n", durable=False)
