"""D1 to D4, D8, D9, D11: noticing what was written, whatever happens to the events."""

import contextlib
import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from support import gitcmd, oracle
from support.daemons import next_round, quiet, set_cadence
from support.sizes import size
from support.team import incidents, path, pin, replace_file, state, write
from support.waiting import eventually

CHANNEL = "mac/spark"
DEBUG = ("--log-level", "debug")
SELDOM = {"t0": 300, "t1": 300, "t2": 300, "t3": 300, "hot": "[300]"}
"""A cadence that never looks by itself during a test: what happens is somebody's doing."""


def pushed(team, seq):
    """Return whether the remote has mac's lines up to one."""
    return pin(team.mac).remote_seq.get(CHANNEL, 0) >= seq


def commits(team):
    return len(team.remote.commits())


@pytest.fixture
def mac(team):
    """A machine whose daemon waits, and looks at its own files only."""
    set_cadence(team.mac, **SELDOM)
    team.mac.start_daemon(*DEBUG)
    next_round(team.mac)
    quiet(team.mac, 0.5)
    return team.mac


def test_d1_without_events_the_clock_finds_it(team):
    set_cadence(team.mac, **SELDOM)
    team.mac.start_daemon(*DEBUG, env={"WIRE_WATCH": "off"})
    next_round(team.mac)
    team.mac.send("spark", "hello")
    eventually(lambda: pushed(team, 1), timeout=5)
    shown = team.mac.json("status")
    assert shown["watching"] == "polling"
    assert shown["event_age_s"] is None
    assert shown["rescan_age_s"] < 20
    team.mac.stop_daemon()
    team.sync_and_check()


@pytest.mark.parametrize("how", ["deleted", "away and back", "replaced", "checkout"])
def test_d2_a_watched_folder_is_replaced(team, mac, how):
    mac.send("spark", "first")
    eventually(lambda: pushed(team, 1))
    quiet(mac, 0.5)
    folder = mac.clone() / "_coordination" / "mac" / "spark"
    journal = mac.wire_home / "state/hub/journal/mac/spark"
    for one in (folder, journal):
        kept = one.with_name("kept")
        os.kill(mac.daemon.pid, signal.SIGSTOP)  # it would be quick to put another one there
        if how == "deleted" and one is folder:
            shutil.rmtree(one)
            one.mkdir()
        elif how == "away and back":
            one.rename(kept)
            kept.rename(one)
        elif how in ("replaced", "deleted"):
            shutil.copytree(one, kept)
            one.rename(mac.root / f"elsewhere-{one.parents[1].name}")
            kept.rename(one)
        elif one is folder:
            gitcmd.git(mac.clone(), "checkout", "-q", "--orphan", "elsewhere")
            gitcmd.git(mac.clone(), "rm", "-rqf", "--cached", ".")
            gitcmd.git(mac.clone(), "clean", "-qffdx")
            gitcmd.git(mac.clone(), "checkout", "-qf", "main")
        os.kill(mac.daemon.pid, signal.SIGCONT)
    mac.send("spark", "second")
    eventually(lambda: pushed(team, 2), timeout=20)
    quiet(mac, 0.5)
    mac.send("spark", "third")
    eventually(lambda: pushed(team, 3), timeout=5, what=lambda: mac.log()[-3000:])
    mac.stop_daemon()
    team.sync_and_check()


def test_d3_a_file_that_was_replaced_by_one_with_more(team, mac):
    """As an editor saves: the new inode has the old lines and one more, and is appended to afterwards."""
    mac.send("spark", "first")
    eventually(lambda: pushed(team, 1))
    file = mac.clone() / path(CHANNEL)
    (line,) = write(mac, CHANNEL, "by rename")
    replace_file(file, file.read_bytes() + line)
    eventually(lambda: pushed(team, 2), timeout=10, what=lambda: mac.log()[-3000:])
    quiet(mac, 0.3)
    (line,) = write(mac, CHANNEL, "appended")
    with file.open("ab") as appending:
        appending.write(line)
    eventually(lambda: pushed(team, 3), timeout=10, what=lambda: mac.log()[-3000:])
    assert incidents(mac) == []
    replace_file(file, b"something else\n")
    eventually(lambda: incidents(mac, "ADOPT_REFUSED"), timeout=10)
    mac.stop_daemon()
    team.sync_and_check()
    assert team.remote.show(path(CHANNEL)).count(b"\n") == 3


