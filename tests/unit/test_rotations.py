"""Rotations: what an owner writes when it changes its key, and what everybody else refuses."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.trusts import NOW, begun, enrolled, signed, signer
from support.trusts import ROOT as ROOT_KEY
from wire.errors import IdentityError, TrustError
from wire.keys import keychange, keyfile, requests, rotations
from wire.keys.trust import enroll, give_key, prove, retire
from wire.protocol import strictjson
from wire.protocol.encoding import LINE_TYPE, ROTATION_TYPE, b64, fingerprint

OLD, NEW, EVE = signer("spark"), signer("spark-2"), signer("eve")
CHAIN = enrolled(begun(), "spark", OLD)
WIRE = CHAIN.wire
HEAD = "0123456789abcdef" * 4
POSITIONS = {"spark/mac": (7, HEAD)}
RAW = rotations.make(OLD, NEW, wire=WIRE, name="spark", role="agent", positions=POSITIONS, created=NOW)
FILE = requests.file_name("spark", NEW.key_id)


def _read(raw: bytes, wire: str = WIRE, file_name: str = FILE) -> rotations.Rotation:
    return rotations.parse(raw, wire=wire, file_name=file_name)


def test_a_rotation_is_read_as_it_was_made() -> None:
    one = _read(RAW)
    assert (one.name, one.role, one.public, one.created) == ("spark", "agent", NEW.public, NOW)
    assert (one.replaces, dict(one.positions), one.key_id) == (OLD.key_id, POSITIONS, NEW.key_id)
    assert (one.fingerprint, one.raw) == (fingerprint(NEW.public), RAW)
    assert one.closed_by(OLD.public)
    assert not one.closed_by(NEW.public)
    assert not one.closed_by(EVE.public)


def test_a_rotation_is_made_of_two_signatures_and_is_never_one_that_is_refused() -> None:
    given = {"wire": WIRE, "name": "spark", "role": "agent", "created": NOW}
    assert rotations.make(OLD, NEW, positions=POSITIONS, **given) == RAW
    ends = {"spark/zoe": (2**53 - 1, HEAD), "spark/all": (1, HEAD)}
    raw = rotations.make(OLD, NEW, positions=ends, **given)
    assert raw.index(b"spark/all") < raw.index(b"spark/zoe")
    assert _read(raw).positions == ends
    for positions in ({"spark/mac": (0, HEAD)}, {"spark/mac": (2**53, HEAD)}, {"mac/spark": (1, HEAD)}):
        with pytest.raises((TrustError, strictjson.StrictError)):
            rotations.make(OLD, NEW, positions=positions, **given)
    assert rotations.ROTATION_MAX == 524_288
    with pytest.raises(TrustError, match="a rotation of"):
        _read(b" " * (rotations.ROTATION_MAX + 1))


def test_it_is_enough_for_the_next_trust_version() -> None:
    one = _read(RAW)
    raw = retire(
        CHAIN.newest, WIRE, name="spark", key_id=one.replaces, status="retired", positions=one.positions, created=NOW,
        replacement=(one.public, one.proof),
    )  # fmt: skip
    after = CHAIN.extend(raw, signed(raw, ROOT_KEY)).newest.agents["spark"]
    assert after.active_key is not None
    assert after.active_key.id == NEW.key_id
    old = after.key(OLD.key_id)
    assert old is not None
    assert old.covers("spark/mac", 7, HEAD)
    assert not old.covers("spark/mac", 8, HEAD)


def _resigned(**change: object) -> bytes:
    """A rotation that says something else, and is signed by both keys as it stands."""
    fields = {**json.loads(RAW), **change}
    signed_part = {name: value for name, value in fields.items() if name not in ("closed", "opened")}
    payload = strictjson.dumps(signed_part)
    both = {"closed": b64(OLD.sign(ROTATION_TYPE, payload)), "opened": b64(NEW.sign(ROTATION_TYPE, payload))}
    return strictjson.dumps({**signed_part, **both}) + b"\n"


def _with(**change: object) -> bytes:
    return strictjson.dumps({**json.loads(RAW), **change}) + b"\n"


REFUSED = {
    "empty": (b"", "request-malformed"),
    "too long": (b" " * (rotations.ROTATION_MAX + 1), "request-malformed"),
    "no newline": (RAW[:-1], "request-malformed"),
    "a space": (RAW.replace(b'"v":1', b'"v": 1'), "request-malformed"),
    "another version": (_with(v=2), "request-malformed"),
    "a request to join": (
        requests.make(NEW, wire=WIRE, name="spark", role="agent", created=NOW),
        "request-malformed",
    ),
    "positions are a list": (_resigned(positions=[]), "request-malformed"),
    "a position is a number": (_resigned(positions={"spark/mac": 7}), "position-invalid"),
    "a position is true": (_resigned(positions={"spark/mac": [True, HEAD]}), "position-invalid"),
    "a position of nothing": (_resigned(positions={"spark/mac": [0, HEAD]}), "position-invalid"),
    "a head that is none": (_resigned(positions={"spark/mac": [7, "0123"]}), "position-invalid"),
    "another agent's channel": (_resigned(positions={"mac/spark": [7, HEAD]}), "position-invalid"),
    "a channel that is none": (_resigned(positions={"spark/..": [7, HEAD]}), "position-invalid"),
    "a name that is none": (_resigned(name="../spark"), "name-invalid"),
    "a role that is none": (_resigned(role="root"), "request-malformed"),
    "another role than the proof": (_resigned(role="human"), "proof-invalid"),
    "a time that is none": (_resigned(created="yesterday"), "request-malformed"),
    "another wire": (_resigned(wire="0" * 32), "wrong-wire"),
    "it replaces itself": (_resigned(replaces=NEW.key_id), "key-invalid"),
    "a key that is no point": (_resigned(public=b64(bytes(32))), "key-invalid"),
    "the proof of another key": (
        _resigned(proof=b64(prove(EVE, wire=WIRE, name="spark", role="agent"))),
        "proof-invalid",
    ),
    "not signed by the new key": (_with(opened=b64(EVE.sign(ROTATION_TYPE, b"{}"))), "closing-invalid"),
    "a later position, not signed": (_with(positions={"spark/mac": [9, HEAD]}), "closing-invalid"),
    "another time, not signed": (_with(created="2026-11-29T11:20:01.000Z"), "closing-invalid"),
}


@pytest.mark.parametrize(("raw", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(TrustError) as caught:
        _read(raw)
    assert caught.value.reason == reason


def test_a_file_of_another_name_is_refused() -> None:
    with pytest.raises(TrustError) as caught:
        _read(RAW, file_name=requests.file_name("spark", OLD.key_id))
    assert caught.value.reason == "request-misplaced"


def test_only_the_key_that_is_replaced_can_agree() -> None:
    payload = RAW[: RAW.rindex(b',"closed":"')] + b"}"
    one = _read(_with(closed=b64(EVE.sign(ROTATION_TYPE, payload))))
    assert not one.closed_by(EVE.public)
    with pytest.raises(TrustError, match="the rotation of 'spark' stands in 'x'"):
        _read(RAW, file_name="x")


def test_the_old_key_agrees_to_exactly_this() -> None:
    # Signed by the new key alone, or for another use: nobody takes it for the owner's.
    fields = json.loads(RAW)
    payload = strictjson.dumps({name: fields[name] for name in fields if name not in ("closed", "opened")})
    for closed in (EVE.sign(ROTATION_TYPE, payload), OLD.sign(LINE_TYPE, payload), OLD.sign(ROTATION_TYPE, b"{}")):
        assert not _read(_with(closed=b64(closed))).closed_by(OLD.public)


@given(st.binary(max_size=300), st.integers(0, len(RAW) - 1))
def test_no_bytes_break_the_reader(junk: bytes, at: int) -> None:
    for raw in (junk, RAW[:at] + junk + RAW[at:], RAW[:at]):
        try:
            one = _read(raw)
        except TrustError:
            continue
        assert raw == RAW == one.raw


def test_a_name_gets_a_key_again_only_when_it_has_none() -> None:
    proof = prove(NEW, wire=WIRE, name="spark", role="agent")
    given_key = {"name": "spark", "public": NEW.public, "proof": proof, "created": NOW}
    with pytest.raises(TrustError) as caught:
        give_key(CHAIN.newest, WIRE, **given_key)
    assert caught.value.reason == "name-has-key"
    gone = {"name": "spark", "key_id": OLD.key_id, "status": "revoked", "positions": POSITIONS, "created": NOW}
    raw = retire(CHAIN.newest, WIRE, **gone)
    lost = CHAIN.extend(raw, signed(raw, ROOT_KEY))
    raw = give_key(lost.newest, WIRE, **given_key)
    assert lost.extend(raw, signed(raw, ROOT_KEY)).newest.agents["spark"].active_key is not None
    raw = retire(CHAIN.newest, WIRE, **gone, remove=True)
    left = CHAIN.extend(raw, signed(raw, ROOT_KEY))
    assert left.newest.agents["spark"].status == "removed"
    with pytest.raises(TrustError) as caught:
        give_key(left.newest, WIRE, **given_key)
    assert caught.value.reason == "name-removed"
    with pytest.raises(TrustError) as caught:
        enroll(left.newest, WIRE, name="spark", role="agent", public=NEW.public, proof=proof, created=NOW)
    assert caught.value.reason == "name-taken"


# The files of the keys


def test_the_fresh_key_takes_the_place_of_the_old_one(tmp_path) -> None:
    path = keyfile.key_path(str(tmp_path / "keys"), wire=WIRE, kind="agent", name="spark")
    old = keyfile.create(path, name="spark", kind="agent", wire=WIRE)
    new = keychange.change(path, name="spark", wire=WIRE)
    assert keyfile.read(path).signer.key_id == new.key_id != old.key_id
    assert set(keychange.former(path, name="spark", wire=WIRE)) == {old.key_id}
    third = keychange.change(path, name="spark", wire=WIRE)
    assert set(keychange.former(path, name="spark", wire=WIRE)) == {old.key_id, new.key_id}
    assert third.key_id not in (old.key_id, new.key_id)
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "keys").rglob("*.key")} == {0o600}
    # One that cannot be read, or is called after another key, is no key of ours.
    loose = tmp_path / "keys" / WIRE / f"agent-spark.{old.key_id}.key"
    misnamed = tmp_path / "keys" / WIRE / f"agent-spark.{'0' * 32}.key"
    misnamed.write_bytes(loose.read_bytes())
    misnamed.chmod(0o600)
    loose.chmod(0o644)
    assert set(keychange.former(path, name="spark", wire=WIRE)) == {new.key_id}


def test_a_copy_that_cannot_be_made_leaves_the_old_key_in_its_place(tmp_path) -> None:
    path = keyfile.key_path(str(tmp_path / "keys"), wire=WIRE, kind="agent", name="spark")
    keyfile.create(path, name="spark", kind="agent", wire=WIRE)
    there = Path(path).read_bytes()
    for change, source, to in (
        (keyfile.keep_copy, f"{path}.absent", f"{path}.copy"),
        (keyfile.keep_copy, path, str(tmp_path / "absent" / "copy")),
        (keyfile.move, f"{path}.absent", path),
        (keyfile.move, path, str(tmp_path / "absent" / "moved")),
    ):
        with pytest.raises(IdentityError) as caught:
            change(source, to)
        assert (caught.value.reason, caught.value.details) == ("key-unwritable", {"path": to})
        assert Path(path).read_bytes() == there
    # A copy that is there already holds the same key; nothing is written over it.
    keyfile.keep_copy(path, f"{path}.copy")
    keyfile.keep_copy(path, f"{path}.copy")
    assert Path(f"{path}.copy").read_bytes() == there


@pytest.mark.parametrize("step", ["keep_copy", "move"])
def test_a_kill_while_keys_are_changed(tmp_path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    path = keyfile.key_path(str(tmp_path / "keys"), wire=WIRE, kind="agent", name="spark")
    old = keyfile.create(path, name="spark", kind="agent", wire=WIRE)

    def killed(*_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(keyfile, step, killed)
        with pytest.raises(KeyboardInterrupt):
            keychange.change(path, name="spark", wire=WIRE)
    assert keyfile.read(path).signer.key_id == old.key_id
    waiting = keyfile.read(path.removesuffix(".key") + ".next.key").signer
    assert keychange.change(path, name="spark", wire=WIRE).key_id == waiting.key_id
    assert set(keychange.former(path, name="spark", wire=WIRE)) == {old.key_id}


def test_without_a_key_there_is_nothing_to_change(tmp_path) -> None:
    path = keyfile.key_path(str(tmp_path / "keys"), wire=WIRE, kind="agent", name="spark")
    with pytest.raises(IdentityError):
        keychange.change(path, name="spark", wire=WIRE)
    assert keychange.former(path, name="spark", wire=WIRE) == {}
