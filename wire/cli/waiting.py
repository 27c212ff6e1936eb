"""wait, monitor."""

import time
from typing import Any

import click

from wire.cli.common import for_a_wire, reader_option, wire_of
from wire.cli.console import flush, hand_over, leave, say, say_json
from wire.cli.reading import ending, waiting, warn_of_strangers
from wire.cli.shown import Printer
from wire.errors import DONE, NOT_REACHED
from wire.verbs.order import since_text
from wire.verbs.reading import Filters, claim
from wire.verbs.render import age_of, asked
from wire.verbs.waiting import Notice


def _filter_options(command: Any) -> Any:
    for option in (
        click.option("--re", metavar="ID", help="Only answers to this message."),
        click.option("--thread", metavar="ID", help="Only of this conversation."),
        click.option("--type", "types", multiple=True, help="Only of this type; repeatable."),
        click.option("--from", "senders", multiple=True, metavar="NAME", help="Only from this agent; repeatable."),
    ):
        command = option(command)
    return command


@click.command()
@_filter_options
@click.option("--since", metavar="TIME", help="Only first seen since: 30m, 2h, 7d, or a UTC time.")
@click.option("--timeout", type=click.FloatRange(min=0), default=60.0, show_default=True, help="Seconds to wait.")
@click.option("-n", "limit", type=click.IntRange(1, 100), default=20, show_default=True, help="At most so many.")
@click.option("--peek", is_flag=True, help="Leave them unread.")
@reader_option
@for_a_wire
def wait(
    ctx: click.Context,
    senders: tuple[str, ...],
    types: tuple[str, ...],
    thread: str | None,
    re: str | None,
    since: str | None,
    timeout: float,
    limit: int,
    peek: bool,
    reader: str | None,
    as_json: bool,
) -> None:
    """Wait until there is an unread message that is wanted, show it, and end.

    Several are shown as far as they fit into some 5,000 tokens; the rest stays unread, and so does what is not wanted.
    With --timeout 0 it is a bounded way to read on. Exit 0: shown. 3: the time is up, and nothing came. 6: the time is
    up, and nobody looked at the remote meanwhile, or the last look failed. 4: as for `wire tail`: an open incident
    concerns this, or the place was lost.
    """
    wire = wire_of(ctx)
    filters = Filters(
        frozenset(senders), frozenset(types), thread, since_text(since, time.time()) if since else None, re
    )
    printer = Printer(as_json, wire.here.agent())
    warn_of_strangers(wire, filters)
    with claim(wire.here, reader=reader, what="wire wait") as held:
        printer.shared(None if peek else held.warning)
        with waiting(wire) as pause:
            waited = wire.wait_for_message(filters, timeout=timeout, reader=reader, limit=limit, pause=pause)
        box = waited.inbox
        shown = printer.several(box.items)
        left = box.total - len(shown)
        if left and not as_json:
            say(f"{left} more {'is' if left == 1 else 'are'} unread: wire inbox")
        hand_over()
        if not peek and shown:
            box.save(shown)
    status, result = ending(box.health._replace(looked=waited.looked), len(box.items))
    if not box.items:
        if status == DONE:
            status, result = NOT_REACHED, "timeout"
        printer.nothing(result, box.health)
    else:
        printer.beside(result, box.health)
    flush()
    leave(status)


@click.command()
@_filter_options
@reader_option
@for_a_wire
def monitor(
    ctx: click.Context,
    senders: tuple[str, ...],
    types: tuple[str, ...],
    thread: str | None,
    re: str | None,
    reader: str | None,
    as_json: bool,
) -> None:
    """Print one line for each message that arrives, for whoever watches a stream; first how many are unread.

    A line holds what is proved of a message and nothing that its author wrote, and reads nothing: `wire read ID` does.
    Many at once share a line. A trouble that keeps messages away is told when it persists. It ends with its reader.
    """
    filters = Filters(frozenset(senders), frozenset(types), thread, None, re)
    wire = wire_of(ctx)
    warn_of_strangers(wire, filters)
    with waiting(wire) as pause:
        for notice in wire.monitor(filters, reader=reader, pause=pause):
            if as_json:
                say_json(_as_json(notice))
            elif notice.kind != "backlog" or notice.messages or notice.reason:
                say(notice.text)
            flush()


def _as_json(notice: Notice) -> dict[str, Any]:
    told: dict[str, Any] = {"event": notice.kind, "messages": notice.messages, "text": notice.text}
    if notice.kind in ("backlog", "health"):
        told["reason"] = notice.reason
    if (item := notice.item) is not None:
        told |= {
            "id": item.id,
            "from": item.line.sender,
            "to": item.line.recipient,
            "type": item.line.type,
            "asks": asked(item),
            "age_s": round(age_of(item), 1),
            "bytes": len(item.line.raw),
        }
    return told
