"""A program at a terminal of its own."""

import os
import pty
import select
import struct
import termios
import time
from collections.abc import Mapping
from fcntl import ioctl
from pathlib import Path


def watch(*argv: str | Path, env: Mapping[str, str], cwd: Path, columns: int, seconds: float) -> tuple[int, str]:
    """Run a command at a terminal of some width, and return its exit status and what was on it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvpe(argv[0], list(map(str, argv)), env)
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    shown = bytearray()
    end = time.monotonic() + seconds
    while select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode("utf-8")
