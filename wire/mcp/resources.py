"""What there is to read beside the tools: the inbox, and conversations; and which of them a change concerns.

    listed(wire)                        the inbox, and the conversations of the newest unread messages
    read(wire, "wire://inbox")          text; reading a resource moves nobody's place
    Watch(opened).changed()             the resources that changed since the last call

A conversation goes by the id of the message that began it. It may be read by the id of any of its messages; what
changes is told under the first.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from wire.api import Wire
from wire.errors import UsageError, WireError
from wire.protocol.chain import Position
from wire.protocol.names import parse_id, split_channel
from wire.verbs.look import Item
from wire.verbs.render import MARK, card, facts, quoted

INBOX = "wire://inbox"
THREAD = "wire://thread/"
MIME = "text/plain"
LISTED_MOST = 20
UNREAD_MOST = 100
CHANGES_MOST = 200
TEXT_MOST = 20_000
"""Characters of a resource; the newest part of a conversation that is longer."""


class Entry(NamedTuple):
    """One resource in the list."""

    uri: str
    name: str
    about: str


def known(uri: str) -> str:
    """Return a URI that may be read; raises UsageError with reason `no-resource`."""
    if uri == INBOX:
        return uri
    if uri.startswith(THREAD):
        parse_id(uri.removeprefix(THREAD))
        return uri
    raise UsageError(f"there is no resource {uri[:100]!r}; there are {INBOX} and {THREAD}ID", reason="no-resource")


def listed(wire: Wire) -> list[Entry]:
    """Return the inbox, and the conversations that have unread messages, those with the newest first."""
    roots: dict[str, int] = {}
    for item in wire.inbox().items:
        root = root_of(item)
        roots[root] = roots.pop(root, 0) + 1
    newest = list(roots)[: -LISTED_MOST - 1 : -1]
    inbox = Entry(INBOX, "inbox", "unread messages of this agent, without their bodies")
    return [inbox, *(Entry(THREAD + root, f"thread {root}", f"{roots[root]} unread") for root in newest)]


def read(wire: Wire, uri: str) -> str:
    """Return a resource's text.

    Raises:
        UsageError: reason `no-resource`, `bad-id` or `no-message`.
        WireError: as the verb.
    """
    known(uri)
    if uri == INBOX:
        return inbox_text(wire)
    return thread_text(wire, uri.removeprefix(THREAD))


def root_of(item: Item) -> str:
    """Return the id of the message that began an item's conversation."""
    return str((item.members or {}).get("thread") or item.id)


class Watch:
    """Looks for changes; each look costs a few calls of `stat` while there is none. One thread at a time uses it."""

    def __init__(self, opened: Callable[[], Wire]) -> None:
        self._opened = opened
        self._wire: Wire | None = None
        self._seen: tuple[int, ...] = ()
        self._accepted: dict[str, Position] = {}

    def changed(self) -> list[str]:
        """Return the URIs of what changed since the last call; nothing the first time, or while there is no wire."""
        try:
            if self._wire is None:
                wire = self._opened()
                self._accepted = dict(wire.here.pin().accepted)
                self._seen = _signature(wire)
                self._wire = wire
                return []
            seen = _signature(self._wire)
            if seen == self._seen:
                return []
            self._seen = seen
            return [INBOX, *self._threads(self._wire)]
        except WireError:
            # What is wrong is told by whatever is asked for. Another look may find another configuration.
            self._wire = None
            return []

    def _threads(self, wire: Wire) -> list[str]:
        agent = wire.here.agent()
        before, after = self._accepted, dict(wire.here.pin().accepted)
        self._accepted = after
        grown = {
            channel: end.seq - (before[channel].seq if channel in before else 0)
            for channel, end in after.items()
            if channel not in before or end.seq > before[channel].seq
        }
        mine = [channel for channel in grown if agent in split_channel(channel) or _to_many(wire, channel)]
        if not mine:
            return []
        count = min(sum(grown[channel] for channel in mine), CHANGES_MOST)
        return list(dict.fromkeys(THREAD + root_of(item) for item in wire.log(count, channels=mine)))


def _to_many(wire: Wire, channel: str) -> bool:
    return split_channel(channel)[1] not in wire.here.pin().names.agents


def _signature(wire: Wire) -> tuple[int, ...]:
    """Return what changes when something was accepted, or somebody's place moved."""
    places = wire.here.places
    found: list[int] = []
    for path in (places.pin_file, places.cursors_dir, wire.here.settings.config_file):
        try:
            status = os.stat(path)
        except OSError:
            found += (0, 0)
        else:
            found += (status.st_ino, status.st_mtime_ns)
    return tuple(found)


def inbox_text(wire: Wire) -> str:
    """Return what is unread, a line for each, without bodies."""
    box = wire.inbox(limit=UNREAD_MOST)
    many = f"{box.total} unread message{'' if box.total == 1 else 's'} for {box.agent} on {box.wire}"
    lines = [f"{many}; {box.health.sentence()}"]
    for item in box.items:
        subject = (item.members or {}).get("subject")
        lines.append(facts(item) + (f"\n{MARK}subject: {quoted(subject)}" if subject else ""))
    if box.left:
        lines.append(f"{box.left} more")
    return "\n".join(lines)


def thread_text(wire: Wire, message_id: str) -> str:
    """Return a conversation, by the id of any of its messages; of a long one the end."""
    items = wire.thread(message_id)
    cards: list[str] = []
    room = TEXT_MOST
    for item in reversed(items):
        text = card(item)
        room -= len(text) + 2
        if room < 0 and cards:
            break
        cards.append(text)
    earlier = len(items) - len(cards)
    head = f"conversation {root_of(items[0])}: {len(items)} message{'' if len(items) == 1 else 's'}, oldest first"
    return "\n\n".join([head + (f"; {earlier} earlier not shown" if earlier else ""), *reversed(cards)])
