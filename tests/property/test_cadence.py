"""What holds for every course of events: no look in the past, none too late, none beyond the budget."""

from hypothesis import given
from hypothesis import strategies as st

from wire.daemon.cadence import RETRY_MAX, Cadence, Pace

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["quiet", "moved", "network", "race", "auth", "rejected", "rate-limit", "stirred", "wake"]),
        st.floats(0, 0.999999),  # the random number
        st.floats(0, 4000),  # how much later than due, or before it
        st.integers(1, 3),
    ),
    max_size=60,
)
PACES = st.builds(
    Pace,
    st.lists(st.floats(0.1, 4000), min_size=4, max_size=4).map(lambda tiers: tuple(sorted(tiers))),
    st.lists(st.floats(0.1, 50), min_size=1, max_size=8).map(tuple),
    st.floats(0, 1),
    st.one_of(st.none(), st.integers(3, 500)),
    st.floats(0, 5),
)


@given(PACES, EVENTS, st.floats(0, 1e6))
def test_every_course_of_events(pace, events, start):
    numbers = iter([number for _, number, _, _ in events for _ in range(4)] + [0.5] * 4)
    one = Cadence(pace, start, lambda: next(numbers))
    assert one.due == start
    requests: list[tuple[float, int]] = []
    last = None
    now = start
    for what, _, later, cost in events:
        if what in ("stirred", "wake"):
            # Somebody interrupts the waiting.
            now = min(now + later, max(now, one.due))
            getattr(one, what)(now)
            assert one.due >= now
            continue
        now = max(now, one.due)
        if last is not None:
            assert now - last >= pace.minimum - 1e-6
        last = now
        requests.append((now, cost))
        if what in ("quiet", "moved"):
            one.looked(now, moved=what == "moved", requests=cost, took=later / 4000 if cost > 1 else None)
        else:
            retry_after = later if what == "rate-limit" and later > 2000 else None
            one.failed(now, what, retry_after=retry_after, requests=cost)
            if retry_after is not None:
                assert one.due >= now + retry_after
        assert one.due >= now
        if pace.hourly_budget is None and what != "rate-limit":
            longest = one.interval * (1 + pace.jitter)
            if what in ("network", "race"):
                longest = min(longest, RETRY_MAX)
            assert one.due <= max(now + max(longest, pace.minimum) + 1e-6, one._not_before)
    if pace.hourly_budget is not None:
        for begin, _ in requests:
            within = sum(cost for at, cost in requests if begin <= at < begin + 3600)
            assert within <= pace.hourly_budget
