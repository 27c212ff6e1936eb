"""`lines.json`: single lines as the next of a channel, each with its two verdicts."""

from collections.abc import Iterator
from typing import Any

from vectors.forge import (
    ALPHABET,
    LINE,
    LINE_MAX,
    PRESENCE,
    SEGMENT_MAX,
    Author,
    End,
    b64,
    middle,
    notation,
    pae,
    resign,
    seal,
    sha,
    signature,
    start,
    unsigned,
)
from vectors.make_sealed import close
from vectors.world import ANA, MAC, MAC_NEXT, MALLORY, OTHER_WIRE, SPARK, TRUST_REF, WIRE

CHANNEL = "mac/spark"
Vector = dict[str, Any]


def _mac() -> Author:
    """Return mac behind two lines of its channel to spark."""
    author = Author(MAC, WIRE, CHANNEL, TRUST_REF)
    author.write(middle(body="one"))
    author.write(middle(body="two"))
    return author


AUTHOR = _mac()
END = AUTHOR.end
SECOND_LINE_HEAD = END.head


def _key(key: Any, name: str, status: str = "active", **positions: Any) -> dict[str, Any]:
    return {"public": b64(key.public), "name": name, "status": status, "positions": positions}


def _ring(mac: dict[str, Any], **more: dict[str, Any]) -> dict[str, Any]:
    others = {SPARK.id: _key(SPARK, "spark"), ANA.id: _key(ANA, "ana")}
    return {MAC.id: mac, **others, **more}


def rings() -> dict[str, Any]:
    """Return the keys in force, by the name of the situation; positions of mac's key are in mac/spark."""
    third = AUTHOR.line(middle(body="three"))
    at = {
        "2": [2, SECOND_LINE_HEAD],
        "3": [3, sha(third)],
        "3, another line": [3, sha(b"another")],
        "4": [4, sha(b"4")],
    }
    made = {"active": _ring(_key(MAC, "mac"))}
    for status in ("retired", "revoked"):
        made[f"{status} everywhere"] = _ring(_key(MAC, "mac", status))
        made[f"{status} elsewhere"] = _ring(_key(MAC, "mac", status, **{"mac/ana": at["4"]}))
        for place, position in at.items():
            made[f"{status} at {place}"] = _ring(_key(MAC, "mac", status, **{CHANNEL: position}))
    retired = _key(MAC, "mac", "retired", **{CHANNEL: at["2"]})
    made["replaced at 2"] = _ring(retired, **{MAC_NEXT.id: _key(MAC_NEXT, "mac")})
    return made


def make() -> dict[str, Any]:
    vectors = [*_good(), *_text(), *_numbers(), *_fields(), *_json(), *_form(), *_signatures(), *_places(), *_keys()]
    return {
        "about": "Lines, each judged as the next one of a channel; see README.md.",
        "wire": WIRE,
        "channel": CHANNEL,
        "end": END.json(),
        "rings": rings(),
        "vectors": vectors,
    }


def _vector(
    name: str,
    raw: bytes,
    verdict: str,
    content: str | None,
    reason: str,
    *,
    ring: str = "active",
    end: End | None = None,
    channel: str | None = None,
    members: dict[str, Any] | None = None,
) -> Vector:
    vector: Vector = {"name": name, "line": notation(raw), "verdict": verdict, "content": content, "reason": reason}
    if ring != "active":
        vector["ring"] = ring
    if channel is not None:
        vector["channel"] = channel
    if end is not None:
        vector["end"] = end.json()
    if verdict == "ok":
        vector["after"] = (end or END).after(raw).json()
    if members is not None:
        vector["members"] = members
    return vector


def _says(name: str, reason: str, *, type: str = "message", **members: Any) -> Vector:
    """A lawful line by an honest writer."""
    return _vector(name, AUTHOR.line(middle(**members), type=type), "ok", "readable", reason, members=members)


def _unreadable(name: str, between: str | bytes, reason: str, *, code: str = "SCHEMA", **changed: Any) -> Vector:
    """A line that keeps its place and whose content is unlawful."""
    data = between if isinstance(between, bytes) else between.encode()
    return _vector(name, AUTHOR.line(data, **changed), "ok", code, reason)


def _refused(name: str, raw: bytes, code: str, reason: str, **rest: Any) -> Vector:
    return _vector(name, raw, code, None, reason, **rest)


