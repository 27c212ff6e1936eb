"""Proposals at the remote: offered, signed by one root after the other, and published by whoever signs last.

    offer(site, chain, signer, raw, "enroll zoe")       from a change that one root cannot make
    waiting(site, chain)                                what roots offer, weighed
    sign(site, chain, one, signer)                      (chain, None) once it is in force, else (chain, what it is now)

A document is offered first and signed when the offer stands at the remote, alone: so two roots that have something to
change at the same moment do not bind themselves to two documents of one number, of which neither could ever get enough
signatures. A root's machine never signs a second one for a number (`rootkeys`).
"""

import time
from collections.abc import Iterable
from typing import NamedTuple

from wire.daemon import rotating
from wire.daemon.rootkeys import already_signed, remember, signed_for
from wire.daemon.shape import request_path
from wire.daemon.site import Site
from wire.daemon.trustpush import Behind, fetched, proposals_at, publish, push
from wire.errors import TrustError
from wire.gitio import Put
from wire.keys import proposals
from wire.keys.proposals import PROPOSAL_MAX, State, Weighed, same_change, weigh
from wire.keys.trust import RETIRED, Chain, Document, sign_document
from wire.protocol.encoding import Signer, key_id, sha256_hex
from wire.store.files import utc_now, utc_text

DAYS = 14.0
"""For which a proposal is open unless it says otherwise."""

Standing = tuple[Chain, Weighed | None]
"""The trust in force, and a proposal that still waits for signatures."""


class Terms(NamedTuple):
    """How something is proposed.

    Attributes:
        seconds: after which it expires.
        beside: also while another root's proposal for the same version is open.
    """

    seconds: float = DAYS * 86_400
    beside: bool = False


TERMS = Terms()


def waiting(site: Site, chain: Chain) -> list[Weighed]:
    """Return what the roots in force offer at the verified tip, oldest first; nobody else's is read.

    A signature is one of the document's, so that it counts in every proposal of the same document.
    """
    names = {f"{proposals.OWNER}.{key_id(root)}.json": root for root in chain.newest.roots}
    entries = {entry.path.rpartition(b"/")[2].decode("ascii"): entry.oid for entry in proposals_at(site)}
    listed = {name: oid for name, oid in entries.items() if name in names}
    blobs = site.git.blobs(set(listed.values()), max_size=PROPOSAL_MAX) if listed else {}
    now = utc_now()
    found: list[Weighed] = []
    for name, oid in listed.items():
        try:
            one = proposals.parse(blobs[oid] or b"", wire=chain.wire, file_name=name)
        except TrustError:
            continue
        if one.offered_by([names[name]]):
            found.append(weigh(chain, one, now))
    lines: dict[bytes, dict[str, bytes]] = {}
    for offered in found:
        lines.setdefault(offered.proposal.document, {}).update(offered.signed)
    whole = [_with_all(chain, offered, lines[offered.proposal.document], now) for offered in found]
    return sorted(whole, key=lambda one: (one.proposal.created, one.proposal.by))


def _with_all(chain: Chain, one: Weighed, lines: dict[str, bytes], now: str) -> Weighed:
    if lines.keys() == one.signed.keys():
        return one
    raw = one.proposal.signed(lines.values())
    if len(raw) > PROPOSAL_MAX:
        return one  # made so large by hand that nothing fits behind it; nobody can sign there, and others can offer
    return weigh(chain, proposals.parse(raw, wire=chain.wire, file_name=one.proposal.file_name), now)


def offer(site: Site, chain: Chain, signer: Signer, raw: bytes, note: str, terms: Terms = TERMS) -> Standing:
    """Propose a document and sign it; where another root already proposes the same, sign that.

    Args:
        chain: ends in the version that it follows, and is in force at the verified tip.
        signer: a root in force.

    Raises:
        Behind: the remote moved meanwhile.
        TrustError: this root signed another document for that number (`already-signed`); another proposal for it is
            open (`proposal-open`).
        RemoteError: the remote could not be reached, or refused it.
    """
    draft = chain.draft(raw)
    there = waiting(site, chain)
    known = next((one for one in there if one.state is State.OPEN and _same(one, draft)), None)
    if known is not None:
        return sign(site, chain, known, signer)
    earlier = signed_for(site, chain.newest)
    if earlier is not None and earlier[0] != raw:
        raise already_signed(draft.version, sha256_hex(earlier[0]), draft.hash)
    others = [one for one in there if one.state is State.OPEN and (one.signed or one.proposal.by != signer.key_id)]
    if others and earlier is None and not terms.beside:
        raise _is_open(others[0])
    lines = {signer.key_id: earlier[1]} if earlier is not None else {}
    # Who signed it while it was open need not do so again.
    lines |= next((one.signed for one in there if one.proposal.document == raw), {})
    expires = utc_text(time.time() + terms.seconds)
    made = proposals.make(signer, chain, raw, note=note[: proposals.NOTE_MAX], created=utc_now(), expires=expires)
    one = proposals.parse(made, wire=chain.wire, file_name=proposals.file_name(signer.key_id))
    _put(site, chain, one, lines.values(), f"trust: proposes version {draft.version}")
    whole = proposals.parse(one.signed(lines.values()), wire=chain.wire, file_name=one.file_name)
    return sign(site, chain, weigh(chain, whole, utc_now()), signer)


