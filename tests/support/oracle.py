"""The oracle: what must hold after every sync, whatever happened before.

    oracle.check([mac, spark], remote)

1. Every message whose send exited 0 is present exactly once in every machine's clone and in the bare repository, with
   the same bytes everywhere.
2. Every segment at every commit is a byte prefix of itself at each later commit (unless an attacker was at work: then
   it is the accepted chains that only grow, see `Accepted`).
3. No commit contains a conflict marker.
4. No lock, half-done rebase or merge, or detached HEAD is left in a clone.
5. Children and descriptors of the daemon are back at their baseline: `support.procs.settles`.

It reads files and git by itself and imports nothing of the product, whose opinion of its own work is worth nothing
here. A line counts as a message by the fixed form of its beginning alone; whether it verifies is asked elsewhere.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from support import gitcmd
from support.machine import Machine
from support.remote import BareRemote

_SEGMENT = re.compile(r"(?:^|/)([a-z0-9-]+)/([a-z0-9-]+)/([0-9]{6})\.jsonl$")
_LINE = re.compile(
    rb'\{"v":[0-9]+,"wire":"[0-9a-f]{32}","from":"(?P<sender>[a-z0-9-]+)","to":"(?P<to>[a-z0-9-]+)","seq":(?P<seq>[0-9]+),'
)
_MARKER = re.compile(rb"^(?:<<<<<<< |>>>>>>> |\|\|\|\|\|\|\| |=======$)", re.MULTILINE)
_LEFTOVERS = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG")


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which what is there is not what was promised."""

    rule: int
    where: str
    what: str

    def __str__(self) -> str:
        return f"({self.rule}) {self.where}: {self.what}"


def check(
    machines: Sequence[Machine],
    remote: BareRemote,
    *,
    sent: Iterable[str] | None = None,
    wire: str | None = None,
    branch: str | None = None,
    attacked: bool = False,
    rules: Collection[int] = (1, 2, 3, 4),
) -> None:
    """Fail the test with every fault that is found.

    Args:
        machines: all machines of the wire, in sync with each other.
        remote: what they share.
        sent: ids that must be there; those that the machines remember from `send` unless given.
        wire: the wire's name, for machines that are on several.
        branch: the wire's branch; the remote's default unless given.
        attacked: an attacker was at work, so that history may show segments that shrank (rule 2 is not asked).
        rules: which rules to ask, for a test in which one of them cannot hold.
    """
    promised = list(sent) if sent is not None else [identity for m in machines for identity in m.sent]
    clones = {machine.name: machine.clone(wire) for machine in machines}
    asked = set(rules) - ({2} if attacked else set())
    faults: list[Fault] = []
    if 1 in asked:
        faults += missing_or_doubled(promised, {**_clone_places(clones), "remote": at_tip(remote, branch)})
    if asked & {2, 3}:
        faults += [fault for fault in history(remote.path, remote.tip(branch)) if fault.rule in asked]
    if 4 in asked:
        for name, clone in clones.items():
            faults += leftovers(name, clone)
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(map(str, faults))


# Rule 1

Segments = Mapping[str, bytes]
"""The bytes of segments, by a path that ends in `<from>/<to>/<number>.jsonl`."""


def in_clone(clone: Path) -> dict[str, bytes]:
    """Return the segments that stand in a clone's work tree: what somebody who reads the files sees."""
    return {
        file.relative_to(clone).as_posix(): file.read_bytes()
        for file in sorted((clone / "_coordination").rglob("*.jsonl"))
        if _SEGMENT.search(file.relative_to(clone).as_posix())
    }


def at_tip(remote: BareRemote, branch: str | None = None) -> dict[str, bytes]:
    """Return the segments at the remote's tip."""
    return segments(remote.path, remote.tip(branch))


