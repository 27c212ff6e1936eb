"""Commits and trees as they stand in the repository, compared without a child where their form is plain.

    trees = Trees(core)
    trees.history(verified, tip)        the few commits on the way, each with its changes; None: git has to be asked
    trees.changes(old, new)             what differs between two commits or trees

An exchange brings one commit with one changed file at a time. What git would say of that in two children is read here
from a handful of objects. Only what has one plain reading is read: canonical modes, names in git's order and once each,
commits with one parent, and little of all. For anything else the answer is None, and git gives it.
"""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from wire.gitio.core import Core
from wire.gitio.parse import Change, Commit, History
from wire.gitio.reader import inode

COMMITS_MAX = 8
CHANGES_MAX = 1000
TREE_MAX = 1 << 18
"""Bytes of a tree that is read here."""
DEPTH_MAX = 16
NAMES_MAX = 1 << 17
"""Names that one comparison looks at: the same few folders inside each other can stand for any number of them."""

_KEPT_MAX = 1 << 20
_COMMIT_MAX = 1 << 16
_COMMIT = re.compile(rb"tree ([0-9a-f]{40}|[0-9a-f]{64})\n((?:parent (?:[0-9a-f]{40}|[0-9a-f]{64})\n)*)author ")
_ENTRY = re.compile(rb"(100644|100755|120000|40000|160000) ([^/\0]+)\0")
_FOLDER = "040000"


class Leaf(NamedTuple):
    """An entry of a tree: its mode in six digits, and its object's id."""

    mode: str
    oid: str


Entries = Mapping[bytes, Leaf]
"""The entries of one tree by name, a folder's with a slash behind it, in git's order."""


class Head(NamedTuple):
    """What a commit names: its tree and its parents."""

    tree: str
    parents: tuple[str, ...]


class Trees:
    """Commits and trees of one repository; what was read once is remembered for a while, as an id never changes."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._shallow = os.path.join(core.git_dir, "shallow")
        self._objects = os.path.join(core.git_dir, "objects")
        self._at = inode(self._objects)
        self._heads: dict[str, Head] = {}
        self._trees: dict[str, tuple[Entries, int]] = {}
        self._size = 0
        self._left = 0

    def check(self) -> None:
        """Forget everything if the repository was made anew: what was in the old one need not be in this one."""
        at = inode(self._objects)
        if at != self._at:
            self._at = at
            self.forget()

    def forget(self) -> None:
        """Forget everything, where what counts is whether it is here now."""
        self._heads.clear()
        self._trees.clear()
        self._size = 0

    def head(self, commit: str) -> Head | None:
        """Return what a commit names."""
        if (known := self._heads.get(commit)) is not None:
            return known
        data = self._read(commit, "commit", _COMMIT_MAX)
        found = _COMMIT.match(data) if data is not None else None
        if found is None:
            return None
        parents = tuple(line.decode("ascii").removeprefix("parent ") for line in found[2].split(b"\n")[:-1])
        head = Head(found[1].decode("ascii"), parents)
        self.learn_head(commit, head)
        return head

    def tree(self, oid: str) -> Entries | None:
        """Return the entries of a tree."""
        if (known := self._trees.get(oid)) is not None:
            return known[0]
        data = self._read(oid, "tree", TREE_MAX)
        entries = parse(data, len(oid) // 2) if data is not None else None
        if data is not None and entries is not None:
            self.learn_tree(oid, entries, len(data))
        return entries

    def learn_head(self, commit: str, head: Head) -> None:
        """Remember a commit that was just read or written."""
        while len(self._heads) >= 4 * COMMITS_MAX:
            self._heads.pop(next(iter(self._heads)))
        self._heads[commit] = head

    def learn_tree(self, oid: str, entries: Entries, size: int) -> None:
        """Remember a tree of so many bytes that was just read or written."""
        if oid not in self._trees:
            self._trees[oid] = (entries, size)
            self._size += size
        while self._size > _KEPT_MAX:
            self._size -= self._trees.pop(next(iter(self._trees)))[1]

    def history(self, old: str, new: str) -> History | None:
        """Return the commits of `new` that `old` has not, where they are few and each has the one before as parent."""
        if os.path.exists(self._shallow):
            return None
        on_the_way: list[tuple[str, str]] = []
        at = new
        while at != old:
            head = self.head(at)
            if head is None or len(head.parents) != 1 or len(on_the_way) == COMMITS_MAX:
                return None
            on_the_way.append((at, head.parents[0]))
            at = head.parents[0]
        commits = []
        for commit, parent in reversed(on_the_way):
            changes = self.changes(parent, commit)
            if changes is None:
                return None
            commits.append(Commit(commit, (parent,), tuple(changes)))
        return History(True, tuple(commits), (), False)

    def changes(self, old: str, new: str) -> list[Change] | None:
        """Return what differs from one commit to another, in git's order."""
        before, after = self.head(old), self.head(new)
        found: list[Change] = []
        self._left = NAMES_MAX
        if before is None or after is None or not self._compare(before.tree, after.tree, b"", found, 0):
            return None
        return found

    def _compare(self, old: str | None, new: str | None, above: bytes, found: list[Change], depth: int) -> bool:
        if old == new:
            return True
        sides = [self.tree(oid) if oid is not None else {} for oid in (old, new)]
        before, after = sides
        if before is None or after is None or depth > DEPTH_MAX:
            return False
        self._left -= len(before) + len(after)
        if self._left < 0:
            return False
        for name in sorted(before.keys() | after.keys()):
            was, now = before.get(name), after.get(name)
            if was == now:
                continue
            if name.endswith(b"/"):
                ids = (was.oid if was is not None else None, now.oid if now is not None else None)
                if not self._compare(*ids, above + name, found, depth + 1):
                    return False
            elif len(found) == CHANGES_MAX:
                return False
            else:
                found.append(_change(was, now, above + name))
        return True

    def _read(self, oid: str, kind: str, most: int) -> bytes | None:
        told = self._core.read([oid], max_size=most)
        return told[0].data if told and told[0].kind == kind and told[0].oid == oid else None


def parse(data: bytes, width: int) -> Entries | None:
    """Return the entries of a tree whose ids have `width` bytes; None unless it is plain in every respect."""
    entries: dict[bytes, Leaf] = {}
    names = set()
    at, last = 0, b""
    while at < len(data):
        entry = _ENTRY.match(data, at)
        if entry is None:
            return None
        mode, name = entry[1].decode("ascii").zfill(6), entry[2]
        oid = data[entry.end() : entry.end() + width]
        key = name + b"/" if mode == _FOLDER else name
        if len(oid) != width or name in names or key <= last:
            return None
        names.add(name)
        entries[key] = Leaf(mode, oid.hex())
        at, last = entry.end() + width, key
    return entries


def _change(was: Leaf | None, now: Leaf | None, path: bytes) -> Change:
    zeros = "0" * len((was or now or Leaf("", "")).oid)
    old, new = was or Leaf("000000", zeros), now or Leaf("000000", zeros)
    # A file that becomes a link or a commit changes its type.
    status = "A" if was is None else "D" if now is None else "M" if old.mode[:3] == new.mode[:3] else "T"
    return Change(old.mode, new.mode, old.oid, new.oid, status, path)
