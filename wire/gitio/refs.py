"""Read refs from their files, where git keeps them in files; everything else is git's to answer.

A cycle asks for a handful of refs, and a child for each would be a good part of what it costs. What is read here is
what `git rev-parse` reads first, too: a loose file wins over `packed-refs`. A ref that is not there, or not in this
form (packed, in a reftable, of another worktree), is None: then git is asked.
"""

import os
import re

_NAME = re.compile(r"HEAD|refs(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)+", re.ASCII)
_TARGET = re.compile(rb"ref: (refs/[\x21-\x7e]+)\n")
_ID = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\n")
_MOST = 4096
_DEEPEST = 5


def target(git_dir: str, name: str) -> str | None:
    """Return the ref that a symbolic ref names; None where its file does not tell."""
    found = _TARGET.fullmatch(_read(git_dir, name))
    # What a repository with reftables shows to programs that look for a file.
    return found[1].decode("ascii") if found and found[1] != b"refs/heads/.invalid" else None


def resolve(git_dir: str, name: str) -> str | None:
    """Return the object id that a full ref name or HEAD stands for; None where the files do not tell."""
    for _ in range(_DEEPEST):
        data = _read(git_dir, name)
        if found := _ID.fullmatch(data):
            return found[1].decode("ascii")
        if not (link := _TARGET.fullmatch(data)):
            return None
        name = link[1].decode("ascii")
    return None


def below(git_dir: str, folder: str) -> dict[str, str] | None:
    """Return the refs below a folder (`refs/wire/heard/`) with their ids; None where the files do not tell.

    A name that is no plain one is told as it is; what it holds need not be an id then, and it is left out.
    """
    if os.path.isdir(os.path.join(git_dir, "reftable")):
        return None
    found = {}
    try:
        with open(os.path.join(git_dir, "packed-refs"), "rb") as file:
            packed = file.read()
    except FileNotFoundError:
        packed = b""
    except OSError:
        return None
    prefix = os.fsencode(folder)
    for line in packed.split(b"\n") if prefix in packed else ():
        oid, _, told = line.partition(b" ")
        if told.startswith(prefix) and _ID.fullmatch(oid + b"\n"):
            found[os.fsdecode(told)] = oid.decode("ascii")
    for top, _, names in os.walk(os.path.join(git_dir, folder)):
        for name in names:
            path = os.path.join(top, name)
            ref = os.path.relpath(path, git_dir)
            if (data := _ID.fullmatch(_read_file(path))) is not None:
                found[ref] = data[1].decode("ascii")
    return found


def _read(git_dir: str, name: str) -> bytes:
    return _read_file(os.path.join(git_dir, name)) if _NAME.fullmatch(name) is not None else b""


def _read_file(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _MOST)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
