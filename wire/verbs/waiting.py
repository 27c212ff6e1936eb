"""Waiting for a message, and telling a stream that there is one; neither costs more than a look at one file's date.

    waited = wait(here, Filters(senders={"mac"}), timeout=60)
    show(waited.inbox.items); waited.inbox.save()       the place moves after they were handed over, as always

    for notice in monitor(here): print(notice.text, flush=True)

`wait` ends with what it was waiting for, with the time being over, or with not having been able to look: three answers.
`monitor` says of a message what is proved of it and what its author asks for, and nothing that its author wrote: a line
in a stream goes before a model unasked. It never moves a place, since a notice is not the message.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from wire.protocol.chain import Position
from wire.store import cursors, reading
from wire.verbs.following import changes
from wire.verbs.health import Trouble, health
from wire.verbs.here import Here
from wire.verbs.inbox import LIMIT, Inbox, unread
from wire.verbs.look import SILENT, Item, Look, concerns
from wire.verbs.order import merged
from wire.verbs.reading import Filters, passes
from wire.verbs.render import facts

LINES_AT_ONCE = 10
SECONDS_PER_LINE = 3.0
"""How many notices may follow each other, and in how many seconds one more is earned: 20 a minute in the long run."""
TICK_SECONDS = 5.0


class Waited(NamedTuple):
    """What a waiting came to.

    Attributes:
        inbox: what arrived, or was there already; empty when nothing did.
        looked: whether somebody looked at the remote, so that "nothing came" can be said.
    """

    inbox: Inbox
    looked: bool


class _TimeIsUp(Exception):
    pass


def wait(
    here: Here,
    filters: Filters | None = None,
    *,
    timeout: float,
    reader: str | None = None,
    limit: int = LIMIT,
    pause: Callable[[float], object] = time.sleep,
) -> Waited:
    """Return when there is an unread message that is wanted, or when the time is up.

    Args:
        timeout: seconds; 0 looks once.
        reader: the place that counts; see `Here.reader`.
        limit: how many messages to hold.
        pause: waits for so many seconds; what it raises ends the waiting.

    Raises:
        what `wire.verbs.inbox.unread` does.
    """
    begun = time.monotonic()

    def within(seconds: float) -> None:
        left = begun + timeout - time.monotonic()
        if left <= 0:
            raise _TimeIsUp
        pause(min(seconds, left))

    try:
        for _ in changes(here, within):
            box = unread(here, filters, reader=reader, limit=limit)
            if box.items:
                break
    except _TimeIsUp:
        box = unread(here, filters, reader=reader, limit=limit)
    told = box.health
    # Without a daemon nobody looks while this waits: an old look does not say that nothing came since.
    since = told.age is not None and told.age <= time.monotonic() - begun
    return Waited(box, told.looked and (told.daemon or since))


class Notice(NamedTuple):
    """One line for a stream, in our words.

    Attributes:
        kind: `backlog`, `message`, `more` (messages that came too fast for a line of their own) or `health`.
        messages: how many it stands for.
        item: the message, of a `message`.
        reason: of a `health`, as `Health.reason`.
    """

    kind: str
    text: str
    messages: int = 0
    item: Item | None = None
    reason: str = ""


def monitor(
    here: Here,
    filters: Filters | None = None,
    *,
    reader: str | None = None,
    pause: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Notice]:
    """Yield the number of unread messages, then a notice for each that arrives, for ever.

    Notices are limited in number; what came too fast is told in one. A trouble that keeps messages away is told once
    when it persists, and once when it is over.

    Args:
        reader: whose unread messages are counted; what it has read meanwhile is not told.
        pause: waits for so many seconds; what it raises ends the waiting.
        clock: seconds that only rise.
    """
    arrivals = _Arrivals(here, filters or Filters(), here.reader(reader))
    box = unread(here, filters, reader=reader, limit=1)
    yield Notice("backlog", _backlog(box), box.total, reason=box.health.reason)
    allowance = _Allowance(clock)
    trouble = Trouble(box.health.reason, clock)
    held = 0
    for _ in changes(here, pause, every=TICK_SECONDS, clock=clock):
        for item in arrivals.new():
            if held or not allowance.take():
                held += 1
                continue
            yield Notice("message", f"{facts(item, before='new message')}; read it: wire read {item.id}", 1, item)
        if held and allowance.take():
            what = "1 more new message" if held == 1 else f"{held} more new messages"
            yield Notice("more", f"{what} for {arrivals.agent}; list them: wire inbox", held)
            held = 0
        seen = health(here, ())
        if trouble.persists(seen.reason) and allowance.take():
            yield Notice("health", trouble.tell(seen), reason=seen.reason)


class _Arrivals:
    """What is accepted for an agent after this was made, and not read by its reader meanwhile."""

    def __init__(self, here: Here, filters: Filters, reader: str) -> None:
        self._here = here
        self._filters = filters
        self._reader = reader
        self.agent = here.agent()
        self._ends: Mapping[str, Position] = dict(here.pin().accepted)

    def new(self) -> list[Item]:
        look = Look(self._here, self._here.pin())
        before, self._ends = self._ends, dict(look.pin.accepted)
        streams = []
        for channel, end in self._ends.items():
            start = before.get(channel) or Position.start(look.pin.wire, channel)
            if end == start or not concerns(channel, self.agent, look.pin):
                continue
            try:
                streams.append(look.after(channel, start))
            except reading.LostPlace:
                # Lines were cut and others came in their places: all that is unread counts.
                streams.append(look.after(channel, Position.start(look.pin.wire, channel)))
        if not streams:
            return []
        place = cursors.load(self._here.places.cursors_dir, self.agent, self._reader)
        found = []
        for one in merged(streams):
            line = one.line
            held = place.positions.get(line.channel)
            read = (held is not None and line.seq <= held.seq) or line.seq in place.beyond.get(line.channel, {})
            wanted = not self._filters.senders or line.sender in self._filters.senders
            wanted = wanted and line.type not in SILENT
            if read or not wanted or not look.is_for(line, self.agent):
                continue
            item = look.item(one)
            if passes(item, self._filters):
                found.append(item)
        return found


class _Allowance:
    """How many lines may be said now."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = float(LINES_AT_ONCE)
        self._at = clock()

    def take(self) -> bool:
        now = self._clock()
        self._left = min(float(LINES_AT_ONCE), self._left + (now - self._at) / SECONDS_PER_LINE)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _backlog(box: Inbox) -> str:
    senders = ", ".join(f"{name} {count}" for name, count in sorted(box.senders.items()))
    many = f"{box.total} unread message{'' if box.total == 1 else 's'} for {box.agent}"
    many += f" ({senders}); list them: wire inbox" if box.total else ""
    return many + (f"; {box.health.sentence()}" if box.health.reason else "")
