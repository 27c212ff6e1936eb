"""The chain of a channel, beyond its golden vectors: words, what is listed and what is only counted, and look-ups."""

from collections.abc import Sequence

import pytest

from support.trusts import HEAD, NOW, begun, enrolled, retired, signer
from wire.protocol import chain
from wire.protocol.chain import Position, Walk, lacking, line_at, lines_of, step, walk
from wire.protocol.codes import Code
from wire.protocol.encoding import Signer
from wire.protocol.line import LINE_MIN, genesis, head, parse, seal

MAC, SPARK, STRANGER = signer("mac"), signer("spark"), signer("stranger")
KEYS = enrolled(enrolled(begun(), "mac", MAC), "spark", SPARK)
WIRE, CHANNEL = KEYS.wire, "mac/spark"
START = Position.start(WIRE, CHANNEL)


def line(seq: int, prev: str, body: str = "", *, key: Signer = MAC, to: str = "spark", wire: str = WIRE) -> bytes:
    """Return a line of mac's without its newline."""
    return seal(
        key, wire=wire, sender="mac", recipient=to, seq=seq, prev=prev, ts=NOW, trust="3:0011223344556677",
        type="message", body=body,
    )[:-1]  # fmt: skip


def chained(count: int) -> list[bytes]:
    made: list[bytes] = []
    for seq in range(1, count + 1):
        made.append(line(seq, head(made[-1]) if made else START.head, f"line {seq}"))
    return made


LINES = chained(6)
FORK = line(5, head(LINES[3]), "another line 5")
JUNK = b"junk" * 100
"""Long enough to be a line."""


def segment(*raws: bytes) -> bytes:
    return b"".join(raw + b"\n" for raw in raws)


def walked(accepted: Sequence[bytes], carried: dict[int, bytes]) -> Walk:
    """Walk; nobody asks for accepted bytes that there cannot be, and each foreign piece is what stands at its place."""
    end = START
    for raw in accepted:
        end = end.after(len(raw) + 1, head(raw))
    found = walk(end, carried, lambda number: {1: segment(*accepted)}[number], wire=WIRE, channel=CHANNEL, keys=KEYS)
    for piece in found.foreign:
        whole = carried[piece.segment][piece.offset : piece.offset + piece.length]
        assert whole.removesuffix(b"\n") == piece.raw
        assert whole.endswith(b"\n") or carried[piece.segment].endswith(piece.raw)
    return found


def codes(found: Walk) -> list[tuple[str, int]]:
    return [(piece.code.value, piece.segment) for piece in found.foreign]


def test_a_channel_begins_before_its_first_line() -> None:
    assert Position.start(WIRE, CHANNEL) == (0, genesis(WIRE, CHANNEL), 1, 0)
    assert START.after(100, HEAD) == Position(1, HEAD, 1, 100)


@pytest.mark.parametrize(
    ("raw", "code", "why"),
    [
        pytest.param(LINES[0], None, "", id="the next line"),
        pytest.param(line(1, START.head, key=SPARK), Code.SIGNATURE, "it names 'mac' and is signed by", id="key"),
        pytest.param(
            line(1, genesis(WIRE, "mac/all"), to="all"), Code.MISPLACED, "signed for mac/all and stands in mac/spark",
            id="another channel",
        ),
        pytest.param(
            line(1, START.head, wire="0" * 32), Code.MISPLACED, f"signed for wire {'0' * 32} and stands in wire {WIRE}",
            id="another wire",
        ),
        pytest.param(LINES[1], Code.GAP, "line 2 where 1 is next", id="a gap"),
        pytest.param(line(1, HEAD), Code.FORK, "line 1 follows another line 0 than the accepted one", id="a fork"),
    ],
)  # fmt: skip
def test_one_step_in_words(raw: bytes, code: Code | None, why: str) -> None:
    found = step(START, raw, wire=WIRE, channel=CHANNEL, keys=KEYS)
    assert found.code == code
    assert found.why == why if code is None else why in found.why
    assert found.after == (START.after(len(raw) + 1, head(raw)) if code is None else START)
    assert found.line == parse(raw)


def test_what_is_told_of_a_line_under_a_key_that_nobody_vouched_for() -> None:
    raw = line(1, START.head, key=STRANGER)
    found = walked([], {1: segment(raw) + b"torn"}).foreign
    assert [(one.code, one.line, one.raw) for one in found] == [
        (Code.KEY_UNKNOWN, parse(raw), raw),
        (Code.SIGNATURE, None, b"torn"),
    ]
    assert found[0].why == f"no trusted key has the id {STRANGER.key_id}"


def test_a_retired_key_counts_up_to_its_position_with_its_very_line() -> None:
    keys = retired(KEYS, "mac", MAC, "retired", {CHANNEL: (2, head(LINES[1]))})
    end = START
    for raw in LINES[:2]:
        end = step(end, raw, wire=WIRE, channel=CHANNEL, keys=keys).after
    assert end.seq == 2
    assert step(end, LINES[2], wire=WIRE, channel=CHANNEL, keys=keys).code is Code.KEY_RETIRED
    other = line(2, head(LINES[0]), "another line 2")
    assert step(end._replace(seq=1, head=head(LINES[0])), other, wire=WIRE, channel=CHANNEL, keys=keys).code is (
        Code.KEY_RETIRED
    )
    elsewhere = line(1, genesis(WIRE, "mac/all"), to="all")
    found = step(Position.start(WIRE, "mac/all"), elsewhere, wire=WIRE, channel="mac/all", keys=keys)
    assert found.code is Code.KEY_RETIRED


