"""How a message looks to a person or a model: as data, with its verified sender, and harmless to a terminal.

What a peer wrote is untrusted text. Control characters, escapes, and characters that reorder or hide text are shown as
codes; newlines only where a body may have them, each continued line behind a mark, so that nothing a peer writes can
look like a header, another message, or an instruction of ours.
"""

import json
import unicodedata
from collections.abc import Mapping
from typing import Any

MARK = "  | "
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_JOINERS = {"\u200d"}
"""The zero-width joiner holds emoji together and reorders nothing."""


def one_line(text: str, limit: int = 200) -> str:
    """Return text without anything that moves, hides or reorders; cut at `limit` characters."""
    shown = "".join(_visible(character) for character in text[: limit + 1])
    return shown if len(text) <= limit else shown[: limit - 1] + "…"


def block(text: str, limit: int = 4000) -> str:
    """Return a body as lines that each begin with a mark; cut at `limit` characters, saying so."""
    cut = text[:limit]
    lines = [MARK + "".join(_visible(character) for character in line) for line in cut.split("\n")]
    if len(text) > limit:
        lines.append(f"{MARK}… {len(text) - limit} more characters; `wire show --json` has all of it")
    return "\n".join(lines)


def body_text(members: Mapping[str, Any], *, compact: bool = False) -> str:
    """Return the body as text; an object as JSON, on one line where that is asked for."""
    body = members.get("body", "")
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, indent=None if compact else 1)


def age(seconds: float | None) -> str:
    """Return a duration for people: `12 s`, `3 min`, `5 h`, `2 d`, or `never`."""
    if seconds is None:
        return "never"
    for limit, unit, size in ((120, "s", 1), (7200, "min", 60), (172800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def _visible(character: str) -> str:
    if character == "\t":
        return "    "
    if unicodedata.category(character) in _HIDDEN and character not in _JOINERS:
        return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
    return character
