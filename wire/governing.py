"""The Python API for what several people decide: proposals of trust versions, and the roots that sign them.

    from wire.governing import Trust
    trust = Trust.open(as_="mac")
    for one in trust.pending().proposals:
        print(one.id, [change.text for change in one.changes], one.missing)
    trust.sign(one.id, confirm=lambda shown: True)

Approvals, groups and revocations are methods of `wire.Wire`; they propose where one root is not enough. All methods
raise `WireError` and nothing else.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from wire.store.paths import Settings
from wire.verbs import forking, policing, proposing, rooting
from wire.verbs.forking import Followed, Fork
from wire.verbs.here import Here
from wire.verbs.proposing import Decided, Draft, Listed, Pending
from wire.verbs.rooting import RootKey


class Trust:
    """The trust of a configured wire, as those see it who hold its root keys."""

    def __init__(self, here: Here) -> None:
        self.here = here

    @classmethod
    def open(
        cls, *, as_: str | None = None, wire: str | None = None, environ: Mapping[str, str] | None = None
    ) -> "Trust":
        """Return the trust of the wire that is meant, as `wire.Wire.open` finds it."""
        settings = Settings.from_environ(os.environ if environ is None else environ, os.getcwd())
        return cls(Here.find(settings.choosing(wire=wire, agent=as_)))

    def pending(self) -> Listed:
        """Return what waits for signatures."""
        return proposing.pending(self.here)

    def sign(self, proposal: str | None = None, *, confirm: Callable[[Pending], bool]) -> Decided:
        """Sign a proposal with this machine's root key; `confirm` is shown what it changes."""
        return proposing.sign(self.here, proposal, confirm=confirm)

    def propose(
        self,
        document: bytes,
        *,
        note: str = "",
        ttl: float = 14 * 86_400.0,
        beside: bool = False,
        confirm: Callable[[Draft], bool] | None = None,
    ) -> Decided:
        """Propose an edited copy of the trust document for `ttl` seconds; in force at once where one root is enough."""
        sure = confirm or (lambda _: True)
        return proposing.propose(self.here, document, note=note, ttl=ttl, beside=beside, confirm=sure)

    def propose_again(self, *, ttl: float = 14 * 86_400.0) -> Decided:
        """Offer once more what this machine's root signed for the next version."""
        return proposing.again(self.here, ttl=ttl)

    def new_root_key(self, name: str) -> RootKey:
        """Make a root key on this machine, unless it has one, and return the line that whoever adds it needs."""
        return rooting.new_key(self.here, name)

    def add_root(self, name: str, line: str, *, confirm: Callable[[Draft], bool] | None = None) -> Decided:
        """Add the root key of a line, or give one that is there the name that its holder chose."""
        return rooting.add(self.here, name, line, confirm=confirm or (lambda _: True))

    def remove_root(
        self, root: str, *, beside: bool = False, confirm: Callable[[Draft], bool] | None = None
    ) -> Decided:
        """Take a root off, known by its name, its fingerprint or its key's id; `beside`: whatever else is proposed."""
        return rooting.remove(self.here, root, beside=beside, confirm=confirm or (lambda _: True))

    def set_threshold(self, count: int, *, confirm: Callable[[Draft], bool] | None = None) -> Decided:
        """Set how many roots must sign a change of the trust."""
        return rooting.threshold(self.here, count, confirm=confirm or (lambda _: True))

    def policy(self) -> Mapping[str, Any]:
        """Return what senders are asked for: `encrypt`, `required` or `optional`."""
        return policing.current(self.here)

    def set_encrypt(self, value: str, *, confirm: Callable[[Draft], bool] | None = None) -> Decided:
        """Say whether senders are to close their letters: `required` or `optional`."""
        return policing.set_encrypt(self.here, value, confirm=confirm or (lambda _: True))

    def forks(self) -> list[Fork]:
        """Return the trust documents that claim one number, two by two, and what each changes; asks nobody."""
        return forking.forks(self.here)

    def follow(self, checkpoint: str, *, confirm: Callable[[Fork], bool] | None = None) -> Followed:
        """Follow one of two documents with one number, by its checkpoint, and let the remote show it."""
        return forking.follow(self.here, checkpoint, confirm=confirm or (lambda _: True))
