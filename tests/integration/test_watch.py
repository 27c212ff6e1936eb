"""Events as hints: they come when something is written, never for reading, and a dead watch is noticed."""

import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

from support.waiting import eventually
from wire.daemon import watch
from wire.daemon.watch import INOTIFY, POLLING, Watcher


class Bell:
    """Counts the events, and the warnings."""

    def __init__(self) -> None:
        self.rings = 0
        self.warnings: list[str] = []
        self._rung = threading.Event()

    def ring(self) -> None:
        self.rings += 1
        self._rung.set()

    def rang(self, within: float = 2.0) -> bool:
        """Return whether it rings within so many seconds, from now or since it was last asked."""
        found = self._rung.wait(within)
        time.sleep(0.05)  # the other events of the same act
        self._rung.clear()
        return found


@pytest.fixture
def bell():
    return Bell()


@pytest.fixture
def watcher(bell):
    one = Watcher(bell.ring, bell.warnings.append)
    yield one
    one.close()


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "channel"
    made.mkdir()
    return made


def test_what_changes_a_folder_rings(watcher, bell, folder):
    assert watcher.arm({str(folder): None}) == []
    assert watcher.mode == INOTIFY
    file = folder / "000001.jsonl"
    file.write_bytes(b"a\n")
    assert bell.rang()
    assert watcher.last_event == pytest.approx(time.time(), abs=5)
    with file.open("ab") as appending:
        appending.write(b"b\n")
        appending.flush()
        assert bell.rang()
    (folder / "new").write_bytes(b"c\n")
    assert bell.rang()
    os.rename(folder / "new", file)
    assert bell.rang()
    file.unlink()
    assert bell.rang()
    (folder / "below").mkdir()
    assert bell.rang()


def test_reading_does_not_ring(watcher, bell, folder):
    file = folder / "000001.jsonl"
    file.write_bytes(b"a\n")
    watcher.arm({str(folder): None})
    bell.rang(0.3)
    for _ in range(3):
        file.read_bytes()
        list(folder.iterdir())
        file.stat()
    assert not bell.rang(0.5)


def test_only_names_that_matter_ring(watcher, bell, folder):
    watcher.arm({str(folder): frozenset({"main"})})
    (folder / "other").write_bytes(b"a")
    assert not bell.rang(0.4)
    (folder / "main.lock").write_bytes(b"a")
    assert not bell.rang(0.4)
    os.rename(folder / "main.lock", folder / "main")
    assert bell.rang()


