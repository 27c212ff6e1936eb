"""What the terminal or pipe on the other side needs: safe text, flushed lines, one form of error."""

import json
import os
import sys
from typing import Any, NoReturn

import click

from wire.errors import WireError
from wire.verbs.render import one_line

BROKEN_PIPE = 141


def prepare() -> None:
    """Make printing safe in every locale: what it cannot show is escaped, never an error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
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


def warn(text: str) -> None:
    """Print a warning on standard error."""
    sys.stderr.write(f"wire: {text}\n")
    sys.stderr.flush()


def fail(error: WireError, *, as_json: bool) -> int:
    """Print an error and return its exit status."""
    if as_json:
        try:
            say_json(error.as_json())
            flush()
        except BrokenPipeError:
            broken_pipe()
    else:
        sys.stderr.write(f"wire: {safe(error.message)}\n")
        if error.next_step:
            sys.stderr.write(f"      next: {safe(error.next_step)}\n")
    return error.exit_status


def safe(text: str) -> str:
    """Return our own words, which may quote a stranger's, without anything that a terminal would obey."""
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
    """Return text with colour on a terminal that wants it (`NO_COLOR` is obeyed)."""
    if not is_terminal() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, **style)


def leave(status: int) -> NoReturn:
    """End the command with an exit status."""
    raise click.exceptions.Exit(status)
