"""The record of the last line that this machine signed in a channel, kept beside the channel's lock.

Rules that it keeps:

- It is written inside the critical section, after the line is on disk: it may lag behind the journal, and is never
  ahead of it unless the journal lost something.
- It has a fixed length and is overwritten in place, so that keeping it costs one small write and no fsync.
- A record that is torn, damaged or missing counts as none. The journal alone then says what was sent.

What it does not do: take the lock, or look at the journal.
"""

import os
from typing import NamedTuple

from wire.protocol.chain import Position
from wire.protocol.encoding import sha256_hex

FILE = "sent"
_LENGTH = 136
_CHECK = 16


class Sent(NamedTuple):
    """The end of a channel after the last line that was signed for it, and that line's length with its newline."""

    end: Position
    length: int


def read(folder: str) -> Sent | None:
    """Return the record in a lock's folder, or None when there is none that holds.

    Raises:
        OSError: the file is there and cannot be read.
    """
    try:
        descriptor = os.open(os.path.join(folder, FILE), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        data = os.read(descriptor, _LENGTH)
    finally:
        os.close(descriptor)
    return _decode(data)


def write(folder: str, sent: Sent) -> None:
    """Overwrite the record; the caller holds the lock.

    Raises:
        OSError: it could not be written; what stands there then counts as no record, or is the one before.
    """
    descriptor = os.open(os.path.join(folder, FILE), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, _encode(sent))
    finally:
        os.close(descriptor)


def _encode(sent: Sent) -> bytes:
    seq, head, segment, size = sent.end
    said = f"sent 1 {seq:016d} {head} {segment:09d} {size:09d} {sent.length:09d} ".encode("ascii")
    return said + sha256_hex(said)[:_CHECK].encode("ascii") + b"\n"


def _decode(data: bytes) -> Sent | None:
    said = data[: -_CHECK - 1]
    if len(data) != _LENGTH or sha256_hex(said)[:_CHECK].encode("ascii") + b"\n" != data[len(said) :]:
        return None
    _, _, seq, head, segment, size, length = said.decode("ascii").split()
    return Sent(Position(int(seq), head, int(segment), int(size)), int(length))
