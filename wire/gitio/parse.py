"""Read what git's plumbing prints with `-z`, and give it types.

Pure: bytes in, records out. Paths stay bytes and may hold anything but NUL; an object id is 40 or 64 hex characters or
the output is refused. Nothing is split at line ends that a path could hold, and no field is found by searching.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from wire.gitio.classify import GitFailed, Kind, judge_rejection

HEX = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")


class Entry(NamedTuple):
    """One leaf of a tree: mode as in the tree (`100644`), `blob` or `commit`, object id, path from the root."""

    mode: str
    kind: str
    oid: str
    path: bytes


class Change(NamedTuple):
    """One changed path between two trees; mode `000000` and an id of zeros where a side has none.

    `status` is one of `A D M T`: renames are never guessed.
    """

    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str
    status: str
    path: bytes


class Commit(NamedTuple):
    """One commit with what it changed against each of its parents, without repetitions."""

    oid: str
    parents: tuple[str, ...]
    changes: tuple[Change, ...]


class History(NamedTuple):
    """What lies between two commits.

    Attributes:
        descends: the new one has the old one among its ancestors.
        commits: the new ones, every one after its parents.
        lost: ids of commits that the old one had and the new one has not.
        truncated: there are more than asked for, or too large ones; the newest are given, or none.
    """

    descends: bool
    commits: tuple[Commit, ...]
    lost: tuple[str, ...]
    truncated: bool


class PushResult(NamedTuple):
    """What the remote said of one ref.

    Attributes:
        status: `race` means somebody else was first; `rejected` that a rule of the host refuses it.
        reason: the host's first lines or git's own word, printable and bounded; empty when all is well.
    """

    status: Literal["ok", "up-to-date", "race", "rejected"]
    reason: str = ""


def object_id(text: str) -> str:
    """Return `text` if it is a full object id.

    Raises:
        ValueError: it is anything else.
    """
    if not HEX.match(text):
        raise ValueError(f"not a full object id: {text[:80]!r}")
    return text


def made(output: bytes) -> tuple[str, str | None]:
    """Return the ids of the commit and of its tree from `git fast-import`; no tree for a commit without files."""
    commit, _, rest = output.decode("ascii", "replace").partition("\n")
    entry, _, _ = rest.partition("\t")
    return object_id(commit), object_id(entry.rpartition(" ")[2]) if entry.startswith("040000 tree ") else None


def refused(what: str, output: bytes) -> GitFailed:
    """Return the error for output that git cannot have meant."""
    return GitFailed(f"git {what} printed what cannot be read: {output[:80]!r}", kind=Kind.UNKNOWN, label="output")


def entries(output: bytes) -> list[Entry]:
    """Read `ls-tree -z`."""
    found = []
    for record in output.split(b"\0")[:-1]:
        about, tab, path = record.partition(b"\t")
        fields = about.decode("ascii", "replace").split(" ")
        if not tab or len(fields) != 3 or not HEX.match(fields[2]):
            raise refused("ls-tree", record)
        found.append(Entry(fields[0], fields[1], fields[2], path))
    return found


def changes(output: bytes) -> list[Change]:
    """Read `diff-tree --raw -z` of two trees."""
    tokens = iter(output.split(b"\0")[:-1])
    return [_change(token, tokens) for token in tokens]


def _change(token: bytes, rest: Iterator[bytes]) -> Change:
    fields = token.decode("ascii", "replace").split(" ")
    path = next(rest, None)
    if path is None or len(fields) != 5 or not token.startswith(b":"):
        raise refused("diff", token)
    old_mode, new_mode, old_oid, new_oid, status = fields
    if not HEX.match(old_oid) or not HEX.match(new_oid):
        raise refused("diff", token)
    return Change(old_mode[1:], new_mode, old_oid, new_oid, status, path)


HISTORY_FORMAT = "--format=tformat:commit %m %H %P"
"""The format whose output `history` reads; `%m` tells the side."""


def history(output: bytes) -> tuple[list[Commit], list[str]]:
    """Read `log -z --raw --left-right` with `HISTORY_FORMAT`; return the commits of the right side and the left's ids.

    A merge appears once per parent; its appearances become one.
    """
    parents: dict[str, tuple[str, ...]] = {}
    found: dict[str, dict[Change, None]] = {}
    lost: dict[str, None] = {}
    # A commit's changes; those of the left side are read and dropped.
    here: dict[Change, None] = {}
    tokens = iter(output.split(b"\0")[:-1])
    for token in tokens:
        # git ends a header with NUL and then still starts the changes on a new line.
        bare = token.removeprefix(b"\n")
        if bare.startswith(b":"):
            here[_change(bare, tokens)] = None
        elif bare.startswith(b"commit "):
            _, side, oid, *above = bare.decode("ascii", "replace").rstrip(" ").split(" ")
            if not all(HEX.match(name) for name in (oid, *above)):
                raise refused("log", token)
            here = {} if side == "<" else found.setdefault(oid, {})
            if side == "<":
                lost[oid] = None
            else:
                parents[oid] = tuple(above)
        elif bare:
            raise refused("log", token)
    return [Commit(oid, parents[oid], tuple(seen)) for oid, seen in found.items()], list(lost)


def refs(output: bytes) -> dict[str, str]:
    """Read lines of `<object id> TAB or SPACE <ref>`, as `ls-remote` and `for-each-ref` print them.

    A name that is no UTF-8 is kept with surrogate escapes.
    """
    found = {}
    for line in output.split(b"\n"):
        oid, _, name = line.replace(b"\t", b" ", 1).decode("utf-8", "surrogateescape").partition(" ")
        if name and HEX.match(oid):
            found[name] = oid
        elif line and not line.startswith(b"ref: "):
            raise refused("ls-remote", line)
    return found


class PushLine(NamedTuple):
    """One ref's line of `push --porcelain`: git's flag, the summary, and the reason in parentheses."""

    flag: str
    summary: str
    reason: str


def porcelain(output: bytes) -> dict[str, PushLine]:
    """Read `push --porcelain`; return the line of each remote ref."""
    found = {}
    for line in output.decode("utf-8", "replace").split("\n"):
        flag, tab, rest = line.partition("\t")
        names, tab_too, told = rest.partition("\t")
        if len(flag) == 1 and tab and tab_too:
            summary, paren, reason = told.partition(" (")
            found[names.rpartition(":")[2]] = PushLine(flag, summary, reason.removesuffix(")") if paren else "")
    return found


def push_result(line: PushLine, told: tuple[str, ...], *, forced: bool) -> PushResult | None:
    """Return what a line of `push --porcelain` means; None for a failure of the host that will pass.

    Args:
        told: what the server printed beside it.
        forced: the ref was to be replaced, not extended.
    """
    if line.flag == "=":
        return PushResult("up-to-date")
    if line.flag in " +*-":
        return PushResult("ok")
    reason = "; ".join((line.reason or line.summary, *told))
    if line.summary == "[rejected]":
        return PushResult("race", reason)
    if line.summary == "[remote rejected]":
        verdict = judge_rejection(line.reason, forced=forced)
        if verdict == "passing":
            return None
        return PushResult("race" if verdict == "race" else "rejected", reason)
    return None


EMPTY_TREES = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The id of the tree without entries, by object format."""


def revision(name: str) -> str:
    """Return `name` if it can stand where git expects one revision; raises ValueError."""
    if not name or name.startswith("-") or ".." in name or "\n" in name:
        raise ValueError(f"no revision: {name!r}")
    return name


def plain_path(path: str) -> str:
    """Return `path` if git takes it for a path in a tree and nothing else; raises ValueError."""
    # A leading colon would be pathspec magic.
    if path.startswith((":", "-", "/")):
        raise ValueError(f"no path in a tree: {path!r}")
    return path