def _good() -> Iterator[Vector]:
    beginning = start(WIRE, CHANNEL)
    opening = Author(MAC, WIRE, CHANNEL, TRUST_REF)
    yield _vector(
        "the first line of a channel", opening.line(middle(body="hello")), "ok", "readable",
        "seq 1 names the channel's beginning", end=beginning, members={"body": "hello"},
    )  # fmt: skip
    yield _says("no optional member at all", "prefix and trailer share a comma, and nothing stands between")
    yield _says(
        "all optional members", "each once and in order", type="request", thread="spark/mac/1", re="spark/mac/7",
        subject="the build", body={"ok": True, "n": 3}, refs=["git:abc", "docs/x.md"], priority="high", needs="human",
        ack_required=True, expires="2026-12-01T00:00:00.000Z", idem="k-1", ack=[7, sha(b"7")],
    )  # fmt: skip
    yield _says(
        "all members beside a closed letter", "subject, body and refs are in it", type="request", thread="spark/mac/1",
        re="spark/mac/7", priority="high", needs="human", ack_required=True, expires="2026-12-01T00:00:00.000Z",
        idem="k-1", ack=[7, sha(b"7")], enc=close(),
    )  # fmt: skip
    yield _says(
        "a letter closed in a later way", "it keeps its place, and is shown as closed", enc={"alg": "x", "n": 1}
    )
    for name, value in (("subject", "s"), ("body", "x"), ("refs", [])):
        middle_ = middle(**{name: value}, enc=close())
        yield _unreadable(f"{name} beside a closed letter", middle_, "it would be open there")
    closed_incident = middle(enc=close())
    yield _unreadable("a closed incident", closed_incident, "its body is for everybody", type="incident")
    for kind in (
        "request", "warning", "feedback", "ship", "proposal", "decision", "claim", "task", "heartbeat", "shutdown",
        "wakeup",
    ):  # fmt: skip
        yield _says(f"type {kind}", "asks for nothing", type=kind, body="x")
    for kind in ("reply", "ack", "correction", "receipt", "counter", "accept", "reject", "release"):
        yield _says(f"type {kind}", "names a message in re", type=kind, re="spark/mac/3")
        yield _unreadable(f"type {kind} without re", middle(body="x"), "this type names a message in re", type=kind)
    claim = {"code": "SIGNATURE", "scope": "mac/spark", "evidence": {"tip": "0" * 40}}
    yield _says("type incident", "its body says code, scope and evidence", type="incident", body=claim)
    for missing in claim:
        body = {name: value for name, value in claim.items() if name != missing}
        reason = f"the body of an incident has {missing}"
        yield _unreadable(f"type incident without {missing}", middle(body=body), reason, type="incident")
    yield _unreadable(
        "type incident in words", middle(body="x"), "the body of an incident is an object", type="incident"
    )
    yield _says("a type nobody knows", "unknown types are lawful and shown", type="x-future_1", body={"new": []})
    for recipient in ("all", "review", "nobody-yet"):
        other = Author(MAC, WIRE, f"mac/{recipient}", TRUST_REF)
        yield _vector(
            f"to {recipient}", other.line(middle(body="x")), "ok", "readable",
            "whether a recipient exists is no matter of the chain", channel=other.channel, end=other.end,
            members={"body": "x"},
        )  # fmt: skip
    for ts in ("2099-01-01T00:00:00.000Z", "1970-01-01T00:00:00.000Z", "9999-99-99T99:99:99.999Z"):
        raw = AUTHOR.line(middle(body="x"), ts=ts)
        yield _vector(f"ts {ts}", raw, "ok", "readable", "a clock decides nothing", members={"body": "x"})
    for trust in ("1:0000000000000000", "999999999:ffffffffffffffff"):
        raw = AUTHOR.line(middle(body="x"), trust=trust)
        yield _vector(f"trust {trust}", raw, "ok", "readable", "which trust a line names is flagged, not judged here")
    high = End(999_999_999_999_998, sha(b"high"))
    author = Author(MAC, WIRE, CHANNEL, TRUST_REF, high)
    yield _vector("the last seq there can be", author.line(), "ok", "readable", "15 digits", end=high)
    past = author.line(seq=1_000_000_000_000_000)
    yield _refused("a seq of 16 digits", past, "SIGNATURE", "the form allows 15 digits", end=high)
    yield from _sizes()
    yield from _placement()


def _sizes() -> Iterator[Vector]:
    full = AUTHOR.sized(LINE_MAX)
    yield _vector("65,536 bytes with the newline", full, "ok", "readable", "exactly the limit")
    yield _refused("65,537 bytes with the newline", AUTHOR.sized(LINE_MAX + 1), "SIZE", "one more than the limit")
    big = b"[" * 100_000
    yield _refused("100,000 bytes of no line at all", big, "SIZE", "size comes before form")


