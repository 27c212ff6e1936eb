"""What a trust document says, as frozen data (PROTOCOL.md, section "Trust").

These classes check nothing: `document.parse` makes them from bytes and judges them. A `Document` is well-formed and no
more; that it is signed and follows its predecessor is what being in a `chain.Chain` means. The mappings are plain
dictionaries, so that a chain can be handed to worker processes; nobody changes them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

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
ENCRYPT, REQUIRED, OPTIONAL = "encrypt", "required", "optional"
"""A member of the policy, and what it may say."""

VERSION_MAX = 999_999_999
WIRE_ID_DIGITS = 32
"""Hex digits of a wire's id: so many of the hash of version 1."""


class _Key(NamedTuple):
    public: bytes
    status: str
    proof: bytes
    positions: Mapping[str, tuple[int, str]]
    id: str


class Key(_Key):
    """A public key of an agent, with its proof and, once it is not active, the last line that counts per channel."""

    __slots__ = ()

    def __new__(
        cls,
        public: bytes,
        status: str,
        proof: bytes,
        positions: Mapping[str, tuple[int, str]],
        id: str | None = None,
    ) -> "Key":
        """Return a key; `id` is what the public key makes it, and given only by who copies one."""
        return super().__new__(cls, public, status, proof, positions, id or key_id(public))

    def covers(self, channel: str, seq: int, head: str) -> bool:
        """Return whether a line of this key counts at a place.

        An active key counts everywhere. Otherwise only lines up to the channel's position count, the one at the
        position only with its very head; in a channel that is not named, none.
        """
        if self.status == ACTIVE:
            return True
        last = self.positions.get(channel)
        return last is not None and (seq < last[0] or (seq, head) == last)


class Agent(NamedTuple):
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


class Group(NamedTuple):
    """A name that lines may be addressed to, for several agents."""

    name: str
    status: str
    members: tuple[str, ...]


class _Document(NamedTuple):
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
    raw: bytes
    hash: str
    owners: Mapping[str, tuple[str, Key]]


class Document(_Document):
    """A well-formed trust document; having one does not mean that anybody signed it.

    Attributes:
        hash: SHA-256 of `raw`, as hex digits.
        owners: key id to (agent's name, key), for every key of every agent.
    """

    __slots__ = ()

    def __new__(
        cls,
        version: int,
        wire: str | None,
        prev: str | None,
        nonce: str | None,
        created: str,
        threshold: int,
        roots: tuple[bytes, ...],
        agents: Mapping[str, Agent],
        groups: Mapping[str, Group],
        policy: Mapping[str, Any],
        raw: bytes,
        hash: str | None = None,
        owners: Mapping[str, tuple[str, Key]] | None = None,
    ) -> "Document":
        """Return a document; the last two are what the others make them, and given only by who copies one."""
        owners = owners or {key.id: (agent.name, key) for agent in agents.values() for key in agent.keys}
        return super().__new__(
            cls, version, wire, prev, nonce, created, threshold, roots, agents, groups, policy, raw,
            hash or sha256_hex(raw), owners,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Document(version={self.version}, hash={self.hash!r})"

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

    @property
    def asks_for_sealing(self) -> bool:
        """Whether senders are asked to close their letters: the policy's `encrypt` is `required`."""
        return self.policy.get(ENCRYPT) == REQUIRED

    def holds_key(self, public: bytes) -> bool:
        """Return whether this public key stands in the document, as a root's or an agent's."""
        owner = self.owners.get(key_id(public))
        return public in self.roots or (owner is not None and owner[1].public == public)


def file_name(version: int) -> str:
    """Return the name of a version's file in `trust/`, such as `000003.json`; its signatures add `.sig`."""
    return f"{version:06d}.json"
