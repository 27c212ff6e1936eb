"""Properties of lines, channels and walks that hold for all inputs, held against the second implementation as well."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support import second, second_forms
from wire.errors import UsageError
from wire.protocol import strictjson
from wire.protocol.chain import SEGMENT_MAX, Position, Walk, place, step, walk
from wire.protocol.codes import Code
from wire.protocol.encoding import LINE_TYPE, SIGNATURE_BYTES, Signer, b64, unb64, verify
from wire.protocol.line import LINE_MAX, LineError, content, genesis, head, parse, seal
from wire.protocol.messages import OPTIONAL, TYPES

WIRE, OTHER_WIRE = "0123456789abcdef" * 2, "fedcba9876543210" * 2
CHANNEL = "mac/spark"
MAC, SPARK, MALLORY = Signer(b"m" * 32), Signer(b"s" * 32), Signer(b"x" * 32)
FIXED: dict[str, Any] = {"ts": "2026-11-29T11:20:00.123Z", "trust": "2:0011223344556677"}


class Key:
    """An active key."""

    status = "active"
    positions: dict[str, tuple[int, str]] = {}  # noqa: RUF012 - read only

    def __init__(self, public: bytes) -> None:
        self.public = public


class Ring:
    """A trust that lists mac and spark."""

    _keys = {MAC.key_id: ("mac", Key(MAC.public)), SPARK.key_id: ("spark", Key(SPARK.public))}  # noqa: RUF012

    def owner(self, key_id: str) -> tuple[str, Key] | None:
        return self._keys.get(key_id)


RING = Ring()
SECOND_RING = {
    signer.key_id: {"name": name, "public": b64(signer.public), "status": "active", "positions": {}}
    for name, signer in (("mac", MAC), ("spark", SPARK))
}


def start(channel: str = CHANNEL, wire: str = WIRE) -> Position:
    return Position.start(wire, channel)


def write(
    end: Position, signer: Signer = MAC, *, channel: str = CHANNEL, wire: str = WIRE, **members: Any
) -> tuple[bytes, Position]:
    """Return the next line, without newline, and the end behind it."""
    sender, _, recipient = channel.partition("/")
    fixed = {"type": "message", **FIXED, "seq": end.seq + 1, "prev": end.head, **members}
    raw = seal(signer, wire=wire, sender=sender, recipient=recipient, **fixed)
    return raw[:-1], end.after(len(raw), head(raw[:-1]))


def judge(raw: bytes, end: Position, *, channel: str = CHANNEL, wire: str = WIRE) -> Code | None:
    return step(end, raw, wire=wire, channel=channel, keys=RING).code


# Members


def values(floats: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    integers = st.integers(min_value=1 - 2**53, max_value=2**53 - 1)
    leaves = st.none() | st.booleans() | integers | floats | st.text()
    return st.recursive(leaves, lambda more: st.lists(more, max_size=4) | st.dictionaries(st.text(), more, max_size=4))


FINITE = st.floats(allow_nan=False, allow_infinity=False)
OBJECTS = st.dictionaries(st.text(), values(FINITE), max_size=5)
IDS = st.builds("{}/{}/{}".format, st.just("mac"), st.sampled_from(["spark", "all"]), st.integers(1, 10**15 - 1))
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "thread": IDS,
    "re": IDS,
    "subject": st.text(max_size=200),
    "body": st.text() | OBJECTS,
    "refs": st.lists(st.text(max_size=40), max_size=64),
    "priority": st.sampled_from(["low", "normal", "high", "urgent"]),
    "needs": st.sampled_from(["none", "agent", "human"]),
    "ack_required": st.booleans(),
    "expires": st.just("2026-12-01T00:00:00.000Z"),
    "idem": st.text(min_size=1, max_size=200),
    "ack": st.tuples(st.integers(1, 10**15 - 1), st.just("0" * 64)).map(list),
    "enc": st.dictionaries(st.text(), values(st.nothing()), max_size=3).map(lambda more: {**more, "alg": "later"}),
}
CLOSED = {"subject", "body", "refs"}
assert MEMBERS.keys() == OPTIONAL.keys()
LAWFUL = st.fixed_dictionaries({}, optional=MEMBERS).map(
    lambda said: {name: value for name, value in said.items() if "enc" not in said or name not in CLOSED}
)


@given(LAWFUL, st.sampled_from(["message", "request", "x-future"]))
def test_whatever_is_said_is_read_as_it_was_said(said: dict[str, Any], kind: str) -> None:
    raw, _ = write(start(), type=kind, **said)
    assert b"\n" not in raw
    line = parse(raw)
    assert verify(MAC.public, line.signature, LINE_TYPE, line.body_bytes)
    assert judge(raw, start()) is None
    members = content(line)
    assert {name: value for name, value in members.items() if name in OPTIONAL} == said
    assert list(members) == [name for name in second_forms.ORDER if name in members]
    assert json.dumps(members) == json.dumps(json.loads(raw))
    assert second.judge(second.End(*start()), raw, WIRE, CHANNEL, SECOND_RING)[0] == "ok"
    assert second_forms.content(raw) == "readable"


JUNK = st.deferred(
    lambda: st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(),
        st.text(st.characters(categories=["Cs", "Ll"])), st.binary(max_size=8),
        st.lists(JUNK, max_size=3), st.tuples(JUNK), st.sets(st.integers(), max_size=2),
        st.dictionaries(st.text() | st.integers() | st.none() | st.booleans() | st.binary(max_size=3), JUNK),
    )
)  # fmt: skip
FIELDS = {
    "seq": st.just(1) | st.integers() | st.text(max_size=3),
    "prev": st.just(genesis(WIRE, CHANNEL)) | st.text(max_size=3),
    "ts": st.just(FIXED["ts"]) | st.text(max_size=30),
    "trust": st.just(FIXED["trust"]) | st.text(max_size=20),
    "type": st.sampled_from([*TYPES, "x", "Message", ""]) | st.text(max_size=33),
}


@settings(max_examples=3 * settings.default.max_examples)
@given(
    st.fixed_dictionaries({}, optional=FIELDS),
    st.fixed_dictionaries({}, optional={name: JUNK | lawful for name, lawful in MEMBERS.items()}),
    st.sampled_from([CHANNEL, "mac/all", "mac/mac", "mac/trust", "spark/mac", "mac/"]),
    st.integers(0, 70_000),
)
def test_a_writer_never_makes_what_a_reader_refuses(
    fixed: dict[str, Any], said: dict[str, Any], channel: str, padding: int
) -> None:
    """Either nothing is sealed, or every reader accepts it at its place and reads it."""
    if padding > 60_000:
        said = {**said, "subject": "s", "body": "é" * (padding // 2)}
    sender, _, recipient = channel.partition("/")
    given_fields = {"seq": 1, "prev": genesis(WIRE, CHANNEL), "type": "message", **FIXED, **fixed}
    try:
        raw = seal(MAC, wire=WIRE, sender=sender, recipient=recipient, **given_fields, **said)
    except UsageError:
        return
    assert raw.endswith(b"\n")
    assert raw.count(b"\n") == 1
    assert len(raw) <= LINE_MAX
    line = parse(raw[:-1])
    content(line)
    assert second_forms.content(raw[:-1]) == "readable"
    end = Position(line.seq - 1, line.prev, 1, 0)
    code = judge(raw[:-1], end, channel=channel)
    assert code is None if sender == "mac" else code is Code.SIGNATURE


# Changed and moved lines


HONEST: list[bytes] = []
ENDS = [start()]
for number, text in enumerate(("one", "zwei \u2028\u00fc", "trois", "four", "five", "six"), 1):
    made, after = write(ENDS[-1], body={"text": text, "n": number}, subject=text)
    HONEST.append(made)
    ENDS.append(after)


def segment(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def walked(accepted: Sequence[bytes], carried: dict[int, bytes], end: Position) -> Walk:
    """Walk, and hold the outcome against that of the second implementation."""
    held = {1: segment(*accepted)} if accepted else {}
    found = walk(end, {1: b"", **carried}, lambda n: held.get(n, b""), wire=WIRE, channel=CHANNEL, keys=RING)
    outcome = second.walk(second.End(*end), held, carried, WIRE, CHANNEL, SECOND_RING)
    assert tuple(found.end) == tuple(outcome.end)
    assert [line.seq for line in found.new] == outcome.new
    assert sorted((f.segment, f.offset, f.code.value) for f in found.foreign) == sorted(outcome.foreign)
    assert list(found.lacking) == outcome.lacking
    return found


@settings(max_examples=3 * settings.default.max_examples)
@given(st.sampled_from(range(3)), st.data())
def test_a_changed_line_is_never_accepted(index: int, data: st.DataObject) -> None:
    raw = HONEST[index]
    at = data.draw(st.integers(0, len(raw) - 1))
    byte = data.draw(st.binary(min_size=1, max_size=1))
    changed = data.draw(
        st.sampled_from(
            [raw[:at] + byte + raw[at + 1 :], raw[:at] + raw[at + 1 :], raw[:at] + byte + raw[at:], raw[:at]]
        )
    )
    assume(changed != raw)
    if b"\n" not in changed:
        assert judge(changed, ENDS[index]) is not None
    found = walked(HONEST[:index], {1: segment(*HONEST[:index], changed)}, ENDS[index])
    # A newline put in front of a line or behind it leaves the line what it is, and an empty piece that is foreign.
    whole = changed in (b"\n" + raw, raw + b"\n")
    assert [line.raw for line in found.new] == ([raw] if whole else [])
    assert found.foreign


@given(
    st.integers(0, 5),
    st.sampled_from([CHANNEL, "mac/all", "mac/ana", "spark/mac", "ana/spark"]),
    st.sampled_from([WIRE, OTHER_WIRE]),
    st.integers(0, 6),
    st.integers(1, 4),
    st.integers(0, SEGMENT_MAX),
)
def test_a_moved_line_is_never_accepted(
    index: int, channel: str, wire: str, stands_behind: int, in_segment: int, size: int
) -> None:
    """A line counts in its channel, on its wire, behind its predecessor, in its segment, and nowhere else."""
    raw, own = HONEST[index], ENDS[index]._replace(size=size)
    end = ENDS[stands_behind]._replace(size=size)
    at_home = channel == CHANNEL and wire == WIRE and stands_behind == index
    assert (judge(raw, end, channel=channel, wire=wire) is None) is at_home
    if at_home:
        belongs, _ = place(own, len(raw) + 1)
        found = walk(own, {in_segment: raw + b"\n"}, lambda _: b"", wire=WIRE, channel=CHANNEL, keys=RING)
        assert bool(found.new) is (in_segment == belongs)
        if in_segment != belongs:
            assert [piece.code for piece in found.foreign] == [Code.MISPLACED]


@given(st.integers(0, SEGMENT_MAX), st.integers(1, LINE_MAX))
def test_placement_never_exceeds_a_segment_and_never_leaves_room(size: int, length: int) -> None:
    number, offset = place(Position(1, "0" * 64, 7, size), length)
    assert (number, offset) == ((7, size) if size + length <= SEGMENT_MAX else (8, 0))


# Vandals


_OTHER = [
    write(ENDS[3], channel="mac/all", prev=ENDS[3].head)[0],
    write(ENDS[3], wire=OTHER_WIRE)[0],
    write(ENDS[3], SPARK, channel="spark/mac")[0],
    seal(SPARK, wire=WIRE, sender="mac", recipient="spark", seq=4, prev=ENDS[3].head, type="message", **FIXED)[:-1],
    seal(MALLORY, wire=WIRE, sender="mac", recipient="spark", seq=4, prev=ENDS[3].head, type="message", **FIXED)[:-1],
]
"""Signed lines that belong elsewhere, or to nobody."""
PIECES = st.one_of(
    st.sampled_from(HONEST), st.sampled_from(HONEST), st.sampled_from(_OTHER), st.just(b""), st.just(b"{}"),
    st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")),
    st.sampled_from(HONEST).map(lambda raw: raw[:-98] + b"}"),
    st.sampled_from(HONEST).map(lambda raw: raw.replace(b"text", b"tExt")),
)  # fmt: skip


@st.composite
def tips(draw: st.DrawFn) -> dict[int, bytes]:
    """Draw what a tip may carry of the channel after any number of vandals who cannot sign as mac."""
    lines = list(HONEST[: draw(st.integers(0, len(HONEST)))])
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(lines)))
        match draw(st.sampled_from(["insert", "delete", "swap", "cut", "copy"])):
            case "insert":
                lines.insert(at, draw(PIECES))
            case "delete":
                del lines[at : at + 1]
            case "swap":
                other = draw(st.integers(0, len(lines)))
                if max(at, other) < len(lines):
                    lines[at], lines[other] = lines[other], lines[at]
            case "cut":
                del lines[at:]
            case "copy":
                lines += lines[at:]
    carried = {1: segment(*lines)}
    if draw(st.booleans()):
        carried[1] = carried[1][: draw(st.integers(0, len(carried[1])))]
    if draw(st.integers(0, 3)) == 0:
        carried[draw(st.sampled_from([2, 9]))] = segment(*draw(st.lists(PIECES, max_size=3)))
    return carried


@settings(max_examples=3 * settings.default.max_examples)
@given(st.integers(0, len(HONEST)), tips())
def test_nothing_is_accepted_but_the_owner_s_lines_in_order(count: int, carried: dict[int, bytes]) -> None:
    found = walked(HONEST[:count], carried, ENDS[count])
    assert [line.raw for line in found.new] == HONEST[count : count + len(found.new)]
    assert found.end == ENDS[count + len(found.new)]
    assert Code.FORK not in {piece.code for piece in found.foreign}, "only the owner's key can make a fork"
    # Every byte of the tip is accounted for: carried, accepted or foreign.
    lines = count - len(found.lacking) + len(found.new)
    pieces = sum(data.count(b"\n") + (not data.endswith(b"\n") and data != b"") for data in carried.values())
    assert lines + len(found.foreign) == pieces


@given(st.lists(st.lists(tips(), max_size=4), min_size=2, max_size=3))
def test_all_agree_once_the_owner_has_published(seen: list[list[dict[int, bytes]]]) -> None:
    """Verifiers that saw different vandalism, in different orders, end with the same chain at the owner's tip."""
    for tips_of_one in seen:
        count = 0
        for carried in [*tips_of_one, {1: segment(*HONEST)}]:
            found = walked(HONEST[:count], carried, ENDS[count])
            count += len(found.new)
        assert found.end == ENDS[-1]
        assert not found.foreign
        assert not found.lacking


