"""Which wire and which agent are meant, and what is pinned: the beginning of every verb."""

from typing import NamedTuple

from wire.store import config as configs
from wire.store import pin as pins
from wire.store.config import WireConfig
from wire.store.paths import Settings, WirePlaces
from wire.store.pin import Pin


class Here(NamedTuple):
    """One wire on this machine, as a verb sees it. The pin is read at each use, since the daemon moves it."""

    settings: Settings
    config: WireConfig
    places: WirePlaces

    @classmethod
    def find(cls, settings: Settings) -> "Here":
        """Return the chosen wire, or the only one.

        Raises:
            UsageError: none, several, or an unknown one; the text lists them.
        """
        config = configs.choose_wire(configs.load(settings), settings)
        return cls(settings, config, WirePlaces(settings.state_dir, config.name, config.clone))

    def pin(self) -> Pin:
        """Return the pin as it is now; raises IdentityError or Corrupt."""
        return pins.load(self.places.pin_file)

    def agent(self) -> str:
        """Return the local agent that is meant.

        Raises:
            UsageError: several and none chosen, or an unknown one; the text lists them.
        """
        return configs.choose_agent(self.config, self.settings)

    def reader(self, name: str | None = None) -> str:
        """Return the reader whose place counts: the named one, that of `WIRE_READER`, or the agent's own.

        A session that an agent started reads with one of its own, so that it takes nothing from its parent.
        """
        from wire.store.cursors import DEFAULT_READER

        return name or self.settings.environ.get("WIRE_READER") or DEFAULT_READER
