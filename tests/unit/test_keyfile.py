"""Private keys on disk: never wider than their owner, never half written, never shown."""

import errno
import json
import os
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.trusts import signer
from wire.errors import DiskFull, IdentityError
from wire.keys import keyfile
from wire.protocol.encoding import LINE_TYPE, Signer, b64, verify

WIRE = "0123456789abcdef" * 2
SEED = bytes(range(32))


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=["umask 000", "umask 022", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return keyfile.key_path(str(tmp_path / "share" / "keys"), wire=WIRE, kind="agent", name="mac")


def make(path: str, **change: Any) -> Signer:
    return keyfile.create(path, **{"name": "mac", "kind": "agent", "wire": WIRE, **change})


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def write(path: str, data: bytes) -> None:
    """Put bytes into a key file that exists, keeping its mode."""
    Path(path).write_bytes(data)


# Made


def test_a_key_is_read_as_it_was_made(path: str) -> None:
    made = make(path)
    found = keyfile.read(path)
    assert (found.kind, found.name, found.wire, found.signer.public) == ("agent", "mac", WIRE, made.public)
    assert verify(made.public, keyfile.read(path).signer.sign(LINE_TYPE, b"x"), LINE_TYPE, b"x")
    assert keyfile.load_for(path, name="mac", kind="agent", wire=WIRE).public == made.public


def test_the_form_is_fixed(path: str) -> None:
    public = make(path, seed=SEED).public
    assert Path(path).read_text() == (
        f'{{"v":1,"kind":"agent","name":"mac","wire":"{WIRE}","public":"{b64(public)}","secret":"{b64(SEED)}"}}\n'
    )
    assert path.endswith(f"/keys/{WIRE}/agent-mac.key")


def test_every_key_is_another(tmp_path: Path) -> None:
    assert len({make(str(tmp_path / f"{number}.key")).public for number in range(5)}) == 5


def test_a_root_key_may_be_older_than_its_wire(path: str) -> None:
    """The wire's id is the hash of a document that lists the root's public key."""
    assert make(path, kind="root", seed=SEED).public == Signer(SEED).public
    assert keyfile.read(path).kind == "root"


def test_modes_are_narrow_whatever_the_umask(umask: int, path: str) -> None:
    make(path)
    assert mode(path) == 0o600
    folder = Path(path).parent
    for _ in range(3):  # the wire's folder, `keys`, `share`: all were made for the key
        assert mode(folder) == 0o700
        folder = folder.parent


def test_there_is_no_wider_moment(umask: int, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is made exclusively and with its final mode; no later call narrows anything."""
    made: list[tuple[int, int]] = []
    folders: list[int] = []
    really_open, really_mkdir = os.open, os.mkdir

    def spy_open(name: str, flags: int, mode: int = 0o777, **rest: Any) -> int:
        if flags & os.O_CREAT:
            made.append((flags & os.O_EXCL, mode))
        return really_open(name, flags, mode, **rest)

    def spy_mkdir(name: str, mode: int = 0o777, **rest: Any) -> None:
        folders.append(mode)
        really_mkdir(name, mode, **rest)

    def never(*args: object, **rest: object) -> None:
        raise AssertionError("a mode was changed after the fact")

    monkeypatch.setattr(os, "open", spy_open)
    monkeypatch.setattr(os, "mkdir", spy_mkdir)
    for name in ("chmod", "fchmod", "rename", "replace"):
        monkeypatch.setattr(os, name, never)
    make(path)
    assert made == [(os.O_EXCL, 0o600)]
    assert folders == [0o700] * 3


def test_file_and_names_are_durable_before_it_returns(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    really_fsync, really_link = os.fsync, os.link

    def spy_fsync(descriptor: int) -> None:
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        really_fsync(descriptor)

    def spy_link(*args: Any, **rest: Any) -> None:
        events.append("link")
        really_link(*args, **rest)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "link", spy_link)
    make(path)
    # Three new folders, each named durably in its parent, then the key and its name.
    assert events == ["folder", "folder", "folder", "file", "link", "folder"]


def test_no_descriptor_is_left_open(path: str) -> None:
    before = os.listdir("/dev/fd")
    make(path)
    keyfile.read(path)
    os.chmod(path, 0o644)
    with pytest.raises(IdentityError):
        keyfile.read(path)
    assert len(os.listdir("/dev/fd")) == len(before)


@pytest.mark.parametrize(
    "change",
    [{"name": "all"}, {"name": "../mac"}, {"kind": "host"}, {"wire": WIRE[:-1]}, {"seed": bytes(31)}],
    ids=["reserved name", "path as name", "unknown kind", "short wire", "short seed"],
)
def test_what_no_reader_would_accept_is_not_made(change: dict[str, Any], path: str) -> None:
    with pytest.raises(ValueError):
        make(path, **change)
    assert not os.path.exists(os.path.dirname(path))


def _key(path: str) -> None:
    make(path)


def _empty(path: str) -> None:
    Path(path).touch(0o600)


def _dangling(path: str) -> None:
    os.symlink("nowhere", path)


def _folder(path: str) -> None:
    os.mkdir(path)


@pytest.mark.parametrize("stand_in", [_key, _empty, _dangling, _folder])
@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_nothing_is_written_over(
    stand_in: Callable[[str], None], links: bool, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.makedirs(os.path.dirname(path), 0o700)
    stand_in(path)
    before = os.lstat(path), os.path.isfile(path) and Path(path).read_bytes()
    if not links:
        _no_links(monkeypatch, errno.EPERM)
    with pytest.raises(IdentityError) as caught:
        make(path)
    assert caught.value.reason == "key-exists"
    assert path in caught.value.message
    assert before == (os.lstat(path), os.path.isfile(path) and Path(path).read_bytes())
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


def _no_links(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def link(*args: object, **rest: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", link)


def test_a_file_system_without_links_gets_its_key_too(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _no_links(monkeypatch, errno.EPERM)
    made = make(path)
    assert keyfile.read(path).signer.public == made.public
    assert mode(path) == 0o600
    assert os.listdir(os.path.dirname(path)) == ["agent-mac.key"]


def test_any_other_failure_of_the_link_leaves_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _no_links(monkeypatch, errno.EIO)
    with pytest.raises(IdentityError) as caught:
        make(path)
    assert caught.value.reason == "key-unwritable"
    assert os.listdir(os.path.dirname(path)) == []


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_full_disk_leaves_nothing(call: str, links: bool, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    os.makedirs(os.path.dirname(path), 0o700)
    if not links:
        _no_links(monkeypatch, errno.EOPNOTSUPP)
    with pytest.MonkeyPatch.context() as patch:
        if call == "fsync":
            patch.setattr(os, "fsync", _full)
        else:
            patch.setattr(keyfile, "open", lambda descriptor, *rest, **more: _FullFile(descriptor), raising=False)
        with pytest.raises(DiskFull) as caught:
            make(path)
    assert path in caught.value.message
    assert os.listdir(os.path.dirname(path)) == []


def _full(*args: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _FullFile:
    """A file that takes one byte and is full then."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.taken = False

    def __enter__(self) -> "_FullFile":
        return self

    def __exit__(self, *args: object) -> None:
        os.close(self.descriptor)

    def write(self, data: memoryview) -> int:
        if self.taken:
            _full()
        self.taken = True
        return 1


@pytest.mark.parametrize("below", ["file/mac.key", "file/keys/mac.key"])
def test_a_folder_that_cannot_be_made_says_so(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IdentityError, match="Not a directory") as caught:
        make(str(tmp_path / below))
    assert caught.value.reason == "key-unwritable"
    assert str(tmp_path / below) in caught.value.message


def test_a_folder_that_somebody_else_makes_meanwhile_is_used(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    really_mkdir = os.mkdir

    def race(name: str, mode: int) -> None:
        really_mkdir(name, mode)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)

    monkeypatch.setattr(os, "mkdir", race)
    made = make(path)
    assert keyfile.read(path).signer.public == made.public


def test_a_key_is_not_made_in_a_folder_that_others_can_enter(path: str) -> None:
    folder = os.path.dirname(path)
    os.makedirs(folder)
    os.chmod(folder, 0o755)
    with pytest.raises(IdentityError) as caught:
        make(path)
    assert (caught.value.reason, caught.value.next_step) == ("key-permissions", f"chmod 700 {folder}")
    assert os.listdir(folder) == []
    assert make(path, allow_loose=True).public == keyfile.read(path, allow_loose=True).signer.public


# Refused at use


@pytest.mark.parametrize("loose", [0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o777])
def test_a_loose_file_is_refused_with_the_command(loose: int, path: str) -> None:
    made = make(path)
    os.chmod(path, loose)
    with pytest.raises(IdentityError) as caught:
        keyfile.read(path)
    error = caught.value
    assert (error.reason, error.next_step, error.exit_status) == ("key-permissions", f"chmod 600 {path}", 5)
    assert f"{loose:04o}" in error.message
    assert keyfile.read(path, allow_loose=True).signer.public == made.public
    os.chmod(path, 0o600)
    assert keyfile.read(path).signer.public == made.public


@pytest.mark.parametrize("loose", [0o755, 0o750, 0o701, 0o777, 0o1777])
def test_a_loose_folder_is_refused_with_the_command(loose: int, path: str) -> None:
    made = make(path)
    os.chmod(os.path.dirname(path), loose)
    with pytest.raises(IdentityError) as caught:
        keyfile.read(path)
    assert (caught.value.reason, caught.value.next_step) == ("key-permissions", f"chmod 700 {os.path.dirname(path)}")
    assert keyfile.read(path, allow_loose=True).signer.public == made.public


def test_the_command_mends_a_path_with_a_space(tmp_path: Path) -> None:
    path = str(tmp_path / "my keys" / "mac's.key")
    made = make(path)
    os.chmod(path, 0o644)
    with pytest.raises(IdentityError) as caught:
        keyfile.read(path)
    assert caught.value.next_step is not None
    subprocess.run(["/bin/sh", "-c", caught.value.next_step], check=True)
    assert keyfile.read(path).signer.public == made.public


def test_a_relative_path_is_named_in_full(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(path)))))
    relative = os.path.relpath(path)
    make(relative)
    os.chmod(path, 0o644)
    with pytest.raises(IdentityError) as caught:
        keyfile.read(relative)
    assert caught.value.next_step == f"chmod 600 {path}"


