"""Run git on one repository: find the program, harden the child, judge how it ended, and sweep after it.

What is below is wire's only way to git; `git.Git` gives it meaning. Rules that it keeps:

- Every call names the repository (`--git-dir`). git never looks for one in the folders above: where the clone is gone
  it refuses instead of finding somebody else's.
- An error carries the subcommand's name and git's own reason, redacted, and never the arguments.
- What a stopped child left behind (a half-written pack, a crash report, a lock on one of wire's own refs) is removed,
  if nobody else has it open.
"""

import contextlib
import copy
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wire.gitio import classify, environment
from wire.gitio.child import Cut, Ended, NotStarted, Runner
from wire.gitio.classify import GitFailed, Kind
from wire.gitio.limits import can_limit, in_force
from wire.gitio.reader import Object, Reader

if TYPE_CHECKING:
    import subprocess

OWN_REFS = os.path.join("refs", "wire")
"""The part of the refs that nobody but wire writes."""

_REF_CONTENT = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})\s*")

# POSIX counts `ulimit -f` in blocks of 512 bytes. Where a stricter hard limit is in force, that one stays.
_CAPPED = 'ulimit -c 0 2>/dev/null; ulimit -f "$0" 2>/dev/null; exec "$@"'
_BLOCK = 512


class Result(NamedTuple):
    """Hold how a git child ended; `stderr` is redacted."""

    status: int
    stdout: bytes
    stderr: str