def test_d4_without_inotify_instances(team):
    """All instances of the user are taken: here in a namespace of the daemon's own, where there are none."""
    none = ("unshare", "--user", "--map-root-user", "sh", "-c")
    taken = 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"'
    team.mac.start_daemon(*DEBUG, prefix=(*none, taken, "sh"))
    team.mac.send("spark", "hello")
    eventually(lambda: pushed(team, 1), timeout=10)
    assert team.mac.json("status")["watching"] == "polling"
    assert watches(team.mac) == []
    (warning,) = [line for line in team.mac.log().split("\n") if " warning watch " in line]
    assert "fs.inotify.max_user_instances" in warning
    assert "fs.inotify.max_user_watches" in warning
    team.mac.stop_daemon()


def watches(machine):
    """Return the inodes that a machine's daemon has inotify watch, from the system's own list."""
    found = []
    for one in Path(f"/proc/{machine.daemon.pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += re.findall(r"^inotify wd:\S+ ino:(\S+)", one.read_text(), re.MULTILINE)
    return [int(inode, 16) for inode in found]


def test_d4_only_the_few_folders_that_matter_are_watched(team):
    """Not the tree: neither the channels of others nor what git keeps; and no more where there is more to see."""
    others = [team.mac.clone() / "_coordination" / "spark" / f"n{n}" for n in range(50)]
    for folder in others:
        folder.mkdir(parents=True)
    team.mac.send("spark", "hello")
    team.mac.start_daemon()
    eventually(lambda: pushed(team, 1), timeout=10)
    known = {folder.stat().st_ino: folder for folder in (team.folder, *team.folder.rglob("*")) if folder.is_dir()}
    watched = {known.get(inode) for inode in watches(team.mac)}
    assert {team.mac.clone() / "_coordination/mac/spark", state(team.mac) / "journal/mac/spark"} <= watched
    assert len(watched) <= 20, watched
    assert not watched & {*others, team.mac.clone() / "_coordination" / "spark", team.mac.clone() / ".git" / "objects"}
    team.mac.stop_daemon()


def test_d8_half_a_line_is_never_committed(team, mac):
    file = mac.clone() / path(CHANNEL)
    (line,) = write(mac, CHANNEL, "in two halves")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as appending:
        appending.write(line[:100])
        appending.flush()
        time.sleep(size(3, 10, "seconds between the halves of a line"))
        assert not pushed(team, 1)
        appending.write(line[100:])
    eventually(lambda: pushed(team, 1), timeout=10, what=lambda: mac.log()[-3000:])
    assert incidents(mac) == []
    mac.sent.append(f"{CHANNEL}/1")
    mac.stop_daemon()
    team.sync_and_check()
    for repository in (team.remote.path, mac.clone()):
        carried = [
            data
            for commit in gitcmd.line(repository, "rev-list", "--all", "--reflog").split()
            for data in oracle.segments(repository, commit).values()
        ]
        assert line in carried, "looked where it is"
        assert all(data.endswith(b"\n") for data in carried), "half a line in a commit"


def test_d9_what_happens_during_a_round_is_not_lost(team, mac):
    """The server's hook holds the push while a thousand lines are sent; the round after it takes them all."""
    count = size(100, 1000, "sends during one push")
    hold = team.folder / "hold"
    team.remote.install_pre_receive(f"cat >/dev/null; touch {hold}; while [ -e {hold} ]; do sleep 0.05; done")
    mac.send("spark", "first")
    eventually(hold.exists, what="a push that is held")
    before = commits(team)
    batch = "".join(f'{{"to":"spark","body":"line {n}"}}\n' for n in range(count - 2))
    mac.remember(mac.wire("send", "--batch", input=batch))
    for n in range(2):
        mac.send("spark", f"last {n}")
    team.remote.remove_pre_receive()
    hold.unlink()
    eventually(lambda: pushed(team, count + 1), timeout=15)
    assert commits(team) - before <= 3
    mac.stop_daemon()
    team.sync_and_check()


@pytest.mark.exclusive
def test_d11_a_stream_of_lines_makes_few_commits(team, mac):
    """A line every tenth of a second: each is out after five seconds and a push, and ten seconds make three commits."""
    count = size(60, 100, "sends, one every tenth of a second")
    before = commits(team)
    began = time.monotonic()
    for n in range(count):
        mac.spawn("send", "spark", f"line {n}")
        time.sleep(max(0.0, began + (n + 1) * 0.1 - time.monotonic()))
    eventually(lambda: pushed(team, count), timeout=8, what=lambda: mac.log()[-3000:])
    assert commits(team) - before <= 3, mac.log()[-3000:]
    mac.stop_daemon()
    team.sync_and_check()


def test_one_line_in_a_while_goes_at_once(team, mac):
    for n in range(3):
        began = time.monotonic()
        mac.send("spark", f"line {n}")
        eventually(lambda n=n: pushed(team, n + 1), timeout=5)
        assert time.monotonic() - began < 3
        time.sleep(0.5)
    assert mac.log().count(" pushed=1 ") == 3
