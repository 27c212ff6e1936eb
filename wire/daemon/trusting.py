"""Changing the trust: made on top of the tip that was just fetched, signed, and pushed at once (PROTOCOL.md, "Trust").

Without the remote a change fails and has changed nothing. What this machine's root signed for a number is written down
before anybody sees it, so that it never offers two documents with one number: if the push of the first is lost to a
crash, the next change offers the same bytes again before it goes on.
"""

import os
from collections.abc import Callable, Sequence

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from wire.daemon import cycle
from wire.daemon.shape import NEWEST_TRUST_PATH, trust_path
from wire.daemon.site import OUTGOING_REF, Site
from wire.errors import RemoteError, TrustError
from wire.gitio import Drop, Put
from wire.keys import keyfile
from wire.keys.trust import Chain, Verdict, sign_document
from wire.protocol.encoding import Signer, sha256_hex
from wire.store.files import atomic_write, private_folder, read_bytes

Build = Callable[[Chain], bytes | None]
"""Returns the bytes of the next version, given the chain in force; None when that already says what was wanted."""

RACES = 8


class _Behind(Exception):
    """The remote moved between our fetch and our push."""


def change(site: Site, build: Build, message: str, *, drop: Sequence[str] = ()) -> Chain:
    """Make one new trust version, push it, and accept it here.

    Args:
        build: called with the chain of the tip just fetched; may be called again after a lost race.
        message: the commit's subject.
        drop: paths that the same commit removes, such as the request that it answers.

    Raises:
        RemoteError: the remote could not be reached, or refused; nothing was changed.
        TrustError: the change is not lawful, or this machine holds no root key that counts.
    """
    signed: set[bytes] = set()
    for attempt in Retrying(
        retry=retry_if_exception_type(_Behind),
        stop=stop_after_attempt(RACES),
        wait=wait_random_exponential(multiplier=0.1, max=3),
        reraise=True,
    ):
        with attempt:
            try:
                return _attempt(site, build, message, drop, signed)
            except _Behind as error:
                if attempt.retry_state.attempt_number == RACES:
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


def root_signer(site: Site, wire: str) -> Signer:
    """Return this machine's root key.

    Raises:
        IdentityError: there is none here, or it cannot be used.
    """
    path = keyfile.key_path(site.settings.keys_dir, wire=wire, kind="root", name="root")
    return keyfile.load_for(path, name="root", kind="root", wire=wire)


def _attempt(site: Site, build: Build, message: str, drop: Sequence[str], signed: set[bytes]) -> Chain:
    """Try once.

    Args:
        signed: documents that this call signed for an earlier try; one of them is the change itself.
    """
    chain = fetched(site)
    signer = root_signer(site, chain.wire)
    if signer.public not in chain.newest.roots:
        raise TrustError(
            f"this machine's root key is not one of the {len(chain.newest.roots)} roots of trust version "
            f"{chain.newest.version}; it cannot change the trust",
            reason="not-a-root",
        )
    offered = _offered(site, chain.newest.version + 1)
    if offered is not None and chain.judge(chain.newest.version + 1, *offered).verdict is Verdict.NEXT:
        mine = offered[0] in signed
        chain = _publish(
            site, chain.extend(*offered), message if mine else "trust: signed earlier", drop if mine else ()
        )
        if mine:
            return chain
    raw = build(chain)
    if raw is None:
        return chain
    signatures = sign_document(raw, signer)
    extended = chain.extend(raw, signatures)
    _remember(site, extended.newest.version, raw, signatures)
    signed.add(raw)
    return _publish(site, extended, message, drop)


def _publish(site: Site, chain: Chain, message: str, drop: Sequence[str]) -> Chain:
    document, signatures = chain.newest, chain.signatures[-1]
    with site.cycle_lock():
        pin = site.pin()
        tip = pin.verified
        if tip is None:
            raise RemoteError("the remote's tip was never verified here; nothing was changed", kind="no-ref")
        if pin.trust_version != document.version - 1:
            # Another process took over a version since we looked: what was signed for this number waits or is void.
            raise _Behind(f"trust version {pin.trust_version} came meanwhile")
        path = trust_path(document.version)
        present = {entry.path for entry in site.git.entries(tip)}
        changes: list[Put | Drop] = [
            Put(path.encode(), data=document.raw),
            Put(f"{path}.sig".encode(), data=signatures),
            Put(NEWEST_TRUST_PATH.encode(), data=document.raw),
            *(Drop(gone.encode()) for gone in drop if gone.encode() in present),
        ]
        commit = site.git.write_commit(OUTGOING_REF, base=tip, parents=[tip], message=message, changes=changes)
        result = site.git.push(pin.remote, f"{commit}:refs/heads/{pin.branch}")
    if result.status == "race":
        raise _Behind(result.reason)
    if result.status == "rejected":
        raise RemoteError(f"the remote refused the change: {result.reason}", kind="rejected")
    after = fetched(site)
    if after.at(document.version) != document:
        raise TrustError(
            f"the remote took the push, and trust version {document.version} is not in force at its tip",
            reason="not-taken",
        )
    return after


def _signed_dir(site: Site) -> str:
    return os.path.join(site.places.root, "signed")


def _offered(site: Site, version: int) -> tuple[bytes, bytes] | None:
    path = os.path.join(_signed_dir(site), f"{version:06d}.json")
    raw, signatures = read_bytes(path), read_bytes(f"{path}.sig")
    return None if raw is None or signatures is None else (raw, signatures)


def _remember(site: Site, version: int, raw: bytes, signatures: bytes) -> None:
    """Write down what is about to be signed for a number; refuse a second document for it.

    Raises:
        TrustError: reason `already-signed`.
    """
    earlier = _offered(site, version)
    if earlier is not None and earlier[0] != raw:
        raise TrustError(
            f"this machine's root already signed another trust version {version} ({sha256_hex(earlier[0])[:16]}); "
            "signing a second one would split the wire",
            reason="already-signed",
            next_step="wire trust show",
        )
    private_folder(_signed_dir(site))
    path = os.path.join(_signed_dir(site), f"{version:06d}.json")
    atomic_write(f"{path}.sig", signatures)
    atomic_write(path, raw)