def segments(repository: Path, treeish: str | None) -> dict[str, bytes]:
    """Return the segments in a tree or commit of any repository; none for a ref that there is not."""
    if treeish is None:
        return {}
    blobs = _Blobs(repository)
    try:
        if treeish.startswith("refs/") and blobs.get(treeish) is None:
            return {}
        return dict(_below(blobs, f"{treeish}^{{tree}}", ""))
    finally:
        blobs.close()


def _below(blobs: "_Blobs", tree: str, above: str) -> Iterator[tuple[str, bytes]]:
    rest = blobs[tree]
    # An id is as many bytes as half the digits of the tree's own.
    size = blobs.id_digits // 2
    while rest:
        about, _, rest = rest.partition(b"\0")
        mode, _, name = about.partition(b" ")
        oid, rest = rest[:size].hex(), rest[size:]
        path = above + name.decode("utf-8", "surrogateescape")
        if mode == b"40000":
            yield from _below(blobs, oid, f"{path}/")
        elif _SEGMENT.search(path):
            yield path, blobs[oid]


def messages(of: Segments) -> dict[str, list[bytes]]:
    """Return the lines by the id they claim, where it is the id of the channel they stand in."""
    found: dict[str, list[bytes]] = defaultdict(list)
    for path in sorted(of):
        place = _SEGMENT.search(path)
        for line in of[path].split(b"\n")[:-1]:
            claimed = _LINE.match(line)
            if not place or not claimed or place[1].encode() != claimed["sender"] or place[2].encode() != claimed["to"]:
                continue
            found[f"{place[1]}/{place[2]}/{int(claimed['seq'])}"].append(line)
    return found


def missing_or_doubled(sent: Iterable[str], places: Mapping[str, Segments]) -> Iterator[Fault]:
    """Yield rule 1's faults: promised ids that a place has not exactly once, and with the same bytes as the others."""
    held = {place: messages(of) for place, of in places.items()}
    for identity in sorted(set(sent)):
        copies: dict[bytes, str] = {}
        for place, lines in held.items():
            found = lines.get(identity, [])
            if len(found) != 1:
                yield Fault(1, place, f"{identity} is there {len(found)} times, expected once")
            for line in found:
                copies.setdefault(line, place)
        if len(copies) > 1:
            yield Fault(1, ", ".join(copies.values()), f"{identity} has {len(copies)} different lines")


def _clone_places(clones: Mapping[str, Path]) -> dict[str, Segments]:
    return {f"clone of {name}": in_clone(clone) for name, clone in clones.items()}


# Rules 2 and 3


class _Change(NamedTuple):
    commit: str
    old: str
    new: str
    path: str


def history(repository: Path, tip: str | None) -> Iterator[Fault]:
    """Yield the faults of all commits up to `tip`: segments that did not only grow (2), conflict markers (3)."""
    if tip is None:
        return
    blobs = _Blobs(repository)
    judged: set[str] = set()
    try:
        for change in _changes(repository, tip):
            where = f"{change.commit[:12]} {change.path}"
            new = b"" if _is_null(change.new) else blobs[change.new]
            if _SEGMENT.search(change.path) and not _is_null(change.old):
                old = blobs[change.old]
                if not new.startswith(old):
                    yield Fault(2, where, _shrunk(old, new, gone=_is_null(change.new)))
            if change.new not in judged:
                judged.add(change.new)
                if marker := _MARKER.search(new):
                    line = new.count(b"\n", 0, marker.start()) + 1
                    yield Fault(3, where, f"a conflict marker in line {line}")
    finally:
        blobs.close()