def test_what_comes_in_one_walk_is_known_to_the_rest_of_it() -> None:
    found = walked(LINES[:2], {1: segment(*LINES, LINES[2], LINES[4], FORK, LINES[0])})
    assert [one.seq for one in found.new] == [3, 4, 5, 6]
    assert found.end.seq == 6
    assert codes(found) == [("REPLAY", 1), ("REPLAY", 1), ("FORK", 1), ("REPLAY", 1)]
    assert [piece.line and piece.line.seq for piece in found.foreign] == [3, 5, 5, 1]
    assert found.foreign[2].why == "a second valid line 5"
    assert (found.lacking, found.more) == ((), 0)


def test_a_copy_in_another_place_and_what_is_lacking() -> None:
    found = walked(LINES[:4], {1: segment(LINES[0], LINES[2], LINES[1], LINES[0])})
    assert [(piece.code, piece.raw, piece.line) for piece in found.foreign] == [
        (Code.REPLAY, LINES[1], None),
        (Code.REPLAY, LINES[0], None),
    ]
    assert found.lacking == (2, 4)


def test_a_line_in_the_segment_of_another_and_an_end_without_a_newline() -> None:
    found = walked(LINES[:1], {1: segment(LINES[0]), 2: segment(LINES[1]) + b"torn"})
    assert codes(found) == [("MISPLACED", 2), ("SIGNATURE", 2)]
    assert found.foreign[0].why == "it stands in segment 2 and belongs into segment 1"
    assert found.foreign[0].line == parse(LINES[1])
    assert found.foreign[1].line is None
    # Segments are walked in their order, whatever the order in which they come.
    turned = walked([], {2: segment(LINES[1]), 1: segment(LINES[0])})
    assert (codes(turned), turned.end.seq) == ([("MISPLACED", 2)], 1)
    assert (found.foreign[1].raw, found.foreign[1].length) == (b"torn", 4)
    assert found.end.seq == 1
    torn = walked(LINES[:1], {1: segment(LINES[0]) + LINES[1]})
    assert (codes(torn), torn.new) == ([("SIGNATURE", 1)], ())
    # A line that is accepted is none without its newline.
    cut = walked(LINES[:2], {1: segment(*LINES[:2])[:-1]})
    assert (codes(cut), cut.lacking) == ([("SIGNATURE", 1)], (2,))


def test_beyond_a_number_of_foreign_pieces_only_forks_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "FOREIGN_MAX", 2)
    tip = segment(*LINES[:4], JUNK, b"", *[b""] * 5, JUNK, LINES[4], b"", LINES[2], FORK, LINES[5], JUNK)
    found = walked(LINES[:4], {1: tip})
    assert [(piece.code, piece.raw) for piece in found.foreign] == [
        (Code.SIGNATURE, JUNK),
        (Code.SIGNATURE, b""),
        (Code.FORK, FORK),
    ]
    assert found.more == 9
    assert [one.seq for one in found.new] == [5, 6]


def test_the_shortest_line_is_never_taken_for_junk(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = enrolled(enrolled(begun(), "a", MAC), "b", SPARK)
    start = Position.start(keys.wire, "a/b")
    raw = seal(
        MAC, wire=keys.wire, sender="a", recipient="b", seq=1, prev=start.head, ts=NOW, trust="1:0011223344556677",
        type="x",
    )[:-1]  # fmt: skip
    assert len(raw) == LINE_MIN
    monkeypatch.setattr(chain, "FOREIGN_MAX", 0)
    found = walk(start, {1: segment(b"", raw)}, lambda _: b"", wire=keys.wire, channel="a/b", keys=keys)
    assert ([one.raw for one in found.new], found.foreign, found.more) == ([raw], (), 1)


def test_whether_a_segment_lacks_accepted_lines() -> None:
    known = segment(*LINES[:3])
    assert not lacking(known, known)
    assert not lacking(known, known + b"more")
    assert not lacking(known, b"more\n" + known)
    assert not lacking(b"", b"")
    assert lacking(known, segment(*LINES[:2]))
    assert lacking(known, segment(LINES[1], LINES[0], LINES[2]))
    assert lacking(known, b"")


@pytest.mark.parametrize(
    "segments",
    [
        {1: LINES},
        {1: LINES[:1], 2: LINES[1:2], 3: LINES[2:3], 4: LINES[3:4], 5: LINES[4:5], 6: LINES[5:]},
        {1: LINES[:3], 2: LINES[3:5], 3: LINES[5:]},
        {1: LINES, 2: []},
        {1: LINES, 2: [], 3: []},
    ],
    ids=["one segment", "a segment each", "three segments", "an empty last one", "two empty last ones"],
)
def test_an_accepted_line_is_found_by_its_number(segments: dict[int, list[bytes]]) -> None:
    asked: list[int] = []

    def accepted(number: int) -> bytes:
        asked.append(number)
        return segment(*segments[number])

    for seq, raw in enumerate(LINES, 1):
        assert line_at(seq, len(segments), accepted) == raw
    asked.clear()
    assert line_at(len(LINES) + 1, len(segments), accepted) is None
    assert line_at(0, len(segments), accepted) is None
    assert len(asked) <= 2 * len(segments).bit_length()
    assert line_at(1, 0, accepted) is None


def test_lines_are_split_at_newlines_alone() -> None:
    assert lines_of(b"") == lines_of(b"torn") == []
    assert lines_of(b"a\r\nb\x0b\x85\n\ntorn") == [b"a\r", b"b\x0b\x85", b""]
