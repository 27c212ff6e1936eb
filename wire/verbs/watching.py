"""How things stand: status, incidents, and checking everything again."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from wire.daemon import reverify, status
from wire.daemon.reverify import Problem, Segment
from wire.daemon.shape import segment_path
from wire.daemon.site import Site
from wire.daemon.status import Status
from wire.protocol.encoding import parse_checkpoint
from wire.store import clonefiles, incidents
from wire.store.incidents import Incident
from wire.verbs.here import Here

BATCH = 64


@dataclass(frozen=True, slots=True)
class Verified:
    """What checking everything again came to.

    Attributes:
        full: whether every signature was checked, or only links and places.
        lines: how many lines hold.
        unreadable: how many of them hold their place and cannot be shown.
        problems: every line or place that does not hold.
        views: clone files that differ from what is accepted; the daemon mends them.
        checkpoint: the checkpoint through which the trust passes.
    """

    full: bool
    lines: int
    unreadable: int
    problems: tuple[Problem, ...]
    views: tuple[str, ...]
    checkpoint: str


def look(here: Here) -> Status:
    """Return how the wire stands; raises IdentityError or Corrupt where the pin is missing or damaged."""
    return status.judge(status.snapshot(here.places, here.config, here.pin(), here.settings.keys_dir), time.time())


def list_incidents(here: Here, *, everything: bool = False) -> list[Incident]:
    """Return the incidents that are not resolved, or all, oldest first."""
    found = incidents.list_(here.places.incidents_dir)
    return found if everything else [one for one in found if one.state != incidents.RESOLVED]


def verify(
    here: Here, *, full: bool, jobs: int | None = None, progress: Callable[[int, int], None] | None = None
) -> Verified:
    """Check what is accepted again, from the checkpoint, and the clone's files against it.

    Args:
        full: check every signature; otherwise hashes, links and places, which the pin vouches for.
        jobs: processes; the number of cores when omitted.
        progress: told how many segments of how many are done.

    Raises:
        TrustError: the trust does not hold, or does not pass through the checkpoint.
        GitFailed: the accepted bytes cannot be read.
    """
    site = Site.open(here.settings, here.config)
    pin = here.pin()
    chain = site.trust(pin)
    problems: list[Problem] = []
    if not chain.passes(*parse_checkpoint(pin.checkpoint)):
        problems.append(Problem("trust", 0, 0, "TRUST", f"it does not pass through the checkpoint {pin.checkpoint}"))
    accepted = site.accepted(pin)
    segments, views = [], []
    for channel, end in pin.accepted.items():
        for number in range(1, end.segment + 1):
            if number % BATCH == 1:
                accepted.prefetch(channel, range(number, min(number + BATCH, end.segment + 1)))
            data = accepted.segment(channel, number)
            segments.append(Segment(channel, number, data))
            seen = clonefiles.read_segment(here.places.coordination, channel, number) or b""
            if not seen.startswith(data):
                views.append(segment_path(channel, number))
    total = len(segments)
    check = reverify.check_all if full else reverify.check_links
    done = check(segments, chain, jobs=jobs, progress=(lambda n: progress(n, total)) if progress is not None else None)
    problems += done.problems
    for channel, end in pin.accepted.items():
        found = done.ends.get(channel)
        if end.seq and (found is None or (found.seq, found.head) != (end.seq, end.head)):
            at = "nothing" if found is None else f"line {found.seq}"
            why = f"the pin says line {end.seq} ({end.head[:16]}), what is held ends with {at}"
            problems.append(Problem(channel, end.segment, end.size, "PREFIX", why))
    return Verified(full, done.lines, done.unreadable, tuple(problems), tuple(views), chain.newest.checkpoint)
