"""Waiting for what arrives: the pin changes whenever something was accepted."""

import os
import time
from collections.abc import Callable, Iterator

from wire.verbs.here import Here

SOON_SECONDS, LATER_SECONDS = 0.01, 0.25
LIVELY_SECONDS = 30.0


def changes(
    here: Here,
    pause: Callable[[float], object] = time.sleep,
    *,
    every: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Yield once, and then whenever the pin changed, for ever.

    The pin is asked for with one `stat`, often while messages flow and seldom otherwise.

    Args:
        pause: waits for so many seconds; what it raises ends the waiting.
        every: yield after so many seconds without a change, too.
        clock: seconds that only rise.
    """
    before = _signature(here.places.pin_file)
    yield
    lively = told = clock()
    while True:
        after = _signature(here.places.pin_file)
        if after != before:
            before = after
            lively = told = clock()
            yield
            continue
        if every is not None and clock() - told >= every:
            told = clock()
            yield
        pause(SOON_SECONDS if clock() - lively < LIVELY_SECONDS else LATER_SECONDS)


def _signature(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns
