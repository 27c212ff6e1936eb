"""search, summary."""

import time
from typing import Any

import click

from wire.cli.common import for_a_wire, reader_option, wire_of
from wire.cli.console import flush, leave, say, say_json, warn
from wire.cli.reading import ending, warn_of_strangers
from wire.cli.shown import Printer
from wire.verbs.order import since_text
from wire.verbs.reading import Filters
from wire.verbs.render import age, age_of, quoted
from wire.verbs.summing import Thread


@click.command()
@click.argument("texts", metavar="TEXT...", nargs=-1, required=True)
@click.option("-n", "count", type=click.IntRange(min=1), default=20, show_default=True, help="The newest N.")
@click.option("--from", "senders", multiple=True, metavar="NAME", help="Only from this agent; repeatable.")
@click.option("--type", "types", multiple=True, help="Only of this type; repeatable.")
@click.option("--since", metavar="TIME", help="Only first seen since: 30m, 2h, 7d, or a UTC time.")
@for_a_wire
def search(
    ctx: click.Context,
    texts: tuple[str, ...],
    count: int,
    senders: tuple[str, ...],
    types: tuple[str, ...],
    since: str | None,
    as_json: bool,
) -> None:
    """Find messages of the whole wire in whose subject, body or refs all TEXTs stand, in any case.

    Several words in one TEXT, in quotes, are looked for as they stand. Only verified messages are found, and each is
    proved before it is shown. No place moves. The exit status is that of `wire tail`.
    """
    filters = Filters(frozenset(senders), frozenset(types), None, since_text(since, time.time()) if since else None)
    wire = wire_of(ctx)
    warn_of_strangers(wire, filters)
    found = wire.search(*texts, filters=filters, count=count)
    printer = Printer(as_json)
    for text in (*found.notes, *found.health.damaged):
        warn(text)
    for item in found.items:
        printer.match(item, texts)
    status, result = ending(found.health, len(found.items))
    if not found.items:
        printer.nothing("no-match" if result == "nothing-new" else result, found.health)
    else:
        printer.beside(result, found.health)
    if found.more:
        warn(f"there are older matches; -n {2 * count} shows more")
    flush()
    leave(status)


@click.command()
@click.option("--since", metavar="TIME", default="1d", show_default=True, help="30m, 2h, 7d, or a UTC time.")
@click.option("-n", "count", type=click.IntRange(min=1), default=40, show_default=True, help="At most so many.")
@reader_option
@for_a_wire
def summary(ctx: click.Context, since: str, count: int, reader: str | None, as_json: bool) -> None:
    """Show one line for each conversation in which something happened: a cheap way to catch up.

    Reads nothing: `wire thread ID` shows one of them, `wire inbox` what is unread. The exit status is that of
    `wire tail`.
    """
    found = wire_of(ctx).summary(since_text(since, time.time()), count=count, reader=reader)
    for text in (*found.health.lost, *found.health.damaged):
        warn(text)
    for one in found.threads:
        if as_json:
            say_json(_as_json(one))
        else:
            say(_in_one_line(one))
    if found.left:
        warn(f"{found.left} older conversations are not shown; -n {count + found.left} shows all")
    status, result = ending(found.health, len(found.threads))
    if not found.threads:
        Printer(as_json).nothing(result, found.health)
    else:
        Printer(as_json).beside(result, found.health)
    flush()
    leave(status)


def _in_one_line(one: Thread) -> str:
    many = f"{one.messages} message{'' if one.messages == 1 else 's'}"
    last = f"last {one.last.line.type} {one.last.id} {age(age_of(one.last))} ago"
    unread = f", {one.unread} unread" if one.unread else ""
    asking = f", answer asked for by {', '.join(one.asking[:3])}" if one.asking else ""
    topic = quoted(one.topic, 80) if one.topic else "(no text, or its beginning is not here)"
    return f"{one.root} {many} by {', '.join(one.agents)}, {last}{unread}{asking} | {topic}"


def _as_json(one: Thread) -> dict[str, Any]:
    return {
        "thread": one.root,
        "topic": one.topic,
        "messages": one.messages,
        "agents": list(one.agents),
        "last": one.last.id,
        "last_type": one.last.line.type,
        "last_ts": one.last.line.ts,
        "last_age_s": round(age_of(one.last), 1),
        "unread": one.unread,
        "asking": list(one.asking),
    }