def _placement() -> Iterator[Vector]:
    length = len(AUTHOR.line(middle(body="three"))) + 1
    for name, size in (("fits exactly", SEGMENT_MAX - length), ("is one byte too long", SEGMENT_MAX - length + 1)):
        end = End(2, SECOND_LINE_HEAD, 3, size)
        where = "stays in segment 3" if size + length == SEGMENT_MAX else "begins segment 4"
        yield _vector(
            f"a line that {name}", AUTHOR.line(middle(body="three")), "ok", "readable", where, end=end,
            members={"body": "three"},
        )  # fmt: skip


CHARACTERS = {
    "next line, U+0085": "\u0085",
    "line separator, U+2028": "\u2028",
    "paragraph separator, U+2029": "\u2029",
    "vertical tab": "\x0b",
    "form feed": "\x0c",
    "file separator": "\x1c",
    "group separator": "\x1d",
    "record separator": "\x1e",
    "unit separator": "\x1f",
    "NUL": "\0",
    "carriage return and line feed": "\r\n",
    "escape and terminal codes": "\x1b[31mred\x1b[0m",
    "delete, U+007F": "\x7f",
    "right-to-left override": "\u202egpj.exe\u2066x\u2069",
    "zero width and a byte order mark inside": "a\u200b\ufeffb",
    "beyond the basic plane": "\U0001f600\U0010ffff",
    "a noncharacter": "\ufffe\uffff",
    "composed and decomposed": "\u00e9 e\u0301",
    "quotes and backslashes": '\\ " \\" \\u0041 /',
    "what looks like a trailer": '","key":"00","sig":"00"}',
}


def _text() -> Iterator[Vector]:
    for name, text in CHARACTERS.items():
        yield _says(f"a body with {name}", "text is text, and a line ends at 0x0A alone", body=f"a{text}z")
    yield _says("a member's name of any text", "in bodies names are free", body={"\u2028": 1, "": 2, "seq": 3})
    for name, escaped in (
        ("a lone high surrogate", "\\ud83d"), ("a lone low surrogate", "\\udcb2"),
        ("a pair in the wrong order", "\\ude00\\ud83d"),
    ):  # fmt: skip
        yield _unreadable(f"{name} in a body", f'"body":"a{escaped}z",', "no text of Unicode")
    yield _unreadable("a lone surrogate in a member's name", '"body":{"\\ud800":1},', "no text of Unicode")
    paired = AUTHOR.line(b'"body":"\\ud83d\\ude00",')
    yield _vector("an escaped pair", paired, "ok", "readable", "one character", members={"body": "\U0001f600"})
    escaped = AUTHOR.line(b'"body":"\\u0068\\/\\u00e9",')
    yield _vector("needless escapes", escaped, "ok", "readable", "other bytes, the same text", members={"body": "h/é"})
    for code in (0, 9, 13, 31):
        yield _unreadable(f"a raw control character {code}", b'"body":"a%cz",' % code, "must be escaped")


def _numbers() -> Iterator[Vector]:
    cases: dict[str, Any] = {
        "9007199254740991": 2**53 - 1, "-9007199254740991": 1 - 2**53, "0": 0, "-0": 0, "1.0": 1.0, "-0.0": -0.0,
        "0.00001": 0.00001, "1e2": 100.0, "1E+2": 100.0, "1e-400": 0.0,
        "1.7976931348623157e308": 1.7976931348623157e308,
        "1e20": 1e20, "0.1000000000000000055511151231257827": 0.1,
    }  # fmt: skip
    for text, value in cases.items():
        raw = AUTHOR.line(f'"body":{{"n":{text}}},'.encode())
        yield _vector(f"{text} in a body", raw, "ok", "readable", "a number", members={"body": {"n": value}})
    for text, reason in {
        "9007199254740992": "an integer beyond 2^53-1", "9007199254740993": "an integer beyond 2^53-1",
        "-9007199254740992": "an integer beyond 2^53-1", "1" + "0" * 400: "an integer beyond 2^53-1",
        "1e400": "infinity in a double", "-1e400": "infinity in a double", "1.8e308": "infinity in a double",
        "NaN": "no JSON", "Infinity": "no JSON", "-Infinity": "no JSON", "nan": "no JSON",
        "01": "no JSON", "-01": "no JSON", "+1": "no JSON", ".5": "no JSON", "1.": "no JSON", "1e": "no JSON",
        "0x10": "no JSON", "1_000": "no JSON", "\u0661": "digits are ASCII",
    }.items():  # fmt: skip
        yield _unreadable(f"{text[:24]} in a body", f'"body":{{"n":{text}}},', reason)
    for text in ("1.0", "1e0", "-0.0", "0.00001"):
        yield _unreadable(f"{text} in ack", f'"ack":[{text},"{sha(b"7")}"],', "floats stand in bodies only")
        yield _unreadable(f"{text} in enc", f'"enc":{{"alg":"x","n":{text}}},', "floats stand in bodies only")
    yield _says("an integer in enc", "integers may stand anywhere", enc={"alg": "x", "n": 2**53 - 1})
    yield _unreadable("enc without alg", middle(enc={"n": 1}), "it says in which way it is closed")
    yield _unreadable("enc of another form", middle(enc={**close(), "data": ""}), "not of the form of its alg")