def test_a_key_of_somebody_else_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(path)
    really = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        fields = list(really(descriptor))
        fields[stat.ST_UID] += 1
        return os.stat_result(fields)

    monkeypatch.setattr(os, "fstat", fstat)
    with pytest.raises(IdentityError) as caught:
        keyfile.read(path)
    assert caught.value.reason == "key-owner"
    assert path in caught.value.message
    assert keyfile.read(path, allow_loose=True).signer.public == made.public


def test_a_folder_of_somebody_else_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(path)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(IdentityError) as caught:
        keyfile.read(path)
    assert caught.value.reason == "key-owner"
    assert os.path.dirname(path) in caught.value.message


def test_a_linked_key_is_refused_and_a_linked_folder_is_not(path: str, tmp_path: Path) -> None:
    made = make(path)
    os.symlink(path, os.path.join(os.path.dirname(path), "link.key"))
    with pytest.raises(IdentityError) as caught:
        keyfile.read(os.path.join(os.path.dirname(path), "link.key"))
    assert caught.value.reason == "key-not-a-file"
    os.symlink(os.path.dirname(path), tmp_path / "linked")
    assert keyfile.read(str(tmp_path / "linked" / "agent-mac.key")).signer.public == made.public


def test_a_pipe_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mac.key", 0o600)
    with pytest.raises(IdentityError) as caught:
        keyfile.read(str(tmp_path / "mac.key"))
    assert caught.value.reason == "key-not-a-file"


