"""Make a commit from a tree and changes to it, as objects of our own making: see `commits`.

Only where the trees on the way are plain (see `trees`) and all that is put is a file's bytes or a blob that is there.
The outcome is the very commit that `git fast-import` makes of the same.
"""

from collections.abc import Sequence

from wire.gitio.core import Core
from wire.gitio.fastimport import Drop, Put
from wire.gitio.packs import Packed
from wire.gitio.trees import Head, Leaf, Trees

DATA_MAX = 4 << 20
"""Bytes of files that are deflated here."""

_FILE, _FOLDER = "100644", "040000"


class _NotPlain(Exception):
    pass


def commit(
    core: Core,
    trees: Trees,
    *,
    parents: Sequence[str],
    tree: str | None,
    who: Sequence[str],
    message: bytes,
    changes: Sequence[Put | Drop],
    object_format: str,
) -> str | None:
    """Make the commit, bring its objects to the disk, and return its id; None where git has to.

    Args:
        tree: the tree to start from; None for no files.
        who: the author and the committer, with time and zone.
    """
    if not _can(core, trees, parents, changes):
        return None
    packed = Packed(object_format)
    try:
        top = _Folder(trees, tree)
        for change in changes:
            parts = change.path.split(b"/")
            if isinstance(change, Drop):
                top.drop(parts)
            else:
                oid = change.oid if change.oid is not None else packed.add("blob", change.data or b"")
                top.put(parts, Leaf(_FILE, oid))
        root = top.finish(packed)
    except _NotPlain:
        return None
    if root is None:
        return None
    lines = [f"tree {root}", *(f"parent {parent}" for parent in parents), f"author {who[0]}", f"committer {who[1]}"]
    made = packed.add("commit", "".join(f"{line}\n" for line in lines).encode() + b"\n" + message)
    try:
        packed.write(core.git_dir)
    except OSError:
        return None  # git tells what is in the way
    trees.learn_head(made, Head(root, tuple(parents)))
    return made


def _can(core: Core, trees: Trees, parents: Sequence[str], changes: Sequence[Put | Drop]) -> bool:
    if not core.lingers or any(trees.head(parent) is None for parent in parents):
        return False
    puts = [change for change in changes if isinstance(change, Put)]
    if any(put.mode != _FILE for put in puts) or sum(len(put.data or b"") for put in puts) > DATA_MAX:
        return False
    # What is remembered of a parent does not say that it is still there.
    wanted = dict.fromkeys(parents, "commit") | {put.oid: "blob" for put in puts if put.oid is not None}
    told = core.read(list(wanted), max_size=-1)
    return told is not None and [one.kind for one in told] == list(wanted.values())


class _Folder:
    """A folder of the new commit, read when it is first touched."""

    def __init__(self, trees: Trees, oid: str | None) -> None:
        self._trees = trees
        self._oid = oid
        self._below: dict[bytes, _Folder] = {}
        found = trees.tree(oid) if oid is not None else {}
        if found is None:
            raise _NotPlain
        self._entries = dict(found)

    def put(self, parts: Sequence[bytes], leaf: Leaf) -> None:
        name, *rest = parts
        if rest:
            below = self._sub(name) or _Folder(self._trees, None)
            below.put(rest, leaf)
            self._below[name] = below
            self._entries.pop(name, None)
        else:
            self._remove(name)
            self._entries[name] = leaf

    def drop(self, parts: Sequence[bytes]) -> None:
        name, *rest = parts
        if not rest:
            self._remove(name)
        elif (below := self._sub(name)) is not None:
            below.drop(rest)

    def finish(self, packed: Packed) -> str | None:
        """Return the id of the folder's tree, which is packed unless it is the old one; None for an empty folder."""
        for name, below in self._below.items():
            oid = below.finish(packed)
            self._entries.pop(name + b"/", None)
            if oid is not None:
                self._entries[name + b"/"] = Leaf(_FOLDER, oid)
        if not self._entries:
            return None
        entries = dict(sorted(self._entries.items()))
        if self._oid is not None and entries == self._trees.tree(self._oid):
            return self._oid
        data = b"".join(
            b"%s %s\0%s" % (leaf.mode.lstrip("0").encode("ascii"), key.removesuffix(b"/"), bytes.fromhex(leaf.oid))
            for key, leaf in entries.items()
        )
        oid = packed.add("tree", data)
        self._trees.learn_tree(oid, entries, len(data))
        return oid

    def _sub(self, name: bytes) -> "_Folder | None":
        if name not in self._below:
            held = self._entries.get(name + b"/")
            if held is None:
                return None
            self._below[name] = _Folder(self._trees, held.oid)
        return self._below[name]

    def _remove(self, name: bytes) -> None:
        self._below.pop(name, None)
        self._entries.pop(name, None)
        self._entries.pop(name + b"/", None)
