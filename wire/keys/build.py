"""Builders of trust documents (PROTOCOL.md, section "Trust").

Pure: a document and what to change in, the bytes of its successor out, unsigned. Every builder judges its own result by
the rules that readers apply, so that a root is never asked to sign what nobody would accept.

    raw = enroll(chain.newest, chain.wire, name="spark", role="agent", public=public, proof=proof, created=now)
    chain = chain.extend(raw, sign_document(raw, root))

Times are passed in as `created`, `2026-11-29T11:20:00.123Z`; the nonce of version 1 as 32 random hex digits.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from wire.keys.document import encode, parse
from wire.keys.model import ACTIVE, REMOVED, Agent, Document, Group, Key
from wire.keys.reasons import Reason, refused
from wire.keys.rules import check_kept


def found(
    *, roots: Iterable[bytes], nonce: str, created: str, threshold: int = 1, policy: Mapping[str, Any] | None = None
) -> bytes:
    """Return version 1 of a new wire. It lists nobody: a proof names the wire, whose id is the hash of these bytes.

    Raises:
        TrustError: see `reasons.Reason`.
    """
    raw = encode(
        version=1, wire=None, prev=None, nonce=nonce, created=created, threshold=threshold, roots=tuple(roots),
        agents={}, groups={}, policy=policy or {},
    )  # fmt: skip
    parse(raw)
    return raw


def successor(
    document: Document,
    wire: str,
    created: str,
    *,
    threshold: int | None = None,
    roots: Iterable[bytes] | None = None,
    agents: Mapping[str, Agent] | None = None,
    groups: Mapping[str, Group] | None = None,
    policy: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the next version with the given members in place of the old ones; what is None stays.

    Args:
        document: the newest version.
        wire: the wire's id, 32 hex digits.

    Raises:
        TrustError: see `reasons.Reason`.
    """
    if wire != document.wire_id:
        raise refused(Reason.WRONG_WIRE, f"trust version {document.version} is of wire {document.wire_id}, not {wire}")
    raw = encode(
        version=document.version + 1,
        wire=wire,
        prev=document.hash,
        nonce=None,
        created=created,
        threshold=document.threshold if threshold is None else threshold,
        roots=document.roots if roots is None else tuple(roots),
        agents=document.agents if agents is None else agents,
        groups=document.groups if groups is None else groups,
        policy=document.policy if policy is None else policy,
    )
    check_kept(document, parse(raw, known=document), wire)
    return raw


def enroll(document: Document, wire: str, *, name: str, role: str, public: bytes, proof: bytes, created: str) -> bytes:
    """Return the next version with one more agent, holding one active key.

    Raises:
        TrustError: `name-taken` for any name that ever was an agent's or a group's, and see `reasons.Reason`.
    """
    if name in document.agents or name in document.groups:
        raise refused(Reason.NAME_TAKEN, f"{name!r} is taken; a name is never used again, not even a removed one")
    agent = Agent(name, role, ACTIVE, (Key(public, ACTIVE, proof, {}),))
    return successor(document, wire, created, agents={**document.agents, name: agent})


def set_roots(
    document: Document, wire: str, *, roots: Iterable[bytes], threshold: int, policy: Mapping[str, Any], created: str
) -> bytes:
    """Return the next version with these roots, and so many signatures needed.

    Args:
        policy: whole, since it holds what people call the roots.

    Raises:
        TrustError: `threshold-invalid`, and see `reasons.Reason`.
    """
    return successor(document, wire, created, roots=roots, threshold=threshold, policy=policy)


def set_group(document: Document, wire: str, *, name: str, members: Iterable[str], created: str) -> bytes:
    """Return the next version with a group that has exactly these members, in alphabetical order.

    Raises:
        TrustError: `name-taken` where an agent has the name, and see `reasons.Reason`.
    """
    if name in document.agents:
        raise refused(Reason.NAME_TAKEN, f"{name!r} is the name of an agent")
    group = Group(name, ACTIVE, tuple(sorted(set(members))))
    return successor(document, wire, created, groups={**document.groups, name: group})


def retire(
    document: Document,
    wire: str,
    *,
    name: str,
    key_id: str,
    status: str,
    positions: Mapping[str, tuple[int, str]],
    created: str,
    replacement: tuple[bytes, bytes] | None = None,
    remove: bool = False,
) -> bytes:
    """Return the next version in which a key is retired or revoked, or its positions are moved.

    Args:
        status: `retired` or `revoked`.
        positions: per channel the (seq, head) of the last line of this key that counts; a channel that is not named
            counts none. Channels that were named before must be named again.
        replacement: (public, proof) of the agent's next key, active from this version on.
        remove: take the agent itself off the wire, for good.

    Raises:
        TrustError: `name-unknown`, `key-unknown`, and see `reasons.Reason`.
    """
    agent = _agent(document, name)
    if agent.key(key_id) is None:
        raise refused(Reason.KEY_UNKNOWN, f"{name!r} has no key {key_id} in trust version {document.version}")
    keys = tuple(
        key._replace(status=status, positions=dict(positions)) if key.id == key_id else key for key in agent.keys
    )
    if replacement is not None:
        public, proof = replacement
        keys = (*keys, Key(public, ACTIVE, proof, {}))
    after = agent._replace(keys=keys, status=REMOVED if remove else agent.status)
    return successor(document, wire, created, agents={**document.agents, name: after})


def give_key(document: Document, wire: str, *, name: str, public: bytes, proof: bytes, created: str) -> bytes:
    """Return the next version in which an agent whose last key was revoked has one again.

    Raises:
        TrustError: `name-unknown`, `name-removed`, `name-has-key`, and see `reasons.Reason`.
    """
    agent = _agent(document, name)
    if agent.status != ACTIVE:
        raise refused(Reason.NAME_REMOVED, f"{name!r} was removed; a removed name never counts again")
    if agent.active_key is not None:
        raise refused(Reason.NAME_HAS_KEY, f"{name!r} has an active key, {agent.active_key.id}")
    after = agent._replace(keys=(*agent.keys, Key(public, ACTIVE, proof, {})))
    return successor(document, wire, created, agents={**document.agents, name: after})


def _agent(document: Document, name: str) -> Agent:
    agent = document.agents.get(name)
    if agent is None:
        raise refused(Reason.NAME_UNKNOWN, f"no agent {name!r} in trust version {document.version}")
    return agent
