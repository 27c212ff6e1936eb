"""Closing, and opening what was closed; the vectors hold what other writers make."""

from typing import Any

import pytest

from wire.keys import build
from wire.keys.document import parse
from wire.protocol import sealed
from wire.protocol.encoding import Signer, seal_for
from wire.protocol.messages import OPTIONAL
from wire.protocol.strictjson import StrictError, Verbatim

WIRE, CHANNEL = "5" * 32, "mac/spark"
MAC, SPARK = Signer(b"\1" * 32), Signer(b"\2" * 32)
KEYS = {one.key_id: one.public for one in (MAC, SPARK)}
SAID: dict[str, dict[str, Any]] = {
    "all of it": {"subject": "s", "body": "b", "refs": ["r"]},
    "in another order": {"refs": ["r"], "body": {"n": 1.5}, "subject": "s"},
    "a part": {"subject": None, "body": "b", "refs": None},
    "nothing": {},
    "an object to the byte": {"body": Verbatim(b'{"a": 1.10}')},
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_what_is_closed_is_read_by_those_it_is_for(said: dict[str, Any]) -> None:
    enc = sealed.close(said, KEYS, wire=WIRE, channel=CHANNEL)
    check, _ = OPTIONAL["enc"]
    assert check(enc)
    assert sealed.key_ids(enc) == tuple(sorted(KEYS))
    for signer in (MAC, SPARK):
        letter = sealed.opened(enc, signer, wire=WIRE, channel=CHANNEL)
        assert letter.members == {name: value for name, value in said.items() if value is not None}
        assert list(letter.members) == [name for name in ("subject", "body", "refs") if said.get(name) is not None]
    with pytest.raises(sealed.NotForUs):
        sealed.opened(enc, Signer(b"\3" * 32), wire=WIRE, channel=CHANNEL)


def test_the_text_is_the_authors_own() -> None:
    enc = sealed.close(SAID["an object to the byte"], KEYS, wire=WIRE, channel=CHANNEL)
    assert sealed.opened(enc, MAC, wire=WIRE, channel=CHANNEL).text == b'{"body":{"a":1.10}}'


@pytest.mark.parametrize("body", [{"n": float("nan")}, {"n": 2**53}, "\ud800"], ids=["NaN", "2^53", "half a pair"])
def test_what_is_no_strict_json_is_not_closed(body: Any) -> None:
    with pytest.raises(StrictError):
        sealed.close({"body": body}, KEYS, wire=WIRE, channel=CHANNEL)


def test_a_box_opens_for_one_key() -> None:
    box = seal_for(MAC.public, b"k" * 32)
    assert len(box) == sealed.BOX_BYTES
    assert MAC.unseal(box) == b"k" * 32
    assert SPARK.unseal(box) is None
    assert MAC.unseal(box[:-1] + b"\0") in (None, b"k" * 32)


def test_of_a_letter_of_a_later_version_nothing_is_known() -> None:
    later = {"alg": "later", "boxes": {MAC.key_id: ""}}
    assert sealed.key_ids(later) == ()
    with pytest.raises(sealed.SealedError, match="does not know"):
        sealed.opened(later, MAC, wire=WIRE, channel=CHANNEL)


@pytest.mark.parametrize(
    ("policy", "asks"),
    [({}, False), ({"encrypt": "required"}, True), ({"encrypt": "optional"}, False), ({"encrypt": True}, False)],
)
def test_the_policy_of_a_trust_version(policy: dict[str, Any], asks: bool) -> None:
    created = "2026-11-29T11:20:00.123Z"
    raw = build.found(roots=[MAC.public], nonce="0" * 32, created=created, policy=policy)
    assert parse(raw).asks_for_sealing is asks
