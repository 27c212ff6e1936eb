"""JSON that two parsers cannot read differently (PROTOCOL.md, section "Strict JSON").

Refused: anything but one object; duplicate keys; NaN and Infinity; numbers that a double cannot hold; integers
beyond 2^53-1; floats outside `body`; lone surrogates; nesting deeper than 32; bytes that are not UTF-8.
"""

import json
import re
from typing import Any, NoReturn

MAX_DEPTH = 32
MAX_INTEGER = 2**53 - 1


class StrictError(ValueError):
    """The bytes are not strict JSON; `str()` says why, in words that may be shown."""


def loads(data: bytes, *, floats_below: str | None = "body") -> dict[str, Any]:
    """Parse one strict JSON object.

    Args:
        data: UTF-8 bytes whose first byte is `{`.
        floats_below: the one top-level member that may hold floats; None allows them nowhere.

    Raises:
        StrictError: see the module's text.
    """
    if data[:1] != b"{":
        raise StrictError("does not begin with '{'")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StrictError(f"invalid UTF-8 at byte {error.start}") from None
    try:
        try:
            value, end = _WITHOUT_FLOATS.raw_decode(text)
            if end != len(text):
                # Blanks, or more than one value: the whole decoder knows which, and says so.
                value = _WITHOUT_FLOATS.decode(text)
        except _FloatSeenError:
            value = _WITH_FLOATS.decode(text)
            for name, member in value.items():
                if name != floats_below:
                    _refuse_floats(name, member)
    except RecursionError:
        raise StrictError(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise StrictError(f"not JSON: {error.msg} at character {error.pos}") from None
    # Cheap bounds first: most lines have neither this many brackets nor any escape of a surrogate.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise StrictError(_TOO_DEEP)
    if b"\\u" in data:
        _refuse_lone_surrogates(value)
    return value  # type: ignore[no-any-return]  # the decoder returns Any; the first byte made it an object


def dumps(value: object) -> bytes:
    """Return `value` as compact UTF-8 JSON without spaces between tokens.

    Raises:
        StrictError: NaN, Infinity, a string with a lone surrogate, or a value that JSON does not have.
    """
    try:
        return _ENCODER.encode(value).encode("utf-8")
    except UnicodeEncodeError as error:
        raise StrictError(f"a lone surrogate (U+{ord(error.object[error.start]):04X}) in a string") from None
    except RecursionError:
        raise StrictError(_TOO_DEEP) from None
    except (TypeError, ValueError) as error:
        raise StrictError(str(error)) from None


def dumps_members(members: dict[str, Any]) -> bytes:
    """Return an object as `dumps` does, its `body` as it came where it is `Verbatim`; raises StrictError."""
    body = members.get("body")
    if not isinstance(body, Verbatim):
        return dumps(members)
    parts = (
        b'"%s":%s' % (name.encode("ascii"), body.text if value is body else dumps(value))
        for name, value in members.items()
    )
    return b"{%s}" % b",".join(parts)


class Verbatim(dict[str, Any]):
    """An object that is written as the text it came as, but for the whitespace between its tokens.

    What a program sends as `0.00001` or `1.10` is then signed, and shown to its readers, as that: the next printer
    would make `1e-05` and `1.1` of it.

    Args:
        data: one object of strict JSON, which may hold floats.

    Raises:
        StrictError: it is anything else.
    """

    def __init__(self, data: bytes) -> None:
        top = loads(b'{"body":%s}' % data)
        if top.keys() != {"body"} or not isinstance(top["body"], dict):
            raise StrictError("not one JSON object")
        super().__init__(top["body"])
        self.text = re.sub(rb'("(?:[^"\\]|\\.)*")|[ \t\r\n]+', lambda token: token[1] or b"", data)


def text_of(data: bytes, name: str) -> bytes | None:
    """Return the text of one member of a strict JSON object as it stands there, or None when there is no such member.

    Args:
        data: what `loads` accepted.
    """
    text = data.decode("utf-8")
    at = _SPACE.match(text, 1).end()  # type: ignore[union-attr]  # matches everywhere, as the next ones do
    while text[at] != "}":
        found, at = _PLAIN.raw_decode(text, at)
        at = _SPACE.match(text, _SPACE.match(text, at).end() + 1).end()  # type: ignore[union-attr]
        start = at
        _, at = _PLAIN.raw_decode(text, at)
        if found == name:
            return text[start:at].encode("utf-8")
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if text[at] == ",":
            at = _SPACE.match(text, at + 1).end()  # type: ignore[union-attr]
    return None


_PLAIN = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_TOO_DEEP = f"nesting too deep: more than {MAX_DEPTH} levels"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        gone = object()
        twice = next(name for name, _ in pairs if members.pop(name, gone) is gone)
        raise StrictError(f"duplicate key {twice[:64]!r}")
    return members


def _integer(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > MAX_INTEGER:
        raise StrictError(f"integer {digits[:24]} is beyond 2^53-1")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise StrictError(f"number {digits[:24]} is out of range")
    return number


def _constant(name: str) -> NoReturn:
    raise StrictError(f"{name} is not a JSON number")


class _FloatSeenError(Exception):
    """Most lines hold no float: only those that do are parsed again and searched."""


def _float_seen(digits: str) -> NoReturn:
    raise _FloatSeenError


_WITHOUT_FLOATS = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float_seen, parse_constant=_constant
)
_WITH_FLOATS = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _depth(value: object) -> int:
    deepest = 0
    pending = [(value, 1)]
    while pending:
        item, level = pending.pop()
        if isinstance(item, dict):
            pending.extend((member, level + 1) for member in item.values())
        elif isinstance(item, list):
            pending.extend((member, level + 1) for member in item)
        else:
            continue
        deepest = max(deepest, level)
    return deepest


def _refuse_lone_surrogates(value: object) -> None:
    dumps(value)


def _refuse_floats(name: str, value: object) -> None:
    if isinstance(value, float):
        raise StrictError(f"a float in {name[:64]!r}; floats may stand only in the body")
    if isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            _refuse_floats(name, member)
