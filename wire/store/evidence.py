"""Evidence as it is kept: enough to see what happened, and never as large as a stranger likes."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

VALUE_MAX = 4096
"""Bytes, as JSON, of one value."""

_ALL_MAX = 32_768
_NAME_MAX = 128
_START = 40


def bounded(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return evidence as it is kept: each value at most 4 KiB, all at most 32 KiB.

    Bytes become `{"sha256", "bytes", "start"}` with the first 40 bytes in escaped form; a text that is too long is cut
    and says so; what is neither JSON nor bytes becomes text. Members that no longer fit are counted in `omitted`.
    """
    kept: dict[str, Any] = {}
    room = _ALL_MAX
    omitted = 0
    for name, value in evidence.items():
        if len(name) > _NAME_MAX:
            omitted += 1
            continue
        small = _bounded_value(value)
        size = len(json.dumps({name: small})) + 8
        if size > room:
            omitted += 1
            continue
        room -= size
        kept[name] = small
    if omitted:
        kept["omitted"] = omitted
    return kept


def cut(text: str, most: int) -> str:
    """Return a text that is at most `most` bytes as JSON in ASCII."""
    if len(text) <= most // 6 or len(json.dumps(text)) <= most:
        return text
    note = f"… ({len(text)} characters)"
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        if len(json.dumps(text[:middle] + note)) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low] + note


def _bounded_value(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return {"sha256": sha256(data).hexdigest(), "bytes": len(data), "start": repr(data[:_START])[2:-1]}
    if isinstance(value, str):
        return cut(value, VALUE_MAX)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        value = {str(name): _bounded_value(member) for name, member in value.items()}
    elif isinstance(value, list | tuple | set | frozenset):
        value = [_bounded_value(member) for member in (sorted(value) if isinstance(value, set | frozenset) else value)]
    else:
        return cut(str(value), VALUE_MAX)
    text = json.dumps(value)
    return value if len(text) <= VALUE_MAX else cut(text, VALUE_MAX)
