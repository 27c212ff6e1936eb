"""The tools: name, schema, and the method of `Wire` that each calls, the one that the command line calls as well.

    answer = call(wire, "send", {"to": "spark", "body": "hello"}, stop)
    answer.text                         what the agent sees
    answer.handed_over()                to be called once the text was taken, never before

Rules that they keep: what goes in is checked by the tool's own table; what comes out is bounded; a message is shown by
the one renderer, as data; the reader's place moves only after the text was handed over. Numbers and ids come as JSON.
"""

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from wire.api import Wire
from wire.errors import DONE, UsageError, WireError
from wire.mcp.schema import Param, Params, checked
from wire.protocol.messages import NEEDS, PRIORITIES
from wire.verbs.health import Health
from wire.verbs.look import Item
from wire.verbs.reading import Filters, claim
from wire.verbs.render import Digest, age_of, asked, digest, one_line, quoted, wants_answer
from wire.verbs.sending import Draft

ID_MOST = 90
"""Characters of the longest id: two names of 32, a number of fifteen digits, two slashes, and some to spare."""
NAME_MOST = 32
WAIT_MOST = 50
"""Seconds; clients commonly give up on a call after 60."""
WAIT_SECONDS = 25.0
TEXT_MOST = 20_000
"""Characters of messages in one answer; what does not fit is left unread, and counted."""


class Answer(NamedTuple):
    """What a tool answers.

    Attributes:
        text: for the agent.
        data: the same for programs, where the text is JSON.
        handed_over: what is to be done once the text was taken; None for nothing.
    """

    text: str
    data: dict[str, Any] | None = None
    handed_over: Callable[[], None] | None = None


class Call(NamedTuple):
    """One call: the wire, the checked arguments, and what is set when nobody waits for the answer any more."""

    wire: Wire
    args: Mapping[str, Any]
    stop: threading.Event


class Tool(NamedTuple):
    """One tool. `reads` says that it changes nothing but the reader's place."""

    about: str
    params: Params
    run: Callable[[Call], Answer]
    reads: bool = False


def call(wire: Wire, name: str, arguments: Mapping[str, Any] | None, stop: threading.Event) -> Answer:
    """Check the arguments and run a tool.

    Raises:
        UsageError: reason `bad-arguments`, or whatever the verb says.
        WireError: as the verb.
    """
    tool = TOOLS[name]
    return tool.run(Call(wire, checked(tool.params, arguments), stop))


def _send(call: Call) -> Answer:
    return _sent(call, Draft(**_members(call.args)))


def _reply(call: Call) -> Answer:
    args = _members(call.args)
    answered = args.pop("id")
    return _sent(call, call.wire.answer(answered, Draft("", args.pop("type", "reply"), **args)))


def _members(args: Mapping[str, Any]) -> dict[str, Any]:
    # Absent and false are the same here, and the shorter line is the better one.
    return {name: value for name, value in args.items() if value is not False}


def _sent(call: Call, draft: Draft) -> Answer:
    outcome = call.wire.send_all([draft])
    (one,) = outcome.sent
    told: dict[str, Any] = {"id": one.id, "state": one.state}
    if one.again:
        told["again"] = True
    if outcome.warnings:
        told["warnings"] = [one_line(str(warning), 500) for warning in outcome.warnings]
    return _json(told)


def _inbox(call: Call) -> Answer:
    args = call.args
    box = call.wire.inbox(Filters(_only(args.get("from"))), limit=args.get("limit", 20))
    told: dict[str, Any] = {
        "agent": box.agent,
        "unread": box.total,
        "messages": [_row(item) for item in box.items],
        **_health(box.health),
    }
    if box.left:
        told["left"] = box.left
    return _json(told)


def _row(item: Item) -> dict[str, Any]:
    """Return what is known of a message, and of its author's text the subject alone."""
    told: dict[str, Any] = {"id": item.id, "type": item.line.type, "age_s": round(age_of(item))}
    members = item.members or {}
    told |= {name: members[name] for name in ("thread", "re") if name in members}
    if asks := asked(item):
        told["asks"] = asks
    if wants_answer(item):
        told["wants_answer"] = True
    if "subject" in members:
        told["subject"] = quoted(members["subject"], 100)
    if item.members is None:
        told["unreadable"] = quoted(item.why)
    return told


def _read(call: Call) -> Answer:
    ids = call.args.get("ids")
    if ids is not None:
        picked = call.wire.read(ids)
        found = digest(picked.items, TEXT_MOST, agent=call.wire.here.agent())
        return _messages(found, picked.health, lambda: picked.walked.save(found.shown))
    box = call.wire.inbox(Filters(_only(call.args.get("from"))), limit=call.args.get("limit", 20))
    found = digest(box.items, TEXT_MOST, agent=box.agent, total=box.total)
    return _messages(found, box.health, lambda: box.save(found.shown))


