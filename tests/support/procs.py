"""A look at processes through /proc: who is there, with how many children, descriptors and bytes.

Linux only, like the tests that need it.
"""

import contextlib
import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from support.waiting import eventually

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One live process (a zombie is none: it holds nothing)."""

    pid: int
    parent: int
    command: str


@dataclass(frozen=True, slots=True)
class Vitals:
    """What a process holds at one moment. Compare two with `settles`."""

    children: int
    """All descendants, in whatever session or group."""
    zombies: int
    """Dead children that nobody has waited for."""
    descriptors: int
    threads: int
    rss_kib: int


def processes() -> list[Process]:
    """Return all live processes that can be seen."""
    return [process for process, state in _all() if state != "Z"]


def _all() -> list[tuple[Process, str]]:
    found = []
    for entry in os.listdir(_PROC):
        if not entry.isdigit():
            continue
        try:
            # The command's name stands in parentheses and may hold anything, a parenthesis too.
            state, parent = (_PROC / entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
            command = (_PROC / entry / "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        found.append((Process(int(entry), int(parent), command.decode("utf-8", "replace")), state))
    return found


def marked(mark: str) -> list[Process]:
    """Return the processes that have `mark` (`NAME=value`) in the environment they were started with.

    An environment is inherited through sessions, process groups and the death of a parent, so this finds the helper
    of a helper that a look at children or groups would miss.
    """
    wanted = mark.encode()
    # Every test asks this, of every process that there is: what it costs is paid thousands of times.
    found = {int(entry) for entry in os.listdir(_PROC) if entry.isdigit() and wanted in _environ(entry)}
    return [process for process in processes() if process.pid in found] if found else []


def _environ(pid: str) -> list[bytes]:
    try:
        file = os.open(f"/proc/{pid}/environ", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []
    try:
        parts = []
        while part := os.read(file, 1 << 17):
            parts.append(part)
        return b"".join(parts).split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []
    finally:
        os.close(file)


def kill_marked(mark: str, *, grace: float = 0.0, spare_groups: Collection[int] = ()) -> list[Process]:
    """Kill the processes that carry `mark` and return those that were still there after `grace` seconds.

    Args:
        mark: as for `marked`.
        grace: seconds they have to end by themselves.
        spare_groups: process groups that are left alone.
    """

    def meant() -> list[Process]:
        return [process for process in marked(mark) if _group(process.pid) not in spare_groups]

    end = time.monotonic() + grace
    while (left := meant()) and time.monotonic() < end:
        time.sleep(0.05)

    def all_killed() -> bool:
        # Again and again: one of them may have started another while we looked.
        alive = meant()
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        return not alive

    if left:
        eventually(all_killed, timeout=10, what=f"end of the processes with {mark}")
    return left


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def vitals(pid: int) -> Vitals:
    """Look at one process.

    Raises:
        FileNotFoundError: there is none with this id.
    """
    home = _PROC / str(pid)
    fields = dict(line.split(":", 1) for line in (home / "status").read_text("utf-8", "replace").splitlines())
    seen = _all()
    below = {pid}
    size = 0
    while len(below) > size:
        size = len(below)
        below |= {process.pid for process, _ in seen if process.parent in below}
    states = [state for process, state in seen if process.pid in below and process.pid != pid]
    return Vitals(
        children=sum(state != "Z" for state in states),
        zombies=states.count("Z"),
        descriptors=len(os.listdir(home / "fd")),
        threads=int(fields["Threads"]),
        rss_kib=int(fields.get("VmRSS", "0 kB").split()[0]),
    )


def settles(pid: int, baseline: Vitals, *, spare: int = 0, timeout: float = 10.0) -> Vitals:
    """Wait until a process holds no more children, zombies and descriptors than before, and return its vitals.

    Args:
        pid: the process.
        baseline: its vitals at a quiet moment earlier.
        spare: descriptors that it may hold in addition.
        timeout: seconds that a cycle under way has to end.

    Raises:
        AssertionError: it never did; with both vitals.
    """

    def back() -> Vitals | None:
        now = vitals(pid)
        grown = (
            now.children > baseline.children
            or now.zombies > baseline.zombies
            or now.descriptors > baseline.descriptors + spare
        )
        return None if grown else now

    settled = eventually(
        back, timeout=timeout, what=lambda: f"process {pid} back at {baseline}, but it has {vitals(pid)}"
    )
    assert settled is not None
    return settled
