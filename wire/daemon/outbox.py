"""What of this machine's own agents may wait to be sent, at the price of a `stat` per file.

    before = Outbox.look(places, agents)
    …                                           a cycle
    after = Outbox.look(places, agents)
    after != before and after.waits(places, pin.accepted)

The daemon compares two looks, so that nothing depends on an event: what was written before, during or after a cycle
shows in size, inode or time. Looked at are the journal and the clone's files of the agents that live here.
"""

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from wire.protocol.chain import Position
from wire.protocol.names import parse_segment_name, segment_name
from wire.store.paths import WirePlaces

Signature = tuple[int, int, int]
"""Size, inode, and time of the last change in nanoseconds."""


class Outbox(NamedTuple):
    """One look at the files of this machine's own channels.

    Attributes:
        journal: the signature of each segment in the journal, by `<from>/<to>/<segment>`.
        clone: the same for the clone's `_coordination`.
    """

    journal: Mapping[str, Signature]
    clone: Mapping[str, Signature]

    @classmethod
    def look(cls, places: WirePlaces, agents: Iterable[str]) -> Self:
        """Take a look; what cannot be read counts as not there."""
        names = list(agents)
        return cls(_signatures(places.journal_dir, names), _signatures(places.coordination, names))

    def waits(self, accepted: Mapping[str, Position]) -> bool:
        """Return whether something is there that the next cycle would take.

        That is a journal that goes on behind its accepted end, or a clone's file that is not as long as the journal's.
        """
        for name, (size, _, _) in self.journal.items():
            channel, _, segment = name.rpartition("/")
            end = accepted.get(channel)
            number = parse_segment_name(segment) or 0
            if size and (end is None or (number, size) > (end.segment, end.size)):
                return True
        return any(self.clone.get(name, (0,))[0] != self.journal.get(name, (0,))[0] for name in self._last())

    def lines_since(self, before: "Outbox", places: WirePlaces) -> int:
        """Return how many lines the journal gained since another look."""
        count = 0
        for name, (size, _, _) in self.journal.items():
            start = before.journal.get(name, (0, 0, 0))[0]
            if size > start:
                count += _newlines(os.path.join(places.journal_dir, name), start, size)
        return count

    def written(self) -> float:
        """Return when the journal last changed, seconds of the epoch; 0 for an empty one."""
        return max((time for _, _, time in self.journal.values()), default=0) / 1e9

    def _last(self) -> set[str]:
        """Return the newest segment of each channel, and what lies beyond it in the clone."""
        newest: dict[str, int] = {}
        for name in self.journal:
            channel, _, segment = name.rpartition("/")
            newest[channel] = max(newest.get(channel, 0), parse_segment_name(segment) or 0)
        last = {f"{channel}/{segment_name(number)}" for channel, number in newest.items()}
        for name in self.clone:
            channel, _, segment = name.rpartition("/")
            if (parse_segment_name(segment) or 0) > newest.get(channel, 0):
                last.add(name)
        return last


def folders(places: WirePlaces, agents: Iterable[str]) -> dict[str, frozenset[str] | None]:
    """Return the folders in which something of these agents can change, and those above them in which they appear.

    The names are those that matter in a folder, None for all.
    """
    names = frozenset(agents)
    wanted: dict[str, frozenset[str] | None] = {
        places.root: frozenset({os.path.basename(places.journal_dir)}),
        places.clone: frozenset({os.path.basename(places.coordination)}),
    }
    for top in (places.journal_dir, places.coordination):
        wanted[top] = names
        for agent in names:
            folder = os.path.join(top, agent)
            wanted[folder] = None
            wanted |= dict.fromkeys((os.path.join(folder, name) for name in _folders(folder)), None)
    return wanted


def _signatures(top: str, agents: Iterable[str]) -> dict[str, Signature]:
    found = {}
    for agent in agents:
        for recipient in _folders(os.path.join(top, agent)):
            folder = os.path.join(top, agent, recipient)
            for entry in _entries(folder):
                if parse_segment_name(entry.name) is None:
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                found[f"{agent}/{recipient}/{entry.name}"] = (status.st_size, status.st_ino, status.st_mtime_ns)
    return found


def _folders(folder: str) -> list[str]:
    return [entry.name for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _newlines(path: str, start: int, stop: int) -> int:
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(stop - start).count(b"\n")
    except OSError:
        return 0
