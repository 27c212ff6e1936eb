"""One trust document by itself: what is read, what is refused and why, what is written."""

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.trusts import (
    HEAD,
    NONCE,
    NOW,
    OTHER_HEAD,
    ROOT,
    ROOTS,
    begun,
    edited,
    enrolled,
    old_wire,
    retired,
    signed,
    signer,
    unchanged,
)
from wire.errors import TrustError
from wire.keys import document as document_module
from wire.keys import model as model_module
from wire.keys import signatures as signatures_module
from wire.keys.signatures import signers_of
from wire.keys.trust import (
    DOCUMENT_MAX,
    SIGNATURES_MAX,
    Agent,
    Group,
    Key,
    encode,
    file_name,
    found,
    parse,
    proof_holds,
    proof_payload,
    prove,
    read_signatures,
    sign_document,
)
from wire.protocol.encoding import PROOF_TYPE, TRUST_TYPE, b64, parse_checkpoint, sha256_hex, verify
from wire.protocol.line import genesis

Fields = dict[str, Any]

CHAIN = old_wire()
WIRE = CHAIN.wire
RAW = CHAIN.newest.raw
FIRST = CHAIN.documents[0].raw
# The point of order 1: a well-formed encoding, and no key.
SMALL_ORDER = b64(b"\x01" + bytes(31))


def set_(*path: str | int, to: object) -> Callable[[Fields], None]:
    """Return an edit that sets one member."""

    def edit(fields: Fields) -> None:
        place: Any = fields
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return edit


def drop(*path: str | int) -> Callable[[Fields], None]:
    def edit(fields: Fields) -> None:
        place: Any = fields
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return edit


def rename(old: str, new: str, table: str = "agents") -> Callable[[Fields], None]:
    def edit(fields: Fields) -> None:
        fields[table][new] = fields[table].pop(old)

    return edit


MAC_OLD = ("agents", "mac", "keys", 0)
MAC_NEW = ("agents", "mac", "keys", 1)


# What is refused: (what is wrong, edit of a well-formed document, reason, a piece of the message)

