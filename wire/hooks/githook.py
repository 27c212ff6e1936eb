"""The pre-commit hook in the wire's clone: installed, removed, and whether it is the one that git runs.

    report = install(settings, config)
    if not report.active: print(f"hook inactive because {report.why}")

Rules that it keeps: a hook of somebody else's is never written over; a hook that is there and does not run is said,
with the reason, since it protects nobody. Which hook runs is git's own answer for each work tree, with the user's own
settings.

The hook names the interpreter that installed it. Where that is gone, after an upgrade that moved it, it asks PATH for
`git-wire`, a name that no other program has; without either it refuses the commit and says so.
"""

import os
import shlex
import stat
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from wire.errors import StoreError, UsageError
from wire.gitio import Repository, discover, work_trees
from wire.setup.hosthook import calls
from wire.store.config import WireConfig
from wire.store.files import atomic_write, read_bytes, store_error
from wire.store.paths import Settings

HOOK = "pre-commit"
VERB = "hooks run pre-commit --joined"
"""What the hook asks of wire; a hook of somebody else's that has this in it runs ours, too."""

_PLACES = ("WIRE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_OTHER_REPOSITORY = frozenset(
    {"GIT_DIR", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_WORK_TREE"}
)
_FIRST = "# Written by `wire hooks install git`, and written anew by it: changes of your own would be lost."


class Owner(StrEnum):
    """Whose hook stands in the clone."""

    OURS = "ours"
    FOREIGN = "foreign"
    """Somebody else's, which does not call wire."""
    CALLING = "calling"
    """Somebody else's, which calls wire."""
    MISSING = "missing"


class Report(NamedTuple):
    """How the hook of a clone stands.

    Attributes:
        path: where wire's hook belongs.
        owner: whose hook is there.
        active: whether every work tree of the clone runs wire's verification before a commit.
        why: what keeps it from running; empty when it is active.
        next_step: what mends that.
    """

    path: str
    owner: Owner
    active: bool
    why: str = ""
    next_step: str | None = None


def look(settings: Settings, config: WireConfig) -> Report:
    """Return how the hook stands; raises GitFailed where the clone is none."""
    # A `git wire …` in some other repository must not lead there.
    environ = {name: value for name, value in settings.environ.items() if name not in _OTHER_REPOSITORY}
    trees = [discover(environ, tree) for tree in work_trees(environ, config.clone)]
    path = os.path.join(trees[0].common_dir, "hooks", HOOK)
    owner = owner_of(path, read_bytes(path), _FIRST, VERB)
    for tree in trees:
        why, next_step = _inactive(tree, path, command(settings))
        if why:
            return Report(path, owner, False, why, next_step)
    return Report(path, owner, True)


def install(settings: Settings, config: WireConfig) -> Report:
    """Put the hook into the clone, or bring it up to date, and return how it stands then.

    Raises:
        UsageError: somebody else's hook is there (`foreign-hook`); nothing was changed.
        GitFailed, StoreError: the clone cannot be used.
    """
    report = look(settings, config)
    if report.owner is Owner.FOREIGN:
        raise _foreign(report.path, command(settings))
    if report.owner is not Owner.CALLING:
        put(report.path, _script(settings))
    return look(settings, config)


def uninstall(settings: Settings, config: WireConfig) -> str | None:
    """Remove the hook from the clone and return its path, None where there was none.

    Raises:
        UsageError: the hook there is somebody else's (`foreign-hook`).
    """
    report = look(settings, config)
    return remove(report, _foreign(report.path, command(settings)))


def put(path: str, script: bytes) -> None:
    """Write a hook that is not there as it is wanted; raises StoreError."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if read_bytes(path) != script or not os.access(path, os.X_OK):
            atomic_write(path, script, mode=0o755)
    except OSError as error:
        raise store_error(error, "write", path) from error


def remove(report: Report, foreign: UsageError) -> str | None:
    """Remove a hook of ours and return its path, None where there is none; raise `foreign` for somebody else's."""
    if report.owner is Owner.MISSING:
        return None
    if report.owner is not Owner.OURS:
        raise foreign
    try:
        os.unlink(report.path)
    except OSError as error:
        raise store_error(error, "remove", report.path) from error
    return report.path


def owner_of(path: str, text: bytes | None, first: str, verb: str) -> Owner:
    """Return whose hook stands at a path.

    Args:
        text: of the hook, None where none can be read.
        first: the line that ours have below `#!`.
        verb: what a hook asks of wire that runs ours, too.
    """
    if text is None:
        return Owner.FOREIGN if os.path.lexists(path) else Owner.MISSING
    if text.split(b"\n")[1:2] == [first.encode()]:
        return Owner.OURS
    return Owner.CALLING if calls(text, verb) else Owner.FOREIGN


def command(settings: Settings) -> str:
    """Return the shell words that run the verification, as the hook has them."""
    set_before = [f"{name}={shlex.quote(value)}" for name, value in _places(settings)]
    return " ".join([*set_before, shlex.quote(sys.executable), "-P", "-m", "wire", VERB])


def _script(settings: Settings) -> bytes:
    python = shlex.quote(sys.executable)
    places = [f"{name}={shlex.quote(value)} && export {name}" for name, value in _places(settings)]
    lines = [
        "#!/bin/sh",
        _FIRST,
        "# It judges what is staged as the daemon would, and refuses what no peer would accept.",
        "unset WIRE_HOME WIRE_AGENT WIRE_NAME",
        *places,
        f"if [ -x {python} ] && {python} -P -c 'import wire.cli' 2>/dev/null; then",
        f"    exec {python} -P -m wire {VERB}",
        "fi",
        "if command -v git-wire >/dev/null 2>&1; then",
        f"    exec git-wire {VERB}",
        "fi",
        f"echo 'wire: neither' {python} 'nor git-wire on PATH can verify this commit; it is refused' >&2",
        "echo '      next: wire hooks install git' >&2",
        "exit 1",
    ]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _places(settings: Settings) -> Sequence[tuple[str, str]]:
    """Return the variables that say where this machine's wires are: a commit may be made from another shell."""
    environ = settings.environ
    if environ.get("WIRE_HOME"):
        return [("WIRE_HOME", os.path.dirname(settings.config_file))]
    return [(name, environ[name]) for name in _PLACES if os.path.isabs(environ.get(name, ""))]


def _inactive(tree: Repository, path: str, call: str) -> tuple[str, str | None]:
    """Return why a work tree does not run wire's verification, and what mends that; empty where it does."""
    runs = os.path.join(tree.hooks_dir, HOOK)
    elsewhere = os.path.realpath(runs) != os.path.realpath(path)
    try:
        text = read_bytes(runs)
    except StoreError:  # below something that is no folder, such as /dev/null
        text = None
    if text is None or not calls(text, VERB):
        if elsewhere:
            folder = shlex.quote(os.path.dirname(path))
            return (
                f"core.hooksPath ({tree.hooks_from}) is {tree.hooks_path!r}, so that git runs {runs} in {tree.top}",
                f"git -C {shlex.quote(tree.top)} config {_scope(tree)} core.hooksPath {folder}",
            )
        if text is None:
            return f"there is no {runs}", "wire hooks install git"
        return f"{runs} is somebody else's and does not call wire", f"add to it: {call} || exit 1"
    try:
        mode = os.stat(runs).st_mode
    except OSError as error:
        return f"{runs} cannot be used: {error.strerror}", None
    if not mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH) or not os.access(runs, os.X_OK):
        return f"{runs} is not executable", f"chmod +x {shlex.quote(runs)}"
    return "", None


def _scope(tree: Repository) -> str:
    """Return the scope of a setting that wins over the one in force."""
    return "--worktree" if (tree.hooks_from or "").startswith("worktree") else "--local"


def _foreign(path: str, call: str) -> UsageError:
    return UsageError(
        f"{path} is somebody else's hook; it was left as it is",
        reason="foreign-hook",
        next_step=f"have it call wire as well, with a line of its own: {call} || exit 1",
    )
