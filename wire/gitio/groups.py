"""Groups of processes: signalled, and seen to be gone."""

import contextlib
import os
import time


def signal_group(group: int, number: int) -> None:
    """Send a signal to all processes of a group."""
    # Gone already is what we want; macOS answers EPERM for a group of zombies.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def group_exists(group: int) -> bool:
    """Return whether a process of the group is still at work."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    # Orphans that died wait for a parent to notice; in a container without an init that is never.
    states = _states(group)
    return states is None or any(state != b"Z" for state in states)


def _states(group: int) -> list[bytes] | None:
    """Return the states of the processes in a group; None where the system has no `/proc`."""
    if not os.path.exists("/proc/self/stat"):
        return None
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{name}/stat", "rb") as file:
                # The command's name stands in parentheses and may hold anything.
                state, _, leader = file.read().rpartition(b") ")[2].split(b" ")[:3]
                if int(leader) == group:
                    found.append(state)
    return found


def wait_for_group(group: int, until: float) -> None:
    """Wait until a group is gone, at most until a monotonic second."""
    while time.monotonic() < until and group_exists(group):
        time.sleep(0.01)
