"""Find the user's ssh agent anew before each use of a remote, since agents come and go while a daemon stays.

A daemon keeps the environment it was started with: an agent that began later is not in it, and the socket of an ended
session stays in it for ever. So the variable is believed only while somebody answers at the socket; then the user
manager is asked, to which desktops and `systemctl --user import-environment` report an agent; then the sockets of the
agent units that distributions ship are tried.

A dedicated key without a passphrase needs none of this, and is what a machine without sessions should have.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Mapping

NAME = "SSH_AUTH_SOCK"
ASK_MANAGER = ("systemctl", "--user", "show-environment")
"""What prints the user manager's variables."""
NO_AGENT = (
    "check that this user's ssh key is known to the host; no ssh agent answers here: tell the user manager of one "
    f"(systemctl --user import-environment {NAME}), or give ssh a key without a passphrase in ~/.ssh/config"
)

_WELL_KNOWN = ("openssh_agent", "ssh-agent.socket", "ssh-agent")
_PATIENCE = 0.5


def find(environ: Mapping[str, str], ask_manager: Callable[[], bytes]) -> str | None:
    """Return the socket of an agent that answers, or None.

    Args:
        ask_manager: returns what `ASK_MANAGER` prints; called only where the environment's agent is gone and a user
            manager is there.
    """
    own = environ.get(NAME, "")
    if own and answers(own):
        return own
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if not os.path.isabs(runtime):
        return None
    if os.path.exists(os.path.join(runtime, "systemd", "private")):
        for line in ask_manager().decode("utf-8", "replace").split("\n"):
            name, _, path = line.partition("=")
            if name == NAME and answers(path):
                return path
    return next((path for name in _WELL_KNOWN if answers(path := os.path.join(runtime, name))), None)


def answers(path: str) -> bool:
    """Return whether a socket of this user's is at a path, and somebody takes connections there."""
    try:
        about = os.stat(path)
        if not stat.S_ISSOCK(about.st_mode) or about.st_uid != os.geteuid():
            return False
        import socket

        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)) as probe:
            probe.settimeout(_PATIENCE)
            probe.connect(path)
    except (OSError, ValueError):
        return False
    return True
