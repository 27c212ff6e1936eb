"""Sealing and opening lines: what a writer refuses, what a person is told about bytes that are no line, exact text."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from wire.errors import UsageError
from wire.protocol import encoding, strictjson
from wire.protocol.chain import Position, step
from wire.protocol.codes import Code
from wire.protocol.encoding import (
    LINE_TYPE,
    Signer,
    key_id,
    parse_checkpoint,
    seconds_of,
    unb64,
    valid_public,
    verify,
)
from wire.protocol.line import LINE_MAX, LineError, check, content, genesis, head, parse, seal, seal_again
from wire.protocol.messages import OPTIONAL, TYPES, check_content, valid_type
from wire.protocol.names import check_name, parse_id, segment_name, split_channel

WIRE = "0123456789abcdef" * 2
SIGNER = Signer(bytes(range(32)))
FIXED: dict[str, Any] = {
    "wire": WIRE, "sender": "mac", "recipient": "spark", "seq": 1, "prev": genesis(WIRE, "mac/spark"),
    "ts": "2026-11-29T11:20:00.123Z", "trust": "2:0011223344556677", "type": "message",
}  # fmt: skip


class Ring:
    """A trust in which mac's key is active."""

    public, status, positions = SIGNER.public, "active", {}  # type: ignore[var-annotated]

    def owner(self, identifier: str) -> "tuple[str, Ring] | None":
        return ("mac", self) if identifier == SIGNER.key_id else None


def sealed(**changed: Any) -> bytes:
    return seal(SIGNER, **{**FIXED, **changed})


def judged(raw: bytes) -> Code | None:
    return step(Position.start(WIRE, "mac/spark"), raw, wire=WIRE, channel="mac/spark", keys=Ring()).code


# What a writer refuses


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        pytest.param({"type": "Message"}, "bad-content", id="a type in capitals"),
        pytest.param({"seq": 0}, "bad-content", id="seq 0"),
        pytest.param({"seq": 10**15}, "bad-content", id="a seq of 16 digits"),
        pytest.param({"ts": "now"}, "bad-content", id="another clock"),
        pytest.param({"ts": '2026-11-29T11:20:00.123Z","x":"'}, "bad-content", id="a member smuggled into ts"),
        pytest.param({"recipient": "mac"}, "bad-content", id="a line to its author"),
        pytest.param({"recipient": "trust"}, "bad-content", id="a reserved recipient"),
        pytest.param({"recipient": "sp\u00e4rk"}, "bad-content", id="a recipient beyond ASCII"),
        pytest.param({"colour": "red"}, "bad-content", id="an unknown member"),
        pytest.param({"subject": "s" * 201}, "bad-content", id="a long subject"),
        pytest.param({"refs": ("a", "b")}, "bad-content", id="refs that are no list"),
        pytest.param({"type": "reply"}, "bad-content", id="a reply to nothing"),
        pytest.param({"recipient": "all", "ack": [1, "0" * 64]}, "bad-content", id="an ack to all"),
        pytest.param({"body": float("nan")}, "bad-content", id="a body that is a number"),
        pytest.param({"body": {"n": float("nan")}}, "bad-content", id="NaN"),
        pytest.param({"body": {"n": float("inf")}}, "bad-content", id="infinity"),
        pytest.param({"body": {"n": 2**53}}, "bad-content", id="2^53"),
        pytest.param({"body": {"n": 10**5000}}, "bad-content", id="a number of 5,000 digits"),
        pytest.param({"enc": {"alg": "x", "n": 1.5}}, "bad-content", id="a float outside of the body"),
        pytest.param({"enc": {"n": 1}}, "bad-content", id="a letter closed in no way"),
        pytest.param({"enc": {"alg": "x"}, "body": "x"}, "bad-content", id="an open body beside a closed one"),
        pytest.param({"body": "\udcb2"}, "bad-content", id="a lone surrogate"),
        pytest.param({"body": {"\ud800": 1}}, "bad-content", id="a lone surrogate in a name"),
        pytest.param({"body": {1: "a", "1": "b"}}, "bad-content", id="two names that JSON writes alike"),
        pytest.param({"body": {"when": object()}}, "bad-content", id="what JSON cannot say"),
        pytest.param({"body": {b"x": 1}}, "bad-content", id="a name in bytes"),
        pytest.param({"body": "x" * LINE_MAX}, "too-large", id="a long body"),
    ],
)
def test_a_writer_refuses_what_a_reader_would(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        sealed(**changed)
    assert refused.value.reason == reason


def test_a_writer_says_which_character_cannot_be_written() -> None:
    with pytest.raises(UsageError, match=r"a lone surrogate \(U\+DCB2\)"):
        sealed(body="\udcb2")


def test_a_writer_refuses_nesting_that_never_ends() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"d": deep}
    circular: dict[str, Any] = {}
    circular["d"] = circular
    for body in (deep, circular):
        with pytest.raises(UsageError):
            sealed(body=body)
    shallow: dict[str, Any] = {}
    for _ in range(33):
        shallow = {"d": shallow}
    with pytest.raises(UsageError, match="strict JSON"):
        sealed(subject="and a text beside it", body=shallow)


