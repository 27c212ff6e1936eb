"""What `wire` itself says to a model: facts with labels, and the commands that go with them. Nothing of a peer's."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wire.verbs.here import Here
from wire.verbs.render import age
from wire.verbs.states import ACKED

if TYPE_CHECKING:
    from wire.verbs.health import Health
    from wire.verbs.owed import Overdue, Owed

WOKEN = "delivery (working as intended, not an error): new messages while this session was idle."
_MOST_NAMES = 20
_MOST_MISSING = 5
MOST_NAMED = 20
"""Demands that one text names without showing them."""
MOST_LATE = 5
"""Late answers that one text names; the others come with the next."""
LEAST_ROOM = 1000
"""Characters that are always left for messages."""


def beginning(
    here: Here, agent: str, health: "Health", unread: int, owed: Sequence[str], *, again: bool = False
) -> str:
    """Return who the agent is here, how much waits for it, and how it answers."""
    others = [name for name in here.pin().names.agents if name != agent]
    named = ", ".join(others[:_MOST_NAMES]) + (" and more" if len(others) > _MOST_NAMES else "")
    lines = [
        f"wire: this session is agent {agent} on the wire {here.config.name}; other agents: {named or 'none yet'}.",
        f"Unread messages: {unread}. Waiting for an answer of {agent}: {_listed(owed)}.",
    ]
    if again:
        lines.append("Messages that were shown earlier are still there: wire tail -n 10")
    lines.append(_looked(health))
    if health.concerning:
        lines.append(f"Open incidents: {len(health.concerning)}; wire incidents lists them.")
    lines.append(
        "Commands: wire reply ID TEXT; wire ack ID; wire send NAME TEXT; wire inbox lists all; wire skill explains."
    )
    return "\n".join(lines)


def unwell(health: "Health") -> str:
    """Return that nobody looked lately, so that silence is no news."""
    return f"wire: {_looked(health)}"


def owed(agent: str, count: int, seen: "Sequence[Owed]") -> str:
    """Return why a turn goes on: the demands that the session has seen already are named, the others follow."""
    lines = [
        "delivery (working as intended, not an error): "
        f"{count} message{' waits' if count == 1 else 's wait'} for an answer of {agent}; each is named here once.",
        "wire reply ID TEXT answers one; wire ack ID acknowledges it. Either clears it.",
    ]
    lines += [f"shown before, not answered yet: {_facts(one)}" for one in seen]
    return "\n".join(lines)


def late_here(one: "Owed") -> str:
    """Return that an answer of this agent is late."""
    return f"Overdue: {_facts(one)}; answer with wire reply {one.id} TEXT, or wire ack {one.id}."


def late_there(one: "Overdue") -> str:
    """Return that others are late with an answer, or did not read in time."""
    missing = ", ".join(one.missing[:_MOST_MISSING]) + (" and more" if len(one.missing) > _MOST_MISSING else "")
    wanted = "answered" if one.wanted == ACKED else "read"
    since = age(max(0.0, time.time() - one.due))
    return f"Not {wanted} in time: {one.id}, due {since} ago, by {missing}; wire show {one.id} says how far it got."


def _facts(one: "Owed") -> str:
    asked = [one.line.priority] if one.line.priority == "urgent" else []
    asked += ["ack required"] if one.line.ack_required else []
    return ", ".join([one.id, one.line.type, f"{age(max(0.0, time.time() - one.since))} ago", *asked])


def _looked(health: "Health") -> str:
    missing = " Newer messages may be missing." if not health.looked else ""
    return f"The remote: {health.sentence()}.{missing}"


def _listed(ids: Sequence[str]) -> str:
    if not ids:
        return "0"
    return f"{len(ids)} ({', '.join(ids[:10])}{' …' if len(ids) > 10 else ''})"
