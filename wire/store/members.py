"""For whom a line is: the agents behind a recipient, at the trust version that the line names.

    Members(places, pin).of("review", 3)        ("mac", "spark")

The pin answers for its own trust version; only for another one is the trust read.
"""

from wire.keys.trust import Chain
from wire.protocol.names import EVERYONE
from wire.store import trustfiles
from wire.store.paths import WirePlaces
from wire.store.pin import Pin


class Members:
    """Who belongs to what, by one pin (PROTOCOL.md, section "Recipients")."""

    def __init__(self, places: WirePlaces, pin: Pin) -> None:
        self._folder = places.trust_dir
        self._pin = pin
        self._chain: Chain | None = None
        self._known: dict[tuple[str, int], tuple[str, ...]] = {}

    def of(self, recipient: str, version: int) -> tuple[str, ...]:
        """Return who a line is for, sorted, its author among them where the group or `all` includes it.

        A name that nobody has yet stands for whoever will have it.

        Raises:
            TrustError: the trust does not hold.
        """
        names = self._pin.names
        if version == self._pin.trust_version:
            if recipient == EVERYONE:
                return tuple(sorted(names.agents))
            if recipient in names.groups:
                return tuple(sorted(names.groups[recipient]))
        if recipient in names.agents:
            return (recipient,)
        found = self._known.get((recipient, version))
        if found is None:
            found = self._known[recipient, version] = self._look_up(recipient, version)
        return found

    def _look_up(self, recipient: str, version: int) -> tuple[str, ...]:
        if self._chain is None:
            self._chain = trustfiles.read(self._folder)
        newest = self._chain.newest
        if recipient != EVERYONE and recipient not in newest.groups:
            return (recipient,)
        return tuple(sorted(self._chain.members(recipient, version)))