@given(st.integers(0, len(HONEST)), tips())
def test_a_walk_in_two_steps_is_the_walk_in_one(count: int, carried: dict[int, bytes]) -> None:
    """What a walk accepted is behind it: the same tip again accepts nothing, and lacks nothing that it showed."""
    once = walked(HONEST[:count], carried, ENDS[count])
    reached = once.end.seq
    again = walked(HONEST[:reached], carried, once.end)
    assert {line.raw for line in again.new}.isdisjoint(line.raw for line in once.new)
    assert {seq for seq in again.lacking if seq <= count} <= {*once.lacking, *range(1, count + 1)}


# Content and JSON, against the second implementation

_FRAGMENTS = st.sampled_from(
    ['"body":', '"re":', '"subject":', '"refs":', '"ack":', '"enc":', '"seq":', '"key":', '"x":', "{", "}", "[", "]",
     ",", ":",
     '"', "\\", "\\u0041", "\\ud800", "\\ude00", '"mac/spark/1"', '"é"', "1", "-0", "1.5", "1e400", "1e2",
     "9007199254740992", "01",
     "true", "null", "NaN", " ", "\t", "\x00", "\u2028", '"a":1', '"body":"x"', '"body":{"a":1}', '"refs":["r"]',
     '"ack":[1,"' + "0" * 64 + '"]'],
)  # fmt: skip
MIDDLES = st.one_of(
    st.lists(_FRAGMENTS, max_size=12).map("".join),
    LAWFUL.map(lambda said: json.dumps(said, ensure_ascii=False)[1:-1]),
    st.lists(st.sampled_from(['"body":"x"', '"re":"mac/spark/1"', '"subject":"s"', '"z":1']), max_size=4).map(",".join),
)  # fmt: skip


