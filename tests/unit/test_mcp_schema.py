"""What a tool takes: the schema that clients see and the check of what they send say the same."""

from typing import Any

import jsonschema
import pytest

from wire.errors import UsageError
from wire.mcp.schema import Param, checked, schema
from wire.mcp.tools import TOOLS

PARAMS = {
    "to": Param("text", required=True, most=5),
    "body": Param("body"),
    "limit": Param("integer", most=10),
    "timeout": Param("number", most=50),
    "full": Param("flag"),
    "ids": Param("texts", most=2),
    "state": Param("text", choices=("idle", "busy")),
}
LAWFUL: dict[str, dict[str, Any]] = {
    "the least": {"to": "spark"},
    "everything": {
        "to": "a", "body": {"x": [1]}, "limit": 10, "timeout": 0.5, "full": True, "ids": ["x", "y"], "state": "idle",
    },
    "a body of text": {"to": "a", "body": ""},
    "numbers at their ends": {"to": "a", "limit": 0, "timeout": 50},
}  # fmt: skip
UNLAWFUL: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "'to' is missing"),
    "an unknown one": ({"to": "a", "sig": "x"}, "unknown argument 'sig'"),
    "a number for a text": ({"to": 5}, "'to' is not a string"),
    "a list for a text": ({"to": ["a"]}, "'to' is not a string"),
    "too long": ({"to": "sparks"}, "'to' has 6 characters"),
    "a list for a body": ({"to": "a", "body": []}, "'body' is not a string or an object"),
    "a flag for a number": ({"to": "a", "limit": True}, "'limit' is not a whole number"),
    "a fraction": ({"to": "a", "limit": 1.5}, "'limit' is not a whole number"),
    "too much": ({"to": "a", "limit": 11}, "'limit' is not between 0 and 10"),
    "too little": ({"to": "a", "timeout": -1}, "'timeout' is not between 0 and 50"),
    "a number for a flag": ({"to": "a", "full": 1}, "'full' is not true or false"),
    "too many": ({"to": "a", "ids": ["x", "y", "z"]}, "'ids' has 3 entries"),
    "numbers in a list": ({"to": "a", "ids": [1]}, "'ids' is not a list of strings"),
    "none of the choices": ({"to": "a", "state": "gone"}, "'state' is none of idle, busy"),
}


@pytest.mark.parametrize("given", LAWFUL.values(), ids=LAWFUL)
def test_what_the_schema_allows_is_taken(given: dict[str, Any]) -> None:
    jsonschema.validate(given, schema(PARAMS))
    assert checked(PARAMS, given) == given


@pytest.mark.parametrize(("given", "why"), UNLAWFUL.values(), ids=UNLAWFUL)
def test_what_it_does_not_is_refused_with_the_argument(given: dict[str, Any], why: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(given, schema(PARAMS))
    with pytest.raises(UsageError, match=why) as caught:
        checked(PARAMS, given)
    assert caught.value.reason == "bad-arguments"


def test_null_is_the_same_as_absent() -> None:
    assert checked(PARAMS, {"to": "a", "limit": None}) == {"to": "a"}
    assert checked({}, None) == {}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused(value: float) -> None:
    """JSON has none of these; a lenient parser may let them through."""
    with pytest.raises(UsageError):
        checked(PARAMS, {"to": "a", "timeout": value})


@pytest.mark.parametrize("name", TOOLS)
def test_every_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(TOOLS[name].params))
