"""The accepted bytes of a wire, kept as one local commit (PROTOCOL.md, section "What a verifier keeps").

The tree of that commit is exactly what was accepted: every channel's segments and the trust chain. Git stores it
without copies, since honest tips carry the same blobs. Where a tip holds nothing else, as it mostly does, the tip is
the accepted commit, and our next lines are a commit on it; otherwise one without parents is made. The pin names the
commit; the ref `refs/wire/accepted` only keeps it from being pruned. Mending, publishing, healing and evidence read
from here, never from a work tree, and never from a tip that was not judged.
"""

from collections.abc import Iterable, Mapping, Sequence

from wire.daemon.shape import (
    ABSENT_MODE,
    ATTRIBUTES,
    ATTRIBUTES_PATH,
    FILE_MODE,
    NEWEST_TRUST_PATH,
    segment_path,
    trust_path,
)
from wire.gitio import Change, Drop, Git, Put, blob_id
from wire.keys.trust import Chain
from wire.protocol.chain import Position, lines_of, place
from wire.protocol.line import parse

REF = "refs/wire/accepted"
BLOB_MAX = 1 << 20
"""Bytes beyond which a blob is not read at all: what a trust document may have, and four times what a segment has."""


KEPT_MAX = 4 * 1024 * 1024
"""Bytes of blobs that are kept from one cycle for the next: the ends of the channels in which something moves."""


class Blobs:
    """Blobs by object id, read in batches and kept while a cycle needs them, the newest for the next cycle, too."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._held: dict[str, bytes | None] = {}

    def fetch(self, oids: Iterable[str]) -> None:
        """Read those of `oids` that are not held yet, in one child."""
        wanted = [oid for oid in dict.fromkeys(oids) if oid.strip("0") and oid not in self._held]
        if wanted:
            self._held.update(self._git.blobs(wanted, max_size=BLOB_MAX))

    def get(self, oid: str) -> bytes | None:
        """Return a blob's bytes; empty for the null id, None when it is larger than `BLOB_MAX`."""
        if not oid.strip("0"):
            return b""
        self.fetch([oid])
        data = self._held[oid] = self._held.pop(oid)
        return data

    def put(self, oid: str, data: bytes) -> None:
        """Hold bytes that are known to be this object's."""
        self._held[oid] = data

    def sizes(self, oids: Iterable[str]) -> dict[str, int]:
        """Return the sizes of objects; git is asked for those that are not held, in one child."""
        found = {}
        unknown = []
        for oid in dict.fromkeys(oids):
            data = self._held.get(oid)
            if data is not None:
                found[oid] = len(data)
            else:
                unknown.append(oid)
        return found | (self._git.sizes(unknown) if unknown else {})

    def trim(self) -> None:
        """Forget what was asked for longest ago, until at most `KEPT_MAX` bytes are held."""
        room = KEPT_MAX
        kept = []
        for oid, data in reversed(self._held.items()):
            room -= len(data or b"")
            if room < 0:
                break
            kept.append((oid, data))
        self._held = dict(reversed(kept))

    def drop(self) -> None:
        """Forget everything that is held."""
        self._held.clear()


class Listing:
    """Path and object id of everything in an accepted commit, which cannot change: kept from one cycle for the next."""

    __slots__ = ("commit", "entries")

    def __init__(self) -> None:
        self.commit: str | None = None
        self.entries: Mapping[str, str] = {}


