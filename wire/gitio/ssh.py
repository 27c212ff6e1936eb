"""Choose how git calls ssh, and end the shared connections that this leaves behind.

Rules that it keeps: ssh never asks (`BatchMode`) and never hangs for ever (keep-alives); host keys are checked as the
user's ssh config says, never more loosely; one connection serves many fetches through a control socket in a private
folder. A user's own `GIT_SSH_COMMAND`, `GIT_SSH` or `core.sshCommand` is left exactly as it is, without sharing.

It runs nothing itself; the control sockets are ended by the caller with the argument vectors from here.
"""

import os
import re
import shlex
import stat
from collections.abc import Mapping

_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=3"
_PERSIST = 120
"""Seconds that an idle shared connection stays: longer than the pauses of a busy wire, shorter than a nap's."""

# sun_path holds 104 bytes on macOS and 108 on Linux; ssh binds "<path>.<16 random characters>" first.
_SOCKET_MAX = 103 - 17
_PREFIX = "ssh-"
_URL = re.compile(r"(?:git\+)?ssh(?:\+git)?://([^/@]*@)?\[?([^/@:\]]+|[0-9a-fA-F:]+)\]?(?::(?P<port>\d+))?(?:/|$)")
_SHORT = re.compile(r"([^/@:]*@)?([^/@:]+):(?!//)")
_PLAIN = re.compile(r"[A-Za-z0-9_./+@:,-]+\Z")


def control_path(runtime_dir: str | None, remote: str) -> str | None:
    """Return the path of the control socket for `remote`, or None where sharing is not possible.

    It is short on purpose, and free of the characters that ssh or a shell would read as something else.
    """
    if runtime_dir is None:
        return None
    import hashlib  # only where ssh is used

    path = os.path.join(runtime_dir, _PREFIX + hashlib.sha256(remote.encode(errors="replace")).hexdigest()[:12])
    return path if len(os.fsencode(path)) <= _SOCKET_MAX and _PLAIN.match(path) else None


def private(folder: str) -> bool:
    """Make a folder for sockets if it is not there; return whether nobody else can put or reach one there."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.stat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def ssh_command(socket: str | None) -> str:
    """Return the value of `GIT_SSH_COMMAND`; it shares connections through `socket` when there is one."""
    if socket is None:
        return f"ssh {_OPTIONS}"
    return f"ssh {_OPTIONS} -o ControlMaster=auto -o ControlPath={socket} -o ControlPersist={_PERSIST}"


def addressed(text: str, remote: str) -> str:
    """Return a next step with this remote's host in it, so that its command works as it is printed."""
    found = _URL.match(remote) or _SHORT.match(remote)
    if found is None:
        return text
    user, host, port = found[1] or "", found[2], found.groupdict().get("port")
    login = shlex.quote(user + host)
    known = shlex.quote(f"[{host}]:{port}" if port and port != "22" else host)
    return text.replace("<the remote's user@host>", f"-p {port} {login}" if port else login).replace(
        "<the remote's host>", known
    )


def user_chose_ssh(environ: Mapping[str, str]) -> bool:
    """Tell whether the environment names an ssh command; `core.sshCommand` is for the caller to ask git."""
    return bool(environ.get("GIT_SSH_COMMAND") or environ.get("GIT_SSH"))


def exit_command(socket: str, *, at_once: bool) -> list[str]:
    """Return the arguments that end the shared connection at `socket`; the host name is not used by ssh.

    Args:
        at_once: end it with whatever goes over it; otherwise it ends when its last user has gone.
    """
    return ["ssh", "-F", "none", "-o", f"ControlPath={socket}", "-O", "exit" if at_once else "stop", "wire"]
