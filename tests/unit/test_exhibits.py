"""Evidence files: what is written is read back, and nothing else is an evidence file."""

import json
from typing import Any

import pytest

from wire.errors import IntegrityError
from wire.keys import exhibits
from wire.keys.exhibits import BYTES, DOCUMENT, LINE, PRESENCE, Bundle, Claim, Exhibit, looks_like_one, read, write

WIRE = "0123456789abcdef" * 2
BUNDLE = Bundle(
    WIRE,
    Claim("FORK", "mac/spark", "two lines", "2026-11-29T11:20:00.123Z", "2026-11-29T11:21:00.123Z", 3),
    ((b"document 1", b"signatures 1"), (b"document 2", b"")),
    (
        Exhibit(LINE, b"a line", "accepted"),
        Exhibit(PRESENCE, b"\xff\x00"),
        Exhibit(DOCUMENT, b"a document", "here", b"its signatures"),
        Exhibit(BYTES, b""),
    ),
)
RAW = write(BUNDLE)


def changed(**changes: Any) -> bytes:
    """Return the file with other members at its top."""
    return json.dumps({**json.loads(RAW), **changes}, separators=(",", ":")).encode()


def claimed(**changes: Any) -> bytes:
    return changed(claim={**json.loads(RAW)["claim"], **changes})


def shown(number: int, **changes: Any) -> bytes:
    listed = json.loads(RAW)["exhibits"]
    listed[number] = {**listed[number], **changes}
    return changed(exhibits=listed)


def test_what_is_written_is_read_back() -> None:
    assert write(BUNDLE) == RAW
    assert read(RAW) == BUNDLE
    assert read(RAW.removesuffix(b"\n")) == BUNDLE
    assert RAW.endswith(b"}\n")
    assert looks_like_one(RAW)
    assert not looks_like_one(b'{"v":1,"wire":"')
    members = json.loads(RAW)
    assert list(members) == ["v", "type", "wire", "claim", "trust", "exhibits"]
    assert (members["v"], members["type"], members["wire"]) == (1, "wire-evidence", WIRE)
    assert members["exhibits"][2]["signatures"] == "aXRzIHNpZ25hdHVyZXM="
    assert "signatures" not in members["exhibits"][0]


def test_where_something_was_found_is_cut_to_what_is_read() -> None:
    said = "x" * (exhibits.TEXT_MAX + 1)
    assert read(write(Bundle(WIRE, BUNDLE.claim, (), (Exhibit(LINE, b"", said),)))).exhibits[0].found == said[:-1]


