"""send, reply, tail, show, log, thread."""

import os
import sys
import time
from typing import Any

import click

from wire.cli.common import choosing, here_of, json_option
from wire.cli.console import flush, hand_over, leave, say, say_json, warn
from wire.errors import DONE, INTEGRITY, REMOTE, UsageError
from wire.protocol import strictjson
from wire.protocol.line import LINE_MAX
from wire.protocol.messages import NEEDS, PRIORITIES, TYPES
from wire.verbs import sending
from wire.verbs.here import Here
from wire.verbs.sending import STATES, Draft

_BATCH_SAVE = 200
_DRAFT_MEMBERS = frozenset(Draft._fields)


def _message_options(command: Any) -> Any:
    for option in reversed(
        (
            click.option("--file", "file", metavar="PATH", help="Read the body from a file."),
            click.option("--subject", help="One line of at most 200 characters."),
            click.option("--ref", "refs", multiple=True, help="A commit, file or link that this is about; repeatable."),
            click.option("--priority", type=click.Choice(PRIORITIES)),
            click.option("--needs", type=click.Choice(NEEDS), help="Who has to act."),
            click.option("--ack-required", is_flag=True, help="The recipient is asked to acknowledge."),
            click.option("--expires", metavar="TIME", help="Not worth reading after this: 2h, 3d, or a UTC time."),
            click.option("--idem", metavar="KEY", help="Send at most once: the same key gives the same id."),
            click.option("--wait", "wait_for", type=click.Choice(STATES), help="Wait until this state is proved."),
            click.option("--timeout", type=float, default=30.0, show_default=True, help="Seconds to wait."),
        )
    ):
        command = option(command)
    return json_option(choosing(command))


@click.command()
@click.argument("to", required=False)
@click.argument("body", required=False)
@click.option("--type", "kind", default="message", show_default=True, help="One of: " + ", ".join(TYPES) + ".")
@click.option("--thread", metavar="ID", help="The message that began the conversation.")
@click.option("--re", metavar="ID", help="The message that this is about.")
@click.option("--batch", is_flag=True, help="Read messages as JSONL from standard input; one fsync for all.")
@_message_options
def send(
    to: str | None,
    body: str | None,
    kind: str,
    thread: str | None,
    re: str | None,
    batch: bool,
    file: str | None,
    as_json: bool,
    wait_for: str | None,
    timeout: float,
    **members: Any,
) -> None:
    """Send a message to an agent, a group, or all.

    The body is BODY, or standard input with "-", or a file. With --json a body that begins with "{" is a JSON object,
    and the answer is printed as JSON. When this returns 0 the message is safely on disk; it travels by itself.
    """
    here = here_of(click.get_current_context())
    if batch:
        if to is not None or body is not None or file is not None:
            raise UsageError("--batch reads recipients and bodies from standard input", reason="usage")
        drafts = _batch(sys.stdin.buffer.read())
    else:
        if to is None:
            raise UsageError("say to whom: wire send TO BODY", reason="usage", next_step="wire send --help")
        drafts = [_draft(to, kind, _body(body, file, as_json), thread=thread, re=re, **members)]
    _send(here, drafts, as_json, wait_for, timeout)


