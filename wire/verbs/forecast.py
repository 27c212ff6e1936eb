"""What a sender should know of a recipient before it counts on an answer; nothing here stops a message.

Told from one small file (`wire.store.outlook`), which is as new as the last round. That a recipient is stale is told
only when this machine looked after its promise had passed: otherwise it may be we who are deaf.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

from wire.errors import StoreError
from wire.protocol.chain import Position
from wire.protocol.names import EVERYONE
from wire.store import journal, outlook
from wire.store.outlook import UNREAD_SECONDS, Outlook
from wire.store.pin import Pin
from wire.store.progress import Progress
from wire.verbs.here import Here
from wire.verbs.render import age

URGENT_MOST = 3
"""How many urgent messages may lie unanswered before the next one is warned of."""
_NAMED = 5


def warnings(here: Here, pin: Pin, channels: Sequence[str], urgent: frozenset[str]) -> list[str]:
    """Return what to tell the sender of messages that were stored just now.

    Args:
        channels: those that were sent in.
        urgent: those of them in which something urgent was sent.
    """
    known = outlook.load(here.places)
    found: list[str] = []
    for channel in channels:
        if known is not None:
            found += _about(here, pin, known, channel)
        if channel in urgent:
            count = _unanswered(here, pin, known, channel)
            if count > URGENT_MOST:
                found.append(
                    f"{count} urgent messages to {channel.partition('/')[2]!r} are not answered, this one among them;"
                    " one more will not be read sooner: see `wire sent --unacked`"
                )
    return list(dict.fromkeys(found))


def _about(here: Here, pin: Pin, known: Outlook, channel: str) -> Iterator[str]:
    recipients = _recipients(pin, channel)
    now, looked = time.time(), Progress.load(here.places).fetched
    late: Mapping[str, float] = {
        name: now - promise.heard
        for name in recipients
        if (promise := known.agents.get(name)) is not None and looked is not None and looked > promise.stale_at
    }
    if late:
        yield f"{_listed(late)}, longer than promised; the message waits until they look again"
    silent = [name for name in known.silent if name in recipients]
    if silent:
        named = ", ".join(map(repr, silent[:_NAMED])) + _more(silent)
        yield f"nothing was ever heard here of {named}; the message waits"
    mine = known.channels.get(channel)
    for name, unread in (mine.unread if mine is not None else {}).items():
        if name in recipients and now - unread.oldest > UNREAD_SECONDS:
            yield (
                f"{name!r} is not known to have read {unread.messages} message(s) in {channel}, the oldest from"
                f" {age(now - unread.oldest)} ago; see `wire sent --unread`"
            )


def _recipients(pin: Pin, channel: str) -> list[str]:
    sender, _, recipient = channel.partition("/")
    names = pin.names
    listed = names.agents if recipient == EVERYONE else names.groups.get(recipient, (recipient,))
    return [name for name in listed if name != sender]


def _unanswered(here: Here, pin: Pin, known: Outlook | None, channel: str) -> int:
    """Return how many urgent messages of a channel nobody answered, as far as is known."""
    mine = known.channels.get(channel) if known is not None else None
    start = pin.accepted.get(channel) if known is None else mine and mine.end
    count = mine.urgent if mine is not None else 0
    try:
        since = journal.read_lines(here.places, channel, start or Position.start(pin.wire, channel))
        return count + sum(b'"priority":"urgent"' in raw for raw in since)
    except StoreError:
        return count


def _listed(late: Mapping[str, float]) -> str:
    names = list(late)
    return ", ".join(f"{name!r} was last heard of {age(late[name])} ago" for name in names[:_NAMED]) + _more(names)


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
