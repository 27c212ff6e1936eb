"""Roots over time, as tables: who may take whose place, with whose signatures, and what a proposal of it is worth.

A wire begins with the roots and the threshold of a row. Each step is the next version: its roots, its threshold, and
who signs it. All steps but the last are lawful; the last one is, or is refused for the reason that stands there.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pytest

from support.trusts import HEAD, NOW, begun, edited, enrolled, grouped, retired, signed, signer
from wire.errors import TrustError
from wire.keys import proposals, roots
from wire.keys.differences import differences
from wire.keys.proposals import State
from wire.keys.trust import Chain, Reason, Verdict, sign_document, successor
from wire.protocol.encoding import Signer, b64, fingerprint, key_id, sha256_hex

A, B, C, D, E, EVE = (signer(f"root-{name}") for name in ("a", "b", "c", "d", "e", "eve"))
LATER = "2026-12-13T11:20:00.123Z"


class Step(NamedTuple):
    roots: Sequence[Signer]
    threshold: int
    by: Sequence[Signer]


def raw_of(chain: Chain, step: Step) -> bytes:
    public = [one.public for one in step.roots]
    return successor(chain.newest, chain.wire, NOW, roots=public, threshold=step.threshold)


def lengthened(chain: Chain, *steps: Step) -> Chain:
    for step in steps:
        raw = raw_of(chain, step)
        chain = chain.extend(raw, signed(raw, *step.by))
    return chain


OK, OLD, NEW = None, Reason.TOO_FEW_OLD, Reason.TOO_FEW_NEW

ROWS: dict[str, tuple[Sequence[Signer], int, Sequence[Step], Reason | None]] = {
    # One root, and another in its place.
    "1-of-1 changes hands: both sign": ([A], 1, [Step([B], 1, [A, B])], OK),
    "1-of-1 changes hands: not signed with the old key": ([A], 1, [Step([B], 1, [B])], OLD),
    "1-of-1 changes hands: not signed with the new key": ([A], 1, [Step([B], 1, [A])], NEW),
    "1-of-1 changes hands: a stranger signs with the new key": ([A], 1, [Step([B], 1, [EVE, B])], OLD),
    "1-of-1 changes hands: signed with the old key twice": ([A], 1, [Step([B], 1, [A, A])], NEW),
    "1-of-1 changes hands twice": ([A], 1, [Step([B], 1, [A, B]), Step([C], 1, [B, C])], OK),
    "1-of-1 changes hands twice: the first one signs": ([A], 1, [Step([B], 1, [A, B]), Step([C], 1, [A, C])], OLD),
    "1-of-1 comes back to its first root": ([A], 1, [Step([B], 1, [A, B]), Step([A], 1, [B, A])], OK),
    "1-of-1 comes back: the first root alone": ([A], 1, [Step([B], 1, [A, B]), Step([A], 1, [A])], OLD),
    # More roots.
    "1-of-1 to 1-of-2": ([A], 1, [Step([A, B], 1, [A])], OK),
    "1-of-1 to 1-of-2: the new one alone": ([A], 1, [Step([A, B], 1, [B])], OLD),
    "1-of-2: either may sign": ([A, B], 1, [Step([A, B], 1, [B])], OK),
    "1-of-2: either removes the other": ([A, B], 1, [Step([B], 1, [B])], OK),
    "1-of-2: who is removed signs alone": ([A, B], 1, [Step([B], 1, [A])], NEW),
    # A threshold that rises.
    "1-of-2 to 2-of-2: both sign": ([A, B], 1, [Step([A, B], 2, [A, B])], OK),
    "1-of-2 to 2-of-2: one signs": ([A, B], 1, [Step([A, B], 2, [A])], NEW),
    "1-of-2 to 2-of-2: one signs twice": ([A, B], 1, [Step([A, B], 2, [B, B])], NEW),
    "1-of-1 to 2-of-2 in one step": ([A], 1, [Step([A, B], 2, [A, B])], OK),
    "1-of-1 to 2-of-2: the old one alone": ([A], 1, [Step([A, B], 2, [A])], NEW),
    "2-of-3 to 3-of-3: two sign": ([A, B, C], 2, [Step([A, B, C], 3, [A, B])], NEW),
    "2-of-3 to 3-of-3: all sign": ([A, B, C], 2, [Step([A, B, C], 3, [C, B, A])], OK),
    # One that falls.
    "2-of-2 to 1-of-2: one signs": ([A, B], 2, [Step([A, B], 1, [A])], OLD),
    "2-of-2 to 1-of-2: both sign, one is enough from then": (
        [A, B], 2, [Step([A, B], 1, [A, B]), Step([A, B], 1, [B])], OK,
    ),
    "3-of-5 to 2-of-5: two sign": ([A, B, C, D, E], 3, [Step([A, B, C, D, E], 2, [A, B])], OLD),
    "3-of-5 to 2-of-5: three sign": ([A, B, C, D, E], 3, [Step([A, B, C, D, E], 2, [A, C, E])], OK),
    # Several change at once.
    "2-of-3: one is exchanged, by two who stay": ([A, B, C], 2, [Step([A, B, D], 2, [A, B])], OK),
    "2-of-3: one is exchanged, by who goes and who stays": ([A, B, C], 2, [Step([A, B, D], 2, [A, C])], NEW),
    "2-of-3: one is exchanged, by who stays and who comes": ([A, B, C], 2, [Step([A, B, D], 2, [A, D])], OLD),
    "2-of-3: two are exchanged, by who goes": ([A, B, C], 2, [Step([C, D, E], 2, [A, B])], NEW),
    "2-of-3: two are exchanged, by who comes": ([A, B, C], 2, [Step([C, D, E], 2, [D, E])], OLD),
    "2-of-3: two are exchanged, by one of each, and who stays": ([A, B, C], 2, [Step([C, D, E], 2, [A, C, D])], OK),
    "2-of-3: all are exchanged, by all of the old": ([A, B, C], 2, [Step([D, E], 2, [A, B, C])], NEW),
    "2-of-3: all are exchanged, by two and two": ([A, B, C], 2, [Step([D, E], 2, [B, C, D, E])], OK),
    "2-of-3: all are exchanged, one of the new is missing": ([A, B, C], 2, [Step([D, E], 2, [A, B, C, D])], NEW),
    "2-of-2 to 2-of-3: the newcomer for one who is away": ([A, B], 2, [Step([A, B, C], 2, [A, C])], OLD),
    "2-of-3 to 2-of-2: who goes signs": ([A, B, C], 2, [Step([A, B], 2, [A, C])], NEW),
    "2-of-3 to 2-of-2: who stays signs": ([A, B, C], 2, [Step([A, B], 2, [A, B])], OK),
    # Who counts.
    "2-of-2: one and a stranger": ([A, B], 2, [Step([A, B], 2, [A, EVE])], OLD),
    "2-of-2: one, three times": ([A, B], 2, [Step([A, B], 2, [A, A, A])], OLD),
    "2-of-2: both, one of them twice": ([A, B], 2, [Step([A, B], 2, [A, B, A])], OK),
    "2-of-3: who was removed before": ([A, B, C], 2, [Step([A, B], 2, [A, B]), Step([A, B], 2, [A, C])], OLD),
    "the order of roots is free": ([A, B], 2, [Step([B, A], 2, [B, A])], OK),
}  # fmt: skip


@pytest.mark.parametrize(("first", "threshold", "steps", "reason"), ROWS.values(), ids=ROWS)
def test_root_changes(first: Sequence[Signer], threshold: int, steps: Sequence[Step], reason: Reason | None) -> None:
    chain = lengthened(begun(first, threshold), *steps[:-1])
    raw = raw_of(chain, steps[-1])
    signatures = signed(raw, *steps[-1].by)
    judged = chain.judge(chain.newest.version + 1, raw, signatures)
    assert (judged.verdict, judged.reason) == (Verdict.NEXT if reason is None else Verdict.INVALID, reason)
    # A proposal of it lacks exactly what the chain would refuse it for.
    found = weighed(chain, raw, steps[-1].by)
    assert (found.lacking == (0, 0)) is (reason is None)
    assert (found.lacking[0] > 0) is (reason is OLD)
    if reason is NEW:
        assert found.lacking[1] > 0


def weighed(chain: Chain, raw: bytes, by: Iterable[Signer], *, offered: Signer | None = None) -> proposals.Weighed:
    """Return what a proposal of a document is worth, signed by some."""
    root = offered or next(one for one in (A, B, C, D, E) if one.public in chain.newest.roots)
    made = proposals.make(root, chain, raw, note="a step", created=NOW, expires=LATER)
    name = proposals.file_name(root.key_id)
    return proposals.weigh(chain, proposals.parse(made + signed(raw, *by), wire=chain.wire, file_name=name), NOW)


# What no signatures help.

THREE = lengthened(begun([A, B, C], 2), Step([A, B, C], 2, [A, B]), Step([A, B, D], 2, [A, B]))
LAST = raw_of(THREE, Step([A, B, D], 2, [A, B]))
ALL = (A, B, C, D)
PUBLIC = [b64(one.public) for one in (A, B, D)]

UNLAWFUL = {
    "a version is left out": (edited(LAST, lambda f: f.update(version=5)), Reason.NOT_NEXT),
    "the newest once more": (THREE.newest.raw, Reason.NOT_NEXT),
    "an older one once more": (THREE.documents[1].raw, Reason.NOT_NEXT),
    "it follows an older one": (edited(LAST, lambda f: f.update(prev=THREE.documents[1].hash)), Reason.WRONG_PREV),
    "it is of another wire": (edited(LAST, lambda f: f.update(wire="0" * 32)), Reason.WRONG_WIRE),
    "a root stands there twice": (edited(LAST, lambda f: f.update(roots=[*PUBLIC, PUBLIC[0]])), Reason.KEY_SHARED),
    "no root is left": (edited(LAST, lambda f: f.update(roots=[])), Reason.THRESHOLD_INVALID),
    "more must sign than there are": (edited(LAST, lambda f: f.update(threshold=4)), Reason.THRESHOLD_INVALID),
    "nobody must sign": (edited(LAST, lambda f: f.update(threshold=0)), Reason.THRESHOLD_INVALID),
    "a root that is no key": (edited(LAST, lambda f: f.update(roots=[b64(bytes(32)), *PUBLIC])), Reason.KEY_INVALID),
}


@pytest.mark.parametrize(("raw", "reason"), UNLAWFUL.values(), ids=UNLAWFUL)
def test_unlawful_whoever_signs(raw: bytes, reason: Reason) -> None:
    with pytest.raises(TrustError) as caught:
        THREE.extend(raw, signed(raw, *ALL))
    assert caught.value.reason == reason
    with pytest.raises(TrustError) as caught:
        proposals.make(A, THREE, raw, note="", created=NOW, expires=LATER)
    assert caught.value.reason == reason


def test_signatures_of_one_version_are_none_of_the_next() -> None:
    # Replayed: the same roots, and the bytes are others.
    with pytest.raises(TrustError) as caught:
        THREE.extend(LAST, signed(THREE.newest.raw, *ALL))
    assert caught.value.reason == Reason.TOO_FEW_OLD


# Proposals.


def test_what_a_proposal_is_worth() -> None:
    raw = raw_of(THREE, Step([A, B, D, E], 3, []))
    nobody = weighed(THREE, raw, [])
    assert (nobody.state, nobody.signed, nobody.lacking) == (State.OPEN, {}, (2, 3))
    # Who is a root only afterwards counts for the new threshold alone, and a stranger for none.
    assert weighed(THREE, raw, [E]).lacking == (2, 2)
    assert weighed(THREE, raw, [EVE]).lacking == (2, 3)
    assert weighed(THREE, raw, [A, A]).lacking == (1, 2)
    full = weighed(THREE, raw, [A, E, B])
    assert full.lacking == (0, 0)
    assert THREE.extend(raw, b"".join(full.signed.values())).newest.threshold == 3
    assert list(full.signed) == [A.key_id, B.key_id, E.key_id]


def test_a_proposal_that_is_over() -> None:
    raw = raw_of(THREE, Step([A, B, D], 1, []))
    made = proposals.make(D, THREE, raw, note="", created=NOW, expires=LATER)
    one = proposals.parse(made, wire=THREE.wire, file_name=proposals.file_name(D.key_id))
    assert proposals.weigh(THREE, one, "2026-12-13T11:20:00.122Z").state is State.OPEN
    assert proposals.weigh(THREE, one, LATER).state is State.EXPIRED
    after = THREE.extend(LAST, signed(LAST, A, B))
    assert proposals.weigh(after, one, NOW).state is State.SUPERSEDED
    # Of the same number, on another base: a fork's other side.
    assert proposals.weigh(THREE.until(2), one, NOW).state is State.SUPERSEDED
    other = proposals.make(D, THREE, LAST, note="", created=NOW, expires=LATER)
    broken = other.replace(b64(LAST).encode(), b64(LAST.replace(b'"threshold": 2', b'"threshold": 9')).encode())
    found = proposals.weigh(THREE, proposals.parse(broken, wire=THREE.wire, file_name=one.file_name), NOW)
    assert found.state is State.UNLAWFUL
    assert "threshold" in found.why


def test_who_offers_a_proposal() -> None:
    raw = raw_of(THREE, Step([A, B, D], 1, []))
    made = proposals.make(A, THREE, raw, note="mine", created=NOW, expires=LATER)
    one = proposals.parse(made, wire=THREE.wire, file_name=proposals.file_name(A.key_id))
    assert one.offered_by(THREE.newest.roots)
    assert not one.offered_by([B.public, D.public])
    # A signature of the document is no offer, and the other way round.
    assert sign_document(raw, A) not in made
    assert proposals.weigh(THREE, one, NOW).signed == {}
    changed = proposals.parse(made.replace(b'"mine"', b'"ours"'), wire=THREE.wire, file_name=one.file_name)
    assert not changed.offered_by(THREE.newest.roots)


def test_a_document_that_is_too_large_for_a_proposal() -> None:
    raw = successor(THREE.newest, THREE.wire, NOW, policy={"x": "x" * 800_000})
    assert THREE.extend(raw, signed(raw, A, B)).newest.version == 4
    with pytest.raises(TrustError) as caught:
        proposals.make(A, THREE, raw, note="", created=NOW, expires=LATER)
    assert caught.value.reason == Reason.TOO_LARGE


# Plain words.

WIRE = enrolled(enrolled(begun([A, B]), "mac", signer("mac"), by=[A]), "spark", signer("spark"), by=[A])


def texts(old: Chain, new: Chain) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in differences(old.newest, new.newest)]


def test_changes_in_plain_words() -> None:
    shown = {name: fingerprint(signer(name).public) for name in ("mac", "mac-2", "spark", "zoe")}
    grown = grouped(enrolled(WIRE, "zoe", signer("zoe"), by=[A]), "ops", ["mac", "zoe"], by=[A])
    assert texts(WIRE, grown) == [
        ("agent-added", f"adds zoe (agent) with the key {shown['zoe']}"),
        ("group-added", "adds the group ops: mac, zoe"),
    ]
    moved = retired(grown, "mac", signer("mac"), "retired", {"mac/spark": (2, HEAD)}, next_key=signer("mac-2"), by=[A])
    assert texts(grown, moved) == [
        ("key-retired", f"retires the key {shown['mac']} of mac; it counts up to mac/spark/2 ({HEAD[:16]})"),
        ("key-added", f"gives mac the key {shown['mac-2']}"),
    ]
    gone = retired(grown, "spark", signer("spark"), "revoked", {}, by=[A])
    assert texts(grown, gone) == [
        ("key-revoked", f"revokes the key {shown['spark']} of spark; it counts up to no line at all")
    ]
    raw = successor(
        grown.newest, grown.wire, NOW, roots=[B.public, C.public], threshold=2,
        policy={"encrypt": "required", roots.POLICY: {C.key_id: "lea", "0" * 32: "nobody", B.key_id: "../x"}},
    )  # fmt: skip
    changed = grown.extend(raw, signed(raw, A, B, C))
    assert texts(grown, changed) == [
        ("threshold", "signatures needed: from 1 of 2 to 2 of 2 roots"),
        ("root-added", f"adds the root lea ({fingerprint(C.public)})"),
        ("root-removed", f"removes the root {fingerprint(A.public)}"),
        ("policy", "policy 'encrypt': nothing becomes \"required\""),
    ]
    assert roots.names(changed.newest) == {C.key_id: "lea"}
    assert texts(changed, changed) == []


def test_hostile_policies_are_shown_harmlessly() -> None:
    raw = successor(WIRE.newest, WIRE.wire, NOW, policy={"\x1b[31m": "\u202e" + "x" * 1_000, roots.POLICY: [1]})
    (one,) = differences(WIRE.newest, WIRE.draft(raw))
    assert one.text.isascii()
    assert one.text.isprintable()
    assert len(one.text) < 300
    assert roots.names(WIRE.draft(raw)) == {}


def test_what_a_long_policy_hides_is_told() -> None:
    """Two values that differ far behind what is shown, and two names that begin alike, are two changes."""

    def at(chain: Chain, **policy: object) -> Chain:
        raw = successor(chain.newest, chain.wire, NOW, policy=policy)
        return chain.extend(raw, signed(raw, A))

    long = "x" * 1_000
    before = at(WIRE, note=long + "a")
    (one,) = differences(before.newest, at(before, note=long + "b").newest)
    first, _, second = one.text.partition(" becomes ")
    assert first != f"policy 'note': {second}"
    hash = sha256_hex(f'"{long}b"'.encode())[:16]
    assert second == f'"{"x" * 119}... (883 more characters, SHA-256 {hash})'
    many = at(WIRE, **dict.fromkeys("hgfedcba", 1)).newest
    assert [one.name for one in differences(WIRE.newest, many)] == list("abcdefgh")
    # What is just short enough is shown whole, with its quotes.
    for length, whole in ((118, True), (119, False)):
        (one,) = differences(WIRE.newest, at(WIRE, note="y" * length).newest)
        assert one.text.endswith('y"') is whole
    names = {long + "a": 1, long + "b": 1}
    assert len({found.text for found in differences(WIRE.newest, at(WIRE, **names).newest)}) == 2


def test_a_root_line() -> None:
    line = roots.offer(C, wire=WIRE.wire, name="lea")
    assert roots.read(f"  {line[:50]}\n{line[50:]}\n", wire=WIRE.wire, name="lea") == C.public
    assert key_id(C.public) not in line
    with pytest.raises(TrustError) as caught:
        roots.read(line, wire=WIRE.wire, name="mac")
    assert caught.value.reason == Reason.NAME_INVALID
