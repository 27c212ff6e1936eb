"""Closed letters: whatever is said comes out as it went in, for every holder of a key and for nobody else; and nothing
that somebody changed in one opens as anything but what its author closed."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import second_sealed
from wire.protocol import sealed
from wire.protocol.encoding import Signer, b64
from wire.protocol.messages import OPTIONAL, check_content

WIRE, CHANNEL = "5" * 32, "mac/spark"
SEEDS = [bytes([number]) * 32 for number in range(1, 5)]
SIGNERS = [Signer(seed) for seed in SEEDS]

LEAVES = st.none() | st.booleans() | st.integers(1 - 2**53, 2**53 - 1) | st.text(max_size=20)
LEAVES |= st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(LEAVES, lambda more: st.lists(more, max_size=3) | st.dictionaries(st.text(), more, max_size=3))
SAID = st.fixed_dictionaries(
    {},
    optional={
        "subject": st.text(max_size=200),
        "body": st.text(max_size=200) | st.dictionaries(st.text(), VALUES, max_size=3),
        "refs": st.lists(st.text(max_size=40), max_size=5),
    },
)
READERS = st.sets(st.integers(0, 3), min_size=1)


def closed(said: dict[str, Any], readers: set[int]) -> dict[str, Any]:
    keys = {SIGNERS[one].key_id: SIGNERS[one].public for one in readers}
    return sealed.close(said, keys, wire=WIRE, channel=CHANNEL)


@given(SAID, READERS)
def test_what_is_closed_opens_for_its_readers_alone(said: dict[str, Any], readers: set[int]) -> None:
    enc = closed(said, readers)
    assert check_content("spark", "message", {"enc": enc}) is None
    assert set(sealed.key_ids(enc)) == {SIGNERS[one].key_id for one in readers}
    shown = json.dumps(enc)
    for name, value in said.items():
        text = json.dumps(value)
        assert len(text) < 12 or text[1:-1] not in shown, name
    for number, signer in enumerate(SIGNERS):
        found = second_sealed.opened(enc, SEEDS[number], signer.key_id, WIRE, CHANNEL)
        if number in readers:
            letter = sealed.opened(enc, signer, wire=WIRE, channel=CHANNEL)
            assert json.dumps(letter.members) == json.dumps({name: said[name] for name in OPTIONAL if name in said})
            assert found == ("opened", letter.members)
        else:
            with pytest.raises(sealed.NotForUs):
                sealed.opened(enc, signer, wire=WIRE, channel=CHANNEL)
            assert found == ("other-keys", None)


def test_no_two_letters_are_alike() -> None:
    one, other = closed({"body": "x"}, {0}), closed({"body": "x"}, {0})
    assert one["commit"] != other["commit"]
    assert one["data"][:32] != other["data"][:32]
    assert one["boxes"] != other["boxes"]


def flipped(text: str, at: int, bit: int) -> str:
    import base64

    data = bytearray(base64.b64decode(text))
    data[at % len(data)] ^= 1 << bit
    return b64(bytes(data))


TEXTS = ("boxes", "data")


@given(SAID, st.sampled_from([*TEXTS, "commit"]), st.integers(0, 10_000), st.integers(0, 7))
def test_a_changed_letter_opens_for_nobody_it_was_changed_for(
    said: dict[str, Any], what: str, at: int, bit: int
) -> None:
    enc = closed(said, {0, 1})
    changed = copy.deepcopy(enc)
    if what == "boxes":
        changed["boxes"][SIGNERS[0].key_id] = flipped(enc["boxes"][SIGNERS[0].key_id], at, bit)
    elif what == "data":
        changed["data"] = flipped(enc["data"], at, bit)
    else:
        digits = bytearray.fromhex(enc["commit"])
        digits[at % 32] ^= 1 << bit
        changed["commit"] = digits.hex()
    # The top bit of an X25519 key says nothing; the box's nonce hashes it all the same, so that it does not open.
    with pytest.raises(sealed.SealedError):
        sealed.opened(changed, SIGNERS[0], wire=WIRE, channel=CHANNEL)
    if what == "boxes":
        assert sealed.opened(changed, SIGNERS[1], wire=WIRE, channel=CHANNEL).members.keys() == said.keys()


@given(SAID, st.integers(0, 10_000))
def test_a_cut_letter_opens_for_nobody(said: dict[str, Any], at: int) -> None:
    import base64

    enc = closed(said, {0})
    data = base64.b64decode(enc["data"])
    cut = b64(data[: max(42, at % len(data))]) if len(data) > 42 else b64(bytes(42))
    if cut == enc["data"]:
        return
    with pytest.raises(sealed.SealedError):
        sealed.opened({**enc, "data": cut}, SIGNERS[0], wire=WIRE, channel=CHANNEL)


JUNK = st.recursive(
    LEAVES | st.binary(max_size=60).map(b64),
    lambda more: st.lists(more, max_size=3) | st.dictionaries(st.text(max_size=32), more, max_size=4),
)


@given(st.dictionaries(st.sampled_from(["commit", "boxes", "data", "x"]), JUNK), JUNK)
def test_no_junk_makes_anything_but_a_refusal(more: dict[str, Any], alg: Any) -> None:
    for enc in ({**more, "alg": alg}, {**more, "alg": "x25519-xchacha20poly1305"}):
        check, _ = OPTIONAL["enc"]
        assert check(enc) is second_sealed.is_lawful(enc)
        if check(enc):
            with pytest.raises(sealed.SealedError):
                sealed.opened(enc, SIGNERS[0], wire=WIRE, channel=CHANNEL)
