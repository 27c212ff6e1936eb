"""Putting a request where the people who hold root keys find it: a file of ours below `requests/`, pushed at once.

It changes nothing but that file, and goes on the tip as it is fetched, judged or not: who reads it judges it.
"""

from collections.abc import Callable

from wire.daemon.races import RACES
from wire.daemon.shape import FILE_MODE, request_path
from wire.daemon.site import FETCH_MAX_BYTES, INCOMING_REF, OUTGOING_REF, Site
from wire.errors import RemoteError
from wire.gitio import Put

REQUEST_BYTES = 1 << 20
"""Bytes beyond which nothing that stands there is read."""


def ask(
    site: Site,
    file_name: str,
    raw: bytes,
    message: str,
    is_there: Callable[[bytes], bool],
    *,
    what: str = "the request",
) -> bool:
    """Push a request unless it stands at the remote's tip already; return whether it was pushed now.

    Args:
        file_name: below `requests/`.
        is_there: told what stands in that file; somebody may have put something else in its place.
        what: it is, for people.

    Raises:
        RemoteError, GitFailed: the remote cannot be reached, or refused it.
    """
    path = request_path(file_name)
    reason = ""
    for _ in range(RACES):
        with site.cycle_lock():
            pin = site.pin()
            site.git.fetch(pin.remote, [f"+refs/heads/{pin.branch}:{INCOMING_REF}"], max_bytes=FETCH_MAX_BYTES)
            tip = site.git.resolve(INCOMING_REF)
            if tip is None or stands(site, tip, path, is_there):
                return False
            changes = [Put(path.encode(), data=raw)]
            commit = site.git.write_commit(OUTGOING_REF, base=tip, parents=[tip], message=message, changes=changes)
            result = site.git.push(pin.remote, f"{commit}:refs/heads/{pin.branch}")
        if result.status in ("ok", "up-to-date"):
            return True
        if result.status == "rejected":
            raise RemoteError(f"the remote refused {what}: {result.reason}", kind="rejected")
        reason = result.reason
    raise RemoteError(f"others pushed first {RACES} times in a row ({reason}); run the same command again", kind="race")


def stands(site: Site, tip: str, path: str, is_there: Callable[[bytes], bool]) -> bool:
    """Return whether a file stands at a tip, and is what is meant."""
    entries = site.git.entries(tip, path)
    oids = [one.oid for one in entries if one.path == path.encode() and one.mode == FILE_MODE]
    blobs = site.git.blobs(oids, max_size=REQUEST_BYTES) if oids else {}
    return any(data is not None and is_there(data) for data in blobs.values())
