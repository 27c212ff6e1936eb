"""How an agent hears of its messages beside reading them, as the configuration says: notifications and a drop folder.

    [wire.notify.mac]
    tmux = "work:0.1"               a pane that gets one line: how many messages, from whom, and what shows them
    tmux_socket = "/run/tmux.sock"  where it is not tmux's own
    command = ["wake", "--now"]     run once per message, with what is known of it in the environment, never the body
    desktop = true                  by `notify-send`
    [wire.drop]
    mac = "/srv/mac"                `outbox/*.json` is sent, `inbox/` has a file per message

And what came of it: a notification that failed is remembered with its reason, until one goes through.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from wire.store.files import atomic_write, private_folder, read_bytes, utc_text
from wire.store.paths import WirePlaces

TMUX, COMMAND, DESKTOP, DROP = "tmux", "command", "desktop", "drop"
KEYS: dict[str, type] = {"tmux": str, "tmux_socket": str, "command": list, "desktop": bool}
SHOWN_MOST = 300


class Notify(NamedTuple):
    """How one agent is notified; what is empty is not used."""

    tmux: str = ""
    tmux_socket: str = ""
    command: tuple[str, ...] = ()
    desktop: bool = False

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the ways that are used."""
        used = ((TMUX, self.tmux), (COMMAND, self.command), (DESKTOP, self.desktop))
        return tuple(name for name, wanted in used if wanted)


NO_DROPS: Mapping[str, str] = MappingProxyType({})


class Wrong(ValueError):
    """A value that cannot be meant; `key` is where it stands."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(why)
        self.key = key


def notify(tables: Mapping[str, Any], agents: tuple[str, ...]) -> Mapping[str, Notify]:
    """Return what `[wire.notify.<agent>]` says, by agent; raises Wrong."""
    found = {}
    for agent, table in tables.items():
        _local(agent, agents, "notify")
        if not isinstance(table, dict):
            raise Wrong(agent, f"`notify.{agent[:64]}` must be a table")
        for key, value in table.items():
            if key not in KEYS:
                raise Wrong(key, f"unknown key `notify.{agent}.{key[:64]}`; known are {', '.join(KEYS)}")
            if not isinstance(value, KEYS[key]):
                raise Wrong(key, f"`notify.{agent}.{key}` must be {_SAID[KEYS[key]]}")
        command = table.get("command", [])
        if not all(isinstance(word, str) and word and "\0" not in word for word in command):
            raise Wrong("command", f"`notify.{agent}.command` must be a list of words: a program and its arguments")
        for key in ("tmux", "tmux_socket"):
            if key in table and not _plain(table[key]):
                raise Wrong(key, f"`notify.{agent}.{key}` must be plain text, not beginning with '-'")
        found[agent] = Notify(**{**table, "command": tuple(command)})
    return MappingProxyType(found)


def drop(table: Mapping[str, Any], agents: tuple[str, ...], base: str) -> Mapping[str, str]:
    """Return the drop folders by agent, absolute; those that are relative begin at `base`. Raises Wrong."""
    found = {}
    for agent, folder in table.items():
        _local(agent, agents, "drop")
        if not isinstance(folder, str) or not _plain(folder):
            raise Wrong("drop", f"`drop.{agent}` must be the path of a folder")
        found[agent] = os.path.normpath(os.path.join(base, folder))
    if len(set(found.values())) != len(found):
        raise Wrong("drop", "two agents have one drop folder")
    return MappingProxyType(found)


_SAID: dict[type, str] = {str: "text in quotes", list: "a list", bool: "true or false"}


def _local(agent: str, agents: tuple[str, ...], what: str) -> None:
    if agent not in agents:
        raise Wrong(agent, f"`{what}.{agent[:64]}`: no such agent lives here; there is {', '.join(agents) or 'none'}")


def _plain(text: str) -> bool:
    return bool(text) and text.isprintable() and text[0] not in "- "


# ------------------------------------------------------------------------------------ what came of it


class Trouble(NamedTuple):
    """Why messages of an agent are delivered and not yet surfaced by one way, or why its drop folder is not served.

    Attributes:
        agent, adapter: whose, and which way; `drop` for the drop folder.
        messages: how many wait.
        why: the reason of the last try.
        attempts: tries in a row that failed.
        since, next: of the first failure and of the next try, seconds since the epoch.
    """

    agent: str
    adapter: str
    messages: int
    why: str
    attempts: int
    since: float
    next: float

    def told(self, now: float) -> str:
        """Return it in one sentence."""
        if self.adapter == DROP:
            return f"the drop folder of {self.agent} is not served, since {utc_text(self.since)}: {self.why}"
        return (
            f"{self.messages} message(s) for {self.agent} delivered, not yet surfaced by {self.adapter}: {self.why}"
            f" ({self.attempts} attempt(s), next in {max(0.0, self.next - now):.0f} s)"
        )


def folder(places: WirePlaces) -> str:
    """Return where it is remembered what came of notifications."""
    return os.path.join(places.root, "surfaced")


def trouble(places: WirePlaces, agent: str, adapter: str) -> Trouble | None:
    """Return why one way of notifying an agent does not work, None when its last try went well.

    A damaged note counts as none: the next try writes it anew.
    """
    data = read_bytes(_path(places, agent, adapter))
    try:
        found = json.loads(data) if data else None
        return (
            Trouble(
                agent,
                adapter,
                int(found["messages"]),
                str(found["why"])[:SHOWN_MOST],
                int(found["attempts"]),
                float(found["since"]),
                float(found["next"]),
            )
            if isinstance(found, dict)
            else None
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def troubles(places: WirePlaces, wanted: Mapping[str, Notify], drops: Mapping[str, str] = NO_DROPS) -> list[Trouble]:
    """Return all of them, for what is configured."""
    ways = [(agent, adapter) for agent, one in wanted.items() for adapter in one.adapters]
    ways += [(agent, DROP) for agent in drops]
    return [one for one in (trouble(places, *way) for way in ways) if one is not None]


def note(places: WirePlaces, failed: Trouble) -> None:
    """Remember that a notification failed."""
    private_folder(folder(places))
    data = json.dumps(failed._asdict()).encode("ascii") + b"\n"
    atomic_write(_path(places, failed.agent, failed.adapter), data, durable=False)


def clear(places: WirePlaces, agent: str, adapter: str) -> None:
    """Remember that a notification went through."""
    with suppress(FileNotFoundError):
        os.unlink(_path(places, agent, adapter))


def _path(places: WirePlaces, agent: str, adapter: str) -> str:
    return os.path.join(folder(places), f"{agent}.{adapter}.json")
