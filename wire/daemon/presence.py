"""The presences of one cycle: those of others come with its fetches, our own go with its pushes.

    voices = Voices(site, promise, tell)
    voices.show_life(pin, signers)              where the host takes no presences: a line, seldom
    voices.fetch(pin, chain)                    the branch, and presences with it
    voices.listen(pin, chain, accepted, own)    judged and kept, before anything is sent
    voices.ready(…), voices.alone(…)            our own

See `hearing` and `beating`, which do it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from wire.daemon import beating, hearing
from wire.daemon.accepted import Accepted
from wire.daemon.beating import Beat, Promise
from wire.daemon.findings import WIRE, Finding
from wire.daemon.hearing import Tell
from wire.daemon.site import Site, able
from wire.errors import WireError
from wire.keys.trust import Chain
from wire.protocol.encoding import Signer
from wire.protocol.line import Line
from wire.protocol.presence import Presence
from wire.store.pin import Pin


class Voices:
    """The presences of one cycle.

    Args:
        promise: what our presences promise; None for a cycle that publishes none.
        tell: told of each finding at once.

    Attributes:
        heard: presences of others that held and were new, in the order in which they came.
    """

    def __init__(self, site: Site, promise: Promise | None, tell: Tell) -> None:
        self._site = site
        self._promise = promise
        self._tell = tell
        self.heard: list[Presence] = []
        self._fetched = False
        self._lines: list[tuple[str, bytes]] = []

    def show_life(self, pin: Pin, signers: Mapping[str, Signer]) -> int:
        """Store the lines that show life where the host takes no presences, and return how many.

        Trouble with them stops nothing.
        """
        if self._promise is None:
            return 0
        try:
            return beating.heartbeats(self._site, pin, able(signers), self._promise)
        except WireError as error:
            self._tell(Finding("CORRUPT", WIRE, f"a line that shows life could not be stored: {error}", {}, "alive"))
            return 0

    def fetch(self, pin: Pin, chain: Chain) -> None:
        """Fetch the branch into the quarantine ref, and presences; raises GitFailed as `hearing.fetch`."""
        self._fetched = hearing.fetch(self._site, pin, chain)

    def take(self, new: Iterable[Sequence[Line]]) -> int:
        """Take the presences that accepted lines carry, and return how many lines that were."""
        found = [one for lines in new for one in beating.in_lines(lines)]
        self._lines += found
        return len(found)

    def listen(self, pin: Pin, chain: Chain, accepted: Accepted, own: Collection[str]) -> None:
        """Judge what came since the last time."""
        if self._fetched:
            self.heard += hearing.listen(self._site, pin, chain, accepted, own, self._tell)
        if self._lines:
            self.heard += hearing.take(self._site, pin, chain, accepted, own, self._tell, self._lines)
        self._fetched, self._lines = False, []

    def ready(self, pin: Pin, chain: Chain, signers: Mapping[str, Signer], *, riding: bool) -> list[Beat]:
        """Return our presences that are due, see `beating.ready`."""
        if self._promise is None:
            return []
        return beating.ready(self._site, pin, chain, able(signers), self._promise, riding=riding)

    def alone(self, pin: Pin, chain: Chain, signers: Mapping[str, Signer]) -> int:
        """Publish the presences that are due by themselves, and return how many the remote took."""
        beats = self.ready(pin, chain, signers, riding=False)
        return beating.taken(self._site, beats, beating.push(self._site, pin, beats)) if beats else 0
