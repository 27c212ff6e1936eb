"""Write a few objects as one small pack, the way `git fast-import` leaves them, without its process.

    made = Packed("sha1")
    blob = made.add("blob", b"…")           its id
    made.write("/w/.git")                   on the disk, pack before index, before anything names them

A pack and its index in git's formats 2: each object with its kind, its size and its bytes deflated whole; the ids in
order, with their checksums and places. Deltas are for the next packing. What is there under the same name is the same
pack, since its name is the hash of its content.
"""

import contextlib
import os
import struct
import zlib
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import hashlib

_KINDS = {"commit": 1, "tree": 2, "blob": 3}
_QUICK = 1
"""How hard to deflate: an object of a wire is small, and is packed again soon."""


class _Entry(NamedTuple):
    oid: bytes
    check: int
    offset: int


class Packed:
    """Objects that are to be one pack.

    Args:
        object_format: `sha1` or `sha256`.
    """

    def __init__(self, object_format: str) -> None:
        self._format = object_format
        self._entries: dict[bytes, _Entry] = {}
        self._parts: list[bytes] = []
        self._size = 12

    def add(self, kind: str, data: bytes) -> str:
        """Take an object and return its id."""
        digest = self._hash(b"%s %d\0" % (kind.encode("ascii"), len(data)))
        digest.update(data)
        oid = digest.digest()
        if oid not in self._entries:
            part = _header(_KINDS[kind], len(data)) + zlib.compress(data, _QUICK)
            self._entries[oid] = _Entry(oid, zlib.crc32(part), self._size)
            self._parts.append(part)
            self._size += len(part)
        return oid.hex()

    def write(self, git_dir: str) -> None:
        """Write the pack and its index; both are on the disk when this returns.

        Raises:
            OSError: they are not there, and nothing is left of them.
        """
        if not self._parts:
            return
        body = b"".join((struct.pack(">4sII", b"PACK", 2, len(self._parts)), *self._parts))
        checksum = self._hash(body).digest()
        folder = os.path.join(git_dir, "objects", "pack")
        os.makedirs(folder, exist_ok=True)
        name = os.path.join(folder, f"pack-{checksum.hex()}")
        # An index without its pack would be an error to git, and a pack without its index is nothing to it.
        for suffix, data in ((".pack", body + checksum), (".idx", self._index(checksum))):
            _put(folder, name + suffix, data)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _index(self, checksum: bytes) -> bytes:
        entries = sorted(self._entries.values())
        counts = [0] * 256
        for entry in entries:
            counts[entry.oid[0]] += 1
        index = b"".join(
            (
                b"\377tOc\0\0\0\2",
                struct.pack(">256I", *accumulate(counts)),
                *(entry.oid for entry in entries),
                *(struct.pack(">I", entry.check) for entry in entries),
                *(struct.pack(">I", entry.offset) for entry in entries),
                checksum,
            )
        )
        return index + self._hash(index).digest()

    def _hash(self, data: bytes) -> "hashlib._Hash":
        import hashlib  # a host's hook writes nothing, and can do without

        if self._format == "sha256":
            return hashlib.sha256(data)
        return hashlib.sha1(data, usedforsecurity=False)


def _header(kind: int, size: int) -> bytes:
    """Return what stands before an object in a pack: its kind and size, the lowest four bits of it first."""
    byte, size = kind << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    out.append(byte)
    return bytes(out)


def _put(folder: str, path: str, data: bytes) -> None:
    temporary = os.path.join(folder, f"tmp_wire_{os.urandom(6).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
