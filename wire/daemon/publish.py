"""Our commit on the incoming tip (PROTOCOL.md, section "What a machine publishes").

A commit of ours writes exactly our own accepted bytes, and puts missing or unsigned trust files back; everything else
is the tip's. That is the rebase of single-writer files, and it touches no work tree. Foreign bytes in our own folders
and illegal shapes below `_coordination/` disappear by it; nobody else's folder is touched.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from wire.daemon import beating
from wire.daemon.accepted import Accepted, Blobs
from wire.daemon.beating import Beat
from wire.daemon.shape import ROOT, Kind, carried, classify
from wire.daemon.site import OUTGOING_REF, Site
from wire.gitio import Change, Drop, GitFailed, Put
from wire.gitio import Kind as Failure
from wire.protocol.chain import lacking
from wire.store import incidents
from wire.store.pin import Pin
from wire.store.progress import Progress

TRUST = (Kind.TRUST, Kind.TRUST_SIGNATURES, Kind.NEWEST_TRUST, Kind.ATTRIBUTES)
"""What has no owner, and is put back by anybody."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a commit of ours would change at a tip.

    Attributes:
        needed: something of ours, or of the trust, is not as it must be; illegal shapes alone are no reason to publish.
    """

    changes: tuple[Put | Drop, ...]
    needed: bool


def plan(site: Site, accepted: Accepted, tip: str, own: frozenset[str], forks: Container[str]) -> Plan:
    """Return what has to change at `tip`, so that it carries our folders and the trust exactly as accepted.

    Nobody touches `trust/` while two valid trust documents claim one number.

    Args:
        own: names of this machine's approved agents.
        forks: channels in which two valid lines claim one place; nobody writes over either.
    """
    restore_trust = not any(
        incident.state != "resolved" and incident.ended is None
        for incident in incidents.list_(site.places.incidents_dir)
        if incident.code == "TRUST_FORK"
    )
    drops: list[Put | Drop] = []
    puts: list[Put | Drop] = []
    needed = False
    for change in site.git.diff(accepted.commit, tip):
        if classify(change.path).channel in forks:
            continue
        kind = classify(change.path, change.new_mode).kind
        ours = _is_below(change.path, own)
        trust = classify(change.path).kind in TRUST
        held = bool(change.old_oid.strip("0"))
        if held and (ours or (trust and restore_trust) or kind is Kind.ILLEGAL):
            puts.append(Put(change.path, oid=change.old_oid))
            needed = needed or ours or trust
        elif not held and (ours or kind is Kind.ILLEGAL):
            drops.append(Drop(change.path))
            needed = needed or ours
    return Plan((*drops, *puts), needed)


def heal_plan(changes: Iterable[Change], blobs: Blobs, *, restore_trust: bool) -> Plan:
    """Return what makes a tip carry every accepted byte again, of everybody, and keeps what is longer there.

    A segment that has every accepted line stays as it is, whatever else it has: that is for its owner to put right.

    Args:
        changes: the differences from the accepted tree to the tip, whose valid next lines were already accepted.
        restore_trust: as for `plan`.
    """
    puts = []
    for change in changes:
        kind = classify(change.path).kind
        if not change.old_oid.strip("0") or kind is Kind.FOREIGN or (kind in TRUST and not restore_trust):
            continue
        if kind is Kind.SEGMENT:
            there = blobs.get(carried(change).new_oid) or b""
            if there and not lacking(blobs.get(change.old_oid) or b"", there):
                continue
        puts.append(Put(change.path, oid=change.old_oid))
    return Plan(tuple(puts), bool(puts))


def grounds(site: Site, tip: str | None, verified: str, accepted: str) -> tuple[str, list[str]]:
    """Return the commit whose tree a heal goes on from, and its parents: the tip, where there is one, and our past.

    What was left out of our past as too large cannot be put back. Then the heal does not descend from it, and what
    others find is a history that was replaced, in which nothing is missing.

    Args:
        accepted: a commit whose tree holds what was accepted and nothing else.
    """
    there = [tip] if tip is not None else []
    if tip is not None and site.git.is_ancestor(verified, tip):
        return tip, there
    if site.git.lacks(verified, tip):
        return tip or accepted, there
    return tip or verified, [*there, verified]


def write(site: Site, base: str, parents: list[str], wanted: Plan, message: str) -> str:
    """Write the commit that a plan asks for, and return it.

    A push that keeps failing offers the commit of the first attempt, and does not gather one per attempt.
    """
    when = site.git.made_at(OUTGOING_REF, parents) if Progress.load(site.places).failure else None
    return site.git.write_commit(
        OUTGOING_REF, base=base, parents=parents, message=message, changes=wanted.changes, when=when
    )


def push(site: Site, pin: Pin, commit: str, beats: Sequence[Beat] = ()) -> str | None:
    """Push a commit to the wire's branch; return None when it is there, or why somebody else was first.

    Args:
        beats: presences that are pushed with it, in the same request.

    Raises:
        GitFailed: it could not be pushed, or was refused (`rejected`).
    """
    branch = f"refs/heads/{pin.branch}"
    results = beating.push(site, pin, beats, f"{commit}:{branch}")
    result = results[branch]
    beating.taken(site, beats, results, lines=result.status == "ok")
    if result.status == "rejected":
        raise GitFailed(f"the remote refused the push: {result.reason}", kind=Failure.REJECTED)
    return result.reason if result.status == "race" else None


def subject(lines: Mapping[str, int], own: frozenset[str]) -> str:
    """Return a commit's subject.

    Args:
        lines: how many lines the commit adds, per channel.
    """
    parts = [
        f"{channel.partition('/')[0]}: {_count(count)} to {channel.partition('/')[2]}"
        for channel, count in lines.items()
        if count > 0
    ]
    return (
        "; ".join(parts[:4]) + (" …" if len(parts) > 4 else "") if parts else f"{min(own, default='wire')}: put right"
    )


def _count(number: int) -> str:
    return f"{number} line" if number == 1 else f"{number} lines"


def _is_below(path: bytes, own: frozenset[str]) -> bool:
    parts = path.split(b"/")
    return len(parts) > 1 and parts[0] == ROOT.encode("ascii") and parts[1].decode("ascii", "replace") in own
