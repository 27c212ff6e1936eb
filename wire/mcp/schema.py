"""What a tool takes: one table per tool gives the schema that clients see and the check of what they send.

    PARAMS = {"to": Param("text", required=True, most=64), "timeout": Param("number", most=50)}
    schema(PARAMS)                      the JSON schema
    checked(PARAMS, arguments)          the arguments, or UsageError with reason `bad-arguments`

A client need not obey a schema, so that everything is checked again here. Descriptions are paid for by every agent in
every session: there is one only where the name does not say it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from wire.errors import UsageError

_TYPES: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "body": (str, dict),
    "integer": int,
    "number": (int, float),
    "flag": bool,
    "texts": list,
}
_SAID = {
    "text": "a string",
    "body": "a string or an object",
    "integer": "a whole number",
    "number": "a number",
    "flag": "true or false",
    "texts": "a list of strings",
}


class Param(NamedTuple):
    """One parameter of a tool.

    Attributes:
        kind: `text`, `body` (a text or an object), `integer`, `number`, `flag` or `texts` (a list).
        about: what its name does not say.
        required: whether the tool needs it.
        most: characters of a text, the value of a number, entries of a list; None for what the verb itself bounds.
        choices: the texts that are allowed, where not all are.
    """

    kind: str
    about: str = ""
    required: bool = False
    most: int | None = None
    choices: tuple[str, ...] = ()


Params = Mapping[str, Param]


def schema(params: Params) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments."""
    made: dict[str, Any] = {"type": "object", "properties": {name: _property(one) for name, one in params.items()}}
    required = [name for name, one in params.items() if one.required]
    if required:
        made["required"] = required
    made["additionalProperties"] = False
    return made


def checked(params: Params, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments that a client sent, without those that are null.

    Raises:
        UsageError: reason `bad-arguments`; the text names the argument and what was expected.
    """
    found = {name: value for name, value in (given or {}).items() if value is not None}
    for name in found:
        if name not in params:
            raise _bad(f"unknown argument {name[:64]!r}; known are {', '.join(params) or 'none'}")
    for name, one in params.items():
        if name in found:
            _check(name, one, found[name])
        elif one.required:
            raise _bad(f"the argument {name!r} is missing: {_SAID[one.kind]}")
    return found


def _property(one: Param) -> dict[str, Any]:
    match one.kind:
        case "flag":
            made: dict[str, Any] = {"type": "boolean"}
        case "body":
            # Clients that speak to other models' dialects may not know a list of types.
            made = {"anyOf": [{"type": "string"}, {"type": "object"}]}
        case "texts":
            made = {"type": "array", "items": {"type": "string"}}
            if one.most is not None:
                made["maxItems"] = one.most
        case "text":
            made = {"type": "string"}
            if one.most is not None:
                made["maxLength"] = one.most
        case _:
            made = {"type": one.kind, "minimum": 0}
            if one.most is not None:
                made["maximum"] = one.most
    if one.choices:
        made["enum"] = list(one.choices)
    if one.about:
        made["description"] = one.about
    return made


def _check(name: str, one: Param, value: Any) -> None:
    # In Python a bool is an int; in a schema it is none.
    lawful = isinstance(value, _TYPES[one.kind]) and isinstance(value, bool) == (one.kind == "flag")
    if not lawful or (one.kind == "texts" and not all(isinstance(part, str) for part in value)):
        raise _bad(f"the argument {name!r} is not {_SAID[one.kind]}")
    if one.choices and value not in one.choices:
        raise _bad(f"the argument {name!r} is none of {', '.join(one.choices)}")
    if one.kind in ("integer", "number"):
        # Written so that what is no number at all (NaN) is refused as well.
        if not 0 <= value <= (one.most if one.most is not None else value):
            raise _bad(f"the argument {name!r} is not between 0 and {one.most}")
    elif one.most is not None and len(value) > one.most:
        what = "entries" if one.kind == "texts" else "characters"
        raise _bad(f"the argument {name!r} has {len(value)} {what}; at most {one.most} are allowed")


def _bad(what: str) -> UsageError:
    return UsageError(what, reason="bad-arguments")
