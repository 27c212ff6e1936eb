"""What is taken into the receipts, and what falls out of them again: by pins and files made by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.sizes import size
from wire.errors import IntegrityError
from wire.protocol.chain import Position
from wire.protocol.encoding import Signer, format_checkpoint, new_seed
from wire.protocol.line import genesis, head, seal
from wire.protocol.presence import parse as parse_presence
from wire.protocol.presence import seal as seal_presence
from wire.store import accounts, outlook, presences
from wire.store import pin as pins
from wire.store.accounts import update
from wire.store.paths import WirePlaces
from wire.store.pin import Names, Pin
from wire.store.reading import Source
from wire.store.receipts import Kept, Receipts

WIRE = "0" * 32
TRUST = "1:" + "0" * 16
TS = "2026-11-29T11:20:00.123Z"
KEYS = {name: Signer(new_seed()) for name in ("mac", "spark")}


class Held(NamedTuple):
    """A channel's bytes by segment, and where it ends after each line."""

    segments: dict[int, bytes]
    ends: list[Position]

    def read(self, segment: int) -> bytes | None:
        return self.segments.get(segment)

    def name(self, segment: int) -> str:
        return f"segment {segment}"


def channel(name: str, *lines: dict[str, Any], ts: str = TS) -> Held:
    """Return a channel with these lines; each is given by its members, `type` among them."""
    sender, _, recipient = name.partition("/")
    held = Held({}, [Position.start(WIRE, name)])
    for members in lines:
        end = held.ends[-1]
        raw = seal(
            KEYS[sender],
            **{
                "wire": WIRE, "sender": sender, "recipient": recipient, "seq": end.seq + 1, "prev": end.head, "ts": ts,
                "trust": TRUST, "type": "message", **members,
            },
        )  # fmt: skip
        after = end.after(len(raw), head(raw[:-1]))
        held.segments[after.segment] = held.segments.get(after.segment, b"") + raw
        held.ends.append(after)
    return held


class World:
    """The state folder of `mac`, and what it accepted."""

    def __init__(self, folder: Path) -> None:
        self.places = WirePlaces(str(folder / "state"), "hub", str(folder / "clone"))
        Path(self.places.root).mkdir(parents=True)
        self.held: dict[str, Held] = {}
        self.asked: list[str] = []

    def pin(self, **ends: int) -> Pin:
        """Return the pin that ends the channels where they end, or where `ends` says (mac_spark=2)."""
        accepted = {
            name: held.ends[ends.get(name.replace("/", "_"), len(held.ends) - 1)] for name, held in self.held.items()
        }
        return Pin(
            WIRE, WIRE * 2, "/srv/hub.git", "main", format_checkpoint(1, bytes(32)), 1, WIRE * 2, WIRE,
            names=Names(("mac", "spark"), {}, {}), accepted=accepted,
            remote_seq={name: end.seq for name, end in accepted.items()},
        )  # fmt: skip

    def sources(self, name: str) -> Sequence[Source]:
        self.asked.append(name)
        return [self.held[name]]

    def update(self, **ends: int) -> Receipts:
        update(self.places, self.pin(**ends), ("mac",), self.sources)
        return Receipts.open(self.places, WIRE, ("mac",))

    def hear(self, **place: tuple[int, str, int]) -> None:
        raw = seal_presence(
            KEYS["spark"], wire=WIRE, agent="spark", instance=WIRE, counter=1, ts=TS, trust=TRUST, state="idle",
            tier="T0", interval=30.0, channels={name.replace("_", "/"): one for name, one in place.items()},
        )  # fmt: skip
        presences.keep(self.places, parse_presence(raw[:-1]), 1_800_000_000.0)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_only_what_is_new_is_read_and_what_is_not_accepted_is_not_taken(world: World) -> None:
    world.held["mac/spark"] = channel("mac/spark", *({"body": f"n{n}"} for n in range(4)))
    world.held["spark/mac"] = channel(
        "spark/mac", {"type": "ack", "re": "mac/spark/1"}, {"type": "ack", "re": "mac/spark/2"}
    )
    with world.update(mac_spark=3, spark_mac=1) as receipts:
        assert [one.id for one in receipts.after("mac/spark", 0, 99)] == [f"mac/spark/{n}" for n in (1, 2, 3)]
        assert [one.id for one in receipts.answers("mac/spark", 1)] == ["spark/mac/1"]
        assert receipts.answers("mac/spark", 2) == []
    world.asked.clear()
    with world.update(mac_spark=3, spark_mac=1):
        assert world.asked == []
    with world.update(mac_spark=3) as receipts:
        assert world.asked == ["spark/mac"]
        assert [one.id for one in receipts.answers("mac/spark", 2)] == ["spark/mac/2"]


