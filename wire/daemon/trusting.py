"""Changing the trust: made on top of the tip that was just fetched, signed, and pushed at once (PROTOCOL.md, "Trust").

Without the remote a change fails and has changed nothing. Where one root is not enough, the change becomes a proposal,
which waits at the remote until enough roots have signed it (see `proposing`). What this machine's root signed for a
number is written down before anybody sees it, so that it never offers two documents with one number: if the push of the
first is lost to a crash, the next change offers the same bytes again before it goes on.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from wire.daemon import proposing
from wire.daemon.rootkeys import remember, root_signer, signed_for
from wire.daemon.site import Site
from wire.daemon.trustpush import fetched, publish, retried
from wire.errors import TrustError
from wire.keys.proposals import Weighed
from wire.keys.trust import Chain, Verdict, sign_document
from wire.protocol.encoding import Signer

__all__ = ["Build", "Outcome", "change", "fetched", "root_of", "root_signer"]

Build = Callable[[Chain], bytes | None]
"""Returns the bytes of the next version, given the chain in force; None when that already says what was wanted."""


class Outcome(NamedTuple):
    """What a change came to: the trust in force, and the proposal that waits for others, if it does."""

    chain: Chain
    proposal: Weighed | None = None


def change(
    site: Site, build: Build, message: str, *, drop: Sequence[str] = (), terms: proposing.Terms = proposing.TERMS
) -> Outcome:
    """Make one new trust version, push it, and accept it here; or propose it.

    Args:
        build: called with the chain of the tip just fetched; may be called again after a lost race.
        message: the commit's subject, and a proposal's note.
        drop: paths that the same commit removes, such as the request that it answers.
        terms: for a proposal.

    Raises:
        RemoteError: the remote could not be reached, or refused; nothing was changed.
        TrustError: the change is not lawful, or this machine holds no root key that counts.
    """
    signed: set[bytes] = set()
    return retried(lambda: _attempt(site, build, message, drop, signed, terms))


def root_of(site: Site, chain: Chain) -> Signer:
    """Return this machine's root key, which must be one of those in force, opened: a person may be asked.

    Raises:
        IdentityError: as `root_signer`.
        TrustError: it is none of them (`not-a-root`).
    """
    signer = root_here(site, chain)
    signer.ready(ask=True)
    return signer


def root_here(site: Site, chain: Chain) -> Signer:
    """Return this machine's root key, whether or not it is locked: who has none need not be asked anything.

    Raises:
        IdentityError: there is none here, or it cannot be used.
        TrustError: it is not a root in force (`not-a-root`).
    """
    signer = root_signer(site, chain.wire)
    if signer.public not in chain.newest.roots:
        raise TrustError(
            f"this machine's root key is not one of the {len(chain.newest.roots)} roots of trust version "
            f"{chain.newest.version}; it cannot change the trust",
            reason="not-a-root",
            next_step="`wire trust show` lists the roots: run it on the machine of one of them",
        )
    return signer


def _attempt(
    site: Site, build: Build, message: str, drop: Sequence[str], signed: set[bytes], terms: proposing.Terms
) -> Outcome:
    """Try once.

    Args:
        signed: documents that this call signed for an earlier try; one of them is the change itself.
    """
    chain = fetched(site)
    signer = root_of(site, chain)
    version = chain.newest.version + 1
    offered = signed_for(site, chain.newest)
    if offered is not None and chain.judge(version, *offered).verdict is Verdict.NEXT:
        mine = offered[0] in signed
        subject = message if mine else "trust: signed earlier"
        chain = publish(site, chain.extend(*offered), subject, drop if mine else ())
        if mine:
            return Outcome(chain)
    raw = build(chain)
    if raw is None:
        return Outcome(chain)
    draft = chain.draft(raw)
    if chain.newest.threshold > 1 or draft.threshold > 1 or signer.public not in draft.roots:
        return Outcome(*proposing.offer(site, chain, signer, raw, message, terms))
    signatures = sign_document(raw, signer)
    extended = chain.extend(raw, signatures)
    remember(site, chain.newest, raw, signatures)
    signed.add(raw)
    return Outcome(publish(site, extended, message, drop))
