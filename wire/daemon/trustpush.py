"""Changing what the remote has of the trust: on the tip that was just fetched and judged, pushed at once.

    chain = fetched(site)
    chain = retried(lambda: …push(site, chain, changes, message)…)

Whatever is pushed here goes on a verified tip and with the trust in force that it was made for; else nothing is pushed.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from wire.daemon import asked, cycle
from wire.daemon.accepted import BLOB_MAX
from wire.daemon.races import RACES, racing
from wire.daemon.shape import NEWEST_TRUST_PATH, ROOT, Kind, classify, trust_path
from wire.daemon.site import OUTGOING_REF, Site
from wire.errors import RemoteError, TrustError
from wire.gitio import Drop, Entry, Put
from wire.keys.trust import Chain

DROPS_MAX = 4_096
"""Requests and proposals that one commit takes away."""

Done = TypeVar("Done")


class Behind(Exception):
    """The remote moved between our fetch and our push."""


def retried(attempt: Callable[[], Done]) -> Done:
    """Return what an attempt returns; it is made again where others pushed first.

    Raises:
        RemoteError: others were first each time (`remote-race`).
    """
    for one in racing(Behind):
        with one:
            try:
                return attempt()
            except Behind as error:
                if one.retry_state.attempt_number == RACES:
                    raise RemoteError(
                        f"others pushed first {RACES} times in a row ({error}); nothing was changed", kind="race"
                    ) from error
                raise
    raise AssertionError("a retry that neither returns nor raises")


def fetched(site: Site) -> Chain:
    """Run one cycle and return the trust in force at the remote's tip.

    Raises:
        RemoteError: the remote could not be reached, or the wire is frozen.
    """
    report = cycle.run(site)
    if report.failure is not None:
        raise report.failure
    if report.frozen is not None:
        raise RemoteError(
            f"the wire is frozen since {report.frozen.since} ({report.frozen.code}); nothing was changed",
            kind="frozen",
            next_step="wire incidents show",
        )
    return site.trust(site.pin())


def push(site: Site, chain: Chain, changes: Sequence[Put], message: str, drop: Iterable[str] = ()) -> None:
    """Push one commit on the verified tip.

    Args:
        chain: the trust for which this was made.
        drop: paths that it takes away where they are there.

    Raises:
        Behind: the tip or the trust moved meanwhile.
        RemoteError: the remote could not be reached, or refused it.
    """
    with site.cycle_lock():
        pin = site.pin()
        tip = pin.verified
        if tip is None:
            raise RemoteError("the remote's tip was never verified here; nothing was changed", kind="no-ref")
        if pin.trust_version != chain.newest.version:
            # Another process took over a version since we looked: what was signed for this number waits or is void.
            raise Behind(f"trust version {pin.trust_version} came meanwhile")
        present = {entry.path for entry in site.git.entries(tip)}
        gone = [path for path in dict.fromkeys(drop) if path.encode() in present][:DROPS_MAX]
        wanted: list[Put | Drop] = [*changes, *(Drop(path.encode()) for path in gone)]
        commit = site.git.write_commit(OUTGOING_REF, base=tip, parents=[tip], message=message, changes=wanted)
        result = site.git.push(pin.remote, f"{commit}:refs/heads/{pin.branch}")
    if result.status == "race":
        raise Behind(result.reason)
    if result.status == "rejected":
        raise RemoteError(f"the remote refused the change: {result.reason}", kind="rejected")


def publish(site: Site, chain: Chain, message: str, drop: Iterable[str] = ()) -> Chain:
    """Push the newest version of a chain, whose others are in force, and return the trust in force then.

    With it go the proposals that it makes worthless: those that follow the version before it, and all older ones; and
    requests to join that were answered, are none, or waited for too long.

    Raises:
        Behind, RemoteError: as `push`.
        TrustError: the remote took it and does not show it (`not-taken`).
    """
    document, signatures = chain.newest, chain.signatures[-1]
    path = trust_path(document.version)
    changes = [
        Put(path.encode(), data=document.raw),
        Put(f"{path}.sig".encode(), data=signatures),
        Put(NEWEST_TRUST_PATH.encode(), data=document.raw),
    ]
    over = [entry.path.decode("ascii") for entry in proposals_at(site)]
    push(site, chain.until(document.version - 1), changes, message, [*drop, *over, *asked.removable(site, chain)])
    after = fetched(site)
    if after.at(document.version) != document:
        raise TrustError(
            f"the remote took the push, and trust version {document.version} is not in force at its tip",
            reason="not-taken",
        )
    return after


def proposals_at(site: Site) -> list[Entry]:
    """Return the proposals at the verified tip, whoever put them there."""
    tip = site.pin().verified
    entries = site.git.entries(tip, f"{ROOT}/requests") if tip is not None else []
    return [one for one in entries if classify(one.path, one.mode).kind is Kind.PROPOSAL]


def put_right(site: Site, since: int, message: str) -> bool:
    """Let the tip show the trust in force from a version on, in place of what it shows; return whether it did not.

    For a person who decided between two documents with one number; nothing else writes over one.

    Raises:
        Behind, RemoteError: as `push`.
    """
    pin = site.pin()
    chain = site.trust(pin)
    wanted = {NEWEST_TRUST_PATH.encode(): chain.newest.raw}
    for document, signatures in zip(chain.documents[since - 1 :], chain.signatures[since - 1 :], strict=True):
        path = trust_path(document.version).encode()
        wanted |= {path: document.raw, path + b".sig": signatures}
    there = {entry.path: entry.oid for entry in site.git.entries(pin.verified or "", ROOT)}
    blobs = site.git.blobs([there[path] for path in wanted if path in there], max_size=BLOB_MAX)
    changes = [Put(path, data=raw) for path, raw in wanted.items() if blobs.get(there.get(path, "")) != raw]
    later = [
        path.decode("ascii")
        for path in there
        if classify(path).kind in (Kind.TRUST, Kind.TRUST_SIGNATURES) and classify(path).number > chain.newest.version
    ]
    if not changes and not later:
        return False
    push(site, chain, changes, message, later)
    fetched(site)
    return True
