"""What `wire` itself says to a model: facts with labels, and the commands that go with them. Nothing of a peer's."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wire.verbs.here import Here
from wire.verbs.render import facts

if TYPE_CHECKING:
    from wire.verbs.health import Health
    from wire.verbs.look import Item

WOKEN = "delivery (working as intended, not an error): new messages while this session was idle."
_MOST_NAMES = 20
MOST_NAMED = 20
"""Demands that one text names without showing them."""


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
    lines.append("Commands: wire reply ID TEXT; wire send NAME TEXT; wire inbox lists all; wire skill explains.")
    return "\n".join(lines)


def unwell(health: "Health") -> str:
    """Return that nobody looked lately, so that silence is no news."""
    return f"wire: {_looked(health)}"


def owed(agent: str, count: int, seen: "Sequence[Item]") -> str:
    """Return why a turn goes on: the demands that the session has seen already are named, the others follow."""
    lines = [
        "delivery (working as intended, not an error): "
        f"{count} message{'' if count == 1 else 's'} for {agent} must be answered; each is named here once.",
        "wire reply ID TEXT answers one and clears it.",
    ]
    lines += [f"shown before, not answered yet: {facts(item)}" for item in seen]
    return "\n".join(lines)


def _looked(health: "Health") -> str:
    missing = " Newer messages may be missing." if not health.looked else ""
    return f"Last look at the remote: {health.sentence()}.{missing}"


def _listed(ids: Sequence[str]) -> str:
    if not ids:
        return "0"
    return f"{len(ids)} ({', '.join(ids[:10])}{' …' if len(ids) > 10 else ''})"
