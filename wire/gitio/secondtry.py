"""The second try of a fetch that was too large: the same without the huge blobs, where the host can leave them out.

Whoever may push one huge blob would otherwise stop the wire for everybody who has not fetched it. git makes a filtered
fetch a partial clone, which fetches on any later access what it lacks; that must never happen here. So it is made in a
repository beside the clone, which borrows the clone's objects and is thrown away:

- What it asks to be left out, and that objects may be missing, stands in the environment of two children alone. The
  clone itself never knows a remote to ask, and no URL is written anywhere.
- Only what is whole is offered as known: the last commit that was fetched before anything was left out. A host that
  thinks we have a huge blob would build small ones on it, and git would fetch it to take them apart.
- git takes filtered objects without the exceptions of `environment.TOLERATED`. So they are taken unchecked and checked
  there, with the exceptions, before one reaches the clone.
- What is missing then is listed (`leftout`), the packs are moved into the clone, and its refs are set, in this order.

Where something is left out, git's check of an ordinary fetch follows each name in a new tree and misses it. What fails
of that is fetched beside the clone as well, with no filter and all that the clone has as known: it is small.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence

from wire.gitio import environment, leftout, refs
from wire.gitio.classify import GitFailed, Kind
from wire.gitio.core import Core
from wire.gitio.refs import RefUpdate

WHOLE = "refs/wire/whole"
"""The last commit that was fetched before anything was left out; all that it reaches is here."""

REMOTE = "wire-second-try"
_CHECK_SECONDS = 600.0
_UNKNOWN_TO_HOST = "filtering not recognized by server"
_MISSING = re.compile(rb"\?([0-9a-f]{40}|[0-9a-f]{64})\Z")

SETTINGS: tuple[tuple[str, str], ...] = (
    (f"remote.{REMOTE}.promisor", "true"),
    (f"remote.{REMOTE}.partialCloneFilter", f"blob:limit={leftout.LIMIT}"),
    ("core.alternateRefsPrefixes", WHOLE),
)
"""Settings of a filtered fetch; in the environment of its child alone."""

# Its own check tolerates nothing of filtered objects, and follows each name in a tree; ours comes after.
_UNCHECKED = (("fetch.fsckObjects", "false"), ("transfer.fsckObjects", "false"))


def naming(variables: Mapping[str, str], url: str) -> dict[str, str]:
    """Return the variables that give the remote of `SETTINGS` its URL, behind those of `variables`."""
    return environment.further_config(variables, [(f"remote.{REMOTE}.url", url)])


def without_filter(stderr: bytes) -> bool:
    """Tell whether the host sent everything because it cannot leave anything out."""
    return _UNKNOWN_TO_HOST.encode() in stderr


def missing(core: Core, tips: Iterable[str], known: str | None) -> frozenset[str]:
    """Return the ids of what is missing in all that commits reach and a known one does not; no more than needed."""
    found: set[str] = set()
    rest = b""

    def take(chunk: bytes) -> bool:
        nonlocal rest
        *lines, rest = (rest + chunk).split(b"\n")
        found.update(match[1].decode("ascii") for line in lines if (match := _MISSING.match(line)))
        return len(found) <= leftout.MOST

    args = ["rev-list", "--objects", "--no-object-names", "--missing=print", "--stdin"]
    asked = "".join(f"{one}\n" for one in [*tips, *([f"^{known}"] if known is not None else [])])
    ended = core.spawn(args, input=asked.encode("ascii"), sink=take, timeout=_CHECK_SECONDS)
    if ended.cut != "enough":
        core.judge(args, ended)
    return frozenset(found)


class SecondTry(contextlib.AbstractContextManager["SecondTry"]):
    """A repository beside the clone, for one filtered fetch; gone on exit.

    Args:
        filtered: whether huge blobs are to be left out; else this is for what was left out before.

    Attributes:
        settings: what the fetch needs on top of a fetch's settings.
        core: runs children on it; they are those that a cancel of the clone's reaches.
    """

    def __init__(self, clone: Core, *, filtered: bool) -> None:
        self._clone = clone
        self._filtered = filtered
        self.settings = [*(SETTINGS if filtered else ()), *_UNCHECKED]
        self._folder = os.path.join(clone.git_dir, leftout.BESIDE)
        self.core = clone.beside(self._folder)

    def __enter__(self) -> "SecondTry":
        shutil.rmtree(self._folder, ignore_errors=True)
        found = self._clone.run("rev-parse", "--show-object-format").stdout.decode("ascii").strip()
        os.makedirs(self._folder)
        self.core.run("init", "--quiet", "--bare", "--template=", f"--object-format={found}")
        self._lend(True)
        return self

    def __exit__(self, *raised: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def keep_whole(self, ref: str) -> None:
        """Remember what a ref of the clone names as whole, unless something is left out already."""
        if leftout.some(self._clone.git_dir):
            return
        known = self._commit(ref)
        if known is not None:
            refs.update(self._clone, [RefUpdate(WHOLE, known)])

    def check(self) -> list[RefUpdate]:
        """Check what was fetched, as git checks a fetch, and return the refs that it came with.

        Raises:
            GitFailed: an object is malformed.
        """
        listed = self.core.run("for-each-ref", "--format=%(objectname) %(refname)").stdout.decode("utf-8")
        fetched = [
            RefUpdate(name, oid) for oid, _, name in (line.partition(" ") for line in listed.split("\n") if line)
        ]
        packs = os.path.join(self._folder, "objects", "pack")
        if not os.path.isdir(packs) or not os.listdir(packs):
            return fetched
        tolerated = [(f"fsck.{problem}", "ignore") for problem in environment.TOLERATED]
        # Each object that came, and no link between them: without refs and without the clone's objects.
        self._lend(False)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self._folder, "packed-refs"))
        shutil.rmtree(os.path.join(self._folder, "refs"))
        os.mkdir(os.path.join(self._folder, "refs"))
        args = ["fsck", "--strict", "--no-dangling", "--no-reflogs", "--no-progress"]
        done = self.core.spawn(args, env=self.core.settings(tolerated), timeout=_CHECK_SECONDS)
        self._lend(True)
        if done.cut is not None:
            self.core.judge(args, done)
        if done.status != 0:
            said = self.core.shown(done.stderr).strip().split("\n")[:3]
            raise GitFailed(
                f"git fetch failed (objects that git refuses): {'; '.join(said) or 'no reason was given'}",
                kind=Kind.MALFORMED,
                label="fsck",
                stderr=self.core.shown(done.stderr),
            )
        return fetched

    def take_over(self, fetched: Sequence[RefUpdate]) -> None:
        """List what is missing, move the packs into the clone, and set its refs."""
        if self._filtered and not leftout.add(self._clone.git_dir, self._missing(fetched)):
            raise GitFailed(
                f"the branch holds more than {leftout.MOST} files that are too large for a wire",
                kind=Kind.TOO_LARGE,
                label="left-out",
                next_step="take the large files out of the branch's history",
            )
        packs = os.path.join(self._folder, "objects", "pack")
        there = os.path.join(self._clone.git_dir, "objects", "pack")
        names = os.listdir(packs)
        os.makedirs(there, exist_ok=True)
        for ending in (".pack", ".idx"):  # one without its index is not seen yet
            for name in names:
                if name.endswith(ending):
                    os.rename(os.path.join(packs, name), os.path.join(there, name))
        leftout.fsync_folder(there)
        refs.update(self._clone, fetched)

    def _missing(self, fetched: Sequence[RefUpdate]) -> frozenset[str]:
        return missing(self.core, [one.new for one in fetched if one.new is not None], self._commit(WHOLE))

    def _commit(self, ref: str) -> str | None:
        done = self._clone.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", ok=(0, 1))
        return done.stdout.decode("ascii").strip() if done.status == 0 else None

    def _lend(self, lends: bool) -> None:
        """Let the repository see the clone's objects, or only its own."""
        path = os.path.join(self._folder, "objects", "info", "alternates")
        if lends:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(os.fsencode(os.path.join(self._clone.git_dir, "objects")) + b"\n")
        else:
            os.unlink(path)
