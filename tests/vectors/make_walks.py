"""`walks.json`: what a tip carries of a channel, walked against what was accepted of it."""

from collections.abc import Iterator
from typing import Any

from vectors.forge import (
    ALPHABET,
    LINE_MAX,
    SEGMENT_MAX,
    Author,
    End,
    Key,
    b64,
    middle,
    notation,
    resign,
    seal,
    segment,
    sha,
    signature,
    start,
    unsigned,
)
from vectors.world import MAC, MAC_NEXT, MALLORY, OTHER_WIRE, SPARK, TRUST_REF, WIRE

CHANNEL = "mac/spark"
Vector = dict[str, Any]
Foreign = tuple[int, int, str]


def _lines(count: int, key: Key = MAC, channel: str = CHANNEL, wire: str = WIRE) -> list[bytes]:
    author = Author(key, wire, channel, TRUST_REF)
    return [author.write(middle(body=f"line {number}")) for number in range(1, count + 1)]


L1, L2, L3, L4, L5, L6 = LINES = _lines(6)
"""Six honest lines. Nearly everywhere below, the first three are accepted."""


def end_of(lines: list[bytes]) -> End:
    end = start(WIRE, CHANNEL)
    for line in lines:
        end = end.after(line)
    return end


def second(number: int, *, key: Key = MAC, **changed: object) -> bytes:
    """Return another validly signed line for the place of an honest one."""
    return Author(key, WIRE, CHANNEL, TRUST_REF, end_of(LINES[: number - 1])).line(middle(body="second"), **changed)


def make() -> dict[str, Any]:
    def entry(key: Key, name: str, status: str = "active", **positions: Any) -> dict[str, Any]:
        return {"public": b64(key.public), "name": name, "status": status, "positions": positions}

    spark = {SPARK.id: entry(SPARK, "spark")}
    return {
        "about": "What a tip carries of a channel, walked against its accepted chain; see README.md.",
        "wire": WIRE,
        "channel": CHANNEL,
        "rings": {
            "active": {MAC.id: entry(MAC, "mac"), **spark},
            "replaced at 3": {
                MAC.id: entry(MAC, "mac", "retired", **{CHANNEL: [3, sha(L3)]}),
                MAC_NEXT.id: entry(MAC_NEXT, "mac"),
                **spark,
            },
            "revoked everywhere": {MAC.id: entry(MAC, "mac", "revoked"), **spark},
        },
        "vectors": [
            *_honest(),
            *_appended(),
            *_changed(),
            *_between(),
            *_encodings(),
            *_moved(),
            *_keys(),
            *_segments(),
        ],
    }


def _vector(
    name: str,
    reason: str,
    accepted: list[bytes] | dict[int, list[bytes]],
    carried: bytes | dict[int, bytes],
    new: list[bytes],
    foreign: list[Foreign] = [],  # noqa: B006 - never changed
    lacking: list[int] = [],  # noqa: B006 - never changed
    *,
    ring: str = "active",
) -> Vector:
    held = accepted if isinstance(accepted, dict) else {1: accepted}
    tip = carried if isinstance(carried, dict) else {1: carried}
    before = end_of([line for number in sorted(held) for line in held[number]])
    after = before
    for line in new:
        after = after.after(line)
    vector: Vector = {
        "name": name,
        "reason": reason,
        "accepted": {str(number): notation(segment(*lines)) for number, lines in held.items() if lines},
        "end": before.json(),
        "carried": {str(number): notation(data) for number, data in tip.items()},
        "after": after.json(),
        "new": [before.seq + number for number in range(1, len(new) + 1)],
        "foreign": [list(piece) for piece in sorted(foreign)],
        "lacking": lacking,
    }
    if ring != "active":
        vector["ring"] = ring
    return vector


THREE = [L1, L2, L3]
SIZE = len(segment(*THREE))


