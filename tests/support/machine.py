"""A machine: a home of its own, the installed `wire` as real processes, and at most one daemon.

    def test_hello(machines, remote):
        mac, spark = machines("mac"), machines("spark")
        mac.wire("init", remote.url, "--as", "mac")
        mac.start_daemon()
        identity = mac.send("spark", "hello")
        assert spark.json("tail")["messages"] == []

What a process on a machine sees is its own HOME, WIRE_HOME, git configuration and XDG folders and nothing of the
developer's. Every process that descends from a machine carries its mark in the environment: `close` (called by the
fixture) ends them all and fails if one had been left behind.
"""

import contextlib
import functools
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sysconfig
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from support import procs, sizes, warm

_IDENTITY = re.compile(r"[a-z0-9-]+/[a-z0-9-]+/[1-9][0-9]*\b")
_SOCKETS = itertools.count()
_STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@functools.cache
def _warm() -> warm.Warm:
    return warm.Warm()


def installed(program: str = "wire") -> Path:
    """Return a console script of the environment that runs the tests."""
    return Path(sysconfig.get_path("scripts")) / program


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended, and what it printed."""

    argv: tuple[str, ...]
    status: int
    """The exit status; minus the number of the signal that ended it."""
    out: bytes
    err: bytes
    seconds: float

    @property
    def stdout(self) -> str:
        return self.out.decode("utf-8", "surrogateescape")

    @property
    def stderr(self) -> str:
        return self.err.decode("utf-8", "surrogateescape")

    def json(self) -> Any:
        """Return the one JSON value on stdout."""
        return json.loads(self.out)

    def jsonl(self) -> list[Any]:
        """Return the JSON values on stdout, one a line."""
        return [json.loads(line) for line in self.out.split(b"\n") if line]

    def __str__(self) -> str:
        return (
            f"$ {' '.join(self.argv)}\nexit {self.status} after {self.seconds:.2f} s\n"
            f"--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"
        )


class CommandFailed(AssertionError):
    """A command that should have exited 0 did not; `result` has everything."""

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(str(result))


class Notices:
    """The other end of sd_notify: keeps what the daemon says of itself.

    An abstract socket, because a path below a test's folder may be longer than the 107 bytes of `sun_path`. It is
    read all the time: a datagram socket holds ten messages, and the eleventh would block the daemon.
    """

    def __init__(self) -> None:
        self.address = f"@wire-tests-{os.getpid()}-{next(_SOCKETS)}"
        self.messages: list[str] = []
        self._arrived = threading.Condition()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.bind("\0" + self.address[1:])
        self._thread = threading.Thread(target=self._read, name="notices", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while message := self._socket.recv(65536):
            with self._arrived:
                self.messages += message.decode("utf-8", "replace").split("\n")
                self._arrived.notify_all()

    def wait(self, message: str, timeout: float) -> bool:
        with self._arrived:
            return self._arrived.wait_for(lambda: message in self.messages, timeout)

    def close(self) -> None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", "\0" + self.address[1:])
        self._thread.join(5)
        self._socket.close()


@dataclass(slots=True)
class Daemon:
    """A running `wire daemon run`, leader of a process group of its own."""

    process: subprocess.Popen[bytes]
    notices: Notices
    log_start: int
    """Where in the machine's log this daemon's own begins."""

    @property
    def pid(self) -> int:
        return self.process.pid


class Machine:
    """One host with its homes and processes.

    Args:
        name: for messages, and by custom the name of its agent.
        root: an empty folder for everything the machine has.
        program: what to run as `wire`; the console script beside the tests' Python unless a test brings a stand-in.
        env: more for the environment of all its processes.
        forks: whether commands may be forks of a warm interpreter (see `support.warm`).
    """

    def __init__(
        self,
        name: str,
        root: Path,
        *,
        program: Path | None = None,
        env: Mapping[str, str] | None = None,
        forks: bool = not sizes.FULL,
    ) -> None:
        self.name = name
        self.root = root
        self.program = program or installed()
        self.forks = forks
        self.home = root / "home"
        self.wire_home = root / "wire"
        self.log_file = root / "daemon.log"
        self.daemon: Daemon | None = None
        self.sent: list[str] = []
        """Ids of all messages whose `send` exited 0, in order: what the oracle asks for."""
        self._mark = f"TEST_MACHINE={root}"
        self._spawned: list[subprocess.Popen[bytes]] = []
        for folder in (self.home, self.home / "run", self.home / "tmp"):
            folder.mkdir(parents=True, mode=0o700)
        (self.home / ".gitconfig").touch()
        scripts = str(self.program.parent)
        git_folder = str(Path(shutil.which("git") or "/usr/bin/git").parent)
        self.env: dict[str, str] = {
            "PATH": ":".join(dict.fromkeys([scripts, git_folder, *_STANDARD_PATH.split(":")])),
            "HOME": str(self.home),
            "WIRE_HOME": str(self.wire_home),
            "GIT_CONFIG_GLOBAL": str(self.home / ".gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_DATA_HOME": str(self.home / ".local/share"),
            "XDG_STATE_HOME": str(self.home / ".local/state"),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "TMPDIR": str(self.home / "tmp"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "USER": name,
            "LOGNAME": name,
            "TEST_MACHINE": str(root),
            **(env or {}),
        }

    def __repr__(self) -> str:
        return f"Machine({self.name!r}, {str(self.root)!r})"

    # Commands

    def wire(
        self,
        *args: str | Path,
        input: bytes | str | None = None,
        env: Mapping[str, str | None] | None = None,
        check: bool = True,
        timeout: float = 60.0,
        cwd: Path | None = None,
    ) -> Result:
        """Run `wire ARGS` to its end, as a process of its own (see `support.warm`).

        Args:
            args: the arguments.
            input: for its stdin, which is empty otherwise.
            env: changes to the machine's environment; None removes a variable.
            check: whether another exit status than 0 is a failure of the test.
            timeout: seconds after which the command is killed and the test fails.
            cwd: the folder to run in; the machine's home unless given.

        Raises:
            CommandFailed: it exited non-zero and `check` is set.
            subprocess.TimeoutExpired: it took too long.
        """
        argv = (str(self.program), *map(str, args))
        given = input.encode() if isinstance(input, str) else input or b""
        environ, folder = self.environ(env), cwd or self.home
        begin = time.monotonic()
        if self.forks and self.program == installed() and warm.serves(environ):
            status, out, err = _warm().run(argv, given=given, env=environ, cwd=folder, timeout=timeout)
        else:
            done = subprocess.run(argv, input=given, capture_output=True, env=environ, cwd=folder, timeout=timeout)
            status, out, err = done.returncode, done.stdout, done.stderr
        result = Result(argv, status, out, err, time.monotonic() - begin)
        if check and result.status:
            raise CommandFailed(result)
        return result

    def shell(self, script: str, **env: str | None) -> Result:
        """Run a line of shell in the machine's home; the status is that of the first command of a pipe that failed."""
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {script}"],
            cwd=self.home,
            env=self.environ(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        return Result((script,), done.returncode, done.stdout, done.stderr, 0.0)

    def json(self, *args: str | Path, check: bool = True, **rest: Any) -> Any:
        """Run `wire ARGS --json` and return the one JSON value that it prints."""
        return self.wire(*args, "--json", check=check, **rest).json()

    def jsonl(self, *args: str | Path, check: bool = True, **rest: Any) -> list[Any]:
        """Run `wire ARGS --json` and return the JSON values that it prints, one a line."""
        return self.wire(*args, "--json", check=check, **rest).jsonl()

    def send(self, to: str, *args: str | Path, **rest: Any) -> str:
        """Run `wire send TO ARGS`, remember the id that it prints for the oracle, and return it."""
        identities = self.remember(self.wire("send", to, *args, **rest))
        assert len(identities) == 1, f"one id expected, found {identities}"
        return identities[0]

    def remember(self, result: Result) -> list[str]:
        """Take the ids that a `send` or `reply` printed as promised: from now on the oracle asks for them."""
        if result.status:
            raise CommandFailed(result)
        identities = [found[0] for line in result.stdout.split("\n") if (found := _IDENTITY.search(line))]
        self.sent += identities
        return identities

    def spawn(
        self, *args: str | Path, env: Mapping[str, str | None] | None = None, **popen: Any
    ) -> subprocess.Popen[bytes]:
        """Start `wire ARGS` with pipes, in a process group of its own, and return at once.

        The machine ends it at the latest when it is closed itself.
        """
        given: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "cwd": self.home,
        }
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [str(self.program), *map(str, args)],
            env=self.environ(env),
            start_new_session=True,
            **(given | popen),
        )
        self._spawned.append(process)
        return process

    def environ(self, changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """Return the environment of this machine's processes, with some variables changed or (None) removed."""
        changed: dict[str, str | None] = {**self.env, **(changes or {})}
        return {name: value for name, value in changed.items() if value is not None}

    # The daemon

    def start_daemon(
        self,
        *args: str,
        env: Mapping[str, str | None] | None = None,
        ready: bool = True,
        timeout: float = 30.0,
        prefix: tuple[str, ...] = (),
    ) -> Daemon:
        """Start `wire daemon run` and wait until it says that it is ready (sd_notify's `READY=1`).

        Args:
            args: more arguments for it.
            env: changes to the environment, as for `wire`.
            ready: False returns at once, for a daemon that is expected to refuse.
            timeout: seconds to become ready.
            prefix: a command to run it under, which then gets the signals too: `("strace", "-D", "-f", …)`, where
                -D makes strace the daemon's child instead of its parent.

        Raises:
            AssertionError: it ended, or was not ready in time; with its log.
        """
        assert self.daemon is None, f"{self.name} has a daemon already"
        notices = Notices()
        with self.log_file.open("ab") as log:
            start = log.tell()
            process = subprocess.Popen(
                [*prefix, str(self.program), "daemon", "run", *args],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environ({"NOTIFY_SOCKET": notices.address, **(env or {})}),
                cwd=self.home,
                start_new_session=True,
            )
        self.daemon = Daemon(process, notices, start)
        end = time.monotonic() + timeout
        while ready and not notices.wait("READY=1", 0.05):
            if process.poll() is not None:
                self._forget_daemon()
                raise AssertionError(f"{self.name}'s daemon exited {process.returncode}:\n{self.log(start)}")
            if time.monotonic() > end:
                raise AssertionError(f"{self.name}'s daemon is not ready after {timeout:g} s:\n{self.log(start)}")
        return self.daemon

    def stop_daemon(self, sig: int = signal.SIGTERM, timeout: float = 20.0) -> int:
        """Send the daemon (not its children) a signal, wait for its end, and return its exit status.

        Raises:
            AssertionError: it did not end in time; it is killed, and its log shown.
        """
        daemon = self._running()
        daemon.process.send_signal(sig)
        try:
            status = daemon.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            self.kill_daemon()
            log = self.log(daemon.log_start)
            raise AssertionError(f"{self.name}'s daemon is alive {timeout:g} s after signal {sig}:\n{log}") from error
        self._forget_daemon()
        return status

    def kill_daemon(self) -> None:
        """Kill the daemon and everything it started at once, as a crash of the machine would."""
        daemon = self._running()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGKILL)
        daemon.process.wait(10)
        self._forget_daemon()
        # Its git children live in sessions of their own; what the test spawned beside it stays.
        procs.kill_marked(self._mark, spare_groups=[process.pid for process in self._spawned])

    def log(self, start: int = 0) -> str:
        """Return what this machine's daemons printed, from a byte offset on."""
        if not self.log_file.exists():
            return ""
        return self.log_file.read_bytes()[start:].decode("utf-8", "replace")

    def _running(self) -> Daemon:
        assert self.daemon is not None, f"{self.name} has no daemon"
        return self.daemon

    def _forget_daemon(self) -> None:
        daemon = self._running()
        daemon.notices.close()
        self.daemon = None

    # Places

    @property
    def clones(self) -> list[Path]:
        """The clones of all wires of this machine."""
        folder = self.wire_home / "clones"
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def clone(self, wire: str | None = None) -> Path:
        """Return the clone of a wire: of the only one unless it is named."""
        if wire is not None:
            return self.wire_home / "clones" / wire
        (only,) = self.clones
        return only

    def segment(self, channel: str, number: int = 1, *, wire: str | None = None) -> Path:
        """Return the path of a segment in the clone: `segment("mac/spark")`."""
        return self.clone(wire) / "_coordination" / channel / f"{number:06}.jsonl"

    # The end

    def close(self) -> None:
        """End the daemon and what else was started here.

        Raises:
            AssertionError: the daemon did not stop when told, or a process outlived the one that started it.
        """
        problems = []
        for process in self._spawned:
            _end(process)
        if self.daemon is not None:
            if self.daemon.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    # Whatever the test had stopped must be able to hear the signal.
                    os.killpg(self.daemon.pid, signal.SIGCONT)
            try:
                self.stop_daemon()
            except AssertionError as error:
                problems.append(str(error))
        if left := procs.kill_marked(self._mark, grace=3.0):
            shown = "\n".join(f"  {process.pid}: {process.command}" for process in left)
            problems.append(f"{self.name} left processes behind:\n{shown}")
        assert not problems, "\n".join(problems)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a spawned process with its group, and close our ends of its pipes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
    for pipe in _pipes(process):
        # A write that was still buffered has no reader any more.
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


def _pipes(process: subprocess.Popen[bytes]) -> Iterator[IO[bytes]]:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            yield pipe
