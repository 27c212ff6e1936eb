"""When our presences are due, by the clock and by what they say; what an idle hour and a stream of changes cost."""

from pathlib import Path
from typing import Any

import pytest

from wire.daemon import beating
from wire.daemon.beating import Promise, Says, differs, says
from wire.daemon.cadence import TIERS, Cadence, Pace
from wire.daemon.pulse import FIRST_SECONDS, LONGEST_SECONDS, Pulse
from wire.protocol.chain import Position
from wire.protocol.encoding import Signer
from wire.protocol.presence import Presence, parse, seal
from wire.store import cursors, presences
from wire.store import pin as pins
from wire.store.files import private_folder
from wire.store.paths import WirePlaces
from wire.store.pin import Names, Pin
from wire.store.presences import Declared, Heard

HEAD = "ab" * 32
ONE = "1" * 32
SPARK = Signer(bytes(32))
PLACE = Position(3, HEAD, 1, 900)


@pytest.fixture
def places(tmp_path: Path) -> WirePlaces:
    made = WirePlaces(str(tmp_path), "hub", str(tmp_path / "clone"))
    private_folder(made.root)
    return made


def pin(**accepted: Position) -> Pin:
    return Pin(
        wire="0" * 32,
        wire_hash="0" * 64,
        remote="/hub.git",
        branch="main",
        checkpoint="1:SHA256:" + "A" * 43,
        trust_version=3,
        trust_hash="c" * 64,
        instance=ONE,
        names=Names(("mac", "spark", "ana"), {"review": ("mac", "spark"), "others": ("mac", "ana")}, {}),
        accepted={name.replace("__", "/"): place for name, place in accepted.items()},
    )


def published(wanted: Says, **changes: Any) -> Presence:
    members: dict[str, Any] = {
        "wire": "0" * 32, "agent": "spark", "instance": ONE, "counter": 7, "ts": "2026-11-29T11:20:00.123Z",
        "tier": "T0", "interval": 90.0, **wanted._asdict(), **changes,
    }  # fmt: skip
    return parse(seal(SPARK, **members)[:-1])


def test_it_says_how_far_the_agent_came_in_what_is_for_it(places: WirePlaces) -> None:
    held = pin(
        mac__spark=PLACE, mac__all=PLACE, spark__mac=PLACE, spark__all=PLACE, mac__review=PLACE, mac__others=PLACE,
        ana__spark=Position(0, HEAD, 1, 0),
    )  # fmt: skip
    cursors.save(places.cursors_dir, "spark", cursors.DEFAULT_READER, {"mac/spark": PLACE._replace(seq=2)})
    cursors.save(places.cursors_dir, "spark", "child", {"mac/all": PLACE})
    cursors.save(places.cursors_dir, "mac", cursors.DEFAULT_READER, {"mac/all": PLACE})
    presences.declare(places, "spark", Declared("busy", "tests", None))
    wanted = says(places, held, "spark", ("spark",))
    assert wanted == Says(
        "busy",
        "tests",
        None,
        "3:" + "c" * 16,
        {"mac/spark": (3, HEAD, 2), "mac/review": (3, HEAD, 0), "mac/all": (3, HEAD, 0)},
    )
    assert next(iter(wanted.channels)) == "mac/spark", "what is for the agent alone comes first"
    # A cursor that is ahead of what is accepted (lines that were cut) says nothing more than that.
    cursors.save(places.cursors_dir, "spark", cursors.DEFAULT_READER, {"mac/spark": PLACE._replace(seq=9)})
    assert says(places, held, "spark", ("spark",)).channels["mac/spark"] == (3, HEAD, 3)


