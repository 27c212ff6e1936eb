"""The trust chain that a machine holds, as files of its state folder (PROTOCOL.md, section "Trust").

`000001.json` and `000001.json.sig`, `000002.json` …: byte for byte what the wire carries below `trust/`. The folder is
security state: what does not hold is refused and left as it is, since a verifier that guesses its trust can be rolled
back.
"""

import os

from wire.errors import TrustError
from wire.keys.trust import Chain, file_name
from wire.store.files import atomic_write, private_folder, read_bytes


def read(folder: str, known: Chain | None = None) -> Chain:
    """Return the chain that a folder holds.

    Args:
        known: a chain that was found to hold before; where the files hold just its bytes, it is that one.

    Raises:
        TrustError: reason `trust-corrupt`.
    """
    files: list[tuple[bytes, bytes]] = []
    while True:
        path = os.path.join(folder, file_name(len(files) + 1))
        raw, signatures = read_bytes(path), read_bytes(f"{path}.sig")
        if raw is None or signatures is None:
            break
        files.append((raw, signatures))
    if known is not None and files == [
        (document.raw, signed) for document, signed in zip(known.documents, known.signatures, strict=True)
    ]:
        return known
    try:
        return Chain.replay(files)
    except TrustError as error:
        raise TrustError(
            f"the trust in {folder} does not hold: {error.message}. Without it nothing can be verified, "
            "so nothing was read, accepted or published",
            reason="trust-corrupt",
            next_step="rebuild it with the checkpoint from a person: wire trust repin --checkpoint CHECKPOINT",
        ) from error


def write(folder: str, chain: Chain) -> None:
    """Write those versions that the folder does not hold as they are; signatures first, so that a kill leaves no
    document without them. What is there of another line, where a person follows this one now, goes, the last one first:
    a kill leaves none behind a gap, where it would be taken for a version that follows."""
    private_folder(folder)
    held = [read_bytes(os.path.join(folder, file_name(document.version))) for document in chain.documents]
    changed = any(raw not in (None, document.raw) for raw, document in zip(held, chain.documents, strict=True))
    later = chain.newest.version + 1
    while changed and os.path.lexists(os.path.join(folder, file_name(later))):
        later += 1
    for version in range(later - 1, chain.newest.version, -1):
        os.unlink(os.path.join(folder, file_name(version)))
    for document, signatures in zip(chain.documents, chain.signatures, strict=True):
        path = os.path.join(folder, file_name(document.version))
        if read_bytes(path) == document.raw and read_bytes(f"{path}.sig") == signatures:
            continue
        atomic_write(f"{path}.sig", signatures)
        atomic_write(path, document.raw)
