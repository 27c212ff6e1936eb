"""Noticing that this process, or the whole machine, stood still for a while.

    naps = Naps(Clocks.now())
    …
    why = naps.check(Clocks.now(), expected=2.0)            every two seconds or so

Three clocks tell: the monotonic one stands still while the machine sleeps and the boot clock does not; a tick that
comes much too late means that the process was stopped, or its machine paused; a wall clock that jumps is what is left
where a hypervisor hides the rest. Pure; times are seconds.
"""

import time
from typing import NamedTuple, Self

SLEPT = 2.0
"""Seconds of sleep from which on it matters."""
LATE = 10.0
"""How late a tick may come on a busy machine."""
JUMPED = 30.0
"""How far the wall clock may be set without that being a nap."""


class Clocks(NamedTuple):
    """The three clocks at one moment."""

    monotonic: float
    boot: float
    wall: float

    @classmethod
    def now(cls) -> Self:
        """Read the clocks; a system without a boot clock gives the monotonic one twice."""
        monotonic = time.monotonic()
        boot = time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else monotonic
        return cls(monotonic, boot, time.time())


class Naps:
    """Compares each tick with the one before."""

    def __init__(self, now: Clocks) -> None:
        self._before = now

    def check(self, now: Clocks, *, expected: float) -> str | None:
        """Return what happened since the last tick, in words, or None.

        Args:
            expected: the most that was to pass until this tick.
        """
        before, self._before = self._before, now
        passed = now.monotonic - before.monotonic
        slept = (now.boot - before.boot) - passed
        if slept > SLEPT:
            return f"the machine slept for {slept:.0f} s"
        if passed > expected + LATE:
            return f"this process stood still for {passed:.0f} s"
        jumped = (now.wall - before.wall) - passed
        if abs(jumped) > JUMPED:
            return f"the clock was set by {jumped:+.0f} s"
        return None
