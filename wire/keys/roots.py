"""Root keys: what people call them, and how a new one comes to who adds it (PROTOCOL.md, "Roots").

A new root's key is made on the machine of the person who will hold it. One line brings the public half, with the
proof that the key agrees to be this root on this wire, to somebody who is a root already:

    line = offer(signer, wire=wire, name="ana")             wire-root-1.<base64url>.<8 hex>
    read(line, wire=wire, name="ana") == signer.public

Names of roots are for people: the trust document's `policy` has them below `roots`, and they decide nothing.
"""

from collections.abc import Mapping
from typing import Any

from wire.keys import pasted
from wire.keys.model import Document
from wire.keys.reasons import Reason, refused
from wire.keys.signatures import proof_holds, prove
from wire.protocol import strictjson
from wire.protocol.encoding import (
    PUBLIC_BYTES,
    SIGNATURE_BYTES,
    Signer,
    b64,
    fingerprint,
    key_id,
    unb64,
    valid_public,
)
from wire.protocol.names import valid_name

PREFIX = "wire-root-1."
LINE_MAX = 1_024
"""Characters of a line."""
ROLE = "root"
"""In the proof of a root's key, where an agent's has its role."""
POLICY = "roots"
"""The member of `policy` that holds the roots' names."""

_MEMBERS = ("wire", "name", "public", "proof")


def offer(signer: Signer, *, wire: str, name: str) -> str:
    """Return the line that carries a root's public key: no spaces, safe to paste, and nothing secret in it."""
    values = (wire, name, b64(signer.public), b64(prove(signer, wire=wire, name=name, role=ROLE)))
    raw = strictjson.dumps(dict(zip(_MEMBERS, values, strict=True)))
    return pasted.line(PREFIX, raw)


def read(text: str, *, wire: str, name: str) -> bytes:
    """Return the public key of a line; spaces and line breaks that a mail put into it do no harm.

    Args:
        wire, name: for which the key must have agreed to be a root.

    Raises:
        TrustError: `root-line-invalid`, `wrong-wire`, `name-invalid`, `key-invalid`, `proof-invalid`.
    """
    raw = pasted.read(PREFIX, text, most=LINE_MAX)
    if not raw:
        raise refused(
            Reason.ROOT_LINE_INVALID,
            f"this is not a whole line of `wire keys root new`, which begins with {PREFIX!r}: copy all of it",
        )
    try:
        members = strictjson.loads(raw, floats_below=None)
        if tuple(members) != _MEMBERS or not all(isinstance(value, str) for value in members.values()):
            raise ValueError("other members")
        public, proof = unb64(members["public"], PUBLIC_BYTES), unb64(members["proof"], SIGNATURE_BYTES)
    except ValueError:
        raise refused(Reason.ROOT_LINE_INVALID, "the line of a root's key is damaged, or of a newer version") from None
    if members["wire"] != wire:
        raise refused(Reason.WRONG_WIRE, f"the root's key is for wire {members['wire'][:64]!r}, not {wire}")
    if members["name"] != name or not valid_name(name):
        raise refused(Reason.NAME_INVALID, f"the root's key agreed to be {members['name'][:64]!r}, not {name[:64]!r}")
    if not valid_public(public):
        raise refused(Reason.KEY_INVALID, "the root's key is not a point of the prime-order group")
    if not proof_holds(proof, wire=wire, name=name, role=ROLE, public=public):
        raise refused(Reason.PROOF_INVALID, f"key {key_id(public)} did not agree to be the root {name!r} on this wire")
    return public


def names(document: Document) -> dict[str, str]:
    """Return what people call the roots of a document, by key id; those without a name are absent."""
    listed = document.policy.get(POLICY)
    ids = {key_id(root) for root in document.roots}
    if not isinstance(listed, dict):
        return {}
    return {one: name for one, name in listed.items() if one in ids and isinstance(name, str) and valid_name(name)}


def with_names(document: Document, found: Mapping[str, str]) -> dict[str, Any]:
    """Return a document's policy with other names of roots."""
    rest = {member: value for member, value in document.policy.items() if member != POLICY}
    return {**rest, POLICY: dict(found)} if found else rest


def called(document: Document, public: bytes) -> str:
    """Return a root as people know it: its name, if it has one, and its fingerprint."""
    name = names(document).get(key_id(public))
    return f"{name} ({fingerprint(public)})" if name else fingerprint(public)
