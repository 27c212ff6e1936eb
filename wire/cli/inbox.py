"""inbox, read."""

from typing import Any

import click

from wire.api import Wire
from wire.cli.common import for_a_wire, reader_option, wire_of
from wire.cli.console import flush, hand_over, leave, safe, say, say_json, warn
from wire.cli.reading import ending, warn_of_strangers
from wire.cli.shown import Printer, health_json
from wire.errors import DONE, REMOTE, Busy, StoreError
from wire.verbs.inbox import LIMIT, Inbox
from wire.verbs.look import Item
from wire.verbs.reading import DEFAULT_READER, Filters, claim
from wire.verbs.render import age_of, asked, closed, facts, quoted, said, wants_answer


@click.command()
@click.argument("senders", metavar="[FROM]...", nargs=-1)
@click.option("--full", is_flag=True, help="The messages' texts, too, as far as they fit into some 5,000 tokens.")
@click.option("-n", "limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@reader_option
@for_a_wire
def inbox(
    ctx: click.Context, senders: tuple[str, ...], full: bool, limit: int, reader: str | None, as_json: bool
) -> None:
    """List what is unread: ids, subjects, ages, and what asks for an answer.

    Listing reads nothing, with --full neither: `wire read ID` and `wire tail` do. The exit status is that of
    `wire tail`: 0 also where nothing is new, 4 for an open incident or a lost place, 6 where nobody could look.
    """
    wire = wire_of(ctx)
    owed = _owed(wire)
    filters = Filters(frozenset(senders))
    warn_of_strangers(wire, filters)
    box = wire.inbox(filters, reader=reader, limit=min(limit, LIMIT))
    status, result = ending(box.health, box.total)
    if as_json:
        say_json(_as_json(box, "unread" if result == "shown" else result, full) | {"owed": owed})
    else:
        for text in (*box.health.lost, *box.health.damaged):
            warn(text)
        _print(box, full, owed)
    flush()
    if status not in (DONE, REMOTE) and not as_json:
        # That nobody could look was said in the first line.
        Printer(False).beside(result, box.health)
    leave(status)


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--peek", is_flag=True, help="Leave them unread.")
@reader_option
@for_a_wire
def read(ctx: click.Context, ids: tuple[str, ...], peek: bool, reader: str | None, as_json: bool) -> None:
    """Show messages with their whole texts; then they are no longer unread.

    They are taken as read only after the output was taken. In any order: what stands between them stays unread.
    """
    wire = wire_of(ctx)
    printer = Printer(as_json)
    with claim(wire.here, reader=reader, what="wire read") as held:
        printer.shared(None if peek else held.warning)
        picked = wire.read(ids, reader=reader)
        for item in picked.items:
            printer.card(item)
        hand_over()
        if not peek:
            picked.save()
    status, result = ending(picked.health, len(picked.items))
    if status != DONE:
        printer.beside(result, picked.health)
    leave(status)


def _owed(wire: Wire) -> list[str] | None:
    """Return the ids of messages, read or not, that must be answered; None where that cannot be told."""
    try:
        return [one.id for one in wire.owed()]
    except (StoreError, Busy) as error:
        warn(f"what is owed an answer cannot be told: {safe(error.message)}")
        return None


def _print(box: Inbox, full: bool, owed: list[str] | None) -> None:
    many = f"{box.total} unread message{'' if box.total == 1 else 's'}"
    whose = f"{box.agent} on {box.wire}" + ("" if box.reader == DEFAULT_READER else f", reader {box.reader}")
    senders = ", ".join(f"{name} {count}" for name, count in sorted(box.senders.items()))
    say(f"{many} for {whose}{f' ({senders})' if senders else ''}; {box.health.sentence()}")
    whole = Printer(False).several(box.items) if full else ()
    for item in box.items[len(whole) :]:
        say(_row(item))
    if box.left:
        say(f"  … {box.left} more; `wire inbox -n {LIMIT}` lists up to {LIMIT}, `wire tail` reads on")
    answers = [item.id for item in box.items if wants_answer(item)]
    if answers:
        say(f"an answer is asked for by {_some(answers)}")
    late = [one for one in owed or () if one not in answers]
    if late:
        say(f"read, and to be answered still: {_some(late)}")
    if box.items:
        say(f"read: wire read {box.items[0].id}   all: wire tail   answer: wire reply ID TEXT")


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:10]) + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")


def _row(item: Item) -> str:
    """Return one message on one line; of its author's text only the subject, or that there is none."""
    if item.members is None:
        return f"  {facts(item)}  (cannot be shown)"
    if (told := closed(item)) is not None:
        return f"  {facts(item)}  ({told})"
    subject = item.members.get("subject")
    size = len(said(item))
    long = f", {size} character{'' if size == 1 else 's'}" if size else ""
    return f"  {facts(item)}{long}" + (f"  | {quoted(subject, 100)}" if subject else "")


def _as_json(box: Inbox, result: str, full: bool) -> dict[str, Any]:
    return {
        "result": result,
        "agent": box.agent,
        "wire": box.wire,
        "reader": box.reader,
        "unread": box.total,
        "senders": dict(box.senders),
        "left": box.left,
        "messages": [_about(item, full) for item in box.items],
        **health_json(box.health),
    }


def _about(item: Item, full: bool) -> dict[str, Any]:
    members = item.members or {}
    about: dict[str, Any] = {
        "id": item.id,
        "from": item.line.sender,
        "to": item.line.recipient,
        "type": item.line.type,
        "verdict": item.verdict,
        "ts": item.line.ts,
        "age_s": round(age_of(item), 1),
        "asks": asked(item),
        "wants_answer": wants_answer(item),
        "flags": list(item.flags),
        "bytes": len(item.line.raw),
    }
    about |= {name: members[name] for name in ("thread", "re", "subject") if name in members}
    if item.members is None:
        about["why"] = item.why
    elif (told := closed(item)) is not None:
        about["why"] = told
    elif full and "body" in members:
        about["body"] = members["body"]
    return about