def test_it_says_nothing_of_this_machines_own_lines_that_the_remote_has_not(places: WirePlaces) -> None:
    """Who hears of them would take them for withheld; of others' lines it is said that they were there."""
    held = pin(mac__spark=PLACE, ana__spark=PLACE)
    ours = ("mac", "spark")
    assert says(places, held, "spark", ours).channels == {"ana/spark": (3, HEAD, 0)}
    before = {"mac/spark": (2, "cd" * 32, 1), "ana/spark": (1, HEAD, 0)}
    said = Says(*Declared(), "3:" + "c" * 16, before)
    presences.keep(places, published(said), 0.0)
    part = pins.replace(held, remote_seq={"mac/spark": 2})
    assert says(places, part, "spark", ours).channels == {"mac/spark": (2, "cd" * 32, 0), "ana/spark": (3, HEAD, 0)}
    assert "mac/spark" not in says(places, pins.replace(held, remote_seq={"mac/spark": 1}), "spark", ours).channels
    carried = says(places, pins.replace(held, remote_seq={"mac/spark": 3}), "spark", ours)
    assert carried.channels == {"mac/spark": (3, HEAD, 0), "ana/spark": (3, HEAD, 0)}


def test_many_channels_are_bounded_and_fit() -> None:
    """So many that a presence cannot name them all; it is the same each time, so that nothing looks like a change."""
    names = [f"{n:032d}" for n in range(beating.CHANNELS_MAX + 50)]
    held = pin(**{f"{name}__spark": PLACE for name in names}, mac__all=PLACE)
    places = WirePlaces("/nonexistent", "hub", "/nonexistent/clone")
    wanted = says(places, held, "spark", ("spark",))
    assert len(wanted.channels) == beating.CHANNELS_MAX
    assert "mac/all" not in wanted.channels
    assert not differs(Heard(published(wanted), 0.0), says(places, held, "spark", ("spark",)), ONE)


WANTED = Says("idle", "", None, "3:" + "c" * 16, {"mac/spark": (3, HEAD, 2)})


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("a line more was received", {"channels": {"mac/spark": (4, HEAD, 2)}}),
        ("a line more was read", {"channels": {"mac/spark": (3, HEAD, 3)}}),
        ("a new channel", {"channels": {"mac/spark": (3, HEAD, 2), "mac/all": (1, HEAD, 0)}}),
        ("lines were cut", {"channels": {}}),
        ("another state", {"state": "busy"}),
        ("a note", {"note": "x"}),
        ("an eta", {"eta": "2026-11-29T11:20:00.123Z"}),
        ("a trust version", {"trust": "4:" + "c" * 16}),
    ],
)
def test_what_is_a_change(name: str, changes: dict[str, Any]) -> None:
    held = Heard(published(WANTED), 0.0)
    assert not differs(held, WANTED, ONE)
    assert differs(held, WANTED._replace(**changes), ONE), name
    assert differs(held, WANTED, "2" * 32), "another instance said it"
    assert differs(None, WANTED, ONE)


def _due(changed: float, now: float, *, interval: float = 90.0, looks: float = 36.0, **rest: Any) -> bool:
    held = Heard(published(WANTED, interval=interval), changed)
    promise = Promise("T0", interval, looks, rest.get("eager", False))
    return beating._due(held, rest.get("wanted", WANTED), ONE, promise, now, riding=rest.get("riding", False))


def test_it_is_due_before_its_promise_is_over_and_not_long_before() -> None:
    assert not _due(1000, 1000)
    assert not _due(1000, 1053)
    assert _due(1000, 1054), "the next look comes when the promise is over"
    assert _due(1000, 900), "the clock was set back"
    changed = WANTED._replace(state="busy")
    assert not _due(1000, 1001, wanted=changed), "a change alone waits for more"
    assert _due(1000, 1001, wanted=changed, riding=True)
    assert _due(1000, 1001, wanted=changed, eager=True)
    assert not _due(1000, 1001, riding=True), "nothing has changed"


@pytest.mark.parametrize("random", [0.0, 0.5, 0.999])
def test_an_idle_hour_costs_few_beats_and_breaks_no_promise(random: float) -> None:
    """By the clock alone: what the daemon does at each look, from the end of an exchange on."""
    cadence = Cadence(Pace(), 0.0, lambda: random)
    cadence.looked(0.0, moved=True)
    beats, looks, last, promised = 0, 0, 0.0, 90.0
    longest = 0.0
    while cadence.due < 2 * 3600:
        now = cadence.due
        spread = 1 + cadence.pace.jitter
        promise = Promise(cadence.name, cadence.next_interval, cadence.interval * spread, False)
        held = Heard(published(WANTED, interval=promised), last)
        requests = 1
        if beating._due(held, WANTED, ONE, promise, now, riding=False):
            longest = max(longest, (now - last) / promised)
            beats, last, promised = beats + 1, now, promise.interval
            requests += 1
        looks += 1
        cadence.looked(now, moved=False, requests=requests)
        if now < 3600:
            in_first_hour = (looks, beats)
    # The first hour leads from the quickest looks down to the slowest tier.
    assert in_first_hour[1] <= in_first_hour[0] / 2
    assert in_first_hour[1] <= 16
    assert beats - in_first_hour[1] <= 3600 / TIERS[2] + 2
    assert longest < 2, "after three of them it would count as stale"


