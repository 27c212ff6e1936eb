"""Locks and writes that hold up when a process dies, a disk fills or somebody tidies the folder.

Rules that it keeps:

- A lock is a *folder* with `flock` on it. The kernel drops it when the holder dies, so nothing is ever
  stale and nothing is ever removed by age. A file in it may be deleted at any time; only removing the whole
  folder while it is held (`rm -r`) lets a second holder in.
- A file is replaced by a complete, private one or stays as it was: temporary file beside it, fsync, rename,
  fsync of the folder.
- An append is there whole or not at all, also on a full disk.

    with locked(places.lock("config"), what="the configuration", timeout=10):
        atomic_write(path, data)

What it does not do: decide what a file must hold. Locks are advisory, are not re-entrant, and are held per opening,
so two threads of one process exclude each other as well.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from wire.errors import Busy, DiskFull, StoreError

HOLDER = ".holder"

# `is_locked` takes a shared lock for some microseconds; whoever tries "once" must not be turned away by that.
_PROBE_GRACE = 0.02
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
# NFS turns flock into record locks, which need a file open for writing: a folder cannot be locked there.
_FOLDER_NOT_LOCKABLE = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})
_TEMPORARY = ".tmp"


def store_error(error: OSError, doing: str, path: str) -> StoreError:
    """Turn an operating system's error into ours: `DiskFull` when space or quota ran out, else `StoreError`.

    Args:
        error: what the system said; raise the result `from` it.
        doing: what was tried, as in "cannot <doing> <path>".
        path: the file or folder concerned.
    """
    if error.errno in _NO_SPACE:
        return DiskFull(
            f"no space left: cannot {doing} {path} ({error.strerror}); nothing was changed",
            next_step=f"free some space on the disk of {os.path.dirname(path) or path} and try again",
        )
    return StoreError(f"cannot {doing} {path}: {error.strerror or error}")


# ---------------------------------------------------------------------------------------------------- locks


@contextmanager
def locked(path: str, *, what: str, timeout: float | None = None) -> Iterator[None]:
    """Hold the lock at `path`, a folder that is made when missing and stays.

    Args:
        path: the lock's folder; a lock's own, or one that holds the data which it guards.
        what: what is guarded, for the text of `Busy` ("the channel mac/spark").
        timeout: seconds to wait; None waits for ever, 0 tries once.

    Raises:
        Busy: somebody else still holds it; the text names the process where that is known.
        DiskFull, StoreError: the folder cannot be made or locked.
    """
    deadline = _deadline(timeout)
    while True:
        private_folder(path)
        try:
            held = _take(path, deadline)
        except FileNotFoundError:  # somebody removed the folder between the two calls
            continue
        break
    if held is None:
        raise _busy(path, what)
    try:
        _name_holder(path)
        yield
    finally:
        os.close(held)


@contextmanager
def lock_folder(path: str, *, what: str, timeout: float | None = None) -> Iterator[None]:
    """Hold the lock on a folder that must exist; like `locked`, but leaves no trace in it.

    It is the same lock as `locked(path)`.
    """
    try:
        held = _take(path, _deadline(timeout))
    except FileNotFoundError as error:
        raise store_error(error, "lock", path) from error
    if held is None:
        raise _busy(path, what)
    try:
        yield
    finally:
        os.close(held)


def is_locked(path: str) -> bool:
    """Tell whether somebody holds the lock at `path` now, without keeping it.

    A process that is stopped or hangs still holds its lock: this says "held", not "alive".
    """
    for name, flags in ((path, os.O_RDONLY | os.O_DIRECTORY), (os.path.join(path, HOLDER), os.O_RDONLY)):
        try:
            probe = os.open(name, flags)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise store_error(error, "look at the lock", path) from error
        try:
            fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError as error:
            if error.errno not in _FOLDER_NOT_LOCKABLE:
                raise store_error(error, "look at the lock", path) from error
        finally:
            os.close(probe)
    return False


def lock_holder(path: str) -> int | None:
    """Return the process id that the last holder of the lock wrote down, if such a process exists now.

    Information for people, never proof: ids are used again, and a holder need not have been able to write.
    """
    try:
        with open(os.path.join(path, HOLDER), "rb") as note:
            pid = int(note.read(20))
        if pid <= 0:  # to `kill`, that would mean a whole group
            return None
        os.kill(pid, 0)
    except PermissionError:
        return pid
    except (OSError, ValueError, OverflowError):
        return None
    return pid


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + max(timeout, _PROBE_GRACE)


def _take(path: str, deadline: float | None) -> int | None:
    """Return an open descriptor that holds the lock, or None when the deadline passed."""
    try:
        return _flock(path, os.O_RDONLY | os.O_DIRECTORY, deadline)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno not in _FOLDER_NOT_LOCKABLE:
            raise store_error(error, "lock", path) from error
    try:
        return _flock(os.path.join(path, HOLDER), os.O_RDWR | os.O_CREAT, deadline)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise store_error(error, "lock", path) from error


def _flock(path: str, flags: int, deadline: float | None) -> int | None:
    pause = _FIRST_PAUSE
    while True:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if deadline is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
            # What we locked may have been removed, or removed and made anew, while we waited for it.
            if _stands_at(descriptor, path):
                return descriptor
        except BlockingIOError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE)


def _stands_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _name_holder(path: str) -> None:
    try:
        note = os.open(
            os.path.join(path, HOLDER),
            os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o600,
        )
    except OSError:
        return  # a courtesy only: a full disk must not cost us the lock
    try:
        with suppress(OSError):
            mine = b"%d\n" % os.getpid()
            # Some file systems bring a file to disk that was emptied and written anew; who held it last need not.
            if os.read(note, 32) != mine:
                os.ftruncate(note, 0)
                os.lseek(note, 0, os.SEEK_SET)
                os.write(note, mine)
    finally:
        os.close(note)


def _busy(path: str, what: str) -> Busy:
    pid = lock_holder(path)
    if pid is None:
        return Busy(f"{what} is in use by another process (lock {path})", next_step="try again in a moment")
    return Busy(
        f"{what} is in use by process {pid} (lock {path})",
        next_step=f"try again in a moment, or see what it is with `ps -fp {pid}`",
        details={"pid": pid},
    )


# -------------------------------------------------------------------------------------------------- writing


def private_folder(path: str) -> None:
    """Make a folder and its missing parents, each with mode 0700 and on disk before this returns.

    A folder that exists is left as it is.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise StoreError(f"{path} is in the way: a folder was expected there") from None
        return
    except FileNotFoundError:
        parent = os.path.dirname(path)
        if not parent or parent == path:
            raise StoreError(f"cannot make the folder {path!r}") from None
        private_folder(parent)
        private_folder(path)
        return
    except OSError as error:
        if os.path.isdir(path):  # a read-only parent answers EROFS or EACCES even where the folder is there
            return
        raise store_error(error, "make the folder", path) from error
    fsync_folder(os.path.dirname(path) or ".")


def atomic_write(path: str, data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Replace the file at `path` by one that holds exactly `data`, or leave it as it was.

    The new file has `mode` (less the umask) from its first instant. A symbolic link at `path` is replaced,
    not followed. A kill in between leaves at most a `.<name>.<random>.tmp` beside it, see `sweep`.

    Args:
        path: the file; its folder must exist.
        data: the whole new content.
        mode: permission bits of the new file.
        durable: fsync the file and its folder. Without, a power cut can leave an older or an empty file.

    Raises:
        DiskFull: it did not fit.
        StoreError: any other refusal of the system.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}{_TEMPORARY}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except OSError as error:
        raise store_error(error, "write", path) from error
    try:
        try:
            write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # whatever keeps it from going, the first error is the one to tell
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise store_error(error, "write", path) from error
        raise
    if durable:
        fsync_folder(folder or ".")


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, in as many calls as it takes; raises the system's `OSError`."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def append_whole(descriptor: int, data: bytes, *, path: str) -> None:
    """Append `data` with one write(2), or take back what did not fit.

    The caller holds the lock of the file and has opened it with `O_APPEND`. Nothing is fsync'd.

    Args:
        descriptor: open for appending.
        data: what must be there whole or not at all.
        path: the file's name, for the error.

    Raises:
        DiskFull: not all of it fitted (space, quota or a limit on the size of files).
        StoreError: any other refusal; the text says if a part could not be taken back.
    """
    before = os.fstat(descriptor).st_size
    try:
        written = os.write(descriptor, data)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise DiskFull(f"no space left: {path} may not grow (limit on the size of files)") from error
        raise store_error(error, "append to", path) from error
    if written == len(data):
        return
    # An outsider that appends without our lock may stand behind our part: cutting would take its bytes as
    # well.
    if os.fstat(descriptor).st_size != before + written:
        raise StoreError(
            f"only {written} of {len(data)} bytes fitted into {path}, and another program wrote behind them;"
            f" an incomplete line stands at byte {before}"
        )
    try:
        os.ftruncate(descriptor, before)
    except OSError as error:
        raise StoreError(
            f"only {written} of {len(data)} bytes fitted into {path}, and they could not be taken back"
            f" ({error.strerror}); an incomplete line stands at byte {before}"
        ) from error
    raise DiskFull(
        f"no space left: {written} of {len(data)} bytes fitted into {path} and were taken back",
        next_step=f"free some space on the disk of {os.path.dirname(path)} and try again",
    )


def fsync_folder(path: str) -> None:
    """Make the names in a folder (new, renamed, removed) survive a power cut."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some filesystems cannot fsync a folder, and need not
                raise
        finally:
            os.close(descriptor)
    except OSError as error:
        raise store_error(error, "bring to disk the folder", path) from error


def read_bytes(path: str) -> bytes | None:
    """Return a file's content, or None when there is no such file.

    Raises:
        StoreError: it is there and cannot be read.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise store_error(error, "read", path) from error


def move_aside(path: str) -> str:
    """Rename a file or folder to `<path>.corrupt-<UTC time>` beside it and return the new name.

    Nothing is overwritten. The caller says it, once, and holds whatever lock keeps others from doing the
    same.
    """
    stamp = utc_now().translate({ord("-"): None, ord(":"): None})
    aside = f"{path}.corrupt-{stamp}"
    number = 1
    while os.path.lexists(aside):
        number += 1
        aside = f"{path}.corrupt-{stamp}-{number}"
    try:
        os.rename(path, aside)
    except OSError as error:
        raise store_error(error, "move aside", path) from error
    return aside


def sweep(folder: str, *, older_than: float = 3600.0) -> list[str]:
    """Remove what a kill inside `atomic_write` left in a folder, and return the names.

    Args:
        folder: looked at without its subfolders; may be missing.
        older_than: seconds; younger ones may still be written.
    """
    removed: list[str] = []
    limit = time.time() - older_than
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return removed
    for name in sorted(names):
        # Only our own form: a dot, the target's name, twelve hex digits.
        stem = name.removesuffix(_TEMPORARY)
        if name == stem or not name.startswith(".") or not _is_random(stem.rpartition(".")[2]):
            continue
        path = os.path.join(folder, name)
        try:
            if os.stat(path, follow_symlinks=False).st_mtime < limit:
                os.unlink(path)
                removed.append(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise store_error(error, "remove", path) from error
    return removed


def _is_random(text: str) -> bool:
    return len(text) == 12 and not text.strip("0123456789abcdef")


# ----------------------------------------------------------------------------------------------------- time


def utc_now() -> str:
    """Return this machine's wall clock as `2026-11-29T11:20:00.123Z`."""
    return utc_text(time.time())


def utc_text(seconds: float) -> str:
    """Return seconds since 1970 as UTC with milliseconds, rounded down: `2026-11-29T11:20:00.123Z`."""
    whole, milliseconds = divmod(int(seconds * 1000 // 1), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{milliseconds:03d}Z"
