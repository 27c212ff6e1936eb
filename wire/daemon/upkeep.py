"""Packing the clone's objects when there are many, and clearing away what a kill left.

Every commit and every fetch leaves a small pack, and git's own housekeeping would come far too late for them. Success
is what the counts say afterwards. All of it happens under the wire's lock, between two cycles and never inside one.
"""

import os
import time

from wire.daemon.findings import WIRE, Finding, raise_all
from wire.daemon.site import Site
from wire.daemon.tidy import git_processes
from wire.gitio import Counts, GitFailed
from wire.store import incidents
from wire.store.files import sweep, utc_now

PACKS_DUE = 48
LOOSE_DUE = 400
SUBJECT = "packing"

_ORPHANS_SECONDS = 5.0
_POLL_SECONDS = 0.1


def due(site: Site) -> bool:
    """Return whether there are so many objects that packing pays."""
    counts = site.git.counts()
    return counts.packs >= PACKS_DUE or counts.loose >= LOOSE_DUE


def pack(site: Site, *, lively: bool = False) -> Counts:
    """Pack in the foreground.

    Args:
        lively: there is a live exchange; what takes longer waits for a quieter hour.

    Raises:
        GitFailed: the counts did not come down; there is an incident about it.
        Busy: somebody else is at work.
    """
    try:
        with site.cycle_lock(0):
            counts = site.git.pack(full=False if lively else None)
    except GitFailed as error:
        finding = Finding("CLONE_STATE", WIRE, f"the clone could not be packed: {error.message}", {}, SUBJECT)
        raise_all(site.places, [finding], utc_now())
        raise
    incidents.end(site.places.incidents_dir, "CLONE_STATE", WIRE, SUBJECT)
    return counts


def clear(site: Site, *, crashed: bool) -> list[str]:
    """Remove what killed processes of ours left, and return a sentence for each file.

    Args:
        crashed: the daemon before this one did not end in order. Then a lock in the clone that is older than this
            call, and that no git process is there to hold, is its children's; otherwise such locks keep their time of
            grace (see `tidy`).
    """
    places = site.places
    began = time.time()
    told = []
    for folder in (places.root, places.trust_dir, places.incidents_dir, places.cursors_dir, places.aside_dir):
        told += [f"removed {path}, an unfinished write" for path in sweep(folder)]
    if not crashed or not os.path.isdir(places.git_dir):
        return told
    # git that a killed daemon had started goes on by itself, and takes its locks away.
    give_up = time.monotonic() + _ORPHANS_SECONDS
    while git_processes(places.clone):
        if time.monotonic() > give_up:
            return [*told, f"git is still at work in {places.clone}; locks there are left alone"]
        time.sleep(_POLL_SECONDS)
    with site.cycle_lock():
        told += _remove(_locks(places.git_dir), began)
    return told


def _remove(paths: list[str], now: float) -> list[str]:
    told = []
    for path in paths:
        try:
            age = now - os.lstat(path).st_mtime
            if age < 0:
                continue
            os.unlink(path)
        except FileNotFoundError:
            continue
        told.append(f"removed {path}, {age:.0f} s old: the last daemon was killed and no git process held it")
    return told


def _locks(git_dir: str) -> list[str]:
    found = [os.path.join(git_dir, name) for name in os.listdir(git_dir) if name.endswith(".lock")]
    for folder, _, names in os.walk(os.path.join(git_dir, "refs")):
        found += [os.path.join(folder, name) for name in names if name.endswith(".lock")]
    return found