def test_a_proof_falls_with_the_line_that_it_was_about(world: World) -> None:
    """A key is revoked at line 2: line 3 is taken back, and another one comes into its place."""
    old = channel("mac/spark", *({"body": f"n{n}"} for n in range(3)))
    world.held["mac/spark"] = old
    world.hear(mac_spark=(3, old.ends[3].head, 3))
    with world.update() as receipts:
        assert receipts.reached("mac/spark", "spark", "read", 3) is not None
    world.held["mac/spark"] = channel(
        "mac/spark", {"body": "n0"}, {"body": "n1"}, {"body": "another"}, {"body": "more"}
    )
    with world.update() as receipts:
        # What the presence says of line 3 is about a line that we do not have any more.
        assert receipts.furthest("mac/spark", "spark", "delivered") == 0
        assert receipts.furthest("mac/spark", "spark", "read") == 0
    with world.update(mac_spark=2) as receipts:
        assert [one.seq for one in receipts.after("mac/spark", 0, 99)] == [1, 2]


def test_what_was_taken_in_of_a_channel_that_was_cut_behind_it_stays(world: World) -> None:
    world.held["mac/spark"] = held = channel("mac/spark", *({"body": f"n{n}"} for n in range(3)))
    world.hear(mac_spark=(2, held.ends[2].head, 1))
    with world.update() as receipts:
        assert receipts.furthest("mac/spark", "spark", "delivered") == 2
    with world.update(mac_spark=2) as receipts:
        assert receipts.furthest("mac/spark", "spark", "delivered") == 2
        assert receipts.furthest("mac/spark", "spark", "read") == 1


def test_who_looks_with_an_older_pin_takes_nothing_back(world: World) -> None:
    """Between the moment at which a command read the pin and its look at the receipts the daemon went on."""
    world.held["mac/spark"] = held = channel("mac/spark", *({"body": f"n{n}"} for n in range(3)))
    world.hear(mac_spark=(3, held.ends[3].head, 3))
    with world.update():
        pins.save(world.places.pin_file, world.pin())
    with world.update(mac_spark=2) as receipts:
        assert receipts.furthest("mac/spark", "spark", "read") == 3
        assert receipts.scanned()["mac/spark"].seq == 3


def test_one_channel_that_cannot_be_read_does_not_keep_the_others_back(world: World) -> None:
    world.held["mac/spark"] = channel("mac/spark", {"body": "x"})
    world.held["spark/mac"] = channel("spark/mac", {"type": "ack", "re": "mac/spark/1"})
    whole = dict(world.held["mac/spark"].segments)
    world.held["mac/spark"].segments[1] = b"damaged\n"
    with pytest.raises(IntegrityError, match="accepted lines of mac/spark cannot be read"):
        world.update()
    world.held["mac/spark"].segments.update(whole)
    world.held["spark/mac"].segments.clear()
    with world.update() as receipts:
        assert receipts.head_at("mac/spark", 1) == world.held["mac/spark"].ends[1].head
        assert [one.agent for one in receipts.answers("mac/spark", 1)] == ["spark"]


