"""A real `systemd --user` manager for one machine, on a system that need not have been booted with systemd.

    manager = UserManager(tmp_path / "systemd", home=tmp_path / "home")
    with manager:
        manager.run("systemctl", "--user", "is-system-running")

It lives in mount, pid and cgroup namespaces of its own: /run and /var/lib/systemd are empty there, the rest of the file
system is the real one, and nothing outside is touched. When it ends, by whatever, all of its services end with it.

There is no system bus inside, and no journal unless it is asked for, as in most containers: what the product does
without them is tested here, too. It needs root, `unshare`, `nsenter` and a kernel with cgroup2; `wanting()` says what
is missing. A test that cannot have it skips, which in continuous integration is a failure.
"""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from support import procs
from support.waiting import eventually

RUNTIME_DIR = f"/run/user/{os.geteuid()}"
_PROGRAMS = (Path("/usr/lib/systemd/systemd"), Path("/lib/systemd/systemd"))
_NUMBERS = itertools.count()
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# As on a booted system, /run is shared below: systemd mounts credentials in a namespace of its own.
# The shell stays as the first process of the namespace: systemd refuses to be a user manager as that, and somebody has
# to wait for orphans.
_INSIDE = """
set -e
mount -t tmpfs -o mode=755 tmpfs /run
mount --make-rshared /run
mount -t tmpfs -o mode=755 tmpfs /var/lib/systemd
mkdir -p /run/systemd/system "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup
mkdir "/sys/fs/cgroup/$1"
echo $$ > "/sys/fs/cgroup/$1/cgroup.procs"
"$2" --user --log-level=info --log-target=console &
wait $!
"""
_SWEEP = """
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup
find "/sys/fs/cgroup/$1" -depth -type d -exec rmdir {} + 2>/dev/null
"""


def wanting() -> str | None:
    """Return what keeps a user manager from running here, or None."""
    if os.geteuid() != 0:
        return "a user manager in namespaces of its own needs root"
    missing = [name for name in ("unshare", "nsenter", "systemctl", "mount") if shutil.which(name) is None]
    if missing or _program() is None:
        return f"not installed: {', '.join(missing) or 'systemd'}"
    return None


def _program() -> Path | None:
    return next((program for program in _PROGRAMS if program.exists()), None)


class UserManager:
    """One user manager; a context manager that starts and ends it.

    Args:
        folder: an empty folder for its log.
        home: the home whose units it reads.
        env: more for its environment, which its services inherit.
    """

    def __init__(self, folder: Path, *, home: Path, env: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log_file = folder / "manager.log"
        self.env = {"PATH": _PATH, "HOME": str(home), "LANG": "C.UTF-8", **(env or {}), "XDG_RUNTIME_DIR": RUNTIME_DIR}
        self._cgroup = f"wire-tests-{os.getpid()}-{next(_NUMBERS)}"
        self._outer: subprocess.Popen[bytes] | None = None
        self._journal: subprocess.Popen[bytes] | None = None
        self._first = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start_journal(self) -> None:
        """Start a journal, which ends with the manager.

        It does not know whose unit a line is, since the services are not where a booted system has them.
        """
        program = self.run(
            "sh", "-c", "ls /usr/lib/systemd/systemd-journald /lib/systemd/systemd-journald", check=False
        )
        with self.log_file.open("ab") as log:
            argv = [*self.entering(), program.stdout.decode().split("\n")[0]]
            self._journal = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)
        eventually(
            lambda: self.run("test", "-S", "/run/systemd/journal/stdout", check=False).returncode == 0, what="journal"
        )

    def start(self) -> None:
        """Start the manager and wait until it answers.

        Raises:
            AssertionError: it did not; with its log.
        """
        program = _program()
        assert program is not None
        assert self._outer is None
        namespaces = ("--mount", "--pid", "--cgroup", "--fork", "--kill-child", "--mount-proc")
        with self.log_file.open("ab") as log:
            self._outer = subprocess.Popen(
                ["unshare", *namespaces, "bash", "-c", _INSIDE, "inside", self._cgroup, str(program)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                start_new_session=True,
            )
        outer = self._outer

        def answers() -> bool:
            assert outer.poll() is None, f"it exited {outer.returncode}:\n{self.log()}"
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
            if not children:
                return False
            self._first = int(children[0])
            state = self.run("systemctl", "--user", "is-system-running", check=False)
            return state.stdout.strip() in (b"running", b"degraded")

        try:
            eventually(answers, timeout=30, what=lambda: f"user manager:\n{self.log()}")
        except AssertionError:
            self.kill()
            raise

    def entering(self) -> list[str]:
        """Return the words to put before a command that is to run beside the manager."""
        return ["nsenter", f"--target={self._first}", "--mount", "--pid", "--"]

    def run(
        self, *argv: str | Path, check: bool = True, env: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command beside the manager.

        Raises:
            AssertionError: it exited non-zero and `check` is set.
        """
        done = subprocess.run(
            [*self.entering(), *map(str, argv)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**self.env, **(env or {})},
            timeout=timeout,
        )
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
        assert not check or done.returncode == 0, f"{argv} exited {done.returncode}:\n{said}\n{self.log()}"
        return done

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "--user", "show", unit, f"--property={name}", "--value").stdout.decode().strip()

    def outer_pid(self, inner: int) -> int:
        """Return the process id that a process of the namespace has outside of it."""
        for process in procs.processes():
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{process.pid}/status").read_text("utf-8", "replace").splitlines():
                    ids = line.split()
                    if ids[0] == "NSpid:" and len(ids) > 2 and int(ids[-1]) == inner and self._inside(process.pid):
                        return process.pid
        raise AssertionError(f"no process {inner} beside the manager")

    def _inside(self, pid: int) -> bool:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink(f"/proc/{self._first}/ns/pid")

    def wrapper(self, path: Path, program: Path) -> Path:
        """Write a script that runs a program beside the manager, and return its path."""
        path.write_text(f'#!/bin/sh\nexec {" ".join(self.entering())} {program} "$@"\n')
        path.chmod(0o755)
        return path

    def kill(self) -> None:
        """End the manager and everything in its namespace at once, as when a machine loses power."""
        if self._outer is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._first or self._outer.pid, signal.SIGKILL)
        self._outer.wait(20)
        if self._journal is not None:
            self._journal.wait(20)
        self._outer = None
        self._first = 0
        subprocess.run(["unshare", "--mount", "sh", "-c", _SWEEP, "sweep", self._cgroup], check=False, timeout=20)

    def log(self) -> str:
        """Return what the manager printed."""
        return self.log_file.read_text("utf-8", "replace") if self.log_file.exists() else ""