def _honest() -> Iterator[Vector]:
    yield _vector("nothing new", "all of it is accepted already", THREE, segment(*THREE), [])
    yield _vector("one new line", "the next one", THREE, segment(*THREE, L4), [L4])
    yield _vector("three new lines", "each the next one", THREE, segment(*LINES), [L4, L5, L6])
    yield _vector("a newcomer", "from the channel's beginning", [], segment(*LINES), LINES)
    yield _vector("an empty channel", "nothing was written yet", [], b"", [])
    author = Author(MAC, WIRE, CHANNEL, TRUST_REF, end_of(THREE))
    odd = author.write(b'"colour":"red",')
    then = author.write(middle(body="after"))
    yield _vector(
        "an unreadable line between two good ones",
        "content decides nothing",
        THREE,
        segment(*THREE, odd, then),
        [odd, then],
    )
    text = author.write(middle(body="\u2028\u0085 a\\nb \x7f"))
    yield _vector(
        "text that looks like more lines",
        "split at 0x0A alone",
        THREE,
        segment(*THREE, odd, then, text),
        [odd, then, text],
    )


def _appended() -> Iterator[Vector]:
    junk = b"junk"
    yield _vector(
        "a junk line behind", "foreign, and not kept", THREE, segment(*THREE, junk), [], [(1, SIZE, "SIGNATURE")]
    )
    yield _vector(
        "a junk line, then the next one", "what is foreign stops nothing", THREE, segment(*THREE, junk, L4), [L4],
        [(1, SIZE, "SIGNATURE")],
    )  # fmt: skip
    yield _vector("junk without a newline", "unterminated", THREE, segment(*THREE) + junk, [], [(1, SIZE, "SIGNATURE")])
    yield _vector(
        "junk without a newline, the next line glued to it", "one piece, and no line", THREE,
        segment(*THREE) + junk + segment(L4), [], [(1, SIZE, "SIGNATURE")],
    )  # fmt: skip
    yield _vector("the owner published again", "what was junk is gone, and all agree", THREE, segment(*THREE, L4), [L4])
    yield _vector("a copy of an old line behind", "a replay", THREE, segment(*THREE, L1), [], [(1, SIZE, "REPLAY")])
    yield _vector("a copy of the last line behind", "a replay", THREE, segment(*THREE, L3), [], [(1, SIZE, "REPLAY")])
    yield _vector(
        "a new line twice", "the second is a replay", THREE, segment(*THREE, L4, L4), [L4],
        [(1, SIZE + len(L4) + 1, "REPLAY")],
    )  # fmt: skip
    yield _vector(
        "an empty line, then the next one", "an empty piece is no line", THREE, segment(*THREE, b"", L4), [L4],
        [(1, SIZE, "SIGNATURE")],
    )  # fmt: skip
    at = SIZE + len(L4) + 1
    yield _vector(
        "a folder taken before the first line", "it was nobody's", [], segment(junk, L1), [L1], [(1, 0, "SIGNATURE")]
    )
    yield _vector(
        "a line of an unknown key between two good ones", "foreign for now", THREE,
        segment(*THREE, L4, second(5, key=MALLORY), L5), [L4, L5], [(1, at, "KEY_UNKNOWN")],
    )  # fmt: skip
    yield _vector(
        "a line of spark's key between two good ones", "a channel has one writer", THREE,
        segment(*THREE, L4, second(5, key=SPARK), L5), [L4, L5], [(1, at, "SIGNATURE")],
    )  # fmt: skip
    huge = b"x" * LINE_MAX
    yield _vector(
        "a huge line, then the next one", "too large for a line", THREE, segment(*THREE, huge, L4), [L4],
        [(1, SIZE, "SIZE")],
    )  # fmt: skip
    text = signature(L4)
    for low in (1, 15):
        spelled = resign(unsigned(L4), text[:85] + ALPHABET[ALPHABET.index(text[85]) + low] + "==")
        yield _vector(
            f"the next line in spelling {low + 1} of its signature, then as it is", "one spelling counts", THREE,
            segment(*THREE, spelled, L4), [L4], [(1, SIZE, "SIGNATURE")],
        )  # fmt: skip