def test_many_lines_are_taken_in_piece_by_piece(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    count = size(250, 5_000, "lines taken into the receipts")
    monkeypatch.setattr(accounts, "_AT_ONCE", 100)
    world.held["mac/spark"] = held = channel("mac/spark", *({"body": "x" * 1_000} for _ in range(count)))
    assert len(held.segments) > 1
    with world.update() as receipts:
        assert len(receipts.after("mac/spark", 0, count)) == count
        assert receipts.scanned()["mac/spark"] == held.ends[-1]
        assert all(receipts.head_at("mac/spark", n) == held.ends[n].head for n in range(1, count, 17))


def test_what_is_kept_of_others_is_what_they_ask(world: World) -> None:
    world.held["spark/mac"] = channel(
        "spark/mac",
        {"body": 'not "priority":"urgent" at all'},
        {"body": "x", "priority": "urgent"},
        {"type": "request"},
        {"body": "x", "ack_required": True, "subject": "s"},
        {"body": "x", "expires": "2026-11-30T00:00:00.000Z"},
        {"body": "x", "priority": "high"},
    )
    with world.update() as receipts:
        assert [one.seq for one in receipts.asks(own=False)] == [2, 3, 4, 5]
        third = receipts.asks(own=False)[2]
        assert (third.ack_required, third.subject, third.own, third.ts) == (True, "s", False, TS)
        assert receipts.channels() == []


def test_an_answer_to_itself_or_between_strangers_is_none(world: World) -> None:
    world.held["mac/spark"] = channel("mac/spark", {"body": "x"}, {"type": "reply", "re": "mac/spark/1"})
    world.held["spark/mac"] = channel(
        "spark/mac", {"type": "ack", "re": "bot/studio/1"}, {"type": "warning", "re": "mac/spark/1"}
    )
    with world.update() as receipts:
        assert receipts.answers("mac/spark", 1) == []
        assert receipts.answers("bot/studio", 1) == []


def test_the_first_answer_counts(world: World) -> None:
    world.held["mac/spark"] = channel("mac/spark", {"body": "x"})
    world.held["spark/mac"] = channel(
        "spark/mac", {"type": "ack", "re": "mac/spark/1"}, {"type": "reply", "re": "mac/spark/1"}
    )
    with world.update() as receipts:
        assert [one.id for one in receipts.answers("mac/spark", 1)] == ["spark/mac/1"]


def test_the_outlook_says_who_was_heard_of_and_what_lies_there(world: World) -> None:
    world.held["mac/spark"] = held = channel(
        "mac/spark",
        {"body": "x"},
        {"type": "heartbeat", "body": {"state": "idle"}},
        {"body": "x", "priority": "urgent"},
        {"body": "x", "priority": "urgent"},
    )
    world.held["spark/mac"] = channel("spark/mac", {"type": "ack", "re": "mac/spark/4"})
    with world.update():
        known = outlook.load(world.places)
    assert known is not None
    # Nothing was heard of spark: what it read nobody knows, so nothing is said of that.
    assert (known.agents, known.silent, known.channels["mac/spark"].unread) == ({}, (), {})
    assert known.channels["mac/spark"].urgent == 1
    assert known.due == outlook.NEVER
    world.hear(mac_spark=(1, held.ends[1].head, 1))
    with world.update():
        known = outlook.load(world.places)
    assert known is not None
    assert known.agents == {"spark": outlook.Promise(1_800_000_000.0, 30.0)}
    assert known.channels["mac/spark"].unread["spark"].messages == 2
    assert known.channels["mac/spark"].end == held.ends[-1]
    assert known.due == min(known.agents["spark"].stale_at, known.channels["mac/spark"].unread["spark"].oldest + 3600)


def test_receipts_of_other_agents_are_begun_anew(world: World) -> None:
    world.held["mac/spark"] = channel("mac/spark", {"body": "x"})
    with world.update() as receipts:
        assert len(receipts.after("mac/spark", 0, 9)) == 1
    with Receipts.open(world.places, WIRE, ("mac", "bot")) as receipts:
        assert receipts.scanned() == {}
    with world.update() as receipts:
        assert len(receipts.after("mac/spark", 0, 9)) == 1


def test_a_write_that_fails_in_the_middle_leaves_nothing(world: World) -> None:
    def write(receipts: Receipts) -> None:
        with receipts.writing():
            receipts.keep(Kept("mac/spark", 1, genesis(WIRE, "mac/spark"), TS, TS, "message", 1))
            raise RuntimeError

    with Receipts.open(world.places, WIRE, ("mac",)) as receipts:
        with pytest.raises(RuntimeError):
            write(receipts)
        assert receipts.channels() == []