def _fields() -> Iterator[Vector]:
    yield _says("a subject of 200", "the limit, in code points", subject="\U0001f600" * 200)
    yield _unreadable("a subject of 201", middle(subject="s" * 201), "over the limit", code="SIZE")
    yield _unreadable("a subject that is no string", middle(subject=7), "a string is expected")
    yield _says("64 refs of 1,024", "both limits, in code points", refs=["é" * 1024, *(["r"] * 63)])
    yield _unreadable("65 refs", middle(refs=["r"] * 65), "over the limit", code="SIZE")
    yield _unreadable("a ref of 1,025", middle(refs=["r" * 1025]), "over the limit", code="SIZE")
    yield _unreadable("refs that are no list", middle(refs="docs"), "a list is expected")
    yield _unreadable("a ref that is no string", middle(refs=["x", None]), "strings are expected")
    yield _says("no refs", "an empty list is a list", refs=[])
    yield _says("an idem of 200", "the limit", idem="i" * 200)
    yield _unreadable("an idem of 201", middle(idem="i" * 201), "over the limit", code="SIZE")
    yield _unreadable("an empty idem", middle(idem=""), "1 to 200")
    yield _says("an empty body", "a string", body="")
    yield _says("an empty object", "an object", body={})
    for value in (None, 1, True, ["x"]):
        yield _unreadable(f"a body of {value!r}", middle(body=value), "a string or an object is expected")
    for name, value in {
        "priority": "Urgent", "needs": "", "ack_required": 1, "expires": "2026-12-01", "enc": "x",
        "thread": "mac/spark",
        "re": "mac/spark/0",
    }.items():  # fmt: skip
        yield _unreadable(f"{name} of {value!r}", middle(**{name: value}), "not what this member may be")
    for value in (
        "mac/mac/1", "all/mac/1", "Mac/spark/1", "mac/spark/01", "mac/spark/1/2", "/spark/1", 1, None, "mac/con/1",
        "mac/spark/1000000000000000", "mac/spark/-1", "mac/spark/1 ", "mac/spark/\u0661",
    ):  # fmt: skip
        yield _unreadable(f"re of {value!r}", middle(re=value), "no id")
    yield _says("re of a line to all", "an id", re="spark/all/999999999999999")
    head = sha(b"7")
    for name, ack in {
        "of seq 0": [0, head], "of a negative seq": [-1, head], "of true": [True, head], "of one": [1], "empty": [],
        "of three": [1, head, head], "with a short head": [1, head[:63]], "with an upper-case head": [1, head.upper()],
        "that is an object": {"seq": 1}, "with a seq in words": ["1", head],
    }.items():  # fmt: skip
        yield _unreadable(f"an ack {name}", middle(ack=ack), "not [seq, head]")
    everyone = Author(MAC, WIRE, "mac/all", TRUST_REF)
    raw = everyone.line(middle(ack=[1, head]))
    yield _vector(
        "an ack in a line to all", raw, "ok", "SCHEMA", "an ack has a single recipient",
        channel="mac/all", end=everyone.end,
    )  # fmt: skip


