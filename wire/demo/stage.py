"""The demo's stage: a temporary folder with a hub and machines, and nothing of it left behind.

Everything that is started here carries a mark in its environment and is known by its process. `close` asks it to end,
ends it, and looks once more for what carries the mark, since git's helpers live in sessions of their own.
"""

import contextlib
import json
import os
import shutil
import signal
import site
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeVar

from wire.errors import WireError

COMMAND_SECONDS = 30.0
WAIT_SECONDS = 20.0
GRACE_SECONDS = 5.0
_MARK = "WIRE_DEMO"
_TOLD_BYTES = 600
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What would redirect a child's git or wire, or let a daemon report to somebody else's service manager.
_DROPPED = ("GIT_", "WIRE_", "XDG_", "NOTIFY_", "WATCHDOG_")

T = TypeVar("T")


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    out: bytes
    err: bytes


def failed(text: str) -> WireError:
    """Return the error for something that the demo promised and that did not happen."""
    return WireError(text, reason="demo-failed")


def eventually(what: str, look: Callable[[], T], *, instead: Callable[[], str] = str) -> T:
    """Call `look` until its answer is true, and return the answer.

    Args:
        instead: says what there is instead, for the error.

    Raises:
        WireError: it never was, within `WAIT_SECONDS`.
    """
    end = time.monotonic() + WAIT_SECONDS
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > end:
            found = instead()
            raise failed(f"this did not happen within {WAIT_SECONDS:g} s: {what}" + (f"; {found}" if found else ""))
        time.sleep(0.1)


class Stage:
    """A temporary folder, and everything that runs in it.

    Args:
        program: how to start `wire`: the program and arguments before its own.
        environ: the environment of the caller; PATH and locale are kept, homes and identities are not.
    """

    def __init__(self, program: Sequence[str], environ: Mapping[str, str]) -> None:
        self.folder = ""
        self._program = list(program)
        self._outside = dict(environ)
        self._running: dict[subprocess.Popen[bytes], int] = {}

    def __enter__(self) -> Self:
        # Real, since macOS has its temporary folders behind a link.
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="wire-demo-"))
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        left = self.close()
        if left and kind is None:
            raise failed(f"left behind and ended only now: {', '.join(left)}")

    def close(self) -> list[str]:
        """End every process, remove the folder, and return the commands of processes that nobody had ended."""
        with _undisturbed():
            self._end_all()
            left = self._sweep()
            _remove(self.folder)
        return left

    def environ(self, home: str) -> dict[str, str]:
        """Return the environment of processes whose home is the given folder."""
        kept = {name: value for name, value in self._outside.items() if not name.startswith(_DROPPED)}
        # Python finds a program that was installed with `pip install --user` below the user's own home.
        kept.setdefault("PYTHONUSERBASE", site.getuserbase())
        return {**kept, "HOME": home, "TMPDIR": home, "GIT_CONFIG_NOSYSTEM": "1", _MARK: self.folder}

    def machine(self, name: str) -> "Machine":
        """Return a new machine with a home of its own."""
        home = os.path.join(self.folder, name)
        os.mkdir(home, 0o700)
        return Machine(self, name, home)

    def run(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        *,
        cwd: str | None = None,
        input: bytes | None = None,
        timeout: float = COMMAND_SECONDS,
    ) -> Ended:
        """Run a command to its end.

        Raises:
            WireError: it cannot be started, or takes longer than `timeout` seconds.
        """
        process = self.start(argv, environ, cwd=cwd, ends_with=signal.SIGINT)
        try:
            out, err = process.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            raise failed(f"`{' '.join(argv)}` did not end within {timeout:g} s") from None
        del self._running[process]
        return Ended(process.returncode, out, err)

    def start(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        *,
        cwd: str | None = None,
        ends_with: int = signal.SIGTERM,
        log: str | None = None,
    ) -> "subprocess.Popen[bytes]":
        """Start a process, which is ended with the stage; its output goes to pipes or to the file `log`."""
        with contextlib.ExitStack() as stack:
            out: Any = subprocess.PIPE if log is None else stack.enter_context(open(log, "ab"))
            try:
                # A session of its own: Ctrl-C at the terminal reaches the demo alone, which then ends things in order.
                process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.PIPE if log is None else subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env=dict(environ),
                    cwd=cwd or self.folder,
                    start_new_session=True,
                )
            except OSError as error:
                raise failed(f"cannot start {argv[0]}: {error.strerror or error}") from error
        self._running[process] = ends_with
        return process

    def wire(self, environ: Mapping[str, str], *args: str) -> Ended:
        """Run `wire ARGS` to its end."""
        return self.run([*self._program, *args], environ)

    def start_wire(self, environ: Mapping[str, str], *args: str, log: str) -> "subprocess.Popen[bytes]":
        """Start `wire ARGS`."""
        return self.start([*self._program, *args], environ, log=log)

    def git(self, *args: str, cwd: str | None = None, who: str = "hub") -> bytes:
        """Run plain git, as the host or a person does, and return its output; raises WireError when it fails."""
        done = self._git(args, cwd, who)
        if done.status:
            raise failed(f"`git {' '.join(args)}` ended with {done.status}: {_tail(done.err)}")
        return done.out

    def blob(self, repository: str, name: str) -> bytes:
        """Return a file as a repository holds it, `main:path`; empty where it does not."""
        done = self._git(["-C", repository, "cat-file", "blob", name], None, "hub")
        return b"" if done.status else done.out

    def _git(self, args: Sequence[str], cwd: str | None, who: str) -> Ended:
        home = os.path.join(self.folder, f"home-{who}")
        os.makedirs(home, exist_ok=True)
        person = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", who), ("EMAIL", f"{who}@example.invalid"))
        }
        return self.run(["git", *args], {**self.environ(home), **person, "LC_ALL": "C"}, cwd=cwd)

    def forget(self, process: "subprocess.Popen[bytes]") -> None:
        """Note that a process was ended by whoever started it."""
        self._running.pop(process, None)

    def _end_all(self) -> None:
        alive = {process: how for process, how in self._running.items() if process.poll() is None}
        for process, how in alive.items():
            _signal(process, how)
        end = time.monotonic() + GRACE_SECONDS
        for process in alive:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()
        for process in self._running:
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        self._running.clear()

    def _sweep(self) -> list[str]:
        end = time.monotonic() + GRACE_SECONDS / 2
        while (left := _marked(f"{_MARK}={self.folder}")) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return list(left.values())


