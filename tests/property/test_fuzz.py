"""Everything that strangers hand over is parsed from spoiled forms of honest bytes: no crash, no hang, no acceptance.

Honest lines, trust documents, signature files, requests, rotations, proposals, presences, evidence files, codes and
closed letters are cut, spliced, repeated, flipped, and rewritten as JSON with other values in any place. A parser may
refuse them by its own error and by nothing else, in bounded time; and whatever it still takes must say exactly what the
honest one said. In the full size these run for an hour and more.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.sizes import size
from wire.checking import verify_file
from wire.daemon.heard import Refused, judge
from wire.errors import IntegrityError, TrustError, UsageError
from wire.keys import invitations, proposals, requests, roots, rotations
from wire.keys.exhibits import BYTES, DOCUMENT, KINDS, LINE, PRESENCE, Bundle, Claim, Exhibit, read, write
from wire.keys.trust import Chain, Verdict, enroll, found, prove, set_group, sign_document
from wire.keys.weighing import weigh
from wire.protocol import sealed, strictjson
from wire.protocol.chain import Position, step
from wire.protocol.encoding import Signer
from wire.protocol.line import LineError, content, head, seal
from wire.protocol.presence import seal as seal_presence

EXAMPLES = size(150, 300_000, "spoiled files per parser")
SECONDS = 10.0
"""What one of them may take, on a machine with other things to do."""

TS = "2026-11-29T11:20:00.123Z"
ROOT, MAC, SPARK, NEW = (Signer(bytes([n]) * 32) for n in (1, 2, 3, 4))


def _signed(raw: bytes) -> tuple[bytes, bytes]:
    return raw, sign_document(raw, ROOT)


def _chain() -> Chain:
    chain = Chain.genesis(*_signed(found(roots=[ROOT.public], nonce="07" * 16, created=TS)))
    for name, signer in (("mac", MAC), ("spark", SPARK)):
        proof = prove(signer, wire=chain.wire, name=name, role="agent")
        raw = enroll(chain.newest, chain.wire, name=name, role="agent", public=signer.public, proof=proof, created=TS)
        chain = chain.extend(*_signed(raw))
    return chain


CHAIN = _chain()
WIRE, CHANNEL = CHAIN.wire, "mac/spark"


def _lines() -> list[bytes]:
    end, lines = Position.start(WIRE, CHANNEL), []
    for members in (
        {"body": "hello"},
        {"body": {"x": [1.5, None]}, "subject": "ä"},
        {"ack": [1, "0" * 64], "body": ""},
    ):
        raw = seal(
            MAC, wire=WIRE, sender="mac", recipient="spark", seq=end.seq + 1, prev=end.head, ts=TS,
            trust=CHAIN.newest.reference, type="message", **members,
        )[:-1]  # fmt: skip
        lines.append(raw)
        end = end.after(len(raw) + 1, head(raw))
    return lines


LINES = _lines()
NEXT = set_group(CHAIN.newest, WIRE, name="both", members=["mac", "spark"], created=TS)
REQUEST = requests.make(NEW, wire=WIRE, name="lee", role="agent", created=TS)
BEAT = seal_presence(
    MAC, wire=WIRE, agent="mac", instance="ab" * 16, counter=3, ts=TS, trust=CHAIN.newest.reference, state="busy",
    tier="T0", interval=90.0, channels={"spark/mac": (2, "0" * 64, 1)}, note="at it",
)  # fmt: skip
EVIDENCE = write(
    Bundle(
        WIRE,
        Claim("FORK", CHANNEL, "two lines"),
        tuple(zip((one.raw for one in CHAIN.documents), CHAIN.signatures, strict=True)),
        (
            Exhibit(LINE, LINES[0], "accepted"),
            Exhibit(LINE, LINES[1], "there"),
            Exhibit(BYTES, b"junk"),
            Exhibit(PRESENCE, BEAT[:-1]),
            Exhibit(DOCUMENT, CHAIN.newest.raw, "here", CHAIN.signatures[-1]),
        ),
    )
)

ROTATION = rotations.make(MAC, NEW, wire=WIRE, name="mac", role="agent", positions={CHANNEL: (3, "0" * 64)}, created=TS)
PROPOSAL = proposals.make(ROOT, CHAIN, NEXT, note="both", created=TS, expires="2026-12-13T11:20:00.123Z")
OFFERED = PROPOSAL + sign_document(NEXT, ROOT)
ROOT_LINE = roots.offer(NEW, wire=WIRE, name="lea")
INVITATION = invitations.Invitation(
    "git@host:team.git", CHAIN.documents[0].hash, CHAIN.newest.checkpoint, "0" * 40, "lee", "agent", bytes(24), 1 << 31
)
CODE = invitations.encode(INVITATION)
LETTER = sealed.close({"subject": "s", "body": {"x": [1.5]}}, {SPARK.key_id: SPARK.public}, wire=WIRE, channel=CHANNEL)

TOKENS = (
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\n", b"\r\n", b"\0", b" ", b"null", b"true", b"NaN", b"-0",
    b"1e999", b"\\ud800", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", b"A" * 90, b"=", b'"v":1,', b'"sig":"', b"[" * 40,
    b"0" * 64, b"9" * 20, b"\xe2\x80\xae",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**53, 10**30, 0.5, "", "x", "a" * 40, "\u202e", "../..", "all", [], {}, [[]],
    {"": None}, ["", 1], "=" * 4, "A" * 44, "A" * 88,
)  # fmt: skip


@st.composite
def spoiled(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    """Draw one of some honest files, changed one to four times."""
    raw = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(("flip", "cut", "repeat", "token", "splice", "value", "name")))
        at = draw(st.integers(0, len(raw)))
        to = min(len(raw), at + draw(st.integers(0, 200)))
        if kind == "flip" and at < len(raw):
            raw = raw[:at] + bytes([raw[at] ^ (1 << draw(st.integers(0, 7)))]) + raw[at + 1 :]
        elif kind == "cut":
            raw = raw[:at] + raw[to:]
        elif kind == "repeat":
            raw = raw[:to] + raw[at:to] + raw[to:]
        elif kind == "token":
            raw = raw[:at] + draw(st.sampled_from(TOKENS)) + raw[at:]
        elif kind == "splice":
            other = draw(st.sampled_from(samples))
            raw = raw[:at] + other[min(at, len(other)) :]
        else:
            raw = _rewritten(draw, raw, kind)
    return raw


def _rewritten(draw: st.DrawFn, raw: bytes, kind: str) -> bytes:
    """Put another value, or another name, in some place of a JSON text; anything else stays as it is."""
    try:
        top = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    places = list(_places(top))
    if not places:
        return raw
    inside, key = places[draw(st.integers(0, len(places) - 1))]
    if kind == "value" or isinstance(inside, list):
        inside[key] = draw(st.sampled_from(VALUES))
    else:
        inside[draw(st.sampled_from(("", "v", "x", "key", "name")))] = inside.pop(key)
    indent = 1 if raw.startswith(b"{\n") else None
    text = json.dumps(top, separators=(",", ":") if indent is None else None, indent=indent, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass") + (b"\n" if raw.endswith(b"\n") else b"")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in list(items):
        yield value, key
        yield from _places(member)


@contextmanager
def _in_time() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < SECONDS


@settings(max_examples=EXAMPLES)
@given(spoiled(LINES))
def test_lines(raw: bytes) -> None:
    with _in_time():
        for seq, honest in enumerate(LINES, 1):
            before = Position(seq - 1, head(LINES[seq - 2]) if seq > 1 else Position.start(WIRE, CHANNEL).head, 1, 0)
            verdict = step(before, raw, wire=WIRE, channel=CHANNEL, keys=CHAIN)
            if verdict.line is not None:
                with suppress(LineError):
                    content(verdict.line)
            assert (verdict.code is None) == (raw == honest)


@settings(max_examples=EXAMPLES)
@given(spoiled([NEXT, *(one.raw for one in CHAIN.documents)]), spoiled(CHAIN.signatures))
def test_trust(raw: bytes, signatures: bytes) -> None:
    with _in_time():
        for version in range(CHAIN.newest.version + 3):
            for signed in (signatures, sign_document(NEXT, ROOT), *CHAIN.signatures):
                found_there = CHAIN.judge(version, raw, signed)
                if found_there.verdict is Verdict.NEXT:
                    assert raw == NEXT
                elif found_there.verdict is Verdict.SAME:
                    assert raw == CHAIN.documents[version - 1].raw
                else:
                    assert found_there.verdict is not Verdict.FORK


@settings(max_examples=EXAMPLES)
@given(spoiled([NEXT]))
def test_trust_that_a_root_signed(raw: bytes) -> None:
    # A root may sign what it did not look at: the form and the rules hold all the same, or it is refused.
    with _in_time():
        judged = CHAIN.judge(CHAIN.newest.version + 1, raw, sign_document(raw, ROOT))
        if judged.verdict is Verdict.NEXT:
            assert judged.chain is not None
            newest = judged.chain.newest
            assert newest.agents.keys() >= CHAIN.newest.agents.keys()
            assert newest.prev == CHAIN.newest.hash
            assert newest.owners.keys() >= CHAIN.newest.owners.keys()


def _refuses(parse: Callable[..., Any], raw: bytes, file_name: str) -> Any:
    try:
        return parse(raw, wire=WIRE, file_name=file_name)
    except TrustError:
        return None


@settings(max_examples=EXAMPLES)
@given(spoiled([REQUEST]))
def test_requests(raw: bytes) -> None:
    name = requests.file_name("lee", NEW.key_id)
    with _in_time():
        read_back = _refuses(requests.parse, raw, name)
        _refuses(rotations.parse, raw, name)
    if read_back is not None:
        assert (read_back.name, read_back.role, read_back.public) == ("lee", "agent", NEW.public)


@settings(max_examples=EXAMPLES)
@given(spoiled([ROTATION]))
def test_rotations(raw: bytes) -> None:
    name = requests.file_name("mac", NEW.key_id)
    with _in_time():
        read_back = _refuses(rotations.parse, raw, name)
        _refuses(requests.parse, raw, name)
    # The new key signed all that is in front of `closed`; that one is the old key's, or not.
    if read_back is not None and read_back.closed_by(MAC.public):
        assert raw == ROTATION


@settings(max_examples=EXAMPLES)
@given(spoiled([OFFERED, PROPOSAL]))
def test_proposals(raw: bytes) -> None:
    with _in_time():
        read_back = _refuses(proposals.parse, raw, proposals.file_name(ROOT.key_id))
        if read_back is not None and read_back.offered_by(CHAIN.newest.roots):
            weighed = proposals.weigh(CHAIN, read_back, TS)
            assert read_back.head == PROPOSAL
            assert set(weighed.signed) <= {ROOT.key_id}
            assert all(line in OFFERED for line in weighed.signed.values())


@settings(max_examples=EXAMPLES)
@given(spoiled([ROOT_LINE.encode(), CODE.encode()]))
def test_codes(raw: bytes) -> None:
    text = raw.decode("utf-8", "replace")
    with _in_time():
        with suppress(TrustError):
            assert roots.read(text, wire=WIRE, name="lea") == NEW.public
        with suppress(ValueError):
            assert invitations.parse(text) == INVITATION


@settings(max_examples=EXAMPLES)
@given(spoiled([strictjson.dumps(LETTER)]))
def test_letters(raw: bytes) -> None:
    try:
        enc = strictjson.loads(raw)
    except strictjson.StrictError:
        return
    with _in_time():
        if not sealed.is_known(enc) or not sealed.is_form(enc):
            return
        try:
            letter = sealed.opened(enc, SPARK, wire=WIRE, channel=CHANNEL)
        except sealed.SealedError:
            return
    assert letter.members == {"subject": "s", "body": {"x": [1.5]}}


@settings(max_examples=EXAMPLES)
@given(spoiled([BEAT, BEAT[:-1]]))
def test_presences(raw: bytes) -> None:
    with _in_time():
        try:
            heard = judge(raw, "mac", None, CHAIN)
        except Refused:
            return
    assert heard is None or (raw == BEAT and heard.raw == BEAT[:-1])


@settings(max_examples=EXAMPLES)
@given(spoiled([EVIDENCE]))
def test_evidence(raw: bytes) -> None:
    # No two honest pieces of it contradict each other, so that no form of it may prove anything against anybody.
    with _in_time():
        try:
            checked = verify_file(raw, checkpoint=CHAIN.newest.checkpoint, environ={"WIRE_HOME": "/nonexistent"})
        except (IntegrityError, TrustError, UsageError):
            return
    assert checked.proved == ()
    assert not checked.holds


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(KINDS), spoiled([*LINES, BEAT[:-1], NEXT, CHAIN.newest.raw]), spoiled(CHAIN.signatures))
def test_exhibits(kind: str, raw: bytes, signatures: bytes) -> None:
    # Whatever is shown as whatever, beside honest lines: nobody is accused of what he did not sign.
    with _in_time():
        honest = [Exhibit(LINE, line) for line in LINES]
        weighed = weigh([*honest, Exhibit(kind, raw, "", signatures), Exhibit(DOCUMENT, raw, "", signatures)], CHAIN)
    assert weighed.proved == ()
    assert all(one.signed for one in weighed.shown[: len(LINES)])


@settings(max_examples=EXAMPLES)
@given(spoiled([EVIDENCE]))
def test_evidence_is_written_as_it_was_read(raw: bytes) -> None:
    try:
        bundle = read(raw)
    except IntegrityError:
        return
    assert read(write(bundle)) == bundle
