"""Requests to join: what a newcomer writes, and what everybody else refuses."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.trusts import NOW, ROOT, begun, enrolled, signed, signer
from wire.errors import TrustError
from wire.keys import requests
from wire.keys.trust import enroll, prove
from wire.protocol import strictjson
from wire.protocol.encoding import LINE_TYPE, b64, fingerprint

CHAIN = begun()
WIRE = CHAIN.wire
SPARK = signer("spark")
RAW = requests.make(SPARK, wire=WIRE, name="spark", role="agent", created=NOW)
FILE = requests.file_name("spark", SPARK.key_id)


def test_a_request_is_read_as_it_was_made() -> None:
    request = requests.parse(RAW, wire=WIRE, file_name=FILE)
    assert (request.name, request.role, request.public, request.created) == ("spark", "agent", SPARK.public, NOW)
    assert (request.key_id, request.fingerprint) == (SPARK.key_id, fingerprint(SPARK.public))
    assert request.raw == RAW
    assert request.proof == prove(SPARK, wire=WIRE, name="spark", role="agent")


def test_the_form_is_fixed() -> None:
    proof = b64(prove(SPARK, wire=WIRE, name="spark", role="agent"))
    assert requests.file_name("spark", SPARK.key_id) == f"spark.{SPARK.key_id}.json"
    assert requests.make(SPARK, wire=WIRE, name="spark", role="agent", created=NOW) == RAW
    invited = requests.make(SPARK, wire=WIRE, name="spark", role="agent", created=NOW, mac=bytes(range(32)))
    assert invited == RAW.replace(b"}", b',"mac":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}')
    assert requests.parse(invited, wire=WIRE, file_name=FILE).mac == bytes(range(32))
    assert requests.parse(RAW, wire=WIRE, file_name=FILE).mac is None
    assert RAW.decode() == (
        f'{{"v":1,"wire":"{WIRE}","name":"spark","role":"agent","public":"{b64(SPARK.public)}",'
        f'"created":"{NOW}","proof":"{proof}"}}\n'
    )


def test_a_request_is_enough_to_be_enrolled() -> None:
    request = requests.parse(RAW, wire=WIRE, file_name=FILE)
    raw = enroll(
        CHAIN.newest, WIRE, name=request.name, role=request.role, public=request.public, proof=request.proof,
        created=NOW,
    )  # fmt: skip
    chain = CHAIN.extend(raw, signed(raw, ROOT))
    assert chain == enrolled(CHAIN, "spark", SPARK)


def _with(**change: object) -> bytes:
    return strictjson.dumps({**json.loads(RAW), **change}) + b"\n"


def _without(member: str) -> bytes:
    fields = json.loads(RAW)
    del fields[member]
    return strictjson.dumps(fields) + b"\n"


EVE = signer("eve")
REFUSED: list[tuple[str, bytes, str, str]] = [
    ("nothing", b"", FILE, "request-malformed"),
    ("not JSON", b"{spark}", FILE, "request-malformed"),
    ("a key twice", RAW.replace(b'"v":1', b'"v":1,"v":1'), FILE, "request-malformed"),
    ("4097 bytes", RAW + b" " * (4097 - len(RAW)), FILE, "request-malformed"),
    ("no newline", RAW[:-1], FILE, "request-malformed"),
    ("two newlines", RAW + b"\n", FILE, "request-malformed"),
    ("a space", RAW.replace(b":", b": ", 1), FILE, "request-malformed"),
    ("an escaped letter", RAW.replace(b"agent", b"\\u0061gent"), FILE, "request-malformed"),
    ("an unknown member", _with(extra=1), FILE, "request-malformed"),
    ("a member is lacking", _without("created"), FILE, "request-malformed"),
    (
        "members in another order",
        strictjson.dumps(dict(reversed(json.loads(RAW).items()))) + b"\n",
        FILE,
        "request-malformed",
    ),
    ("a newer format", _with(v=2), FILE, "request-malformed"),
    ("a format that only equals 1", _with(v=True), FILE, "request-malformed"),
    ("a name that is a list", _with(name=["spark"]), FILE, "request-malformed"),
    ("an unknown role", _with(role="root"), FILE, "request-malformed"),
    ("a time of another form", _with(created="today"), FILE, "request-malformed"),
    ("a key of 31 bytes", _with(public=b64(bytes(31))), FILE, "request-malformed"),
    ("a proof of 63 bytes", _with(proof=b64(bytes(63))), FILE, "request-malformed"),
    ("an empty proof", _with(proof=""), FILE, "request-malformed"),
    ("a reserved name", _with(name="all"), FILE, "name-invalid"),
    ("a name that is a path", _with(name="../spark"), FILE, "name-invalid"),
    ("a key of small order", _with(public=b64(b"\x01" + bytes(31))), FILE, "key-invalid"),
    ("another wire", _with(wire="0" * 32), FILE, "wrong-wire"),
    ("the file of another name", RAW, requests.file_name("mac", SPARK.key_id), "request-misplaced"),
    ("the file of another key", RAW, requests.file_name("spark", EVE.key_id), "request-misplaced"),
    ("a file of another kind", RAW, FILE + ".bak", "request-misplaced"),
    ("another name than the key agreed to", _with(name="mac"), f"mac.{SPARK.key_id}.json", "proof-invalid"),
    ("another role than the key agreed to", _with(role="human"), FILE, "proof-invalid"),
    ("somebody else's key", _with(public=b64(EVE.public)), f"spark.{EVE.key_id}.json", "proof-invalid"),
    ("a proof of zeros", _with(proof=b64(bytes(64))), FILE, "proof-invalid"),
    ("a signature of another type", _with(proof=b64(SPARK.sign(LINE_TYPE, RAW))), FILE, "proof-invalid"),
]


@pytest.mark.parametrize(("raw", "file", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(raw: bytes, file: str, reason: str) -> None:
    with pytest.raises(TrustError) as caught:
        requests.parse(raw, wire=WIRE, file_name=file)
    assert caught.value.reason == reason, caught.value.message


def test_whose_request_it_is_and_what_it_must_have_is_told() -> None:
    with pytest.raises(TrustError, match=f"the request of 'spark' with key {SPARK.key_id} stands in 'x'"):
        requests.parse(RAW, wire=WIRE, file_name="x")
    with pytest.raises(TrustError, match="created, proof, and a newline"):
        requests.parse(_without("role"), wire=WIRE, file_name=FILE)


def test_size_is_judged_before_anything_else() -> None:
    with pytest.raises(TrustError, match="a request of 4097 bytes; the limit is 4096"):
        requests.parse(b"{" * 4097, wire=WIRE, file_name=FILE)
    with pytest.raises(TrustError, match="not strict JSON"):
        requests.parse(b"{" * 4096, wire=WIRE, file_name=FILE)


@pytest.mark.parametrize(
    "change", [{"name": "all"}, {"role": "root"}, {"created": "now"}], ids=["reserved name", "unknown role", "time"]
)
def test_what_nobody_would_read_is_not_made(change: dict[str, str]) -> None:
    call = {"wire": WIRE, "name": "spark", "role": "agent", "created": NOW, **change}
    with pytest.raises(TrustError):
        requests.make(SPARK, **call)


_time = RAW.index(NOW.encode())
_OUTSIDE_TIME = [at for at in range(len(RAW)) if not _time <= at < _time + len(NOW)]


@given(at=st.sampled_from(_OUTSIDE_TIME), flip=st.integers(1, 255))
def test_a_changed_byte_is_refused_everywhere_but_in_the_unsigned_time(at: int, flip: int) -> None:
    changed = RAW[:at] + bytes([RAW[at] ^ flip]) + RAW[at + 1 :]
    with pytest.raises(TrustError):
        requests.parse(changed, wire=WIRE, file_name=FILE)


def _refused_or_same(raw: bytes) -> bool:
    try:
        return requests.parse(raw, wire=WIRE, file_name=FILE).raw == raw
    except TrustError:
        return True


@given(st.binary(max_size=300))
def test_junk_never_breaks(raw: bytes) -> None:
    assert _refused_or_same(raw)


_values = st.none() | st.integers(-1, 2) | st.text(st.characters(codec="utf-8")) | st.lists(st.none())


@given(st.dictionaries(st.sampled_from(sorted(json.loads(RAW))), _values, min_size=1))
def test_members_of_any_kind_never_break(change: dict[str, object]) -> None:
    assert _refused_or_same(_with(**change))
