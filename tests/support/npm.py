"""Programs from npm that the tests use as a stranger would: pinned by a lock file, kept outside the repository.

    folder = npm.tree("pi")         # …/git-wire-tests/pi-<hash of its lock>/node_modules, installed when it is missing
    node = npm.node()               # a Node.js that all of them run on

`tests/support/npm_trees/NAME` holds a `package.json` with exact versions, and the lock of all below them. A tree is
made beside its place and then moved there, by one process at a time; no script of a package runs. `python -P
tests/support/npm.py NAME…` installs trees ahead of the tests; without names it installs all.
"""

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TREES = Path(__file__).with_name("npm_trees")
NODE = (20, 6)
"""What the programs need of Node.js; Debian 12 has 18, and then `tests/support/npm_trees/node` is used."""
LIMIT_SECONDS = 240.0


def cache() -> Path:
    """Return the folder where trees are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "git-wire-tests"


def tree(name: str) -> Path:
    """Return the `node_modules` of a tree, after it was installed."""
    source = TREES / name
    told = b"".join((source / file).read_bytes() for file in ("package.json", "package-lock.json"))
    place = cache() / f"{name}-{hashlib.sha256(told).hexdigest()[:16]}"
    if not place.exists():
        cache().mkdir(parents=True, exist_ok=True)
        with (cache() / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.exists():
                _install(source, place)
    return place / "node_modules"


def _install(source: Path, place: Path) -> None:
    npm = shutil.which("npm")
    assert npm, "npm is not installed, and the tests of real clients need it (Debian: apt-get install npm)"
    made = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{source.name}-"))
    try:
        for file in ("package.json", "package-lock.json"):
            shutil.copy(source / file, made)
        # Programs of a platform are optional dependencies, so that only one of them comes; below other programs
        # "optional" means comfort that the tests do without.
        omit = ["--omit=optional"] if "dependencies" in json.loads((source / "package.json").read_bytes()) else []
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", *omit],
            cwd=made,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
        )
        assert done.returncode == 0, f"npm could not install {source.name}:\n{done.stdout}{done.stderr}"
        made.chmod(0o755)
        made.rename(place)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def node() -> Path:
    """Return a Node.js that is new enough: the one on PATH, or the pinned one from npm."""
    found = shutil.which("node")
    return Path(found) if found and version(found) >= NODE else _pinned()


@functools.cache
def version(program: str) -> tuple[int, ...]:
    """Return the version of a Node.js; nothing when it tells none."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    numbers = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)\s*", done.stdout)
    return tuple(map(int, numbers.groups())) if numbers else ()


def _pinned() -> Path:
    return next(tree("node").glob("node-linux-*/bin/node"))


if __name__ == "__main__":
    for wanted in sys.argv[1:] or sorted(entry.name for entry in TREES.iterdir() if entry.name != "node"):
        print(tree(wanted), flush=True)
    print(node())
