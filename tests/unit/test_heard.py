"""What a presence is worth, by tables: whose counts, which is newer, and what stands at our own refs."""

from typing import Any

import pytest

from support.trusts import HEAD, OTHER_HEAD, begun, enrolled, grouped, retired, signer
from wire.daemon.heard import Refused, contradictions, judge, judge_own
from wire.keys.trust import Chain
from wire.protocol.chain import Position
from wire.protocol.line import genesis, head
from wire.protocol.line import seal as seal_line
from wire.protocol.presence import Presence, parse, seal

CHAIN = enrolled(enrolled(begun(), "mac", signer("mac")), "spark", signer("spark"))
WIRE = CHAIN.wire
MADE = 1764415200.0
TS = "2025-11-29T11:20:00.000Z"
ONE, OTHER = "1" * 32, "f" * 32


def raw(agent: str = "spark", **changes: Any) -> bytes:
    members: dict[str, Any] = {
        "wire": WIRE, "agent": agent, "instance": ONE, "counter": 7, "ts": TS, "trust": CHAIN.newest.reference,
        "state": "idle", "tier": "T0", "interval": 90.0, "channels": {}, **changes,
    }  # fmt: skip
    key = members.pop("by", None) or signer(agent)
    return seal(key, **members)


def said(agent: str = "spark", **changes: Any) -> Presence:
    return parse(raw(agent, **changes)[:-1])


def test_the_newer_one_counts_whichever_instance_made_it() -> None:
    assert judge(raw(), "spark", None, CHAIN) == said()
    assert judge(raw(), "spark", said(), CHAIN) is None
    assert judge(raw(counter=8), "spark", said(), CHAIN) == said(counter=8)
    assert judge(raw(counter=8, instance=OTHER), "spark", said(), CHAIN) == said(counter=8, instance=OTHER)


@pytest.mark.parametrize(
    ("why", "data"),
    [
        ("an old one again", raw(counter=6)),
        ("an old one again", raw(counter=6, instance=OTHER)),
        ("differs from the one that had it", raw(state="busy")),
        ("differs from the one that had it", raw(instance=OTHER)),
        ("its key is none", raw(counter=9, by=signer("mac"))),
        ("its key is none", raw(counter=9, by=signer("mallory"))),
        ("signature does not hold", raw(counter=9).replace(b'"idle"', b'"busy"')),
        ("it is mac's", raw("mac", counter=9, by=signer("spark"))),
        ("on the wire 0000", raw(counter=9, wire="0" * 32)),
        ("no small file", None),
        ("not one line", raw(counter=9) + raw(counter=10)),
        ("not one line", raw(counter=9)[:-1]),
        ("does not end in a key", b"\n"),
    ],
)
def test_what_does_not_count(why: str, data: bytes | None) -> None:
    with pytest.raises(Refused, match=why):
        judge(data, "spark", said(), CHAIN)


def test_a_key_that_counts_no_longer_decides_nothing() -> None:
    """Who stole a key and counted to the end must not keep the next key from being heard."""
    known = said(counter=999_999_999_999_999)
    chain = retired(CHAIN, "spark", signer("spark"), "revoked", {}, next_key=signer("spark-2"))
    with pytest.raises(Refused, match="counts no longer") as refused:
        judge(raw(counter=8), "spark", None, chain)
    assert refused.value.over, "nobody did anything: it was published before the key was revoked"
    assert judge(raw(counter=8, by=signer("spark-2")), "spark", known, chain) is not None


def other(counter: int, **changes: Any) -> bytes:
    """Return what another instance says under mac's key."""
    return raw("mac", counter=counter, instance=OTHER, **changes)


PUBLISHED = said("mac", counter=100)


@pytest.mark.parametrize(
    ("name", "data", "published", "now", "seen", "floor", "code"),
    [
        ("what we published", raw("mac", counter=100), PUBLISHED, MADE, False, None, None),
        ("the same, by the state before", other(100), parse(other(100)[:-1]),
         MADE, False, None, None),
        ("an old one of ours", raw("mac", counter=99), PUBLISHED, MADE, False, 0, "PRESENCE"),
        ("an old one of a dead instance", other(99), PUBLISHED, MADE, False, 0, "PRESENCE"),
        ("a forgery", raw("mac", counter=101, by=signer("spark")), PUBLISHED, MADE, False, 0, "PRESENCE"),
        ("another instance above us", other(101), PUBLISHED, MADE + 9e9, False, 101, "CLONED"),
        ("new state, the old machine is silent", other(101), None, MADE + 271, False, 101, None),
        ("new state, more is to be expected", other(101), None, MADE + 269, False, 101, "CLONED"),
        ("new state, a clock that is behind", other(101), None, MADE - 1e6, False, 101, "CLONED"),
        ("an impossible time", other(101, ts="2025-99-99T99:99:99.000Z"), None, MADE + 9e9, False,
         101, "CLONED"),
        ("a backup that was restored", raw("mac", counter=101), PUBLISHED, MADE, False, 101, None),
        ("a copy of this machine", raw("mac", counter=101), PUBLISHED, MADE, True, 101, "CLONED"),
    ],
)  # fmt: skip
def test_what_stands_at_our_own_ref(
    name: str, data: bytes, published: Presence | None, now: float, seen: bool, floor: int | None, code: str | None
) -> None:
    found = judge_own(data, "mac", published, ONE, CHAIN, now=now, seen=seen)
    assert (found.floor if found else None) == floor, name
    assert (found.problem.code if found and found.problem else None) == code, name


def test_histories_are_compared_where_both_have_the_line() -> None:
    prev, lines, size = genesis(WIRE, "mac/spark"), b"", 0
    heads = []
    for seq in (1, 2, 3):
        line = seal_line(
            signer("mac"), wire=WIRE, sender="mac", recipient="spark", seq=seq, prev=prev, ts=TS,
            trust=CHAIN.newest.reference, type="message",
        )  # fmt: skip
        prev = head(line[:-1])
        heads.append(prev)
        lines += line
        size += len(line)
    accepted = {"mac/spark": Position(3, heads[2], 1, size)}

    def found(presence: Presence, before: Presence | None = None, chain: Chain = CHAIN) -> list[str]:
        told = contradictions(presence, before, accepted, lambda channel, number: lines, chain)
        return [one.subject for one in told if one.code == "SPLIT_VIEW"]

    for seq, right in enumerate(heads, 1):
        assert found(said(channels={"mac/spark": (seq, right, 0)})) == []
        wrong = said(channels={"mac/spark": (seq, OTHER_HEAD, 0)})
        assert found(wrong) == ["presence of spark"]
        assert found(wrong, wrong) == [], "it was told when it was new"
    assert found(said(channels={"mac/spark": (4, HEAD, 0), "ana/spark": (1, HEAD, 0)})) == [], "ahead of us, or unknown"
    assert found(said(trust="2:" + "0" * 16)) == ["trust of spark"]
    other_trust = CHAIN.documents[1].reference
    wrong = {"mac/spark": (2, OTHER_HEAD, 0)}
    assert found(said(channels=wrong, trust=other_trust)) == [], "a revoked key may have cut the channel here or there"
    assert found(said(channels=wrong), said(channels=wrong, trust=other_trust)) == ["presence of spark"]
    assert found(said(trust="9:" + "0" * 16)) == [], "a version that is not known here"


def test_a_removed_agent_is_not_heard() -> None:
    chain = grouped(retired(CHAIN, "spark", signer("spark"), "revoked", {}), "review", ["mac"])
    with pytest.raises(Refused, match="counts no longer"):
        judge(raw(counter=8), "spark", None, chain)
