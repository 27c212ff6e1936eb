"""What is asked for below `requests/`: looked at in small numbers, told once, and tidied (PROTOCOL.md, "Requests").

    listed(site, chain)                         who asks to join, at most so many; how many more there are
    of_name(site, chain, "spark")               everybody who asks for one name
    invited(site, chain, invitation)            who asks with one code, however many others ask
    look(site, chain, at_tip)                   findings: more than one came with a code of this machine
    removable(site, chain)                      what the commit of a new trust version takes away

Anybody who can push can ask, as often as he likes, and gets nothing by it. So a look costs the same for five thousand
requests as for some: beyond `LISTED` they are counted and not read. What a person names, by a name or by a code that he
gave out, is found among any number.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from wire.daemon.findings import WIRE, Finding
from wire.daemon.shape import Kind, classify, request_path
from wire.daemon.site import Site
from wire.errors import TrustError
from wire.keys import invitations, keyfile, requests
from wire.keys.answered import is_free, over
from wire.keys.invitations import MAC_BYTES, Invitation
from wire.keys.requests import REQUEST_MAX, Request
from wire.keys.rotations import ROTATION_MAX
from wire.keys.trust import Chain
from wire.protocol.encoding import PUBLIC_BYTES, fingerprint, unb64
from wire.store import incidents
from wire.store import invitations as given_out
from wire.store.files import atomic_write, read_bytes

LISTED = 64
"""Requests that a look reads, where no code of this machine speaks for them."""
PER_NAME = 4
"""Of them, those for one name."""
KEPT_SECONDS = 30 * 86_400.0
"""For which a request that nobody answered stays, from when this machine first saw it."""
SEEN_MOST = 2_000
"""Requests of which is kept when they were first seen."""

_AT_ONCE = 256
_FOLDER = "_coordination/requests"
_INVITED = re.compile(rb'"public":"([A-Za-z0-9+/=]{44})".*"mac":"([A-Za-z0-9+/=]{44})"', re.DOTALL)


class Listed(NamedTuple):
    """Who asks to join: those that were looked at, in the order in which they came; how many more there are."""

    requests: tuple[Request, ...]
    more: int


def listed(site: Site, chain: Chain) -> Listed:
    """Return who asks for a name that is free, at the verified tip; who was invited here comes first.

    A name whose last key was revoked is free for the next key of its owner.
    """
    files = at_verified(site)
    found = {one.key_id: one for given in _given(site) for one in invited(site, chain, given, files)}
    first, count = seen(site), dict.fromkeys(files, 0)
    wanted: list[str] = []
    more = 0
    for name in sorted(files, key=lambda one: (first.get(one, time.time()), one)):
        owner, key = name.split(".")[:2]
        if not is_free(chain, owner) or key in found or chain.owner(key) is not None:
            continue
        count[owner] = count.get(owner, 0) + 1
        if len(wanted) < LISTED and count[owner] <= PER_NAME:
            wanted.append(name)
        else:
            more += 1
    for name, raw in _read(site, files, wanted):
        one = _request(chain, name, raw)
        if one is not None:
            found[one.key_id] = one
    return Listed(tuple(found.values()), more)


def of_name(site: Site, chain: Chain, name: str, fits: Callable[[str], bool] | None = None) -> list[Request]:
    """Return who asks for one name, oldest by its own word first.

    Args:
        fits: whether a fingerprint is looked for; every one is when omitted.
    """
    if not is_free(chain, name):
        return []
    files = at_verified(site)
    found = []
    for file, raw in _read(site, files, [one for one in files if one.partition(".")[0] == name]):
        if fits is None or ((found_print := _print_of(raw)) and fits(found_print)):
            one = _request(chain, file, raw)
            found += [one] if one is not None else []
    return sorted(found, key=lambda one: (one.created, one.key_id))


def invited(site: Site, chain: Chain, given: Invitation, files: Mapping[str, str] | None = None) -> list[Request]:
    """Return who asks with the code of an invitation, under keys that nobody trusts yet; also after it was used.

    Args:
        files: object ids of requests by their file names; those at the verified tip when omitted.
    """
    files = at_verified(site) if files is None else files
    found = []
    for name, raw in _read(site, files, [one for one in files if one.partition(".")[0] == given.name]):
        # The cheap question first: whoever floods the name cannot answer it.
        if not _holds(given, raw):
            continue
        one = _request(chain, name, raw)
        if one is not None and one.role == given.role and chain.owner(one.key_id) is None:
            found.append(one)
    return found


def look(site: Site, chain: Chain, files: Mapping[str, str]) -> list[Finding]:
    """Look at the requests of a tip, where this machine has a part in them; return what is told of them.

    Args:
        files: object ids of the requests, by their file names.
    """
    root = keyfile.key_path(site.settings.keys_dir, wire=chain.wire, kind="root", name="root")
    if os.path.lexists(root):
        note(site, files, time.time())
    return twice(site, chain, files)


def twice(site: Site, chain: Chain, files: Mapping[str, str]) -> list[Finding]:
    """Return what is told where more than one key came with a code that this machine gave out.

    Args:
        files: object ids of the requests at a tip, by their file names.
    """
    names = set(given_out.names(site.places.invitations_dir))
    mine = {file: oid for file, oid in files.items() if file.partition(".")[0] in names and oid not in site.asked}
    if not mine:
        return []
    site.asked.update(mine.values())
    told: list[Finding] = []
    for name in sorted({file.partition(".")[0] for file in mine}):
        given = given_out.load(site.places.invitations_dir, name)
        invitation = _parsed(given.code) if given is not None else None
        if given is None or invitation is None:
            continue
        came = [one.fingerprint for one in invited(site, chain, invitation, files)]
        agent = chain.newest.agents.get(name)
        used = bool(given.taken_by) or not is_free(chain, name)
        known = [fingerprint(key.public) for key in agent.keys] if agent is not None and used else []
        if came and len(known) + len(came) > 1:
            told += _told(site, name, [*known, *came], used=used)
    return told


def removable(site: Site, chain: Chain) -> list[str]:
    """Return paths of requests at the verified tip that were answered, are none, or are older than `KEPT_SECONDS`."""
    files, first = at_verified(site), seen(site)
    old = {name for name in files if time.time() - first.get(name, time.time()) > KEPT_SECONDS}
    gone = [name for name, raw in _read(site, files, files.keys() - old, ROTATION_MAX) if over(chain, name, raw)]
    return [request_path(name) for name in sorted([*old, *gone])]


def at_verified(site: Site) -> dict[str, str]:
    """Return object ids of the requests at the verified tip, by their file names."""
    tip = site.pin().verified
    return _files(site, tip) if tip is not None else {}


# When they were first seen


def seen(site: Site) -> dict[str, float]:
    """Return when requests were first seen here (seconds of the epoch), by file name; a damaged file counts as none."""
    data = read_bytes(_seen_file(site))
    try:
        found = json.loads(data) if data else {}
        return {str(name): float(when) for name, when in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def note(site: Site, files: Iterable[str], now: float) -> None:
    """Write down which requests stand at a tip; who was seen first is known, and who is gone is forgotten."""
    known, there = seen(site), set(files)
    kept = {name: when for name, when in known.items() if name in there}
    for name in sorted(there - kept.keys())[: max(0, SEEN_MOST - len(kept))]:
        kept[name] = now
    if kept != known:
        atomic_write(_seen_file(site), json.dumps(kept).encode("ascii") + b"\n", durable=False)


def _seen_file(site: Site) -> str:
    return os.path.join(site.places.root, "requests.json")


# Reading


def _files(site: Site, tip: str) -> dict[str, str]:
    return {
        entry.path.rpartition(b"/")[2].decode("ascii"): entry.oid
        for entry in site.git.entries(tip, _FOLDER)
        if classify(entry.path, entry.mode).kind is Kind.REQUEST
    }


def _read(
    site: Site, files: Mapping[str, str], names: Iterable[str], most: int = REQUEST_MAX
) -> Iterator[tuple[str, bytes | None]]:
    """Yield file names and bytes, None for a file that is too large; so many at a time that memory stays bounded."""
    wanted = list(names)
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        blobs = site.git.blobs({files[name] for name in part}, max_size=most)
        yield from ((name, blobs[files[name]]) for name in part)


def _request(chain: Chain, file: str, raw: bytes | None) -> Request | None:
    try:
        return requests.parse(raw or b"", wire=chain.wire, file_name=file)
    except TrustError:
        return None


def _print_of(raw: bytes | None) -> str:
    """Return the fingerprint of the key that a request names; nothing of it is checked."""
    found = re.search(rb'"public":"([A-Za-z0-9+/=]{44})"', raw or b"")
    try:
        return fingerprint(unb64(found[1].decode("ascii"), PUBLIC_BYTES)) if found else ""
    except ValueError:
        return ""


def _holds(given: Invitation, raw: bytes | None) -> bool:
    found = _INVITED.search(raw or b"")
    if found is None:
        return False
    try:
        public, mac = (unb64(found[n].decode("ascii"), size) for n, size in ((1, PUBLIC_BYTES), (2, MAC_BYTES)))
    except ValueError:
        return False
    return invitations.holds(given, public, mac)


def _given(site: Site) -> Iterator[Invitation]:
    for name in given_out.names(site.places.invitations_dir):
        given = given_out.load(site.places.invitations_dir, name)
        parsed = _parsed(given.code) if given is not None and not given.taken_by else None
        if parsed is not None:
            yield parsed


def _parsed(code: str) -> Invitation | None:
    try:
        return invitations.parse(code)
    except ValueError:
        return None


def _told(site: Site, name: str, prints: list[str], *, used: bool) -> Iterator[Finding]:
    known = incidents.find(site.places.incidents_dir, "INVITED_TWICE", WIRE, name)
    if known is not None and set(prints) <= set(known.evidence.get("fingerprints", ())):
        return  # told before; the request stands there until somebody tidies
    yield Finding(
        "INVITED_TWICE",
        WIRE,
        f"{len(prints)} keys claim the one code for {name!r}: {', '.join(prints[:PER_NAME])}. Somebody else had your "
        f"code; {'the later one got nothing' if used else 'none of them was let in'}",
        {"fingerprints": prints[:LISTED], "name": name},
        name,
        "ask the newcomer for the fingerprint that `wire keys show` prints there, by another way than this wire; "
        + (
            f"if it is not the one that `wire trust show` has for {name}: wire trust revoke {name} --reason stolen"
            if used
            else f"then: wire trust approve {name} SHA256:…"
        ),
    )