def test_the_longest_line_that_can_be_sealed_is_the_longest_that_is_read() -> None:
    rest = len(sealed(body=""))
    raw = sealed(body="x" * (LINE_MAX - rest))
    assert len(raw) == LINE_MAX
    assert judged(raw[:-1]) is None
    with pytest.raises(UsageError, match="65537 bytes; the limit is 65536"):
        sealed(body="x" * (LINE_MAX - rest + 1))


def test_members_that_are_none_are_left_out() -> None:
    assert sealed(body=None, subject=None) == sealed()
    assert sealed(**dict.fromkeys(OPTIONAL)) == sealed()
    assert "ack_required" in content(parse(sealed(ack_required=False)[:-1]))


# Exact text


@pytest.mark.parametrize("number", ["0.00001", "1.10", "1e2", "1E+2", "-0", "-0.0", "100000000000000000000.0", "1.0"])
def test_numbers_are_signed_as_they_were_sent(number: str) -> None:
    body = strictjson.Verbatim(f' {{ "n" : {number} , "t":" a\\u00e9 \\" b " }}\n'.encode())
    raw = sealed(body=body, subject="s", refs=["r"])
    assert f'"subject":"s","body":{{"n":{number},"t":" a\\u00e9 \\" b "}},"refs":["r"],'.encode() in raw
    assert raw.count(b"\n") == 1
    assert judged(raw[:-1]) is None
    read = content(parse(raw[:-1]))["body"]
    assert read == {"n": json.loads(number), "t": ' aé " b '}
    assert body == read


@pytest.mark.parametrize(
    "data",
    [
        b"", b"1", b'"x"', b"[]", b"{", b'{"a":1}}', b'{},"priority":"high"', b'{},"body":{}', b'{"a":1,"a":2}',
        b'{"a":1e400}', b'{"a":9007199254740992}', b'{"a":"\\ud800"}', b"\xff{}", b"[" * 100_000,
        b'{"a":' + b"[" * 31 + b"]" * 31 + b"}",
    ],
)  # fmt: skip
def test_exact_text_is_one_strict_object(data: bytes) -> None:
    with pytest.raises(strictjson.StrictError):
        strictjson.Verbatim(data)


def test_exact_text_is_judged_like_any_other_body() -> None:
    with pytest.raises(UsageError):
        sealed(type="incident", body=strictjson.Verbatim(b'{"code":"GAP"}'))
    assert judged(sealed(body=strictjson.Verbatim(b"{}"))[:-1]) is None


# What a person is told


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "an empty line"),
        (b"\xef\xbb\xbf" + sealed()[:-1], "byte order mark"),
        (sealed()[:-1] + b"\r", "CR LF"),
        (bytes(100), "NUL"),
        (b"<<<<<<< HEAD", "conflict marker"),
        (b"=======", "conflict marker"),
        (b">>>>>>> theirs", "conflict marker"),
        (sealed()[-140:-1], "at a fixed place"),
        (sealed()[:-1].replace(b'"v":1,', b'"v":2,'), "another protocol version"),
        (b'{"body":"hello"}', "no signature"),
        (b"hello", "no signature"),
        (sealed()[:-20], "torn"),
        (sealed()[:-1].replace(b'"seq":1,', b'"seq":01,'), "at a fixed place"),
        (b"\xff", "invalid UTF-8 at byte 0"),
        (b"x" * LINE_MAX, "65537 bytes; the limit is 65536"),
    ],
)
def test_a_person_is_told_what_bytes_look_like(raw: bytes, said: str) -> None:
    with pytest.raises(LineError, match=said) as refused:
        parse(raw)
    assert str(refused.value) == refused.value.why


