"""How far a reading can be trusted: when this machine last looked, whether anybody looks, and what is wrong.

Every surface that shows messages carries this beside them, because "nothing new", "could not look" and "lost my place"
are different answers.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wire.store.files import is_locked
from wire.store.progress import ALIVE_SECONDS, Progress
from wire.verbs.here import Here
from wire.verbs.render import age as age_text
from wire.verbs.render import one_line

if TYPE_CHECKING:
    from wire.store.incidents import Incident


class Health(NamedTuple):
    """What a reader has to know beside the messages.

    Attributes:
        age: seconds since the last successful fetch, None for never.
        looked: whether that is recent enough to say "nothing new".
        concerning: open incidents about what was asked.
        lost: channels in which the reader's place was lost, with the reason; they are read from the beginning again.
        damaged: clone files that do not hold the accepted bytes; another copy was read.
        reason: why new messages may be missing: `never-synced`, `no-daemon`, `stale`, or the reason of the last look's
            failure; empty when all is well.
        daemon: whether a daemon is alive, so that messages come by themselves.
    """

    age: float | None
    looked: bool
    concerning: "tuple[Incident, ...]" = ()
    lost: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    reason: str = ""
    daemon: bool = True

    @property
    def degraded(self) -> bool:
        """Whether messages may be missing, or come by nobody."""
        return bool(self.reason or self.lost)

    def sentence(self) -> str:
        """Return for people how old the last look is, and what keeps new messages away."""
        fetched = "nothing was fetched yet" if self.age is None else f"last successful fetch {age_text(self.age)} ago"
        return f"{fetched}; {_WORDS.get(self.reason) or failed_look(self.reason)}" if self.reason else fetched


PERSISTS_SECONDS = 60.0
"""A trouble that is over sooner is not worth a line; `wire status` has it."""
_SAID_MOST = 400
"""Characters of git's own words that are repeated."""
_WORDS = {
    "never-synced": "run `wire sync`, or start the daemon with `wire daemon run`",
    "no-daemon": "no daemon is running here, so that nothing comes by itself: `wire sync` looks once",
    "stale": "the daemon did not look since; see `wire status`",
}
_FAILURES = {
    "git-auth": "the remote did not let this machine in",
    "git-host-key": "the remote's ssh host key is not the known one",
    "git-network": "the remote did not answer",
    "git-timeout": "the remote did not answer in time",
    "git-not-found": "there is no repository at the remote's address",
    "git-no-ref": "the remote has no such branch",
    "git-rejected": "the remote refused",
    "git-race": "others pushed all the while",
    "git-rate-limit": "the remote asks for fewer looks",
    "git-too-large": "what the remote sent is too large",
    "git-malformed": "the remote holds objects that git refuses",
    "git-disk-full": "the disk is full",
    "git-corrupt": "git's files in the clone are damaged",
    "git-locked": "another git process holds a lock in the clone",
    "git-clone": "the clone cannot be used",
    "git-git-missing": "there is no git that can be used",
}


def failed_look(reason: str) -> str:
    """Return for people what the last look failed of; `wire status` has git's own words."""
    return f"the last look failed ({_FAILURES.get(reason, reason)}): see `wire status`"


def health(here: Here, channels: Sequence[str], lost: Sequence[str] = (), damaged: Sequence[str] = ()) -> Health:
    """Return how far a reading of these channels can be trusted."""
    now = time.time()
    progress = Progress.load(here.places)
    age = progress.fetch_age(now)
    looked = progress.looked(now)
    alive = _alive(here, progress, now)
    if age is None:
        reason = "never-synced"
    elif progress.failure:
        reason = progress.failure
    elif not alive:
        reason = "no-daemon"
    else:
        reason = "" if looked else "stale"
    return Health(age, looked, concerning(here, channels), tuple(lost), tuple(dict.fromkeys(damaged)), reason, alive)


def outward(here: Here) -> str:
    """Return for people how a message that is only on this machine goes on: by itself, or what keeps it here."""
    progress = Progress.load(here.places)
    alive = _alive(here, progress, time.time())
    if progress.failure:
        again = "it is tried again by itself" if alive else "no daemon is running here: `wire sync` tries again"
        return f"the last try failed: {one_line(progress.failure_text or progress.failure, _SAID_MOST)}; {again}"
    return "it goes out by itself" if alive else "no daemon is running here: `wire sync` sends it"


def _alive(here: Here, progress: Progress, now: float) -> bool:
    young = progress.beat is not None and now - progress.beat <= ALIVE_SECONDS
    return young and is_locked(here.places.lock("daemon"))


class Trouble:
    """What keeps messages away, as far as it was told."""

    def __init__(self, told: str, clock: Callable[[], float]) -> None:
        self._told = self._seen = told
        self._clock = clock
        self._since = clock()

    def persists(self, reason: str) -> bool:
        """Return whether this reason is another one than was told, and has been there for a while."""
        if reason != self._seen:
            self._seen, self._since = reason, self._clock()
        return reason != self._told and self._clock() - self._since >= PERSISTS_SECONDS

    def tell(self, seen: Health) -> str:
        """Return what to say of it, and take it as told."""
        self._told = seen.reason
        if seen.reason:
            return f"new messages may be missing: {seen.sentence()}"
        return f"messages come again: {seen.sentence()}"


def concerning(here: Here, channels: Sequence[str]) -> "tuple[Incident, ...]":
    """Return the open incidents about bytes that do not hold in these channels or in the whole wire, oldest first."""
    directory = here.places.incidents_dir
    try:
        if not any(name.endswith(".json") for name in os.listdir(directory)):
            return ()
    except FileNotFoundError:
        return ()
    except OSError:
        pass  # whoever reads the records says what is wrong
    from wire.store import incidents  # where there are none, that is not worth its import

    return tuple(incidents.concerning(directory, channels))
