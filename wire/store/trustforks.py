"""Trust documents that claim a number which another one has, kept for a person to decide (PROTOCOL.md, "Succession").

`forks/000007.<32 hex of its hash>.json` and its `.sig` in the state folder of the wire; `forks/decided.json` says by
number which hash a person follows. Both documents are kept whatever is decided: they are evidence against whoever
signed two. No more than `KEPT_MAX` are, since one root could sign a new one for each tip: the one that was kept first
then gives way, so that what a tip shows can always be followed. One that a person decided for never does.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from wire.protocol import strictjson
from wire.protocol.encoding import sha256_hex
from wire.store.files import atomic_write, private_folder, read_bytes
from wire.store.paths import WirePlaces

KEPT_MAX = 64
_NAME = re.compile(r"([0-9]{6,9})\.([0-9a-f]{32})\.json", re.ASCII)
_DECIDED = "decided.json"


class Kept(NamedTuple):
    """A document of one number, validly signed."""

    version: int
    raw: bytes
    signatures: bytes

    @property
    def hash(self) -> str:
        """SHA-256 of the document, 64 hex digits."""
        return sha256_hex(self.raw)


def keep(places: WirePlaces, version: int, raw: bytes, signatures: bytes, *, spare: str = "") -> None:
    """Keep a document, unless it is.

    Args:
        spare: the hash of one that does not give way, besides those that were decided for.

    Raises:
        DiskFull, StoreError: it could not be written.
    """
    folder = _folder(places)
    path = os.path.join(folder, f"{version:06d}.{sha256_hex(raw)[:32]}.json")
    if os.path.lexists(path):
        return
    private_folder(folder)
    _make_room(folder, {spare, *_decisions(folder).values()})
    atomic_write(f"{path}.sig", signatures)
    atomic_write(path, raw)


def kept(places: WirePlaces) -> list[Kept]:
    """Return the documents that are kept, by number."""
    return list(_kept(_folder(places)))


def decide(places: WirePlaces, version: int, digest: str) -> None:
    """Note durably which document of a number a person follows, by its hash of 64 hex digits."""
    folder = _folder(places)
    private_folder(folder)
    known = {str(one): other for one, other in _decisions(folder).items()}
    atomic_write(os.path.join(folder, _DECIDED), strictjson.dumps({**known, str(version): digest}) + b"\n")


def decided(places: WirePlaces) -> dict[int, Kept]:
    """Return, by number, the documents that a person decided to follow and that are kept here."""
    folder = _folder(places)
    chosen = _decisions(folder)
    return {one.version: one for one in _kept(folder) if chosen.get(one.version) == one.hash} if chosen else {}


def _folder(places: WirePlaces) -> str:
    return os.path.join(places.root, "forks")


def _make_room(folder: str, spared: set[str]) -> None:
    paths = [os.path.join(folder, name) for name in _names(folder)]
    kept = {one[:32] for one in spared}
    going = sorted((one for one in paths if one.split(".")[-2] not in kept), key=lambda one: os.lstat(one).st_mtime_ns)
    for path in going[: max(0, len(paths) + 1 - KEPT_MAX)]:
        for one in (path, f"{path}.sig"):
            with suppress(FileNotFoundError):
                os.unlink(one)


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
    except FileNotFoundError:
        return []


def _kept(folder: str) -> Iterator[Kept]:
    for name in _names(folder):
        path = os.path.join(folder, name)
        raw, signatures = read_bytes(path), read_bytes(f"{path}.sig")
        # What was damaged is as good as gone: it is evidence, and the tip that has it brings it again.
        if raw is not None and signatures is not None and sha256_hex(raw)[:32] == name.split(".")[1]:
            yield Kept(int(name.split(".")[0]), raw, signatures)


def _decisions(folder: str) -> dict[int, str]:
    raw = read_bytes(os.path.join(folder, _DECIDED))
    try:
        members = strictjson.loads(raw or b"{}", floats_below=None)
        return {int(version): digest for version, digest in members.items() if isinstance(digest, str)}
    except ValueError:
        return {}
