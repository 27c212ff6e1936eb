"""Make one commit: who, when and what. Its objects are our own making where that is plain, or `git fast-import`'s."""

import time
from collections.abc import Callable, Sequence

from wire.gitio import environment, fastimport, grow, parse, refs
from wire.gitio.core import Core
from wire.gitio.fastimport import Drop, Put
from wire.gitio.refs import RefUpdate
from wire.gitio.trees import Head, Trees


def write(
    core: Core,
    trees: Trees,
    names: Sequence[str],
    *,
    parents: Sequence[str],
    tree: str | None,
    start_empty: bool,
    message: str | bytes,
    changes: Sequence[Put | Drop],
    author: tuple[str, str] | None,
    when: int | None,
    object_format: Callable[[], str],
) -> str:
    """Make the commit, put the local refs of these names at it, and return its id; see `Git.write_commit`."""
    seconds = int(time.time()) if when is None else when
    who = [
        "{} <{}> {} +0000".format(*(environment.safe_identity(part) for part in person), seconds)
        for person in (author or core.identity, core.identity)
    ]
    said = message.encode("utf-8", "surrogateescape") if isinstance(message, str) else message
    of_parent = tree is None and bool(parents) and not start_empty
    head = trees.head(parents[0]) if of_parent else None
    if core.lingers and (head is not None or not of_parent):
        start = head.tree if head is not None else None if start_empty else tree
        made = grow.commit(
            core,
            trees,
            parents=parents,
            tree=start,
            who=who,
            message=said,
            changes=changes,
            object_format=_format_of((*parents, start or "")) or object_format(),
        )
        if made is not None:
            refs.update(core, [RefUpdate(name, made, durable=name == names[0]) for name in names], made=True)
            return made
    data = fastimport.stream(
        names[0],
        parents=parents,
        tree=tree,
        start_empty=start_empty,
        author=who[0],
        committer=who[1],
        message=said,
        changes=changes,
        also=names[1:],
    )
    # --force concerns the local refs alone: a wire's staging refs are replaced, not extended.
    done = core.run("fast-import", "--quiet", "--done", "--force", "--date-format=raw", input=data, max_output=4096)
    commit, its_tree = parse.made(done.stdout)
    if its_tree is not None:
        trees.learn_head(commit, Head(its_tree, tuple(parents)))
    return commit


def made_at(core: Core, ref: str, parents: Sequence[str]) -> int | None:
    """Return the time of the commit in a ref, if it stands on exactly these parents; see `Git.made_at`."""
    listed = core.run("for-each-ref", "--format=%(committerdate:raw) %(parent)", ref).stdout.decode("ascii").split()
    return int(listed[0]) if listed[2:] == list(parents) and listed else None


def _format_of(ids: Sequence[str]) -> str | None:
    """Return the hash that ids are written in; None where there is none."""
    return next(("sha256" if len(oid) == 64 else "sha1" for oid in ids if oid), None)
