"""What a trust document says, as frozen data (PROTOCOL.md, section "Trust").

These classes check nothing: `document.parse` makes them from bytes and judges them. A `Document` is well-formed and no
more; that it is signed and follows its predecessor is what being in a `chain.Chain` means. The mappings are plain
dictionaries, so that a chain can be handed to worker processes; nobody changes them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wire.protocol.encoding import format_checkpoint, key_id, sha256_hex

ACTIVE = "active"
RETIRED = "retired"
REVOKED = "revoked"
REMOVED = "removed"
KEY_STATUSES = (ACTIVE, RETIRED, REVOKED)
"""The states of a key, in the only direction in which they change."""
NAME_STATUSES = (ACTIVE, REMOVED)
"""The states of an agent or a group, in the only direction in which they change."""
ROLES = ("agent", "human")

VERSION_MAX = 999_999_999
WIRE_ID_DIGITS = 32
"""Hex digits of a wire's id: so many of the hash of version 1."""

_FILE = re.compile(r"([0-9]{6,9})\.json", re.ASCII)


@dataclass(frozen=True, slots=True)
class Key:
    """A public key of an agent, with its proof and, once it is not active, the last line that counts per channel."""

    public: bytes
    status: str
    proof: bytes
    positions: Mapping[str, tuple[int, str]]
    id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", key_id(self.public))

    def covers(self, channel: str, seq: int, head: str) -> bool:
        """Return whether a line of this key counts at a place.

        An active key counts everywhere. Otherwise only lines up to the channel's position count, the one at the
        position only with its very head; in a channel that is not named, none.
        """
        if self.status == ACTIVE:
            return True
        last = self.positions.get(channel)
        return last is not None and (seq < last[0] or (seq, head) == last)


@dataclass(frozen=True, slots=True)
class Agent:
    """A name that may write lines."""

    name: str
    role: str
    status: str
    keys: tuple[Key, ...]

    @property
    def active_key(self) -> Key | None:
        """The one key that new lines of the agent are signed with, if there is one."""
        return next((key for key in self.keys if key.status == ACTIVE), None)

    @property
    def waits_for_key(self) -> bool:
        """Whether its last key was revoked and another may take its place."""
        return self.status == ACTIVE and self.active_key is None

    def key(self, key_id: str) -> Key | None:
        """Return the agent's key with this id, whatever its status."""
        return next((key for key in self.keys if key.id == key_id), None)


@dataclass(frozen=True, slots=True)
class Group:
    """A name that lines may be addressed to, for several agents."""

    name: str
    status: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A well-formed trust document; having one does not mean that anybody signed it."""

    version: int
    wire: str | None
    prev: str | None
    nonce: str | None
    created: str
    threshold: int
    roots: tuple[bytes, ...]
    agents: Mapping[str, Agent]
    groups: Mapping[str, Group]
    policy: Mapping[str, Any]
    raw: bytes = field(repr=False)
    hash: str = field(init=False)
    owners: Mapping[str, tuple[str, Key]] = field(init=False, repr=False, compare=False)
    """Key id to (agent's name, key), for every key of every agent."""

    def __post_init__(self) -> None:
        owners = {key.id: (agent.name, key) for agent in self.agents.values() for key in agent.keys}
        object.__setattr__(self, "hash", sha256_hex(self.raw))
        object.__setattr__(self, "owners", owners)

    @property
    def wire_id(self) -> str:
        """The id of the wire that it belongs to: what it names, or for version 1 what its hash makes."""
        return self.wire or self.hash[:WIRE_ID_DIGITS]

    @property
    def digest(self) -> bytes:
        """SHA-256 of the document's bytes, 32 bytes."""
        return bytes.fromhex(self.hash)

    @property
    def reference(self) -> str:
        """What a line carries as `trust`: the version and the first 16 hex of the hash."""
        return f"{self.version}:{self.hash[:16]}"

    @property
    def checkpoint(self) -> str:
        """What people and pins hold: `3:SHA256:<43 base64>`."""
        return format_checkpoint(self.version, self.digest)

    def holds_key(self, public: bytes) -> bool:
        """Return whether this public key stands in the document, as a root's or an agent's."""
        owner = self.owners.get(key_id(public))
        return public in self.roots or (owner is not None and owner[1].public == public)


def file_name(version: int) -> str:
    """Return the name of a version's file in `trust/`, such as `000003.json`; its signatures add `.sig`."""
    return f"{version:06d}.json"


def parse_file_name(name: str) -> int | None:
    """Return the version of a file in `trust/`, or None when the name is not exactly what `file_name` makes."""
    match = _FILE.fullmatch(name)
    if match is None:
        return None
    version = int(match[1])
    return version if version > 0 and file_name(version) == name else None