# When a change is worth a push of its own


@pytest.fixture
def pulse(places: WirePlaces) -> Pulse:
    pins.save(places.pin_file, pin(mac__spark=PLACE))
    presences.keep(places, published(says(places, pin(mac__spark=PLACE), "spark", ("spark",))), 1000.0)
    return Pulse(places, ["spark", "newcomer"])


def test_nothing_changed_nothing_due(pulse: Pulse) -> None:
    pulse.look(10.0)
    assert pulse.due is None


def test_each_kind_of_change_is_seen_in_the_files(pulse: Pulse, places: WirePlaces) -> None:
    def pushed(now: float) -> None:
        held = pins.load(places.pin_file)
        presences.keep(places, published(says(places, held, "spark", ("spark",)), counter=int(now)), now)
        pulse.beaten(now)
        pulse.look(now)
        assert pulse.due is None

    pulse.look(0.0)
    cursors.save(places.cursors_dir, "spark", cursors.DEFAULT_READER, {"mac/spark": PLACE})
    pulse.look(100.0)
    assert pulse.due == 100.0 + FIRST_SECONDS
    pulse.look(100.5)
    assert pulse.due == 100.0 + FIRST_SECONDS, "it waits for more, and not for ever"
    pushed(101.0)
    pins.save(places.pin_file, pin(mac__spark=PLACE._replace(seq=4)))
    pulse.look(300.0)
    assert pulse.due == 300.0 + FIRST_SECONDS
    pushed(301.0)
    presences.declare(places, "spark", Declared("busy"))
    pulse.look(500.0)
    assert pulse.due == 500.0 + FIRST_SECONDS
    presences.declare(places, "spark", Declared("idle"))
    pulse.look(500.5)
    assert pulse.due is None, "it was taken back before anybody heard of it"
    cursors.save(places.cursors_dir, "spark", "child", {"mac/spark": PLACE})
    pulse.look(600.0)
    assert pulse.due is None


def test_a_stream_of_changes_costs_few_requests(pulse: Pulse, places: WirePlaces) -> None:
    """A message a second for ten minutes, each received and read at once."""
    beats = 0
    for second in range(600):
        pins.save(places.pin_file, pin(mac__spark=PLACE._replace(seq=4 + second)))
        pulse.look(float(second))
        if pulse.due is not None and pulse.due <= second:
            held = pins.load(places.pin_file)
            presences.keep(
                places, published(says(places, held, "spark", ("spark",)), counter=8 + second), float(second)
            )
            pulse.beaten(float(second))
            beats += 1
    assert 600 / LONGEST_SECONDS / 2 <= beats <= 600 / 8


def test_a_beat_that_failed_is_tried_again_and_one_that_nobody_wants_is_not(pulse: Pulse, places: WirePlaces) -> None:
    pulse.look(0.0)
    presences.declare(places, "spark", Declared("busy"))
    pulse.look(1.0)
    pulse.failed(2.0)
    assert pulse.due == 2.0 + 2 * FIRST_SECONDS
    pulse.look(3.0)
    assert pulse.due == 2.0 + 2 * FIRST_SECONDS
    pulse.rest()
    pulse.look(4.0)
    assert pulse.due is None
    presences.declare(places, "spark", Declared("paused"))
    pulse.look(5.0)
    assert pulse.due is not None


def test_a_damaged_pin_is_the_rounds_business(pulse: Pulse, places: WirePlaces) -> None:
    Path(places.pin_file).write_bytes(b"{")
    pulse.look(0.0)
    assert pulse.due is None
