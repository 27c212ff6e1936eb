"""What one worker sees: the files of its own agents, and the remote's tip where the remote is on this machine.

Looks are compared with looks, so that it does not matter when something happened; the watcher's events only say when a
look is worth while. One thread uses it.
"""

import os
import time
from collections.abc import Mapping

from wire.daemon import outbox, transport
from wire.daemon.outbox import Outbox
from wire.daemon.transport import Transport
from wire.daemon.watch import INOTIFY, Watcher
from wire.store.config import WireConfig
from wire.store.paths import WirePlaces

RESCAN_SECONDS = 15.0
"""How often the folders are looked at by the clock while events come."""
POLL_SECONDS = 1.0
"""How often they are looked at where no event comes."""


class Eyes:
    """The looks of one worker.

    Args:
        more: further folders to be watched, each with the names that matter there.

    Attributes:
        watcher: whose events say when to look.
        seen: the last look at our own files.
        tip: the remote's tip as of the last round, as far as that is known.
        rescan: when our own files were last looked at, seconds of the epoch.
    """

    def __init__(
        self,
        places: WirePlaces,
        config: WireConfig,
        remote: Transport,
        watcher: Watcher,
        more: Mapping[str, frozenset[str] | None] | None = None,
    ) -> None:
        self.watcher = watcher
        self.seen = Outbox({}, {})
        self.tip: str | None = None
        self.rescan: float | None = None
        self._places = places
        self._config = config
        self._remote = remote
        self._glanced: str | None = None
        self._more = more or {}
        self._presence: Mapping[str, bytes] = {}

    @property
    def interval(self) -> float:
        """Seconds until the next look by the clock: soon where no event can come, as of a remote that is not there."""
        gone = self._remote.path is not None and self.glance() is None
        return POLL_SECONDS if gone or self.watcher.mode != INOTIFY else RESCAN_SECONDS

    def arm(self) -> list[str]:
        """Watch what is to be watched now, and return the folders whose watch had to be mended."""
        wanted = outbox.folders(self._places, self._config.agents)
        # The stamp is written there: an event of it proves that events come.
        root = self._places.root
        wanted[root] = (wanted[root] or frozenset()) | {os.path.basename(self._places.progress_file)}
        further = dict(self._more)
        if self._remote.path is not None:
            further |= transport.folders(self._remote.path, self._config.branch)
            further[transport.presence_folder(self._remote.path)] = None
        for folder, names in further.items():
            held = wanted.get(folder, frozenset())
            wanted[folder] = None if held is None or names is None else held | names
        return self.watcher.arm(wanted)

    def look(self) -> bool:
        """Look at our own files; return whether they changed since the last look."""
        before, self.seen = self.seen, Outbox.look(self._places, self._config.agents)
        self.rescan = time.time()
        return before != self.seen

    def glance(self) -> str | None:
        """Return the tip of a remote on this machine, None where there is no telling."""
        return transport.glance(self._remote.path, self._config.branch) if self._remote.path is not None else None

    def remote_moved(self) -> bool:
        """Return whether a remote on this machine shows another tip than the last round saw.

        A glance that never agrees with what git finds would else be news for ever.
        """
        tip = self.glance()
        return tip is not None and tip not in (self.tip, self._glanced)

    def presence_moved(self) -> bool:
        """Return whether a remote on this machine shows other presences than at the last call or the last round."""
        before, self._presence = self._presence, self._presences()
        return before != self._presence

    def _presences(self) -> Mapping[str, bytes]:
        # Our own are no news.
        path = self._remote.path
        return transport.presences(path, self._config.agents) if path is not None else {}

    def begin(self) -> str | None:
        """Take the glance that belongs to a round which begins, and return it."""
        self._glanced = self.glance()
        self._presence = self._presences()
        return self._glanced

    def noted(self, tip: str | None, *, failed: bool) -> None:
        """Note what a round found.

        After one that failed what counts is how the remote looks now: one that comes back as it was is news, and one
        that is there and cannot be used is none.
        """
        if failed:
            self._glanced = self.glance()
        self.tip = tip or self._glanced
