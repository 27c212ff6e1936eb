"""What several roots decide, on paper: the files of proposals, the lines of root keys, and changes in plain words."""

import hashlib
import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from support.trusts import HEAD, NOW, OTHER_HEAD, begun, edited, enrolled, old_wire, signed, signer, unchanged
from wire.errors import TrustError
from wire.keys import proposals, roots
from wire.keys.differences import differences
from wire.keys.document import parse
from wire.keys.model import VERSION_MAX, Document
from wire.keys.signatures import SIGNATURES_MAX, prove
from wire.protocol import strictjson
from wire.protocol.encoding import LINE_TYPE, PROPOSAL_TYPE, b64, fingerprint, sha256_hex

A, B, EVE = signer("root-a"), signer("root-b"), signer("eve")
CHAIN = enrolled(begun([A, B]), "mac", signer("mac"), by=[A])
WIRE = CHAIN.wire
LATER = "2026-12-13T11:20:00.123Z"
DOCUMENT = unchanged(CHAIN)
RAW = proposals.make(A, CHAIN, DOCUMENT, note="a step", created=NOW, expires=LATER)
NAME = f"trust.{A.key_id}.json"
MEMBERS = json.loads(RAW)


def read(raw: bytes, file_name: str = NAME) -> proposals.Proposal:
    return proposals.parse(raw, wire=WIRE, file_name=file_name)


def with_(**changes: Any) -> bytes:
    return strictjson.dumps({**MEMBERS, **changes}) + b"\n"


# Proposals


