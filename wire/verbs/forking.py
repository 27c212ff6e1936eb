"""Two trust documents with one number: what each changes, and which of them this machine follows.

    for one in forks(here): print(one.version, one.held, one.other)
    follow(here, "7:SHA256:…", confirm=…)

Nobody but a person can tell which one is right: both are signed by as many roots as it takes. The wire's people agree
by another way than the wire, and each machine follows the same checkpoint. What it held stays in force on it until
then.
"""

from collections.abc import Callable
from dataclasses import dataclass

from wire.daemon import trusting, trustpush
from wire.daemon.site import Site
from wire.errors import TrustError, UsageError
from wire.keys.differences import Difference, differences
from wire.keys.trust import Chain, Document
from wire.protocol.encoding import check_checkpoint, parse_checkpoint
from wire.store import incidents, trustforks
from wire.store.pin import replace
from wire.verbs.here import Here

CODE = "TRUST_FORK"


@dataclass(frozen=True, slots=True)
class Fork:
    """Two documents of one number.

    Attributes:
        held, other: the checkpoints of the one that is in force here, and of the other.
        held_changes, other_changes: what each changes in the version before.
        apart: what following the other would change in the one held.
        decided: whether a person said that the one held is to be followed.
    """

    version: int
    held: str
    other: str
    held_changes: tuple[Difference, ...]
    other_changes: tuple[Difference, ...]
    apart: tuple[Difference, ...]
    decided: bool


@dataclass(frozen=True, slots=True)
class Followed:
    """What deciding came to.

    Attributes:
        checkpoint: of the trust in force now.
        switched: another document is in force here than before.
        put_right: the remote showed another one than is followed, and shows this one now.
        cut: accepted messages that count no longer.
    """

    checkpoint: str
    switched: bool
    put_right: bool
    cut: int


def forks(here: Here) -> list[Fork]:
    """Return the forks of the trust that this machine knows of, oldest first; asks nobody."""
    site = Site.open(here.settings, here.config)
    return _forks(site, site.trust(site.pin()))


def follow(here: Here, checkpoint: str, *, confirm: Callable[[Fork], bool]) -> Followed:
    """Follow one of two documents with one number from now on, and let the remote show it.

    Args:
        checkpoint: of the one to follow, as `forks` shows it; people compare the whole of it.
        confirm: asked once.

    Raises:
        UsageError: it is no checkpoint (`bad-checkpoint`), none of two documents (`no-fork`), or not confirmed.
        RemoteError: the remote could not be reached, or refused it; a decision that was made stays.
        TrustError: what it says does not follow the version before it any more (`not-followed`).
    """
    version, digest = check_checkpoint(checkpoint)
    site = Site.open(here.settings, here.config)
    chain = trusting.fetched(site)
    found = [one for one in _forks(site, chain) if checkpoint in (one.held, one.other)]
    if not found:
        raise UsageError(
            f"{checkpoint} is none of two trust documents with one number that this machine knows",
            reason="no-fork",
            next_step="wire trust show",
        )
    if not confirm(found[0]):
        raise UsageError("nothing was decided, and nothing was changed", reason="not-confirmed")
    held = chain.at(version)
    switches = held is not None and held.digest != digest
    before = sum(end.seq for end in site.pin().accepted.values())
    with site.cycle_lock():
        if held is not None:
            # Both are kept, whichever is followed.
            trustforks.keep(site.places, version, held.raw, chain.signatures[version - 1], spare=digest.hex())
        trustforks.decide(site.places, version, digest.hex())
        pin = site.pin()
        pinned, _ = parse_checkpoint(pin.checkpoint)
        # The checkpoint that was given first may be on the other side; the person who decides gives the one for this.
        given = checkpoint if switches and pinned >= version else pin.checkpoint
        site.save(replace(pin, checkpoint=given, judged_trust=0))
    chain = trusting.fetched(site)
    if not chain.passes(version, digest):
        raise TrustError(
            f"{checkpoint} does not follow the version {version - 1} that is in force here",
            reason="not-followed",
            next_step="wire trust show",
        )
    put_right = trustpush.retried(lambda: trustpush.put_right(site, version, f"trust: follows version {version}"))
    for incident in incidents.list_(here.places.incidents_dir):
        if incident.code == CODE and incident.subject == str(version) and incident.state != "resolved":
            incidents.resolve(here.places.incidents_dir, incident.id)
    pin = site.pin()
    after = sum(end.seq for end in pin.accepted.values())
    return Followed(site.trust(pin).newest.checkpoint, switches, put_right, max(0, before - after) if switches else 0)


def _forks(site: Site, chain: Chain) -> list[Fork]:
    decided = trustforks.decided(site.places)
    found = []
    for one in trustforks.kept(site.places):
        held, base = chain.at(one.version), chain.at(one.version - 1)
        if held is None or base is None or held.raw == one.raw:
            continue
        try:
            other: Document = chain.until(base.version).extend(one.raw, one.signatures).newest
        except TrustError:
            continue  # of a line that is not followed any more
        chosen = decided.get(one.version)
        found.append(
            Fork(
                one.version,
                held.checkpoint,
                other.checkpoint,
                tuple(differences(base, held)),
                tuple(differences(base, other)),
                tuple(differences(held, other)),
                chosen is not None and chosen.raw == held.raw,
            )
        )
    return found
