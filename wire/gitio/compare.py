"""Ask git what differs between trees, and which commits came: typed listings, in one child each."""

import os
from collections.abc import Callable

from wire.gitio import parse
from wire.gitio.core import Core
from wire.gitio.parse import Change, History

OUTPUT_MAX = 64 << 20
"""Bytes of a listing, beyond which somebody made a commit whose mere listing is a flood."""

_RAW = ("--raw", "-z", "--no-renames", "--no-abbrev", "--no-relative", "--no-ext-diff")


def trees(core: Core, old: str, new: str, path: str) -> list[Change]:
    """See `Git.diff`."""
    sides = [parse.revision(side) for side in (old, new)]
    where = [parse.plain_path(path)] if path else []
    return parse.changes(core.run("diff-tree", "-r", *_RAW, *sides, "--", *where, max_output=OUTPUT_MAX).stdout)


def index(core: Core, index_file: str, side: str) -> list[Change]:
    """See `Git.staged`."""
    env = {"GIT_INDEX_FILE": os.path.abspath(index_file)}
    args = ("diff-index", "--cached", *_RAW, parse.revision(side), "--")
    return parse.changes(core.run(*args, max_output=OUTPUT_MAX, env=env).stdout)


def history(core: Core, old: str | None, new: str, *, max_count: int, descends: Callable[[str, str], bool]) -> History:
    """See `Git.history`.

    Args:
        descends: tells whether its second commit has the first among its ancestors, where a cut list does not.
    """
    span = parse.revision(new) if old is None else f"{parse.revision(old)}...{parse.revision(new)}"
    order = ("--left-right", "--topo-order", "--reverse", f"--max-count={max_count + 1}", "--no-show-signature")
    shown = ("--diff-merges=separate", "--no-decorate", "--no-color", parse.HISTORY_FORMAT)
    args = ("log", *_RAW, *order, *shown, span, "--")
    ended = core.spawn(args, max_output=OUTPUT_MAX)
    if ended.cut == "output":
        commits, lost = parse.history(b"")
        truncated = True
    else:
        core.judge(args, ended)
        commits, lost = parse.history(ended.stdout)
        truncated = len(commits) + len(lost) > max_count
    # A cut list may have lost the very commits that tell.
    follows = not lost if not truncated else old is None or descends(old, new)
    return History(follows, tuple(commits[-max_count:]), tuple(lost), truncated)
