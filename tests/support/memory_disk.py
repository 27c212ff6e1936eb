"""Where the folders of the tests are: in memory, on a machine that has plenty.

Nearly every test writes keys, state and git objects, and each file of those is brought to the disk (fsync) before
anything is said of it. On a real disk that is most of a short test's time. What is on tmpfs is synced by the same calls
at no cost; nothing here cuts the power, so that no test can tell the two apart.
"""

import os
from pathlib import Path

ROOM = 1 << 30
"""Bytes that must be free there: several times what three processes of tests use at once."""
AVAILABLE = 4 << 30
"""Bytes of memory that nobody must need, so that the tests' processes have theirs as well."""


def find(shm: Path = Path("/dev/shm"), meminfo: Path = Path("/proc/meminfo")) -> Path | None:
    """Return a folder in memory with room for the tests, or None: it is small, lets no program run, or is none."""
    try:
        there = os.statvfs(shm)
        lines = dict(line.split(":", 1) for line in meminfo.read_text("ascii").splitlines())
        available = int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, ValueError, LookupError):
        return None
    fits = there.f_bavail * there.f_frsize >= ROOM and available >= AVAILABLE
    runs = not there.f_flag & (os.ST_NOEXEC | os.ST_RDONLY) and os.access(shm, os.W_OK | os.X_OK)
    return shm if fits and runs else None