LONG = "x" * (exhibits.TEXT_MAX + 1)
PAIR = ["", ""]
REFUSED = {
    "nothing": b"",
    "no JSON": b"{",
    "a float": claimed(count=1.5),
    "a member more": changed(x=1),
    "a member is missing": json.dumps({name: one for name, one in json.loads(RAW).items() if name != "trust"}).encode(),
    "another order": json.dumps(dict(reversed(json.loads(RAW).items()))).encode(),
    "another version": changed(v=2),
    "a version that is true": changed(v=True),
    "another type": changed(type="evidence"),
    "a wire that is no text": changed(wire=1),
    "a wire that is short": changed(wire=WIRE[1:]),
    "a wire in capitals": changed(wire=WIRE.upper()),
    "a wire of other letters": changed(wire="X" * 32),
    "a claim that is none": changed(claim=[]),
    "a claim with a member more": claimed(x=1),
    "a code that is none": claimed(code="HUNGRY"),
    "a code that is no text": claimed(code=[]),
    "a scope that is no text": claimed(scope=None),
    "a message that is long": claimed(message=LONG),
    "a time that is a number": claimed(last=7),
    "a count of nothing": claimed(count=0),
    "a count that is true": claimed(count=True),
    "a count that is a text": claimed(count="3"),
    "a trust that is no list": changed(trust={}),
    "a version that is no pair": changed(trust=[["", "", ""]]),
    "a version that is a text": changed(trust=["ab"]),
    "a version that is a number": changed(trust=[5]),
    "a claim that is a number": changed(claim=5),
    "a version of numbers": changed(trust=[[1, 2]]),
    "exhibits that are no list": changed(exhibits={}),
    "too many exhibits": changed(exhibits=[json.loads(RAW)["exhibits"][0]] * (exhibits.EXHIBITS_MAX + 1)),
    "an exhibit that is a text": changed(exhibits=["line"]),
    "an exhibit of no kind": changed(exhibits=[{}]),
    "an exhibit of another kind": shown(0, kind="thing"),
    "a line with signatures": shown(0, signatures=""),
    "a document without": shown(2, kind="line"),
    "found nowhere": shown(0, found=None),
    "found at a long place": shown(0, found=LONG),
    "bytes that are no text": shown(0, bytes=None),
    "bytes that are no base64": shown(0, bytes="a line"),
    "bytes that are not ASCII": shown(0, bytes="\u00e4AAA"),
    "bytes in another spelling": shown(0, bytes="AB=="),
    "bytes without their padding": shown(0, bytes="AA"),
    "bytes that are too long": shown(0, bytes="A" * (exhibits.DOCUMENT_MAX * 4 // 3 + 8)),
    "signatures that are too long": shown(2, signatures="A" * (exhibits.SIGNATURES_MAX * 4 // 3 + 8)),
    "signatures that are none": shown(2, signatures=7),
}  # fmt: skip


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
def test_what_is_no_evidence_file(raw: bytes) -> None:
    with pytest.raises(IntegrityError) as refused:
        read(raw)
    assert refused.value.reason == "evidence-malformed"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (changed(exhibits={}), "'exhibits' is not a list of at most 64"),
        (changed(trust={}), "'trust' is not a list of at most 100000"),
        (claimed(x=1), "'claim' is not an object with exactly code, scope, message, first, last, count, in this order"),
        (changed(x=1), "the file is not an object with exactly v, type, wire, claim, trust, exhibits, in this order"),
        (shown(0, x=1), "an exhibit is not an object with exactly kind, found, bytes, in this order"),
    ],
)
def test_a_refusal_says_where_it_is_wrong(raw: bytes, said: str) -> None:
    with pytest.raises(IntegrityError) as refused:
        read(raw)
    assert said in refused.value.message
    assert "wire evidence INCIDENT" in refused.value.next_step


def test_the_limits_are_the_last_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    one = json.loads(RAW)["exhibits"][0]
    assert (exhibits.BUNDLE_MAX, exhibits.TEXT_MAX) == (33_554_432, 8_192)
    assert len(read(changed(exhibits=[one] * exhibits.EXHIBITS_MAX)).exhibits) == exhibits.EXHIBITS_MAX
    text = "x" * exhibits.TEXT_MAX
    assert read(claimed(scope=text)).claim.scope == text
    assert read(shown(0, found=text)).exhibits[0].found == text
    assert read(claimed(count=1)).claim.count == 1
    for length in (exhibits.DOCUMENT_MAX, exhibits.DOCUMENT_MAX + 1, exhibits.DOCUMENT_MAX + 2):
        large = write(Bundle(WIRE, BUNDLE.claim, ((bytes(length), b""),), ()))
        if length == exhibits.DOCUMENT_MAX:
            assert read(large).trust[0][0] == bytes(length)
        else:
            with pytest.raises(IntegrityError, match=f"holds {length} bytes; the limit is"):
                read(large)
    signatures = bytes(exhibits.SIGNATURES_MAX)
    assert read(write(Bundle(WIRE, BUNDLE.claim, ((b"", signatures),), ()))).trust[0][1] == signatures
    with pytest.raises(IntegrityError, match="holds 32769 bytes"):
        read(write(Bundle(WIRE, BUNDLE.claim, ((b"", signatures + b"x"),), ())))
    monkeypatch.setattr(exhibits, "BUNDLE_MAX", len(RAW))
    assert read(RAW) == BUNDLE
    monkeypatch.setattr(exhibits, "BUNDLE_MAX", len(RAW) - 1)
    with pytest.raises(IntegrityError, match="the limit is"):
        read(RAW)
    monkeypatch.undo()
    monkeypatch.setattr(exhibits, "VERSIONS_MAX", 2)
    assert len(read(RAW).trust) == 2
    with pytest.raises(IntegrityError, match="'trust' is not a list of at most 2"):
        read(changed(trust=[PAIR] * 3))
