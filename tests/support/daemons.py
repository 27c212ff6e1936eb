"""What tests with real daemons ask again and again: whether a message arrived, what the log says, how it is set."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from support import team as teams
from support.machine import Machine
from support.waiting import eventually


def set_cadence(machine: Machine, **values: Any) -> None:
    """Configure the cadence of a machine's only wire: `set_cadence(mac, t0=1, hot=[1])`."""
    file = machine.wire_home / "config.toml"
    text = file.read_text("utf-8")
    assert "[wire.cadence]" not in text
    lines = "".join(f"{name} = {value}\n" for name, value in values.items())
    file.write_text(f"{text}\n[wire.cadence]\n{lines}", "utf-8")


class Inbox:
    """The bodies of everything that a machine was shown so far, in order; objects as JSON."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.bodies: list[Any] = []

    def look(self) -> list[Any]:
        """Take what is new, whatever `wire tail` says beside it, and return all of it."""
        shown = teams.read(self.machine, status=None)
        self.bodies += [json.dumps(body) if isinstance(body, dict) else body for body in shown]
        return self.bodies

    def gets(self, wanted: Iterable[Any], *, timeout: float = 30.0) -> None:
        """Wait until all of these were shown, each once."""
        expected = Counter(wanted)

        def there() -> bool:
            seen = Counter(self.look())
            assert all(seen[body] <= 1 for body in expected), f"shown twice: {seen - expected}"
            return not expected - seen

        eventually(
            there,
            timeout=timeout,
            what=lambda: (
                f"{expected - Counter(self.bodies)} for {self.machine.name}; log:\n{self.machine.log()[-4000:]}"
            ),
        )


def tail(machine: Machine) -> str:
    """Return the end of the daemon's log, for a failure's text."""
    return machine.log()[-4000:]


def rounds(machine: Machine, start: int = 0) -> int:
    """Return how many rounds the log tells of; the daemon must write at level `debug`."""
    return len(re.findall(r" round wire=", machine.log(start)))


def next_round(machine: Machine, count: int = 1, *, timeout: float = 30.0) -> None:
    """Wait for so many rounds to be finished from now on."""
    before = rounds(machine)
    eventually(
        lambda: rounds(machine) >= before + count,
        timeout=timeout,
        what=lambda: f"{count} more round(s) of {machine.name}; log:\n{tail(machine)}",
    )


def quiet(machine: Machine, seconds: float = 1.0, *, timeout: float = 30.0) -> None:
    """Wait until the log has told of nothing for some time."""
    size, since = -1, time.monotonic()

    def still() -> bool:
        nonlocal size, since
        now = len(machine.log())
        if now != size:
            size, since = now, time.monotonic()
        return time.monotonic() - since > seconds

    eventually(still, timeout=timeout, what=f"a quiet daemon of {machine.name}")
