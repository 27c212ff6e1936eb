"""Read blobs, many in one child and a few through the one that stays; never hold or wait for one that is too large."""

import re
from collections.abc import Iterable, Sequence

from wire.gitio import leftout, parse
from wire.gitio.classify import GitFailed, Kind
from wire.gitio.core import Core

TOTAL_MAX = 256 << 20
"""Bytes that one call returns at most."""
FEW = 32
"""Objects that are asked for one by one; for more a child of their own is faster."""

_LOST = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) (missing|ambiguous)\Z")


def read(core: Core, oids: Iterable[str], *, max_size: int) -> dict[str, bytes | None]:
    """See `Git.blobs`."""
    wanted = list(dict.fromkeys(parse.object_id(oid) for oid in oids))
    try:
        return _read(core, wanted, max_size)
    except GitFailed as error:
        out = leftout.read(core.git_dir) if error.kind is Kind.CORRUPT else frozenset()
        if error.object_id not in out:
            raise
    here = _read(core, [oid for oid in wanted if oid not in out], max_size)
    return {oid: here.get(oid) for oid in wanted}


def _read(core: Core, wanted: Sequence[str], max_size: int) -> dict[str, bytes | None]:
    if not wanted:
        return {}
    if len(wanted) <= FEW and (told := core.read(wanted, max_size=max_size)) is not None:
        return {one.oid: one.data if one.kind == "blob" else None for one in told}
    reader = _Reader(max_size)
    _cat_file(core, "--batch", wanted, reader)
    if not reader.met_large:
        return reader.found
    # Rare, and somebody's doing: look at all sizes first, so that nothing large is read at all.
    sizes = _Reader(max_size, headers_only=True)
    _cat_file(core, "--batch-check", wanted, sizes)
    fitting = _Reader(max_size)
    _cat_file(core, "--batch", [oid for oid in wanted if sizes.found[oid] is not None], fitting)
    return {oid: fitting.found.get(oid) for oid in wanted}


def blob_id(data: bytes, like: str) -> str:
    """Return git's object id of a blob, in the hash that the id `like` is written in."""
    import hashlib  # who reads needs none of it

    digest = hashlib.sha256() if len(like) == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(data))
    digest.update(data)
    return digest.hexdigest()


def sizes(core: Core, oids: Iterable[str]) -> dict[str, int]:
    """See `Git.sizes`."""
    wanted = list(dict.fromkeys(parse.object_id(oid) for oid in oids))
    try:
        return _sizes(core, wanted)
    except GitFailed as error:
        out = leftout.read(core.git_dir) if error.kind is Kind.CORRUPT else frozenset()
        if error.object_id not in out:
            raise
    here = _sizes(core, [oid for oid in wanted if oid not in out])
    return {oid: here.get(oid, leftout.LIMIT) for oid in wanted}


def _sizes(core: Core, wanted: Sequence[str]) -> dict[str, int]:
    if not wanted:
        return {}
    if len(wanted) <= FEW and (told := core.read(wanted, max_size=-1)) is not None:
        return {one.oid: one.size for one in told}
    asked = "".join(f"{oid}\n" for oid in wanted).encode()
    args = ("cat-file", "--batch-check=%(objectname) %(objectsize)", "--buffer")
    listed = core.run(*args, input=asked).stdout.decode("ascii", "replace").split("\n")[:-1]
    found = {}
    for oid, (name, _, size) in zip(wanted, (line.partition(" ") for line in listed), strict=True):
        if name != oid or not size.isdigit():
            raise GitFailed(
                f"object {oid} is missing in {core.git_dir}", kind=Kind.CORRUPT, label="object", object_id=oid
            )
        found[oid] = int(size)
    return found


def _cat_file(core: Core, how: str, oids: Sequence[str], reader: "_Reader") -> None:
    args = ("cat-file", how, "--buffer")
    ended = core.spawn(args, input="".join(f"{oid}\n" for oid in oids).encode(), sink=reader.feed)
    if reader.lost is not None:
        raise GitFailed(
            f"object {reader.lost} is missing or damaged in {core.git_dir}",
            kind=Kind.CORRUPT,
            label="object",
            stderr=core.shown(ended.stderr),
            object_id=reader.lost,
        )
    if reader.met_large and ended.cut == "enough" and reader.total <= TOTAL_MAX:
        return
    core.judge(args, ended)
    if len(reader.found) < len(oids):
        raise parse.refused("cat-file", b"less than asked for")


class _Reader:
    """Take the output of `cat-file --batch` in pieces; stop at the first object that is too large to be read."""

    def __init__(self, max_size: int, *, headers_only: bool = False) -> None:
        self.found: dict[str, bytes | None] = {}
        self.lost: str | None = None
        self.met_large = False
        self.total = 0
        self._max_size = max_size
        self._headers_only = headers_only
        self._buffer = bytearray()
        self._open: tuple[str, str, int] | None = None

    def feed(self, chunk: bytes) -> bool:
        """Take a piece; return False when no more is wanted."""
        self._buffer += chunk
        while self._header() if self._open is None else self._body():
            pass
        return self.lost is None and self.total <= TOTAL_MAX and (self._headers_only or not self.met_large)

    def _header(self) -> bool:
        line, newline, _ = bytes(self._buffer[:256]).partition(b"\n")
        if not newline:
            return False
        gone = _LOST.match(line)
        if gone:
            self.lost = gone[1].decode("ascii")
            return False
        oid, kind, size = line.decode("ascii", "replace").split(" ")
        del self._buffer[: len(line) + 1]
        fits = kind == "blob" and int(size) <= self._max_size
        self.met_large |= not fits
        if self._headers_only:
            self.found[oid] = b"" if fits else None
        elif fits:
            self._open = (oid, kind, int(size))
        return fits or self._headers_only

    def _body(self) -> bool:
        if self._open is None or len(self._buffer) <= self._open[2]:
            return False
        oid, _, size = self._open
        self.found[oid] = bytes(self._buffer[:size])
        del self._buffer[: size + 1]
        self.total += size
        self._open = None
        return self.total <= TOTAL_MAX