def _json() -> Iterator[Vector]:
    again = "members stand once"
    for name, between in {
        "seq twice": '"seq":4,', "from twice": '"from":"spark",', "wire twice": f'"wire":"{OTHER_WIRE}",',
        "key twice": f'"key":"{SPARK.id}",', "sig twice": f'"sig":"{"A" * 86}==",', "type twice": '"type":"request",',
        "body twice": '"body":"a","body":"b",', "body twice, once escaped": '"body":"a","bod\\u0079":"b",',
        "a name twice in a body": '"body":{"a":1,"a":1},', "a name twice, deep": '"body":{"x":[{"a":1,"\\u0061":2}]},',
    }.items():  # fmt: skip
        yield _unreadable(name, between, again)
    two = AUTHOR.line('"body":{"\u00e9":1,"e\u0301":2},'.encode())
    yield _vector("two names that only look alike", two, "ok", "readable", "names are not normalised")
    yield _unreadable("an unknown member", '"colour":"red",', "of a later version, perhaps")
    yield _unreadable("an unknown member that comes after others", '"body":"x","zzz":1,', "of a later version, perhaps")
    yield _unreadable("members out of order", '"body":"x","subject":"s",', "the order is fixed")
    yield _unreadable("a member's name in other letters", '"Body":"x",', "an unknown member")
    for name, between, reason in (
        ("an empty middle with a comma", ",", "no JSON: two commas"),
        ("a brace that closes early", '"body":"x"},{"a":1,', "no JSON: two objects"),
        ("a body that is left open", '"body":{"a":1,', "no JSON: the trailer is inside the body"),
        ("a string that is left open", '"body":"a,', "no JSON: the string ends in the trailer"),
        ("single quotes", "'body':'x',", "no JSON"),
        ("a comment", '/* x */"body":"x",', "no JSON"),
        ("a trailing comma in a body", '"body":{"a":1,},', "no JSON"),
        ("no value", '"body":,', "no JSON"),
        ("words for values", '"ack_required":True,', "no JSON"),
        ("a bad escape", '"body":"\\x41",', "no JSON"),
        ("a short escape", '"body":"\\u12",', "no JSON"),
        ("no JSON at all", "???,", "no JSON"),
    ):
        yield _unreadable(name, between, reason)
    spaced = AUTHOR.line(b' "body" : "x" ,\t"refs":[ ] ,')
    yield _vector(
        "whitespace in the middle", spaced, "ok", "readable", "a writer must not, a reader does not mind",
        members={"body": "x", "refs": []},
    )  # fmt: skip
    yield _unreadable("whitespace only", "  ,", "no JSON: two commas")
    for depth in (31, 32, 33):
        arrays = depth - 2
        text = '"body":{"d":' + "[" * arrays + "]" * arrays + "},"
        if depth <= 32:
            raw = AUTHOR.line(text.encode())
            yield _vector(f"{depth} levels of arrays", raw, "ok", "readable", "at most 32 with the line's own object")
        else:
            yield _unreadable(f"{depth} levels of arrays", text, "at most 32 with the line's own object")
        nested = '"body":' + '{"d":' * (depth - 1) + "1" + "}" * (depth - 1) + ","
        if depth <= 32:
            yield _vector(f"{depth} levels of objects", AUTHOR.line(nested.encode()), "ok", "readable", "at most 32")
        else:
            yield _unreadable(f"{depth} levels of objects", nested, "at most 32")
    yield _says("brackets in a string", "text is not structure", body="[{" * 1000)
    yield _says("many brackets, side by side", "depth, not number", body={"a": [[] for _ in range(100)]})
    yield _unreadable("60,000 opening brackets", '"body":' + "[" * 60_000 + ",", "too deep, and no JSON")


