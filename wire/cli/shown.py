"""How messages are printed: for people, one line per message in pipes, or JSON with the signed bytes."""

import json
import time
from typing import Any

from wire.cli.console import is_terminal, say, say_json, styled, warn, write
from wire.verbs.here import Here
from wire.verbs.order import seconds_of
from wire.verbs.reading import Health, Item, concerning
from wire.verbs.render import age, block, body_text, one_line
from wire.verbs.states import STATES


class Printer:
    """Prints messages in the form that fits the other side."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._terminal = is_terminal()

    def item(self, item: Item) -> None:
        """Print one message."""
        if self._json:
            write(as_json(item))
        elif self._terminal:
            say(_for_people(item))
        else:
            say(_in_one_line(item))

    def nothing(self, result: str, health: Health) -> None:
        """Say that nothing was shown, and how far that can be trusted."""
        if self._json:
            say_json({"result": result, **_health(health)})
        else:
            warn(_explain(result, health))

    def beside(self, result: str, health: Health) -> None:
        """Say what has to be known beside the messages that were shown."""
        warn(_explain(result, health))

    def whole(self, here: Here, item: Item) -> None:
        """Print one message with everything known about it."""
        facts = _facts(here, item)
        if self._json:
            write(as_json(item, facts))
            return
        say(_for_people(item, whole=True))
        for name, value in facts.items():
            say(f"  {name}: {one_line(value if isinstance(value, str) else json.dumps(value), 400)}")


def as_json(item: Item, more: dict[str, Any] | None = None) -> bytes:
    """Return one message as a line of JSON; `line` holds the very bytes that were signed, not a re-print of them."""
    about = {
        "id": item.id,
        "from": item.line.sender,
        "to": item.line.recipient,
        "verdict": item.verdict,
        "state": item.state,
        "ts": item.line.ts,
        "age_s": round(max(0.0, time.time() - seconds_of(item.line.ts)), 1),
        "first_seen": item.first_seen,
        "commit": item.commit,
        "flags": list(item.flags),
        **(more or {}),
    }
    start = json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    if item.members is None:
        text = item.line.raw.decode("utf-8", "backslashreplace")
        odd = json.dumps({"why": item.why, "raw": text}, ensure_ascii=True, separators=(",", ":")).encode("ascii")
        return start[:-1] + b"," + odd[1:] + b"\n"
    return start[:-1] + b',"line":' + item.line.raw + b"}\n"


def _for_people(item: Item, *, whole: bool = False) -> str:
    seen = age(max(0.0, time.time() - seconds_of(item.line.ts)))
    head = f"{item.id}  {item.line.type}  {seen} ago"
    members = item.members
    if members is None:
        return f"{styled(head, bold=True)}\n  (cannot be shown: {one_line(item.why)})"
    marks = [one_line(str(members[name])) for name in ("priority", "needs") if name in members]
    marks += [f"re {members['re']}"] if "re" in members else []
    marks += ["ack required"] if members.get("ack_required") else []
    marks += list(item.flags)
    lines = [styled(head, bold=True) + (f"  [{', '.join(marks)}]" if marks else "")]
    if "subject" in members:
        lines.append("  " + one_line(members["subject"]))
    if "body" in members:
        lines.append(block(body_text(members), 1 << 20 if whole else 4000))
    lines += [f"  ref {one_line(ref)}" for ref in members.get("refs", ())]
    return "\n".join(lines)


def _in_one_line(item: Item) -> str:
    if item.members is None:
        return f"{item.id} {item.line.type} (cannot be shown: {one_line(item.why)})"
    subject = f"{one_line(item.members['subject'])}: " if "subject" in item.members else ""
    flags = f" [{','.join(item.flags)}]" if item.flags else ""
    return f"{item.id} {item.line.type}{flags} {subject}{one_line(body_text(item.members, compact=True), 2000)}"


def _facts(here: Here, item: Item) -> dict[str, Any]:
    line = item.line
    pin = here.pin()
    facts: dict[str, Any] = {
        "verdict": item.verdict,
        "state": item.state,
        "first_seen": item.first_seen,
        "commit": item.commit,
        "key": line.key_id,
        "trust": line.trust,
        "head": line.head,
        "prev": line.prev,
        "bytes": len(line.raw) + 1,
    }
    if line.sender in here.config.agents:
        facts["states"] = list(STATES[: STATES.index(item.state) + 1])
    owner = [name for name, keys in pin.names.keys.items() if line.key_id in keys]
    facts["signed_by"] = owner[0] if owner else f"a key of {line.sender} that is no longer active"
    facts["incidents"] = [f"{one.id} {one.code}" for one in concerning(here, [line.channel])]
    return facts


def _health(health: Health) -> dict[str, Any]:
    return {
        "last_fetch_age_s": None if health.age is None else round(health.age, 1),
        "looked": health.looked,
        "incidents": [{"id": one.id, "code": one.code, "scope": one.scope} for one in health.concerning],
        "lost": list(health.lost),
    }


def _explain(result: str, health: Health) -> str:
    if result == "lost-place":
        return "the place was lost; messages may be shown again (ids are stable): " + "; ".join(health.lost)
    if result == "incident":
        told = ", ".join(f"{one.code} in {one.scope} ({one.id})" for one in health.concerning[:5])
        return (
            f"open incidents concern this: {told}; see `wire incidents`, and `wire incidents ack ID` once it was seen"
        )
    if result == "could-not-look":
        return (
            f"nothing new is here, but the last successful fetch was {age(health.age)}"
            f"{' ago' if health.age is not None else ''}, so nobody knows; see `wire status`, or run `wire sync`"
        )
    return f"nothing new; last successful fetch {age(health.age)} ago"
