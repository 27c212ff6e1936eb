"""The daily packing of a repository that leaves huge blobs out: what `git repack --cruft` does, but for them.

`git repack` ends at the first blob that is missing. The child that it starts can go on, so it is started here.
"""

import contextlib
import os
from collections.abc import Iterable

from wire.gitio.core import Core

_HOW = ("pack-objects", "--quiet", "--threads=1", "--honor-pack-keep", "--non-empty", "--delta-base-offset")
_ALL = ("--all", "--reflog", "--indexed-objects", "--missing=allow-any")
_ENDINGS = (".idx", ".pack", ".rev", ".bitmap", ".mtimes", ".promisor")


def pack(core: Core, *, expiration: str, timeout: float) -> None:
    """Put what refs and reflogs reach into one pack, the rest into a cruft pack, and remove the packs that held it.

    Args:
        expiration: date from before which nothing of the rest is kept, as git reads dates.
    """
    folder = os.path.join(core.git_dir, "objects", "pack")
    before = _packs(folder)
    base = os.path.join(folder, "pack")
    made = core.run(*_HOW, *_ALL, base, timeout=timeout).stdout.decode("ascii").split()
    listed = [f"pack-{name}.pack" for name in made] + [f"-{name}.pack" for name in before if name[5:] not in made]
    cruft = (*_HOW, "--cruft", f"--cruft-expiration={expiration}", base)
    rest = core.run(*cruft, input="".join(f"{name}\n" for name in listed).encode("ascii"), timeout=timeout)
    made += rest.stdout.decode("ascii").split()
    for name in before:
        if name[5:] not in made:
            for ending in _ENDINGS:  # without its index it is not seen any more
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, name + ending))


def _packs(folder: str) -> list[str]:
    """Return the packs that may go, without their endings; one with a keep mark stays."""
    names: Iterable[str] = os.listdir(folder) if os.path.isdir(folder) else ()
    there = set(names)
    return sorted(
        name[:-5]
        for name in there
        if name.startswith("pack-") and name.endswith(".pack") and f"{name[:-5]}.keep" not in there
    )