def _form() -> Iterator[Vector]:
    good = AUTHOR.line(middle(body="three"))
    form = "SIGNATURE"
    yield _refused("nothing", b"", form, "no line")
    yield _refused("an opening brace", b"{", form, "no line")
    yield _refused("two bytes", b"{}", form, "JSON, but unsigned")
    yield _refused("text", b"hello", form, "no line")
    yield _refused("unsigned", unsigned(good), form, "it ends before the signature")
    yield _refused("unsigned, sig null", unsigned(good)[:-1] + b',"sig":null}', form, "no trailer")
    yield _refused("torn in the middle", good[: len(good) // 2], form, "half a line")
    yield _refused("torn by one byte", good[:-1], form, "the trailer is read from the end")
    yield _refused("a space behind", good + b" ", form, "the trailer is read from the end")
    yield _refused("a carriage return behind", good + b"\r", form, "CR LF")
    yield _refused("a tab in front", b"\t" + good, form, "the prefix begins at the first byte")
    yield _refused("a byte order mark in front", b"\xef\xbb\xbf" + good, form, "the prefix begins at the first byte")
    yield _refused("NUL bytes", b"\0" * len(good), form, "a file that was never written")
    yield _refused("a NUL byte behind", good + b"\0", form, "the trailer is read from the end")
    yield _refused("a conflict marker", b"<<<<<<< HEAD", form, "left by a merge")
    spaced = AUTHOR.front().replace(b'"v":1', b'"v": 1')
    yield _refused("a space in the prefix", seal(MAC, spaced), form, "signed, but of another form")
    yield _refused("a space in the trailer", good.replace(b'"sig":', b'"sig": '), form, "of another form")
    for version in (0, 2, 10, "1", True):
        raw = AUTHOR.line(middle(body="x"), v=version)
        yield _refused(f"v {version!r}", raw, form, "not a line of version 1")
    order = AUTHOR.front().replace(b'"from":"mac","to":"spark"', b'"to":"spark","from":"mac"')
    yield _refused("prefix out of order", seal(MAC, order), form, "the prefix has one order")
    for name, value in (
        ("wire", WIRE.upper()), ("wire", WIRE[:31]), ("wire", WIRE + "0"), ("from", "Mac"), ("from", ""),
        ("from", "m" * 33),
        ("to", "spark/x"), ("to", "../spark"), ("to", "sp\u00e4rk"), ("seq", 0), ("seq", -3), ("seq", "3"),
        ("seq", 3.0),
        ("seq", None), ("prev", END.head.upper()), ("prev", None), ("prev", END.head[:63]),
        ("ts", "2026-11-29T11:20:00Z"),
        ("ts", "2026-11-29T11:20:00.123+00:00"), ("ts", "2026-11-29 11:20:00.123Z"), ("ts", 0),
        ("ts", "\u0662\u0660\u0662\u0666-11-29T11:20:00.123Z"),
        ("trust", "3"), ("trust", "0:0011223344556677"), ("trust", "03:0011223344556677"),
        ("trust", "3:00112233445566"),
        ("type", ""), ("type", "Message"), ("type", "1st"), ("type", "t" * 33), ("type", None),
    ):  # fmt: skip
        raw = AUTHOR.line(middle(body="x"), **{name: value})
        yield _refused(f"{name} {str(value)[:40]!r}", raw, form, "signed, but not of the form of this member")
    odd = seal(MAC, AUTHOR.front().replace(b'"seq":3', b'"seq":03'))
    yield _refused("seq 03", odd, form, "no leading zeros")
    missing = seal(MAC, AUTHOR.front().replace(b'"type":"message",', b""))
    yield _refused("no type", missing, form, "the prefix has all nine members")
    for name, bad in (
        ("a byte that is no UTF-8", b"\xff"), ("an overlong slash", b"\xc0\xaf"), ("an overlong NUL", b"\xc0\x80"),
        ("an encoded surrogate", b"\xed\xa0\x80"), ("an encoded pair of surrogates", b"\xed\xa0\xbd\xed\xb8\x80"),
        ("a code point past the last", b"\xf4\x90\x80\x80"), ("half a character", b"\xe2\x80"),
        ("Latin-1", "é".encode("latin-1")),
    ):  # fmt: skip
        raw = AUTHOR.line(b'"body":"a' + bad + b'z",')
        yield _refused(name, raw, form, "signed, but no UTF-8")
    short = prefix_and_trailer_overlap(good)
    yield _refused("a trailer that overlaps the prefix", short, form, "both forms must fit, one after the other")


def prefix_and_trailer_overlap(good: bytes) -> bytes:
    """Return a line's trailer with the first part of its prefix in front: too short for both."""
    return good[:100] + good[-100:]


def _signatures() -> Iterator[Vector]:
    good = AUTHOR.line(middle(body="three"))
    signed, text = unsigned(good), signature(good)
    last = ALPHABET.index(text[85])
    yield _vector(
        "the one spelling of a signature", good, "ok", "readable", "its last character has zero in four bits",
        members={"body": "three"},
    )  # fmt: skip
    for low in range(1, 16):
        spelled = f"{text[:85]}{ALPHABET[last + low]}=="
        raw = resign(signed, spelled)
        yield _refused(f"spelling {low + 1} of 16 of a signature", raw, "SIGNATURE", "decodes alike, hashes otherwise")
    data = AUTHOR.key.sign(LINE, signed)
    for name, made in (
        ("0 bytes", b""), ("63 bytes", data[:63]), ("65 bytes", data + b"\0"), ("128 bytes", data + data),
        ("96 bytes", data + bytes(32)), ("48 bytes", data[:48]),
    ):  # fmt: skip
        yield _refused(
            f"a signature of {name}", resign(signed, b64(made)), "SIGNATURE", "64 bytes, and no cryptography"
        )
    yield _refused("no padding", resign(signed, text[:-2]), "SIGNATURE", "not canonical")
    yield _refused("padding in the middle", resign(signed, text[:40] + "==" + text[42:]), "SIGNATURE", "not canonical")
    yield _refused("the alphabet for URLs", resign(signed, "-_" + text[2:]), "SIGNATURE", "not canonical")
    yield _refused("a space in a signature", resign(signed, text[:-3] + " =="), "SIGNATURE", "not canonical")
    yield _refused("hexadecimal", resign(signed, data.hex()), "SIGNATURE", "not base64 of 64 bytes")
    yield _refused("a signature of zeros", resign(signed, b64(bytes(64))), "SIGNATURE", "does not hold")
    flipped = bytes([data[0] ^ 1]) + data[1:]
    yield _refused("one bit of R", resign(signed, b64(flipped)), "SIGNATURE", "does not hold")
    flipped = data[:63] + bytes([data[63] ^ 1])
    yield _refused("one bit of S", resign(signed, b64(flipped)), "SIGNATURE", "does not hold")
    other = signature(AUTHOR.line(middle(body="four")))
    yield _refused("the signature of another line", resign(signed, other), "SIGNATURE", "does not hold")
    swapped = data[32:] + data[:32]
    yield _refused("R and S exchanged", resign(signed, b64(swapped)), "SIGNATURE", "does not hold")
    changed = good.replace(b"three", b"thr3e")
    yield _refused("one byte of the body", changed, "SIGNATURE", "does not hold")
    order = int.from_bytes(data[32:], "little") + 2**252 + 27742317777372353535851937790883648493
    malleable = data[:32] + order.to_bytes(32, "little")
    yield _refused("S plus the order of the group", resign(signed, b64(malleable)), "SIGNATURE", "S is below the order")
    neutral = b"\1" + bytes(31)
    forged = AUTHOR.key.sign_with_r(neutral, 0, pae(LINE, signed))
    yield _refused("R of the neutral element", resign(signed, b64(forged)), "SIGNATURE", "R has no small order")
    odd = (1 + 2**255 - 19).to_bytes(32, "little")
    forged = AUTHOR.key.sign_with_r(odd, 0, pae(LINE, signed))
    yield _refused("R in another encoding", resign(signed, b64(forged)), "SIGNATURE", "R has one encoding")
    forged = AUTHOR.key.sign_with_r(*with_torsion(), pae(LINE, signed))
    yield _refused(
        "R with a part of small order", resign(signed, b64(forged)), "SIGNATURE", "no cofactor in the equation"
    )
    forged = AUTHOR.key.sign_with_r(*without_torsion(), pae(LINE, signed))
    yield _vector(
        "R of the owner's choice", resign(signed, b64(forged)), "ok", "readable", "any R of a good point holds"
    )
    moved = resign(signed[:-8] + b"}", b64(signed[-8:-1] + data[:57]))
    yield _refused(
        "bytes of the body in the signature", moved, "SIGNATURE", "what is signed ends 98 bytes before the end"
    )
    moved = resign(signed[:-1] + b',"x":1}', b64(data))
    yield _refused("bytes behind what was signed", moved, "SIGNATURE", "does not hold")
    for name, payload_type in (
        ("presence", PRESENCE), ("trust", b"application/vnd.git-wire.trust+json;v=1"),
        ("version 2", b"application/vnd.git-wire.line+json;v=2"), ("nothing", b""),
    ):  # fmt: skip
        raw = resign(signed, b64(MAC.sign(payload_type, signed)))
        yield _refused(f"signed as {name}", raw, "SIGNATURE", "a signature is of one type")
    yield from _keys_named(signed)


def _keys_named(signed: bytes) -> Iterator[Vector]:
    front, between = AUTHOR.front(), middle(body="three")
    yield _refused("an unknown key", seal(MALLORY, front, between), "KEY_UNKNOWN", "no trust lists it")
    named = seal(MALLORY, front, between, key_id=MAC.id)
    yield _refused("signed by an unknown key under mac's id", named, "SIGNATURE", "does not hold for mac's key")
    yield _refused(
        "signed by spark as mac", seal(SPARK, front, between), "SIGNATURE", "a key speaks for its owner alone"
    )
    named = seal(SPARK, front, between, key_id=MAC.id)
    yield _refused("signed by spark under mac's id", named, "SIGNATURE", "does not hold for mac's key")
    for name, key_id in (("upper case", MAC.id.upper()), ("31 digits", MAC.id[:31]), ("64 digits", MAC.id * 2)):
        raw = seal(MAC, front, between, key_id=key_id)
        yield _refused(f"a key id of {name}", raw, "SIGNATURE", "32 lower-case digits")


def _places() -> Iterator[Vector]:
    text = middle(body="x")
    raw = AUTHOR.line(text, wire=OTHER_WIRE)
    yield _refused("of another wire", raw, "MISPLACED", "validly signed, for another wire")
    ana = Author(MAC, WIRE, "mac/ana", TRUST_REF, END)
    yield _refused("of another channel", ana.line(text), "MISPLACED", "mac wrote it to ana")
    own = Author(SPARK, WIRE, "spark/mac", TRUST_REF, END)
    yield _refused("of the other direction", own.line(text), "MISPLACED", "spark wrote it to mac")
    yield _refused("addressed to its author", AUTHOR.line(text, to="mac"), "MISPLACED", "stands in no channel")
    yield _vector(
        "of mac, in a folder of ana", AUTHOR.line(text), "MISPLACED", None, "a channel has one writer",
        channel="ana/spark", end=start(WIRE, "ana/spark"),
    )  # fmt: skip
    for seq, code in ((1, "REPLAY"), (2, "REPLAY"), (4, "GAP"), (400, "GAP")):
        yield _refused(f"seq {seq} where 3 is next", AUTHOR.line(text, seq=seq), code, "signed, but not the next")
    first = Author(MAC, WIRE, CHANNEL, TRUST_REF)
    yield _refused("line 1 again", first.line(middle(body="one")), "REPLAY", "a copy of an accepted line")
    for name, prev in (
        ("a head of nothing", sha(b"")), ("the head before", sha(first.line(middle(body="one")))),
        ("the channel's beginning", start(WIRE, CHANNEL).head), ("zeros", "0" * 64),
    ):  # fmt: skip
        yield _refused(f"prev is {name}", AUTHOR.line(text, prev=prev), "FORK", "it follows another line 2")
    wrong = start(OTHER_WIRE, CHANNEL).head
    raw = first.line(text, prev=wrong)
    yield _refused("line 1 with another beginning", raw, "FORK", "another wire's", end=start(WIRE, CHANNEL))
    newline = start(WIRE, CHANNEL + "\n").head
    raw = first.line(text, prev=newline)
    yield _refused("line 1 with a beginning that has a newline behind", raw, "FORK", "not so", end=start(WIRE, CHANNEL))


def _keys() -> Iterator[Vector]:
    raw = AUTHOR.line(middle(body="three"))
    said = {"body": "three"}
    for status in ("retired", "revoked"):
        yield _vector(
            f"{status}, before its position", raw, "ok", "readable", "position 4", ring=f"{status} at 4", members=said
        )
        yield _vector(f"{status}, at its position", raw, "ok", "readable", "its very head", ring=f"{status} at 3")
        for ring, reason in (
            ("at 3, another line", "the head at the position is another one"), ("at 2", "behind the position"),
            ("everywhere", "it has no positions"), ("elsewhere", "it has none in this channel"),
        ):  # fmt: skip
            yield _refused(f"{status}, {reason}", raw, "KEY_RETIRED", reason, ring=f"{status} {ring}")
    dated = AUTHOR.line(middle(body="three"), ts="2020-01-01T00:00:00.000Z")
    yield _refused("retired, and dated back", dated, "KEY_RETIRED", "a clock decides nothing", ring="retired at 2")
    successor = Author(MAC_NEXT, WIRE, CHANNEL, TRUST_REF, END)
    line = successor.line(middle(body="three"))
    yield _vector(
        "the next key goes on", line, "ok", "readable", "from the position", ring="replaced at 2", members=said
    )
    yield _refused("the old key beside the next one", raw, "KEY_RETIRED", "behind the position", ring="replaced at 2")
    fork = successor.line(middle(body="x"), prev=sha(b"another"))
    yield _refused("the next key, from another head", fork, "FORK", "it follows another line 2", ring="replaced at 2")


def with_torsion() -> tuple[bytes, int]:
    """Return R and r where R is r times the base point plus a point of order 8."""
    import nacl.bindings

    point, scalar = without_torsion()
    order_8 = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
    return nacl.bindings.crypto_core_ed25519_add(point, order_8), scalar


def without_torsion() -> tuple[bytes, int]:
    """Return R and r where R is r times the base point."""
    import nacl.bindings

    scalar = 12_345
    return nacl.bindings.crypto_scalarmult_ed25519_base_noclamp(scalar.to_bytes(32, "little")), scalar
