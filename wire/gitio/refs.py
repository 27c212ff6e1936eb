"""Read refs from their files, where git keeps them in files, and set our own there; everything else is git's to do.

A cycle asks for a handful of refs, and a child for each would be a good part of what it costs. What is read here is
what `git rev-parse` reads first, too: a loose file wins over `packed-refs`. A ref that is not there, or not in this
form (packed, in a reftable, of another worktree), is None: then git is asked.

Nobody but wire writes below `refs/wire/`, and no reflog is kept there. Such a ref is set as git sets it: a lock file
beside it, made with `O_EXCL`, is written, brought to disk and renamed to it. Whatever stands in the way of that is left
to git, which does it or says why not.
"""

import contextlib
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from wire.gitio import parse
from wire.gitio.core import OWN_REFS, Core

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


class RefUpdate(NamedTuple):
    """One step of a transaction: `new` None deletes; `old` None is unchecked, and empty means "not there yet".

    Of one that is not `durable` a loss of power may leave anything; see `Git.clear_broken`.
    """

    name: str
    new: str | None
    old: str | None = None
    durable: bool = True


def update(core: Core, updates: Sequence[RefUpdate], *, made: bool = False) -> None:
    """Change refs, all or none; see `Git.update_refs`.

    Args:
        made: what they are to name was just made here, and is there.
    """
    if _set_own(core, updates, made):
        return
    steps = []
    for name, new, old, _ in updates:
        # To git an empty old value means any, and zeros mean none.
        expected = "" if old is None else parse.object_id(old or "0" * len(new or ""))
        if new is None:
            steps.append(f"option no-deref\0delete {name}\0{expected}\0")
        else:
            steps.append(f"option no-deref\0update {name}\0{parse.object_id(new)}\0{expected}\0")
    core.run("update-ref", "--stdin", "-z", input=os.fsencode("".join(steps)))


def _set_own(core: Core, updates: Sequence[RefUpdate], made: bool) -> bool:
    """Set refs of our own by their files; return whether that was done. Else git has to, from where things stand."""
    wanted = {name: parse.object_id(new) for name, new, *_ in updates if new is not None}
    if len(wanted) < len(updates) or not all(
        name.startswith(f"{OWN_REFS}/") and _NAME.fullmatch(name) for name in wanted
    ):
        return False
    if os.path.isdir(os.path.join(core.git_dir, "reftable")):
        return False
    if not made and core.read(list(dict.fromkeys(wanted.values())), max_size=-1) is None:
        return False
    locks: list[str] = []
    try:
        for name, new, _, durable in updates:
            lock = os.path.join(core.git_dir, f"{name}.lock")
            descriptor = _lock(lock)
            locks.append(lock)
            try:
                os.write(descriptor, f"{new}\n".encode("ascii"))
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        if any(old is not None and resolve(core.git_dir, name) != old for name, _, old, _ in updates):
            return False
        for lock in locks.copy():
            os.rename(lock, lock.removesuffix(".lock"))
            locks.remove(lock)
    except OSError:
        return False
    finally:
        for lock in locks:
            with contextlib.suppress(OSError):
                os.unlink(lock)
    return True


def _lock(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, flags, 0o666)
