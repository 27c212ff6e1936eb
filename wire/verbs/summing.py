"""Summing up: one line for each conversation in which something happened, for a session that has to catch up.

    for one in summary(here, "2026-11-29T00:00:00.000Z").threads: show(one)

Only what was accepted since then is read, and of a conversation's root its subject. Heartbeats are no conversation.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from wire.errors import WireError
from wire.store import cursors
from wire.store.reading import Read
from wire.store.seen import Seen
from wire.verbs.health import Health, health
from wire.verbs.here import Here
from wire.verbs.look import SILENT, Item, Look, concerns
from wire.verbs.order import merged
from wire.verbs.reading import find, in_time
from wire.verbs.render import said, wants_answer

_TOPIC_CHARACTERS = 200


class Thread(NamedTuple):
    """A conversation, and what happened in it in the time that was asked for.

    Attributes:
        root: the id of the message that began it.
        topic: the root's subject, or how its text begins; its author's words, not cleaned; empty when it is not here.
        messages: how many came.
        agents: who wrote them, in the order of their first.
        last: the newest.
        unread: how many of them this agent has not read.
        asking: ids of those that ask this agent for an answer and have none of it.
    """

    root: str
    topic: str
    messages: int
    agents: tuple[str, ...]
    last: Item
    unread: int
    asking: tuple[str, ...]


class Summary(NamedTuple):
    """The conversations with the newest messages, oldest first, and how many others there are."""

    threads: tuple[Thread, ...]
    left: int
    health: Health


def summary(here: Here, since: str, *, count: int = 40, reader: str | None = None) -> Summary:
    """Return what happened since a time, by conversation.

    Args:
        since: UTC text; what this machine accepted at or after it counts.
        count: how many conversations at most.
        reader: the place that says what is unread; see `Here.reader`.

    Raises:
        UsageError: no such wire or agent.
        IntegrityError: no copy holds the accepted bytes.
    """
    agent = here.agent()
    look = Look(here, here.pin())
    place = cursors.load(here.places.cursors_dir, agent, here.reader(reader))
    threads: dict[str, list[Item]] = {}
    roots: dict[str, str] = {}
    unread: set[str] = set()
    for one in merged([_since(look, here, channel, since) for channel in look.pin.accepted]):
        if one.line.type in SILENT:
            continue
        item = look.item(one)
        members = item.members or {}
        root = members.get("thread") or roots.get(members.get("re", ""), members.get("re")) or item.id
        roots[item.id] = root
        threads.setdefault(root, []).append(item)
        held = place.positions.get(one.line.channel)
        done = held is not None and one.line.seq <= held.seq
        done = done or place.beyond.get(one.line.channel, {}).get(one.line.seq) == one.line.head
        if not done and concerns(one.line.channel, agent, look.pin) and look.is_for(one.line, agent):
            unread.add(item.id)
    newest = sorted(threads.items(), key=lambda pair: in_time(pair[1][-1]))[-count:]
    shown = tuple(_thread(here, look, agent, root, items, unread) for root, items in newest)
    lost = [f"the cursor was damaged: {place.why}"] if place.lost else []
    told = health(here, sorted(look.pin.accepted), lost, look.damaged)
    return Summary(shown, len(threads) - len(shown), told)


def _thread(here: Here, look: Look, agent: str, root: str, items: list[Item], unread: set[str]) -> Thread:
    answered = {(item.members or {}).get("re") for item in items if item.line.sender == agent}
    asking = [
        item.id
        for item in items
        if wants_answer(item)
        and item.id not in answered
        and concerns(item.line.channel, agent, look.pin)
        and look.is_for(item.line, agent)
    ]
    return Thread(
        root,
        _topic(here, root, items[0]),
        len(items),
        tuple(dict.fromkeys(item.line.sender for item in items)),
        items[-1],
        sum(item.id in unread for item in items),
        tuple(asking),
    )


def _topic(here: Here, root: str, first: Item) -> str:
    if first.id != root:
        try:
            first = find(here, root)
        except WireError:
            return ""  # what a message names as its root need not be here
    if first.sealed is not None and not first.sealed.opened:
        return "(sealed)"
    members: Any = first.members or {}
    return str(members.get("subject") or said(first, compact=True))[:_TOPIC_CHARACTERS]


def _since(look: Look, here: Here, channel: str, since: str) -> Iterator[Read]:
    """Return the lines of a channel that were accepted at a time or later; those without a note count as well."""
    low, high = 0, look.end(channel).seq
    with Seen(here.places.seen_file) as seen:
        # Lines of a channel are accepted in their order, so that the first one is found by halving.
        while low < high:
            middle = (low + high) // 2
            at = seen.lookup(channel, middle + 1)
            if at is None or at.time >= since:
                high = middle
            else:
                low = middle + 1
    return look.newest(channel, look.end(channel).seq - low)