@settings(max_examples=3 * settings.default.max_examples)
@given(MIDDLES, st.sampled_from(["message", "reply", "incident"]), st.sampled_from(["spark", "all"]))
def test_both_implementations_read_any_middle_alike(middle: str, kind: str, recipient: str) -> None:
    try:
        between = f"{middle},".encode() if middle else b""
    except UnicodeEncodeError:
        between = b""
    assume(b"\n" not in between)
    channel = f"mac/{recipient}"
    front = seal(
        MAC, wire=WIRE, sender="mac", recipient=recipient, seq=1, prev=genesis(WIRE, channel), type="x", **FIXED
    )
    front = front[: front.index(b'"key":')].replace(b'"type":"x"', b'"type":"%s"' % kind.encode())
    signed = front + between + b'"key":"%s"}' % MAC.key_id.encode()
    raw = signed[:-1] + b',"sig":"%s"}' % b64(MAC.sign(LINE_TYPE, signed)).encode()
    assert judge(raw, start(channel), channel=channel) is None
    line = parse(raw)
    try:
        members = content(line)
        read = "readable"
    except LineError as error:
        read = error.code.value
    assert read == second_forms.content(raw)
    if read == "readable":
        assert members == json.loads(raw)
        assert json.dumps(members) == json.dumps(json.loads(raw))