def test_a_proposal_says_what_it_was_made_of() -> None:
    lines = signed(DOCUMENT, A, B)
    one = read(RAW + lines)
    assert list(MEMBERS) == [
        "v", "wire", "base", "created", "expires", "by", "note", "document", "offered",
    ]  # fmt: skip
    assert (one.by, one.created, one.expires, one.note) == (A.key_id, NOW, LATER, "a step")
    assert (one.base, one.document) == ((2, CHAIN.newest.hash), DOCUMENT)
    assert (one.hash, one.id) == (sha256_hex(DOCUMENT), sha256_hex(DOCUMENT)[:32])
    assert (one.head, one.signatures, one.file_name) == (RAW, lines, NAME)
    assert one.signed([lines[: len(lines) // 2]]) == RAW + lines[: len(lines) // 2]
    assert one.signed([]) == RAW
    assert one.signed([b"one\n", b"two\n"]) == RAW + b"one\ntwo\n"
    one.check_offered(CHAIN.newest.roots)
    for others in ((), [B.public], [EVE.public]):
        assert not one.offered_by(others)
        with pytest.raises(TrustError) as refused:
            one.check_offered(others)
        assert refused.value.reason == "proposer-unknown"


def test_an_offer_is_a_signature_of_exactly_this_as_a_proposal() -> None:
    payload = RAW[: RAW.index(b',"offered":')] + b"}"
    assert MEMBERS["offered"] == b64(A.sign(PROPOSAL_TYPE, payload))
    for offered in (B.sign(PROPOSAL_TYPE, payload), A.sign(LINE_TYPE, payload), A.sign(PROPOSAL_TYPE, RAW)):
        assert not read(with_(offered=b64(offered))).offered_by([A.public, B.public])
    # The other root's signature, under its own name: that root offers it, and not in this file.
    both = strictjson.dumps({name: one for name, one in MEMBERS.items() if name != "offered"} | {"by": B.key_id})
    raw = both[:-1] + b',"offered":"%s"}\n' % b64(B.sign(PROPOSAL_TYPE, both)).encode()
    assert read(raw, proposals.file_name(B.key_id)).offered_by([A.public, B.public])
    with pytest.raises(TrustError) as refused:
        read(raw)
    assert refused.value.reason == "request-misplaced"


HASH = CHAIN.newest.hash
REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "request-malformed"),
    "too long": (RAW + b" " * proposals.PROPOSAL_MAX, "request-malformed"),
    "no newline": (RAW[:-1] + b" ", "request-malformed"),
    "a space": (RAW.replace(b'"v":1', b'"v": 1'), "request-malformed"),
    "another version": (with_(v=2), "request-malformed"),
    "a version that is true": (with_(v=True), "request-malformed"),
    "a member more": (with_(x=""), "request-malformed"),
    "a note that is no text": (with_(note=1), "request-malformed"),
    "a note that is long": (with_(note="x" * 201), "request-malformed"),
    "a base that is an object": (with_(base={}), "request-malformed"),
    "a base of one part": (with_(base=[2]), "request-malformed"),
    "a base of three parts": (with_(base=[2, HASH, 1]), "request-malformed"),
    "base 0": (with_(base=[0, HASH]), "request-malformed"),
    "a base that is true": (with_(base=[True, HASH]), "request-malformed"),
    "a base that is a text": (with_(base=["2", HASH]), "request-malformed"),
    "a base that nothing can follow": (with_(base=[VERSION_MAX, HASH]), "request-malformed"),
    "a base with a short hash": (with_(base=[2, HASH[1:]]), "request-malformed"),
    "a base with a number for a hash": (with_(base=[2, 7]), "request-malformed"),
    "a time that is none": (with_(created="soon"), "request-malformed"),
    "a time that is short": (with_(created="2026"), "request-malformed"),
    "an end that is none": (with_(expires="never"), "request-malformed"),
    "it ends before it begins": (with_(expires="2026-11-29T11:20:00.122Z"), "request-malformed"),
    "it ends as it begins": (with_(expires=NOW), "request-malformed"),
    "a key that is none": (with_(by="../x"), "request-malformed"),
    "an offer that is short": (with_(offered="AAAA"), "request-malformed"),
    "an offer that is no base64": (with_(offered="\u00e4"), "request-malformed"),
    "no document": (with_(document=""), "request-malformed"),
    "a document that is no base64": (with_(document="{}"), "request-malformed"),
    "a document in another spelling": (with_(document="AB=="), "request-malformed"),
    "a document with a newline": (with_(document=MEMBERS["document"] + "\n"), "request-malformed"),
    "another wire": (with_(wire="0" * 32), "wrong-wire"),
    "another root's place": (with_(by=B.key_id), "request-misplaced"),
    "something behind it": (RAW + b"hello\n", "signatures-malformed"),
    "a line that is cut": (RAW + signed(DOCUMENT, A)[:-1], "signatures-malformed"),
    "too many signatures": (RAW + signed(DOCUMENT, A) * (SIGNATURES_MAX // 100), "signatures-malformed"),
}


@pytest.mark.parametrize(("raw", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_proposal(raw: bytes, reason: str) -> None:
    with pytest.raises(TrustError) as refused:
        read(raw)
    assert refused.value.reason == reason


def test_whose_proposal_stands_elsewhere_is_told() -> None:
    with pytest.raises(TrustError, match=f"the proposal of key {A.key_id} stands in 'x'"):
        proposals.parse(RAW, wire=WIRE, file_name="x")


def test_what_is_made_can_be_read() -> None:
    with pytest.raises(TrustError) as refused:
        proposals.make(A, CHAIN, DOCUMENT, note="", created=LATER, expires=NOW)
    assert refused.value.reason == "request-malformed"
    with pytest.raises(TrustError, match="a proposal of version 1"):
        read(with_(v=2))


def test_what_cannot_be_signed_lacks_nothing() -> None:
    one = read(RAW + signed(DOCUMENT, A))
    past = proposals.weigh(CHAIN.until(1), one, NOW)
    assert past == proposals.Weighed(one, proposals.State.SUPERSEDED, None, {}, (0, 0), "")
    unlawful = edited(DOCUMENT, lambda fields: fields.update(threshold=9))
    found = proposals.weigh(CHAIN, read(with_(document=b64(unlawful)) + signed(unlawful, A)), NOW)
    assert (found.state, found.draft, found.signed, found.lacking) == (proposals.State.UNLAWFUL, None, {}, (0, 0))
    assert "threshold of 9" in found.why


def test_the_limits_of_a_proposal_are_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(with_(note="x" * 200)).note == "x" * 200
    assert read(with_(base=[1, HASH])).base == (1, HASH)
    assert read(with_(base=[VERSION_MAX - 1, HASH])).base[0] == VERSION_MAX - 1
    assert read(with_(expires="2026-11-29T11:20:00.124Z")).expires > NOW
    assert proposals.PROPOSAL_MAX == 1_048_576
    monkeypatch.setattr(proposals, "PROPOSAL_MAX", len(RAW))
    assert read(RAW).head == RAW
    # What is made has room for all signatures.
    with pytest.raises(TrustError) as refused:
        proposals.make(A, CHAIN, DOCUMENT, note="a step", created=NOW, expires=LATER)
    assert refused.value.reason == "trust-too-large"
    monkeypatch.setattr(proposals, "PROPOSAL_MAX", len(RAW) + SIGNATURES_MAX)
    assert proposals.make(A, CHAIN, DOCUMENT, note="a step", created=NOW, expires=LATER) == RAW


def test_drafts_that_say_the_same_are_the_same_whenever_they_were_written() -> None:
    def draft(**changes: Any) -> Document:
        return parse(edited(DOCUMENT, lambda fields: fields.update(changes)))

    fields = json.loads(DOCUMENT)
    same = draft(created=LATER)
    assert same.raw != DOCUMENT
    assert proposals.same_change(parse(DOCUMENT), same)
    for changes in (
        {"version": 4},
        {"prev": "0" * 64},
        {"threshold": 2},
        {"roots": fields["roots"][:1]},
        {"agents": {}},
        {"groups": {"both": {"status": "active", "members": []}}},
        {"policy": {"x": 1}},
    ):
        assert not proposals.same_change(parse(DOCUMENT), draft(**changes)), changes


# Lines of root keys


def line_of(check: str | None = None, **changes: Any) -> str:
    """Return a whole line that says something else."""
    proof = b64(prove(A, wire=WIRE, name="lea", role="root"))
    members = {"wire": WIRE, "name": "lea", "public": b64(A.public), "proof": proof, **changes}
    raw = json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()
    return coded(raw, check)


def coded(raw: bytes, check: str | None = None) -> str:
    right = hashlib.sha256(raw).hexdigest()[:8]
    return f"wire-root-1.{urlsafe_b64encode(raw).decode().rstrip('=')}.{right if check is None else check}"


LINE = roots.offer(A, wire=WIRE, name="lea")
ROOT_LINES = {
    "nothing": ("", "root-line-invalid"),
    "another prefix": (LINE.replace("root-1", "root-2"), "root-line-invalid"),
    "longer than a line may be": (LINE + "A" * roots.LINE_MAX, "root-line-invalid"),
    "another checksum": (line_of("0" * 8), "root-line-invalid"),
    "a checksum that is cut": (LINE[:-1], "root-line-invalid"),
    "the checksum of nothing": (coded(b""), "root-line-invalid"),
    "a character of another alphabet": (LINE.replace("1.e", "1.+"), "root-line-invalid"),
    "a length that no base64 has": ("wire-root-1.AAAAA.00000000", "root-line-invalid"),
    "no JSON": (coded(b"hello"), "root-line-invalid"),
    "a member more": (line_of(x=""), "root-line-invalid"),
    "a member that is no text": (line_of(name=1), "root-line-invalid"),
    "characters that a reader may pass over": (LINE.replace("root-1.", "root-1.!!!!"), "root-line-invalid"),
    "a key that is short": (line_of(public="AAAA"), "root-line-invalid"),
    "a proof that is short": (line_of(proof="AAAA"), "root-line-invalid"),
    "another wire": (line_of(wire="0" * 32), "wrong-wire"),
    "another name": (line_of(name="mac"), "name-invalid"),
    "a key that is no point": (line_of(public=b64(bytes(32))), "key-invalid"),
    "another key": (line_of(public=b64(B.public)), "proof-invalid"),
    "an agent's proof": (line_of(proof=b64(prove(A, wire=WIRE, name="lea", role="agent"))), "proof-invalid"),
    "the proof of another name": (line_of(proof=b64(prove(A, wire=WIRE, name="mac", role="root"))), "proof-invalid"),
}


@pytest.mark.parametrize(("text", "reason"), ROOT_LINES.values(), ids=ROOT_LINES)
def test_what_is_no_line_of_a_root_key(text: str, reason: str) -> None:
    with pytest.raises(TrustError) as refused:
        roots.read(text, wire=WIRE, name="lea")
    assert refused.value.reason == reason


def test_what_is_not_a_whole_line_is_to_be_copied_again() -> None:
    with pytest.raises(TrustError, match="copy all of it"):
        roots.read(LINE[:-1], wire=WIRE, name="lea")


def test_a_line_of_a_root_key_is_what_the_protocol_says() -> None:
    assert line_of() == LINE
    assert roots.read(f" {LINE[:30]}\r\n\t{LINE[30:]}\n", wire=WIRE, name="lea") == A.public
    for name in ("..", "trust"):
        with pytest.raises(TrustError) as refused:
            roots.read(roots.offer(A, wire=WIRE, name=name), wire=WIRE, name=name)
        assert refused.value.reason == "name-invalid"
    # Names of another length need another padding.
    for name in ("x" * length for length in range(1, 21)):
        assert roots.read(roots.offer(B, wire=WIRE, name=name), wire=WIRE, name=name) == B.public


def test_the_longest_line_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert roots.LINE_MAX == 1_024
    monkeypatch.setattr(roots, "LINE_MAX", len(LINE))
    assert roots.read(LINE, wire=WIRE, name="lea") == A.public
    monkeypatch.setattr(roots, "LINE_MAX", len(LINE) - 1)
    with pytest.raises(TrustError):
        roots.read(LINE, wire=WIRE, name="lea")


def test_what_people_call_roots() -> None:
    def calls(policy: dict[str, Any]) -> Document:
        return parse(edited(DOCUMENT, lambda fields: fields.update(policy=policy)))

    named = calls({"x": 1, "roots": {A.key_id: "lea", B.key_id: "..", EVE.key_id: "eve"}})
    assert roots.names(named) == {A.key_id: "lea"}
    assert roots.called(named, A.public) == f"lea ({fingerprint(A.public)})"
    assert roots.called(named, B.public) == fingerprint(B.public)
    assert roots.names(calls({"roots": {A.key_id: 7, B.key_id: "zoe"}})) == {B.key_id: "zoe"}
    assert roots.names(calls({"roots": [A.key_id]})) == roots.names(calls({})) == {}
    assert roots.with_names(named, {B.key_id: "zoe"}) == {"x": 1, "roots": {B.key_id: "zoe"}}
    assert roots.with_names(named, {}) == {"x": 1}


# Changes in plain words


PAST = old_wire()


def after(edit: Any) -> list[tuple[str, str]]:
    """Return (kind, text) of what an edit changes in the newest version of a wire with a past, lawful or not."""
    found = differences(PAST.newest, parse(edited(PAST.newest.raw, edit)))
    assert all(one.name in one.text or one.kind in ("threshold", "policy") for one in found)
    return [(one.kind, one.text) for one in found]


def key(fields: dict[str, Any], name: str, number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = fields["agents"][name]["keys"][number]
    return found


FIRST, SECOND, LEFT = (fingerprint(signer(name).public) for name in ("mac", "mac-2", "left"))
CHANGES: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "nothing": (lambda f: None, []),
    "another time": (lambda f: f.update(created=LATER), []),
    "a role": (lambda f: f["agents"]["spark"].update(role="human"), [("role", "makes spark human, who is agent")]),
    "an agent is removed": (
        lambda f: (f["agents"]["spark"].update(status="removed"), key(f, "spark").update(status="revoked")),
        [
            ("agent-removed", "takes spark off the wire, for good"),
            (
                "key-revoked",
                f"revokes the key {fingerprint(signer('spark').public)} of spark; it counts up to no line at all",
            ),
        ],
    ),
    "an agent comes back": (
        lambda f: f["agents"]["left"].update(status="active"), [("agent-revived", "brings left back")],
    ),
    "an agent is no longer listed": (
        lambda f: f["agents"].pop("left"), [("agent-absent", "no longer lists left")],
    ),
    "a key is revived": (
        lambda f: (key(f, "mac", 1).update(status="retired"), key(f, "mac").update(status="active", positions={})),
        [
            ("key-revived", f"revives the key {FIRST} of mac; it counts up to no line at all"),
            ("key-retired", f"retires the key {SECOND} of mac; it counts up to no line at all"),
        ],
    ),
    "a position is moved": (
        lambda f: key(f, "mac").update(positions={"mac/spark": [1, OTHER_HEAD], "mac/all": [3, HEAD]}),
        [(
            "positions",
            f"moves where the key {FIRST} of mac ends, to mac/spark/1 ({OTHER_HEAD[:16]}), mac/all/3 ({HEAD[:16]})",
        )],
    ),
    "a key is no longer listed": (
        lambda f: f["agents"]["mac"]["keys"].pop(0), [("key-absent", f"no longer lists the key {FIRST} of mac")],
    ),
    "a key that counts no more is listed": (
        lambda f: f["agents"]["spark"]["keys"].append({**key(f, "left"), "public": b64(EVE.public)}),
        [
            (
                "key-added",
                f"lists, revoked, for spark the key {fingerprint(EVE.public)}; it counts up to no line at all",
            )
        ],
    ),
    "another line at the same place": (
        lambda f: key(f, "mac")["positions"].update({"mac/spark": [2, "ef" * 32]}),
        [("positions", f"moves where the key {FIRST} of mac ends, to mac/spark/2 ({'ef' * 8})")],
    ),
    "a new agent whose name is taken off at once": (
        lambda f: f["agents"].update(zoe={**f["agents"]["left"], "keys": [
            {**key(f, "left"), "public": b64(EVE.public), "positions": {"zoe/mac": [1, HEAD]}},
        ]}),
        [(
            "agent-added",
            f"adds zoe (agent) with the key {fingerprint(EVE.public)} (revoked; it counts up to zoe/mac/1 "
            f"({HEAD[:16]})), and takes that name off the wire, for good",
        )],
    ),
    "a new group whose name is taken off at once": (
        lambda f: f["groups"].update(new={"status": "removed", "members": ["mac"]}),
        [("group-added", "adds the group new: mac; that name is taken off the wire, for good")],
    ),
    "a group is removed": (
        lambda f: f["groups"]["review"].update(status="removed"),
        [("group-removed", "removes the group review, for good")],
    ),
    "a group comes back, with others": (
        lambda f: f["groups"].update(gone={"status": "active", "members": ["spark"]}),
        [
            ("group-active", "brings the group gone back"),
            ("group-changed", "in the group gone: adds spark; takes out mac"),
        ],
    ),
    "a group gets smaller": (
        lambda f: f["groups"]["review"].update(members=["mac"]),
        [("group-changed", "in the group review: takes out spark")],
    ),
    "a group gets larger": (
        lambda f: f["groups"]["gone"].update(members=["mac", "spark"]),
        [("group-changed", "in the group gone: adds spark")],
    ),
    "a group in another order": (lambda f: f["groups"]["review"].update(members=["spark", "mac"]), []),
    "a group is no longer listed": (
        lambda f: f["groups"].pop("gone"), [("group-absent", "no longer lists the group gone")],
    ),
    "a new group in front of one that changes": (
        lambda f: f.update(groups={
            "new": {"status": "active", "members": ["mac"]},
            **f["groups"],
            "review": {"status": "active", "members": ["mac"]},
        }),
        [("group-added", "adds the group new: mac"), ("group-changed", "in the group review: takes out spark")],
    ),
    "a group of nobody": (
        lambda f: f["groups"].update(new={"status": "active", "members": []}),
        [("group-added", "adds the group new: nobody")],
    ),
    "a policy": (lambda f: f["policy"].update(b=[1], a=None), [
        ("policy", "policy 'a': nothing becomes null"), ("policy", "policy 'b': nothing becomes [1]"),
    ]),
    "the roots in another order": (lambda f: f["roots"].reverse(), []),
    "fewer must sign": (
        lambda f: f.update(threshold=1), [("threshold", "signatures needed: from 2 of 3 to 1 of 3 roots")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "said"), CHANGES.values(), ids=CHANGES)
def test_changes_in_plain_words(edit: Any, said: list[tuple[str, str]]) -> None:
    assert after(edit) == said


def test_a_root_gets_a_name_and_a_policy_goes() -> None:
    root = PAST.newest.roots[0]
    named = parse(edited(PAST.newest.raw, lambda f: f.update(policy={"roots": {key_of(root): "lea"}, "x": 1})))
    (one,) = (found for found in differences(PAST.newest, named) if found.kind != "policy")
    assert (one.kind, one.name) == ("root-named", fingerprint(root))
    assert one.text == f"calls the root {fingerprint(root)} now lea ({fingerprint(root)})"
    (two,) = (found for found in differences(named, PAST.newest) if found.kind == "policy")
    assert two == ("policy", "x", "policy 'x': 1 becomes nothing")


def key_of(public: bytes) -> str:
    return hashlib.sha256(b"wire/v1/key" + public).hexdigest()[:32]
