"""The trust core under one name (PROTOCOL.md, section "Trust").

Pure: bytes and state in, a new state or `TrustError` out; times are passed in, and disks, clocks and git are elsewhere.

    chain = Chain.genesis(raw, sign_document(raw, root))
    raw = enroll(chain.newest, chain.wire, name="mac", role="agent", public=key.public, proof=proof, created=now)
    chain = chain.extend(raw, sign_document(raw, root))
    chain.owner(key.key_id), chain.members("all", chain.newest.version), chain.newest.checkpoint
"""

from wire.keys.build import enroll, found, give_key, retire, set_group, successor
from wire.keys.chain import Chain, Judgement, Verdict
from wire.keys.document import DOCUMENT_MAX, encode, parse
from wire.keys.model import (
    ACTIVE,
    REMOVED,
    RETIRED,
    REVOKED,
    ROLES,
    Agent,
    Document,
    Group,
    Key,
    file_name,
)
from wire.keys.reasons import Reason
from wire.keys.signatures import (
    SIGNATURES_MAX,
    proof_holds,
    proof_payload,
    prove,
    read_signatures,
    sign_document,
)

__all__ = [
    "ACTIVE",
    "DOCUMENT_MAX",
    "REMOVED",
    "RETIRED",
    "REVOKED",
    "ROLES",
    "SIGNATURES_MAX",
    "Agent",
    "Chain",
    "Document",
    "Group",
    "Judgement",
    "Key",
    "Reason",
    "Verdict",
    "encode",
    "enroll",
    "file_name",
    "found",
    "give_key",
    "parse",
    "proof_holds",
    "proof_payload",
    "prove",
    "read_signatures",
    "retire",
    "set_group",
    "sign_document",
    "successor",
]
