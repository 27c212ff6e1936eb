"""Store, then notify: what was delivered and is neither read nor surfaced goes out by each configured way.

    notify_all(here, runner, now)               one pass for one agent; returns when it wants to be called again

Rules that it keeps: a message counts as surfaced by a way when that way said so, and not before; one that failed is
remembered with its reason and tried again, later each time; surfacing never moves the place of the agent's reader; what
the agent has read meanwhile is told to nobody. Each way has a place of its own, a reader's like any other.
"""

from collections.abc import Callable
from typing import NamedTuple

from wire.protocol.chain import Position
from wire.store import cursors, surfaces
from wire.store.surfaces import Notify, Trouble
from wire.surfacing import adapters
from wire.surfacing.adapters import NotSurfaced, Pointer, Runner
from wire.verbs.here import Here
from wire.verbs.look import SILENT, Item
from wire.verbs.reading import DEFAULT_READER, Filters, tail

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5.0, 300.0
RUNS_MOST = 20
"""How many messages a command is run for in one pass; more wait for the next one."""
SOON_SECONDS = 1.0


class Outcome(NamedTuple):
    """What a pass did by one way: how many messages it surfaced, when to come again (None: when something changes),
    and why it failed, if it did."""

    adapter: str
    surfaced: int = 0
    again: float | None = None
    why: str = ""


def reader_of(adapter: str) -> str:
    """Return the reader whose place says what a way has surfaced."""
    return f"notify-{adapter}"


def notify_all(here: Here, runner: Runner, now: float) -> list[Outcome]:
    """Do one pass for the agent that is meant; `now` is seconds since the epoch."""
    notify = here.config.notify[here.agent()]
    return [_pass(here, notify, adapter, runner, now) for adapter in notify.adapters]


def test(here: Here, runner: Runner) -> list[Outcome]:
    """Send one notification through each configured way, without any message, and return what came of it."""
    agent = here.agent()
    notify = here.config.notify[agent]
    pointer = Pointer(agent, here.config.name, 0, (), test=True)
    found = []
    for adapter in notify.adapters:
        why = _tried(lambda adapter=adapter: _send(notify, adapter, pointer, None, runner))  # type: ignore[misc]
        found.append(Outcome(adapter, 0 if why else 1, None, why))
    return found


def _pass(here: Here, notify: Notify, adapter: str, runner: Runner, now: float) -> Outcome:
    agent = here.agent()
    failed = surfaces.trouble(here.places, agent, adapter)
    if failed is not None and now < failed.next <= now + LONGEST_PAUSE_SECONDS:
        return Outcome(adapter, 0, failed.next, failed.why)
    reader = reader_of(adapter)
    _begin(here, agent, reader)
    known = _Known(here, agent)
    found = tail(here, Filters(), reader=reader)
    surfaced, why, again = 0, "", None
    if adapter == adapters.PER_MESSAGE:
        for item in found.items:
            found.save()  # what came before this one was handled
            if known.read(item):
                continue
            if surfaced == RUNS_MOST:
                again = now + SOON_SECONDS
                break
            pointer = _pointer(here, 1, [item.line.sender])
            why = _tried(lambda item=item, pointer=pointer: _send(notify, adapter, pointer, item, runner))  # type: ignore[misc]
            if why:
                break
            surfaced += 1
        else:
            found.save()
    else:
        senders = [item.line.sender for item in found.items if not known.read(item)]
        pointer = _pointer(here, len(senders), senders)
        why = _tried(lambda: _send(notify, adapter, pointer, None, runner)) if senders else ""
        if not why:
            surfaced = len(senders)
            found.save()
    if not why:
        surfaces.clear(here.places, agent, adapter)
        return Outcome(adapter, surfaced, again)
    waiting = _waiting(here, reader, known)
    attempts = (failed.attempts if failed is not None and not surfaced else 0) + 1
    pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(attempts - 1, 10), LONGEST_PAUSE_SECONDS)
    since = failed.since if failed is not None and not surfaced else now
    surfaces.note(here.places, Trouble(agent, adapter, waiting, why, attempts, since, now + pause))
    return Outcome(adapter, surfaced, now + pause, why)


def _send(notify: Notify, adapter: str, pointer: Pointer, item: Item | None, runner: Runner) -> None:
    if adapter == adapters.PER_MESSAGE:
        adapters.command(notify, pointer, item, runner)
    else:
        adapters.POINTERS[adapter](notify, pointer, runner)


def _tried(send: Callable[[], None]) -> str:
    """Return why a notification did not go through, empty when it did."""
    try:
        send()
    except NotSurfaced as error:
        return error.message
    return ""


def _pointer(here: Here, count: int, senders: list[str]) -> Pointer:
    agent = here.agent()
    choice = f" --as {agent}" if len(here.config.agents) > 1 else ""
    return Pointer(agent, here.config.name, count, tuple(dict.fromkeys(senders)), choice)


def _begin(here: Here, agent: str, reader: str) -> None:
    """Let a way that never surfaced anything begin where the agent has read to: old mail is no news."""
    directory = here.places.cursors_dir
    if reader not in cursors.readers(directory, agent):
        read = cursors.load(directory, agent, DEFAULT_READER).positions
        start: dict[str, Position] = dict(read)
        if start:
            cursors.save(directory, agent, reader, start)


def _waiting(here: Here, reader: str, known: "_Known") -> int:
    return sum(1 for item in tail(here, Filters(), reader=reader, peek=True).items if not known.read(item))


class _Known:
    """What the agent has read."""

    def __init__(self, here: Here, agent: str) -> None:
        self._cursors = cursors.load(here.places.cursors_dir, agent, DEFAULT_READER)

    def read(self, item: Item) -> bool:
        """Return whether the agent's own reader was shown a message, or needs no reading of it."""
        line = item.line
        if line.type in SILENT:
            return True
        end = self._cursors.positions.get(line.channel)
        passed = end is not None and line.seq <= end.seq
        return passed or self._cursors.beyond.get(line.channel, {}).get(line.seq) == line.head
