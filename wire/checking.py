"""The Python API for what needs no wire on this machine: evidence, lines and repositories, checked from a checkpoint.

    from wire.checking import verify_file, verify_repository
    found = verify_file(raw, checkpoint="3:SHA256:…")
    print(found.holds, found.proved, found.unknown)

All raise `WireError` and nothing else.
"""

import os
from collections.abc import Mapping

from wire.store.paths import Settings
from wire.verbs import outside
from wire.verbs.outside import FileChecked, RepositoryChecked


def verify_file(
    raw: bytes,
    *,
    checkpoint: str | None = None,
    repository: str | None = None,
    branch: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> FileChecked:
    """Check an evidence file, or lines; a wire that this machine has joined needs no checkpoint.

    Args:
        repository: where the trust of a line stands whose wire this machine has not joined.
    """
    settings = Settings.from_environ(os.environ if environ is None else environ, os.getcwd())
    return outside.check_file(settings, raw, checkpoint=checkpoint, repository=repository, branch=branch)


def verify_repository(
    remote: str, checkpoint: str, *, branch: str | None = None, environ: Mapping[str, str] | None = None
) -> RepositoryChecked:
    """Check everything that a repository carries of a wire, without joining it; nothing is kept."""
    settings = Settings.from_environ(os.environ if environ is None else environ, os.getcwd())
    return outside.check_repository(settings, remote, checkpoint, branch=branch)
