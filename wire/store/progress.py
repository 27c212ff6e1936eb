"""When this machine last looked, and what came of it: the stamp behind every "age of the last success".

One small file, rewritten at each cycle by whoever runs it, the daemon or `wire sync`. It is not proof that a daemon is
alive (that is the lock), and it is not security state: a damaged one counts as "never", which is the safe reading.
"""

import json
from typing import Any, NamedTuple

from wire.store.files import atomic_write, read_bytes
from wire.store.paths import WirePlaces

SLOWEST_SECONDS = 1200.0
MISSED_INTERVALS = 3
LEAST_SECONDS = 15.0
"""No promise is so tight that one slow look breaks it."""
BEAT_SECONDS = 15.0
ALIVE_SECONDS = 45.0
"""A daemon whose last beat is older than this is stopped or stuck, whatever locks it holds."""


class Progress(NamedTuple):
    """Times are seconds since the epoch; None means never.

    Attributes:
        pid: the daemon that wrote `beat`.
        beat: when it last showed life; written at least every `BEAT_SECONDS`, by a daemon alone.
        fetched: the last successful fetch.
        pushed: the last successful push, or the last time that there was nothing to push.
        next_look: when it means to look again; None without a daemon.
        interval: the promised interval of its tier.
        tier: `T0` to `T3`, or `hot`; `-` without a daemon.
        watching: `inotify`, `polling`, or `-`.
        event: the last event of the watcher.
        rescan: the last scan of the folders.
        failure: the reason of the last failure, empty when the last cycle went well.
        failure_text: the same for people, with git's own words.
        failing_since: since when.
        waiting: lines of agents that are not approved yet.
        locked: names, with blanks between, of agents whose key has a passphrase that was not at hand.
    """

    pid: int = 0
    beat: float | None = None
    fetched: float | None = None
    pushed: float | None = None
    next_look: float | None = None
    interval: float = SLOWEST_SECONDS
    tier: str = "-"
    watching: str = "-"
    event: float | None = None
    rescan: float | None = None
    failure: str = ""
    failure_text: str = ""
    failing_since: float | None = None
    waiting: int = 0
    locked: str = ""

    @classmethod
    def load(cls, places: WirePlaces) -> "Progress":
        """Return the stamp, or one that says "never"."""
        data = read_bytes(places.progress_file)
        try:
            found = json.loads(data) if data else {}
        except ValueError:
            found = {}
        if not isinstance(found, dict):
            return cls()
        kept: dict[str, Any] = {}
        for name, default in cls._field_defaults.items():
            value = found.get(name)
            if isinstance(value, str if isinstance(default, str) else (int, float)) and not isinstance(value, bool):
                kept[name] = value
        return cls(**kept)

    def save(self, places: WirePlaces) -> None:
        """Write the stamp; not durably, since an older one only makes an age look greater."""
        atomic_write(places.progress_file, json.dumps(self._asdict()).encode("ascii") + b"\n", durable=False)

    def fetch_age(self, now: float) -> float | None:
        """Return the seconds since the last successful fetch, None for never."""
        return None if self.fetched is None else max(0.0, now - self.fetched)

    @property
    def blind(self) -> bool:
        """Whether each look failed since the last successful fetch; a push that failed behind a fetch is no such."""
        since = self.failing_since
        return bool(self.failure) and (self.fetched is None or since is None or self.fetched < since)

    def recent(self, now: float) -> bool:
        """Return whether the last successful fetch is as young as was promised."""
        age = self.fetch_age(now)
        return age is not None and age <= max(MISSED_INTERVALS * self.interval, LEAST_SECONDS)

    def looked(self, now: float) -> bool:
        """Return whether there is reason to say that nothing is new: a recent fetch, and no look that failed since."""
        return self.recent(now) and not self.blind