def test_a_folder_in_the_place_of_a_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mac.key").mkdir(0o700)
    with pytest.raises(IdentityError) as caught:
        keyfile.read(str(tmp_path / "mac.key"))
    assert caught.value.reason == "key-not-a-file"


@pytest.mark.parametrize("missing", ["mac.key", "no/such/folder/mac.key", "file/mac.key"])
def test_a_missing_key_is_said_to_be_missing(missing: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IdentityError) as caught:
        keyfile.read(str(tmp_path / missing))
    assert caught.value.reason == "key-missing"
    assert str(tmp_path / missing) in caught.value.message


def test_a_key_that_cannot_be_read_says_why(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(path)

    def failing(*args: object, **rest: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(IdentityError, match="Permission denied") as caught:
        keyfile.read(path)
    assert caught.value.reason == "key-unreadable"


@pytest.mark.parametrize(
    "wanted",
    [{"name": "spark"}, {"kind": "root"}, {"wire": "f" * 32}],
    ids=["another name", "another kind", "another wire"],
)
def test_another_identity_is_refused(wanted: dict[str, str], path: str) -> None:
    make(path)
    right: Any = {"name": "mac", "kind": "agent", "wire": WIRE}
    with pytest.raises(IdentityError) as caught:
        keyfile.load_for(path, **{**right, **wanted})
    assert caught.value.reason == "key-mismatch"
    assert str(*wanted.values()) in caught.value.message


# Damaged

GOOD = {
    "v": 1,
    "kind": "agent",
    "name": "mac",
    "wire": WIRE,
    "public": b64(Signer(SEED).public),
    "secret": b64(SEED),
}
RAW = json.dumps(GOOD).encode()


def _with(**change: object) -> bytes:
    return json.dumps({**GOOD, **change}).encode()


CORRUPT = [
    ("empty", b""),
    ("NUL bytes", bytes(200)),
    ("torn", RAW[: len(RAW) // 2]),
    ("torn by one byte", RAW[:-1]),
    ("not UTF-8", RAW.replace(b"mac", b"m\xe4c")),
    ("a key twice", RAW.replace(b'"v"', b'"v": 1, "v"')),
    ("bare secret", b64(SEED).encode()),
    ("too long", RAW + b" " * 4_096),
    ("two of them", RAW + RAW),
    ("a newer format", _with(v=2)),
    ("a format that only equals 1", _with(v=True)),
    ("an unknown member", _with(extra=1)),
    ("no secret", json.dumps({name: value for name, value in GOOD.items() if name != "secret"}).encode()),
    ("an unknown kind", _with(kind="host")),
    ("a reserved name", _with(name="all")),
    ("a name that is a number", _with(name=1)),
    ("a short wire", _with(wire=WIRE[1:])),
    ("a secret of 31 bytes", _with(secret=b64(SEED[1:]))),
    ("a secret of 64 bytes", _with(secret=b64(SEED + SEED))),
    ("a secret that is no base64", _with(secret="é" * 44)),
    ("a secret that is null", _with(secret=None)),
    ("another key's public half", _with(public=b64(signer("eve").public))),
]


@pytest.mark.parametrize("data", [row[1] for row in CORRUPT], ids=[row[0] for row in CORRUPT])
def test_a_damaged_key_is_refused_and_left_as_it_is(data: bytes, path: str) -> None:
    make(path)
    write(path, data)
    with pytest.raises(IdentityError) as caught:
        keyfile.read(path)
    error = caught.value
    assert (error.reason, error.exit_status) == ("key-corrupt", 5)
    assert path in error.message
    assert error.next_step is not None
    _shows_nothing(error)
    assert Path(path).read_bytes() == data


def _shows_nothing(error: IdentityError) -> None:
    """Fail when an error, its chain or its traceback could show a piece of the secret."""
    shown = "".join(traceback.format_exception(error)) + json.dumps(error.as_json())
    assert error.__cause__ is None
    assert error.__context__ is None
    for secret in (b64(SEED), SEED.hex(), repr(SEED), str(list(SEED))):
        assert secret[:12] not in shown


@given(at=st.integers(0, len(RAW) - 1), flip=st.integers(1, 255))
def test_a_changed_byte_never_gives_another_key(at: int, flip: int) -> None:
    found = keyfile._parse(RAW[:at] + bytes([RAW[at] ^ flip]) + RAW[at + 1 :], "k", {})
    assert found is None or found[0].signer.public == Signer(SEED).public


@given(st.binary(max_size=400))
def test_junk_is_no_key(data: bytes) -> None:
    assert keyfile._parse(data, "k", {}) is None


# Not shown, and not dear


def test_nothing_that_is_printed_shows_the_secret(path: str) -> None:
    make(path, seed=SEED)
    found = keyfile.read(path)
    for shown in (repr(found), str(found), f"{found.signer}", repr(found.signer), repr([found])):
        for secret in (b64(SEED), SEED.hex(), repr(SEED)[2:-1]):
            assert secret not in shown


def test_loading_a_key_imports_nothing_dear() -> None:
    code = "import sys; before = set(sys.modules); import wire.keys.keyfile; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    dear = {"pathlib", "logging", "subprocess", "tempfile", "dataclasses", "inspect", "shlex", "sqlite3", "git"}
    assert not loaded & dear