def _changed() -> Iterator[Vector]:
    bad = L2.replace(b"line 2", b"line 9")
    at = len(L1) + 1
    yield _vector(
        "an accepted line rewritten", "its signature does not hold; the line lacks", THREE, segment(L1, bad, L3), [],
        [(1, at, "SIGNATURE")], [2],
    )  # fmt: skip
    yield _vector(
        "an accepted line rewritten by its owner", "two valid lines for one place", THREE, segment(L1, second(2), L3),
        [],
        [(1, at, "FORK")], [2],
    )  # fmt: skip
    yield _vector(
        "the last accepted line rewritten by its owner, and more behind", "two valid lines for one place", THREE,
        segment(L1, L2, second(3), L4), [L4], [(1, at + len(L2) + 1, "FORK")], [3],
    )  # fmt: skip
    yield _vector(
        "an accepted line unsigned", "no line; the line lacks", THREE, segment(L1, unsigned(L2), L3), [],
        [(1, at, "SIGNATURE")], [2],
    )  # fmt: skip
    yield _vector("an accepted line deleted", "it lacks", THREE, segment(L1, L3), [], [], [2])
    yield _vector("the first line deleted", "it lacks", THREE, segment(L2, L3, L4), [L4], [], [1])
    yield _vector("the last lines deleted", "they lack", THREE, segment(L1), [], [], [2, 3])
    yield _vector("the segment emptied", "all of it lacks", THREE, b"", [], [], [1, 2, 3])
    yield _vector(
        "the last line torn", "unterminated, and the line lacks", THREE, segment(L1, L2) + L3[:100], [],
        [(1, at + len(L2) + 1, "SIGNATURE")], [3],
    )  # fmt: skip
    yield _vector(
        "the last newline missing", "unterminated, even if it is a line", THREE, segment(*THREE)[:-1], [],
        [(1, at + len(L2) + 1, "SIGNATURE")], [3],
    )  # fmt: skip
    yield _vector(
        "accepted lines exchanged", "one is out of place", THREE, segment(L1, L3, L2), [],
        [(1, at + len(L3) + 1, "REPLAY")], [2],
    )  # fmt: skip
    yield _vector(
        "a copy of the last line in front", "from there on all are out of place", THREE, segment(L3, L1, L2, L3), [],
        [(1, len(L3) + 1, "REPLAY"), (1, len(L3) + at + 1, "REPLAY"), (1, len(L3) + at + len(L2) + 2, "REPLAY")],
        [1, 2],
    )  # fmt: skip
    yield _vector(
        "a copy of the first line in the middle", "a replay", THREE, segment(L1, L2, L1, L3), [],
        [(1, at + len(L2) + 1, "REPLAY")],
    )  # fmt: skip
    yield _vector(
        "rewritten, and new lines behind", "the new ones are the next ones", THREE, segment(L1, bad, L3, L4, L5),
        [L4, L5],
        [(1, at, "SIGNATURE")], [2],
    )  # fmt: skip
    yield _vector(
        "a line inserted, and new lines behind", "foreign", THREE, segment(b"{}", L1, L2, L3, L4), [L4],
        [(1, 0, "SIGNATURE")],
    )  # fmt: skip


def _between() -> Iterator[Vector]:
    at = SIZE
    yield _vector("a new line missing", "the one behind waits", THREE, segment(*THREE, L5), [], [(1, at, "GAP")])
    yield _vector("new lines exchanged", "the later one waits", THREE, segment(*THREE, L5, L4), [L4], [(1, at, "GAP")])
    yield _vector(
        "new lines in reverse", "one at a time", THREE, segment(*THREE, L6, L5, L4), [L4],
        [(1, at, "GAP"), (1, at + len(L6) + 1, "GAP")],
    )  # fmt: skip
    yield _vector(
        "two lines for the next place", "the first is accepted, the second a fork", THREE,
        segment(*THREE, L4, second(4)),
        [L4], [(1, at + len(L4) + 1, "FORK")],
    )  # fmt: skip
    other = second(4)
    yield _vector(
        "two lines for the next place, the other first", "a key that signs twice", THREE,
        segment(*THREE, other, L4, L5),
        [other], [(1, at + len(other) + 1, "FORK"), (1, at + len(other) + len(L4) + 2, "FORK")],
    )  # fmt: skip
    yield _vector(
        "a second line 2, behind", "two valid lines for one place", THREE, segment(*THREE, second(2)), [],
        [(1, at, "FORK")],
    )  # fmt: skip
    forked = second(4, prev=sha(b"another 3"))
    yield _vector(
        "a next line that follows another one", "two histories of one key", THREE, segment(*THREE, forked), [],
        [(1, at, "FORK")],
    )  # fmt: skip


