"""Build the index of a clone beside the one that is there, and put it in place under git's own lock.

The lock says whose it is: where a process of ours was killed with it in its hands, the next one knows it again.
"""

import os

from wire.gitio.core import Core

_OURS = b"this lock is wire's\n"


def write_index(core: Core, commit: str) -> bool:
    """Make the clone's index show `commit`, with the files' stats taken in; see `Git.write_index`."""
    index, lock, built = _places(core)
    try:
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    try:
        try:
            os.write(descriptor, _OURS)
        finally:
            os.close(descriptor)
        env = {"GIT_INDEX_FILE": built}
        core.run("read-tree", "--index-output=" + built, commit, env=env)
        # Exit status 1 says that some file differs, which is for the person to see and no failure.
        core.run("update-index", "-q", "--refresh", env=env, ok=(0, 1))
        os.rename(built, index)
    finally:
        for path in (built, f"{built}.lock", lock):
            if os.path.lexists(path):
                os.unlink(path)
    return True


def clear_own(core: Core) -> list[str]:
    """Remove what a process of ours that was killed in `write_index` left; return the paths. Under the wire's lock."""
    _, lock, built = _places(core)
    left = [path for path in (built, f"{built}.lock") if os.path.lexists(path)]
    try:
        with open(lock, "rb") as file:
            left += [lock] if file.read(len(_OURS) + 1) == _OURS else []
    except OSError:
        pass  # none there, or none of ours
    for path in left:
        os.unlink(path)
    return left


def _places(core: Core) -> tuple[str, str, str]:
    index = os.path.join(core.git_dir, "index")
    return index, f"{index}.lock", os.path.join(core.git_dir, "wire-index")
