"""Find the repository that a git hook runs in, and the hooks that git itself would run there.

This is the one place that asks git with the *user's* environment and settings: `GIT_DIR` and `GIT_INDEX_FILE` say which
commit is being made, and `core.hooksPath` which hook runs. Everything else about the repository is asked through `Git`.

    found = discover(os.environ, os.getcwd())
    Git(found.git_dir, environ=os.environ).staged(found.index_file, "HEAD")
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from wire.gitio.child import Ended, NotStarted, Runner
from wire.gitio.classify import GitFailed, Kind, failed, printable
from wire.gitio.parse import refused

_TIMEOUT = 30.0


class Repository(NamedTuple):
    """A work tree and where its parts are, all absolute.

    Attributes:
        top: the work tree's folder.
        git_dir: its git folder; of a linked work tree, its own below the repository's.
        common_dir: the repository's git folder.
        index_file: the index of the commit that is being made.
        hooks_dir: the folder that git takes this work tree's hooks from.
        hooks_path: `core.hooksPath` as it is set, or None.
        hooks_from: scope and file of that setting, for people.
    """

    top: str
    git_dir: str
    common_dir: str
    index_file: str
    hooks_dir: str
    hooks_path: str | None
    hooks_from: str | None


def discover(environ: Mapping[str, str], folder: str) -> Repository:
    """Return the repository of the work tree that a folder belongs to.

    Args:
        environ: the environment of who asks, as it is.
        folder: where to look from.

    Raises:
        GitFailed: there is none (`clone`), git is missing, or it refuses.
    """
    top = os.fsdecode(_ask(environ, folder, "rev-parse", "--path-format=absolute", "--show-toplevel").stdout)[:-1]
    if not top:
        raise GitFailed(f"{folder} is in no work tree", kind=Kind.CLONE, label="not-a-clone")
    # From the top, because a relative core.hooksPath starts there.
    paths = {}
    for name, *question in (
        ("git_dir", "--git-dir"),
        ("common_dir", "--git-common-dir"),
        ("index_file", "--git-path", "index"),
        ("hooks_dir", "--git-path", "hooks"),
    ):
        # `--git-path index` names the file of GIT_INDEX_FILE, which is relative to where git was started.
        where = folder if name == "index_file" else top
        said = _ask(environ, where, "rev-parse", "--path-format=absolute", *question).stdout
        paths[name] = os.fsdecode(said)[:-1]
        if not os.path.isabs(paths[name]):
            raise refused("rev-parse", said)
    origin = _ask(environ, top, "config", "--show-scope", "--show-origin", "-z", "--get", "core.hooksPath", ok=(0, 1))
    scope, file, value = [*origin.stdout.decode("utf-8", "replace").split("\0"), "", "", ""][:3]
    set_by = f"{scope} {file.removeprefix('file:')}".strip() if origin.status == 0 else None
    return Repository(top=top, **paths, hooks_path=value if origin.status == 0 else None, hooks_from=set_by)


class Bare(NamedTuple):
    """A repository that others push to.

    Attributes:
        git_dir: its folder.
        hooks_dir: the folder that git takes its hooks from.
        settings: its settings of `receive.` and `transfer.`, in lower case, as git sees them there.
    """

    git_dir: str
    hooks_dir: str
    settings: Mapping[str, str]


def discover_bare(environ: Mapping[str, str], folder: str) -> Bare:
    """Return the repository at a folder, bare or not; raises GitFailed where there is none."""
    asked = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    git_dir = os.fsdecode(_ask(asked, folder, "rev-parse", "--absolute-git-dir").stdout)[:-1]
    where = _ask(asked, folder, "rev-parse", "--path-format=absolute", "--git-path", "hooks").stdout
    listed = _ask(asked, folder, "config", "-z", "--get-regexp", r"^(receive|transfer)\.", ok=(0, 1)).stdout
    settings = {}
    for item in listed.decode("utf-8", "replace").split("\0")[:-1]:
        name, equals, value = item.partition("\n")
        settings[name.lower()] = value if equals else "true"
    return Bare(git_dir, os.fsdecode(where)[:-1], settings)


def work_trees(environ: Mapping[str, str], folder: str) -> list[str]:
    """Return the folders of all work trees of a repository, the main one first; raises GitFailed."""
    listed = _ask(environ, folder, "worktree", "list", "--porcelain", "-z").stdout.split(b"\0")
    found = [os.fsdecode(item.removeprefix(b"worktree ")) for item in listed if item.startswith(b"worktree ")]
    there = [path for path in found if os.path.isdir(path)]
    if not there:
        raise refused("worktree", b"".join(listed))
    return there


def _ask(environ: Mapping[str, str], folder: str, *args: str, ok: tuple[int, ...] = (0,)) -> Ended:
    import shutil

    path = environ.get("PATH", os.defpath)
    program = shutil.which("git", path=os.pathsep.join(part for part in path.split(os.pathsep) if os.path.isabs(part)))
    if program is None:
        raise GitFailed(f"git not found in PATH={path}", kind=Kind.GIT_MISSING)
    if not os.path.isdir(folder):
        raise GitFailed(f"there is no folder {folder}", kind=Kind.CLONE, label="not-a-clone")
    asked = {**environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        ended = Runner(folder).run([program, *args], asked, timeout=_TIMEOUT, max_output=1 << 20)
    except NotStarted as error:
        raise GitFailed(str(error), kind=Kind.GIT_MISSING) from error
    if ended.cut is not None or ended.status not in ok:
        said = printable(ended.stderr.decode("utf-8", "replace"))
        if "not a git repository" in said:
            raise GitFailed(f"{folder} is in no git repository", kind=Kind.CLONE, label="not-a-clone")
        raise failed(args[0], ended.stderr.decode("utf-8", "replace"), ended.status)
    return ended