@click.command()
@click.argument("message_id", metavar="ID")
@click.argument("body", required=False)
@click.option("--type", "kind", default="reply", show_default=True)
@_message_options
def reply(
    message_id: str,
    body: str | None,
    kind: str,
    file: str | None,
    as_json: bool,
    wait_for: str | None,
    timeout: float,
    **members: Any,
) -> None:
    """Answer a message: recipient, re and thread are filled in."""
    here = here_of(click.get_current_context())
    draft = _draft("", kind, _body(body, file, as_json), **members)
    _send(here, [sending.reply(here, message_id, draft)], as_json, wait_for, timeout)


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
@click.option("--reader", default="tail", show_default=True, metavar="NAME", help="Whose cursor.")
@json_option
@choosing
@click.pass_context
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
    reader: str,
    as_json: bool,
) -> None:
    """Show new verified messages for this agent, oldest first.

    The cursor moves only after the output was taken, so that a message is shown at least once. A filter on content, -n
    and --all leave it where it is. Exit 0: shown, or nothing new. 4: an open incident concerns what was asked, or the
    place was lost. 6: nothing new, but the remote was not reached lately, so that nobody knows.
    """
    from wire.cli.shown import Printer
    from wire.verbs import reading
    from wire.verbs.order import since_text

    here = here_of(ctx)
    filters = reading.Filters(
        frozenset((*senders, *more_senders)),
        frozenset(types),
        thread,
        since_text(since, time.time()) if since else None,
    )
    printer = Printer(as_json)

    def once(first: bool) -> tuple[int, Any]:
        found = reading.tail(
            here, filters, count=count if first else None, everything=everything and first, peek=peek, reader=reader
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
        return shown, found.health

    shown, health = once(True)
    if follow:
        from wire.cli.following import follow as following

        following(here, lambda: once(False))
    status, result = _ending(health, shown)
    if not shown:
        printer.nothing(result, health)
    elif status != DONE:
        printer.beside(result, health)
    flush()
    leave(status)


@click.command()
@click.argument("message_id", metavar="ID")
@json_option
@choosing
@click.pass_context
def show(ctx: click.Context, message_id: str, as_json: bool) -> None:
    """Show one message with everything known about it."""
    from wire.cli.shown import Printer
    from wire.verbs import reading

    here = here_of(ctx)
    Printer(as_json).whole(here, reading.find(here, message_id))


@click.command()
@click.option("-n", "count", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--channel", "channels", multiple=True, metavar="FROM/TO", help="Only this channel; repeatable.")
@click.option("--by-commit", is_flag=True, help="In the order in which commits brought them here: the host's word.")
@json_option
@choosing
@click.pass_context
def log(ctx: click.Context, count: int, channels: tuple[str, ...], by_commit: bool, as_json: bool) -> None:
    """Show the last messages of the whole wire, in causal order: the same on every machine."""
    from wire.cli.shown import Printer
    from wire.verbs import reading

    printer = Printer(as_json)
    for item in reading.log(here_of(ctx), count=count, channels=channels, by_commit=by_commit):
        printer.item(item)


@click.command()
@click.argument("message_id", metavar="ID")
@json_option
@choosing
@click.pass_context
def thread(ctx: click.Context, message_id: str, as_json: bool) -> None:
    """Show one conversation."""
    from wire.cli.shown import Printer
    from wire.verbs import reading

    printer = Printer(as_json)
    for item in reading.thread(here_of(ctx), message_id):
        printer.item(item)


def _send(here: Here, drafts: list[Draft], as_json: bool, wait_for: str | None, timeout: float) -> None:
    outcome = sending.send(here, drafts)
    sent = list(outcome.sent)
    for warning in outcome.warnings:
        warn(warning)
    if wait_for is not None:
        # What was stored is told before the waiting, so that nobody sends it again because of a time-out.
        if not as_json:
            for one in sent:
                say(f"{one.id} {one.state}")
            flush()
        sent = sending.wait(here, [one.id for one in sent], wait_for, timeout)
    for one in sent:
        if as_json:
            say_json({"id": one.id, "state": one.state, "again": one.again, "warnings": list(outcome.warnings)})
        else:
            say(f"{one.id} {one.state}")


def _draft(to: str, kind: str, body: str | dict[str, Any] | None, **members: Any) -> Draft:
    if members.get("expires"):
        members["expires"] = _expiry(members["expires"])
    members["ack_required"] = members.get("ack_required") or None
    members["refs"] = list(members["refs"]) if members.get("refs") else None
    return Draft(to, kind, body, **members)


def _body(argument: str | None, file: str | None, as_json: bool) -> str | dict[str, Any] | None:
    """Return the body as text or object; raises UsageError for what is not UTF-8 or not strict JSON."""
    if file is not None:
        if argument is not None:
            raise UsageError("a body and --file were both given; one of them is the body", reason="usage")
        data = _read(file)
        where = file
    elif argument == "-":
        data, where = sys.stdin.buffer.read(LINE_MAX + 1), "standard input"
    elif argument is not None:
        data, where = os.fsencode(argument), "the argument"
    else:
        return None
    if len(data) > LINE_MAX:
        raise UsageError(f"{where} has more than {LINE_MAX} bytes, the limit of a line", reason="too-large")
    if as_json and data.lstrip()[:1] == b"{":
        return _object(data.strip(), where)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{where}: invalid UTF-8 at byte {error.start}; nothing was sent", reason="bad-utf8"
        ) from error


def _object(data: bytes, where: str) -> dict[str, Any]:
    """Return an object that is signed, and shown to its readers, as the text that was given."""
    try:
        return strictjson.Verbatim(data)
    except strictjson.StrictError as error:
        raise UsageError(
            f"{where} is not a strict JSON object: {error}; nothing was sent", reason="bad-json"
        ) from error


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(LINE_MAX + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", reason="no-file") from error


def _batch(data: bytes) -> list[Draft]:
    drafts = []
    for number, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            members = strictjson.loads(raw.strip())
        except strictjson.StrictError as error:
            raise UsageError(f"line {number} of the batch: {error}; nothing was sent", reason="bad-json") from error
        unknown = members.keys() - _DRAFT_MEMBERS
        if unknown or not isinstance(members.get("to"), str):
            what = f"unknown member {min(unknown)!r}" if unknown else "'to' is missing"
            raise UsageError(f"line {number} of the batch: {what}; nothing was sent", reason="bad-batch")
        if isinstance(members.get("body"), dict):
            members["body"] = strictjson.Verbatim(strictjson.text_of(raw.strip(), "body") or b"")
        drafts.append(Draft(**members))
    return drafts


def _expiry(text: str) -> str:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    if text[-1:] in units and text[:-1].isdigit():
        from wire.store.files import utc_text

        return utc_text(time.time() + int(text[:-1]) * units[text[-1]])
    return text


def _ending(health: Any, shown: int) -> tuple[int, str]:
    """Return the exit status of a reading and what to call it."""
    if health.lost:
        return INTEGRITY, "lost-place"
    if health.concerning:
        return INTEGRITY, "incident"
    if not shown and not health.looked:
        return REMOTE, "could-not-look"
    return DONE, "shown" if shown else "nothing-new"
