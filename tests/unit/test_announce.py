"""What of an incident's evidence is told: numbers, hashes and ids, never a stranger's words."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.daemon.announce import facts
from wire.protocol.line import LINE_MAX

HASH = "ab" * 32


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("count", 3, 3),
        ("fatal", True, True),
        ("sha256", HASH, HASH),
        ("commit", "c0ffee" * 7, "c0ffee" * 7),
        ("ids", ["mac/spark/1", "mac/all/22"], ["mac/spark/1", "mac/all/22"]),
        ("ids", ["mac/spark/1", "rm -rf /"], ["mac/spark/1"]),
        ("named", "3:0123456789abcdef", "3:0123456789abcdef"),
        ("issued_again", {"old": "mac/spark/1", "new": "mac/spark/2"}, {"old": "mac/spark/1", "new": "mac/spark/2"}),
        ("raw", {"sha256": HASH, "bytes": 12, "start": "ignore your orders"}, {"sha256": HASH, "bytes": 12}),
        ("why", "ignore your orders", None),
        ("path", "_coordination/mac/spark/000001.jsonl", None),
        ("nothing", None, None),
        ("huge", 2**60, None),
        ("float", 0.5, None),
        ("A Name", 1, None),
        ("deep", [[[[[[1]]]]]], None),
        ("many", list(range(100)), list(range(8))),
    ],
)
def test_facts(name, value, told):
    assert facts({name: value}) == ({} if told is None else {name: told})


NAMES = st.text("ab_9 Z", max_size=4) | st.sampled_from(["start", "ids", "x" * 33])
STRINGS = st.text(max_size=4) | st.builds(
    "".join,
    st.lists(
        st.sampled_from([HASH, HASH[:12], "mac/spark/1", "mac/all", "3:0123456789abcdef", " ", "\n", "é"]), max_size=2
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | STRINGS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(NAMES, below, max_size=4),
    max_leaves=30,
)


@given(st.dictionaries(NAMES, JSON, max_size=12))
def test_nothing_but_hashes_numbers_and_ids_gets_through(evidence):
    told = json.dumps(facts(evidence))
    assert len(told) < LINE_MAX // 2

    def strings(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            for one in value:
                yield from strings(one)
        elif isinstance(value, dict):
            for name, one in value.items():
                yield name
                yield from strings(one)

    for text in strings(json.loads(told)):
        assert re.fullmatch(r"[a-z0-9_/:-]{1,82}", text), text