def test_a_folder_behind_a_link(watcher, bell, folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    watcher.arm({str(tmp_path / "link"): None})
    (folder / "a").write_bytes(b"a")
    assert bell.rang()


def test_a_folder_that_comes_later_is_noticed_through_its_parent(watcher, bell, folder):
    below = folder / "spark"
    wanted = {str(folder): None, str(below): None}
    watcher.arm(wanted)
    below.mkdir()
    assert bell.rang()
    assert watcher.arm(wanted) == []
    (below / "000001.jsonl").write_bytes(b"a\n")
    assert bell.rang()


@pytest.mark.parametrize("how", ["deleted", "away", "replaced"])
def test_another_inode_at_the_path_is_watched_anew(watcher, bell, folder, tmp_path, how):
    watcher.arm({str(folder): None})
    if how == "deleted":
        shutil.rmtree(folder)
        folder.mkdir()
    elif how == "away":
        folder.rename(tmp_path / "elsewhere")
        folder.mkdir()
    else:
        (tmp_path / "other").mkdir()
        folder.rename(tmp_path / "elsewhere")
        (tmp_path / "other").rename(folder)
    bell.rang(0.3)
    assert watcher.arm({str(folder): None}) == [str(folder)]
    (folder / "a").write_bytes(b"a")
    assert bell.rang()
    assert watcher.arm({str(folder): None}) == [], "and then it is well"


def test_away_and_back_is_the_same_folder(watcher, bell, folder, tmp_path):
    watcher.arm({str(folder): None})
    folder.rename(tmp_path / "elsewhere")
    assert watcher.arm({str(folder): None}) == [str(folder)]
    (tmp_path / "elsewhere").rename(folder)
    assert watcher.arm({str(folder): None}) == []
    (folder / "a").write_bytes(b"a")
    assert bell.rang()


def test_what_is_no_longer_wanted_is_no_longer_watched(watcher, bell, folder, tmp_path):
    watcher.arm({str(folder): None, str(tmp_path): frozenset()})
    watcher.arm({str(tmp_path): frozenset()})
    (folder / "a").write_bytes(b"a")
    assert not bell.rang(0.4)


def test_an_announced_write_does_not_ring_and_proves_life(watcher, bell, folder):
    watcher.arm({str(folder): None})
    for _ in range(3):
        watcher.expect(str(folder / "progress.json"))
        (folder / ".tmp").write_bytes(b"{}")
        bell.rang(0.3)
        os.rename(folder / ".tmp", folder / "progress.json")
        assert eventually(lambda: watcher._answered >= watcher._asked, timeout=2)
    assert watcher.arm({str(folder): None}) == []


def test_a_dead_observer_is_replaced(watcher, bell, folder, monkeypatch):
    """Its threads are alive, and no event comes: the descriptor that it reads from was closed behind its back."""
    monkeypatch.setattr(watch, "ANSWER_SECONDS", 0.5)
    watcher.arm({str(folder): None})
    observer = watcher._observer
    assert observer is not None
    observer._inotify_fd.read_events = lambda **_: (time.sleep(0.01), [])[1]
    (folder / "a").write_bytes(b"a")
    bell.rang(0.5)
    assert observer.is_alive()
    watcher.expect(str(folder / "progress.json"))
    (folder / "progress.json").write_bytes(b"{}")
    time.sleep(0.8)
    assert watcher.arm({str(folder): None}) == [str(folder)]
    assert watcher._observer is not observer
    bell.rang(0.3)
    (folder / "b").write_bytes(b"b")
    assert bell.rang()


def test_an_announced_write_that_failed_proves_nothing(watcher, bell, folder, monkeypatch):
    monkeypatch.setattr(watch, "ANSWER_SECONDS", 0.1)
    watcher.arm({str(folder): None})
    watcher.expect(str(folder / "progress.json"))
    watcher.expect_nothing()
    time.sleep(0.2)
    assert watcher.arm({str(folder): None}) == []


def test_a_dead_emitter_is_replaced(watcher, bell, folder, tmp_path):
    watcher.arm({str(folder): None, str(tmp_path): frozenset()})
    emitter = next(one for one in watcher._observer.emitters if one.watch.path == str(folder))
    emitter.stop()
    emitter.join(5)
    assert watcher._observer.is_alive()
    assert watcher.arm({str(folder): None, str(tmp_path): frozenset()}) == [str(folder)]
    (folder / "a").write_bytes(b"a")
    assert bell.rang()


def test_switched_off_it_only_polls(bell, folder):
    one = Watcher(bell.ring, bell.warnings.append, off=True)
    assert one.arm({str(folder): None}) == []
    assert one.mode == POLLING
    (folder / "a").write_bytes(b"a")
    assert not bell.rang(0.3)
    assert bell.warnings == []
    assert threading.active_count() < 20
    one.close()


EXHAUSTED = """
import sys
from wire.daemon import watch
def allow(number):
    with open("/proc/sys/user/max_inotify_instances", "w") as limit:
        limit.write(str(number))
allow(0)
warnings = []
one = watch.Watcher(lambda: None, warnings.append)
for _ in range(3):
    one.arm({sys.argv[1]: None})
print(one.mode, len(warnings), *warnings)
allow(9)
one.arm({sys.argv[1]: None})
print(one.mode)
one._retry_at = 0.0
one.arm({sys.argv[1]: None})
print(one.mode)
"""


def test_without_instances_it_polls_warns_once_and_recovers(folder):
    """All inotify instances are taken, for a moment: in a namespace of this test's own, where there are none."""
    own = ["unshare", "--user", "--map-root-user"]
    done = subprocess.run([*own, sys.executable, "-c", EXHAUSTED, folder], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.strip().split("\n")
    assert first.split()[:2] == [POLLING, "1"]
    assert "fs.inotify.max_user_instances" in first
    assert (second, third) == (POLLING, INOTIFY), "tried again after a while only"


def test_nothing_is_left_after_many_rounds(bell, folder):
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before, threads = descriptors(), threading.active_count()
    for _ in range(20):
        one = Watcher(bell.ring, bell.warnings.append)
        one.arm({str(folder): None})
        one.close()
    assert eventually(lambda: descriptors() <= before, what=lambda: f"{descriptors()} descriptors, {before} before")
    assert eventually(lambda: threading.active_count() <= threads)
