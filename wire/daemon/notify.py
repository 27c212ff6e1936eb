"""What a service manager is told over `NOTIFY_SOCKET`: ready, alive, how it goes, stopping (see sd_notify(3)).

Sending never blocks and never fails: a manager that does not read must not hold the daemon. Without a socket in the
environment everything here does nothing.
"""

import socket
from collections.abc import Mapping
from contextlib import suppress

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"
VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
"""What children must not inherit: they would speak for the daemon."""


class Notifier:
    """The line to the service manager, as the environment names it.

    Attributes:
        watchdog: seconds within which the manager wants a sign of life, or None.
    """

    def __init__(self, environ: Mapping[str, str], pid: int) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]
        micros = environ.get("WATCHDOG_USEC", "")
        meant = environ.get("WATCHDOG_PID", str(pid)) == str(pid)
        self.watchdog = int(micros) / 1e6 if micros.isascii() and micros.isdigit() and int(micros) and meant else None

    def tell(self, *messages: str) -> None:
        """Send messages such as `READY=1` or `STATUS=…`."""
        if not self._address:
            return
        data = "\n".join(message.replace("\n", " ") for message in messages).encode("utf-8", "backslashreplace")
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
            line.setblocking(False)
            line.sendto(data, self._address)
