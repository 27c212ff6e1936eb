"""What others say to have, by tables: how it fits what is accepted here, and what is kept of it."""

from collections.abc import Collection
from pathlib import Path

import pytest

from support.trusts import HEAD, OTHER_HEAD, begun, enrolled, retired, signer
from wire.daemon.bounds import LOOKS, Bounds, Fit, Said, View, weigh
from wire.keys.trust import Chain
from wire.protocol.chain import Position
from wire.protocol.presence import Presence, parse, seal
from wire.store.paths import WirePlaces

CHAIN = enrolled(enrolled(begun(), "mac", signer("mac")), "spark", signer("spark"))
REVOKED = retired(CHAIN, "mac", signer("mac"), "revoked", {"mac/spark": (4, HEAD)})
CHANNEL = "mac/spark"
END = Position(6, HEAD, 1, 600)
NOW, BEFORE = REVOKED.newest.reference, CHAIN.newest.reference


def said(seq: int = 6, head: str = HEAD, trust: str = BEFORE, channel: str = CHANNEL) -> Said:
    return Said("spark", channel, seq, head, trust)


@pytest.mark.parametrize(
    ("fit", "claim", "chain", "end"),
    [
        (Fit.SAME, said(), CHAIN, END),
        (Fit.OTHER, said(head=OTHER_HEAD), CHAIN, END),
        (Fit.AHEAD, said(7), CHAIN, END),
        (Fit.AHEAD, said(1), CHAIN, None),
        (Fit.UNKNOWN, said(trust="9:" + "0" * 16), CHAIN, END),
        (Fit.UNKNOWN, said(trust="2:" + "0" * 16), CHAIN, END),
        (Fit.UNKNOWN, said(channel="nobody/spark"), CHAIN, END),
        # A key was revoked at line 4 since: what was said of lines behind it is no contradiction, and no loss.
        (Fit.UNKNOWN, said(6, OTHER_HEAD), REVOKED, END),
        (Fit.UNKNOWN, said(9), REVOKED, END),
        (Fit.AHEAD, said(4), REVOKED, Position(3, HEAD, 1, 300)),
        # Who knew of it and says more all the same has more.
        (Fit.AHEAD, said(9, trust=NOW), REVOKED, END),
        (Fit.OTHER, said(6, OTHER_HEAD, NOW), REVOKED, END),
        # A channel that the position does not name counts nothing of that key.
        (Fit.UNKNOWN, said(1, channel="mac/all"), REVOKED, None),
    ],
)
def test_fit(fit: Fit, claim: Said, chain: Chain, end: Position | None) -> None:
    assert weigh(claim, chain, end, lambda channel, number: b"") is fit


def view(end: Position, forks: tuple[str, ...] = (), own: tuple[str, ...] = ()) -> View:
    return View(CHAIN, {CHANNEL: end}, lambda channel, number: b"", own, forks)


def presence(seq: int, counter: int = 1, channels: Collection[str] = (CHANNEL,)) -> Presence:
    raw = seal(
        signer("spark"), wire=CHAIN.wire, agent="spark", instance="1" * 32, counter=counter,
        ts="2025-11-29T11:20:00.000Z", trust=BEFORE, state="idle", tier="T0", interval=90.0,
        channels=dict.fromkeys(channels, (seq, HEAD, 0)),
    )  # fmt: skip
    return parse(raw[:-1])


def test_claims_outlive_the_process_and_a_damaged_file_is_forgotten(tmp_path: Path) -> None:
    places = WirePlaces(str(tmp_path), "hub", str(tmp_path / "clone"))
    Path(places.root).mkdir(parents=True)
    bounds = Bounds.load(places)
    assert [one.code for one in bounds.acks({("spark", CHANNEL): said(8)}, view(END), "tip")] == ["GAP"]
    assert bounds.acks({("spark", CHANNEL): said(7)}, view(END), "tip")[0].evidence["seq"] == 8, (
        "the one that says most"
    )
    again = Bounds.load(places)
    assert again.acked == bounds.acked
    assert [one.code for one in again.acks({}, view(END, own=("mac",)), "tip")] == ["STATE_LOST"]
    assert again.acks({}, view(END, forks=(CHANNEL,)), "tip") == []
    assert Bounds.load(places).acked == {}
    for damage in (b"{", b"[]", b'{"acked":[["a"]],"heard":[]}', b'{"acked":[["a","../x",1,"h","1:a",""]],"heard":[]}'):
        (Path(places.root) / "bounds.json").write_bytes(damage)
        assert (Bounds.load(places).acked, Bounds.load(places).heard) == ({}, {})


def test_a_presence_is_ahead_for_some_looks_before_anybody_is_told(tmp_path: Path) -> None:
    places = WirePlaces(str(tmp_path), "hub", str(tmp_path / "clone"))
    Path(places.root).mkdir(parents=True)
    heard = [presence(7)]
    for look in range(1, LOOKS + 3):
        told = Bounds.load(places).presences(heard, view(END))
        assert bool(told) is (look == LOOKS)
        heard = []
    assert Bounds.load(places).presences([], view(Position(7, HEAD, 1, 700))) == []
    assert Bounds.load(places).heard == {}
    # A fast exchange: each look finds a presence that is ahead, and each time another one.
    for seq in range(8, 20):
        end = Position(seq - 1, HEAD, 1, 700)
        assert Bounds.load(places).presences([presence(seq, counter=seq)], view(end)) == []


def test_channels_that_a_peer_makes_up_fill_nothing(tmp_path: Path) -> None:
    """A peer may name other recipients in each presence, without end: what nobody on the wire gets is passed over."""
    places = WirePlaces(str(tmp_path), "hub", str(tmp_path / "clone"))
    Path(places.root).mkdir(parents=True)
    told = []
    for counter in range(1, LOOKS + 3):
        made_up = [f"mac/nobody-{counter}-{number}" for number in range(50)]
        heard = presence(7, counter, [*made_up, CHANNEL, "mac/all"])
        told += Bounds.load(places).presences([heard], view(END))
    assert [(one.code, one.scope) for one in told] == [("GAP", CHANNEL), ("GAP", "mac/all")]
    assert {channel for _, channel in Bounds.load(places).heard} == {CHANNEL, "mac/all"}
