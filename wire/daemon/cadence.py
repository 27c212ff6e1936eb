"""When to look next: tiers, live exchanges, the hourly budget, and what a failure means for the next try.

Pure: the time (monotonic seconds) and the random numbers are passed in. Rules that it keeps:

- Traffic brings the fastest tier and a few quick looks after it ("hot"); quiet looks lead back, tier by tier. The very
  first of them follow each other as fast as the remote answers: who is answered at once hears it at once, and a host
  that takes its time is asked no more often for it.
- No two machines keep step: every interval is jittered, the healthy ones and the first after a failure too.
- What passes by itself (network, races) is tried again soon, and at the latest after a minute. What a person has to
  mend (access, host key, rules, a missing repository) waits for the tier. A host that says how long to wait is obeyed
  by everybody, also by who asks for a look now.
- Within any hour there are no more requests than the budget; a quarter of it is kept for what is not a quick look.

    cadence = Cadence(Pace.of(config.cadence, minimum=1.0), now, random.random)
    cadence.looked(now, moved=True)
    sleep(cadence.due - now)

What it does not do: wait, or know git. A failure is told to it by its kind (see `wire.gitio.Kind`).
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tenacity import RetryCallState, Retrying, wait_exponential

TIERS = (30.0, 90.0, 270.0, 1200.0)
HOT = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0)
QUICK = (1, 1, 2, 2, 4, 4, 8)
"""The first waits of a live exchange, in multiples of what a look takes; what is no shorter than hot is left out."""
JITTER = 0.2
HOURLY_BUDGET = 900
"""Requests an hour where nothing is configured: one in four seconds, averaged over the hour."""
QUIET_LOOKS = 10
"""Looks in a row that bring nothing, after which the next tier begins."""
RETRY_MAX = 60.0
"""Seconds that pass at most between two tries of what may pass by itself."""

_RETRY_FIRST = 2.0
_RETRY_SPREAD = 0.5
_RATE_FIRST, _RATE_MAX = 60.0, 3600.0
_WAIT_MAX = 86_400.0
_HOUR = 3600.0
_MINUTE = 60.0
_LOOK_COST = 3
"""Requests that one look may need: fetch, push, and the fetch that shows the push."""
_KEPT = 0.25

_SOON = frozenset({"network", "timeout", "race", "locked", "cancelled", "disk-full", "unknown", "busy"})
_RATE_LIMIT = "rate-limit"


class Tier(IntEnum):
    """How often to look when nothing moves, T0 the most."""

    T0 = 0
    T1 = 1
    T2 = 2
    T3 = 3


@dataclass(frozen=True, slots=True)
class Pace:
    """What is configured, in seconds.

    Attributes:
        tiers: the intervals of T0 to T3.
        hot: the intervals after something was sent or received; from the first that is not below T0's on, T0 goes on.
        jitter: the part of an interval by which it may be shorter or longer, 0 to 1.
        hourly_budget: requests within any hour, None for no limit.
        minimum: what the transport asks to have between two looks.
    """

    tiers: tuple[float, float, float, float] = TIERS
    hot: tuple[float, ...] = HOT
    jitter: float = JITTER
    hourly_budget: int | None = HOURLY_BUDGET
    minimum: float = 0.0

    @classmethod
    def of(cls, configured: Mapping[str, Any], *, minimum: float = 0.0, budgeted: bool = True) -> "Pace":
        """Return the pace that a wire's configuration asks for (`WireConfig.cadence`).

        Args:
            minimum: the transport's own, below which no configuration goes.
            budgeted: whether requests cost anybody anything where no budget is configured.
        """
        t0, t1, t2, t3 = (float(configured.get(f"t{n}", TIERS[n])) for n in range(4))
        # Only some of them may be configured; a slower tier is never the faster one.
        t1 = max(t0, t1)
        t2 = max(t1, t2)
        return cls(
            (t0, t1, t2, max(t2, t3)),
            tuple(map(float, configured.get("hot", HOT))),
            float(configured.get("jitter", JITTER)),
            configured.get("hourly_budget", HOURLY_BUDGET if budgeted else None),
            minimum,
        )


class Cadence:
    """When one wire is looked at next.

    Args:
        now: monotonic seconds; the first look is due at once.
        random: returns numbers from 0 up to 1.

    Attributes:
        due: the monotonic second of the next look.
        tier: the tier in force.
        failures: tries that failed in a row.
    """

    def __init__(self, pace: Pace, now: float, random: Callable[[], float]) -> None:
        self.pace = pace
        self.due = now
        self.tier = Tier.T0
        self.failures = 0
        self._random = random
        self._quiet = 0
        self._hot: int | None = None
        self._took: float | None = None
        self._waits = False
        self._not_before = now
        self._last: float | None = None
        self._budget = _Budget(pace.hourly_budget)

    @property
    def name(self) -> str:
        """The tier in words: `hot`, or `T0` to `T3`."""
        return "hot" if self._hot is not None and not self.failures else self.tier.name

    @property
    def interval(self) -> float:
        """The seconds that the tier promises between two looks."""
        return self.pace.tiers[self.tier]

    @property
    def next_interval(self) -> float:
        """The seconds between two looks that the next slower tier promises."""
        return self.pace.tiers[min(self.tier + 1, Tier.T3)]

    def looked(self, now: float, *, moved: bool, requests: int = 1, took: float | None = None) -> None:
        """Note a look that went well.

        Args:
            moved: whether anything was sent or received.
            requests: how many the remote had to answer.
            took: seconds that the remote took for a look; None where nobody has to look to hear of news.
        """
        self._took = took
        self._spent(now, requests)
        self.failures, self._waits = 0, False
        if moved:
            self._lively()
        else:
            self._quieter()
        step = self._hot_step()
        if step is not None and self._budget.free(now, _LOOK_COST, _KEPT) > now:
            # The quick looks of this hour are used up; the tier's go on.
            step = None
        self._set(now + self._jittered(self.interval if step is None else step))

    def failed(self, now: float, kind: str, *, retry_after: float | None = None, requests: int = 1) -> None:
        """Note a look that failed.

        Args:
            kind: what it failed of.
            retry_after: seconds that the host asked to wait.
        """
        self._spent(now, requests)
        self.failures += 1
        self._hot = None
        self._waits = kind not in _SOON
        if self._waits:
            self._quieter()  # who knocks at a closed door knocks less and less often
        if kind == _RATE_LIMIT:
            asked = retry_after if retry_after is not None else _backoff(self.failures, _RATE_FIRST, _RATE_MAX)
            # Later than asked, never sooner; and not everybody in the same second.
            self._not_before = now + min(max(asked, 0.0), _WAIT_MAX) * (1 + self._random() * self.pace.jitter)
            self._set(self._not_before)
        elif self._waits:
            self._set(now + self._jittered(self.interval))
        else:
            longest = min(RETRY_MAX, self.interval)
            raw = _backoff(self.failures, _RETRY_FIRST, longest / (1 + _RETRY_SPREAD))
            self._set(now + raw * (1 + self._random() * _RETRY_SPREAD))

    def stirred(self, now: float) -> None:
        """Note that lines of ours wait to be sent.

        They go at once while all is well. While the remote fails they wait for the next try, which at the latest is
        the fastest tier's.
        """
        self._lively()
        if not self.failures:
            self._set(now)
        elif self._waits and self._last is not None:
            self._set(min(self.due, max(now, self._last + self._jittered(self.interval))))

    def wake(self, now: float) -> None:
        """Note that somebody wants a look now: a resume, the network, the remote itself, a person."""
        self.failures, self._waits = 0, False
        self._set(now)

    def stir_gently(self, now: float, seconds: float) -> None:
        """Look within so many seconds, without a change of tier: something small is there to be seen."""
        if not self.failures:
            self._set(min(self.due, now + seconds))

    def beat(self, now: float) -> float:
        """Return when a presence may be pushed by itself: at once, unless the requests of this hour are used up."""
        return max(self._not_before, self._budget.free(now, 1, _KEPT))

    def spent(self, now: float, requests: int) -> None:
        """Note requests outside of a look."""
        self._budget.spend(now, requests)

    # What happens to the tier.

    def _lively(self) -> None:
        self.tier, self._quiet, self._hot = Tier.T0, 0, 0

    def _quieter(self) -> None:
        if self._hot is not None:
            self._hot += 1
            if self._hot_step() is None:
                self._hot = None
            return
        self._quiet += 1
        if self._quiet >= QUIET_LOOKS and self.tier < Tier.T3:
            self.tier, self._quiet = Tier(self.tier + 1), 0

    def _hot_step(self) -> float | None:
        if self._hot is None:
            return None
        took = self._took
        quick = () if took is None else (times * took for times in QUICK if times * took < self.pace.hot[0])
        steps = (*quick, *self.pace.hot)
        return steps[self._hot] if self._hot < len(steps) and steps[self._hot] < self.pace.tiers[0] else None

    # What becomes of a time.

    def _jittered(self, seconds: float) -> float:
        return seconds * (1 + self.pace.jitter * (2 * self._random() - 1))

    def _set(self, wanted: float) -> None:
        due = max(wanted, self._not_before)
        if self._last is not None:
            due = max(due, self._last + self.pace.minimum)
        self.due = max(due, self._budget.free(due, _LOOK_COST))

    def _spent(self, now: float, requests: int) -> None:
        self._last = now
        self._budget.spend(now, requests)


class _Budget:
    """Requests within the last hour, counted by the minute: a little too many rather than too few."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._minutes: deque[tuple[int, int]] = deque()

    def spend(self, now: float, requests: int) -> None:
        minute = int(now // _MINUTE)
        if self._minutes and self._minutes[-1][0] == minute:
            minute, before = self._minutes.pop()
            requests += before
        self._minutes.append((minute, requests))
        while self._minutes[0][0] < minute - int(_HOUR // _MINUTE):
            self._minutes.popleft()

    def free(self, now: float, requests: int, kept: float = 0.0) -> float:
        """Return the first moment from `now` on at which so many requests fit, with a part of the budget kept back."""
        if self._most is None:
            return now
        # A budget that is smaller than one look must still allow one.
        room = max(int(self._most * (1 - kept)), min(requests, self._most)) - min(requests, self._most)
        used = sum(count for _, count in self._minutes)
        for minute, count in self._minutes:
            leaves = (minute + 1) * _MINUTE + _HOUR
            if leaves <= now:
                used -= count
                continue
            if used <= room:
                break
            used -= count
            now = leaves
        return now


def _backoff(failures: int, first: float, longest: float) -> float:
    state = RetryCallState(Retrying(), None, (), {})
    state.attempt_number = failures
    return wait_exponential(multiplier=first, max=longest)(state)
