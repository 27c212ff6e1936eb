"""Plain git, run by the tests themselves: no user's configuration, no `GIT_*` of ours, no prompt."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PROGRAM = shutil.which("git") or "git"

PERSON = {
    "GIT_AUTHOR_NAME": "Vera Vandal",
    "GIT_AUTHOR_EMAIL": "vera@example.invalid",
    "GIT_COMMITTER_NAME": "Vera Vandal",
    "GIT_COMMITTER_EMAIL": "vera@example.invalid",
}
"""Who makes the tests' own commits: nobody on any wire."""


class GitFailed(AssertionError):
    """A git command of the tests failed; `status` and `stderr` say how."""

    def __init__(self, argv: Sequence[str], status: int, stderr: bytes) -> None:
        self.status = status
        self.stderr = stderr.decode("utf-8", "replace")
        super().__init__(f"git exited {status}: {' '.join(argv)}\n{self.stderr}")


def clean_environ(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which git behaves the same on every machine."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        **PERSON,
        **(extra or {}),
    }


def git(
    where: str | Path,
    *args: str | Path,
    input: bytes | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> bytes:
    """Run git in a folder (work tree or bare repository) and return its output.

    Raises:
        GitFailed: it exited non-zero.
    """
    argv = [_PROGRAM, "-C", str(where), *map(str, args)]
    done = subprocess.run(argv, input=input or b"", capture_output=True, env=clean_environ(env), timeout=timeout)
    if done.returncode:
        raise GitFailed(argv, done.returncode, done.stderr)
    return done.stdout


def start(where: str | Path, *args: str | Path) -> subprocess.Popen[bytes]:
    """Start a git that answers as long as it is asked; `end` ends it."""
    argv = [_PROGRAM, "-C", str(where), *map(str, args)]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environ())


def end(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes of a git that `start` started, and wait for it."""
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()
    process.wait(10)


def line(where: str | Path, *args: str | Path) -> str:
    """Run git and return its output as one stripped text."""
    return git(where, *args).decode("utf-8", "surrogateescape").strip()
