"""A round: one cycle, and what belongs to it whoever runs it, the daemon or `wire sync`.

    report = run(site)

After the cycle the incidents that are due are told to the others, and a second cycle takes those lines out at once.
What keeps a cycle from running at all (a damaged pin, a full disk) becomes an incident as well, and ends as one.
"""

from contextlib import suppress

from wire.daemon import cycle, rotating
from wire.daemon.announce import announce
from wire.daemon.beating import Promise
from wire.daemon.findings import WIRE, Finding, raise_all
from wire.daemon.report import TROUBLE, Report
from wire.daemon.site import Site
from wire.errors import Busy, DiskFull, IdentityError, RemoteError, StoreError, TrustError, WireError
from wire.gitio import GitFailed
from wire.store import incidents
from wire.store.files import store_error, utc_now

SUBJECT = "local"
"""What tells these incidents from those of the remote."""

_CODES = ("MOVED", "CORRUPT", "KEY", "DISK_FULL", "UNKNOWN", "CLONE_STATE")


def run(
    site: Site,
    *,
    fresh: bool = False,
    lock_timeout: float | None = None,
    tell: bool = True,
    promise: Promise | None = None,
) -> Report:
    """Run one round and return what it did and found.

    Args:
        fresh, lock_timeout, promise: see `cycle.run`.
        tell: whether to look for incidents that are to be told; where a cycle raised one, they are told anyway.

    Raises:
        Busy: another process's cycle takes longer than `lock_timeout`.
        WireError: this machine's state cannot be used; there is an incident about it.
    """
    try:
        report = cycle.run(site, fresh=fresh, lock_timeout=lock_timeout, promise=promise)
        incidents.end(site.places.incidents_dir, _CODES, WIRE, SUBJECT)
        if (tell or any(one.integrity for one in report.raised)) and announce(site, utc_now()):
            more = cycle.run(site, fresh=report.failure is None, lock_timeout=lock_timeout, promise=promise)
            _add(report, more)
        if report.failure is None and report.frozen is None:
            _ask(site, report)
    except Busy:
        raise
    except WireError as error:
        _note(site, error)
        raise
    except OSError as error:
        problem = store_error(error, "use", error.filename or site.places.root)
        _note(site, problem)
        raise problem from error
    return report


def beat(site: Site, promise: Promise, *, lock_timeout: float) -> int:
    """Publish the presences that are due between two rounds, and return how many the remote took; see `cycle.beat`."""
    return cycle.beat(site, promise, lock_timeout=lock_timeout)


def _ask(site: Site, report: Report) -> None:
    """Publish what this machine asks of who holds a root key, where that is not there yet."""
    try:
        rotating.publish_due(site)
    except (RemoteError, GitFailed) as error:
        report.failure = error


def _add(report: Report, more: Report) -> None:
    """Take a second cycle into the report of the first."""
    report.tip = more.tip or report.tip
    report.fetched = report.fetched or more.fetched
    for mine, theirs in ((report.accepted, more.accepted), (report.collected, more.collected)):
        for channel, count in theirs.items():
            mine[channel] = mine.get(channel, 0) + count
    report.pushed += more.pushed
    report.heartbeats += more.heartbeats
    report.alive += more.alive
    report.beats += more.beats
    report.waiting = more.waiting
    report.locked = more.locked
    report.raised += more.raised
    report.failure = more.failure
    report.frozen = more.frozen


def _note(site: Site, error: WireError) -> None:
    if isinstance(error, DiskFull):
        code = "DISK_FULL"
    elif isinstance(error, GitFailed):
        code = TROUBLE.get(error.kind, "UNKNOWN")
    elif error.reason in ("key-locked", "passphrase-wrong"):
        code = "KEY"
    elif error.reason == "remote-changed":
        code = "MOVED"
    elif isinstance(error, StoreError | TrustError | IdentityError):
        code = "CORRUPT"
    else:
        code = "UNKNOWN"
    finding = Finding(code, WIRE, error.message, {"reason": error.reason}, SUBJECT, error.next_step)
    with suppress(WireError):  # the disk is full, or the folder is not to be had: the error itself is what is told
        raise_all(site.places, [finding], utc_now())
