"""Keep the number of objects and packs small, in the foreground, by counting.

git's own `gc` and `maintenance` step back when a pid or lock file says that somebody else is at it, and report success.
Here nothing asks such files, and success is what the counts say afterwards. Two ways:

- often: `repack --geometric` rolls what is small (loose objects, and one pack per fetch and commit) into larger packs,
  at a cost that does not grow with the history;
- once a day: a full repack puts what no ref and no reflog reaches into a cruft pack, from which it is dropped after
  `KEEP_UNREACHABLE`. Replaced presence commits are such objects.

Everything that a ref reaches stays, `refs/wire/*` as well as a person's own.
"""

import contextlib
import os
import re
import time
from typing import NamedTuple

from wire.gitio import incomplete, leftout
from wire.gitio.classify import GitFailed, Kind
from wire.gitio.core import Core

KEEP_UNREACHABLE = "2.days.ago"
"""How long an object that nothing reaches is kept."""

_FULL_EVERY = 86_400.0
_STAMP = "wire-packed"
_OLD = 86_400.0
_LOOSE_MAX = 500
_PACKS_MAX = 60
_FOLDER = re.compile(r"[0-9a-f]{2}\Z")
_NAME = re.compile(r"[0-9a-f]{38}(?:[0-9a-f]{24})?\Z")


class Counts(NamedTuple):
    """How many loose objects and packs there are."""

    loose: int
    packs: int


def counts(git_dir: str) -> Counts:
    """Count loose objects and packs by looking at the files, without a child."""
    objects = os.path.join(git_dir, "objects")
    loose = 0
    for folder in _names(objects):
        if _FOLDER.match(folder):
            loose += sum(1 for name in _names(os.path.join(objects, folder)) if _NAME.match(name))
    return Counts(loose, sum(1 for name in _names(os.path.join(objects, "pack")) if name.endswith(".pack")))


def pack(core: Core, *, full: bool | None, timeout: float) -> Counts:
    """See `Git.pack`."""
    stamp = os.path.join(core.git_dir, _STAMP)
    everything = _is_due(stamp) if full is None else full
    _remove_old_leftovers(core.git_dir)
    if everything and leftout.some(core.git_dir):
        incomplete.pack(core, expiration=KEEP_UNREACHABLE, timeout=timeout)
    else:
        how = ["--cruft", f"--cruft-expiration={KEEP_UNREACHABLE}"] if everything else ["--geometric=2"]
        core.run("repack", *how, "-d", "-l", "--quiet", "--threads=1", "--no-write-bitmap-index", timeout=timeout)
    core.run("prune-packed", "--quiet", timeout=timeout)
    after = counts(core.git_dir)
    if after.loose > _LOOSE_MAX or after.packs > _PACKS_MAX:
        raise GitFailed(
            f"{core.git_dir} still holds {after.loose} loose objects and {after.packs} packs after packing, expected at"
            f" most {_LOOSE_MAX} and {_PACKS_MAX}",
            kind=Kind.UNKNOWN,
            label="not-packed",
        )
    if everything:
        with open(stamp, "wb"):
            os.utime(stamp)
    return after


def _is_due(stamp: str) -> bool:
    try:
        age = time.time() - os.stat(stamp).st_mtime
    except FileNotFoundError:
        return True
    # A stamp from the future is a clock that was wrong.
    return not 0 <= age < _FULL_EVERY


def _remove_old_leftovers(git_dir: str) -> None:
    """Remove what killed children left: half-written files, and keep marks of fetches that never ended."""
    packs = os.path.join(git_dir, "objects", "pack")
    limit = time.time() - _OLD
    beside = os.path.join(git_dir, leftout.BESIDE)
    with contextlib.suppress(FileNotFoundError):
        if os.lstat(beside).st_mtime < limit:
            import shutil  # rare

            shutil.rmtree(beside, ignore_errors=True)
    for name in _names(packs):
        path = os.path.join(packs, name)
        with contextlib.suppress(FileNotFoundError):
            if os.lstat(path).st_mtime < limit and (name.startswith(("tmp_", ".tmp-")) or _is_fetch_mark(path)):
                os.unlink(path)


def _is_fetch_mark(path: str) -> bool:
    # A person's own keep mark stays; git's says who made it.
    if not path.endswith(".keep"):
        return False
    with open(path, "rb") as file:
        return file.read(16).startswith(b"fetch-pack ")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
