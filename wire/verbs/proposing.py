"""Changes of the trust that several people sign: what waits, signing it, and proposing something.

    listed = pending(here)                              what waits, in plain words
    done = sign(here, listed.proposals[0].id, confirm=…)    done.proposal is None once it is in force
    propose(here, raw, confirm=…)                       an edited copy of the trust document

Every other change of the trust (an approval, a group, a revocation, a root) becomes a proposal by itself where one root
is not enough.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wire.daemon import proposing, trusting
from wire.daemon.proposing import Terms
from wire.daemon.rootkeys import signed_for
from wire.daemon.site import Site
from wire.daemon.trusting import Outcome
from wire.daemon.trustpush import retried
from wire.errors import IdentityError, TrustError, UsageError, WireError
from wire.keys import roots
from wire.keys.differences import Difference, differences
from wire.keys.document import parse
from wire.keys.proposals import ID_DIGITS, State, Weighed
from wire.keys.trust import Chain
from wire.protocol import strictjson
from wire.protocol.encoding import key_id
from wire.store.files import utc_now
from wire.verbs import leaks
from wire.verbs.foreseen import warnings
from wire.verbs.here import Here

TTL_MOST = 90 * 86_400.0
_ID = re.compile(r"[0-9a-f]{32}(?:[0-9a-f]{32})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Pending:
    """A proposal, in plain words.

    Attributes:
        id: by which it is named, 32 hex digits; `hash` is all of the document's.
        version: the number that it would have, and `base` the hash of what it follows.
        by: who offers it; names of roots are what the trust calls them.
        state: `open`, `expired`, `superseded` or `unlawful`; `why` says what is wrong, for the last.
        signed: who signed it.
        lacking: signatures that are still needed, of the roots in force and of its own.
        mine: whether this machine's root signed it.
        changes: what it would change.
        warnings: what a person should know before signing.
    """

    id: str
    hash: str
    version: int
    base: str
    by: str
    note: str
    created: str
    expires: str
    state: str
    why: str
    signed: tuple[str, ...]
    lacking: tuple[int, int]
    mine: bool
    changes: tuple[Difference, ...]
    warnings: tuple[str, ...]

    @property
    def missing(self) -> int:
        """How many people have to sign yet, at least."""
        return max(self.lacking)


class Listed(NamedTuple):
    """What waits for signatures.

    Attributes:
        signed: hash of what this machine's root signed for the next version, empty for nothing: it signs no other.
        failure: why this is not of just now, if so.
    """

    proposals: list[Pending]
    signed: str
    failure: WireError | None


class Decided(NamedTuple):
    """What signing or proposing came to.

    Attributes:
        changes: what was signed.
        checkpoint: of the trust in force.
        proposal: what waits for others; None once it is in force.
    """

    changes: tuple[Difference, ...]
    checkpoint: str
    proposal: Pending | None


class Draft(NamedTuple):
    """A change that is about to be made, for who is asked.

    Attributes:
        warnings: what a person should know of it.
    """

    changes: tuple[Difference, ...]
    warnings: tuple[str, ...]


def pending(here: Here) -> Listed:
    """Return what waits for signatures, by the tip as it is now, or as it was when the remote was last reached."""
    site = Site.open(here.settings, here.config)
    failure: WireError | None = None
    try:
        chain = trusting.fetched(site)
    except WireError as error:
        failure = error
        chain = site.trust(site.pin())
    earlier = signed_for(site, chain.newest)
    found = [view(site, chain, one) for one in proposing.waiting(site, chain)]
    signed = parse(earlier[0]).hash if earlier is not None else ""
    return Listed(found, signed, failure)


def sign(here: Here, wanted: str | None = None, *, confirm: Callable[[Pending], bool]) -> Decided:
    """Sign a proposal with this machine's root key; who signs last publishes it.

    Args:
        wanted: its id or whole hash; may be left out where one is open.
        confirm: asked once with what it says.

    Raises:
        UsageError: there is none (`no-proposal`), several (`several-proposals`), or it was not confirmed.
        TrustError: it is over (`proposal-expired`, `proposal-superseded`) or unlawful, or see `proposing.sign`.
        RemoteError: the remote could not be reached, or refused it.
    """
    site = Site.open(here.settings, here.config)
    agreed: set[str] = set()

    def attempt() -> Decided:
        chain = trusting.fetched(site)
        signer = trusting.root_signer(site, chain.wire)
        # Whether somebody else completed it meanwhile is seen by the version that is in force now.
        if chain.newest.hash in agreed or wanted in (chain.newest.hash, chain.newest.hash[:ID_DIGITS]):
            return Decided((), chain.newest.checkpoint, None)
        one = _choose(proposing.waiting(site, chain), wanted)
        shown = view(site, chain, one)
        if shown.hash not in agreed and not confirm(shown):
            raise UsageError("the proposal was not signed; nothing was changed", reason="not-confirmed")
        agreed.add(shown.hash)
        signer.ready(ask=True)
        after, still = proposing.sign(site, chain, one, signer)
        left = view(site, after, still) if still is not None else None
        return Decided(shown.changes, after.newest.checkpoint, left)

    return retried(attempt)


def propose(
    here: Here,
    raw: bytes,
    *,
    note: str = "",
    ttl: float = proposing.DAYS * 86_400,
    beside: bool = False,
    confirm: Callable[[Draft], bool],
) -> Decided:
    """Make an edited copy of the trust document the next version, or propose it where one root is not enough.

    Args:
        raw: the copy, as `trust.json` is; its number and what it follows are filled in here.
        note: what it is for, for those who are to sign.
        ttl: seconds until a proposal expires.
        beside: also while another proposal is open.
        confirm: asked once with what it changes.

    Raises:
        UsageError: it changes nothing (`no-change`), is no such document (`bad-document`), its note looks as if it held
            a secret (`likely-secret`), or see `decide`.
        TrustError, RemoteError: see `decide`.
    """
    leaks.refuse("the note", note)
    try:
        members = strictjson.loads(raw, floats_below=None)
    except strictjson.StrictError as error:
        raise UsageError(f"this is no trust document: {error}", reason="bad-document") from error

    def edited(chain: Chain) -> bytes:
        newest = chain.newest
        ours = {"v": 1, "version": newest.version + 1, "wire": chain.wire, "prev": newest.hash, "nonce": None}
        wanted = {**members, **ours, "created": utc_now()}
        document = (json.dumps(wanted, indent=1, ensure_ascii=False) + "\n").encode("utf-8")
        if not differences(newest, chain.draft(document)):
            raise UsageError("it changes nothing in the trust in force", reason="no-change")
        return document

    return decide(here, edited, note or "trust: an edited document", terms=_terms(ttl, beside), confirm=confirm)


def decide(
    here: Here,
    make: Callable[[Chain], bytes | None],
    message: str,
    *,
    terms: Terms = proposing.TERMS,
    confirm: Callable[[Draft], bool],
) -> Decided:
    """Change the trust, once a person has seen what that does, or propose it where one root is not enough.

    Args:
        make: returns the next version; None where the one in force says it already.
        confirm: asked once.

    Raises:
        UsageError: it was not confirmed (`not-confirmed`), or would do something else by now (`trust-changed`).
        TrustError, RemoteError: see `trusting.change`.
    """
    site = Site.open(here.settings, here.config)
    agreed: list[Draft] = []

    def build(chain: Chain) -> bytes | None:
        raw = make(chain)
        if raw is None:
            return None
        draft = chain.draft(raw)
        asked = Draft(tuple(differences(chain.newest, draft)), warnings(site, chain, draft))
        if agreed and agreed[0].changes != asked.changes:
            raise UsageError("the trust changed meanwhile: look at it again", reason="trust-changed")
        if not agreed and not confirm(asked):
            raise UsageError("nothing was changed", reason="not-confirmed")
        agreed.append(asked)
        return raw

    done = trusting.change(site, build, message, terms=terms)
    return Decided(agreed[0].changes if agreed else (), done.chain.newest.checkpoint, waits(site, done))


def again(here: Here, *, ttl: float = proposing.DAYS * 86_400) -> Decided:
    """Offer once more what this machine's root signed for the next version.

    Raises:
        UsageError: it signed nothing for it (`nothing-signed`).
        TrustError, RemoteError: see `trusting.change`.
    """
    site = Site.open(here.settings, here.config)
    changes: list[Difference] = []

    def build(chain: Chain) -> bytes | None:
        earlier, base = signed_for(site, chain.newest), chain.at(chain.newest.version - 1)
        last = signed_for(site, base) if base is not None else None
        if earlier is None and last is not None and last[0] == chain.newest.raw:
            return None  # it is in force
        if earlier is None:
            raise UsageError(
                f"this machine's root signed nothing for trust version {chain.newest.version + 1}",
                reason="nothing-signed",
                next_step="wire trust pending",
            )
        changes[:] = differences(chain.newest, chain.draft(earlier[0]))
        return earlier[0]

    done = trusting.change(site, build, "trust: offered again", terms=_terms(ttl, beside=True))
    return Decided(tuple(changes), done.chain.newest.checkpoint, waits(site, done))


def waits(site: Site, done: Outcome) -> Pending | None:
    """Return the proposal that a change came to, in plain words; None where it is in force."""
    return view(site, done.chain, done.proposal) if done.proposal is not None else None


def view(site: Site, chain: Chain, one: Weighed) -> Pending:
    """Return a proposal in plain words."""
    proposal, draft, newest = one.proposal, one.draft, chain.newest
    known = {key_id(root): roots.called(newest, root) for root in newest.roots}
    if draft is not None:
        known = {key_id(root): roots.called(draft, root) for root in draft.roots} | known
    try:
        own = trusting.root_signer(site, chain.wire).key_id
    except IdentityError:
        own = ""
    return Pending(
        id=proposal.id,
        hash=proposal.hash,
        version=proposal.base[0] + 1,
        base=proposal.base[1],
        by=known.get(proposal.by, proposal.by),
        note=proposal.note,
        created=proposal.created,
        expires=proposal.expires,
        state=str(one.state),
        why=one.why,
        signed=tuple(known.get(signer, signer) for signer in one.signed),
        lacking=one.lacking,
        mine=own in one.signed,
        changes=tuple(differences(newest, draft)) if draft is not None else (),
        warnings=warnings(site, chain, draft) if draft is not None else (),
    )


def _choose(found: Sequence[Weighed], wanted: str | None) -> Weighed:
    if wanted is not None and not _ID.fullmatch(wanted):
        raise UsageError(
            f"{wanted[:70]!r} is no id of a proposal: it has 32 hex digits, or all 64 of the document's hash."
            " Fewer could be made to fit another one",
            reason="no-proposal",
            next_step="wire trust pending",
        )
    named = [one for one in found if wanted in (one.proposal.id, one.proposal.hash)]
    if wanted is None:
        named = [one for one in found if one.state is State.OPEN]
    # Several roots may offer one document: it is open as long as one of them says so.
    named = list({one.proposal.hash: one for one in sorted(named, key=lambda one: one.state is State.OPEN)}.values())
    if not named:
        what = f"proposal {wanted}" if wanted is not None else "proposal that waits for signatures"
        raise UsageError(f"there is no {what}", reason="no-proposal", next_step="wire trust pending")
    if len(named) > 1 and wanted is None:
        raise UsageError(
            f"{len(named)} proposals wait for signatures, and only one of them can be signed: "
            + ", ".join(one.proposal.id for one in named),
            reason="several-proposals",
            next_step="wire trust pending, then: wire trust sign ID",
        )
    one = named[0]
    over = {
        State.EXPIRED: f"expired at {one.proposal.expires}; whoever signed it can offer it again",
        State.SUPERSEDED: f"follows version {one.proposal.base[0]} of the trust, and another one is in force",
        State.UNLAWFUL: f"can never be a version of this wire's trust: {one.why}",
    }
    if one.state is not State.OPEN:
        raise TrustError(
            f"the proposal {one.proposal.id} {over[one.state]}",
            reason=f"proposal-{one.state}",
            next_step="wire trust propose --again" if one.state is State.EXPIRED else "wire trust pending",
        )
    return one


def _terms(ttl: float, beside: bool) -> Terms:
    if not 0 < ttl <= TTL_MOST:
        raise UsageError(f"a proposal is open for at most {TTL_MOST / 86_400:.0f} days", reason="usage")
    return Terms(ttl, beside)