class Core:
    """Run hardened git children on one repository, one at a time.

    Args:
        git_dir: absolute path of the repository.
        environ: the environment that wire was started with.
        work_tree: passed on where a command needs one.
        identity: name and address for commits and reflogs.
        timeout: seconds that a child may take unless a call says otherwise.
        extra_config: settings on top of the hardened ones.
        quarantine: see `Git`.

    Attributes:
        fetching: settings for a fetch.
        lingers: whether a child that stays may be used for reading little things.
    """

    def __init__(
        self,
        git_dir: str,
        *,
        environ: Mapping[str, str],
        work_tree: str | None,
        identity: tuple[str, str],
        timeout: float,
        extra_config: Iterable[tuple[str, str]],
        quarantine: Mapping[str, str] | None = None,
    ) -> None:
        self.git_dir = os.path.abspath(git_dir)
        self.environ = dict(environ)
        self.identity = identity
        self.timeout = timeout
        self.secrets: set[str] = set()
        extra = dict(extra_config)
        self.fetching = [(key, value) for key, value in environment.FETCHING if key not in extra]
        self._environment = {
            **environment.hardened(environ, self.git_dir, identity, extra.items()),
            **(quarantine or {}),
        }
        self._where = [f"--git-dir={self.git_dir}", *([f"--work-tree={work_tree}"] if work_tree else [])]
        self._runner = Runner(self.git_dir, plain=quarantine is not None)
        self._homeless = Runner(os.sep, plain=quarantine is not None)
        self.reader = Reader(self.git_dir, self._start_reading, timeout)
        self.lingers = False

    def beside(self, git_dir: str) -> "Core":
        """Return the same for another repository; what cancels the children of this one cancels those of both."""
        other = copy.copy(self)
        other.git_dir = git_dir
        other._where = [f"--git-dir={git_dir}"]
        return other

    def run(
        self,
        *args: str,
        input: bytes | None = None,
        timeout: float | None = None,
        ok: Iterable[int] = (0,),
        max_output: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """Run git and return what it said; see `Git.run`."""
        ended = self.spawn(args, input=input, timeout=timeout, max_output=max_output, env=env)
        self.judge(args, ended, ok)
        return Result(ended.status, ended.stdout, self.shown(ended.stderr))

    def spawn(
        self,
        args: Iterable[str],
        *,
        input: bytes | None = None,
        timeout: float | None = None,
        max_output: int | None = None,
        sink: Callable[[bytes], bool] | None = None,
        env: Mapping[str, str] | None = None,
        max_file: int | None = None,
        pass_fds: Iterable[int] = (),
        homeless: bool = False,
    ) -> Ended:
        """Run git and return how it ended, whatever that is.

        Args:
            env: variables on top of the hardened environment.
            max_file: bytes beyond which the child and all that it starts may write no file.
            homeless: run without a repository, for what concerns a remote alone.

        Raises:
            GitFailed: there is no git, or no repository.
        """
        if not homeless and not os.path.isdir(self.git_dir):
            raise GitFailed(
                f"there is no repository at {self.git_dir}; expected the clone of the wire",
                kind=Kind.CLONE,
                label="not-a-clone",
            )
        argv = [self.program("git"), *([] if homeless else self._where), *args]
        blocks = max(1, in_force(max_file) // _BLOCK) if max_file is not None else None
        outside = can_limit()
        if blocks is not None and not outside:
            argv = ["/bin/sh", "-c", _CAPPED, str(blocks), *argv]
        runner = self._homeless if homeless else self._runner
        began = time.time()
        try:
            ended = runner.run(
                argv,
                {**self._environment, **env} if env else self._environment,
                timeout=self.timeout if timeout is None else timeout,
                input=input,
                max_output=max_output,
                sink=sink,
                pass_fds=tuple(pass_fds),
                max_file=blocks * _BLOCK if blocks is not None and outside else None,
            )
        except NotStarted as e:
            raise GitFailed(str(e), kind=Kind.GIT_MISSING) from e
        if ended.status != 0:
            largest = self._sweep(ended, began)
            if blocks is not None and ended.cut is None and largest >= blocks * _BLOCK:
                # The signal that the limit sends kills a child of git's; git itself does not always tell.
                return ended._replace(cut="size")
        return ended

    def _start_reading(self) -> "subprocess.Popen[bytes]":
        argv = [self.program("git"), *self._where, "cat-file", "--batch-command"]
        # Not in the repository's folder: who works there is somebody who is not to be disturbed.
        return Runner(os.sep).start(argv, self._environment)

    def read(self, names: Sequence[str], *, max_size: int) -> list[Object] | None:
        """Read a few small objects without a child of their own; None where the ordinary way is to be taken."""
        return self.reader.read(names, max_size=max_size) if self.lingers else None

    def settings(self, settings: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return variables, for `spawn`'s `env`, that set these on top of all other settings."""
        return environment.further_config(self._environment, settings)

    def program(self, name: str) -> str:
        """Return the absolute path of a program on PATH; relative entries of PATH are never used.

        Raises:
            GitFailed: there is none (`git-missing`).
        """
        path = self._environment.get("PATH", os.defpath)
        for folder in path.split(os.pathsep):
            found = os.path.join(folder, name)
            if os.path.isabs(folder) and os.access(found, os.X_OK) and not os.path.isdir(found):
                return found
        raise GitFailed(
            f"{name} not found in PATH={path}",
            kind=Kind.GIT_MISSING,
            next_step="install git 2.39 or newer, or give the service a PATH that has it",
        )

    def judge(self, args: Iterable[str], ended: Ended, ok: Iterable[int] = (0,)) -> None:
        """Raise the error that a child's end means, if it means one."""
        if ended.cut is None and ended.status in tuple(ok):
            return
        raise self.failure(args, ended)

    def failure(self, args: Iterable[str], ended: Ended) -> GitFailed:
        """Return the error for a child that ended badly or was ended."""
        command = next((arg for arg in args if not arg.startswith("-")), "")
        stderr = ended.stderr.decode("utf-8", "replace")
        if ended.cut is None:
            return classify.failed(command, stderr, ended.status, secrets=self.secrets)
        kind, label, why = _CUTS[ended.cut]
        said = "; ".join(classify.redact(line, self.secrets) for line in classify.reason_lines(stderr))
        return GitFailed(
            f"git {command} {why}" + (f"; until then it said: {said}" if said else ""),
            kind=kind,
            label=label,
            stderr=self.shown(ended.stderr),
        )

    def shown(self, stderr: bytes) -> str:
        """Return what git printed in a form that may be shown."""
        return classify.redact(classify.printable(stderr.decode("utf-8", "replace"), keep_lines=True), self.secrets)

    def run_other(self, argv: list[str], timeout: float) -> Ended:
        """Run another program than git (ssh, to end its connections) with the same care and outside `cancel`."""
        return Runner(os.sep).run([self.program(argv[0]), *argv[1:]], self._environment, timeout=timeout)

    def cancel(self, *, stop: bool) -> None:
        """See `Git.cancel`."""
        self.reader.interrupt(stop=stop)
        self._runner.cancel(stop=stop)
        self._homeless.cancel(stop=stop)

    def busy_until(self) -> float | None:
        """See `Git.busy_until`."""
        times = (self._runner.busy_until, self._homeless.busy_until)
        return max((at for at in times if at is not None), default=None)

    def last_ended(self) -> float:
        """See `Git.last_ended`."""
        return max(self._runner.ended, self._homeless.ended)

    def clear_locks(self, *, since: float = 0.0) -> list[str]:
        """Remove lock files below `refs/wire` that changed after `since` (seconds of the epoch); return their paths."""
        removed = []
        for folder, _, names in os.walk(os.path.join(self.git_dir, OWN_REFS)):
            for path in (os.path.join(folder, name) for name in names if name.endswith(".lock")):
                with contextlib.suppress(FileNotFoundError):
                    if os.stat(path).st_ctime >= since:
                        os.unlink(path)
                        removed.append(path)
        return removed

    def clear_broken(self, names: Iterable[str]) -> list[str]:
        """See `Git.clear_broken`."""
        removed = []
        for name in names:
            path = os.path.join(self.git_dir, name)
            try:
                with open(path, "rb") as file:
                    content = file.read(4096)
            except OSError:
                continue
            if not content.startswith(b"ref: ") and _REF_CONTENT.fullmatch(content) is None:
                os.unlink(path)
                removed.append(name)
        return removed

    def _sweep(self, ended: Ended, began: float) -> int:
        """Remove what a failed child left; return the size of the largest half-written pack."""
        # Clocks of file systems tick coarsely, and behind the system's.
        since = began - 0.1
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.git_dir, f"fast_import_crash_{ended.pid}"))
        packs = os.path.join(self.git_dir, "objects", "pack")
        largest = 0
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(packs):
                if name.startswith("tmp_"):
                    largest = max(largest, _remove_unused(os.path.join(packs, name), since))
        if ended.killed:
            self.clear_locks(since=since)
        return largest


_CUTS: Mapping[Cut, tuple[Kind, str, str]] = {
    "timeout": (Kind.TIMEOUT, "", "did not end in the time it had, and was stopped with all that it had started"),
    "cancelled": (Kind.CANCELLED, "", "was stopped on request"),
    "output": (Kind.TOO_LARGE, "output", "printed more than is allowed, and was stopped"),
    "size": (Kind.TOO_LARGE, "size-cap", "brought more bytes than one transfer may have, and was stopped"),
    "enough": (Kind.TOO_LARGE, "output", "printed more than is allowed, and was stopped"),
}


def _remove_unused(path: str, since: float) -> int:
    """Remove a file that appeared after `since` unless somebody has it open; return its size, 0 if it is older.

    A person may run git in the clone at the same time. Only Linux can tell (a write lease is refused while the file is
    open elsewhere); on other systems the file stays until the packing of a later day.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        about = os.fstat(fd)
        if about.st_ctime < since:
            return 0
        if hasattr(fcntl, "F_SETLEASE"):
            # Fails while it is in use, and on a file system without leases: then it will be old one day.
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
                os.unlink(path)
        return about.st_size
    finally:
        os.close(fd)