def test_what_stands_where() -> None:
    raw = sealed(subject="s")[:-1]
    line = parse(raw)
    assert (line.channel, line.id, line.trust_version, line.head) == ("mac/spark", "mac/spark/1", 2, head(raw))
    assert raw[line.middle_at :].startswith(b'"subject":"s","key":"')
    assert line.body_bytes + b"" == raw[: raw.rindex(b',"sig":')] + b"}"
    assert line.key_id == key_id(SIGNER.public)
    assert repr(SIGNER) == f"Signer(key_id={SIGNER.key_id!r})"


def test_every_byte_of_a_line_is_held_by_its_signature() -> None:
    raw = sealed(body={"a": [1, "b"]}, subject="s")[:-1]
    assert judged(raw) is None
    for index in range(len(raw)):
        for bit in range(8):
            changed = raw[:index] + bytes([raw[index] ^ 1 << bit]) + raw[index + 1 :]
            assert judged(changed) is not None, (index, bit)
        assert judged(raw[:index] + raw[index + 1 :]) is not None, f"byte {index} deleted"
        assert judged(raw[:index] + b" " + raw[index:]) is not None, f"a space inserted at {index}"
        assert judged(raw[:index]) is not None, f"cut at {index}"


# Names, with words for people


@pytest.mark.parametrize(
    ("judge", "text", "reason", "said"),
    [
        (check_name, "all", "bad-name", "name 'all' is a reserved word"),
        (check_name, "Mac", "bad-name", "is not 1 to 32 of a-z, 0-9 and inner hyphens"),
        (check_name, "", "bad-name", "is not 1 to 32 of a-z, 0-9 and inner hyphens"),
        (split_channel, "mac", "bad-channel", "one is written mac/spark"),
        (split_channel, "mac/", "bad-channel", "one is written mac/spark"),
        (split_channel, "mac/mac", "bad-channel", "one is written mac/spark"),
        (split_channel, "mac/spark/1", "bad-channel", "one is written mac/spark"),
        (parse_id, "mac/spark", "bad-id", "one is written mac/spark/42"),
        (parse_id, "mac/spark/0", "bad-id", "one is written mac/spark/42"),
    ],
)
def test_names_are_refused_in_words(judge: Callable[[str], object], text: str, reason: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        judge(text)
    assert refused.value.reason == reason


def test_names_are_taken_as_they_are() -> None:
    assert check_name("mac") == "mac"
    with pytest.raises(UsageError, match="agent 'all' is a reserved word"):
        check_name("all", "agent")
    assert split_channel("mac/spark") == ("mac", "spark")
    assert split_channel("mac/all") == ("mac", "all")
    assert parse_id("mac/spark/42") == ("mac/spark", 42)
    assert segment_name(7) == "000007.jsonl"
    assert valid_type("x-future_1")
    assert not valid_type("X")
    assert not valid_type("")


# Times


@pytest.mark.parametrize(
    ("ts", "seconds"),
    [
        ("1970-01-01T00:00:00.000Z", 0.0),
        ("1970-01-01T00:00:01.500Z", 1.5),
        ("2026-11-29T11:20:00.123Z", 1_795_951_200.123),
        ("2024-02-29T23:59:59.999Z", 1_709_251_199.999),
        ("2026-02-30T11:20:00.123Z", 0.0),
        ("2026-11-29T24:20:00.123Z", 0.0),
        ("2026-11-29T11:20:60.123Z", 0.0),
        ("2026-11-29 11:20:00.123Z", 0.0),
        ("2026-W48-7T11:20:00.123Z", 0.0),
        ("2026-11-29T11:20:00.xyzZ", 0.0),
        ("", 0.0),
    ],
)
def test_times_are_read_by_their_text(ts: str, seconds: float) -> None:
    assert seconds_of(ts) == pytest.approx(seconds, abs=1e-6)


# The same line again


def again(raw: bytes, moved: dict[str, str] | None = None, trust: str = "3:aabbccddeeff0011") -> dict[str, Any]:
    """Seal what a line says as line 9; return its members, after a look at what must stay."""
    line = parse(raw)
    sent = seal_again(SIGNER, line, seq=9, prev="ef" * 32, trust=trust, moved=moved or {})
    assert sent.endswith(b"}\n")
    found = parse(sent[:-1])
    assert verify(SIGNER.public, found.signature, LINE_TYPE, found.body_bytes)
    assert (found.seq, found.prev, found.trust) == (9, "ef" * 32, trust)
    assert (found.wire, found.channel, found.ts, found.type) == (line.wire, line.channel, line.ts, line.type)
    return check(found)


def test_a_line_is_sent_again_to_the_byte() -> None:
    body = strictjson.Verbatim(b'{"n":1.10,"t":"\\u00e9"}')
    raw = sealed(body=body, subject="s", refs=["mac/spark/3"])[:-1]
    assert again(raw) == check(parse(raw))
    line = parse(raw)
    sent = seal_again(SIGNER, line, seq=9, prev="ef" * 32, trust=line.trust, moved={})
    assert b'"body":{"n":1.10,"t":"\\u00e9"}' in sent
    assert again(sealed()[:-1]) == {}


def test_words_in_a_body_are_no_answers() -> None:
    said = {"re": "spark/mac/3", "body": {"re": "spark/mac/3", "thread": "spark/mac/3"}}
    moved = {"spark/mac/3": "spark/mac/7"}
    assert again(sealed(**said)[:-1], moved) == {**said, "re": "spark/mac/7"}


def test_what_a_line_answers_follows_it() -> None:
    moved = {"spark/mac/3": "spark/mac/7", "mac/spark/1": "mac/spark/4"}
    said = {"thread": "mac/spark/1", "re": "spark/mac/3", "subject": '"re":"spark/mac/3"', "body": "spark/mac/3"}
    raw = sealed(type="reply", **said)[:-1]
    assert again(raw, moved) == {**said, "thread": "mac/spark/4", "re": "spark/mac/7"}
    assert again(raw, {"spark/mac/4": "spark/mac/8"}) == said
    assert again(raw) == said
    # Each follows its own name, also where both are the same message.
    both = {"thread": "spark/mac/3", "re": "spark/mac/3"}
    assert again(sealed(**both)[:-1], moved) == {"thread": "spark/mac/7", "re": "spark/mac/7"}


def test_a_line_that_cannot_be_read_is_sent_again_as_it_is() -> None:
    odd = sealed(re="spark/mac/3")[:-1].replace(b'"spark/mac/3"', b"[]")
    assert b'"re":[],"key":' in seal_again(SIGNER, parse(odd), seq=9, prev="ef" * 32, trust="2:" + "0" * 16, moved={})
    raw = sealed(re="spark/mac/3", body="x" * 5)[:-1].replace(b'"xxxxx"', b"NaN")
    line = parse(raw)
    sent = seal_again(SIGNER, line, seq=9, prev="ef" * 32, trust=line.trust, moved={"spark/mac/3": "spark/mac/7"})
    assert b'"re":"spark/mac/3","body":NaN,"key":' in sent
    with pytest.raises(LineError):
        content(parse(sent[:-1]))


def test_a_line_that_would_be_too_long_is_not_sent_again() -> None:
    raw = sealed(body="x" * (LINE_MAX - len(sealed(body=""))))[:-1]
    with pytest.raises(UsageError) as refused:
        seal_again(SIGNER, parse(raw), seq=10, prev="ef" * 32, trust="2:0011223344556677", moved={})
    assert refused.value.reason == "too-large"


# Members that may not stand there


@pytest.mark.parametrize(
    ("middle", "code", "why"),
    [
        (b'"subject":"s","seq":2,', Code.SCHEMA, "duplicate key 'seq'"),
        (b'"subject":"s","subject":"t","body":"",', Code.SCHEMA, "duplicate key 'subject'"),
        (b'"body":{"a":1,"b":2,"c":3,"b":4},', Code.SCHEMA, "duplicate key 'b'"),
        (b'"subject":"s","mood":"fine",', Code.SCHEMA, "unknown member 'mood'"),
        (b'"body":"","subject":"s",', Code.SCHEMA, "member 'subject' stands out of order"),
        (b'"idem":"",', Code.SCHEMA, "'idem' is not a string of 1 to 200 characters"),
        (b'"idem":7,', Code.SCHEMA, "'idem' is not a string of 1 to 200 characters"),
        (b'"expires":20261129,', Code.SCHEMA, "'expires' is not a time like 2026"),
        (b'"ack":{"0":1,"1":"%s"},' % (b"0" * 64), Code.SCHEMA, "'ack' is not [seq, head]"),
        (b'"ack":[1,2],', Code.SCHEMA, "'ack' is not [seq, head]"),
        (b'"expires":"2026-11-29",', Code.SCHEMA, "'expires' is not a time like 2026"),
        (b'"subject":"%s",' % (b"s" * 201), Code.SIZE, "'subject' is not a string of up to 200 characters"),
        (b',', Code.SCHEMA, "two commas"),
    ],
)  # fmt: skip
def test_a_line_that_keeps_its_place_and_cannot_be_read(middle: bytes, code: Code, why: str) -> None:
    raw = sealed()[:-1]
    at = raw.index(b'"key":')
    line = parse(raw[:at] + middle + raw[at:])
    for judge in (check, content):
        with pytest.raises(LineError) as refused:
            judge(line)
        assert refused.value.code == code
        assert why in refused.value.why


@pytest.mark.parametrize(
    ("member", "form", "taken", "refused"),
    [
        ("from", '"%s"', ("a", "a" * 32), ("", "a" * 33, "A")),
        ("to", '"%s"', ("a", "a" * 32), ("", "a" * 33, "A")),
        ("seq", "%s", ("1", "9" * 15), ("", "0", "01", "9" * 16, "-1")),
        ("wire", '"%s"', ("f" * 32,), ("f" * 31, "f" * 33, "F" * 32)),
        ("prev", '"%s"', ("f" * 64,), ("f" * 63, "f" * 65)),
        (
            "trust", '"%s"', ("1:" + "f" * 16, "9" * 9 + ":" + "f" * 16),
            ("0:" + "f" * 16, "9" * 10 + ":" + "f" * 16, "1:" + "f" * 15, "1:" + "f" * 17),
        ),
        ("type", '"%s"', ("x", "x" * 32, "x-_9"), ("", "x" * 33, "X", "9x")),
    ],
)  # fmt: skip
def test_the_fixed_members_have_one_form(
    member: str, form: str, taken: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    text = sealed()[:-1].decode()
    there = json.dumps(json.loads(text)[member])
    for value in (*taken, *refused):
        raw = text.replace(f'"{member}":{there}', f'"{member}":{form % value}').encode()
        if value in taken:
            assert parse(raw).raw == raw
        else:
            with pytest.raises(LineError):
                parse(raw)


def test_every_type_and_every_choice_is_known_by_its_word() -> None:
    assert set(TYPES) == {
        "message", "request", "reply", "ack", "warning", "feedback", "correction", "ship", "receipt", "proposal",
        "counter", "accept", "reject", "decision", "claim", "release", "task", "heartbeat", "incident", "shutdown",
        "wakeup",
    }  # fmt: skip
    for said in ("low", "normal", "high", "urgent"):
        assert check(parse(sealed(priority=said)[:-1])) == {"priority": said}
    for said in ("none", "agent", "human"):
        assert check(parse(sealed(needs=said)[:-1])) == {"needs": said}
    for text, valid in (("x", True), ("x" * 32, True), ("x" * 33, False)):
        assert valid_type(text) is valid
    with pytest.raises(strictjson.StrictError):
        strictjson.dumps(float("nan"))


@pytest.mark.parametrize("name", ["v", "wire", "from", "to", "seq", "prev", "ts", "trust", "type", "key", "sig"])
def test_no_fixed_member_stands_twice(name: str) -> None:
    raw = sealed()[:-1]
    at = raw.index(b'"key":')
    with pytest.raises(LineError, match=f"duplicate key '{name}'"):
        check(parse(raw[:at] + b'"%s":1,' % name.encode() + raw[at:]))


def test_what_is_just_long_or_short_enough_is_read() -> None:
    for said in ({"idem": "x"}, {"idem": "x" * 200}, {"subject": ""}, {"expires": "2026-11-29T11:20:00.123Z"}):
        assert check(parse(sealed(**said)[:-1])) == said
    # Whoever calls it with a member of the prefix is told so too.
    for name in ("v", "wire", "from", "to", "seq", "prev", "ts", "trust", "type", "key", "sig"):
        found = check_content("spark", "message", {name: "x"})
        assert (
            found is None if name in ("key", "sig") else found == (Code.SCHEMA, f"member {name!r} stands out of order")
        )


@pytest.mark.parametrize("depth", [1, 31, 32, 33, 34])
@pytest.mark.parametrize("form", ['{"a":%s}', '{"body":{"x":1,"a":%s,"y":[]}}'])
def test_nesting_ends_at_a_depth_of_32(form: str, depth: int) -> None:
    # Beside the deep one stand as many shallow ones, so that brackets alone do not tell.
    inside = depth - form.count("{")
    text = form % (f"[7,{', '.join(['[]'] * 40)},0,{'[' * (inside - 1)}{']' * (inside - 1)},7]" if inside > 1 else "0")
    data = text.encode()
    if depth > 32:
        with pytest.raises(strictjson.StrictError, match="more than 32 levels"):
            strictjson.loads(data)
    else:
        assert strictjson.loads(data) == json.loads(text)


# Members as they stand in a text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"{}", None),
        (b" { } "[1:], None),
        (b'{"body":1}', b"1"),
        (b'{ "a" : [1, {"body":2}] ,\n\t"body" : {"x" : 1.10} , "c":"}"}', b'{"x" : 1.10}'),
        (b'{"a":"body","b":{"body":3}}', None),
        ('{"\u00e9":"\u00e9\u00e9","body":"\u00e4"}'.encode(), '"\u00e4"'.encode()),
        (b'{"b\\u006fdy":"spelled otherwise"}', b'"spelled otherwise"'),
        (b'{"x":"\\"body\\":1","body":-0.0}', b"-0.0"),
    ],
)
def test_the_text_of_a_member(text: bytes, found: bytes | None) -> None:
    assert strictjson.text_of(text, "body") == found


