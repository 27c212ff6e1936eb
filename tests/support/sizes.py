"""The two sizes of a test: what continuous integration can afford, and what the promise says.

    SENDERS = size(8, 50, "senders at once")

`WIRE_TEST_SIZE=full` (`make test-full`) chooses the second. Every choice is kept in `chosen` and printed at the end
of the run, so that nobody takes a small number for the promised one.
"""

import os

FULL = os.environ.get("WIRE_TEST_SIZE", "ci") == "full"

chosen: dict[str, str] = {}
"""What was asked for so far: the words for it, and both numbers with the chosen one marked."""


def size(ci: int, full: int, what: str) -> int:
    """Return the size that this run uses.

    Args:
        ci: affordable on two cores, with the whole suite under fifteen minutes.
        full: the size that the case or the promise names.
        what: a few words for the report, unique in the suite: "senders at once".
    """
    number = full if FULL else ci
    chosen[what] = str(number) if FULL else f"{ci} (full: {full})"
    return number
