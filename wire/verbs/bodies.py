"""What an object in a message's body says, for people: one member a line, or behind each other; an incident in words.

    spoken("message", {"build": "green", "tests": 412}, compact=True)      build: green; tests: 412

A string that could be taken for something else stands in quotes, as JSON has it, so that two different objects never
look the same. All of it is a peer's text, and whoever prints it marks and bounds it (see `wire.verbs.render`).
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from wire.store.incident_codes import CODES

_PLAIN = re.compile(r"(?!(?:true|false|null)\Z)[^\W\d][\w ,./@#+()!?'%&=-]{0,399}(?<! )\Z")
"""Words and names, which nobody takes for a number, for another member or for the end of one."""


def spoken(kind: str, body: Mapping[str, Any], *, compact: bool = False) -> str:
    """Return an object for people.

    Args:
        kind: the message's type.
        compact: on one line.
    """
    parts = _incident(body, compact=compact) if kind == "incident" else None
    parts = parts or [f"{_text(name)}: {_text(value)}" for name, value in body.items()] or ["{}"]
    return ("; " if compact else "\n").join(parts)


def _incident(body: Mapping[str, Any], *, compact: bool) -> list[str] | None:
    """Return what another machine says that it saw; None for a body that daemons do not write."""
    code, scope, count = body.get("code"), body.get("scope"), body.get("count", 1)
    if not isinstance(code, str) or code not in CODES or not isinstance(scope, str) or not isinstance(count, int):
        return None
    where = "this wire" if scope == "wire" else _text(scope)
    times = [f"{name} {_text(body[name])}" for name in ("first", "last") if name in body]
    seen = f"seen at {_text(body['last'])}" if count == 1 and "last" in body else f"seen {count} time(s)"
    told = [f"{code} in {where}: {CODES[code].title}", ", ".join([seen, *(times if count != 1 else ())])]
    rest = body.keys() - {"code", "scope", "count", "first", "last"}
    return told if compact else told + [f"{_text(name)}: {_text(body[name])}" for name in body if name in rest]


def _text(value: Any) -> str:
    """Return a name or a value: a plain word as it stands, all else as JSON."""
    if isinstance(value, str) and (_PLAIN.match(value) or re.fullmatch(r"[\d-]{10}T[\d:.]{5,15}Z", value)):
        return value
    return json.dumps(value, ensure_ascii=False)