def _changes(repository: Path, tip: str) -> Iterator[_Change]:
    """Yield what every commit changed against each of its parents, oldest first."""
    logged = gitcmd.git(
        repository,
        *("log", "--reverse", "--topo-order", "-m", "--root", "--raw", "-z", "--no-renames", "--no-abbrev"),
        *("--format=commit %H", tip, "--"),
        timeout=600,
    )
    commit = ""
    # With -z a change is ":modes oids status", NUL, path, NUL; a header ends with NUL too, and may follow a newline.
    fields = iter(logged.split(b"\0"))
    for field in fields:
        text = field.decode("utf-8", "surrogateescape").strip("\n")
        if text.startswith("commit "):
            commit = text.split()[1]
        elif text.startswith(":"):
            _, _, old, new, _ = text.split()
            yield _Change(commit, old, new, next(fields).decode("utf-8", "surrogateescape"))


def _is_null(oid: str) -> bool:
    return not oid.strip("0")


def _shrunk(old: bytes, new: bytes, *, gone: bool) -> str:
    if gone:
        return f"removed, {len(old)} bytes are lost"
    pairs = enumerate(zip(old, new, strict=False))
    same = next((offset for offset, (was, became) in pairs if was != became), min(len(old), len(new)))
    return f"{len(old)} bytes became {len(new)}, differing from byte {same}: expected the old bytes and more"


class _Blobs:
    """Blobs of one repository through one `cat-file --batch`; the last ones are kept, for the commit that follows."""

    _KEPT = 256

    def __init__(self, repository: Path) -> None:
        self._process = gitcmd.start(repository, "cat-file", "--batch")
        self._recent: dict[str, bytes] = {}
        self.id_digits = 0
        """How long the ids are that were read."""

    def __getitem__(self, oid: str) -> bytes:
        if oid in self._recent:
            return self._recent[oid]
        data = self.get(oid)
        assert data is not None, f"no such object: {oid}"
        self._recent[oid] = data
        if len(self._recent) > self._KEPT:
            del self._recent[next(iter(self._recent))]
        return data

    def get(self, name: str) -> bytes | None:
        """Return an object's bytes, or None where there is none of this name."""
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        asked.write(f"{name}\n".encode())
        asked.flush()
        header = answered.readline().split()
        if len(header) != 3:  # missing; a submodule's entry names a commit that we need not have
            return None
        self.id_digits = len(header[0])
        data = answered.read(int(header[2]))
        answered.read(1)
        return data

    def close(self) -> None:
        gitcmd.end(self._process)


# Rule 2 where an attacker is at work


class Accepted:
    """What a machine had accepted at one moment, to be compared with what it has later.

    before = Accepted(spark)
    …
    before.still_held()
    """

    REF = "refs/wire/accepted"

    def __init__(self, machine: Machine, *, wire: str | None = None, known: dict[str, bytes] | None = None) -> None:
        self._machine = machine
        self._clone = machine.clone(wire)
        self.segments = self._look() if known is None else known

    def _look(self) -> dict[str, bytes]:
        return segments(self._clone, self.REF)

    def still_held(self) -> None:
        """Fail unless every accepted segment is a byte prefix of what is accepted now."""
        now = self._look()
        faults = [
            Fault(
                2, f"accepted by {self._machine.name}: {path}", _shrunk(old, now.get(path, b""), gone=path not in now)
            )
            for path, old in self.segments.items()
            if not now.get(path, b"").startswith(old)
        ]
        assert not faults, "\n".join(map(str, faults))


# Rule 4


def leftovers(name: str, clone: Path) -> Iterator[Fault]:
    """Yield rule 4's faults of one clone."""
    git_dir = clone / ".git"
    if not git_dir.is_dir():
        yield Fault(4, f"clone of {name}", f"no repository in {clone}")
        return
    for lock in sorted(git_dir.rglob("*.lock")):
        yield Fault(4, f"clone of {name}", f"{lock.relative_to(clone)} is left")
    for leftover in _LEFTOVERS:
        if (git_dir / leftover).exists():
            yield Fault(4, f"clone of {name}", f".git/{leftover} is left")
    head = (git_dir / "HEAD").read_text("utf-8").strip()
    if not head.startswith("ref: refs/heads/"):
        yield Fault(4, f"clone of {name}", f"HEAD is detached at {head}")
