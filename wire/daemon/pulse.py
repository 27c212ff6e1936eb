"""When a change of what our presences say is worth a push of its own.

    pulse.look(now)                 something may have changed: compares files, cheaply
    pulse.due                       the monotonic second of the next beat, None for none
    pulse.beaten(now)               it was made; pulse.failed(now): it was not

Reading never touches git: who reads moves a cursor, and who declares a state writes a file. Both show here. The first
change waits a second for others, or for lines that it can ride with; while changes go on they wait longer each time, so
that a stream of them costs few requests.

What it does not do: wait, or push. One thread uses it.
"""

import os
from collections import deque
from collections.abc import Iterable, Mapping

from wire.daemon.beating import differs, says
from wire.errors import WireError
from wire.store import pin as pins
from wire.store import presences
from wire.store.cursors import DEFAULT_READER
from wire.store.paths import WirePlaces

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 30.0
REMEMBERED_SECONDS = 60.0
"""How long a beat makes the next one wait longer."""


class Pulse:
    """The beats of one wire's agents, beside those that the tier asks for.

    Args:
        agents: the agents that live here; those that are not approved yet have no presence.
    """

    def __init__(self, places: WirePlaces, agents: Iterable[str]) -> None:
        self.due: float | None = None
        self._places = places
        self._agents = tuple(agents)
        self._seen: object = None
        self._recent: deque[float] = deque()

    def folders(self) -> Mapping[str, frozenset[str] | None]:
        """Return the folders in which a change shows, each with the names that matter there."""
        return {
            self._places.root: frozenset({os.path.basename(self._places.cursors_dir), presences.FOLDER}),
            self._places.cursors_dir: frozenset(f"{agent}.{DEFAULT_READER}.json" for agent in self._agents),
            os.path.join(self._places.root, presences.FOLDER): frozenset(f"{agent}.says" for agent in self._agents),
        }

    def look(self, now: float) -> None:
        """See whether our presences say what they should (`now` in monotonic seconds)."""
        signature = self._signature()
        if signature == self._seen:
            return
        self._seen = signature
        if not self._behind():
            self.due = None
        elif self.due is None:
            self.due = now + self._gap(now)

    def beaten(self, now: float) -> None:
        """Note a beat that was made."""
        self._recent.append(now)
        self.due = None
        self._seen = None  # what changed meanwhile is found at the next look

    def rest(self) -> None:
        """Note that there is nothing to publish, whatever is to be said: nothing to do until something changes."""
        self.due = None

    def failed(self, now: float) -> None:
        """Note one that could not be made, so that it is tried again."""
        self._recent.append(now)
        self.due = now + self._gap(now)

    def _gap(self, now: float) -> float:
        while self._recent and now - self._recent[0] > REMEMBERED_SECONDS:
            self._recent.popleft()
        return float(min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(len(self._recent), 8)))

    def _behind(self) -> bool:
        try:
            pin = pins.load(self._places.pin_file)
            return any(
                differs(
                    presences.load_one(self._places, agent), says(self._places, pin, agent, self._agents), pin.instance
                )
                for agent in self._agents
                if agent in pin.names.agents
            )
        except WireError:
            return False  # the rounds tell what is wrong with these files

    def _signature(self) -> object:
        folder = os.path.join(self._places.root, presences.FOLDER)
        paths = [self._places.pin_file]
        for agent in self._agents:
            paths.append(os.path.join(self._places.cursors_dir, f"{agent}.{DEFAULT_READER}.json"))
            paths += (os.path.join(folder, agent), os.path.join(folder, f"{agent}.says"))
        return [_stat(path) for path in paths]


def _stat(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
