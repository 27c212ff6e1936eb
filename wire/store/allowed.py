"""Likely secrets that were let through: who said why, kept on this machine and nowhere else.

    note(places, [Allowed("mac/spark/7", head, now, "mac", (("a GitHub token", "the body"),), "a revoked one")])
    of(places, "mac/spark/7", head)             the record, or None

One line of JSON for each message, never with the value. It is written before the message is, so that none goes out
without it; a record whose message never came to be has a head that no line has.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from wire.protocol import strictjson
from wire.store.files import append_whole, fsync_folder, locked, read_bytes, store_error
from wire.store.paths import WirePlaces

FILE = "allowed-secrets.jsonl"
_LOCK_SECONDS = 60.0


class Allowed(NamedTuple):
    """A message that went out with a likely secret.

    Attributes:
        id, head: which message.
        at: when (UTC text).
        found: kind and place of each.
        reason: what its author said.
    """

    id: str
    head: str
    at: str
    found: tuple[tuple[str, str], ...]
    reason: str


def path_of(places: WirePlaces) -> str:
    """Return where the records are."""
    return os.path.join(places.root, FILE)


def note(places: WirePlaces, records: Sequence[Allowed]) -> None:
    """Write records down, durably; raises DiskFull or StoreError, and then nothing may be sent."""
    path = path_of(places)
    data = b"".join(strictjson.dumps(one._asdict()) + b"\n" for one in records)
    with locked(f"{path}.lock", what="the record of secrets that were let through", timeout=_LOCK_SECONDS):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                append_whole(descriptor, data, path=path)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            fsync_folder(places.root)
        except OSError as error:
            raise store_error(error, "write", path) from error


def of(places: WirePlaces, message_id: str, head: str) -> Allowed | None:
    """Return the record of a message; lines that cannot be read count as none."""
    for line in (read_bytes(path_of(places)) or b"").split(b"\n"):
        if head.encode("ascii") not in line:
            continue
        try:
            told = strictjson.loads(line)
            found = tuple((str(kind), str(where)) for kind, where in told["found"])
            record = Allowed(str(told["id"]), str(told["head"]), str(told["at"]), found, str(told["reason"]))
        except (ValueError, KeyError, TypeError):
            continue
        if (record.id, record.head) == (message_id, head):
            return record
    return None
