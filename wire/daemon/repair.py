"""Making the clone's repository anew when git's own files are damaged, without giving up an accepted line.

The pin says what was accepted: a head per channel. Any copy that hashes to it will do, whoever kept it, so the bytes
are gathered from the clone's files, the journal, the damaged repository as far as it can be read, and the remote's
tip; each segment from the first of these that holds it. The damaged repository is set aside whole, and nothing is
changed unless every accepted line was found.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from wire.daemon.accepted import BLOB_MAX, Accepted, Blobs
from wire.daemon.findings import WIRE, Finding, raise_all
from wire.daemon.shape import segment_path
from wire.daemon.site import FETCH_MAX_BYTES, INCOMING_REF, Site
from wire.gitio import Git, GitFailed
from wire.protocol.chain import Position
from wire.store import journal, reading
from wire.store.files import fsync_folder, private_folder, utc_now
from wire.store.paths import WirePlaces
from wire.store.pin import Pin, replace
from wire.store.reading import CloneSource, Source


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair came to: accepted lines that were put back, and where the damaged repository went."""

    lines: int
    aside: str
    remote_reached: bool


class _TreeSource(NamedTuple):
    """Segments of a commit in some repository; what cannot be read counts as absent."""

    git: Git
    commit: str
    channel: str

    def read(self, segment: int) -> bytes | None:
        """Return a segment's bytes, or None."""
        path = segment_path(self.channel, segment)
        try:
            oids = [entry.oid for entry in self.git.entries(self.commit, path) if entry.path == path.encode("ascii")]
            return next(iter(self.git.blobs(oids, max_size=BLOB_MAX).values()), None)
        except GitFailed:
            return None

    def name(self, segment: int) -> str:
        """Return commit and path."""
        return f"{self.commit}:{segment_path(self.channel, segment)}"


class _JournalSource(NamedTuple):
    """Segments of our own journal."""

    places: WirePlaces
    channel: str

    def read(self, segment: int) -> bytes | None:
        """Return a segment's bytes, or None."""
        return journal.read_segment(self.places, self.channel, segment) or None

    def name(self, segment: int) -> str:
        """Return channel and segment."""
        return f"the journal of {self.channel}, segment {segment}"


def repair(site: Site) -> Repaired:
    """Make the repository anew and put every accepted line and the trust back into it.

    Raises:
        IntegrityError: reason `view-damaged`: some accepted line is in none of the copies; nothing was changed.
        WireError: the pin or the trust cannot be used.
    """
    with site.cycle_lock():
        pin = site.pin()
        chain = site.trust(pin)
        fresh_dir = os.path.join(site.places.clone, ".git.new")
        fresh = _repository(site, fresh_dir, _object_format(site, pin))
        reached = _fetch(fresh, pin)
        copies = _trees(site.git, pin.accepted_commit) + (_trees(fresh, INCOMING_REF) if reached else [])
        accepted = Accepted(fresh, Blobs(fresh), None)
        accepted.put_trust(chain)
        for channel, end in pin.accepted.items():
            _put_back(site, accepted, chain.wire, channel, end, copies)
        commit = accepted.commit_changes()
        known = reached and pin.verified is not None and fresh.resolve(f"{pin.verified}^{{commit}}") is not None
        if reached and pin.verified is not None and not known:
            _tell_forced(site, pin.verified)
        aside = _swap(site, fresh_dir)
        site.save(
            replace(
                pin,
                accepted_commit=commit,
                verified=pin.verified if known or not reached else None,
                judged_trust=0,
                tidied=None,
            )
        )
        return Repaired(sum(end.seq for end in pin.accepted.values()), aside, reached)


def _repository(site: Site, git_dir: str, object_format: str) -> Git:
    if os.path.lexists(git_dir):
        _set_aside(site, git_dir)
    git = Git(
        git_dir, environ=site.settings.environ, runtime_dir=site.settings.runtime_dir, work_tree=site.places.clone
    )
    git.init(object_format, branch=site.config.branch)
    return git


def _object_format(site: Site, pin: Pin) -> str:
    known = pin.verified or pin.accepted_commit
    return "sha256" if known is not None and len(known) == 64 else "sha1"


def _fetch(git: Git, pin: Pin) -> bool:
    try:
        git.fetch(pin.remote, [f"+refs/heads/{pin.branch}:{INCOMING_REF}"], max_bytes=FETCH_MAX_BYTES)
    except GitFailed:
        return False
    return True


def _trees(git: Git, commit: str | None) -> list[tuple[Git, str]]:
    return [(git, commit)] if commit is not None else []


def _put_back(
    site: Site, accepted: Accepted, wire: str, channel: str, end: Position, copies: Sequence[tuple[Git, str]]
) -> None:
    sources: list[Source] = [CloneSource(site.places.coordination, channel)]
    if channel.partition("/")[0] in site.config.agents:
        sources.append(_JournalSource(site.places, channel))
    sources += [_TreeSource(git, commit, channel) for git, commit in copies]
    position = Position.start(wire, channel)
    found = reading.lines_after(sources, wire, channel, accepted=end, cursor=position)
    for _, reads in groupby(found, key=lambda read: read.after.segment):
        held = list(reads)
        accepted.append(channel, position, [read.line.raw for read in held])
        position = held[-1].after


def _tell_forced(site: Site, verified: str) -> None:
    message = (
        f"commit {verified[:12]}, which was verified here, is not in the remote's history any more; "
        "what was accepted is kept here"
    )
    raise_all(site.places, [Finding("FORCED", WIRE, message, {"old_tip": verified}, subject="repair")], utc_now())


def _swap(site: Site, fresh_dir: str) -> str:
    """Put the new repository in place of the damaged one. A kill in between leaves no repository, and says so."""
    aside = _set_aside(site, site.places.git_dir) if os.path.lexists(site.places.git_dir) else "nothing"
    os.rename(fresh_dir, site.places.git_dir)
    fsync_folder(site.places.clone)
    return aside


def _set_aside(site: Site, path: str) -> str:
    private_folder(site.places.aside_dir)
    aside = os.path.join(site.places.aside_dir, f"git-{utc_now().replace(':', '')}")
    try:
        os.rename(path, aside)
    except OSError:
        # Another file system: beside the clone is as good.
        aside = f"{path}.damaged-{utc_now().replace(':', '')}"
        os.rename(path, aside)
    return aside
