"""The chain of trust versions: which bytes may follow, which never, and what a tip's file is to a held chain.

The rows of the tables read like the history of a wire: what somebody put into the next version, and the reason for
which every machine refuses it.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
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
    grouped,
    old_wire,
    retired,
    signed,
    signer,
    unchanged,
)
from wire.errors import TrustError, UsageError
from wire.keys.build import set_roots
from wire.keys.trust import (
    DOCUMENT_MAX,
    Chain,
    Reason,
    Verdict,
    enroll,
    found,
    prove,
    retire,
    set_group,
    successor,
)
from wire.protocol.chain import KeyRing, Position, step
from wire.protocol.encoding import Signer, b64, check_checkpoint, parse_checkpoint
from wire.protocol.line import genesis, seal

Fields = dict[str, Any]

CHAIN = old_wire()
WIRE = CHAIN.wire
TWO = ROOTS[:2]
NEXT = unchanged(CHAIN)


def key_entry(key: Signer, name: str, role: str = "agent", wire: str = WIRE, **change: object) -> dict[str, Any]:
    """Return a key as it stands in a document, with a proof."""
    proof = b64(prove(key, wire=wire, name=name, role=role))
    return {"public": b64(key.public), "status": "active", "proof": proof, "positions": {}, **change}


def newcomer(name: str = "new", role: str = "agent", **key: object) -> Callable[[Fields], None]:
    """Return an edit that enrols an agent by an entry of our making."""

    def edit(fields: Fields) -> None:
        entry = {**key_entry(signer("new"), "new"), **key}
        fields["agents"][name] = {"role": role, "status": "active", "keys": [entry]}

    return edit


def agent(name: str, **change: object) -> Callable[[Fields], None]:
    return lambda fields: fields["agents"][name].update(change)


def key_of(name: str, number: int, **change: object) -> Callable[[Fields], None]:
    return lambda fields: fields["agents"][name]["keys"][number].update(change)


def both(*edits: Callable[[Fields], object]) -> Callable[[Fields], None]:
    def edit(fields: Fields) -> None:
        for each in edits:
            each(fields)

    return edit


def move_to_groups(name: str) -> Callable[[Fields], None]:
    def edit(fields: Fields) -> None:
        del fields["agents"][name]
        fields["groups"]["review"]["members"] = []
        fields["groups"]["gone"]["members"] = []
        fields["groups"][name] = {"status": "active", "members": []}

    return edit


def move_to_agents(name: str) -> Callable[[Fields], None]:
    def edit(fields: Fields) -> None:
        del fields["groups"][name]
        newcomer(name)(fields)

    return edit


def hand_over(fields: Fields) -> None:
    """Give spark's key to another name."""
    key = fields["agents"]["spark"]["keys"][0]
    fields["agents"]["spark"]["keys"] = [key_entry(signer("spark-2"), "spark")]
    fields["agents"]["thief"] = {"role": "agent", "status": "active", "keys": [key]}


def leave_alone(fields: Fields) -> None:
    """Change nothing."""


def roots(*keys: Signer, threshold: int) -> Callable[[Fields], None]:
    return lambda fields: fields.update(roots=[b64(key.public) for key in keys], threshold=threshold)


R1, R2, R3 = ROOTS
R4 = signer("root-4")
EVE = signer("eve")

# What is refused as the next version: (story, edit, who signs, reason)