# Keys and signatures


@pytest.mark.parametrize(("public", "signature"), [(32, 0), (32, 63), (32, 65), (32, 128), (31, 64), (33, 64), (0, 64)])
def test_lengths_come_before_any_cryptography(public: int, signature: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_cryptography(*_: bytes) -> bytes:
        raise AssertionError("called")

    monkeypatch.setattr("nacl.bindings.crypto_sign_open", no_cryptography)
    monkeypatch.setattr("nacl.bindings.crypto_core_ed25519_is_valid_point", no_cryptography)
    assert not verify(bytes(public), bytes(signature), LINE_TYPE, b"{}")
    if public != 32:
        assert not valid_public(bytes(public))


def test_hashes_are_the_same_whoever_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def counted(data: bytes) -> bytes:
        asked.append(data)
        return hashlib.sha256(data).digest()

    monkeypatch.setattr("nacl.bindings.crypto_hash_sha256", counted)
    monkeypatch.setattr(encoding, "_digest", encoding._few)
    monkeypatch.setattr(encoding, "_few_bytes", 10)
    for data in (b"four", b"sixsix", b"", b"x", b"many" * 1000, b"y"):
        assert encoding.sha256(data) == hashlib.sha256(data).digest()
        assert encoding.sha256_hex(data) == hashlib.sha256(data).hexdigest()
    # Each came twice: as the digest, then as its digits.
    assert asked == [b"four", b"four"]
    monkeypatch.setattr(encoding, "_digest", encoding._few)
    monkeypatch.setattr(encoding, "_few_bytes", 4)
    asked.clear()
    assert [encoding.sha256(data) for data in (b"four", b"", b"x")] == [
        hashlib.sha256(data).digest() for data in (b"four", b"", b"x")
    ]
    assert asked == [b"four", b""]


def test_checkpoints_have_a_number_of_up_to_nine_digits() -> None:
    assert parse_checkpoint("999999999:SHA256:" + "A" * 43) == (999_999_999, bytes(32))
    with pytest.raises(ValueError, match="3:SHA256:"):
        parse_checkpoint("1000000000:SHA256:" + "A" * 43)


def test_signers_need_seeds_of_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        Signer(bytes(31))
    with pytest.raises(ValueError, match="not the canonical spelling"):
        unb64("AB==", 1)
    with pytest.raises(ValueError, match="has the form"):
        parse_checkpoint("3")