class Accepted:
    """The accepted bytes: what the pinned commit holds, with this cycle's changes on top.

    Args:
        commit: the pinned commit, or None on a machine that accepted nothing yet.
        listing: what an earlier cycle knew, and the next one will.
    """

    def __init__(self, git: Git, blobs: Blobs, commit: str | None, listing: Listing | None = None) -> None:
        self.commit = commit
        self._git = git
        self._blobs = blobs
        self._listing = listing or Listing()
        self._changed: dict[str, bytes | str | None] = {}

    def segment(self, channel: str, number: int) -> bytes:
        """Return the accepted bytes of one segment, empty when there are none."""
        return self.read(segment_path(channel, number))

    def prefetch(self, channel: str, numbers: Iterable[int]) -> None:
        """Read the segments that will be asked for next, in one child."""
        paths = (segment_path(channel, number) for number in numbers)
        self._blobs.fetch(oid for path in paths if (oid := self.oids().get(path)) is not None)

    def read(self, path: str) -> bytes:
        """Return the accepted bytes at a path, empty when there are none."""
        entry = self._changed[path] if path in self._changed else self.oids().get(path)
        if isinstance(entry, bytes):
            return entry
        return (self._blobs.get(entry) or b"") if entry else b""

    def oid(self, channel: str, number: int) -> str | None:
        """Return the object that holds a segment's accepted bytes, or None where that is not written yet."""
        path = segment_path(channel, number)
        entry = self._changed[path] if path in self._changed else self.oids().get(path)
        return entry if isinstance(entry, str) else None

    def oids(self) -> Mapping[str, str]:
        """Return path and object id of everything in the pinned commit."""
        if self._listing.commit != self.commit:
            entries = self._git.entries(self.commit) if self.commit else []
            self._listing.entries = {entry.path.decode("ascii"): entry.oid for entry in entries}
            self._listing.commit = self.commit
        return self._listing.entries

    def put(self, path: str, data: bytes | str | None) -> None:
        """Set a path to bytes, or to an object that the repository already has; None takes it away."""
        self._changed[path] = data

    def trust(self) -> list[tuple[bytes, bytes]]:
        """Return the accepted trust documents with their signatures, from version 1 on."""
        files: list[tuple[bytes, bytes]] = []
        while raw := self.read(path := trust_path(len(files) + 1)):
            files.append((raw, self.read(f"{path}.sig")))
        return files

    def put_trust(self, chain: Chain) -> None:
        """Set the trust chain: every version with its signatures, the newest copy, and the attributes."""
        known = self.oids()
        for document, signatures in zip(chain.documents, chain.signatures, strict=True):
            path = trust_path(document.version)
            if path not in known:
                self.put(path, document.raw)
                self.put(f"{path}.sig", signatures)
        self.put(NEWEST_TRUST_PATH, chain.newest.raw)
        if ATTRIBUTES_PATH not in known:
            self.put(ATTRIBUTES_PATH, ATTRIBUTES)

    def replace_trust(self, chain: Chain, since: int) -> None:
        """Set the versions from a number on, and take away those that the chain does not have."""
        for document, signatures in zip(chain.documents[since - 1 :], chain.signatures[since - 1 :], strict=True):
            self.put(trust_path(document.version), document.raw)
            self.put(f"{trust_path(document.version)}.sig", signatures)
        known, version = self.oids(), chain.newest.version + 1
        while trust_path(version) in known:
            self.put(trust_path(version), None)
            self.put(f"{trust_path(version)}.sig", None)
            version += 1
        self.put(NEWEST_TRUST_PATH, chain.newest.raw)

    def cut(self, channel: str, end: Position, keep: Position) -> bytes:
        """Take back everything of a channel after `keep`; return the bytes that were cut."""
        cut = []
        for number in range(keep.segment, end.segment + 1):
            data = self.segment(channel, number)
            kept = keep.size if number == keep.segment else 0
            cut.append(data[kept:])
            self.put(segment_path(channel, number), data[:kept] or None)
        return b"".join(cut)

    def append(
        self,
        channel: str,
        end: Position,
        lines: Sequence[bytes],
        carried: Mapping[int, tuple[str, bytes]] | None = None,
    ) -> None:
        """Put lines behind `end`; they are without newline and already verified as the next ones.

        Args:
            carried: object id and bytes of the segments of a tip; where what results is exactly those bytes, the object
                is used as it is and nothing is written.
        """
        parts: dict[int, list[bytes]] = {}
        for raw in lines:
            segment, offset = place(end, len(raw) + 1)
            end = end._replace(segment=segment, size=offset + len(raw) + 1)
            parts.setdefault(segment, []).append(raw)
        for number, added in parts.items():
            data = b"\n".join([self.segment(channel, number) + added[0], *added[1:], b""])
            oid, bytes_at_tip = (carried or {}).get(number, ("", b""))
            if oid and bytes_at_tip == data:
                self._blobs.put(oid, data)
            self.put(segment_path(channel, number), oid if oid and bytes_at_tip == data else data)

    def position_at(self, channel: str, seq: int, start: Position) -> Position:
        """Return the end that the channel had after its line `seq`, by walking its segments from the first."""
        position = start
        number = 1
        while position.seq < seq:
            lines = lines_of(self.segment(channel, number))
            if not lines:
                break
            for raw in lines[: seq - position.seq]:
                position = position.after(len(raw) + 1, parse(raw).head)
            number += 1
        return position

    @property
    def dirty(self) -> bool:
        """Whether there are changes that are not in the commit yet."""
        return bool(self._changed)

    def equals(self, changes: Iterable[Change]) -> bool:
        """Return whether a tip's tree is exactly the accepted one.

        Args:
            changes: all differences from the pinned commit to the tip.
        """
        there = {change.path.decode("utf-8", "surrogateescape"): change for change in changes}
        return self._changed.keys() <= there.keys() and all(
            self._named(path, change.new_oid) == (None if change.new_mode == ABSENT_MODE else change.new_oid)
            and change.new_mode in (FILE_MODE, ABSENT_MODE)
            for path, change in there.items()
        )

    def adopt(self, tip: str) -> None:
        """Take a tip whose tree is exactly the accepted one as the accepted commit, and move `REF` to it."""
        self._git.update_ref(REF, tip)
        self._become(tip)

    def commit_changes(self, *, on: str | None = None, message: str = "accepted", also: Sequence[str] = ()) -> str:
        """Write the changes as a new commit, move the ref, and return the commit.

        Args:
            on: the commit's parent, whose tree is the accepted one as it was before the changes; else it has none.
            also: further refs to put there.
        """
        changes = [_change(path.encode("ascii"), entry) for path, entry in self._changed.items()]
        commit = self._git.write_commit(
            REF, base=on or self.commit, parents=[on] if on else [], message=message, changes=changes, also=also
        )
        self._become(commit)
        return commit

    def _named(self, path: str, like: str) -> str | None:
        """Return the object id of what is accepted at a path, None for nothing; `like` is any id of the repository."""
        if path not in self._changed:
            return self.oids().get(path)
        entry = self._changed[path]
        return blob_id(entry, like) if isinstance(entry, bytes) else entry

    def _become(self, commit: str) -> None:
        entries = {path: oid for path, oid in self.oids().items() if path not in self._changed}
        for path, entry in self._changed.items():
            oid = self._named(path, commit)
            if oid is not None:
                entries[path] = oid
                if isinstance(entry, bytes):
                    self._blobs.put(oid, entry)
        self.commit = commit
        self._listing.commit, self._listing.entries = commit, entries
        self._changed.clear()


def _change(path: bytes, entry: bytes | str | None) -> Put | Drop:
    if entry is None:
        return Drop(path)
    return Put(path, data=entry) if isinstance(entry, bytes) else Put(path, oid=entry)