DOCUMENTS = st.one_of(
    st.lists(_FRAGMENTS, max_size=12).map(lambda parts: "{" + "".join(parts) + "}"),
    OBJECTS.map(json.dumps),
    OBJECTS.map(lambda value: json.dumps({"body": value}, ensure_ascii=False, indent=1)),
    st.text(max_size=30),
    st.integers(28, 36).map(lambda depth: '{"a":' * depth + "1" + "}" * depth),
)


@settings(max_examples=3 * settings.default.max_examples)
@given(DOCUMENTS, st.sampled_from([None, "body"]))
def test_both_implementations_read_any_json_alike(text: str, floats: str | None) -> None:
    data = text.encode("utf-8", "surrogatepass")
    try:
        expected = second_forms.strict(data, floats)
    except ValueError:
        with pytest.raises(strictjson.StrictError):
            strictjson.loads(data, floats_below=floats)
        return
    assert json.dumps(strictjson.loads(data, floats_below=floats)) == json.dumps(expected)


@given(OBJECTS)
def test_exact_text_reads_as_the_object_that_it_is(value: dict[str, Any]) -> None:
    for text in (
        json.dumps(value, indent=2),
        json.dumps(value, ensure_ascii=False),
        json.dumps(value, separators=(",", ":")),
    ):
        exact = strictjson.Verbatim(text.encode())
        assert exact == value
        assert json.dumps(json.loads(exact.text)) == json.dumps(value)
        assert b"\n" not in exact.text
        assert len(exact.text) <= len(text.encode())


@given(
    st.text(st.sampled_from("ABQgwxyz0189+/=-_ \n"), max_size=90) | st.binary(max_size=64).map(b64), st.integers(0, 64)
)
def test_base64_has_one_spelling(text: str, length: int) -> None:
    for decode in (unb64, second_forms.unb64):
        try:
            data = decode(text, length)
        except ValueError:
            continue
        assert len(data) == length
        assert b64(data) == text


@given(st.binary(max_size=200), st.binary(max_size=80))
def test_no_other_bytes_are_a_signature(payload: bytes, signature: bytes) -> None:
    assert not verify(MAC.public, signature, LINE_TYPE, payload)
    assert len(MAC.sign(LINE_TYPE, payload)) == SIGNATURE_BYTES
    assert verify(MAC.public, MAC.sign(LINE_TYPE, payload), LINE_TYPE, payload)


@given(st.binary(max_size=400))
def test_junk_is_no_line_and_breaks_nothing(junk: bytes) -> None:
    found = walked([], {1: junk}, start())
    assert not found.new
    assert found.end == start()
