"""Locks and whole writes, against real processes, real kills and a disk that is really full."""

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.sizes import size
from support.small_disk import on_small_disk
from support.waiting import eventually
from wire.errors import Busy, DiskFull, StoreError
from wire.store import files

RACERS = size(12, 50, "processes racing for one lock")
ROUNDS = size(10, 20, "turns of each of them")
KILLS = size(15, 200, "kills inside atomic_write")


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=lambda mask: f"umask {mask:03o}")
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    old = os.umask(request.param)
    yield request.param
    os.umask(old)


def mode(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def run(script: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# Locks

HOLD = """
import sys
from wire.store.files import locked
with locked(sys.argv[1], what="the test"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock at tmp_path/lock."""
    process = run(HOLD, tmp_path / "lock")
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


COUNT = """
import os, sys
from wire.store.files import locked
lock, number, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
for _ in range(rounds):
    with locked(lock, what="the test", timeout=None if sys.argv[4] == "wait" else 60.0):
        value = int(open(number).read())
        with open(number, "w") as file:
            file.write(str(value + 1))
"""


@pytest.mark.parametrize("how", ["wait", "poll"])
def test_processes_exclude_each_other_while_somebody_deletes_the_files_of_the_lock(tmp_path: Path, how: str) -> None:
    number = tmp_path / "number"
    number.write_text("0")
    racers = [run(COUNT, tmp_path / "lock", number, ROUNDS, how) for _ in range(RACERS)]
    deleted = 0
    while any(racer.poll() is None for racer in racers):
        try:
            os.unlink(tmp_path / "lock" / files.HOLDER)
            deleted += 1
        except FileNotFoundError:
            pass
        time.sleep(0.0005)
    assert [racer.communicate()[1] for racer in racers] == [""] * RACERS
    assert int(number.read_text()) == RACERS * ROUNDS
    assert deleted


def test_a_lock_folder_that_was_removed_while_waiting_is_not_taken_for_the_lock(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    lock = tmp_path / "lock"
    waiting = run(HOLD, lock)
    time.sleep(0.3)
    lock.rename(tmp_path / "gone")
    holder.kill()
    assert waiting.stdout
    assert waiting.stdout.readline() == "held\n"
    assert files.is_locked(str(lock))
    assert not files.is_locked(str(tmp_path / "gone"))
    waiting.kill()
    waiting.communicate()


def test_a_lock_dies_with_its_holder(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    lock = str(tmp_path / "lock")
    with pytest.raises(Busy), files.locked(lock, what="x", timeout=0):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with files.locked(lock, what="x", timeout=0):
        assert files.is_locked(lock)


def test_a_stopped_holder_holds(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGSTOP)
    assert files.is_locked(str(tmp_path / "lock"))
    assert files.lock_holder(str(tmp_path / "lock")) == holder.pid


def test_busy_names_the_holder(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with (
        pytest.raises(Busy, match=f"the channel mac/spark is in use by process {holder.pid} ") as caught,
        files.locked(str(tmp_path / "lock"), what="the channel mac/spark", timeout=0.05),
    ):
        pass
    assert caught.value.reason == "busy"
    assert f"ps -fp {holder.pid}" in (caught.value.next_step or "")


@pytest.mark.parametrize("note", [b"", b"\0\0\0\0", b"no number", b"-1", b"999999999999999999", b"4194305"])
def test_a_note_that_names_nobody_is_not_believed(tmp_path: Path, holder: subprocess.Popen[str], note: bytes) -> None:
    (tmp_path / "lock" / files.HOLDER).write_bytes(note)
    assert files.lock_holder(str(tmp_path / "lock")) is None
    assert files.is_locked(str(tmp_path / "lock"))
    with pytest.raises(Busy, match="another process"), files.locked(str(tmp_path / "lock"), what="x", timeout=0):
        pass


def test_a_note_without_a_lock_keeps_nobody_out(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    (tmp_path / "lock" / files.HOLDER).write_text(f"{os.getpid()}\n")
    assert not files.is_locked(str(tmp_path / "lock"))
    with files.locked(str(tmp_path / "lock"), what="x", timeout=0):
        pass


def test_asking_whether_a_lock_is_held_turns_nobody_away(tmp_path: Path) -> None:
    lock = str(tmp_path / "lock")
    with files.locked(lock, what="x"):
        pass
    stop = threading.Event()
    asked = 0

    def ask() -> None:
        nonlocal asked
        while not stop.is_set():
            files.is_locked(lock)
            asked += 1

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        eventually(lambda: asked > 100)
        for _ in range(300):
            with files.locked(lock, what="x", timeout=0):
                pass
    finally:
        stop.set()
        asker.join()


def test_threads_exclude_each_other(tmp_path: Path) -> None:
    with files.locked(str(tmp_path / "lock"), what="x"):
        caught: list[BaseException] = []

        def take() -> None:
            try:
                with files.locked(str(tmp_path / "lock"), what="x", timeout=0.05):
                    pass
            except Busy as error:
                caught.append(error)

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
    assert len(caught) == 1


def test_is_locked_of_nothing(tmp_path: Path) -> None:
    assert not files.is_locked(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_lock_folder_is_the_same_lock_and_leaves_nothing(tmp_path: Path) -> None:
    with files.lock_folder(str(tmp_path), what="x"):
        assert files.is_locked(str(tmp_path))
        with pytest.raises(Busy), files.locked(str(tmp_path), what="x", timeout=0):
            pass
    assert os.listdir(tmp_path) == []
    with pytest.raises(StoreError, match="no-such"), files.lock_folder(str(tmp_path / "no-such"), what="x"):
        pass


def test_a_filesystem_that_cannot_lock_folders_locks_a_file_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def as_on_nfs(descriptor: int, operation: int) -> None:
        exclusive = operation & fcntl.LOCK_EX
        if exclusive and stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", as_on_nfs)
    lock = str(tmp_path / "lock")
    with files.locked(lock, what="x"):
        assert files.is_locked(lock)
        with pytest.raises(Busy), files.locked(lock, what="x", timeout=0):
            pass
    assert not files.is_locked(lock)


def test_a_child_program_does_not_inherit_the_lock(tmp_path: Path) -> None:
    with files.locked(str(tmp_path / "lock"), what="x"):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert not files.is_locked(str(tmp_path / "lock"))
    finally:
        child.kill()
        child.wait()


# Folders and modes


def test_private_folders_are_private_from_the_first_instant(tmp_path: Path, umask: int) -> None:
    files.private_folder(str(tmp_path / "a" / "b"))
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700
    (tmp_path / "a").chmod(0o755)
    files.private_folder(str(tmp_path / "a"))
    assert mode(tmp_path / "a") == 0o755


def test_a_file_in_the_way_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(StoreError, match="in the way"):
        files.private_folder(str(tmp_path / "a"))
    with pytest.raises(StoreError, match="cannot make the folder"):
        files.private_folder(str(tmp_path / "a" / "b"))


def test_what_is_written_is_private_also_before_it_is_in_place(
    tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    real = os.rename

    def look(source: str, target: str) -> None:
        modes.append(mode(source))
        real(source, target)

    monkeypatch.setattr(os, "rename", look)
    files.atomic_write(str(tmp_path / "f"), b"x")
    assert modes == [0o600]
    assert mode(tmp_path / "f") == 0o600
    with files.locked(str(tmp_path / "lock"), what="x"):
        assert mode(tmp_path / "lock") == 0o700
        assert mode(tmp_path / "lock" / files.HOLDER) == 0o600


# Whole writes


def test_atomic_write_replaces_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"old")
    (tmp_path / "f").symlink_to("elsewhere")
    files.atomic_write(str(tmp_path / "f"), b"new")
    assert (tmp_path / "elsewhere").read_bytes() == b"old"
    assert (tmp_path / "f").read_bytes() == b"new"
    assert not (tmp_path / "f").is_symlink()


def test_atomic_write_into_a_missing_folder_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no-such/f"):
        files.atomic_write(str(tmp_path / "no-such" / "f"), b"x")


REPLACE = """
import sys
from wire.store.files import atomic_write
print("ready", flush=True)
turn = 0
while True:
    turn += 1
    atomic_write(sys.argv[1], b"%d\\n" % (turn % 10) * 50_000)
"""


def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "f"
    target.write_bytes(b"0\n" * 50_000)
    for turn in range(KILLS):
        process = run(REPLACE, target)
        assert process.stdout
        process.stdout.readline()
        time.sleep(0.001 * (turn % 17))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        found = target.read_bytes()
        assert len(found) == 100_000
        assert set(found) == {ord("\n"), found[0]}
    left = [name for name in os.listdir(tmp_path) if name != "f"]
    assert files.sweep(str(tmp_path)) == []
    assert files.sweep(str(tmp_path), older_than=-1) == sorted(str(tmp_path / name) for name in left)
    assert os.listdir(tmp_path) == ["f"]


def test_sweep_takes_only_its_own(tmp_path: Path) -> None:
    names = ["f.tmp", ".f.tmp", ".f.0123456789ab.tmp", ".f.0123456789aB.tmp", ".f.0123456789ab", ".pin.json.tmp"]
    for name in names:
        (tmp_path / name).write_text("")
    assert files.sweep(str(tmp_path), older_than=-1) == [str(tmp_path / ".f.0123456789ab.tmp")]
    assert files.sweep(str(tmp_path / "none")) == []


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    ran = on_small_disk(
        tmp_path,
        """
from wire.errors import DiskFull
from wire.store.files import atomic_write, append_whole, locked

target = os.path.join(DISK, "f")
atomic_write(target, b"old")
with locked(os.path.join(DISK, "lock"), what="x"):
    pass
fill()
try:
    atomic_write(target, bytes(10_000))
except DiskFull as error:
    assert "no space left" in error.message and target in error.message, error
    assert error.reason == "disk-full" and error.exit_status == 1
else:
    sys.exit("no error")
assert open(target, "rb").read() == b"old"
assert sorted(os.listdir(DISK)) == ["f", "filling", "lock"], os.listdir(DISK)

# A lock needs no space once it was there.
with locked(os.path.join(DISK, "lock"), what="x", timeout=0):
    pass

free()
atomic_write(target, b"new")
assert open(target, "rb").read() == b"new"
""",
    )
    assert ran.returncode == 0, ran.stderr


def test_what_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    ran = on_small_disk(
        tmp_path,
        """
from wire.errors import DiskFull
from wire.store.files import append_whole

path = os.path.join(DISK, "log")
log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
append_whole(log, b"a" * 3000 + b"\\n", path=path)
fill()
for turn in range(3):
    try:
        # The page that the first line began has room for some of it.
        append_whole(log, b"b" * 3000 + b"\\n", path=path)
    except DiskFull as error:
        assert "no space left" in error.message, error
        assert "1095 of 3001 bytes" in error.message, error
    else:
        sys.exit("no error")
    assert os.path.getsize(path) == 3001
free()
append_whole(log, b"c" * 3000 + b"\\n", path=path)
assert open(path, "rb").read() == b"a" * 3000 + b"\\n" + b"c" * 3000 + b"\\n"
""",
    )
    assert ran.returncode == 0, ran.stderr


def test_a_limit_on_the_size_of_files_is_no_space(tmp_path: Path) -> None:
    script = """
import os, resource, sys
from wire.errors import DiskFull
from wire.store.files import append_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
append_whole(log, bytes(900), path=sys.argv[1])
for length in (200, 100):
    try:
        append_whole(log, bytes(length), path=sys.argv[1])
    except DiskFull as error:
        print(error.message)
append_whole(log, bytes(100), path=sys.argv[1])
"""
    process = run(script, tmp_path / "log")
    out, err = process.communicate()
    assert out.count("no space left") == 1
    assert "may not grow" in err
    assert (tmp_path / "log").stat().st_size == 1000


def test_bytes_of_an_outsider_behind_a_part_are_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    log = os.open(path, os.O_WRONLY | os.O_APPEND)
    real = os.write

    def short(descriptor: int, data: bytes) -> int:
        written = real(descriptor, data[:3])
        monkeypatch.undo()
        with path.open("ab", buffering=0) as outsider:
            outsider.write(b"outsider\n")
        return written

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(StoreError, match="incomplete line stands at byte 4") as caught:
        files.append_whole(log, b"two two\n", path=str(path))
    os.close(log)
    assert not isinstance(caught.value, DiskFull)
    assert path.read_bytes() == b"one\ntwooutsider\n"


def test_write_all_goes_on_after_a_short_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    files.atomic_write(str(tmp_path / "f"), b"0123456789")
    assert (tmp_path / "f").read_bytes() == b"0123456789"


# Reading, moving aside, time


def test_read_bytes(tmp_path: Path) -> None:
    assert files.read_bytes(str(tmp_path / "none")) is None
    (tmp_path / "f").write_bytes(b"\0x")
    assert files.read_bytes(str(tmp_path / "f")) == b"\0x"
    with pytest.raises(StoreError, match="cannot read"):
        files.read_bytes(str(tmp_path))


def test_moving_aside_never_overwrites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "utc_now", lambda: "2026-11-29T11:20:00.123Z")
    for turn in range(3):
        (tmp_path / "f").write_text(str(turn))
        files.move_aside(str(tmp_path / "f"))
    stamp = "f.corrupt-20261129T112000.123Z"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        stamp: "0",
        f"{stamp}-2": "1",
        f"{stamp}-3": "2",
    }
    with pytest.raises(StoreError, match="move aside"):
        files.move_aside(str(tmp_path / "f"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (0.9996, "1970-01-01T00:00:00.999Z"),
        (-0.5, "1969-12-31T23:59:59.500Z"),
        (1795951200.123, "2026-11-29T11:20:00.123Z"),
        (4070908800, "2099-01-01T00:00:00.000Z"),
    ],
)
def test_utc_text(seconds: float, text: str) -> None:
    assert files.utc_text(seconds) == text


def test_utc_now_ignores_the_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 0.25)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert files.utc_now() == "1970-01-01T00:00:00.250Z"
    finally:
        monkeypatch.undo()
        time.tzset()
