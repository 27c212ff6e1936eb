"""How messages are printed: for people, one line per message in pipes, or JSON with the signed bytes."""

import json
from collections.abc import Sequence
from typing import Any

from wire.cli.console import is_terminal, say, say_json, styled, warn, write
from wire.errors import Busy, StoreError
from wire.verbs.health import Health, concerning
from wire.verbs.here import Here
from wire.verbs.look import Item
from wire.verbs.render import CARD_CHARACTERS, WHOLE, age_of, card, cards, excerpt, line, one_line
from wire.verbs.states import STATES

MANY_CHARACTERS = 20_000
"""How much of several messages is printed at once where more can be asked for: some 5,000 tokens."""


class Printer:
    """Prints messages in the form that fits the other side.

    Args:
        agent: for whom is read, which an empty answer names.
    """

    def __init__(self, as_json: bool, agent: str = "") -> None:
        self._json = as_json
        self._agent = agent
        self._terminal = is_terminal()

    def item(self, item: Item) -> None:
        """Print one message."""
        if self._json:
            write(as_json(item))
        elif self._terminal:
            self._card(item, CARD_CHARACTERS)
        else:
            say(line(item))

    def card(self, item: Item) -> None:
        """Print one message with its whole text, in the readable form wherever it goes."""
        if self._json:
            write(as_json(item))
        else:
            self._card(item, WHOLE)

    def several(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """Print the first of some messages in the readable form, no more than an agent can take in; return those."""
        if self._json:
            for item in items:
                write(as_json(item))
            return tuple(items)
        found = cards(items, MANY_CHARACTERS)
        for _, text in found:
            head, _, rest = text.partition("\n")
            say(f"{styled(head, bold=True)}\n{rest}\n")
        return tuple(item for item, _ in found)

    def match(self, item: Item, texts: Sequence[str]) -> None:
        """Print one message that a search found, with the part of its text that shows why."""
        if self._json:
            write(as_json(item))
        else:
            say(excerpt(item, texts))

    def nothing(self, result: str, health: Health) -> None:
        """Say that nothing was shown, and how far that can be trusted."""
        if self._json:
            say_json({"result": result, **({"agent": self._agent} if self._agent else {}), **health_json(health)})
        else:
            warn(_explain(result, health, f" for {self._agent}" if self._agent else ""))

    def beside(self, result: str, health: Health) -> None:
        """Say what has to be known beside the messages that were shown; nothing where all is well.

        An incident and a lost place are told to programs by the exit status; an old look has none of its own.
        """
        if result == "shown" and health.looked:
            return
        if self._json and result == "shown":
            say_json({"result": result, **health_json(health)})
        warn(_explain(result, health))

    def shared(self, warning: str | None) -> None:
        """Say that another live process reads from the same place, if one does."""
        if warning is None:
            return
        if self._json:
            say_json({"warning": "shared-reader", "text": warning})
        warn(warning)

    def whole(self, here: Here, item: Item) -> None:
        """Print one message with everything known about it."""
        facts = _facts(here, item)
        if self._json:
            facts.pop("told", None)
            write(as_json(item, facts))
            return
        self._card(item, WHOLE)
        for shown_above in ("recipients", "states"):
            facts.pop(shown_above, None)
        for text in facts.pop("told", ()):
            say(f"  {text}")
        facts["bytes"] = f"{facts['bytes']}, the line that was signed"
        facts["incidents"] = ", ".join(facts["incidents"]) or "none"
        for name, value in facts.items():
            text = value if isinstance(value, str) else json.dumps(value)
            if text:
                say(f"  {name.replace('_', ' ')}: {one_line(text, 400)}")

    def _card(self, item: Item, limit: int) -> None:
        head, _, rest = card(item, limit).partition("\n")
        say(f"{styled(head, bold=True)}\n{rest}")


def as_json(item: Item, more: dict[str, Any] | None = None) -> bytes:
    """Return one message as a line of JSON; `line` holds the very bytes that were signed, not a re-print of them."""
    about = {
        "id": item.id,
        "from": item.line.sender,
        "to": item.line.recipient,
        "verdict": item.verdict,
        "state": item.state,
        "ts": item.line.ts,
        "age_s": round(age_of(item), 1),
        "first_seen": item.first_seen,
        "commit": item.commit,
        "flags": list(item.flags),
        **_sealed_json(item),
        **(more or {}),
    }
    start = json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    if item.members is None:
        text = item.line.raw.decode("utf-8", "backslashreplace")
        odd = json.dumps({"why": item.why, "raw": text}, ensure_ascii=True, separators=(",", ":")).encode("ascii")
        return start[:-1] + b"," + odd[1:] + b"\n"
    if item.sealed is not None and item.sealed.opened:
        # Next to the signed bytes, to the byte as its author closed it.
        start = start[:-1] + b',"opened":' + item.sealed.text + b"}"
    return start[:-1] + b',"line":' + item.line.raw + b"}\n"


def _sealed_json(item: Item) -> dict[str, Any]:
    """Return for programs what is known of a closed letter; nothing for an open one."""
    sealed = item.sealed
    if sealed is None:
        return {}
    told: dict[str, Any] = {"opened": sealed.opened, "readers": list(sealed.readers), "strange_keys": sealed.strange}
    return {"sealed": {**told, "why": sealed.why} if sealed.why else told}


def _facts(here: Here, item: Item) -> dict[str, Any]:
    from wire.store import allowed  # for one message at a time

    line, pin = item.line, here.pin()
    facts: dict[str, Any] = {
        "verdict": item.verdict,
        "state": item.state,
        "first_seen": item.first_seen,
        "commit": item.commit,
        "key": line.key_id,
        "trust": line.trust,
        "head": line.head,
        "prev": line.prev,
        "bytes": len(line.raw),
    }
    if line.sender in here.config.agents:
        facts |= _receipts(here, item)
        if (let := allowed.of(here.places, line.id, line.head)) is not None:
            facts["allowed_secret"] = {"reason": let.reason, "found": let.found}
    owner = [name for name, keys in pin.names.keys.items() if line.key_id in keys]
    facts["signed_by"] = owner[0] if owner else f"a key of {line.sender} that is no longer active"
    facts["incidents"] = [f"{one.id} {one.code}" for one in concerning(here, [line.channel])]
    return facts


def _receipts(here: Here, item: Item) -> dict[str, Any]:
    """Return how far a message of ours came to each recipient, and (`told`) the same for people."""
    from wire.cli.receipts import recipient_json, recipient_line  # for our own messages alone
    from wire.verbs import receipts

    try:
        traced = receipts.trace(here, item.id)
    except (StoreError, Busy) as error:
        states = STATES[: STATES.index(item.state) + 1]
        return {"states": list(states), "recipients": None, "told": [f"recipients: {one_line(error.message, 400)}"]}
    return {
        "state": traced.state,
        "states": list(STATES[: STATES.index(traced.state) + 1]),
        "recipients": {who.agent: recipient_json(who) for who in traced.recipients},
        "told": [recipient_line(who) for who in traced.recipients],
    }


def health_json(health: Health) -> dict[str, Any]:
    """Return for programs how far a reading can be trusted."""
    return {
        "last_fetch_age_s": None if health.age is None else round(health.age, 1),
        "looked": health.looked,
        "degraded": health.degraded,
        "reason": health.reason,
        "daemon": health.daemon,
        "incidents": [{"id": one.id, "code": one.code, "scope": one.scope} for one in health.concerning],
        "lost": list(health.lost),
    }


def _explain(result: str, health: Health, whom: str = "") -> str:
    if result == "lost-place":
        return "the place was lost; messages may be shown again (ids are stable): " + "; ".join(health.lost)
    if result == "incident":
        told = ", ".join(f"{one.code} in {one.scope} ({one.id})" for one in health.concerning[:5])
        return (
            f"open incidents concern this: {told}; see `wire incidents`, and `wire incidents ack ID` once it was seen"
        )
    if result == "could-not-look":
        more = "" if health.daemon or health.reason == "no-daemon" else " (no daemon is running here)"
        return f"nothing new is here{whom}, but nobody knows: {health.sentence()}{more}"
    if result == "shown":
        return f"there may be more: {health.sentence()}"
    said = {"timeout": "nothing came in time", "no-match": "no message here holds that"}.get(result, "nothing new")
    return f"{said}{whom}; {health.sentence()}"