def sign(site: Site, chain: Chain, one: Weighed, signer: Signer) -> Standing:
    """Sign a proposal; who signs last publishes the version that it is.

    Args:
        one: is open.
        signer: a root in force, or one that the document adds.

    Raises:
        Behind: the remote moved meanwhile; what was signed is remembered, and signing it again goes on.
        TrustError: `already-signed`; `not-a-root`; a planned change of keys would cut lines that were accepted here
            (`rotation-behind`).
        RemoteError: the remote could not be reached, or refused it.
    """
    proposal, draft = one.proposal, one.draft
    if draft is None or signer.public not in (*chain.newest.roots, *draft.roots):
        raise TrustError("this machine's root key is none of those that could sign this proposal", reason="not-a-root")
    _check_keeps(site, chain, draft)
    elsewhere = [
        other.proposal.hash
        for other in waiting(site, chain)
        if signer.key_id in other.signed and other.proposal.hash != proposal.hash
    ]
    if elsewhere:
        # By this key, and not remembered here: a restored backup, or a copy of the key.
        raise already_signed(draft.version, elsewhere[0], proposal.hash)
    earlier = signed_for(site, chain.newest)
    line = earlier[1] if earlier is not None and earlier[0] == proposal.document else None
    line = line or sign_document(proposal.document, signer)
    remember(site, chain.newest, proposal.document, line)
    lines = {**one.signed, signer.key_id: line}
    again = proposals.parse(proposal.signed(lines.values()), wire=chain.wire, file_name=proposal.file_name)
    now = weigh(chain, again, utc_now())
    if now.lacking == (0, 0):
        extended = chain.extend(proposal.document, b"".join(now.signed.values()))
        return publish(site, extended, proposal.note), None
    if lines.keys() != one.signed.keys():
        _put(site, chain, again, lines.values(), f"trust: signs version {draft.version}")
    return chain, now


def _put(site: Site, chain: Chain, one: proposals.Proposal, lines: Iterable[bytes], message: str) -> None:
    """Push a proposal's file, and take away those that are over; the trust must be the same afterwards."""
    path = request_path(one.file_name)
    over = [gone for gone in _over(site, chain) if gone != path]
    push(site, chain, [Put(path.encode(), data=one.signed(lines))], message, over)
    if fetched(site).newest.hash != chain.newest.hash:
        raise Behind("another trust version came meanwhile")


def _over(site: Site, chain: Chain) -> list[str]:
    """Return the paths of proposals that are over, and of files that no root in force put there."""
    alive = {request_path(one.proposal.file_name) for one in waiting(site, chain) if one.state is State.OPEN}
    return [path for entry in proposals_at(site) if (path := entry.path.decode("ascii")) not in alive]


def _check_keeps(site: Site, chain: Chain, draft: Document) -> None:
    """Refuse a planned change of keys by which a line would be cut that was accepted here."""
    for name, agent in draft.agents.items():
        for key in agent.keys:
            held = chain.key(name, key.id)
            if key.status == RETIRED and held is not None and held.status != RETIRED:
                rotating.check_keeps(site, name, key.id, key.positions)


def _same(one: Weighed, draft: Document) -> bool:
    return one.draft is not None and same_change(one.draft, draft)


def _is_open(other: Weighed) -> TrustError:
    one = other.proposal
    return TrustError(
        f"another change of the trust waits for signatures: {one.id}, until {one.expires}. Only one of them can become "
        f"version {one.base[0] + 1}",
        reason="proposal-open",
        next_step=f"look at it with `wire trust pending`, then: wire trust sign {one.id}; where it is not wanted, or "
        "its root is not to be trusted, go past it with --beside, which `wire trust approve`, `wire trust revoke`, "
        "`wire trust root remove` and `wire trust propose FILE` take",
        details={"proposal": one.id, "hash": one.hash, "expires": one.expires},
    )
