"""The tools: name, schema, and the method of `Wire` that each calls, the one that the command line calls as well.

    answer = call(wire, "send", {"to": "spark", "body": "hello"}, stop)
    answer.text                         what the agent sees
    answer.handed_over()                to be called once the text was taken, never before

Rules that they keep: what goes in is checked by the tool's own table; what comes out is bounded; a message is shown by
the one renderer, as data; the reader's place moves only after the text was handed over. Numbers and ids come as JSON.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from wire.api import Wire
from wire.errors import DONE, UsageError, WireError
from wire.mcp.schema import Param, Params, checked
from wire.protocol.encoding import seconds_of
from wire.protocol.messages import NEEDS, PRIORITIES, TYPES
from wire.verbs.agents import AgentView
from wire.verbs.health import Health
from wire.verbs.health import health as health_of
from wire.verbs.look import Item
from wire.verbs.order import until_text
from wire.verbs.reading import Filters, claim
from wire.verbs.receipts import Traced
from wire.verbs.render import Digest, age_of, asked, closed, digest, one_line, quoted, wants_answer
from wire.verbs.sending import Draft
from wire.verbs.states import STATES

ID_MOST = 90
"""Characters of the longest id: two names of 32, a number of fifteen digits, two slashes, and some to spare."""
NAME_MOST = 32
WAIT_MOST = 50
"""Seconds; clients commonly give up on a call after 60."""
WAIT_SECONDS = 25.0
RECIPIENTS_MOST, AGENTS_MOST, IDS_MOST = 20, 100, 20
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
    members = {name: value for name, value in args.items() if value is not False}
    if "expires" in members:
        members["expires"] = until_text(members["expires"], time.time())
    return members


def _sent(call: Call, draft: Draft) -> Answer:
    outcome = call.wire.send_all([draft])
    (one,) = outcome.sent
    told: dict[str, Any] = {"id": one.id, "state": one.state}
    if one.again:
        told["again"] = True
    if outcome.warnings:
        told["warnings"] = [one_line(str(warning), 500) for warning in outcome.warnings]
    return _json(told)


def _ack(call: Call) -> Answer:
    return _sent(call, call.wire.acknowledgement(call.args["id"], call.args.get("note")))


def _traced(call: Call) -> Answer:
    args = call.args
    found = call.wire.sent(
        unread=args.get("unread", False),
        unacked=args.get("unacked", False),
        count=max(1, args.get("limit", 20)),
        to=args.get("to"),
    )
    return _json({"messages": [_trace(one) for one in found], **_looked(call.wire)})


def _trace(one: Traced) -> dict[str, Any]:
    """Return what became of a message; of many recipients those that are behind come first."""
    behind = sorted(one.recipients, key=lambda who: STATES.index(who.state))[:RECIPIENTS_MOST]
    told: dict[str, Any] = {
        "id": one.id,
        "type": one.line.type,
        "age_s": round(max(0.0, time.time() - seconds_of(one.line.ts))),
        "state": one.state,
        "recipients": {who.agent: who.state for who in behind},
    }
    if one.line.ack_required:
        told["ack_required"] = True
    if one.line.subject:
        told["subject"] = quoted(one.line.subject, 100)
    return told


def _agents(call: Call) -> Answer:
    found = call.wire.agents()
    told: dict[str, Any] = {"agents": [_agent(one) for one in found[:AGENTS_MOST]], **_looked(call.wire)}
    if len(found) > AGENTS_MOST:
        told["left"] = len(found) - AGENTS_MOST
    return _json(told)


def _agent(one: AgentView) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": one.name,
        "role": one.role,
        "state": one.state or "unknown",
        "heard_s": _rounded(one.age),
        "unread_by_them": one.unread_by_them,
        "unread_by_us": one.unread_by_us,
    }
    if one.stale:
        told["stale"] = True
    if one.note:
        told["note"] = quoted(one.note, 100)
    if one.eta:
        told["eta"] = one.eta
    for name, ids in (("we_owe", one.we_owe), ("they_owe", one.they_owe)):
        if ids:
            told[name] = list(ids[:IDS_MOST])
    return told


def _looked(wire: Wire) -> dict[str, Any]:
    """Return whether somebody looked lately: what a recipient did since is not known otherwise."""
    return _health(health_of(wire.here, ()))


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
    # A type that nobody knows is a word of its author's.
    kind = item.line.type if item.line.type in TYPES else "other"
    told: dict[str, Any] = {"id": item.id, "type": kind, "age_s": round(age_of(item))}
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
    elif (why := closed(item)) is not None:
        told["unreadable"] = why
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
    owed, late = call.wire.owed(), call.wire.overdue()[:IDS_MOST]
    return _json(
        {
            "wire": found.snapshot.config.name,
            "agent": call.wire.here.agent(),
            "healthy": found.exit_status == DONE,
            "daemon": found.daemon,
            "fetch_age_s": _rounded(found.fetch_age),
            "push_age_s": _rounded(found.push_age),
            "unpushed": found.unpushed,
            "to_answer": [one.id for one in owed[:IDS_MOST]],
            "overdue": [{"id": one.id, "wanted": one.wanted, "by": list(one.missing[:IDS_MOST])} for one in late],
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
    "expires": Param("text", "2h, 3d, or a UTC time", most=24),
    "idem": Param("text", "send at most once per key", most=200),
    "seal": Param("flag", "only recipients can read it"),
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
    "ack": Tool(
        "Acknowledge a message: read and understood.",
        {"id": Param("text", required=True, most=ID_MOST), "note": Param("text")},
        _ack,
    ),
    "sent": Tool(
        "How far my last messages came: stored, committed, pushed, delivered, read, acked; only what is proved.",
        {
            "to": Param("text", most=NAME_MOST),
            "unread": Param("flag"),
            "unacked": Param("flag"),
            "limit": Param("integer", most=100),
        },
        _traced,
        True,
    ),
    "agents": Tool("Everybody on the wire: state, last heard, unread and unanswered each way.", {}, _agents, True),
    "status": Tool(
        "How the wire stands here: daemon, last fetch, unpushed, what to answer, what is overdue, troubles.",
        {},
        _status,
        True,
    ),
}


def known(name: str) -> str:
    """Return the name of a tool; raises UsageError with reason `no-tool`."""
    if name not in TOOLS:
        raise UsageError(f"there is no tool {name[:64]!r}; there are {', '.join(TOOLS)}", reason="no-tool")
    return name