def _wait(call: Call) -> Answer:
    args = call.args
    filters = Filters(_only(args.get("from")), _only(args.get("type")), args.get("thread"), None, args.get("re"))
    timeout = args.get("timeout", WAIT_SECONDS)

    def pause(seconds: float) -> None:
        if call.stop.wait(seconds):
            raise WireError("nobody waits for the answer any more", reason="cancelled")

    with claim(call.wire.here, what="wire mcp") as held:
        waited = call.wire.wait_for_message(filters, timeout=timeout, limit=20, pause=pause)
    box = waited.inbox
    health = box.health._replace(looked=waited.looked)
    found = digest(box.items, TEXT_MOST, agent=box.agent, total=box.total)
    if not found.shown:
        what = "nothing yet" if health.looked else "nothing yet, and nobody could look"
        return Answer(f"{what}; {health.sentence()}" + _doubts(health, held.warning))
    return _messages(found, health, lambda: box.save(found.shown), held.warning)


def _messages(found: Digest, health: Health, handed_over: Callable[[], None], warning: str | None = None) -> Answer:
    """Return messages as the one renderer shows them, with how far that can be trusted where there is any doubt."""
    if not found.shown:
        return Answer(f"nothing new; {health.sentence()}" + _doubts(health))
    return Answer(found.text + _doubts(health, warning), None, handed_over)


def _doubts(health: Health, warning: str | None = None) -> str:
    """Return what speaks against taking an answer for the whole truth, empty where nothing does."""
    told = _health(health)
    told.pop("fetch_age_s")
    if warning is not None:
        told["warning"] = one_line(warning, 400)
    return "" if told == {"looked": True} else f"\n\n{json.dumps(told, ensure_ascii=False)}"


def _health(health: Health) -> dict[str, Any]:
    told: dict[str, Any] = {"looked": health.looked, "fetch_age_s": _rounded(health.age)}
    if health.reason:
        told["why"] = health.reason
    if health.concerning:
        told["incidents"] = [f"{one.id} {one.code} in {one_line(one.scope)}" for one in health.concerning[:10]]
    if health.lost:
        told["lost"] = [one_line(text, 300) for text in health.lost[:10]]
    return told


def _only(sender: str | None) -> frozenset[str]:
    return frozenset() if sender is None else frozenset((sender,))


def _status(call: Call) -> Answer:
    found = call.wire.status()
    return _json(
        {
            "wire": found.snapshot.config.name,
            "agent": call.wire.here.agent(),
            "healthy": found.exit_status == DONE,
            "daemon": found.daemon,
            "fetch_age_s": _rounded(found.fetch_age),
            "push_age_s": _rounded(found.push_age),
            "unpushed": found.unpushed,
            "troubles": [one_line(trouble, 300) for trouble in found.troubles[:20]],
        }
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _json(data: dict[str, Any]) -> Answer:
    return Answer(json.dumps(data, ensure_ascii=False, separators=(",", ":")), data)


_MESSAGE: Params = {
    "body": Param("body"),
    "type": Param("text", most=32),
    "subject": Param("text", most=200),
    "refs": Param("texts", "commits, files, links", most=64),
    "priority": Param("text", choices=PRIORITIES),
    "needs": Param("text", "who has to act", choices=NEEDS),
    "ack_required": Param("flag"),
    "expires": Param("text", "UTC time", most=24),
    "idem": Param("text", "send at most once per key", most=200),
}

TOOLS: dict[str, Tool] = {
    "send": Tool(
        "Send a signed message to an agent, a group or all. Durable when this returns.",
        {
            "to": Param("text", required=True, most=NAME_MOST),
            **_MESSAGE,
            "thread": Param("text", most=ID_MOST),
            "re": Param("text", most=ID_MOST),
        },
        _send,
    ),
    "reply": Tool(
        "Answer a message by id; recipient and thread are filled in.",
        {"id": Param("text", required=True, most=ID_MOST), **_MESSAGE},
        _reply,
    ),
    "inbox": Tool(
        "List unread messages without their bodies; moves nothing.",
        {"from": Param("text", most=NAME_MOST), "limit": Param("integer", most=100)},
        _inbox,
        True,
    ),
    "read": Tool(
        "Show messages by id, or else the oldest unread ones; then they are read.",
        {
            "ids": Param("texts", most=50),
            "from": Param("text", most=NAME_MOST),
            "limit": Param("integer", most=100),
        },
        _read,
    ),
    "wait": Tool(
        "Wait for an unread message that fits and show it, or say 'nothing yet'. Costs no tokens while it waits.",
        {
            "from": Param("text", most=NAME_MOST),
            "thread": Param("text", most=ID_MOST),
            "re": Param("text", most=ID_MOST),
            "type": Param("text", most=32),
            "timeout": Param("number", "seconds", most=WAIT_MOST),
        },
        _wait,
    ),
    "status": Tool("Health of the wire here: daemon, last fetch, what is not pushed, troubles.", {}, _status, True),
}


def known(name: str) -> str:
    """Return the name of a tool; raises UsageError with reason `no-tool`."""
    if name not in TOOLS:
        raise UsageError(f"there is no tool {name[:64]!r}; there are {', '.join(TOOLS)}", reason="no-tool")
    return name
