"""Root keys: a new one, adding and removing them, and how many must sign.

    ana = new_key(here, "ana")                  on ana's machine; ana.line is for somebody who is a root
    add(here, "ana", ana.line, confirm=…)       there
    threshold(here, 2, confirm=…)

Each change is in force at once where this machine's root is enough for it, and a proposal otherwise: what counts is the
threshold before and the one after.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from wire.daemon.proposing import TERMS
from wire.daemon.rootkeys import root_path, root_signer
from wire.daemon.site import Site
from wire.errors import UsageError
from wire.keys import keyfile, roots
from wire.keys.build import set_roots
from wire.keys.model import Document
from wire.keys.trust import Chain
from wire.protocol.encoding import fingerprint, key_id
from wire.protocol.names import check_name
from wire.store.files import utc_now
from wire.verbs.here import Here
from wire.verbs.proposing import Decided, Draft, decide


class RootKey(NamedTuple):
    """This machine's root key.

    Attributes:
        line: for whoever adds it to the trust; nothing in it is secret.
        again: whether it had been made before.
        counts: whether the trust lists it.
    """

    name: str
    fingerprint: str
    line: str
    path: str
    again: bool
    counts: bool


def new_key(here: Here, name: str) -> RootKey:
    """Make a root key on this machine, unless it has one, and return it with the line that carries its public half.

    Args:
        name: what people are to call it.

    Raises:
        UsageError: the name is malformed or reserved.
        IdentityError: the key cannot be made or used.
    """
    check_name(name, "root")
    site = Site.open(here.settings, here.config)
    chain = site.trust(site.pin())
    path = root_path(site, chain.wire)
    again = os.path.lexists(path)
    loose = here.settings.allow_loose_keys
    signer = (
        root_signer(site, chain.wire)
        if again
        else keyfile.create(path, name="root", kind="root", wire=chain.wire, allow_loose=loose)
    )
    signer.ready(ask=True)
    line = roots.offer(signer, wire=chain.wire, name=name)
    return RootKey(name, fingerprint(signer.public), line, path, again, signer.public in chain.newest.roots)


def add(here: Here, name: str, line: str, *, confirm: Callable[[Draft], bool]) -> Decided:
    """Add the root key of a line; a key that is a root already gets the name.

    Raises:
        UsageError: another root has the name (`name-taken`), or see `proposing.decide`.
        TrustError: the line does not hold, see `roots.read`; or see `proposing.decide`.
    """

    def make(chain: Chain) -> bytes | None:
        public, newest = roots.read(line, wire=chain.wire, name=name), chain.newest
        names = roots.names(newest)
        if names.get(key_id(public)) == name:
            return None
        if name in names.values():
            raise UsageError(
                f"another root is called {name!r}", reason="name-taken", next_step="wire keys root new ANOTHER-NAME"
            )
        listed = newest.roots if public in newest.roots else (*newest.roots, public)
        return _with(chain, listed, newest.threshold, {**names, key_id(public): name})

    return decide(here, make, f"trust: root {name}", confirm=confirm)


def remove(here: Here, wanted: str, *, beside: bool = False, confirm: Callable[[Draft], bool]) -> Decided:
    """Take a root off.

    Args:
        wanted: its name, fingerprint or key id.
        beside: also while another proposal is open, which may be that root's.

    Raises:
        UsageError: there is no such root (`root-unknown`), fewer would be left than must sign (`threshold-invalid`), or
            see `proposing.decide`.
        TrustError: see `proposing.decide`.
    """
    removed: list[bytes] = []

    def make(chain: Chain) -> bytes | None:
        newest = chain.newest
        if removed and removed[0] not in newest.roots:
            return None
        public = _root(newest, wanted)
        left = tuple(one for one in newest.roots if one != public)
        if len(left) < newest.threshold:
            what = "a wire has at least one root" if not left else f"{newest.threshold} must sign"
            raise UsageError(
                f"{len(left)} root(s) would be left, and {what}",
                reason="threshold-invalid",
                next_step=f"wire trust root threshold {len(left)}" if left else "wire trust root add NAME LINE",
            )
        removed.append(public)
        return _with(chain, left, newest.threshold, roots.names(newest))

    return decide(here, make, "trust: a root less", terms=TERMS._replace(beside=beside), confirm=confirm)


def threshold(here: Here, count: int, *, confirm: Callable[[Draft], bool]) -> Decided:
    """Set how many roots must sign a change of the trust.

    Raises:
        UsageError: there are not so many (`threshold-invalid`), or see `proposing.decide`.
        TrustError: see `proposing.decide`.
    """

    def make(chain: Chain) -> bytes | None:
        newest = chain.newest
        if not 1 <= count <= len(newest.roots):
            raise UsageError(
                f"{count} signatures cannot be met by {len(newest.roots)} root(s)",
                reason="threshold-invalid",
                next_step="wire trust root add NAME LINE",
            )
        return None if count == newest.threshold else _with(chain, newest.roots, count, roots.names(newest))

    return decide(here, make, f"trust: {count} must sign", confirm=confirm)


def _with(chain: Chain, listed: tuple[bytes, ...], count: int, names: dict[str, str]) -> bytes:
    kept = {one: name for one, name in names.items() if one in map(key_id, listed)}
    policy = roots.with_names(chain.newest, kept)
    return set_roots(chain.newest, chain.wire, roots=listed, threshold=count, policy=policy, created=utc_now())


def _root(document: Document, wanted: str) -> bytes:
    names = roots.names(document)
    for public in document.roots:
        if wanted in (names.get(key_id(public)), fingerprint(public), key_id(public)):
            return public
    raise UsageError(f"{wanted[:64]!r} is no root of this wire", reason="root-unknown", next_step="wire trust show")
