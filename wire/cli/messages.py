"""send, reply, ack."""

import sys
import time
from typing import Any

import click
from click.core import ParameterSource

from wire.api import Wire
from wire.cli.common import choosing, json_option, wire_of
from wire.cli.console import flush, say, say_json, warn
from wire.errors import UsageError
from wire.protocol import strictjson
from wire.protocol.line import LINE_MAX
from wire.protocol.messages import NEEDS, PRIORITIES, TYPES
from wire.protocol.names import parse_id
from wire.store.files import is_locked, utc_text
from wire.verbs.sending import Draft
from wire.verbs.states import STATES

_DRAFT_MEMBERS = frozenset(Draft._fields)


def _closing_options(command: Any) -> Any:
    for option in (
        click.option("--allow-secret", metavar="REASON", help="Send what looks like a secret; kept on this machine."),
        click.option("--seal/--no-seal", default=None, help="Close it: only its recipients can read what it says."),
    ):
        command = option(command)
    return command


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
    return json_option(choosing(_closing_options(command)))


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
    wire = wire_of(click.get_current_context())
    if batch:
        _nothing_beside_a_batch(click.get_current_context())
        asked = {name: members[name] for name in ("seal", "allow_secret") if members[name] is not None}
        drafts = [
            one._replace(**{name: value for name, value in asked.items() if getattr(one, name) is None})
            for one in _batch(sys.stdin.buffer.read())
        ]
    else:
        if to is None:
            raise UsageError("say to whom: wire send TO BODY", reason="usage", next_step="wire send --help")
        drafts = [_draft(to, kind, _body(body, file, as_json), thread=thread, re=re, **members)]
    _send(wire, drafts, as_json, wait_for, timeout)


@click.command()
@click.argument("message_id", metavar="ID")
@click.argument("body", required=False)
@click.option("--type", "kind", default="reply", show_default=True, help="One of those of `wire send`.")
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
    wire = wire_of(click.get_current_context())
    draft = _draft("", kind, _body(body, file, as_json), **members)
    _send(wire, [wire.answer(message_id, draft)], as_json, wait_for, timeout)


@click.command()
@click.argument("message_id", metavar="ID")
@click.argument("note", required=False)
@click.option("--wait", "wait_for", type=click.Choice(STATES), help="Wait until this state is proved.")
@click.option("--timeout", type=float, default=30.0, show_default=True, help="Seconds to wait.")
@_closing_options
@json_option
@choosing
def ack(message_id: str, note: str | None, wait_for: str | None, timeout: float, as_json: bool, **closing: Any) -> None:
    """Acknowledge a message: it was read and understood; a NOTE may say more.

    Its sender sees it as `acked`. Without a NOTE a second ack is the first one again.
    """
    wire = wire_of(click.get_current_context())
    if note is not None:
        note = _text(note.encode("utf-8", "surrogateescape"), "the note")
    draft = wire.acknowledgement(message_id, note)
    closing = {name: value for name, value in closing.items() if value is not None}
    _send(wire, [draft._replace(**closing)], as_json, wait_for, timeout)


def _send(wire: Wire, drafts: list[Draft], as_json: bool, wait_for: str | None, timeout: float) -> None:
    outcome = wire.send_all(drafts)
    sent = list(outcome.sent)
    for warning in outcome.warnings:
        warn(warning)
    if wait_for is not None:
        # What was stored is told before the waiting, so that nobody sends it again because of a time-out.
        if not as_json:
            for one in sent:
                say(f"{one.id} {one.state}")
            flush()
        sent = wire.wait([one.id for one in sent], wait_for, timeout)
    for one in sent:
        if as_json:
            say_json({"id": one.id, "state": one.state, "again": one.again, "warnings": list(outcome.warnings)})
        else:
            say(f"{one.id} {one.state}")
    if not as_json and not is_locked(wire.here.places.lock("daemon")):
        flush()
        warn("no daemon is running here, so that nothing goes out by itself: `wire sync` does it once")


_WORDY = ("message", "request", "reply")
"""Types of which each says something; others, such as `accept`, may say enough by themselves."""


def _draft(to: str, kind: str, body: str | dict[str, Any] | None, **members: Any) -> Draft:
    if members.get("expires"):
        from wire.verbs.order import until_text  # few messages expire

        now = time.time()
        members["expires"] = until_text(members["expires"], now)
        if members["expires"] < utc_text(now):
            warn(f"--expires {members['expires']} is in the past; it is sent all the same")
    for named in (members.get("thread"), members.get("re")):
        if named:
            parse_id(named)  # says how one is written
    members["ack_required"] = members.get("ack_required") or None
    members["refs"] = list(members["refs"]) if members.get("refs") else None
    if kind in _WORDY and not body and not members.get("subject") and not members["refs"]:
        raise UsageError(
            f"a {kind} without a text says nothing; nothing was sent",
            reason="no-text",
            next_step="give the text as an argument, or `-` to have it read from standard input",
        )
    for name, value in members.items():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str):
                _text(
                    text.encode("utf-8", "surrogateescape"), f"--{'ref' if name == 'refs' else name.replace('_', '-')}"
                )
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
        data, where = argument.encode("utf-8", "surrogateescape"), "the argument"
    else:
        return None
    if len(data) > LINE_MAX:
        raise UsageError(f"{where} has more than {LINE_MAX} bytes, the limit of a line", reason="too-large")
    text = _text(data, where)
    if as_json and data.lstrip()[:1] == b"{":
        return _object(data.strip(), where)
    return text


def _object(data: bytes, where: str) -> dict[str, Any]:
    """Return an object that is signed, and shown to its readers, as the text that was given."""
    try:
        return strictjson.Verbatim(data)
    except strictjson.StrictError as error:
        raise UsageError(
            f"{where} is not a strict JSON object: {error}; nothing was sent", reason="bad-json"
        ) from error


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{where}: invalid UTF-8 at byte {error.start}; nothing was sent", reason="bad-utf8"
        ) from error


def _read(path: str) -> bytes:
    try:
        with open(path.encode("utf-8", "surrogateescape"), "rb") as file:
            return file.read(LINE_MAX + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", reason="no-file") from error


_FOR_ALL = frozenset({"batch", "as_json", "seal", "allow_secret", "wait_for", "timeout"})
"""Parameters that say something of all messages of a batch."""


def _nothing_beside_a_batch(ctx: click.Context) -> None:
    """Raise UsageError for what a line of a batch says itself: nothing that was asked for is left out silently."""
    given = [
        one.opts[0] if one.opts[0].startswith("--") else one.human_readable_name
        for one in ctx.command.params
        if one.expose_value
        and one.name not in _FOR_ALL
        and ctx.get_parameter_source(str(one.name)) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(
            f"with --batch each line of standard input says for itself what {', '.join(sorted(given))} would; nothing "
            "was sent",
            reason="usage",
            next_step='one object a line: {"to": "NAME", "body": "TEXT", "type": "request", "subject": "…"}',
        )


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