REFUSED: list[tuple[str, Callable[[Fields], object], Sequence[Signer], Reason]] = [
    # Signatures. Two of R1, R2, R3 are in force.
    ("nobody signed", leave_alone, (), Reason.TOO_FEW_OLD),
    ("one of two signed", leave_alone, (R1,), Reason.TOO_FEW_OLD),
    ("one signed twice", leave_alone, (R1, R1), Reason.TOO_FEW_OLD),
    ("one signed, and a stranger", leave_alone, (R1, EVE), Reason.TOO_FEW_OLD),
    ("one signed, and an agent", leave_alone, (R1, signer("mac-2")), Reason.TOO_FEW_OLD),
    ("a stranger enrols himself", newcomer(), (signer("new"),), Reason.TOO_FEW_OLD),
    ("a stranger lowers the threshold to himself", roots(EVE, threshold=1), (EVE,), Reason.TOO_FEW_OLD),
    ("threshold lowered to 1 and signed by 1", roots(*ROOTS, threshold=1), (R1,), Reason.TOO_FEW_OLD),
    ("new roots sign without the old ones", roots(R3, R4, threshold=2), (R3, R4), Reason.TOO_FEW_OLD),
    ("old roots sign without the new ones", roots(R3, R4, threshold=2), (R1, R2), Reason.TOO_FEW_NEW),
    ("threshold raised to 3 and signed by 2", roots(*ROOTS, threshold=3), (R1, R2), Reason.TOO_FEW_NEW),
    ("a signed document of no form", both(lambda fields: fields.pop("groups")), TWO, Reason.MALFORMED),
    # Place.
    ("a number is left out", lambda fields: fields.update(version=11), TWO, Reason.NOT_NEXT),
    ("the number of the version held", lambda fields: fields.update(version=9), TWO, Reason.NOT_NEXT),
    ("another wire's", lambda fields: fields.update(wire="0" * 32), TWO, Reason.WRONG_WIRE),
    ("it follows another version 9", lambda fields: fields.update(prev="0" * 64), TWO, Reason.WRONG_PREV),
    ("it follows version 8", lambda fields: fields.update(prev=CHAIN.documents[7].hash), TWO, Reason.WRONG_PREV),
    # Names.
    ("an agent is gone", both(lambda f: f["agents"].pop("left")), TWO, Reason.NAME_VANISHED),
    ("a group is gone", lambda fields: fields["groups"].pop("review"), TWO, Reason.NAME_VANISHED),
    ("a removed group is gone", lambda fields: fields["groups"].pop("gone"), TWO, Reason.NAME_VANISHED),
    ("an agent's name becomes a group's", move_to_groups("spark"), TWO, Reason.NAME_REUSED),
    ("a removed agent's name becomes a group's", move_to_groups("left"), TWO, Reason.NAME_REUSED),
    ("a group's name becomes an agent's", move_to_agents("gone"), TWO, Reason.NAME_REUSED),
    ("a removed agent is back", agent("left", status="active"), TWO, Reason.NAME_REVIVED),
    ("a removed group is back", lambda f: f["groups"]["gone"].update(status="active"), TWO, Reason.NAME_REVIVED),
    ("an agent becomes human", agent("spark", role="human"), TWO, Reason.ROLE_CHANGED),
    # Keys.
    ("a retired key is gone", lambda f: f["agents"]["mac"]["keys"].pop(0), TWO, Reason.KEY_VANISHED),
    ("an active key is gone", agent("spark", keys=[key_entry(signer("spark-2"), "spark")]), TWO, Reason.KEY_VANISHED),
    ("a key goes to another name", hand_over, TWO, Reason.KEY_VANISHED),
    (
        "a retired key is active again",
        both(
            key_of("mac", 0, status="active", positions={}),
            key_of("mac", 1, status="retired"),
        ),
        TWO,
        Reason.KEY_REVIVED,
    ),
    ("a revoked key is only retired", key_of("left", 0, status="retired"), TWO, Reason.KEY_REVIVED),
    ("a position is gone", key_of("mac", 0, positions={}), TWO, Reason.POSITION_VANISHED),
    (
        "a position is gone while the key is revoked",
        key_of("mac", 0, status="revoked", positions={"mac/all": [1, HEAD]}),
        TWO,
        Reason.POSITION_VANISHED,
    ),
    ("a proof is exchanged", key_of("spark", 0, proof=b64(bytes(64))), TWO, Reason.PROOF_CHANGED),
    # Proofs.
    ("a key that did not agree", newcomer(proof=b64(bytes(64))), TWO, Reason.PROOF_INVALID),
    ("a key that agreed to another name", newcomer("other"), TWO, Reason.PROOF_INVALID),
    ("a key that agreed to another role", newcomer(role="human"), TWO, Reason.PROOF_INVALID),
    (
        "a key that agreed on another wire",
        newcomer(**key_entry(signer("new"), "new", wire="0" * 32)),
        TWO,
        Reason.PROOF_INVALID,
    ),
    ("a proof by another key", newcomer(public=b64(EVE.public)), TWO, Reason.PROOF_INVALID),
    (
        "a second key that did not agree",
        lambda f: f["agents"]["mac"]["keys"].append(
            key_entry(EVE, "mac", status="retired", proof=b64(prove(EVE, wire=WIRE, name="eve", role="agent")))
        ),
        TWO,
        Reason.PROOF_INVALID,
    ),
    # One document's own rules hold here too.
    ("two writers", lambda f: f["agents"]["mac"]["keys"].append(key_entry(EVE, "mac")), TWO, Reason.TWO_ACTIVE_KEYS),
    ("an agent's key becomes a root", roots(R1, R2, signer("spark"), threshold=2), TWO, Reason.KEY_SHARED),
    ("removed with its key still active", agent("spark", status="removed"), TWO, Reason.REMOVED_WITH_ACTIVE_KEY),
    ("a threshold of 0", roots(*ROOTS, threshold=0), TWO, Reason.THRESHOLD_INVALID),
    ("a group of a stranger", lambda f: f["groups"]["review"]["members"].append("eve"), TWO, Reason.MEMBER_UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "by", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(edit: Callable[[Fields], object], by: Sequence[Signer], reason: Reason) -> None:
    raw = edited(NEXT, edit)
    with pytest.raises(TrustError) as caught:
        CHAIN.extend(raw, signed(raw, *by))
    assert caught.value.reason == reason, caught.value.message
    verdict = CHAIN.judge(10, raw, signed(raw, *by))
    assert (verdict.verdict, verdict.reason, verdict.chain) == (Verdict.INVALID, reason, None)
    assert verdict.why == caught.value.message
    if reason not in (Reason.TOO_FEW_OLD, Reason.TOO_FEW_NEW):
        with pytest.raises(TrustError) as drafted:
            CHAIN.draft(raw)
        assert drafted.value.reason == reason


# What is accepted as the next version: (story, edit, who signs)

ACCEPTED: list[tuple[str, Callable[[Fields], object], Sequence[Signer]]] = [
    ("nothing changes", leave_alone, (R1, R2)),
    ("other two sign", leave_alone, (R3, R2)),
    ("all sign, and a stranger", leave_alone, (EVE, *ROOTS)),
    ("a newcomer", newcomer(), TWO),
    ("a human newcomer", newcomer(role="human", **key_entry(signer("new"), "new", role="human")), TWO),
    ("a newcomer whose key is retired at once", newcomer(status="retired", positions={"new/mac": [1, HEAD]}), TWO),
    ("a key is retired", key_of("spark", 0, status="retired", positions={"spark/mac": [3, HEAD]}), TWO),
    ("a key is revoked without any line", key_of("spark", 0, status="revoked"), TWO),
    ("a retired key is revoked", key_of("mac", 0, status="revoked"), TWO),
    ("a position moves down", key_of("mac", 0, positions={"mac/spark": [1, OTHER_HEAD]}), TWO),
    ("a position moves up", key_of("mac", 0, positions={"mac/spark": [7, OTHER_HEAD]}), TWO),
    ("a position moves to nothing", key_of("mac", 0, positions={"mac/spark": [0, genesis(WIRE, "mac/spark")]}), TWO),
    ("a position is added", key_of("mac", 0, positions={"mac/spark": [2, HEAD], "mac/all": [1, HEAD]}), TWO),
    ("an agent is removed", both(agent("spark", status="removed"), key_of("spark", 0, status="revoked")), TWO),
    ("a group is removed", lambda f: f["groups"]["review"].update(status="removed"), TWO),
    ("a group's members change", lambda f: f["groups"]["review"].update(members=["spark"]), TWO),
    ("a group's members may be removed agents", lambda f: f["groups"]["review"].update(members=["left"]), TWO),
    ("a group of nobody", lambda f: f["groups"].update(ops={"status": "active", "members": []}), TWO),
    ("keys in another order", lambda f: f["agents"]["mac"]["keys"].reverse(), TWO),
    ("the policy changes", lambda f: f.update(policy={"encrypt": "required"}), TWO),
    ("the time goes back", lambda f: f.update(created="1999-01-01T00:00:00.000Z"), TWO),
    ("a root is added", roots(*ROOTS, R4, threshold=2), TWO),
    ("a root is removed", roots(R1, R2, threshold=2), TWO),
    ("all roots are exchanged, signed by both sides", roots(R4, EVE, threshold=2), (R1, R2, R4, EVE)),
    ("the threshold rises, signed by as many", roots(*ROOTS, threshold=3), ROOTS),
    ("the threshold falls, signed by as many as before", roots(*ROOTS, threshold=1), TWO),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "by"), [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_accepted(edit: Callable[[Fields], object], by: Sequence[Signer]) -> None:
    raw = edited(NEXT, edit)
    longer = CHAIN.extend(raw, signed(raw, *by))
    assert (longer.newest.version, longer.newest.raw, longer.signatures[-1]) == (10, raw, signed(raw, *by))
    assert CHAIN.newest.version == 9
    assert CHAIN.draft(raw) == longer.newest
    judged = CHAIN.judge(10, raw, signed(raw, *by))
    assert judged == (Verdict.NEXT, None, "", longer)


def test_signatures_are_counted_before_anything_is_parsed() -> None:
    with pytest.raises(TrustError) as caught:
        CHAIN.extend(b"junk", b"")
    assert caught.value.reason == "too-few-old-signatures"
    with pytest.raises(TrustError) as caught:
        CHAIN.extend(b"junk", signed(b"junk", *TWO))
    assert caught.value.reason == "trust-malformed"


def test_size_is_judged_before_anything_else() -> None:
    with pytest.raises(TrustError) as caught:
        CHAIN.extend(b"{" * (DOCUMENT_MAX + 1), b"junk")
    assert caught.value.reason == "trust-too-large"


def test_the_largest_document_is_a_successor_too() -> None:
    raw = NEXT + b" " * (DOCUMENT_MAX - len(NEXT))
    assert CHAIN.extend(raw, signed(raw, *TWO)).newest.raw == raw


def test_a_malformed_signature_file_is_refused_whatever_it_holds() -> None:
    with pytest.raises(TrustError) as caught:
        CHAIN.extend(NEXT, signed(NEXT, *ROOTS) + b"\n")
    assert caught.value.reason == "signatures-malformed"


# Rotations of the roots, as stories of several versions: (story, steps of (roots, threshold, signers, accepted?))

ROTATIONS = [
    ("1-of-1 to another 1-of-1, signed by both", [((R2,), 1, (R1, R2), True), ((R2,), 1, (R2,), True)]),
    ("1-of-1 rotation fails: not signed with the old key", [((R2,), 1, (R2,), False)]),
    ("1-of-1 rotation fails: not signed with the new key", [((R2,), 1, (R1,), False)]),
    ("the old key signs nothing after its rotation", [((R2,), 1, (R1, R2), True), ((R2,), 1, (R1,), False)]),
    ("there and back", [((R2,), 1, (R1, R2), True), ((R1,), 1, (R1, R2), True), ((R1,), 1, (R1,), True)]),
    ("1-of-1 to 2-of-2", [((R1, R2), 2, (R1, R2), True), ((R1, R2), 2, (R1,), False)]),
    ("1-of-1 to 2-of-2 fails: only the old key signed", [((R1, R2), 2, (R1,), False)]),
    ("2-of-3: a lost root is replaced by the others", [
        ((R1, R2, R3), 2, (R1, R2), True), ((R1, R2, R4), 2, (R1, R2), True), ((R1, R2, R4), 2, (R1, R3), False),
    ]),
    ("2-of-3 to another 2-of-3 with one in common", [
        ((R1, R2, R3), 2, (R1, R2), True), ((R3, R4, EVE), 2, (R2, R3, R4), True),
    ]),
    ("2-of-3 to another 2-of-3 fails: one old one in common is not two", [
        ((R1, R2, R3), 2, (R1, R2), True), ((R3, R4, EVE), 2, (R3, R4, EVE), False),
    ]),
    ("2-of-2 down to 1-of-1 takes both", [
        ((R1, R2), 2, (R1, R2), True), ((R1,), 1, (R1,), False), ((R1,), 1, (R1, R2), True), ((R1,), 1, (R1,), True),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("steps", [row[1] for row in ROTATIONS], ids=[row[0] for row in ROTATIONS])
def test_rotation(steps: Sequence[tuple[Sequence[Signer], int, Sequence[Signer], bool]]) -> None:
    chain = begun()
    for keys, threshold, by, accepted in steps:
        raw = successor(chain.newest, chain.wire, NOW, roots=[key.public for key in keys], threshold=threshold)
        if accepted:
            chain = chain.extend(raw, signed(raw, *by))
            continue
        with pytest.raises(TrustError) as caught:
            chain.extend(raw, signed(raw, *by))
        assert caught.value.reason in ("too-few-old-signatures", "too-few-new-signatures")


# The beginning

GENESIS = begun().documents[0].raw


def test_a_wire_is_named_after_its_first_version() -> None:
    chain = begun()
    assert chain.wire == chain.newest.hash[:32]
    other = found(roots=[ROOT.public], nonce="f" * 32, created=NOW)
    assert Chain.genesis(other, signed(other, ROOT)).wire != chain.wire


@pytest.mark.parametrize(
    ("raw", "by", "reason"),
    [
        pytest.param(GENESIS, (), "too-few-new-signatures", id="unsigned"),
        pytest.param(GENESIS, (EVE,), "too-few-new-signatures", id="signed by a stranger"),
        pytest.param(CHAIN.documents[0].raw, (R1,), "too-few-new-signatures", id="signed by one of two"),
        pytest.param(NEXT, ROOTS, "not-next", id="not version 1"),
        pytest.param(b"{}", (ROOT,), "trust-malformed", id="no document"),
    ],
)
def test_no_beginning(raw: bytes, by: Sequence[Signer], reason: str) -> None:
    with pytest.raises(TrustError) as caught:
        Chain.genesis(raw, signed(raw, *by))
    assert caught.value.reason == reason


def test_a_chain_is_replayed_from_its_files() -> None:
    files = [(document.raw, signatures) for document, signatures in zip(CHAIN.documents, CHAIN.signatures, strict=True)]
    assert Chain.replay(files) == CHAIN
    with pytest.raises(TrustError) as caught:
        Chain.replay([])
    assert caught.value.reason == "not-next"
    with pytest.raises(TrustError) as caught:
        Chain.replay([*files[:3], *files[4:]])
    assert caught.value.reason == "not-next"


# What a file at a tip is to a chain that is held


def rival(chain: Chain, version: int) -> bytes:
    """Return another successor of version - 1 than the held one."""
    return edited(unchanged(chain.until(version - 1)), lambda fields: fields.update(policy={"rival": True}))


def held(version: int) -> bytes:
    document = CHAIN.at(version)
    assert document is not None
    return document.raw


FOREIGN_FIRST = found(roots=[EVE.public], nonce=NONCE, created=NOW)
OWN_SECOND_FIRST = found(roots=[root.public for root in ROOTS], nonce="f" * 32, created=NOW, threshold=2)

JUDGED: list[tuple[str, int, bytes, bytes, Verdict, Reason | None]] = [
    ("the newest, byte for byte", 9, held(9), CHAIN.signatures[8], Verdict.SAME, None),
    ("the first, byte for byte", 1, held(1), CHAIN.signatures[0], Verdict.SAME, None),
    ("held, with more signatures", 5, held(5), signed(held(5), *ROOTS), Verdict.SAME, None),
    ("held, signed by others of the roots", 5, held(5), signed(held(5), R2, R3), Verdict.SAME, None),
    ("held, its signatures deleted", 5, held(5), b"", Verdict.INVALID, Reason.TOO_FEW_OLD),
    ("held, one signature cut off", 5, held(5), signed(held(5), R1), Verdict.INVALID, Reason.TOO_FEW_OLD),
    ("held, its signatures spoiled", 5, held(5), b"?", Verdict.INVALID, Reason.SIGNATURES_MALFORMED),
    ("the first, its signatures deleted", 1, held(1), b"", Verdict.INVALID, Reason.TOO_FEW_NEW),
    ("the next", 10, NEXT, signed(NEXT, *TWO), Verdict.NEXT, None),
    ("the next, unsigned", 10, NEXT, b"", Verdict.INVALID, Reason.TOO_FEW_OLD),
    ("the newest again as the next", 10, held(9), CHAIN.signatures[8], Verdict.INVALID, Reason.NOT_NEXT),
    ("an old version put over the newest", 9, held(8), CHAIN.signatures[7], Verdict.INVALID, Reason.NOT_NEXT),
    ("one after the next", 11, NEXT, signed(NEXT, *TWO), Verdict.FUTURE, None),
    ("junk after the next", 11, b"junk", b"junk", Verdict.FUTURE, None),
    ("junk over a held one", 5, b"junk", b"", Verdict.INVALID, Reason.TOO_FEW_OLD),
    ("a rival of the newest, unsigned", 9, rival(CHAIN, 9), b"", Verdict.INVALID, Reason.TOO_FEW_OLD),
    ("a rival of the newest", 9, rival(CHAIN, 9), signed(rival(CHAIN, 9), *TWO), Verdict.FORK, None),
    ("a rival of an old one", 4, rival(CHAIN, 4), signed(rival(CHAIN, 4), R2, R3), Verdict.FORK, None),
    ("somebody's own first version", 1, FOREIGN_FIRST, signed(FOREIGN_FIRST, EVE), Verdict.INVALID, Reason.WRONG_WIRE),
    ("another first version of the same roots", 1, OWN_SECOND_FIRST, signed(OWN_SECOND_FIRST, *ROOTS),
     Verdict.INVALID, Reason.WRONG_WIRE),
    ("version 0", 0, held(1), CHAIN.signatures[0], Verdict.INVALID, Reason.WRONG_WIRE),
]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "raw", "signatures", "verdict", "reason"), [row[1:] for row in JUDGED], ids=[row[0] for row in JUDGED]
)
def test_judged(version: int, raw: bytes, signatures: bytes, verdict: Verdict, reason: Reason | None) -> None:
    judged = CHAIN.judge(version, raw, signatures)
    assert (judged.verdict, judged.reason) == (verdict, reason), judged.why
    assert (judged.why == "") is (verdict in (Verdict.SAME, Verdict.NEXT))
    assert (judged.chain is not None) is (verdict in (Verdict.NEXT, Verdict.FORK))


def test_a_fork_keeps_the_other_document_and_names_both() -> None:
    raw = rival(CHAIN, 4)
    judged = CHAIN.judge(4, raw, signed(raw, *TWO))
    assert judged.chain is not None
    assert (judged.chain.newest.version, judged.chain.newest.raw) == (4, raw)
    assert judged.chain.newest.hash in judged.why
    assert CHAIN.documents[3].hash in judged.why
    assert CHAIN.newest.version == 9


def test_a_root_that_was_removed_can_only_raise_a_fork_of_its_own_time() -> None:
    chain = begun()
    raw = successor(chain.newest, chain.wire, NOW, roots=[R2.public])
    chain = chain.extend(raw, signed(raw, R1, R2))
    after = edited(unchanged(chain), lambda fields: fields.update(policy={"stolen": True}))
    assert chain.judge(3, after, signed(after, R1)).verdict == Verdict.INVALID
    before = rival(chain, 2)
    assert chain.judge(2, before, signed(before, R1)).verdict == Verdict.FORK


def test_signatures_of_a_held_version_are_those_of_its_own_time() -> None:
    """Version 2 hands over from R1 to R2, so that both must sign it, and version 3 needs R2 alone."""
    chain = begun()
    second = successor(chain.newest, chain.wire, NOW, roots=[R2.public])
    chain = chain.extend(second, signed(second, R1, R2))
    third = unchanged(chain)
    chain = chain.extend(third, signed(third, R2))
    assert chain.judge(3, third, signed(third, R2)).verdict == Verdict.SAME
    assert chain.judge(3, third, signed(third, R1)).reason == Reason.TOO_FEW_OLD
    assert chain.judge(2, second, signed(second, R2)).reason == Reason.TOO_FEW_OLD
    assert chain.judge(2, second, signed(second, R1)).reason == Reason.TOO_FEW_NEW


def test_a_refusal_says_what_was_found_and_expected() -> None:
    assert CHAIN.judge(10, NEXT, signed(NEXT, R1)).why == "signed by 1 of the roots in force; 2 must sign"
    raised = edited(NEXT, roots(*ROOTS, threshold=3))
    assert CHAIN.judge(10, raised, signed(raised, *TWO)).why == "signed by 2 of its own roots; 3 must sign"
    assert CHAIN.judge(10, held(8), signed(held(8), *TWO)).why == "trust version 8 where 10 is next"
    assert CHAIN.judge(12, b"", b"").why == "version 10 is not held"


# Look-ups


def test_what_is_no_checkpoint_is_refused_with_what_was_given() -> None:
    with pytest.raises(UsageError, match=r"'3:SHA256:abc' is no checkpoint: .*43 base64 characters") as caught:
        check_checkpoint("3:SHA256:abc")
    assert caught.value.reason == "bad-checkpoint"


def test_a_chain_passes_its_own_checkpoints_and_no_others() -> None:
    for document in CHAIN.documents:
        assert CHAIN.passes(*check_checkpoint(document.checkpoint))
        assert not CHAIN.passes(document.version + 1, document.digest)
    fork = rival(CHAIN, 9)
    other = CHAIN.until(8).extend(fork, signed(fork, *TWO))
    assert not CHAIN.passes(*parse_checkpoint(other.newest.checkpoint))
    assert not CHAIN.passes(0, CHAIN.newest.digest)
    assert not CHAIN.passes(10, CHAIN.newest.digest)


def test_versions_are_looked_up_by_number() -> None:
    assert [CHAIN.at(number) for number in range(1, 10)] == list(CHAIN.documents)
    assert (CHAIN.at(0), CHAIN.at(-1), CHAIN.at(10)) == (None, None, None)
    assert CHAIN.until(9) == CHAIN
    assert CHAIN.until(3).newest == CHAIN.at(3)


def test_a_key_is_looked_up_as_it_stands_in_the_newest_version() -> None:
    key_id = signer("mac").key_id
    key = CHAIN.key("mac", key_id)
    assert key is not None
    assert (key.id, key.public, key.status) == (key_id, signer("mac").public, "retired")
    assert CHAIN.owner(key_id) == ("mac", key)
    assert CHAIN.until(4).owner(key_id) != CHAIN.owner(key_id)
    assert CHAIN.key("spark", key_id) is None
    assert CHAIN.key("mac", "0" * 32) is None
    assert CHAIN.owner(ROOT.key_id) is None


# `old_wire` by version: 2 mac, 3 spark, 4 left, 5 review, 6 gone, 9 left and gone removed.
MEMBERS = [
    ("an agent", "spark", 9, {"spark"}),
    ("an agent before it was enrolled", "spark", 1, {"spark"}),
    ("a removed agent", "left", 9, {"left"}),
    ("a group", "review", 9, {"mac", "spark"}),
    ("a group before it was set", "review", 4, set()),
    ("a group that is removed", "gone", 9, set()),
    ("a group before it was removed", "gone", 8, {"mac"}),
    ("all", "all", 9, {"mac", "spark"}),
    ("all, while one was still there", "all", 8, {"mac", "spark", "left"}),
    ("all, before the third came", "all", 3, {"mac", "spark"}),
    ("all at version 1", "all", 1, set()),
    ("all at a version that is not held yet", "all", 12, {"mac", "spark"}),
    ("a group at a version that is not held yet", "review", 12, {"mac", "spark"}),
    ("all at no version", "all", 0, set()),
    ("nobody", "eve", 9, set()),
]


@pytest.mark.parametrize(
    ("recipient", "version", "names"), [row[1:] for row in MEMBERS], ids=[row[0] for row in MEMBERS]
)
def test_members(recipient: str, version: int, names: set[str]) -> None:
    assert CHAIN.members(recipient, version) == names


def test_a_removed_agent_is_no_member_of_its_group() -> None:
    chain = grouped(CHAIN, "ops", ["left", "mac"], by=TWO)
    assert chain.members("ops", 10) == {"mac"}


def test_lines_are_judged_by_the_chain_as_their_ring_of_keys() -> None:
    """A retired key counts up to its position, its successor from there on, a removed agent's revoked key nowhere."""
    chain = enrolled(enrolled(begun(), "mac", signer("mac")), "spark", signer("spark"))
    position = Position.start(chain.wire, "mac/spark")
    ring: KeyRing = chain

    def line(key: Signer, at: Position) -> bytes:
        return seal(
            key, wire=chain.wire, sender="mac", recipient="spark", seq=at.seq + 1, prev=at.head, ts=NOW,
            trust=chain.newest.reference, type="message", body="hello",
        )[:-1]  # fmt: skip

    def judge(raw: bytes, at: Position) -> tuple[str | None, Position]:
        verdict = step(at, raw, wire=chain.wire, channel="mac/spark", keys=ring)
        return verdict.code, verdict.after

    first = line(signer("mac"), position)
    code, position = judge(first, position)
    assert code is None
    late = line(signer("mac"), position)
    chain = retired(chain, "mac", signer("mac"), "retired", {"mac/spark": (1, position.head)}, next_key=signer("mac-2"))
    ring = chain
    assert judge(first, Position.start(chain.wire, "mac/spark"))[0] is None
    assert judge(late, position)[0] == "KEY_RETIRED"
    assert judge(line(signer("mac-2"), position), position)[0] is None
    chain = retired(chain, "mac", signer("mac-2"), "revoked", {})
    ring = chain
    assert judge(line(signer("mac-2"), position), position)[0] == "KEY_RETIRED"


# Builders


def test_members_of_a_group_stand_in_one_order_and_once() -> None:
    chain = CHAIN
    names = ["gus", "dot", "fay", "bea", "eli", "cat", "abe"]
    for name in names:
        chain = enrolled(chain, name, signer(name), by=TWO)
    raw = set_group(chain.newest, WIRE, name="ops", members=[*names, *names], created=NOW)
    assert json.loads(raw)["groups"]["ops"]["members"] == sorted(names)


def test_a_builder_never_returns_what_a_reader_refuses() -> None:
    newest = CHAIN.newest
    spark = signer("spark")
    refused: list[tuple[Callable[[], bytes], str]] = [
        (lambda: successor(newest, WIRE, NOW, agents={}, groups={}), "name-vanished"),
        (lambda: successor(newest, WIRE, NOW, threshold=4), "threshold-invalid"),
        (lambda: successor(newest, WIRE, "now"), "trust-malformed"),
        (lambda: successor(newest, "0" * 32, NOW), "wrong-wire"),
        (lambda: successor(CHAIN.documents[0], "0" * 32, NOW), "wrong-wire"),
        (lambda: found(roots=[], nonce=NONCE, created=NOW), "threshold-invalid"),
        (lambda: found(roots=[ROOT.public], nonce="", created=NOW), "trust-malformed"),
        (lambda: set_group(newest, WIRE, name="mac", members=[], created=NOW), "name-taken"),
        (lambda: set_group(newest, WIRE, name="gone", members=[], created=NOW), "name-revived"),
        (lambda: set_group(newest, WIRE, name="ops", members=["eve"], created=NOW), "member-unknown"),
        (lambda: set_group(newest, WIRE, name="all", members=[], created=NOW), "name-invalid"),
    ]
    for name, reason in [
        ("mac", "name-taken"),
        ("left", "name-taken"),
        ("review", "name-taken"),
        ("x/y", "name-invalid"),
    ]:
        proof = prove(EVE, wire=WIRE, name=name, role="agent")
        call: dict[str, Any] = {"name": name, "role": "agent", "public": EVE.public, "proof": proof, "created": NOW}
        refused.append((partial(enroll, newest, WIRE, **call), reason))
    changes: list[tuple[dict[str, Any], str]] = [
        ({"name": "eve"}, "name-unknown"),
        ({"name": "mac"}, "key-unknown"),
        ({"status": "gone"}, "trust-malformed"),
        ({"positions": {"mac/spark": (1, HEAD)}}, "position-invalid"),
        ({"replacement": (EVE.public, bytes(64))}, "proof-invalid"),
    ]
    for change, reason in changes:
        call = {"name": "spark", "key_id": spark.key_id, "status": "retired", "positions": {}, "created": NOW}
        refused.append((partial(retire, newest, WIRE, **call | change), reason))
    for build, reason in refused:
        with pytest.raises(TrustError) as caught:
            build()
        assert caught.value.reason == reason, caught.value.message


def test_enrolling_takes_a_proof_for_this_wire() -> None:
    chain = begun()
    proof = prove(signer("mac"), wire="0" * 32, name="mac", role="agent")
    with pytest.raises(TrustError) as caught:
        enroll(
            chain.newest, chain.wire, name="mac", role="agent", public=signer("mac").public, proof=proof, created=NOW
        )
    assert caught.value.reason == "proof-invalid"


def test_a_group_is_set_again_with_other_members_in_order() -> None:
    chain = grouped(CHAIN, "review", ["spark", "left", "spark"], by=TWO)
    assert chain.newest.groups["review"].members == ("left", "spark")


def test_roots_are_set_with_their_number_and_names() -> None:
    three = [root.public for root in ROOTS]
    raw = set_roots(CHAIN.newest, WIRE, roots=reversed(three), threshold=3, policy={"x": 1}, created=NOW)
    after = CHAIN.extend(raw, signed(raw, *ROOTS)).newest
    assert (after.roots, after.threshold, after.policy) == (tuple(reversed(three)), 3, {"x": 1})
    assert (after.agents, after.groups) == (CHAIN.newest.agents, CHAIN.newest.groups)
    with pytest.raises(TrustError) as refused:
        set_roots(CHAIN.newest, WIRE, roots=three, threshold=4, policy={}, created=NOW)
    assert refused.value.reason == Reason.THRESHOLD_INVALID


def test_positions_are_moved_by_retiring_again() -> None:
    chain = retired(CHAIN, "mac", signer("mac"), "retired", {"mac/spark": (1, OTHER_HEAD)}, by=TWO)
    key = chain.key("mac", signer("mac").key_id)
    assert key is not None
    assert key.positions == {"mac/spark": (1, OTHER_HEAD)}
    assert chain.newest.agents["mac"].active_key is not None


def test_a_successor_takes_every_kind_of_change() -> None:
    raw = successor(CHAIN.newest, WIRE, NOW, roots=[R1.public, R2.public], threshold=1, policy={"a": 1})
    newest = CHAIN.extend(raw, signed(raw, *TWO)).newest
    assert (newest.roots, newest.threshold, newest.policy) == ((R1.public, R2.public), 1, {"a": 1})
    assert (newest.agents, newest.groups) == (CHAIN.newest.agents, CHAIN.newest.groups)
    assert (newest.wire, newest.prev, newest.nonce) == (WIRE, CHAIN.newest.hash, None)


# One changed byte is refused, wherever it is

SMALL = enrolled(begun(ROOTS[:2], threshold=2), "mac", signer("mac"), by=TWO)
SMALL_NEXT = unchanged(SMALL)
SMALL_SIGNED = signed(SMALL_NEXT, *TWO)


def flipped(data: bytes, at: int, flip: int) -> bytes:
    return data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]


def test_every_byte_of_a_document_and_of_its_signatures_counts() -> None:
    assert SMALL.extend(SMALL_NEXT, SMALL_SIGNED).newest.version == 3
    for at in range(len(SMALL_NEXT)):
        with pytest.raises(TrustError):
            SMALL.extend(flipped(SMALL_NEXT, at, 1), SMALL_SIGNED)
    for at in range(len(SMALL_SIGNED)):
        with pytest.raises(TrustError):
            SMALL.extend(SMALL_NEXT, flipped(SMALL_SIGNED, at, 1))


@given(at=st.integers(0, len(SMALL_NEXT) - 1), flip=st.integers(1, 255), version=st.sampled_from([2, 3]))
def test_a_document_with_any_change_of_one_byte_is_refused(at: int, flip: int, version: int) -> None:
    raw, signatures = (SMALL_NEXT, SMALL_SIGNED) if version == 3 else (SMALL.newest.raw, SMALL.signatures[1])
    at %= len(raw)
    assert SMALL.judge(version, flipped(raw, at, flip), signatures).verdict == Verdict.INVALID


@given(at=st.integers(0, len(SMALL_SIGNED) - 1), flip=st.integers(1, 255), version=st.sampled_from([1, 2, 3]))
def test_a_signature_file_with_any_change_of_one_byte_is_refused(at: int, flip: int, version: int) -> None:
    held = SMALL.at(version)
    raw, signatures = (SMALL_NEXT, SMALL_SIGNED) if held is None else (held.raw, SMALL.signatures[version - 1])
    assert SMALL.judge(version, raw, flipped(signatures, at, flip)).verdict == Verdict.INVALID


@given(cut=st.integers(0, len(SMALL_NEXT) - 1), kept=st.integers(0, len(SMALL_SIGNED) - 1))
def test_cut_files_are_refused(cut: int, kept: int) -> None:
    assert SMALL.judge(3, SMALL_NEXT[:cut], SMALL_SIGNED).verdict == Verdict.INVALID
    assert SMALL.judge(3, SMALL_NEXT, SMALL_SIGNED[:kept]).verdict == Verdict.INVALID


@given(st.integers(-5, 20), st.binary(max_size=300), st.binary(max_size=300))
def test_judging_junk_never_raises(version: int, raw: bytes, signatures: bytes) -> None:
    expected = Verdict.FUTURE if version > 10 else Verdict.INVALID
    assert CHAIN.judge(version, raw, signatures).verdict == expected


_edits = st.lists(
    st.sampled_from(
        [
            newcomer(),
            key_of("spark", 0, status="retired", positions={"spark/mac": [3, HEAD]}),
            key_of("spark", 0, status="revoked", positions={"spark/mac": [2, HEAD]}),
            key_of("spark", 0, status="active", positions={}),
            key_of("mac", 0, status="revoked"),
            key_of("mac", 0, positions={}),
            agent("spark", status="removed"),
            agent("spark", role="human"),
            lambda f: f["agents"].pop("spark", None),
            lambda f: f["agents"]["mac"]["keys"].pop(),
            lambda f: f["groups"].pop("review", None),
            lambda f: f["groups"].update(review={"status": "removed", "members": []}),
            lambda f: f["groups"].update(review={"status": "active", "members": ["mac"]}),
            lambda f: f["groups"].update(new={"status": "active", "members": []}),
        ]
    ),
    min_size=1,
    max_size=3,
)


@given(st.lists(_edits, max_size=6))
def test_whatever_the_roots_sign_nothing_trusted_disappears(history: list[list[Callable[[Fields], object]]]) -> None:
    """However the roots behave, what every old line is judged by stays: names, roles, keys, proofs, positions."""
    chain = CHAIN
    for edits in history:
        fields = json.loads(unchanged(chain))
        try:
            for edit in edits:
                edit(fields)
        except (KeyError, IndexError):
            continue
        raw = json.dumps(fields).encode()
        judged = chain.judge(chain.newest.version + 1, raw, signed(raw, *TWO))
        assert judged.verdict in (Verdict.NEXT, Verdict.INVALID)
        chain = judged.chain or chain
    newest = chain.newest
    rank = ["active", "retired", "revoked"].index
    for name, before in CHAIN.newest.agents.items():
        now = newest.agents[name]
        assert now.role == before.role
        assert (before.status, now.status) != ("removed", "active")
        for key in before.keys:
            kept = now.key(key.id)
            assert kept is not None
            assert (kept.public, kept.proof) == (key.public, key.proof)
            assert rank(kept.status) >= rank(key.status)
            assert set(kept.positions) >= set(key.positions)
    assert set(newest.groups) >= set(CHAIN.newest.groups)
    assert not set(newest.groups) & set(newest.agents)


def test_what_a_name_that_is_absent_was_is_told() -> None:
    agent = enrolled(begun(), "mac", signer("mac"))
    with pytest.raises(TrustError, match="'mac' was an agent and is absent"):
        agent.draft(edited(unchanged(agent), lambda f: f["agents"].pop("mac")))
    group = grouped(agent, "review", [])
    with pytest.raises(TrustError, match="'review' was a group and is absent"):
        group.draft(edited(unchanged(group), lambda f: f["groups"].pop("review")))
