"""Run one child process to its end, and leave nothing of it behind.

Rules that it keeps:

1. Children are started through GitPython (`git.cmd.Git(folder).execute(..., as_process=True)`), imported at the first
   use: the import costs 80 ms and starts a `git version`, so a hook that holds up somebody's push goes without
   (`plain`). GitPython adds to the inherited environment and cannot take
   away, so variables that must go are removed by `env -u`.
2. A child leads its own session and process group: it has no terminal, and all that it started can be signalled.
3. Its pipes are drained together and into bounded memory. It is neither trusted to end when its pipes close nor to
   close them when it ends: a helper in the background may hold them.
4. Whatever ends a run early (time, `cancel()`, an exception, a signal to us, too much output) ends the group: SIGTERM,
   so that git removes its lock files, a few seconds of grace, then SIGKILL.

    ended = Runner("/w/.git").run(["/usr/bin/git", "version"], {"PATH": "/usr/bin"}, timeout=10)

It knows nothing of git's meaning: an exit status is a number here.
"""

import contextlib
import functools
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

from wire.gitio import groups, limits

if TYPE_CHECKING:
    from git.cmd import Git as GitCommand

Cut = Literal["timeout", "cancelled", "output", "enough", "size"]
"""Why a run did not end by itself: its time was up, `cancel()`, more output than allowed, the sink had enough, or
(found out by the caller) a file reached its limit."""

GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL."""

_DEADLY = (signal.SIGTERM, signal.SIGHUP)
_TICK = 0.5
_CHUNK = 1 << 16
_STDERR_HALF = 1 << 16
_ENV = "/usr/bin/env"


class Ended(NamedTuple):
    """Hold what a child left: exit status (negative: a signal), output, and why it was cut short, if it was."""

    status: int
    stdout: bytes
    stderr: bytes
    cut: Cut | None
    pid: int
    killed: bool


class NotStarted(Exception):
    """The program could not be started at all; the text says why."""


class Runner:
    """Run children in one folder, one at a time.

    Args:
        plain: start them without GitPython.

    One thread uses a runner; only `cancel` may be called from any other.

    Attributes:
        busy_until: the monotonic second by which the child that runs now has ended, one way or another; None while
            none runs.
        ended: the monotonic second at which the last child ended, 0 before the first.
    """

    def __init__(self, folder: str, *, plain: bool = False) -> None:
        self._plain = plain
        self.busy_until: float | None = None
        self.ended = 0.0
        self._folder = folder
        self._lock = threading.Lock()
        self._running = False
        self._group: int | None = None
        self._asked_to_end = False
        self._stopped = False
        self._killed = False

    def run(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        timeout: float,
        input: bytes | None = None,
        max_output: int | None = None,
        sink: Callable[[bytes], bool] | None = None,
        pass_fds: Sequence[int] = (),
        max_file: int | None = None,
    ) -> Ended:
        """Run `argv` and return how it ended.

        Args:
            environment: everything that the child sees; nothing else of ours gets through.
            timeout: seconds until the whole group is ended.
            input: bytes for its standard input, which is `/dev/null` otherwise.
            max_output: bytes of standard output after which it is ended.
            sink: takes each piece of standard output instead of it being collected; False ends the child.
            max_file: bytes beyond which it and all that it starts may write no file; see `limits`.

        Raises:
            NotStarted: the program or the folder cannot be used.
        """
        with self._lock:
            if self._stopped:
                return Ended(-signal.SIGTERM, b"", b"", "cancelled", 0, False)
            # From now on `cancel` means this child, also while it is being started.
            self._running, self._asked_to_end, self._killed = True, False, False
            self.busy_until = time.monotonic() + timeout + 3 * GRACE
        with _outliving(self._told_to_end):
            try:
                process = self._start(argv, environment, input is not None, pass_fds)
                try:
                    if max_file is not None:
                        limits.limit(process.pid, max_file=max_file)
                    return self._converse(process, input or b"", time.monotonic() + timeout, max_output, sink)
                except BaseException:
                    self._end(process)
                    raise
                finally:
                    for stream in (process.stdin, process.stdout, process.stderr):
                        if stream is not None:
                            with contextlib.suppress(OSError):
                                stream.close()
            finally:
                with self._lock:
                    self._running, self._group, self.busy_until = False, None, None
                    self.ended = time.monotonic()

    def start(self, argv: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """Start a child that stays, with three pipes; whoever started it ends it.

        Raises:
            NotStarted: as `run`.
        """
        return self._start(argv, environment, True, ())

    def cancel(self, *, stop: bool = False) -> None:
        """End the running child's group gracefully; callable from any thread, harmless when nothing runs.

        Args:
            stop: also refuse every later child, for a thread that is to finish.
        """
        with self._lock:
            self._stopped = self._stopped or stop
            self._asked_to_end = self._running
            if self._group is not None:
                groups.signal_group(self._group, signal.SIGTERM)

    def _told_to_end(self) -> None:
        # In a signal handler, which may have interrupted who holds the lock.
        self._asked_to_end = True
        if self._group is not None:
            groups.signal_group(self._group, signal.SIGTERM)

    def _wants_end(self) -> bool:
        return self._asked_to_end

    def _start(
        self, argv: Sequence[str], environment: Mapping[str, str], has_input: bool, pass_fds: Sequence[int]
    ) -> "subprocess.Popen[bytes]":
        if self._plain:
            return self._start_plainly(argv, environment, has_input, pass_fds)
        # Names in argv at worst; values never are.
        unwanted = [name for name in os.environ if name not in environment]
        prefix = [_ENV, *(part for name in unwanted for part in ("-u", name))] if unwanted else []
        try:
            started = _command_class()(self._folder).execute(
                [*prefix, *argv],
                istream=subprocess.PIPE if has_input else None,
                as_process=True,
                env=environment,
                start_new_session=True,
                pass_fds=tuple(pass_fds),
            )
        except OSError as e:
            raise NotStarted(f"cannot start {argv[0]}: {e.strerror or e}") from e
        except ImportError as e:
            # GitPython asks git for its version while it is imported, and git gave none.
            raise NotStarted(f"cannot start {argv[0]}: it does not tell its version ({e})") from e
        except _not_found() as e:
            raise NotStarted(f"cannot start {argv[0]}: no such program") from e
        process = started.proc
        if process is None:
            raise NotStarted(f"cannot start {argv[0]}")
        # From here on it is ours: GitPython's wrapper ends it when it is collected, and waits without a limit.
        started.proc = None
        return process

    def _start_plainly(
        self, argv: Sequence[str], environment: Mapping[str, str], has_input: bool, pass_fds: Sequence[int]
    ) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                argv,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=tuple(pass_fds),
            )
        except OSError as e:
            raise NotStarted(f"cannot start {argv[0]}: {e.strerror or e}") from e

    def _converse(
        self,
        process: "subprocess.Popen[bytes]",
        data: bytes,
        deadline: float,
        max_output: int | None,
        sink: Callable[[bytes], bool] | None,
    ) -> Ended:
        talk = _Conversation(process, data, max_output, sink, self._wants_end)
        with self._lock:
            self._group = process.pid
        cut = talk.run(deadline)
        if cut is not None or self._asked_to_end:
            # Also where the child itself was quick to go: what it had started may not have been.
            self._end(process)
        # Once it has been waited for, its number may be another's.
        with self._lock:
            self._group = None
        status = process.wait()
        if cut is None and status != 0 and self._asked_to_end:
            cut = "cancelled"
        return Ended(status, bytes(talk.stdout), bytes(talk.stderr), cut, process.pid, self._killed)

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        group = process.pid
        with self._lock:
            self._group = None
        give_up = time.monotonic() + GRACE
        groups.signal_group(group, signal.SIGTERM)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
            # The leader is gone; what it started may still be cleaning up (a local remote's receive-pack has locks).
            groups.wait_for_group(group, give_up)
        finally:
            if groups.group_exists(group):
                self._killed = True
                groups.signal_group(group, signal.SIGKILL)
                # They are as good as gone; but who looks right away should see none.
                groups.wait_for_group(group, time.monotonic() + 0.5)
            # A process that sleeps inside the kernel (a dead network disk) can't be waited for; it dies when it wakes.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)


class _Conversation:
    """Feed and drain one process until it ends, a limit is reached or somebody wants the end."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        data: bytes,
        max_output: int | None,
        sink: Callable[[bytes], bool] | None,
        wants_end: Callable[[], bool],
    ) -> None:
        if process.stdout is None or process.stderr is None:
            raise NotStarted("a child without pipes")
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._process = process
        self._outputs = (process.stdout, process.stderr)
        self._stdin = process.stdin
        self._left = memoryview(data)
        self._max_output = max_output
        self._sink = sink
        self._wants_end = wants_end
        self._poll = selectors.PollSelector()
        self._exit_fd = _exit_fd(process.pid)
        if self._exit_fd is not None:
            self._poll.register(self._exit_fd, selectors.EVENT_READ)
        for stream in self._outputs:
            os.set_blocking(stream.fileno(), False)
            self._poll.register(stream, selectors.EVENT_READ)
        if self._stdin is not None:
            os.set_blocking(self._stdin.fileno(), False)
            self._poll.register(self._stdin, selectors.EVENT_WRITE)

    def run(self, deadline: float) -> Cut | None:
        """Return None when the process ended by itself, or why it has to be ended."""
        try:
            return self._run(deadline)
        finally:
            self._poll.close()
            if self._exit_fd is not None:
                os.close(self._exit_fd)

    def _run(self, deadline: float) -> Cut | None:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            ready: set[object] = {key.fileobj for key, _ in self._poll.select(self._pause(left))}
            ended = self._exit_fd in ready if self._exit_fd is not None else self._process.poll() is not None
            if self._stdin is not None and self._stdin in ready:
                self._write(self._stdin)
            cut = self._read(ended, ready)
            if cut is not None:
                return cut
            if ended:
                return None
            if self._wants_end():
                return "cancelled"

    def _pause(self, left: float) -> float:
        if self._exit_fd is not None:
            return min(left, _TICK)
        # Without a descriptor for the exit we look for it, often once its pipes are closed.
        return min(left, 0.05 if len(self._poll.get_map()) else 0.002)

    def _write(self, stdin: IO[bytes]) -> None:
        try:
            if self._left:
                self._left = self._left[os.write(stdin.fileno(), self._left[: _CHUNK * 4]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            # It ended without reading all; its status says why.
            self._left = memoryview(b"")
        if not self._left:
            self._poll.unregister(stdin)
            with contextlib.suppress(BrokenPipeError):
                stdin.close()

    def _read(self, ended: bool, ready: set[object]) -> Cut | None:
        for stream in self._outputs:
            while stream.fileno() in self._poll.get_map() and (ended or stream in ready):
                chunk = _read_some(stream)
                if chunk is None:
                    break
                if not chunk:
                    self._poll.unregister(stream)
                    break
                if stream is self._outputs[1]:
                    self._note(chunk)
                elif (cut := self._take(chunk)) is not None:
                    return cut
                if not ended:
                    break
        return None

    def _take(self, chunk: bytes) -> Cut | None:
        if self._sink is not None:
            return None if self._sink(chunk) else "enough"
        self.stdout += chunk
        return "output" if self._max_output is not None and len(self.stdout) > self._max_output else None

    def _note(self, chunk: bytes) -> None:
        self.stderr += chunk
        if len(self.stderr) > 3 * _STDERR_HALF:
            # The cause stands at the beginning or at the end of a flood.
            del self.stderr[_STDERR_HALF:-_STDERR_HALF]


@contextlib.contextmanager
def _outliving(end_child: Callable[[], None]) -> Iterator[None]:
    """End the child first when a signal is to end this process: in a session of its own it would be left behind.

    Only where the signal would do just that. Whoever has a handler of its own stays in charge, and so do threads.
    """
    got: list[int] = []

    def note(number: int, frame: object) -> None:
        got.append(number)
        end_child()

    here = threading.current_thread() is threading.main_thread()
    ours = [number for number in _DEADLY if here and signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if got:
            signal.raise_signal(got[0])


def _read_some(stream: IO[bytes]) -> bytes | None:
    try:
        return os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return None


def _exit_fd(pid: int) -> int | None:
    # Linux tells of an exit through a descriptor; elsewhere we look.
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


_importing = threading.Lock()


@functools.cache
def _command_class() -> "type[GitCommand]":
    # Where git is missing GitPython would refuse to be imported; we say that ourselves, with the PATH.
    name = "GIT_PYTHON_REFRESH"
    with _importing:
        before = os.environ.get(name)
        os.environ[name] = "quiet"
        try:
            from git.cmd import Git as GitCommand
        finally:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before
    return GitCommand


def _not_found() -> type[Exception]:
    from git.exc import GitCommandNotFound

    return GitCommandNotFound
