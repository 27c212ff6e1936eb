"""When the daemon looks next, by tables: tiers, live exchanges, failures, the hourly budget."""

import pytest

from wire.daemon.cadence import HOT, QUIET_LOOKS, RETRY_MAX, TIERS, Cadence, Pace, Tier

START = 1000.0
EVEN = Pace(jitter=0.0, hourly_budget=None)


def middle() -> float:
    """The random number that leaves a jittered interval as it is."""
    return 0.5


def cadence(pace: Pace = EVEN, random=middle) -> Cadence:
    return Cadence(pace, START, random)


def quiet(one: Cadence, looks: int) -> list[float]:
    """Let looks bring nothing, and return the intervals that follow them."""
    waits = []
    for _ in range(looks):
        now = one.due
        one.looked(now, moved=False)
        waits.append(one.due - now)
    return waits


def test_the_first_look_is_due_at_once():
    assert cadence().due == START
    assert cadence().name == "T0"


def test_quiet_leads_from_tier_to_tier_and_stays_at_the_slowest():
    waits = quiet(cadence(), 4 * QUIET_LOOKS + 5)
    # The look that is one too many for a tier is already followed by the next tier's interval.
    assert waits[: QUIET_LOOKS - 1] == [TIERS[0]] * (QUIET_LOOKS - 1)
    assert waits[QUIET_LOOKS - 1 : 2 * QUIET_LOOKS - 1] == [TIERS[1]] * QUIET_LOOKS
    assert waits[2 * QUIET_LOOKS - 1 : 3 * QUIET_LOOKS - 1] == [TIERS[2]] * QUIET_LOOKS
    assert set(waits[3 * QUIET_LOOKS - 1 :]) == {TIERS[3]}


def test_traffic_brings_the_fastest_tier_and_quick_looks():
    one = cadence()
    quiet(one, 40)
    assert one.tier is Tier.T3
    one.looked(one.due, moved=True)
    assert one.tier is Tier.T0
    assert one.name == "hot"
    assert one.interval == TIERS[0]
    waits = [one.due - one._last, *quiet(one, len(HOT) + 1)]
    assert waits == [*HOT, TIERS[0], TIERS[0]]
    assert one.name == "T0"


def test_own_lines_go_at_once_and_make_it_hot():
    one = cadence()
    quiet(one, 15)
    one.stirred(now := one.due - 50)
    assert one.due == now
    assert one.tier is Tier.T0
    one.looked(now, moved=True)
    assert one.due - now == HOT[0]


def test_hot_steps_end_where_the_tier_begins():
    one = cadence(Pace((4.0, 8.0, 16.0, 32.0), (1.0, 2.0, 4.0, 8.0), 0.0, None))
    one.looked(START, moved=True)
    assert [one.due - START, *quiet(one, 3)] == [1.0, 2.0, 4.0, 4.0]


@pytest.mark.parametrize(
    ("took", "quick"),
    [(0.05, [0.05, 0.05, 0.1, 0.1, 0.2, 0.2, 0.4]), (0.3, [0.3, 0.3, 0.6, 0.6]), (2.0, []), (None, [])],
)
def test_the_first_quick_looks_are_as_fast_as_the_remote(took, quick):
    one = cadence()
    one.looked(START, moved=True, took=took)
    waits = [one.due - START]
    for _ in quick:
        now = one.due
        one.looked(now, moved=False, took=took)
        waits.append(one.due - now)
    assert waits == pytest.approx([*quick, HOT[0]])
    assert one.name == "hot"


def test_quick_looks_are_never_faster_than_the_transport_allows():
    one = cadence(Pace(jitter=0.0, hourly_budget=None, minimum=0.1))
    one.looked(START, moved=True, took=0.01)
    assert one.due - START == pytest.approx(0.1)


@pytest.mark.parametrize("random", [0.0, 0.25, 0.5, 0.999])
def test_every_interval_is_jittered(random):
    one = cadence(Pace(jitter=0.2, hourly_budget=None), lambda: random)
    one.looked(START, moved=False)
    assert one.due - START == pytest.approx(TIERS[0] * (0.8 + 0.4 * random))
    one.looked(START, moved=True)
    assert one.due - START == pytest.approx(HOT[0] * (0.8 + 0.4 * random))


@pytest.mark.parametrize("kind", ["network", "timeout", "race", "locked", "disk-full", "unknown"])
def test_what_passes_by_itself_is_tried_again_soon(kind):
    one = cadence()
    waits = []
    for _ in range(8):
        now = one.due
        one.failed(now, kind)
        waits.append(one.due - now)
    assert waits[:4] == [2 * 1.25, 4 * 1.25, 8 * 1.25, 16 * 1.25]
    assert max(waits) <= min(RETRY_MAX, TIERS[0])
    assert one.name == "T0"


def test_the_first_failure_is_jittered_above_its_base_and_the_longest_below_its_cap():
    for random in (0.0, 0.5, 0.999):
        one = cadence(random=lambda random=random: random)
        quiet(one, 25)  # a slow tier, so that the minute is the cap
        now = one.due
        one.failed(now, "network")
        assert one.due - now == pytest.approx(2 * (1 + random / 2))
        for _ in range(20):
            now = one.due
            one.failed(now, "network")
        assert one.due - now == pytest.approx(40 * (1 + random / 2))


