"""Clones as the product's own `Git` sees them, for the tests of `wire.gitio` and of what stands on it."""

from pathlib import Path

from support.remote import BareRemote
from wire.gitio import Drop, Git, Put

MAIN = "refs/heads/main"
INCOMING = f"+{MAIN}:refs/wire/incoming"
OUT = "refs/wire/out"
MB = 1 << 20


def commit(git: Git, parent: str | None, *changes: Put | Drop, ref: str = OUT) -> str:
    """Make a commit on a parent's files, and return it."""
    return git.write_commit(ref, base=parent, parents=[parent] if parent else [], message="a change", changes=changes)


def seed(git: Git, remote: BareRemote) -> str:
    """Push a first commit with one line to an empty remote, and return it."""
    first = commit(git, None, Put(b"_coordination/mac/spark/000001.jsonl", b"one\n"))
    assert git.push(remote.url, f"{first}:{MAIN}").status == "ok"
    return first


def script(path: Path, text: str) -> Path:
    """Write a shell script that can be executed, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def failing_ssh(folder: Path, environ: dict[str, str], then: str) -> dict[str, str]:
    """Return `environ` with an `ssh` in front that notes its pid in `folder/pids` and does `then`.

    It answers git's probe (`-G`) first; without that git would not get as far as a connection.
    """
    script(folder / "bin" / "ssh", f'case "$1" in -G) exit 0;; esac\necho $$ >>{folder}/pids\n{then}')
    return {**environ, "PATH": f"{folder}/bin:{environ['PATH']}"}
