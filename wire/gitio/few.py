"""Take over a few new objects without what `git fetch` does around them.

A fetch of one commit is five processes. The last of them walks from what came to what was here before, to see that
nothing is missing in between. Of a commit in a line that walk is a handful of small objects, which a child that stays
reads in no time; so the objects come by `git fetch-pack`, as any fetch brings them, and the walk and the refs are done
here. Whatever is not plain is left as it is: `git fetch` then finds out, and says what is wrong.
"""

from collections.abc import Iterator, Mapping, Sequence

from wire.gitio import parse, refs
from wire.gitio.core import Core
from wire.gitio.refs import RefUpdate
from wire.gitio.trees import Leaf, Trees

COMMAND = ("fetch-pack", "--quiet", "--no-progress", "--thin", "--keep")
SETTINGS = (("fetch.unpackLimit", "0"),)
"""What makes `--keep` mean a pack without a mark that keeps it from being packed with others."""

_GITLINK = "160000"


def wanted(refspecs: Sequence[str]) -> dict[str, str]:
    """Return by the remote's refs where they go here; empty unless each is one ref and may be replaced here."""
    pairs = [refspec[1:].partition(":")[::2] for refspec in refspecs if refspec.startswith("+") and "*" not in refspec]
    return dict(pairs) if len(pairs) == len(refspecs) else {}


def take(core: Core, trees: Trees, places: Mapping[str, str], told: bytes, base: str) -> bool:
    """Set refs to what `git fetch-pack` brought, if all that they reach is here; return False, and set none, if not.

    Args:
        places: as `wanted` returns them.
        told: what it printed: an id and a ref a line.
        base: a commit that is here with all that it reaches.
    """
    tips = {}
    for line in told.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        oid, _, ref = line.partition(" ")
        if parse.HEX.match(oid):
            tips[ref] = oid
    if tips.keys() != places.keys():
        return False
    # What was packed away since it was read would count as here.
    trees.forget()
    blobs: set[str] = set()
    for oid in set(tips.values()):
        leaves = _leaves(trees, oid, base)
        if leaves is None:
            return False
        blobs.update(leaf.oid for leaf in leaves if leaf.mode != _GITLINK)
    if blobs and core.read(sorted(blobs), max_size=-1) is None:
        return False
    # What is in quarantine need not outlive a loss of power: the next fetch sets it again.
    updates = [RefUpdate(places[ref], oid, durable=False) for ref, oid in tips.items()]
    refs.update(core, updates, made=True)
    return True


def _leaves(trees: Trees, commit: str, base: str) -> Iterator[Leaf] | None:
    """Return the files that a commit has and `base` has not, whose folders and commits are all here; None if not."""
    if (history := trees.history(base, commit)) is not None:
        changes = (change for one in history.commits for change in one.changes)
        return (Leaf(change.new_mode, change.new_oid) for change in changes if change.new_oid.strip("0"))
    head = trees.head(commit)
    entries = trees.tree(head.tree) if head is not None and not head.parents else None
    if entries is None or any(name.endswith(b"/") for name in entries):
        return None
    return iter(entries.values())
