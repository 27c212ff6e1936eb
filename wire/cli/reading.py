"""tail, show, log, thread."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import click

from wire.api import Wire
from wire.cli.common import for_a_wire, reader_option, wire_of
from wire.cli.console import flush, hand_over, leave, reader_gone, warn
from wire.cli.shown import Printer
from wire.errors import DONE, INTEGRITY, REMOTE
from wire.protocol.chain import Position
from wire.verbs.health import Health, Trouble, health
from wire.verbs.order import since_text
from wire.verbs.reading import Filters, Held, claim
from wire.verbs.render import one_line

_BATCH_SAVE = 200
_TICK_SECONDS = 5.0


@click.command()
@click.argument("senders", metavar="[FROM]...", nargs=-1)
@click.option("-n", "count", type=click.IntRange(min=0), help="The last N messages, read or not.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what arrives.")
@click.option("--all", "everything", is_flag=True, help="All messages, read or not.")
@click.option("--from", "more_senders", multiple=True, metavar="NAME", help="Only from this agent; repeatable.")
@click.option("--type", "types", multiple=True, help="Only of this type; repeatable.")
@click.option("--thread", metavar="ID", help="Only of this conversation.")
@click.option("--since", metavar="TIME", help="Only first seen since: 30m, 2h, 7d, or a UTC time.")
@click.option("--peek", is_flag=True, help="Leave the cursor where it is.")
@reader_option
@for_a_wire
def tail(
    ctx: click.Context,
    senders: tuple[str, ...],
    count: int | None,
    follow: bool,
    everything: bool,
    more_senders: tuple[str, ...],
    types: tuple[str, ...],
    thread: str | None,
    since: str | None,
    peek: bool,
    reader: str | None,
    as_json: bool,
) -> None:
    """Show new verified messages for this agent, oldest first.

    On a terminal with their texts; elsewhere each is one line, which names `wire read ID` where it is cut.

    The cursor moves only after the output was taken, so that a message is shown at least once. A filter on content, -n
    and --all leave it where it is. Exit 0: shown, or nothing new. 4: an open incident concerns what was asked, or the
    place was lost. 6: nothing new, but the last look at the remote failed or is too old, so that nobody knows.
    """
    wire = wire_of(ctx)
    filters = Filters(
        frozenset((*senders, *more_senders)),
        frozenset(types),
        thread,
        since_text(since, time.time()) if since else None,
    )
    printer = Printer(as_json, wire.here.agent())
    warn_of_strangers(wire, filters)

    passed: dict[str, Position] = {}

    def once(first: bool) -> tuple[int, Health]:
        found = wire.tail(
            filters,
            count=count if first else None,
            everything=everything and first,
            peek=peek,
            reader=reader,
            # Where the place stays behind, following goes on from what was shown.
            after=passed if passed and not first else None,
        )
        if first:
            for text in (*found.health.lost, *found.health.damaged):
                warn(text)
        shown = 0
        for item in found.items:
            printer.item(item)
            shown += 1
            if follow or shown % _BATCH_SAVE == 0:
                hand_over()
                found.save()
        hand_over()
        found.save()
        if not found.moves:
            passed.update(found.passed)
        return shown, found.health

    moves = not (peek or everything or count is not None or filters.by_content)
    with claim(wire.here, reader=reader, what="wire tail") if moves else nullcontext(Held()) as held:
        printer.shared(held.warning)
        shown, told = once(True)
        if follow:
            if not shown and told.reason:
                warn(f"new messages may be missing: {told.sentence()}")
            trouble = Trouble(told.reason, time.monotonic)
            with waiting(wire) as pause:
                for _ in wire.changes(pause, every=_TICK_SECONDS):
                    _, seen = once(False)
                    if trouble.persists(seen.reason):
                        warn(trouble.tell(seen))
    status, result = ending(told, shown)
    if not shown:
        printer.nothing(result, told)
    else:
        printer.beside(result, told)
    flush()
    leave(status)


@click.command()
@click.argument("message_id", metavar="ID")
@for_a_wire
def show(ctx: click.Context, message_id: str, as_json: bool) -> None:
    """Show one message with everything known about it."""
    wire = wire_of(ctx)
    Printer(as_json).whole(wire.here, wire.show(message_id))


@click.command()
@click.option("-n", "count", type=click.IntRange(min=1), default=50, show_default=True, help="How many messages.")
@click.option("--channel", "channels", multiple=True, metavar="FROM/TO", help="Only this channel; repeatable.")
@click.option("--by-commit", is_flag=True, help="In the order in which commits brought them here: the host's word.")
@for_a_wire
def log(ctx: click.Context, count: int, channels: tuple[str, ...], by_commit: bool, as_json: bool) -> None:
    """Show the last messages of the whole wire, in causal order: the same on every machine."""
    wire, printer = wire_of(ctx), Printer(as_json)
    shown = wire.log(count, channels=channels, by_commit=by_commit)
    for item in shown:
        printer.item(item)
    for one in channels:
        if not any(item.line.channel == one for item in shown):
            warn(f"nothing of {one_line(one, 80)} is among these; `wire status` lists the channels")
    if not shown and not channels:
        warn("there is no message here yet")
    printer.beside("shown", health(wire.here, ()))


@click.command()
@click.argument("message_id", metavar="ID")
@for_a_wire
def thread(ctx: click.Context, message_id: str, as_json: bool) -> None:
    """Show one conversation."""
    wire, printer = wire_of(ctx), Printer(as_json)
    for item in wire.thread(message_id):
        printer.item(item)
    printer.beside("shown", health(wire.here, ()))


def warn_of_strangers(wire: Wire, filters: Filters) -> None:
    """Say which senders nobody here knows, since nothing would ever come from a name that is misspelt."""
    known = wire.here.pin().names.agents if filters.senders else ()
    for name in sorted(filters.senders.difference(known)):
        warn(f"{one_line(name, 40)} is not in this machine's copy of the trust")


@contextmanager
def waiting(wire: Wire) -> Iterator[Callable[[float], None]]:
    """Yield what waits for so many seconds, or until something may have arrived.

    A reader that went away is noticed at once, not only with the next message: the wait raises BrokenPipeError.
    """
    from wire.verbs.bell import Bell  # who only looks needs none

    with Bell(wire.here.places.root) as bell:

        def pause(seconds: float) -> None:
            if reader_gone(seconds, until=bell.fileno()):
                raise BrokenPipeError
            bell.hush()

        yield pause


def ending(health: Health, shown: int) -> tuple[int, str]:
    """Return the exit status of a reading and what to call it."""
    if health.lost:
        return INTEGRITY, "lost-place"
    if health.concerning:
        return INTEGRITY, "incident"
    if not shown and not health.looked:
        return REMOTE, "could-not-look"
    return DONE, "shown" if shown else "nothing-new"
