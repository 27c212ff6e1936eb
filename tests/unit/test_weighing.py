"""What exhibits prove: what somebody signed, about those who signed it, and nothing beyond.

The trust of these tables lists mac and spark, each with one key; eve is nobody. `PAST` is the same wire later, when
mac's first key was retired at line 2.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from support.trusts import NOW, ROOT, begun, edited, enrolled, grouped, retired, signed, signer, unchanged
from wire.keys.exhibits import BYTES, DOCUMENT, LINE, PRESENCE, Exhibit
from wire.keys.trust import Chain
from wire.keys.weighing import Proof, Shown, judge_line, links, weigh
from wire.protocol.encoding import LINE_TYPE, PRESENCE_TYPE, Signer, b64, sha256_hex
from wire.protocol.line import genesis, head, parse, seal
from wire.protocol.presence import seal as seal_presence

MAC, SPARK, EVE = signer("mac"), signer("spark"), signer("eve")
CHAIN = enrolled(enrolled(begun(), "mac", MAC), "spark", SPARK)
WIRE = CHAIN.wire
OTHER_WIRE = "0" * 32
HERE = CHAIN.newest.reference


def line(key: Signer, channel: str, seq: int, prev: str, *, wire: str = WIRE, trust: str = HERE, **said: Any) -> bytes:
    """Return a line without its newline."""
    sender, _, recipient = channel.partition("/")
    return seal(
        key, wire=wire, sender=sender, recipient=recipient, seq=seq, prev=prev, ts=NOW, trust=trust, type="message",
        **said,
    )[:-1]  # fmt: skip


def unreadable(raw: bytes, key: Signer) -> bytes:
    """Return a line with a member that nobody knows, signed by its author."""
    body = raw[: raw.rindex(b'"key":')] + b'"mood":1,' + raw[raw.rindex(b'"key":') : raw.rindex(b',"sig":')] + b"}"
    return body[:-1] + b',"sig":"%s"}' % b64(key.sign(LINE_TYPE, body)).encode()


def presence(key: Signer, agent: str, *, wire: str = WIRE, trust: str = HERE, **said: Any) -> bytes:
    """Return a presence without its newline."""
    given: dict[str, Any] = {
        "instance": "ab" * 16, "counter": 3, "ts": NOW, "state": "busy", "tier": "T0", "interval": 90.0, "channels": {},
    }  # fmt: skip
    return seal_presence(key, wire=wire, agent=agent, trust=trust, **{**given, **said})[:-1]


START = genesis(WIRE, "mac/spark")
ONE = line(MAC, "mac/spark", 1, START, body="one")
OTHER_ONE = line(MAC, "mac/spark", 1, START, body="another")
TWO = line(MAC, "mac/spark", 2, head(ONE), body="two")
THREE = line(MAC, "mac/spark", 3, head(TWO), body="three")
ANSWER = line(SPARK, "spark/mac", 1, genesis(WIRE, "spark/mac"), ack=[1, head(ONE)], body="heard")
BEAT = presence(SPARK, "spark", channels={"mac/spark": (2, head(TWO), 1)})
NEXT = unchanged(CHAIN)
FORKED = grouped(CHAIN, "review", ["mac"])
PAST = retired(FORKED, "mac", MAC, "retired", {"mac/spark": (2, head(TWO))}, next_key=signer("mac-2"))


def lines(*raws: bytes) -> list[Exhibit]:
    return [Exhibit(LINE, raw) for raw in raws]


def beats(*raws: bytes) -> list[Exhibit]:
    return [Exhibit(PRESENCE, raw) for raw in raws]


def document(raw: bytes, *by: Signer) -> Exhibit:
    return Exhibit(DOCUMENT, raw, "", signed(raw, *by))


# Proofs, by their codes

PROVED: dict[str, tuple[Sequence[Exhibit], Sequence[str]]] = {
    "nothing": ([], []),
    "one line": (lines(ONE), []),
    "lines in a row": (lines(ONE, TWO, THREE), []),
    "a line twice": (lines(ONE, ONE), []),
    "two lines for one place": (lines(ONE, OTHER_ONE), ["FORK"]),
    "the same two, twice": (lines(ONE, OTHER_ONE, ONE, OTHER_ONE), ["FORK"]),
    "three lines for one place": (
        lines(ONE, OTHER_ONE, line(MAC, "mac/spark", 1, START, body="a third")), ["FORK", "FORK"],
    ),
    "a line behind another one": (lines(OTHER_ONE, TWO), ["FORK"]),
    "a line behind one of two": (lines(ONE, OTHER_ONE, TWO), ["FORK"]),
    "a line whose predecessor is not shown": (lines(OTHER_ONE, THREE), []),
    "two lines of the same number in two channels": (lines(ONE, line(MAC, "mac/all", 1, genesis(WIRE, "mac/all"))), []),
    "two lines for one place, one by a stranger": (lines(ONE, line(EVE, "mac/spark", 1, START)), []),
    "two lines for one place, one by another agent": (lines(ONE, line(SPARK, "mac/spark", 1, START)), []),
    "two lines for one place, one of another wire": (lines(ONE, line(MAC, "mac/spark", 1, START, wire=OTHER_WIRE)), []),
    "a first line of another beginning": (lines(line(MAC, "mac/spark", 1, "0" * 64)), []),
    "an ack of what was signed": (lines(ONE, ANSWER), []),
    "an ack of something else": (lines(OTHER_ONE, ANSWER), ["SPLIT_VIEW"]),
    "an ack of one of two": (lines(ONE, OTHER_ONE, ANSWER), ["FORK"]),
    "an ack of a line that is not shown": (lines(ANSWER), []),
    "an ack in a line that cannot be read": (lines(OTHER_ONE, unreadable(ANSWER, SPARK)), ["SCHEMA"]),
    "an ack of something else, behind a line that cannot be read": (
        lines(unreadable(line(MAC, "mac/all", 1, genesis(WIRE, "mac/all")), MAC), OTHER_ONE, ANSWER),
        ["SCHEMA", "SPLIT_VIEW"],
    ),
    "a line that cannot be read": (lines(unreadable(ONE, MAC)), ["SCHEMA"]),
    "a line with a long subject": (lines(ONE.replace(b'"body"', b'"subject":"' + b"s" * 201 + b'","body"')), []),
    "a line that names a trust to come": (lines(line(MAC, "mac/spark", 1, START, trust="9:" + "0" * 16)), [
        "TRUST_WITHHELD",
    ]),
    "a line that names another trust": (lines(line(MAC, "mac/spark", 1, START, trust="2:" + "0" * 16)), ["SPLIT_VIEW"]),
    "a line that names an older trust": (
        lines(line(MAC, "mac/spark", 1, START, trust=CHAIN.documents[0].reference)), [],
    ),
    "a presence": (beats(BEAT), []),
    "a presence and what it names": ([*lines(ONE, TWO), *beats(BEAT)], []),
    "a presence that names another line": (
        [*lines(ONE), *beats(presence(SPARK, "spark", channels={"mac/spark": (1, head(OTHER_ONE), 0)}))],
        ["SPLIT_VIEW"],
    ),
    "a presence that names a trust to come": (beats(presence(SPARK, "spark", trust="9:" + "0" * 16)), [
        "TRUST_WITHHELD",
    ]),
    "presences of one machine": (beats(BEAT, presence(SPARK, "spark", counter=4)), []),
    "presences of two machines": (beats(BEAT, presence(SPARK, "spark", instance="cd" * 16)), ["CLONED"]),
    "presences of two agents": (beats(BEAT, presence(MAC, "mac", instance="cd" * 16)), []),
    "a presence by a stranger": (beats(BEAT, presence(EVE, "spark", instance="cd" * 16)), []),
    "a document of the chain": ([document(CHAIN.documents[1].raw, ROOT)], []),
    "the next document": ([document(NEXT, ROOT)], []),
    "a document beyond the next": ([document(edited(NEXT, lambda f: f.update(version=9)), ROOT)], []),
    "a next document that nobody signed": ([document(NEXT)], []),
    "a next document by a stranger": ([document(NEXT, EVE)], []),
    "bytes": ([Exhibit(BYTES, ONE), Exhibit(BYTES, OTHER_ONE)], []),
    "a line as a presence": (beats(ONE, OTHER_ONE), []),
    "a presence as a line": (lines(BEAT), []),
}  # fmt: skip


@pytest.mark.parametrize(("exhibits", "codes"), PROVED.values(), ids=PROVED)
def test_what_exhibits_prove(exhibits: Sequence[Exhibit], codes: Sequence[str]) -> None:
    weighed = weigh(exhibits, CHAIN)
    assert [proof.code for proof in weighed.proved] == list(codes)
    assert [one.kind for one in weighed.shown] == [one.kind for one in exhibits]


def test_two_documents_of_one_number_are_a_fork_of_the_roots() -> None:
    other = unchanged(CHAIN)
    weighed = weigh([document(other, ROOT)], FORKED)
    assert [proof.code for proof in weighed.proved] == ["TRUST_FORK"]
    assert "the roots signed two documents with the number 4" in weighed.proved[0].text
    assert weighed.shown == (
        Shown(DOCUMENT, "", True, "TRUST_FORK", "another trust version 4, signed by enough roots"),
    )
    # One of them signed by a stranger is no more than that.
    assert weigh([document(other, EVE)], FORKED).proved == ()


# What is told of one exhibit

TOLD: dict[str, tuple[Exhibit, bool, str, str]] = {
    "a line": (Exhibit(LINE, ONE, "accepted"), True, "", "mac/spark/1, signed by 'mac' with key "),
    "a line by a stranger": (
        Exhibit(LINE, line(EVE, "mac/spark", 1, START)), False, "KEY_UNKNOWN", "bytes that nobody in the trust",
    ),
    "a line by another agent": (
        Exhibit(LINE, line(SPARK, "mac/spark", 1, START)), False, "SIGNATURE", "it names 'mac' and is signed by",
    ),
    "a changed line": (Exhibit(LINE, ONE.replace(b"one", b"two")), False, "SIGNATURE", "the signature is not that of"),
    "a line that is none": (Exhibit(LINE, b"hello"), False, "SIGNATURE", "5 bytes that nobody in the trust has signed"),
    "a line that is long": (Exhibit(LINE, bytes(65_536)), False, "SIZE", "the limit is 65536"),
    "a line of another wire": (
        Exhibit(LINE, line(MAC, "mac/spark", 1, START, wire=OTHER_WIRE)), False, "MISPLACED", "another wire, 0000",
    ),
    "bytes": (Exhibit(BYTES, ONE, "there"), False, "SIGNATURE", f"SHA-256 {sha256_hex(ONE)[:16]}"),
    "a presence": (Exhibit(PRESENCE, BEAT, "there"), True, "", "a presence of 'spark', number 3, signed with key "),
    "a presence by a stranger": (
        Exhibit(PRESENCE, presence(EVE, "spark")), False, "KEY_UNKNOWN", f"no trusted key has the id {EVE.key_id}",
    ),
    "a changed presence": (
        Exhibit(PRESENCE, BEAT.replace(b"busy", b"idle")), False, "SIGNATURE", "the signature is not that of key",
    ),
    "a presence for another agent": (
        Exhibit(PRESENCE, presence(MAC, "spark")), False, "SIGNATURE", "it names 'spark' of wire",
    ),
    "a presence of another wire": (
        Exhibit(PRESENCE, presence(SPARK, "spark", wire=OTHER_WIRE)), False, "SIGNATURE", f"of wire {OTHER_WIRE}",
    ),
    "a presence that is long": (Exhibit(PRESENCE, bytes(65_536)), False, "SIZE", "the limit is 65536"),
    "a line as a presence": (Exhibit(PRESENCE, ONE), False, "SIGNATURE", "the signature is not that of key"),
    "a document of the chain": (document(CHAIN.newest.raw, ROOT), True, "", "trust version 3 of the chain itself"),
    "a document of the chain, not signed": (document(CHAIN.newest.raw), False, "TRUST", "does not count: signed by 0"),
    "the next document": (document(NEXT, ROOT), True, "", "trust version 4, newer than the chain"),
    "the next document by a stranger": (document(NEXT, EVE), False, "TRUST", "a trust version 4 that does not count"),
    "a document beyond the next": (
        document(edited(NEXT, lambda f: f.update(version=9)), ROOT), False, "TRUST", "version 4 is not held",
    ),
    "a document that is none": (document(b"{}", ROOT), False, "TRUST", "a document that is none of this wire's"),
}  # fmt: skip


@pytest.mark.parametrize(("exhibit", "by_somebody", "code", "text"), TOLD.values(), ids=TOLD)
def test_what_is_told_of_one_exhibit(exhibit: Exhibit, by_somebody: bool, code: str, text: str) -> None:
    weighed = weigh([exhibit], CHAIN)
    (one,) = weighed.shown
    assert one[:4] == (exhibit.kind, exhibit.found, by_somebody, code)
    assert text in one.text
    assert weighed.proved == ()
    assert [shown.raw for shown in weighed.lines] == ([exhibit.data] if exhibit.kind == LINE and by_somebody else [])


def test_a_presence_that_its_agent_signed_and_nobody_can_read() -> None:
    body = BEAT[: BEAT.rindex(b',"sig":')].replace(b'"busy"', b'"asleep"') + b"}"
    raw = body[:-1] + b',"sig":"%s"}' % b64(SPARK.sign(PRESENCE_TYPE, body)).encode()
    (one,) = weigh(beats(raw), CHAIN).shown
    assert (one.signed, one.code) == (False, "SCHEMA")
    assert "'state' is not one of" in one.text


def test_a_line_past_the_position_of_its_key() -> None:
    for raw, code in ((TWO, ""), (THREE, "KEY_RETIRED"), (line(MAC, "mac/spark", 2, head(ONE)), "KEY_RETIRED")):
        weighed = weigh(lines(raw), PAST)
        (one,) = weighed.shown
        assert (one.signed, one.code) == (True, code)
        assert [proof.code for proof in weighed.proved] == ([code] if code else [])
        assert weighed.lines == (parse(raw),)
    (one,) = weigh(lines(TWO), PAST).shown
    assert one.text == f"mac/spark/2, signed by 'mac' with key {MAC.key_id}, head {head(TWO)[:16]}"
    (one,) = weigh(lines(THREE), PAST).shown
    assert one.text.startswith(f"mac/spark/3, signed by 'mac' with key {MAC.key_id}, head {head(THREE)[:16]}: key ")


def test_the_sentences_name_who_and_what() -> None:
    def only(chain: Chain, *exhibits: Exhibit) -> str:
        (proof,) = weigh(exhibits, chain).proved
        assert isinstance(proof, Proof)
        return proof.text

    assert only(CHAIN, *lines(ONE, OTHER_ONE)) == (
        f"'mac' signed two lines mac/spark/1 with key {MAC.key_id}: {head(ONE)[:16]} and {head(OTHER_ONE)[:16]}"
    )
    second = signer("mac-2")
    other = line(second, "mac/spark", 1, START)
    assert f"with key {MAC.key_id} and {second.key_id}: " in only(PAST, *lines(ONE, other))
    assert only(CHAIN, *lines(OTHER_ONE, TWO)) == (
        "'mac' signed mac/spark/2 behind another line 1 than the one shown here"
    )
    assert only(CHAIN, *lines(OTHER_ONE, ANSWER)) == (
        f"spark/mac/1 names {head(ONE)[:16]} as line mac/spark/1; its author signed {head(OTHER_ONE)[:16]} there"
    )
    named = presence(SPARK, "spark", channels={"mac/spark": (1, head(OTHER_ONE), 0)})
    assert only(CHAIN, *lines(ONE), *beats(named)).startswith("the presence of 'spark' names ")
    assert only(CHAIN, *lines(line(MAC, "mac/spark", 1, START, trust="9:" + "0" * 16))) == (
        "mac/spark/1 names trust version 9:0000000000000000; the chain here ends with 3"
    )
    assert only(CHAIN, *beats(presence(SPARK, "spark", trust="2:" + "0" * 16))) == (
        f"the presence of 'spark' names trust version 2:{'0' * 16}; the one of the chain here is "
        f"{CHAIN.documents[1].reference}"
    )
    assert only(CHAIN, *beats(BEAT, presence(SPARK, "spark", instance="cd" * 16))) == (
        "two machines, abababababab and cdcdcdcdcdcd, signed presences of 'spark'"
    )
    assert only(CHAIN, *lines(unreadable(ONE, MAC))).startswith("'mac' signed mac/spark/1, which cannot be read: ")


def test_what_nobody_signed_is_no_line_and_what_somebody_did_is() -> None:
    assert judge_line(ONE, CHAIN) == (("", ""), parse(ONE))
    # Its own words say where it stands, wherever it was found.
    assert judge_line(THREE, CHAIN) == (("", ""), parse(THREE))
    (code, why), found = judge_line(THREE, PAST)
    assert (code, found) == ("KEY_RETIRED", parse(THREE))
    assert "past its position" in why
    (code, _), found = judge_line(line(EVE, "mac/spark", 1, START), CHAIN)
    assert (code, found) == ("KEY_UNKNOWN", None)


def test_lines_of_a_file_follow_each_other_or_not() -> None:
    one, two, three, other = (parse(raw) for raw in (ONE, TWO, THREE, OTHER_ONE))
    answer = parse(ANSWER)
    assert links([]) == links([one, two, three]) == links([one, answer]) == []
    assert links([one, three]) == [Proof("GAP", "mac/spark/3 does not follow the mac/spark/1 in front of it")]
    assert [proof.code for proof in links([other, two, three])] == ["GAP"]