def _encodings() -> Iterator[Vector]:
    crlf = segment(*THREE).replace(b"\n", b"\r\n")
    yield _vector(
        "with CR LF", "other bytes", THREE, crlf, [],
        [(1, 0, "SIGNATURE"), (1, len(L1) + 2, "SIGNATURE"), (1, len(L1) + len(L2) + 4, "SIGNATURE")], [1, 2, 3],
    )  # fmt: skip
    yield _vector(
        "with a byte order mark", "the first line is other bytes", THREE, b"\xef\xbb\xbf" + segment(*THREE), [],
        [(1, 0, "SIGNATURE")], [1],
    )  # fmt: skip
    yield _vector(
        "in UTF-16", "other bytes", [L1], segment(L1).decode().encode("utf-16-be"), [], [(1, 0, "SIGNATURE")], [1]
    )
    nul = bytes(SIZE)
    yield _vector("all NUL", "unterminated", THREE, nul, [], [(1, 0, "SIGNATURE")], [1, 2, 3])
    yield _vector("NUL bytes behind", "unterminated", THREE, segment(*THREE) + bytes(512), [], [(1, SIZE, "SIGNATURE")])
    yield _vector(
        "NUL bytes, then the next line", "they are part of its piece", THREE,
        segment(*THREE) + bytes(512) + segment(L4),
        [], [(1, SIZE, "SIGNATURE")],
    )  # fmt: skip
    half = L4[:150]
    for name, tail, pieces in (
        ("half a line", half, [SIZE]),
        ("half a line and a newline", half + b"\n", [SIZE]),
        ("half a line and two newlines", half + b"\n\n", [SIZE, SIZE + 151]),
        ("a line without its newline", L4, [SIZE]),
    ):
        foreign = [(1, at, "SIGNATURE") for at in pieces]
        yield _vector(f"{name} behind", "not a line yet", THREE, segment(*THREE) + tail, [], foreign)
    conflict = segment(*THREE, b"<<<<<<< HEAD", L4, b"=======", L4, b">>>>>>> theirs")
    at = SIZE + 13
    marks = [SIZE, at + len(L4) + 1, at + 2 * len(L4) + 10]
    yield _vector(
        "conflict markers around the next line", "markers are no lines", THREE, conflict, [L4],
        [*((1, mark, "SIGNATURE") for mark in marks), (1, at + len(L4) + 9, "REPLAY")],
    )  # fmt: skip


def _moved() -> Iterator[Vector]:
    there = _lines(4, channel="mac/ana")[3]
    yield _vector("a line of another channel", "misplaced", THREE, segment(*THREE, there), [], [(1, SIZE, "MISPLACED")])
    elsewhere = _lines(4, wire=OTHER_WIRE)[3]
    yield _vector(
        "a line of another wire", "misplaced", THREE, segment(*THREE, elsewhere), [], [(1, SIZE, "MISPLACED")]
    )
    back = _lines(4, key=SPARK, channel="spark/mac")[3]
    yield _vector(
        "a line of the other direction", "misplaced", THREE, segment(*THREE, back), [], [(1, SIZE, "MISPLACED")]
    )


def _keys() -> Iterator[Vector]:
    author = Author(MAC_NEXT, WIRE, CHANNEL, TRUST_REF, end_of(THREE))
    n4 = author.write(middle(body="by the next key"))
    n5 = author.write(middle(body="and more"))
    yield _vector(
        "the next key goes on", "the old key's line behind its position is foreign", THREE, segment(*THREE, L4, n4, n5),
        [n4, n5], [(1, SIZE, "KEY_RETIRED")], ring="replaced at 3",
    )  # fmt: skip
    yield _vector(
        "a newcomer after a rotation", "old lines count under the old key", [], segment(*THREE, n4), [*THREE, n4],
        ring="replaced at 3",
    )  # fmt: skip
    yield _vector(
        "the old key rewrites what it wrote", "below its position it still counts, and cannot displace", THREE,
        segment(L1, second(2), L3, n4), [n4], [(1, len(L1) + 1, "FORK")], [2], ring="replaced at 3",
    )  # fmt: skip
    foreign = [(1, at, "KEY_RETIRED") for at in (0, len(L1) + 1, len(L1) + len(L2) + 2)]
    yield _vector(
        "a key that was revoked everywhere", "no line of it counts", [], segment(*THREE), [], foreign,
        ring="revoked everywhere",
    )  # fmt: skip