REFUSED: list[tuple[str, Callable[[Fields], object], str, str]] = [
    ("unknown member", set_("extra", to=1), "trust-malformed", "unknown member 'extra'"),
    ("lacks a member", drop("policy"), "trust-malformed", "lacks the member 'policy'"),
    ("newer format", set_("v", to=2), "trust-malformed", "'v' is 2"),
    ("format is true", set_("v", to=True), "trust-malformed", "'v' is True"),
    ("version is zero", set_("version", to=0), "trust-malformed", "'version' is 0"),
    ("version is true", set_("version", to=True), "trust-malformed", "'version' is True"),
    ("version is a string", set_("version", to="9"), "trust-malformed", "'version'"),
    ("version is past nine digits", set_("version", to=10**9), "trust-malformed", "'version'"),
    ("wire is null after version 1", set_("wire", to=None), "trust-malformed", "'wire' is None"),
    ("wire is upper-case", set_("wire", to=WIRE.upper() + "A"), "trust-malformed", "'wire'"),
    ("wire has a newline", set_("wire", to=WIRE + "\n"), "trust-malformed", "'wire'"),
    ("prev is short", set_("prev", to="ab" * 31), "trust-malformed", "'prev'"),
    ("nonce after version 1", set_("nonce", to=NONCE), "trust-malformed", "'nonce'"),
    ("created is another form", set_("created", to="2026-11-29 11:20:00"), "trust-malformed", "'created'"),
    ("created is a number", set_("created", to=0), "trust-malformed", "'created'"),
    ("roots is an object", set_("roots", to={}), "trust-malformed", "'roots'"),
    ("65 roots", set_("roots", to=[b64(signer(str(n)).public) for n in range(65)]), "trust-malformed", "at most 64"),
    ("root is a number", set_("roots", 0, to=7), "trust-malformed", "root 1"),
    ("root of 31 bytes", set_("roots", 0, to=b64(bytes(31))), "trust-malformed", "root 1"),
    ("root of small order", set_("roots", 0, to=SMALL_ORDER), "key-invalid", "root 1"),
    ("root twice", set_("roots", 0, to=b64(ROOTS[1].public)), "key-shared", "root 1 and at root 2"),
    ("no roots", set_("roots", to=[]), "threshold-invalid", "with 0 roots"),
    ("threshold 0", set_("threshold", to=0), "threshold-invalid", "threshold of 0"),
    ("threshold above the roots", set_("threshold", to=4), "threshold-invalid", "4 with 3 roots"),
    ("threshold is true", set_("threshold", to=True), "trust-malformed", "'threshold' is True"),
    ("agents is a list", set_("agents", to=[]), "trust-malformed", "'agents'"),
    ("agent has a reserved name", rename("spark", "all"), "name-invalid", "agent 'all'"),
    ("agent has a path for a name", rename("spark", "../x"), "name-invalid", "'../x'"),
    ("agent has an empty name", rename("spark", ""), "name-invalid", "agent ''"),
    ("agent is a string", set_("agents", "mac", to="mac"), "trust-malformed", "agent 'mac' is not an object"),
    ("agent has an unknown member", set_("agents", "mac", "x", to=1), "trust-malformed", "agent 'mac' has the unknown"),
    ("agent lacks its role", drop("agents", "mac", "role"), "trust-malformed", "lacks the member 'role'"),
    ("role is unknown", set_("agents", "mac", "role", to="root"), "trust-malformed", "role of agent 'mac'"),
    ("status is unknown", set_("agents", "mac", "status", to="retired"), "trust-malformed", "status of agent 'mac'"),
    ("status is a list", set_("agents", "mac", "status", to=["active"]), "trust-malformed", "status of agent 'mac'"),
    ("agent without a key", set_("agents", "mac", "keys", to=[]), "trust-malformed", "has no key"),
    ("65 keys", set_("agents", "mac", "keys", to=[{}] * 65), "trust-malformed", "at most 64"),
    ("key is a string", set_(*MAC_NEW, to="key"), "trust-malformed", "key 2 of agent 'mac'"),
    ("key has an unknown member", set_(*MAC_NEW, "expires", to=NOW), "trust-malformed", "unknown member 'expires'"),
    ("key lacks its proof", drop(*MAC_NEW, "proof"), "trust-malformed", "lacks the member 'proof'"),
    ("key status is unknown", set_(*MAC_NEW, "status", to="removed"), "trust-malformed", "status of key 2"),
    ("key of 33 bytes", set_(*MAC_NEW, "public", to=b64(bytes(33))), "trust-malformed", "public key of key 2"),
    ("key is not a point", set_(*MAC_NEW, "public", to=b64(b"\x02" + bytes(31))), "key-invalid", "key 2 of agent"),
    ("key of small order", set_(*MAC_NEW, "public", to=SMALL_ORDER), "key-invalid", "key 2 of agent 'mac'"),
    ("proof of 63 bytes", set_(*MAC_NEW, "proof", to=b64(bytes(63))), "trust-malformed", "proof of key 2"),
    ("proof is null", set_(*MAC_NEW, "proof", to=None), "trust-malformed", "proof of key 2"),
    (
        "key under two names",
        set_("agents", "spark", "keys", 0, "public", to=b64(signer("mac").public)),
        "key-shared",
        "agent 'mac' and at agent 'spark'",
    ),
    (
        "key twice under one name",
        set_(*MAC_NEW, "public", to=b64(signer("mac").public)),
        "key-shared",
        "agent 'mac' and at agent 'mac'",
    ),
    (
        "root's key is an agent's",
        set_(*MAC_NEW, "public", to=b64(ROOT.public)),
        "key-shared",
        "root 1 and at agent 'mac'",
    ),
    (
        "two active keys",
        lambda fields: fields["agents"]["mac"]["keys"][0].update(status="active", positions={}),
        "two-active-keys",
        "2 active keys",
    ),
    ("removed and active", set_("agents", "mac", "status", to="removed"), "removed-with-active-key", "agent 'mac'"),
    ("positions is a list", set_(*MAC_OLD, "positions", to=[]), "trust-malformed", "positions of key 1"),
    (
        "8193 positions",
        set_(*MAC_OLD, "positions", to={f"mac/n{n}": [1, HEAD] for n in range(8193)}),
        "trust-malformed",
        "8193 positions",
    ),
    (
        "active key with a position",
        set_(*MAC_NEW, "positions", to={"mac/spark": [1, HEAD]}),
        "position-invalid",
        "is active and has positions",
    ),
    (
        "position in another's channel",
        set_(*MAC_OLD, "positions", to={"spark/mac": [1, HEAD]}),
        "position-invalid",
        "no channel of 'mac'",
    ),
    (
        "position in no channel",
        set_(*MAC_OLD, "positions", to={"mac": [1, HEAD]}),
        "position-invalid",
        "no channel of 'mac'",
    ),
    (
        "position in a channel to oneself",
        set_(*MAC_OLD, "positions", to={"mac/mac": [1, HEAD]}),
        "position-invalid",
        "no channel of 'mac'",
    ),
    ("position is a number", set_(*MAC_OLD, "positions", "mac/spark", to=2), "position-invalid", "not [seq"),
    ("position of three", set_(*MAC_OLD, "positions", "mac/spark", to=[1, HEAD, 1]), "position-invalid", "not [seq"),
    ("position is negative", set_(*MAC_OLD, "positions", "mac/spark", to=[-1, HEAD]), "position-invalid", "not [seq"),
    ("position is true", set_(*MAC_OLD, "positions", "mac/spark", to=[True, HEAD]), "position-invalid", "not [seq"),
    ("position, null", set_(*MAC_OLD, "positions", "mac/spark", to=[2, None]), "position-invalid", "not [seq"),
    ("position, short", set_(*MAC_OLD, "positions", "mac/spark", to=[2, "ab"]), "position-invalid", "not [seq"),
    (
        "position 0 with the head of a line",
        set_(*MAC_OLD, "positions", "mac/spark", to=[0, HEAD]),
        "position-invalid",
        "not the channel's beginning",
    ),
    ("groups is null", set_("groups", to=None), "trust-malformed", "'groups'"),
    ("group has a reserved name", rename("review", "trust", "groups"), "name-invalid", "group 'trust'"),
    ("group has an agent's name", rename("review", "mac", "groups"), "name-clash", "'mac' is an agent and a group"),
    ("group is a list", set_("groups", "review", to=[]), "trust-malformed", "group 'review' is not an object"),
    ("group has an unknown member", set_("groups", "review", "x", to=1), "trust-malformed", "unknown member 'x'"),
    ("group status is unknown", set_("groups", "review", "status", to="gone"), "trust-malformed", "status of group"),
    ("members is an object", set_("groups", "review", "members", to={}), "trust-malformed", "members of group"),
    ("member twice", set_("groups", "review", "members", to=["mac", "mac"]), "trust-malformed", "distinct names"),
    ("member is a list", set_("groups", "review", "members", to=[["mac"]]), "trust-malformed", "distinct names"),
    ("member is nobody", set_("groups", "review", "members", to=["eve"]), "member-unknown", "'eve', no agent"),
    ("member is a group", set_("groups", "review", "members", to=["gone"]), "member-unknown", "'gone', no agent"),
    ("member is everybody", set_("groups", "review", "members", to=["all"]), "member-unknown", "'all', no agent"),
    ("policy is a string", set_("policy", to="strict"), "trust-malformed", "'policy' is not an object"),
    ("policy has a float", set_("policy", to={"body": 0.5}), "trust-malformed", "float"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "reason", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(edit: Callable[[Fields], object], reason: str, text: str) -> None:
    with pytest.raises(TrustError) as caught:
        parse(edited(RAW, edit))
    assert (caught.value.reason, text in caught.value.message) == (reason, True), caught.value.message


FIRST_REFUSED: list[tuple[str, Callable[[Fields], object], str]] = [
    ("version 1 names a wire", set_("wire", to=WIRE), "trust-malformed"),
    ("version 1 names a predecessor", set_("prev", to=HEAD), "trust-malformed"),
    ("version 1 has no nonce", set_("nonce", to=None), "trust-malformed"),
    ("nonce of version 1 is short", set_("nonce", to="00"), "trust-malformed"),
    ("version 1 lists an agent", lambda fields: fields.update(agents=json.loads(RAW)["agents"]), "first-not-empty"),
    ("version 1 lists a group", set_("groups", to={"ops": {"status": "active", "members": []}}), "first-not-empty"),
]


@pytest.mark.parametrize(("edit", "reason"), [row[1:] for row in FIRST_REFUSED], ids=[row[0] for row in FIRST_REFUSED])
def test_first_refused(edit: Callable[[Fields], object], reason: str) -> None:
    with pytest.raises(TrustError) as caught:
        parse(edited(FIRST, edit))
    assert caught.value.reason == reason, caught.value.message


def _doubled(member: bytes) -> bytes:
    return RAW.replace(member, member + b' 0,\n "' + member.split(b'"')[1] + b'":', 1)


BYTES_REFUSED = [
    ("nothing", b"", "trust-malformed"),
    ("a byte order mark", b"\xef\xbb\xbf" + RAW, "trust-malformed"),
    ("a list", b"[" + RAW + b"]", "trust-malformed"),
    ("two objects", RAW + RAW, "trust-malformed"),
    ("half of one", RAW[:100], "trust-malformed"),
    ("invalid UTF-8", RAW.replace(b'"policy": {}', b'"policy": {"\xff": 1}'), "trust-malformed"),
    ("a key twice", _doubled(b'"threshold":'), "trust-malformed"),
    ("an agent twice", RAW.replace(b'"spark": {', b'"mac": {'), "trust-malformed"),
    ("NaN", RAW.replace(b'"policy": {}', b'"policy": {"x": NaN}'), "trust-malformed"),
    ("version 9.0", RAW.replace(b'"version": 9', b'"version": 9.0'), "trust-malformed"),
    ("version 2^53", RAW.replace(b'"version": 9', b'"version": 9007199254740992'), "trust-malformed"),
    ("deep nesting", edited(RAW, set_("policy", "x", to=json.loads("[" * 40 + "]" * 40))), "trust-malformed"),
    ("another spelling of a key", RAW.replace(b64(ROOT.public).encode(), b64(ROOT.public)[:-2].encode() + b"9="),
     "trust-malformed"),
    ("one byte too many", RAW + b" " * (DOCUMENT_MAX + 1 - len(RAW)), "trust-too-large"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "reason"), [row[1:] for row in BYTES_REFUSED], ids=[row[0] for row in BYTES_REFUSED])
def test_bytes_refused(raw: bytes, reason: str) -> None:
    assert raw != RAW
    with pytest.raises(TrustError) as caught:
        parse(raw)
    assert caught.value.reason == reason, caught.value.message


@pytest.mark.parametrize(("table", "limit", "held"), [("agents", "AGENTS_MAX", 3), ("groups", "GROUPS_MAX", 2)])
def test_too_many_entries_are_refused(table: str, limit: str, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, limit, held)
    assert parse(RAW).version == 9
    monkeypatch.setattr(document_module, limit, held - 1)
    with pytest.raises(TrustError, match=f"'{table}' has {held} entries; the limit is {held - 1}") as caught:
        parse(RAW)
    assert caught.value.reason == "trust-malformed"


@pytest.mark.parametrize("member", ["version", "wire", "prev", "nonce", "created", "threshold", "roots", "policy"])
def test_a_refusal_names_the_member(member: str) -> None:
    with pytest.raises(TrustError, match=f"'{member}' is "):
        parse(edited(RAW, set_(member, to="x")))


# What is read


def test_a_document_says_what_stands_in_it() -> None:
    document = parse(RAW)
    assert (document.version, document.wire, document.threshold) == (9, WIRE, 2)
    assert document.roots == tuple(root.public for root in ROOTS)
    mac = document.agents["mac"]
    assert [(key.id, key.status) for key in mac.keys] == [
        (signer("mac").key_id, "retired"),
        (signer("mac-2").key_id, "active"),
    ]
    assert mac.active_key is mac.keys[1]
    assert mac.key(signer("mac").key_id) is mac.keys[0]
    assert mac.key("0" * 32) is None
    assert mac.keys[0].positions == {"mac/spark": (2, HEAD)}
    assert document.agents["left"].active_key is None
    assert [name for name, agent in document.agents.items() if agent.waits_for_key] == []
    lost = retired(CHAIN, "spark", signer("spark"), "revoked", {}, by=ROOTS[:2]).newest.agents["spark"]
    assert lost.waits_for_key
    assert document.groups["review"] == Group("review", "active", ("mac", "spark"))
    assert document.owners[signer("spark").key_id] == ("spark", document.agents["spark"].keys[0])


def test_hash_reference_and_checkpoint_name_the_exact_bytes() -> None:
    document = parse(RAW)
    assert document.hash == sha256_hex(RAW)
    assert document.reference == f"9:{document.hash[:16]}"
    assert parse_checkpoint(document.checkpoint) == (9, bytes.fromhex(document.hash))


def test_the_order_of_members_and_spaces_are_the_writers_choice() -> None:
    fields = json.loads(RAW)
    raw = json.dumps(dict(reversed(fields.items())), separators=(",", ":")).encode()
    document = parse(raw)
    assert document.agents == parse(RAW).agents
    assert document.hash != parse(RAW).hash


def test_limits_are_those_of_the_protocol() -> None:
    limits = ("DOCUMENT_MAX", "ROOTS_MAX", "AGENTS_MAX", "GROUPS_MAX", "KEYS_MAX", "POSITIONS_MAX", "VERSION_MAX")
    values = [getattr(document_module, limit) for limit in limits]
    assert values == [1_048_576, 64, 4_096, 4_096, 64, 8_192, 999_999_999]
    assert SIGNATURES_MAX == 32_768


def test_limits_are_inclusive() -> None:
    assert parse(RAW + b" " * (DOCUMENT_MAX - len(RAW))).version == 9
    roots = [b64(signer(str(n)).public) for n in range(64)]
    assert len(parse(edited(RAW, lambda f: f.update(roots=roots, threshold=64))).roots) == 64
    assert parse(edited(RAW, set_("version", to=999_999_999))).version == 999_999_999
    positions = {f"mac/n{number}": [1, HEAD] for number in range(8_192)}
    assert len(parse(edited(RAW, set_(*MAC_OLD, "positions", to=positions))).agents["mac"].keys[0].positions) == 8_192


def test_policy_may_say_anything_and_holds_its_values() -> None:
    policy = {"encrypt": "required", "nested": {"a": [1, None, True, "é"]}}
    assert parse(edited(RAW, set_("policy", to=policy))).policy == policy


def test_a_position_may_be_the_beginning_of_its_channel() -> None:
    beginning = [0, genesis(WIRE, "mac/spark")]
    key = parse(edited(RAW, set_(*MAC_OLD, "positions", "mac/spark", to=beginning))).agents["mac"].keys[0]
    assert not key.covers("mac/spark", 1, HEAD)


def test_points_of_keys_that_are_known_are_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []

    def valid_public(public: bytes) -> bool:
        checked.append(public)
        return True

    monkeypatch.setattr(document_module, "valid_public", valid_public)
    grown = edited(RAW, lambda f: f["roots"].append(b64(signer("root-4").public)))
    parse(grown, known=parse(RAW))
    assert checked[-1:] == [signer("root-4").public]
    assert checked.count(signer("root-4").public) == 1
    assert len(checked) == 1 + len(ROOTS) + len(parse(RAW).owners)


def test_a_key_is_recognised_by_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    document = parse(RAW)
    known = next(iter(document.owners))
    monkeypatch.setattr(model_module, "key_id", lambda public: known)
    assert document.holds_key(document.owners[known][1].public)
    assert not document.holds_key(signer("somebody with the same id").public)


def test_a_document_shows_what_it_is_and_not_all_that_it_holds() -> None:
    document = parse(unchanged(SMALL))
    assert repr(document) == f"Document(version={document.version}, hash={document.hash!r})"


def test_documents_can_be_handed_to_worker_processes() -> None:
    assert pickle.loads(pickle.dumps(CHAIN)) == CHAIN


@pytest.mark.parametrize(
    ("status", "channel", "seq", "head", "covered"),
    [
        pytest.param("active", "mac/spark", 9, HEAD, True, id="active: every line"),
        pytest.param("retired", "mac/spark", 1, OTHER_HEAD, True, id="retired: before the position"),
        pytest.param("retired", "mac/spark", 2, HEAD, True, id="retired: at the position"),
        pytest.param("retired", "mac/spark", 2, OTHER_HEAD, False, id="retired: at the position, another head"),
        pytest.param("retired", "mac/spark", 3, HEAD, False, id="retired: past the position"),
        pytest.param("retired", "mac/all", 1, HEAD, False, id="retired: a channel without position"),
        pytest.param("revoked", "mac/spark", 2, HEAD, True, id="revoked: at the position"),
        pytest.param("revoked", "mac/spark", 3, HEAD, False, id="revoked: past the position"),
    ],
)
def test_a_key_covers(status: str, channel: str, seq: int, head: str, covered: bool) -> None:
    key = Key(signer("mac").public, status, bytes(64), {} if status == "active" else {"mac/spark": (2, HEAD)})
    assert key.covers(channel, seq, head) is covered


# What is written


def fields_of(raw: bytes) -> dict[str, Any]:
    document = parse(raw)
    names = ("version", "wire", "prev", "nonce", "created", "threshold", "roots", "agents", "groups", "policy")
    return {name: getattr(document, name) for name in names}


@pytest.mark.parametrize("version", range(1, 10))
def test_written_again_a_document_is_the_same_bytes(version: int) -> None:
    held = CHAIN.at(version)
    assert held is not None
    assert encode(**fields_of(held.raw)) == held.raw


def test_the_written_form_is_fixed() -> None:
    raw = found(roots=[ROOT.public], nonce=NONCE, created=NOW, policy={"note": "grün"})
    assert raw.decode() == (
        '{\n "v": 1,\n "version": 1,\n "wire": null,\n "prev": null,\n "nonce": "' + NONCE + '",\n'
        ' "created": "' + NOW + '",\n "threshold": 1,\n "roots": [\n  "' + b64(ROOT.public) + '"\n ],\n'
        ' "agents": {},\n "groups": {},\n "policy": {\n  "note": "grün"\n }\n}\n'
    )  # fmt: skip


@pytest.mark.parametrize("value", [float("nan"), "\ud800", {1, 2}], ids=["NaN", "lone surrogate", "no JSON"])
def test_a_policy_that_cannot_be_written_is_refused(value: object) -> None:
    with pytest.raises(TrustError, match="policy cannot be written") as caught:
        encode(**{**fields_of(RAW), "policy": {"x": value}})
    assert caught.value.reason == "trust-malformed"


_names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?x", fullmatch=True)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(codec="utf-8"), max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=9,
)


@given(
    agents=st.dictionaries(_names, st.sampled_from(["active", "removed"]), max_size=5),
    seqs=st.lists(st.integers(1, 2**53 - 1), max_size=3),
    policy=st.dictionaries(st.text(st.characters(codec="utf-8")), _json, max_size=3),
)
def test_whatever_is_written_is_read_back(agents: dict[str, str], seqs: list[int], policy: dict[str, Any]) -> None:
    made: dict[str, Agent] = {}
    for name, status in agents.items():
        positions = {f"{name}/peer-{number}": (seq, HEAD) for number, seq in enumerate(seqs)}
        key = Key(signer(name).public, "active", bytes(64), {})
        if status == "removed":
            key = Key(signer(name).public, "revoked", bytes(64), positions)
        made[name] = Agent(name, "human", status, (key,))
    groups = {"everybody": Group("everybody", "active", tuple(made))}
    raw = encode(**{**fields_of(RAW), "agents": made, "groups": groups, "policy": policy})
    document = parse(raw)
    assert (document.agents, document.groups, document.policy) == (made, groups, policy)


@given(raw=st.binary(max_size=200) | st.builds(lambda at, junk: RAW[:at] + junk + RAW[at:], st.integers(0, len(RAW)),
       st.binary(min_size=1, max_size=8)))  # fmt: skip
def test_junk_is_refused_or_read_but_never_breaks(raw: bytes) -> None:
    try:
        document = parse(raw)
    except TrustError:
        return
    assert document.raw == raw


# Signature files

ONE = signed(RAW, ROOTS[0])
PUBLICS = [root.public for root in ROOTS]


def test_a_signature_line_has_its_one_form() -> None:
    key, signature = read_signatures(sign_document(RAW, ROOT))[0]
    assert sign_document(RAW, ROOT) == b'{"key":"%s","sig":"%s"}\n' % (key.encode(), b64(signature).encode())
    assert key == ROOT.key_id
    assert verify(ROOT.public, signature, TRUST_TYPE, RAW)
    assert len(sign_document(RAW, ROOT)) == 140


def _spelled(signature_file: bytes) -> list[bytes]:
    """Return the other fifteen spellings of the last character of the first signature."""
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    at = signature_file.index(b'=="}') - 1
    rank = alphabet.index(signature_file[at])
    others = (alphabet[(rank & ~15) + low] for low in range(16))
    return [signature_file[:at] + bytes([other]) + signature_file[at + 1 :] for other in others][:16]


COUNTED = [
    ("no signature", b"", 0),
    ("one", ONE, 1),
    ("three", signed(RAW, *ROOTS), 3),
    ("three in another order", signed(RAW, *reversed(ROOTS)), 3),
    ("one root twice", ONE + ONE, 1),
    ("an unknown key", signed(RAW, signer("eve")), 0),
    ("an unknown key beside a root", signed(RAW, signer("eve")) + ONE, 1),
    ("a signature of another document", signed(RAW + b" ", ROOTS[0]), 0),
    ("a wrong signature before the right one", signed(RAW + b" ", ROOTS[0]) + ONE, 1),
    ("a signature under another root's id", ONE.replace(ROOTS[0].key_id.encode(), ROOTS[1].key_id.encode()), 0),
    (
        "a signature of another type",
        b'{"key":"%s","sig":"%s"}\n' % (ROOT.key_id.encode(), b64(ROOT.sign(PROOF_TYPE, RAW)).encode()),
        0,
    ),
]


@pytest.mark.parametrize(("file", "count"), [row[1:] for row in COUNTED], ids=[row[0] for row in COUNTED])
def test_signatures_count_once_per_root(file: bytes, count: int) -> None:
    assert len(signers_of(RAW, file, PUBLICS)) == count


MALFORMED = [
    ("no newline at the end", ONE[:-1]),
    ("half a line", ONE + ONE[:70]),
    ("an empty line", ONE + b"\n"),
    ("CR LF", ONE[:-1] + b"\r\n"),
    ("a space", ONE.replace(b":", b": ", 1)),
    ("members in another order", b'{"sig":"%s","key":"%s"}\n' % (b64(bytes(64)).encode(), ROOT.key_id.encode())),
    ("another member", ONE.replace(b"}", b',"x":1}')),
    ("an upper-case key id", ONE.replace(ROOT.key_id.encode(), ROOT.key_id.upper().encode())),
    ("a signature of 63 bytes", ONE.replace(ONE[-91:-3], b64(bytes(63)).encode())),
    ("a list", b"[" + ONE[:-1] + b"]\n"),
    ("not text", b"\xff\n"),
    ("too much of it", ONE * (SIGNATURES_MAX // len(ONE) + 1)),
]


@pytest.mark.parametrize("file", [row[1] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_a_signature_file_of_another_form_is_refused(file: bytes) -> None:
    assert file != ONE
    with pytest.raises(TrustError) as caught:
        signers_of(RAW, file, PUBLICS)
    assert caught.value.reason == "signatures-malformed"


def test_only_one_of_sixteen_spellings_of_a_signature_is_read() -> None:
    spellings = _spelled(ONE)
    assert len(set(spellings)) == 16
    assert ONE in spellings
    for spelling in spellings:
        if spelling != ONE:
            with pytest.raises(TrustError) as caught:
                read_signatures(spelling)
            assert caught.value.reason == "signatures-malformed"


def test_the_longest_signature_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures_module, "SIGNATURES_MAX", 2 * len(ONE))
    assert len(read_signatures(ONE * 2)) == 2
    with pytest.raises(TrustError, match="the limit is"):
        read_signatures(ONE * 3)


@pytest.mark.parametrize("wrong", [b"hello\n", ONE[:-6] + b'B=="}\n'])
def test_a_refusal_names_the_line_of_a_signature_file(wrong: bytes) -> None:
    for number in (1, 2, 3):
        with pytest.raises(TrustError, match=f"line {number} of the signature file"):
            read_signatures(ONE * (number - 1) + wrong + ONE)


def test_a_full_signature_file_is_read() -> None:
    assert len(signers_of(RAW, ONE * (SIGNATURES_MAX // len(ONE)), PUBLICS)) == 1


# Proofs


def test_a_proof_binds_wire_name_role_and_key() -> None:
    mac = signer("mac")
    proof = prove(mac, wire=WIRE, name="mac", role="agent")
    right: Any = {"wire": WIRE, "name": "mac", "role": "agent", "public": mac.public}
    assert proof_payload(**right) == (
        b'{"wire":"%s","name":"mac","role":"agent","public":"%s"}' % (WIRE.encode(), b64(mac.public).encode())
    )
    assert proof_holds(proof, **right)
    wrong = {"wire": "0" * 32, "name": "spark", "role": "human", "public": signer("spark").public}
    for member, value in wrong.items():
        assert not proof_holds(proof, **{**right, member: value}), member
    assert not proof_holds(proof[:-1], **right)
    assert not proof_holds(mac.sign(TRUST_TYPE, proof_payload(**right)), **right)


# Files of the trust folder


@pytest.mark.parametrize(
    ("version", "name"),
    [(1, "000001.json"), (999_999, "999999.json"), (1_000_000, "1000000.json"), (999_999_999, "999999999.json")],
)
def test_file_names(version: int, name: str) -> None:
    assert file_name(version) == name


# One changed byte

SMALL = enrolled(begun(), "mac", signer("mac"))


@given(at=st.integers(0, len(unchanged(SMALL)) - 1), flip=st.integers(1, 255))
def test_a_document_with_one_byte_changed_has_no_signature(at: int, flip: int) -> None:
    raw = unchanged(SMALL)
    changed = raw[:at] + bytes([raw[at] ^ flip]) + raw[at + 1 :]
    assert len(signers_of(changed, signed(raw, ROOT), [ROOT.public])) == 0