@pytest.mark.parametrize("kind", ["auth", "host-key", "rejected", "not-found", "no-ref", "clone", "pin-corrupt"])
def test_what_a_person_has_to_mend_waits_for_the_tier(kind):
    one = cadence()
    now = START
    one.failed(now, kind)
    assert one.due - now == TIERS[0]
    for _ in range(4 * QUIET_LOOKS):
        now = one.due
        one.failed(now, kind)
    assert one.due - now == TIERS[3]


def test_a_rate_limit_is_obeyed_by_everybody():
    one = cadence(random=lambda: 0.0)
    one.failed(START, "rate-limit", retry_after=600)
    assert one.due == START + 600
    one.wake(START + 1)
    one.stirred(START + 2)
    assert one.due == START + 600
    one.looked(START + 600, moved=False)
    assert one.due == START + 600 + HOT[1], "and then it is the live exchange that it was"


def test_a_rate_limit_without_a_time_grows():
    one = cadence(random=lambda: 0.0)
    waits = []
    for _ in range(9):
        now = one.due
        one.failed(now, "rate-limit")
        waits.append(one.due - now)
    assert waits[:3] == [60, 120, 240]
    assert waits[-1] == 3600


@pytest.mark.parametrize("kind", ["network", "auth"])
def test_somebody_who_asks_is_answered_at_once_and_ends_the_backoff(kind):
    one = cadence()
    for _ in range(6):
        one.failed(one.due, kind)
    now = one.due - 10
    one.wake(now)
    assert one.due == now
    assert one.failures == 0
    one.failed(now, "network")
    assert one.due - now == 2 * 1.25


def test_own_lines_do_not_hurry_a_backoff():
    one = cadence()
    for _ in range(4):
        one.failed(one.due, "network")
    due = one.due
    one.stirred(due - 5)
    assert one.due == due


def test_own_lines_try_a_closed_door_once_per_fastest_interval():
    one = cadence()
    for _ in range(4 * QUIET_LOOKS):
        now = one.due
        one.failed(now, "auth")
    one.stirred(now + 5)
    assert one.due == now + TIERS[0]
    one.stirred(now + 100)
    assert one.due == now + TIERS[0]


def test_success_ends_the_backoff():
    one = cadence()
    for _ in range(5):
        one.failed(one.due, "network")
    one.looked(now := one.due, moved=False)
    assert one.due - now == TIERS[0]
    one.failed(now := one.due, "network")
    assert one.due - now == 2 * 1.25


def test_no_configuration_goes_below_what_the_transport_asks():
    one = cadence(Pace((0.1, 0.1, 0.1, 0.1), (0.01,), 0.2, None, minimum=1.0))
    one.looked(START, moved=True)
    assert one.due == START + 1
    one.stirred(START + 0.2)
    assert one.due == START + 1
    one.wake(START + 0.3)
    assert one.due == START + 1


def test_quick_looks_stop_before_the_budget_does():
    """A live exchange may not use up what the ordinary looks need."""
    one = cadence(Pace(jitter=0.0, hourly_budget=100))
    looks = 0
    now = START
    while one.due - now < TIERS[0]:
        now = one.due
        one.looked(now, moved=True)
        looks += 1
    assert looks == 100 * 3 // 4 - 2
    assert one.name == "hot"


def test_a_spent_budget_delays_everybody_until_it_is_free():
    one = cadence(Pace(jitter=0.0, hourly_budget=10))
    now = START
    for _ in range(8):
        now = one.due
        one.looked(now, moved=False)
    one.wake(now + 1)
    # The first look was made in minute 16, which is the last hour's until minute 77.
    assert one.due == (START // 60 + 61) * 60


def test_a_budget_smaller_than_one_look_allows_one_an_hour():
    one = cadence(Pace(jitter=0.0, hourly_budget=1))
    one.looked(START, moved=True)
    assert one.due == (START // 60 + 61) * 60


@pytest.mark.parametrize(
    ("configured", "tiers"),
    [
        ({}, TIERS),
        ({"t0": 5}, (5, 90, 270, 1200)),
        ({"t0": 600}, (600, 600, 600, 1200)),
        ({"t3": 10}, (30, 90, 270, 270)),
        ({"t0": 1, "t1": 2, "t2": 3, "t3": 4}, (1, 2, 3, 4)),
    ],
    ids=["nothing", "faster", "slower than the next", "faster than the last", "all"],
)
def test_tiers_of_a_configuration_never_get_faster(configured, tiers):
    assert Pace.of(configured).tiers == tiers


def test_what_else_is_configured():
    pace = Pace.of({"hot": (2, 4), "jitter": 0.5, "hourly_budget": 60}, minimum=1.0)
    assert (pace.hot, pace.jitter, pace.hourly_budget, pace.minimum) == ((2.0, 4.0), 0.5, 60, 1.0)
    assert Pace.of({}, budgeted=False).hourly_budget is None
    assert Pace.of({"hourly_budget": 7}, budgeted=False).hourly_budget == 7