class Machine:
    """One machine: a home with keys, state and clone of its own, and at most one daemon."""

    def __init__(self, stage: Stage, name: str, home: str) -> None:
        self.name = name
        self.home = home
        self._stage = stage
        self._environ = {**stage.environ(home), "WIRE_HOME": os.path.join(home, "wire")}
        self._log = os.path.join(home, "daemon.log")
        self._daemon: subprocess.Popen[bytes] | None = None

    def wire(self, *args: str, expect: Sequence[int] = (0,)) -> bytes:
        """Run `wire ARGS` and return what it printed.

        Raises:
            WireError: another exit status than expected.
        """
        done = self._stage.wire(self._environ, *args)
        if done.status not in expect:
            wanted = " or ".join(map(str, expect))
            raise failed(
                f"`wire {' '.join(args)}` on {self.name} exited {done.status} where {wanted} was expected: "
                f"{_told(done)}{self._said()}"
            )
        return done.out

    def json(self, *args: str, expect: Sequence[int] = (0,)) -> list[dict[str, Any]]:
        """Run `wire ARGS --json` and return the objects that it printed, one a line."""
        out = self.wire(*args, "--json", expect=expect)
        try:
            return [json.loads(line) for line in out.split(b"\n") if line]
        except ValueError:
            raise failed(f"`wire {' '.join(args)} --json` on {self.name} printed no JSON: {_tail(out)}") from None

    def status(self, *args: str) -> int:
        """Run `wire ARGS` and return its exit status."""
        return self._stage.wire(self._environ, *args).status

    def start_daemon(self) -> None:
        """Start `wire daemon run` and wait until `wire status` finds it alive."""
        daemon = self._daemon = self._stage.start_wire(self._environ, "daemon", "run", log=self._log)

        def running() -> bool:
            if daemon.poll() is not None:
                raise failed(f"the daemon of {self.name} exited {daemon.returncode}{self._said()}")
            # Any exit status: at the beginning it may not have looked yet.
            return self.json("status", expect=range(256))[0].get("daemon") == "running"

        eventually(f"`wire status` finds the daemon of {self.name} alive", running)

    def stop_daemon(self) -> None:
        """Tell the daemon to end, and wait for it; raises WireError when it does not, or fails."""
        daemon = self._daemon
        if daemon is None:
            return
        daemon.terminate()
        try:
            status = daemon.wait(GRACE_SECONDS * 2)
        except subprocess.TimeoutExpired:
            raise failed(f"the daemon of {self.name} did not stop when told{self._said()}") from None
        if status:
            raise failed(f"the daemon of {self.name} was told to stop and exited {status}{self._said()}")
        self._daemon = None
        self._stage.forget(daemon)

    def journal(self, wire: str, channel: str) -> bytes:
        """Return what this machine's journal holds of its own channel: the sender's own copy, on disk."""
        path = os.path.join(self.home, "wire", "state", wire, "journal", channel, "000001.jsonl")
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            return file.read()
        return b""

    def accepted(self, wire: str, channel: str) -> bytes:
        """Return what this machine's own git holds as verified of a channel."""
        clone = os.path.join(self.home, "wire", "clones", wire)
        return self._stage.blob(clone, f"refs/wire/accepted:_coordination/{channel}/000001.jsonl")

    def _said(self) -> str:
        try:
            with open(self._log, "rb") as file:
                text = _tail(file.read())
        except OSError:
            return ""
        return f"; its daemon's log ends: {text}" if text else ""


def _told(done: Ended) -> str:
    """Return what a failed command said: its text, or the text of its JSON."""
    try:
        return str(json.loads(done.out)["error"])
    except (ValueError, KeyError, TypeError):
        return _tail(done.err) or _tail(done.out) or "it printed nothing"


def _tail(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").strip()[-_TOLD_BYTES:]


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Signal a process, and with SIGKILL its whole group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


def _marked(mark: str) -> dict[int, str]:
    """Return the processes that were started with `mark` in their environment; none where there is no /proc."""
    wanted, found = mark.encode(), {}
    try:
        entries = [entry for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()]
    except OSError:
        return {}
    for entry in entries:
        with contextlib.suppress(OSError):
            with open(f"/proc/{entry}/environ", "rb") as file:
                environ = file.read().split(b"\0")
            if wanted in environ:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    found[int(entry)] = file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return found


def _remove(folder: str) -> None:
    """Remove a folder in which a process that is just dying may still have made a file."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(0.1)
    raise failed(f"could not remove {folder}; it is safe to remove by hand")


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let nothing interrupt what puts things away; it ends by itself within seconds."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
