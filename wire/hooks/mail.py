"""What a session has not been shown yet, and how far it has come.

    mail = Mail(here, session.reader)
    digest = mail.digest(mail.items, 9000)
    … print digest.text, and see it taken …
    mail.save(digest.shown)

A session reads from a place of its own, which begins where the agent's default one stands. Behind a text that was
handed over both are moved, so that the agent's peers learn what was read; over a message that was not shown neither
ever moves.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

from wire.store import cursors
from wire.verbs import owed
from wire.verbs.health import Health
from wire.verbs.here import Here
from wire.verbs.inbox import Inbox, unread
from wire.verbs.look import Item
from wire.verbs.owed import Overdue, Owed
from wire.verbs.render import Digest, digest

MOST = 200
"""Messages that one hook looks at; more than fit into any text."""
_CALM = frozenset({"incident", "ack", "receipt"})
"""Types that nobody is woken for: they are told with the next that is."""


class Mail:
    """The messages of one agent, as one session sees them."""

    def __init__(self, here: Here, reader: str) -> None:
        self.here = here
        self.agent = here.agent()
        self._reader = reader
        self._default = here.reader()

    def begin(self) -> None:
        """Let a new session begin where the agent is."""
        directory = self.here.places.cursors_dir
        place = cursors.load(directory, self.agent, self._default)
        cursors.save(directory, self.agent, self._reader, place.positions, beyond=place.beyond)

    @cached_property
    def _box(self) -> Inbox:
        return unread(self.here, reader=self._reader, limit=MOST)

    @property
    def health(self) -> Health:
        """When this machine last looked, and what is known to be wrong."""
        return self._box.health

    @property
    def items(self) -> tuple[Item, ...]:
        """The oldest messages that the session has not seen."""
        return self._box.items

    @property
    def total(self) -> int:
        """How many messages the session has not seen."""
        return self._box.total

    def digest(self, items: Sequence[Item], limit: int, *, total: int | None = None) -> Digest:
        """Return the text for messages; see `wire.verbs.render.digest`."""
        return digest(items, limit, agent=self.agent, total=total)

    def save(self, shown: Iterable[Item]) -> None:
        """Take messages as read by the session and the agent, after they were handed over."""
        passed = tuple(shown)
        self._box.save(passed)
        # Whatever stands before the session's place was shown to it, and so to the agent.
        self._box.walked._replace(reader=self._default).save(passed)

    def owed(self) -> list[Owed]:
        """Return what this agent has to answer before it rests: urgent, or to be acknowledged, and still of use."""
        return [one for one in owed.owed(self.here) if not one.expired]

    def overdue(self) -> list[Overdue]:
        """Return what this agent sent and others did not answer or read in time."""
        return [one for one in owed.overdue(self.here) if one.line.sender == self.agent]


def wakes(item: Item) -> bool:
    """Return whether a message is worth waking an idle session."""
    return item.line.type not in _CALM and (item.members or {}).get("priority") != "low"
