"""This machine's root key, and what it signed: never two documents for one base (PROTOCOL.md, "Succession").

What is about to be signed is written down before anybody sees it, as `signed/000007.<32 hex of the base's hash>.json`
in the state folder of the wire, with this root's own signature beside it. It is never taken back: a signature that was
handed out may turn up again at any time, and two documents that follow one version would split the wire.
"""

import os

from wire.daemon.site import Site
from wire.errors import TrustError
from wire.keys import keyfile
from wire.keys.trust import Document
from wire.protocol.encoding import Signer, sha256_hex
from wire.store.files import atomic_write, lock_folder, private_folder, read_bytes


def root_path(site: Site, wire: str) -> str:
    """Return where this machine keeps its root key of a wire, if it has one."""
    return keyfile.key_path(site.settings.keys_dir, wire=wire, kind="root", name="root")


def root_signer(site: Site, wire: str) -> Signer:
    """Return this machine's root key.

    Raises:
        IdentityError: there is none here, or it cannot be used.
    """
    loose, environ = site.settings.allow_loose_keys, site.settings.environ
    path = root_path(site, wire)
    return keyfile.load_for(path, name="root", kind="root", wire=wire, allow_loose=loose, environ=environ)


def signed_for(site: Site, base: Document) -> tuple[bytes, bytes] | None:
    """Return the document that this machine's root signed as the next of a version, and the signature's line."""
    path = _path(site, base)
    raw, signature = read_bytes(path), read_bytes(f"{path}.sig")
    return None if raw is None or signature is None else (raw, signature)


def remember(site: Site, base: Document, raw: bytes, signature: bytes) -> None:
    """Write down what is about to be signed as the next of a version; refuse a second document for it.

    Raises:
        TrustError: reason `already-signed`.
    """
    path = _path(site, base)
    folder = os.path.dirname(path)
    private_folder(folder)
    # The daemon and a person's command may be about to sign at the same moment.
    with lock_folder(folder, what="what this machine's root signed"):
        earlier = signed_for(site, base)
        if earlier is not None and earlier[0] != raw:
            raise already_signed(base.version + 1, sha256_hex(earlier[0]), sha256_hex(raw))
        atomic_write(f"{path}.sig", signature)
        atomic_write(path, raw)


def already_signed(version: int, signed: str, refused: str) -> TrustError:
    """Return the error for a second document of one number.

    Args:
        signed, refused: the hashes of both, 64 hex digits.
    """
    return TrustError(
        f"this machine's root already signed a trust version {version} ({signed}) and does not sign another one "
        f"({refused}): two of them would split the wire",
        reason="already-signed",
        next_step="`wire trust pending` shows what was signed; where it is gone or over, `wire trust propose --again`"
        " offers it once more. Complete it, and put it right with the version after it",
        details={"version": version, "signed": signed, "refused": refused},
    )


def _path(site: Site, base: Document) -> str:
    return os.path.join(site.places.root, "signed", f"{base.version + 1:06d}.{base.hash[:32]}.json")
