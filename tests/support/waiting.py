"""Waiting for something that another process does."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(
    look: Callable[[], T], *, timeout: float = 20.0, every: float = 0.05, what: str | Callable[[], str] = ""
) -> T:
    """Call `look` until its answer is true, and return that answer.

    Args:
        look: cheap to call again; an AssertionError that it raises counts as "not yet" and is shown at the end.
        timeout: seconds before giving up.
        every: seconds between two looks.
        what: what was waited for, or a function that says what is there instead.

    Raises:
        AssertionError: it never was; with `what` and the last answer.
    """
    end = time.monotonic() + timeout
    while True:
        try:
            answer = look()
        except AssertionError as error:
            if time.monotonic() >= end:
                raise AssertionError(f"not within {timeout:g} s: {_text(what)}: {error}") from error
        else:
            if answer:
                return answer
            if time.monotonic() >= end:
                raise AssertionError(f"not within {timeout:g} s: {_text(what) or look}; last answer: {answer!r}")
        time.sleep(every)


def _text(what: str | Callable[[], str]) -> str:
    return what if isinstance(what, str) else what()
