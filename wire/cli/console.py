"""What the terminal or pipe on the other side needs: safe text, flushed lines, one form of error."""

import contextlib
import fcntl
import json
import os
import stat
import sys
import time
from typing import Any, NoReturn

import click

from wire.errors import WireError

BROKEN_PIPE = 141
_PATIENCE = 5.0
_closed = False


def prepare() -> None:
    """Make printing safe in every locale: what it cannot show is escaped, never an error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        global _closed
        _closed = True
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the rest of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def say(text: str) -> None:
    """Print one text and a newline."""
    sys.stdout.write(text + "\n")


def say_json(value: Any) -> None:
    """Print one JSON object on one line, in UTF-8 whatever the locale."""
    write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n")


def write(data: bytes) -> None:
    """Print bytes as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def flush() -> None:
    """Hand over what was printed; raises BrokenPipeError when nobody takes it."""
    sys.stdout.flush()


def hand_over() -> None:
    """Hand over what was printed, and wait until whoever reads from a pipe or socket took it.

    A reader that takes nothing for some seconds counts as one that will: it may be waiting for our end.

    Raises:
        BrokenPipeError: the reader went away and left something unread, or there never was one.
    """
    flush()
    if _closed:
        raise BrokenPipeError
    taken(sys.stdout.fileno())


def taken(descriptor: int) -> None:
    """Wait until whoever reads from a pipe or socket took everything; see `hand_over`."""
    left = least = _untaken(descriptor)
    deadline = time.monotonic() + _PATIENCE
    pause = 0.0002
    while left and time.monotonic() < deadline:
        if reader_gone(pause, descriptor):
            raise BrokenPipeError
        left = _untaken(descriptor)
        pause = min(2 * pause, 0.005)
        if left < least:
            least, deadline = left, time.monotonic() + _PATIENCE


def reader_gone(seconds: float, descriptor: int | None = None, *, until: int | None = None) -> bool:
    """Wait for some seconds, or until nobody reads any more what is printed; return whether that is so.

    Args:
        until: a descriptor that ends the wait as well when it becomes readable.
    """
    import select  # sending needs neither this nor what is imported below

    poll = select.poll()
    watched = sys.stdout.fileno() if descriptor is None else descriptor
    poll.register(watched, 0)
    if until is not None:
        poll.register(until, select.POLLIN)
    return any(ready == watched for ready, _ in poll.poll(seconds * 1000))


def _untaken(descriptor: int) -> int:
    """Return how many bytes of a pipe or socket wait for their reader; 0 for anything else."""
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
        return 0
    import termios

    try:
        count = fcntl.ioctl(descriptor, termios.FIONREAD if stat.S_ISFIFO(mode) else termios.TIOCOUTQ, bytes(4))
    except OSError:
        return 0  # a system that cannot tell
    return int.from_bytes(count, sys.byteorder)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    _complain(f"wire: {text}\n")


def fail(error: WireError, *, as_json: bool) -> int:
    """Print an error, wherever it can still be printed, and return its exit status."""
    if as_json:
        try:
            say_json(error.as_json())
            flush()
            return error.exit_status
        except OSError as refused:
            # A reader that is gone wants no more; for a full disk there is standard error.
            broken_pipe()
            if isinstance(refused, BrokenPipeError):
                return error.exit_status
    _complain(f"wire: {safe(error.message)}\n" + (f"      next: {safe(error.next_step)}\n" if error.next_step else ""))
    return error.exit_status


def told(error: WireError) -> int:
    """Print an error that is a help text, as it is, and return its exit status."""
    _complain(error.message + "\n")
    return error.exit_status


def _complain(text: str) -> None:
    """Write to standard error; that nobody takes it changes nothing."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def safe(text: str) -> str:
    """Return our own words, which may quote a stranger's, without anything that a terminal would obey."""
    from wire.verbs.render import one_line  # where there is something to say

    return "\n".join(one_line(part, 2000) for part in text.split("\n"))


def broken_pipe() -> int:
    """Note that the reader is gone, so that nothing complains at exit."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.close(descriptor)
    return BROKEN_PIPE


def is_terminal() -> bool:
    """Return whether a person looks at standard output."""
    return sys.stdout.isatty()


def styled(text: str, **style: Any) -> str:
    """Return text with colour on a terminal that has it and is to show it (`NO_COLOR` is obeyed)."""
    if not is_terminal() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return click.style(text, **style)


def leave(status: int) -> NoReturn:
    """End the command with an exit status."""
    raise click.exceptions.Exit(status)
