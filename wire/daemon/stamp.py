"""Writing down what a cycle came to, for every reader of ages: see `wire.store.progress`."""

import time
from typing import Any

from wire.daemon.report import Report
from wire.store.files import is_locked
from wire.store.paths import WirePlaces
from wire.store.progress import Progress


def stamp(places: WirePlaces, report: Report, **more: Any) -> Progress:
    """Note a cycle's outcome and return the new stamp.

    Args:
        more: further fields of `Progress`; `pid` and `beat` are a daemon's alone, since they are read as its life.
    """
    now = time.time()
    before = Progress.load(places)
    failing = report.failure is not None
    after = before._replace(
        fetched=now if report.fetched else before.fetched,
        pushed=now if report.fetched and not failing and report.frozen is None else before.pushed,
        failure=report.failure.reason if report.failure is not None else "",
        failure_text=report.failure.message if report.failure is not None else "",
        failing_since=(before.failing_since or now) if failing else None,
        waiting=sum(report.waiting.values()),
        # What a shell beside a daemon was not given says nothing of the daemon.
        locked=" ".join(sorted(report.locked)) if more or not is_locked(places.lock("daemon")) else before.locked,
        **more,
    )
    after.save(places)
    return after
