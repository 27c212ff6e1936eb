"""Build the index of a clone beside the one that is there, and put it in place under git's own lock."""

import os

from wire.gitio.core import Core


def write_index(core: Core, commit: str) -> bool:
    """Make the clone's index show `commit`, with the files' stats taken in; see `Git.write_index`."""
    index = os.path.join(core.git_dir, "index")
    lock = f"{index}.lock"
    built = os.path.join(core.git_dir, "wire-index")
    try:
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    os.close(descriptor)
    try:
        env = {"GIT_INDEX_FILE": built}
        core.run("read-tree", "--index-output=" + built, commit, env=env)
        # Exit status 1 says that some file differs, which is for the person to see and no failure.
        core.run("update-index", "-q", "--refresh", env=env, ok=(0, 1))
        os.rename(built, lock)
        os.rename(lock, index)
    except BaseException:
        for path in (built, f"{built}.lock", lock):
            if os.path.lexists(path):
                os.unlink(path)
        raise
    return True
