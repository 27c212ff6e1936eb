"""Invitations: one line that lets a newcomer join, and the proof that a request comes from who got it (PROTOCOL.md,
section "Invitations").

    invitation = make("git@host:team.git", wire_hash, "3:SHA256:…", tip, "spark", "agent", expires=1796000000)
    code = encode(invitation)               # for one person, over a way that is not the wire
    parse(code) == invitation
    mac(invitation, public)                 # what the newcomer's request carries

The secret proves nothing but that: it signs no line and opens none, and it is worthless once somebody is enrolled.
"""

import hmac
import re
import secrets
from typing import NamedTuple

from wire.keys import pasted
from wire.keys.model import ROLES
from wire.protocol import strictjson
from wire.protocol.encoding import parse_checkpoint
from wire.protocol.names import valid_name

PREFIX = "wire-join-1."
SECRET_BYTES = 24
MAC_BYTES = 32
CODE_MAX = 4_096
"""Characters of a code."""

_HEX = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)
_OID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z", re.ASCII)


class Invitation(NamedTuple):
    """What a code says.

    Attributes:
        remote: the repository's URL, without credentials.
        wire_hash: the hash of trust version 1, 64 hex digits.
        checkpoint: `<version>:SHA256:<43 base64>`.
        tip: the commit that the inviter had verified.
        name, role: whom the newcomer is to be.
        secret: random bytes, known to two people.
        expires: seconds since the epoch, by the inviter's clock.
    """

    remote: str
    wire_hash: str
    checkpoint: str
    tip: str
    name: str
    role: str
    secret: bytes
    expires: int

    @property
    def wire(self) -> str:
        """The wire's id."""
        return self.wire_hash[:32]


def make(remote: str, wire_hash: str, checkpoint: str, tip: str, name: str, role: str, *, expires: int) -> Invitation:
    """Return an invitation with a new secret."""
    return Invitation(remote, wire_hash, checkpoint, tip, name, role, secrets.token_bytes(SECRET_BYTES), expires)


def encode(invitation: Invitation) -> str:
    """Return the code: one line without spaces, safe to paste."""
    members = invitation._asdict() | {"secret": invitation.secret.hex()}
    raw = strictjson.dumps(members)
    return pasted.line(PREFIX, raw)


def is_code(text: str) -> bool:
    """Return whether a text is meant to be a code; it may still be a damaged one."""
    return text.lstrip().startswith(PREFIX)


def parse(text: str) -> Invitation:
    """Read a code; spaces and line breaks that a mail put into it do no harm.

    Raises:
        ValueError: it is none, or not whole; the text quotes nothing of it.
    """
    code = "".join(text.split())
    if not code.startswith(PREFIX) or len(code) > CODE_MAX:
        raise ValueError(f"a join code begins with {PREFIX!r} and has at most {CODE_MAX} characters")
    raw = pasted.read(PREFIX, code, most=CODE_MAX)
    if not raw:
        raise ValueError("the join code is not whole: its checksum differs. Copy all of the line")
    try:
        return _read(strictjson.loads(raw, floats_below=None))
    except ValueError as error:
        raise ValueError("the join code is damaged, or of a newer version") from error


def _read(members: dict[str, object]) -> Invitation:
    if tuple(members) != Invitation._fields:
        raise ValueError("other members")
    remote, wire_hash, checkpoint, tip, name, role, secret, expires = members.values()
    texts = (remote, wire_hash, checkpoint, tip, name, role, secret)
    if not all(isinstance(text, str) for text in texts) or not isinstance(expires, int) or isinstance(expires, bool):
        raise ValueError("other types")
    found = Invitation(
        str(remote),
        str(wire_hash),
        str(checkpoint),
        str(tip),
        str(name),
        str(role),
        bytes.fromhex(str(secret)),
        expires,
    )
    parse_checkpoint(found.checkpoint)
    right = _HEX.match(found.wire_hash) and _OID.match(found.tip) and valid_name(found.name) and found.role in ROLES
    if not right or len(found.secret) != SECRET_BYTES or not found.remote:
        raise ValueError("other values")
    return found


def mac(invitation: Invitation, public: bytes) -> bytes:
    """Return what binds a public key to an invitation: HMAC-SHA-256 by its secret over wire, name, role and key."""
    head = f"wire/v1/invitation\n{invitation.wire_hash}\n{invitation.name}\n{invitation.role}\n".encode()
    return hmac.digest(invitation.secret, head + public, "sha256")


def holds(invitation: Invitation, public: bytes, proof: bytes | None) -> bool:
    """Return whether a request's MAC is the one of this invitation and key."""
    return proof is not None and hmac.compare_digest(mac(invitation, public), proof)
