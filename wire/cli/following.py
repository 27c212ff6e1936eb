"""Waiting for what arrives, for `wire tail -f`: the pin changes when something was accepted."""

import os
import time
from collections.abc import Callable

from wire.cli.console import reader_gone
from wire.verbs.here import Here

_SOON, _LATER = 0.02, 0.25
_LIVELY_SECONDS = 30.0


def follow(here: Here, look: Callable[[], object]) -> None:
    """Call `look` whenever the pin changed, for ever; ends with KeyboardInterrupt or BrokenPipeError.

    The pin is asked for with one `stat`, often while messages flow and seldom otherwise. A reader that went away is
    noticed at once, and not only with the next message.
    """
    before = _signature(here.places.pin_file)
    look()
    lively = time.monotonic()
    while True:
        after = _signature(here.places.pin_file)
        if after != before:
            before = after
            lively = time.monotonic()
            look()
            continue
        if reader_gone(_SOON if time.monotonic() - lively < _LIVELY_SECONDS else _LATER):
            raise BrokenPipeError


def _signature(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns
