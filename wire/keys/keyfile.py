"""Private keys on this machine (PROTOCOL.md, section "Keys").

A key file is one JSON object, readable by its owner alone, in a folder that only its owner can enter, outside of every
clone:

    {"v":1,"kind":"agent","name":"mac","wire":"<32 hex>","public":"<44 base64>","secret":"<44 base64>"}

or, with a passphrase, the members of `locked.MEMBERS` in place of the last. Such a key is loaded without it, and opened
when it signs.

    signer = create(path, name="mac", kind="agent", wire=wire)
    signer = load_for(path, name="mac", kind="agent", wire=wire)

Rules that it keeps:
- there is no moment at which a file or folder of ours is wider than 0600 or 0700, whatever the umask, and none at
  which half a key stands at its path: the file is made under another name and linked into place;
- an existing file is never written over;
- a key that others can read is refused, with the command that mends it;
- no message, representation or chained exception holds what the file holds.

The `reason` of an `IdentityError` is one of `key-missing`, `key-exists`, `key-permissions`, `key-owner`,
`key-not-a-file`, `key-corrupt`, `key-mismatch`, `key-unreadable`, `key-unwritable`; of a key that is to sign also
`key-locked` and `passphrase-wrong`.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Mapping
from typing import Any, NamedTuple

from wire.errors import DiskFull, IdentityError, WireError
from wire.protocol import strictjson
from wire.protocol.encoding import PUBLIC_BYTES, SEED_BYTES, Signer, b64, new_seed, unb64, valid_public
from wire.protocol.names import valid_name

AGENT = "agent"
ROOT = "root"
KINDS = (AGENT, ROOT)

_KEYFILE_MAX = 4_096
_COMMON = ("v", "kind", "name", "wire", "public")
_MEMBERS = (*_COMMON, "secret")
_WIRE = re.compile(r"[0-9a-f]{32}", re.ASCII)
_OTHERS = 0o077
# Where a hard link cannot be made (FAT, some network and FUSE file systems), the file is made in its place at once.
_NO_LINKS = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class KeyFile(NamedTuple):
    """What a key file holds; its representation shows no secret, because `Signer`'s does not."""

    kind: str
    name: str
    wire: str
    signer: Signer


def key_path(keys_dir: str, *, wire: str, kind: str, name: str) -> str:
    """Return where a machine keeps a key: `<keys folder>/<wire id>/<kind>-<name>.key`."""
    return os.path.join(keys_dir, wire, f"{kind}-{name}.key")


def create(
    path: str,
    *,
    name: str,
    kind: str,
    wire: str,
    seed: bytes | None = None,
    passphrase: bytes | None = None,
    allow_loose: bool = False,
) -> Signer:
    """Make a key and its file, durable when this returns.

    Args:
        path: where; missing folders are made with mode 0700.
        name: whose key it is.
        kind: `agent` or `root`.
        wire: the wire's id, 32 hex digits.
        seed: 32 bytes to make the key from, where the key had to exist before the wire's id did; else fresh ones.
        passphrase: what is to open it, None for nothing.
        allow_loose: accept a folder that others can enter, for file systems that keep no modes.

    Raises:
        IdentityError: see the module's text; nothing was left behind.
        DiskFull: the file did not fit; nothing was left behind.
        ValueError: name, kind, wire or seed are not of their form.
    """
    if not valid_name(name) or kind not in KINDS or _WIRE.fullmatch(wire) is None:
        raise ValueError(f"no key can be made for the {kind!r} {name!r} on wire {wire!r}")
    secret = new_seed() if seed is None else seed
    signer = Signer(secret)
    data = _written(KeyFile(kind, name, wire, signer), secret, passphrase)
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    try:
        _make_folder(folder)
        _check_folder(folder, allow_loose)
        _write_new(path, data)
        _sync_folder(folder)
    except FileExistsError:
        raise IdentityError(
            f"{path} exists already; a key is never written over", reason="key-exists", details={"path": path}
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from error
    return signer


def keep_copy(path: str, to: str) -> None:
    """Let a key file stand under a second name as well, durably; one that is there already holds the same key.

    Raises:
        IdentityError: it cannot be written (`key-unwritable`).
        DiskFull: it did not fit.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(_KEYFILE_MAX + 1)
        with contextlib.suppress(FileExistsError):
            _write_new(to, data)
        _sync_folder(os.path.dirname(to))
    except OSError as error:
        raise _unwritable(to, error) from error


def move(path: str, to: str) -> None:
    """Let a key file take the place of another, in one step and durably; raises as `keep_copy`."""
    try:
        os.rename(path, to)
        _sync_folder(os.path.dirname(to))
    except OSError as error:
        raise _unwritable(to, error) from error


def relock(path: str, old: bytes | None, new: bytes | None, *, allow_loose: bool = False) -> None:
    """Put a key file in the place of one under another passphrase, in one step and durably; no copy is left.

    Args:
        old: what opens it now, None where nothing has to.
        new: what is to open it, None for nothing.

    Raises:
        IdentityError: `passphrase-wrong`, and see `read`; the file is as it was.
        DiskFull: it did not fit; the file is as it was.
    """
    found, members = _read(path, allow_loose)
    if found.signer.locked:
        from wire.keys import locked

        sealed = locked.parse(members)
        seed = sealed.open(old) if sealed is not None and old is not None else None
    else:
        seed = unb64(members["secret"], SEED_BYTES)
    if seed is None or Signer(seed).public != found.signer.public:
        raise IdentityError(
            f"{path} opens by another passphrase; it was left as it is",
            reason="passphrase-wrong",
            details={"path": path},
        )
    folder, base = os.path.split(os.path.abspath(path))
    made = os.path.join(folder, f".{base}.{os.urandom(8).hex()}.new")
    try:
        _write(made, _written(found, seed, new))
        try:
            os.rename(made, path)
        except BaseException:
            os.unlink(made)
            raise
        _sync_folder(folder)
    except OSError as error:
        raise _unwritable(path, error) from error


def load_for(
    path: str, *, name: str, kind: str, wire: str, allow_loose: bool = False, environ: Mapping[str, str] | None = None
) -> Signer:
    """Return the key of a file that must be this name's, of this kind, on this wire.

    Raises:
        IdentityError: `key-mismatch`, and see `read`.
    """
    try:
        found = read(path, allow_loose=allow_loose, environ=environ)
    except IdentityError as error:
        if error.reason == "key-missing":
            error.next_step = (
                "this needs a root key of the wire: run it on a machine that holds one"
                if kind == "root"
                else f"put {os.path.basename(path)} back from a copy; where there is none the key is lost, and who"
                f" holds a root key runs: wire trust revoke {name} --reason lost"
            )
        raise
    if (found.kind, found.name, found.wire) != (kind, name, wire):
        raise IdentityError(
            f"{path} holds the {found.kind} key of {found.name!r} on wire {found.wire}; "
            f"expected the {kind} key of {name!r} on wire {wire}",
            reason="key-mismatch",
            details={"path": path},
        )
    return found.signer


def read(path: str, *, allow_loose: bool = False, environ: Mapping[str, str] | None = None) -> KeyFile:
    """Return what a key file holds, after making sure that nobody else can read it.

    Args:
        path: the file; it may not be a symbolic link, its folder may.
        allow_loose: accept any mode and owner of the file and its folder. For file systems that keep no modes; the
            operator answers for who can read it.
        environ: says where a passphrase is looked for when the key signs; the process's own where None.

    Raises:
        IdentityError: see the module's text.
    """
    return _read(path, allow_loose, environ)[0]


def _read(path: str, allow_loose: bool, environ: Mapping[str, str] | None = None) -> tuple[KeyFile, Mapping[str, Any]]:
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    try:
        _check_folder(folder, allow_loose)
        # Judged on the open file, so that it cannot be exchanged in between; O_NONBLOCK, so that a pipe cannot hang us.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _not_a_file(path)
            _check_access(status, path, 0o600, allow_loose)
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(_KEYFILE_MAX + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(path, error) from error
    found = _parse(data, path, os.environ if environ is None else environ)
    if found is None:
        raise IdentityError(
            f"{path} ({len(data)} bytes) does not hold a private key of wire; expected one JSON object with "
            f"{', '.join(_MEMBERS)}",
            reason="key-corrupt",
            next_step=f"put {_quoted(path)} back from a backup; without one the key is lost and must be replaced",
            details={"path": path},
        )
    return found


def _written(about: KeyFile, seed: bytes, passphrase: bytes | None) -> bytes:
    members: dict[str, Any] = dict(
        zip(_COMMON, (1, about.kind, about.name, about.wire, b64(about.signer.public)), strict=True)
    )
    if passphrase is None:
        members["secret"] = b64(seed)
    else:
        from wire.keys import locked

        members |= locked.close(seed, passphrase)
    return strictjson.dumps(members) + b"\n"


def _parse(data: bytes, path: str, environ: Mapping[str, str]) -> tuple[KeyFile, Mapping[str, Any]] | None:
    """Return what the bytes hold, or None: no error leaves here, since one could carry a piece of the secret."""
    try:
        members = strictjson.loads(data if len(data) <= _KEYFILE_MAX else b"", floats_below=None)
        if not set(members) >= set(_COMMON) or type(members["v"]) is not int or members["v"] != 1:
            return None
        kind, name, wire, public = (members[member] for member in _COMMON[1:])
        if not all(isinstance(value, str) for value in (kind, name, wire, public)):
            return None
        if kind not in KINDS or not valid_name(name) or _WIRE.fullmatch(wire) is None:
            return None
        signer = _signer(members, unb64(public, PUBLIC_BYTES), kind, name, path, environ)
    except ValueError:
        return None
    return (KeyFile(kind, name, wire, signer), members) if signer is not None else None


def _signer(
    members: Mapping[str, Any], public: bytes, kind: str, name: str, path: str, environ: Mapping[str, str]
) -> Signer | None:
    if set(members) == set(_MEMBERS):
        secret = members["secret"]
        signer = Signer(unb64(secret, SEED_BYTES)) if isinstance(secret, str) else None
        return signer if signer is not None and signer.public == public else None
    from wire.keys import locked

    sealed = locked.parse(members) if set(members) == {*_COMMON, *locked.MEMBERS} else None
    if sealed is None or not valid_public(public):
        return None
    return locked.LockedSigner(public, sealed, kind=kind, name=name, path=path, environ=environ)


def _check_folder(folder: str, allow_loose: bool) -> None:
    # With a slash at its end, which only a folder may have.
    _check_access(os.stat(os.path.join(folder, "")), folder, 0o700, allow_loose)


def _check_access(status: os.stat_result, path: str, mode: int, allow_loose: bool) -> None:
    """Refuse what others can read, write or exchange.

    `allow_loose` covers the owner too: a file system that keeps no modes keeps no owners either.
    """
    if allow_loose:
        return
    if status.st_mode & _OTHERS:
        command = f"chmod {mode:o} {_quoted(path)}"
        raise IdentityError(
            f"{path} has mode {stat.S_IMODE(status.st_mode):04o}, so that others on this machine can get at the "
            f"private key; expected {mode:04o}",
            reason="key-permissions",
            next_step=command,
            details={"path": path, "command": command},
        )
    if status.st_uid != os.geteuid():
        raise IdentityError(
            f"{path} belongs to user {status.st_uid}, and this is user {os.geteuid()}; a key belongs to who uses it",
            reason="key-owner",
            details={"path": path},
        )


def _unwritable(path: str, error: OSError) -> WireError:
    if error.errno in _FULL:
        return DiskFull(f"no room for the key file {path}: {error.strerror}")
    return IdentityError(
        f"the key file {path} cannot be written: {error.strerror}", reason="key-unwritable", details={"path": path}
    )


def _unreadable(path: str, error: OSError) -> IdentityError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return IdentityError(f"no key at {path}", reason="key-missing", details={"path": path})
    if error.errno == errno.ELOOP:
        return _not_a_file(path)
    return IdentityError(
        f"the key file {path} cannot be read: {error.strerror}", reason="key-unreadable", details={"path": path}
    )


def _not_a_file(path: str) -> IdentityError:
    return IdentityError(
        f"{path} is a symbolic link or no regular file; a key file is one, and only its folder may be a link",
        reason="key-not-a-file",
        details={"path": path},
    )


def _make_folder(folder: str) -> None:
    """Make the folder and its missing parents, each 0700 from its first instant, and make their names durable."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    _make_folder(parent)
    # Somebody else may make it meanwhile; and if it is no folder, the check of its access says so.
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    _sync_folder(parent)


def _write_new(path: str, data: bytes) -> None:
    """Put a whole new file at `path`, or leave nothing behind.

    Raises:
        FileExistsError: something stands at `path`, be it a dangling link.
    """
    folder, name = os.path.split(path)
    made = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.new")
    _write(made, data)
    try:
        os.link(made, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write(path, data)
    finally:
        os.unlink(made)


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(descriptor)
    except BaseException:
        os.unlink(path)
        raise


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _quoted(path: str) -> str:
    """Return a path as a shell takes it."""
    import shlex  # only on the way to an error

    return shlex.quote(path)
