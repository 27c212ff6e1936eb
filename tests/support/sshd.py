"""A real sshd on a loopback port, with keys and settings of its own, and a client that knows only those.

    with Sshd(tmp_path / "sshd") as server:
        git.ls_remote(server.url(hub.path))      # a child with server.environ() in its environment

It runs as whoever runs the tests and lets that user in by one key. The client is a script named `ssh` in front of the
real one, because ssh reads the configuration of the account and not of `$HOME`: nobody's `~/.ssh` is read or written.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from support.waiting import eventually

PROGRAM = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")
"""The server, or None where it is not installed."""

_SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
LogLevel VERBOSE
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AcceptEnv GIT_PROTOCOL
"""

_CLIENT = """\
Host *
    IdentityFile {folder}/user_key
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    UpdateHostKeys no
"""


class Sshd:
    """One server; `start` and `stop` as often as needed, always on the same port.

    Args:
        folder: where to create its files.
    """

    def __init__(self, folder: Path) -> None:
        assert PROGRAM is not None, "sshd is not installed"
        self.folder = folder
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "log"
        (folder / "bin").mkdir(parents=True)
        _make_key(folder / "host_key")
        _make_key(folder / "user_key")
        self.allow_client()
        self.learn_host_key()
        (folder / "sshd_config").write_text(_SERVER.format(port=self.port, folder=folder))
        (folder / "ssh_config").write_text(_CLIENT.format(folder=folder))
        client = folder / "bin" / "ssh"
        client.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
        client.chmod(0o755)

    def __enter__(self) -> "Sshd":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def url(self, path: Path) -> str:
        """Return the URL of a repository on this host."""
        return f"ssh://{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1:{self.port}{path}"

    def environ(self, rest: Mapping[str, str]) -> dict[str, str]:
        """Return `rest` with this server's client in front of its PATH."""
        return {**rest, "PATH": f"{self.folder / 'bin'}:{rest.get('PATH', os.defpath)}"}

    def start(self) -> None:
        """Start the server and wait until it listens."""
        if os.geteuid() == 0:
            # What the service's own start-up script would have made.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(PROGRAM), "-D", "-e", "-f", str(self.folder / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        eventually(self._listens, what=lambda: f"an sshd that listens; its log: {self.log()}")

    def stop(self) -> None:
        """End the server and every connection to it."""
        if self._process is None:
            return
        for child in _descendants(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._process.terminate()
        self._process.wait(10)
        self._process = None

    def freeze_connections(self) -> None:
        """Let no open connection go on, as after a suspend or behind a dead router; new ones work."""
        assert self._process is not None
        for child in _descendants(self._process.pid):
            os.kill(child, signal.SIGSTOP)

    def log(self) -> str:
        """Return what the server wrote so far."""
        return self._log.read_text("utf-8", "replace")

    @property
    def connections(self) -> int:
        """How many connections logged in so far."""
        return self.log().count("Accepted publickey")

    def allow_client(self) -> None:
        """Let the client's key in; this is the state at first."""
        shutil.copy(self.folder / "user_key.pub", self.folder / "authorized_keys")

    def refuse_client(self) -> None:
        """Let nobody in."""
        (self.folder / "authorized_keys").write_text("")

    def change_host_key(self) -> None:
        """Stand there with another host key, as a machine in the middle would."""
        self.stop()
        _make_key(self.folder / "host_key")
        self.start()

    def learn_host_key(self) -> None:
        """Make the client know the host's key; this is the state at first."""
        kind, key = (self.folder / "host_key.pub").read_text().split()[:2]
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")

    def forget_host_key(self) -> None:
        """Make the client know no host at all."""
        (self.folder / "known_hosts").write_text("")

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"sshd ended: {self.log()}"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def _descendants(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *_descendants(int(child))]
    return found


def _make_key(path: Path) -> None:
    path.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)], check=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