def _segments() -> Iterator[Vector]:
    author = Author(MAC, WIRE, CHANNEL, TRUST_REF)
    full: list[bytes] = []
    for _ in range(4):
        full.append(author.sized(LINE_MAX))
        author.end = author.end.after(full[-1])
    assert author.end.size == SEGMENT_MAX
    following = author.line(middle(body="in segment 2"))
    filled = segment(*full)
    yield _vector("a segment that is exactly full", "262,144 bytes fit", [], {1: filled}, full)
    yield _vector(
        "the line behind a full segment",
        "it begins the next one",
        {1: full},
        {1: filled, 2: segment(following)},
        [following],
    )
    yield _vector(
        "a newcomer to two segments",
        "one walk through both",
        [],
        {1: filled, 2: segment(following)},
        [*full, following],
    )
    yield _vector(
        "the line behind a full segment, in the full one", "it belongs into segment 2", {1: full},
        {1: filled + segment(following)}, [], [(1, SEGMENT_MAX, "MISPLACED")],
    )  # fmt: skip
    yield _vector(
        "the next line in a segment of its own", "it fits into segment 1", THREE,
        {1: segment(*THREE), 2: segment(L4)}, [],
        [(2, 0, "MISPLACED")],
    )  # fmt: skip
    yield _vector(
        "the next line in segment 9", "it fits into segment 1", THREE, {1: segment(*THREE), 9: segment(L4)}, [],
        [(9, 0, "MISPLACED")],
    )  # fmt: skip
    yield _vector(
        "an extra segment of copies", "replays", THREE, {1: segment(*THREE), 2: segment(*THREE)}, [],
        [(2, 0, "REPLAY"), (2, len(L1) + 1, "REPLAY"), (2, len(L1) + len(L2) + 2, "REPLAY")],
    )  # fmt: skip
    yield _vector(
        "an extra segment of junk",
        "foreign",
        THREE,
        {1: segment(*THREE, L4), 2: b"junk\n"},
        [L4],
        [(2, 0, "SIGNATURE")],
    )
    yield _vector(
        "a segment renamed", "all lacks in one, and all is copied in the other", THREE, {1: b"", 2: segment(*THREE)},
        [],
        [(2, 0, "REPLAY"), (2, len(L1) + 1, "REPLAY"), (2, len(L1) + len(L2) + 2, "REPLAY")], [1, 2, 3],
    )  # fmt: skip
    almost = Author(MAC, WIRE, CHANNEL, TRUST_REF)
    held = []
    for _ in range(3):
        held.append(almost.sized(LINE_MAX))
        almost.end = almost.end.after(held[-1])
    exact, over = almost.sized(LINE_MAX), almost.sized(LINE_MAX - 1)
    fits = End(3, almost.end.head, 1, almost.end.size).after(over)
    assert fits.size == SEGMENT_MAX - 1
    yield _vector("one byte is left in a segment", "it is not full", {1: held}, {1: segment(*held, over)}, [over])
    yield _vector("the last byte of a segment is used", "it is full", {1: held}, {1: segment(*held, exact)}, [exact])
    tail = Author(MAC, WIRE, CHANNEL, TRUST_REF, fits).line(middle(body="x"))
    yield _vector(
        "a line that is longer than the byte that is left", "it begins the next segment", {1: [*held, over]},
        {1: segment(*held, over), 2: segment(tail)}, [tail],
    )  # fmt: skip
    lost = seal(MAC, author.front(seq=2), middle(body="second"))
    yield _vector(
        "a second line 2 in a later segment", "two valid lines for one place", {1: full, 2: [following]},
        {1: filled, 2: segment(following, lost)}, [], [(2, len(following) + 1, "FORK")],
    )  # fmt: skip
    yield _vector(
        "the first of two segments is missing", "its lines lack, and the rest goes on", {1: full, 2: [following]},
        {1: b"", 2: segment(following)}, [], [], [1, 2, 3, 4],
    )  # fmt: skip
