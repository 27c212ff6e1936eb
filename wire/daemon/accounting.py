"""After a round: taking what was accepted and heard into the receipts, for senders to see how far messages got.

    trouble = Accounting(site).bring_up()

Nothing that is accepted, shown or published depends on it. Trouble is returned and told, and what could not be taken
in is taken in later; every command that shows receipts does the same by itself.
"""

from wire.daemon.site import Site
from wire.errors import WireError
from wire.protocol.chain import SEGMENT_MAX
from wire.store import accounts, presences
from wire.store.reading import CloneSource, Source


class Accounting:
    """The receipts of one wire, brought up to date when something changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._before: object = None

    def bring_up(self) -> str:
        """Take in what is new since the last time; return what went wrong, or an empty text."""
        site = self._site
        news = presences.news(self._site.places)
        if news == self._before:
            return ""
        try:
            accounts.update(site.places, site.pin(), site.config.agents, self._sources)
        except WireError as error:
            return error.message
        self._before = news
        return ""

    def _sources(self, channel: str) -> list[Source]:
        return [CloneSource(self._site.places.coordination, channel), _Kept(self._site, channel)]


class _Kept:
    """The accepted bytes of a channel as git holds them, for when the clone's files do not."""

    def __init__(self, site: Site, channel: str) -> None:
        self._site = site
        self._channel = channel

    def read(self, segment: int) -> bytes | None:
        return self._site.accepted(self._site.pin()).segment(self._channel, segment)[:SEGMENT_MAX] or None

    def name(self, segment: int) -> str:
        return f"refs/wire/accepted:{self._channel}/{segment:06d}.jsonl"
