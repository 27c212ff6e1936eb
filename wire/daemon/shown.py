"""What of a tip a person sees in the clone beside the channels: trust, attributes, requests, and git's index.

A tip may hold anything. Only what is lawful is written, in a bounded number, and the index is built of the rest of it
where git refuses a name.
"""

import os

from wire.daemon.accepted import BLOB_MAX
from wire.daemon.shape import Kind, classify
from wire.daemon.site import Site
from wire.gitio import Entry, GitFailed, Put
from wire.gitio import Kind as Trouble
from wire.store.mending import mend

REQUESTS_SHOWN = 256
"""Requests and proposals that are written into the clone; `wire trust requests` looks at all of them."""
SHOWN_REF = "refs/wire/shown"
_GROUP = 64


def show_files(site: Site, tip: str) -> None:
    """Show requests, trust and attributes in the work tree; channels are shown as they are accepted.

    Raises:
        GitFailed, StoreError: the tip cannot be read, or the clone not written.
    """
    entries = _loose(site, tip)
    _gone_requests(site, {entry.path for entry in entries})
    wanted = []
    for entry in entries:
        path = os.path.join(site.places.clone, entry.path.decode("ascii"))
        if site.signatures.changed(path, entry.oid):
            wanted.append((entry, path))
    for start in range(0, len(wanted), _GROUP):
        group = wanted[start : start + _GROUP]
        blobs = site.git.blobs([entry.oid for entry, _ in group], max_size=BLOB_MAX)
        for entry, path in group:
            data = blobs[entry.oid]
            if data is not None:
                name = entry.path.decode("ascii").partition("/")[2]
                mend(site.places.coordination, name, data, site.places.aside_dir, grace=0.0)
                site.signatures.remember(path, entry.oid)


def show_index(site: Site, tip: str) -> bool:
    """Make the index show a tip; return False while somebody else holds its lock.

    Where the tip holds names that no index may have (`.git`, `..`), only what is lawful is shown.

    Raises:
        GitFailed: it cannot be built.
    """
    try:
        return site.git.write_index(tip)
    except GitFailed as error:
        if error.kind is Trouble.CANCELLED:
            raise
    lawful = [
        Put(entry.path, oid=entry.oid)
        for entry in site.git.entries(tip, "_coordination")
        if classify(entry.path, entry.mode).kind not in (Kind.FOREIGN, Kind.ILLEGAL)
    ]
    commit = site.git.write_commit(SHOWN_REF, base=None, parents=(), message="shown", changes=lawful)
    return site.git.write_index(commit)


def _loose(site: Site, tip: str) -> list[Entry]:
    """Return the files that are to be seen: trust as far as it is in force, and not every stranger's request."""
    newest = site.pin().trust_version
    found: list[Entry] = []
    requests = 0
    for entry in site.git.entries(tip, "_coordination"):
        shape = classify(entry.path, entry.mode)
        asks = shape.kind in (Kind.REQUEST, Kind.PROPOSAL)
        requests += asks
        trust = shape.kind in (Kind.TRUST, Kind.TRUST_SIGNATURES) and shape.number <= newest
        if trust or (asks and requests <= REQUESTS_SHOWN) or shape.kind in (Kind.NEWEST_TRUST, Kind.ATTRIBUTES):
            found.append(entry)
    return found


def _gone_requests(site: Site, present: set[bytes]) -> None:
    """Take requests that were answered out of the work tree; the tip no longer has them."""
    try:
        names = os.listdir(os.path.join(site.places.coordination, "requests"))
    except FileNotFoundError:
        return
    for name in names:
        path = f"_coordination/requests/{name}".encode("utf-8", "surrogateescape")
        if path not in present and classify(path).kind in (Kind.REQUEST, Kind.PROPOSAL):
            mend(site.places.coordination, f"requests/{name}", None, site.places.aside_dir, grace=0.0)
