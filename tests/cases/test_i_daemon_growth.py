"""I5, I7: hundreds of rounds leave nothing behind; an idle daemon costs nothing worth measuring; a full disk passes."""

import os
import resource
import time

import pytest

from support import procs
from support.daemons import Inbox, next_round, quiet, rounds, set_cadence
from support.gitcmd import git
from support.sizes import size
from support.small_disk import on_small_disk
from support.team import incidents, read, state
from support.waiting import eventually

DEBUG = ("--log-level", "debug")


def cpu_seconds(pid):
    """Return the processor time that a process and its dead children have used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.timeout(1800)
def test_i5_many_rounds_leave_descriptors_children_and_memory_flat(team):
    count = size(60, 2000, "rounds of one daemon with 128 descriptors")
    set_cadence(team.mac, t0=0.05, t1=0.05, t2=0.05, t3=0.05, hot=[0.05], jitter=0)
    limited = ("prlimit", "--nofile=128:128")
    daemon = team.mac.start_daemon(*DEBUG, prefix=limited)
    next_round(team.mac, 20, timeout=60)
    for n in range(2):
        team.mac.send("spark", f"warm {n}")
    next_round(team.mac, 5, timeout=60)
    baseline = procs.vitals(daemon.pid)
    begin = rounds(team.mac)
    n = 0
    while rounds(team.mac) < begin + count:
        if rounds(team.mac) - begin > n * 20:
            team.mac.send("spark", f"line {n}")
            n += 1
        time.sleep(0.2)
    after = procs.settles(daemon.pid, baseline, spare=6)
    assert after.zombies == 0
    assert after.threads <= baseline.threads + 2
    assert after.rss_kib < baseline.rss_kib + 10 * 1024
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 128, "the limit was the daemon's alone"
    team.mac.stop_daemon()
    team.sync_and_check()


def everything(folder):
    """Return what stands in a folder: path, size, time and inode of every file."""
    return {
        str(file): (status.st_size, status.st_mtime_ns, status.st_ino)
        for file in sorted(folder.rglob("*"))
        if (status := file.lstat()) and not file.is_dir()
    }


def test_an_idle_daemon_costs_nothing_worth_measuring(team):
    """Quiet for a while, looking as often as it ever does when idle: every thirty seconds."""
    seconds = size(20, 60, "seconds of idleness that are measured")
    daemon = team.mac.start_daemon(*DEBUG)
    next_round(team.mac)
    quiet(team.mac, 2)
    clone, pinned = everything(team.mac.clone()), (state(team.mac) / "pin.json").stat()
    before, began = cpu_seconds(daemon.pid), time.monotonic()
    time.sleep(seconds)
    used = (cpu_seconds(daemon.pid) - before) / (time.monotonic() - began)
    vitals = procs.vitals(daemon.pid)
    assert used < 0.01, f"{used:.2%} of a core"
    assert vitals.rss_kib <= 80 * 1024
    assert everything(team.mac.clone()) == clone
    assert (state(team.mac) / "pin.json").stat() == pinned
    assert time.time() - team.mac.json("status")["rescan_age_s"] > 0


def test_looks_that_bring_nothing_write_nothing(team):
    set_cadence(team.mac, t0=0.2, t1=0.2, t2=0.2, t3=0.2, hot=[0.2])
    team.mac.start_daemon(*DEBUG)
    time.sleep(2.5)  # what changed just now is looked at once more, since clocks of file systems are coarse
    next_round(team.mac, 3)
    clone, pinned = everything(team.mac.clone()), (state(team.mac) / "pin.json").stat()
    next_round(team.mac, 10)
    after = everything(team.mac.clone())
    changed = {path for path in clone.keys() | after.keys() if clone.get(path) != after.get(path)}
    # At this pace nearly every look is also a beat, which writes a presence: two refs and a pack, and nothing else.
    own = ("/.git/refs/wire/beat", "/.git/refs/wire/heard", "/.git/objects/pack")
    assert [path for path in changed if not any(part in str(path) for part in own)] == []
    assert (state(team.mac) / "pin.json").stat() == pinned


def test_i1_the_clone_is_packed_when_there_are_many_objects(team):
    """Packs of single objects pile up until they are too many; then they are rolled into few, and all is there."""
    for n in range(60):
        blob = git(team.mac.clone(), "hash-object", "-w", "--stdin", input=b"%d" % n)
        git(team.mac.clone(), "pack-objects", "-q", ".git/objects/pack/pack", input=blob)
    packs = team.mac.clone() / ".git/objects/pack"
    assert len(list(packs.glob("*.pack"))) > 60
    team.mac.start_daemon()
    eventually(lambda: len(list(packs.glob("*.pack"))) < 20, what=lambda: team.mac.log())
    eventually(lambda: "packed wire=hub" in team.mac.log(), what=lambda: team.mac.log())
    team.mac.send("spark", "after")
    team.spark.start_daemon()
    Inbox(team.spark).gets(["after"])
    for machine in team.machines:
        machine.stop_daemon()
    git(team.mac.clone(), "fsck", "--strict")
    team.check()


FULL = """
import json, os, shutil, signal, subprocess, sys, time
WIRE, HUB, HOME = {wire!r}, {hub!r}, {home!r}
shutil.copytree(HOME, os.path.join(DISK, "wire"), symlinks=True)
environ = dict(os.environ, WIRE_HOME=os.path.join(DISK, "wire"))
def wire(*args):
    return subprocess.run([WIRE, *args], env=environ, capture_output=True, text=True, timeout=60)
def until(what, look):
    for _ in range(300):
        if look():
            return
        time.sleep(0.1)
    sys.exit(f"never: {{what}}; {{open(os.path.join(DISK, '..', 'log')).read()}}")
def status():
    return json.loads(wire("status", "--json").stdout)
daemon = subprocess.Popen(
    [WIRE, "daemon", "run", "--log-level", "debug"], env=environ, stderr=open(os.path.join(DISK, "..", "log"), "w")
)
try:
    until("running", lambda: status()["daemon"] == "running")
    assert wire("send", "spark", "before").returncode == 0
    until("pushed", lambda: status()["unpushed"] == 0)
    fill()
    # The last page of a file has room for some more.
    stored = 0
    while (sent := wire("send", "spark", "x" * 900)).returncode == 0:
        stored += 1
        assert stored < 20
    assert sent.returncode == 1 and "no space" in sent.stderr, sent
    time.sleep(5)
    assert daemon.poll() is None
    free()
    until("sent again", lambda: wire("send", "spark", "after").returncode == 0)
    until("pushed again", lambda: status()["unpushed"] == 0 and status()["healthy"])
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(20) == 0
finally:
    daemon.kill()
    daemon.wait()
clone = os.path.join(DISK, "wire/clones/hub")
subprocess.run(["git", "-C", clone, "fsck", "--strict"], check=True, capture_output=True)
print(stored)
"""


def test_i7_a_full_disk_passes(team, tmp_path):
    """The disk of state and clone is full for a while: the daemon lives, says so, and goes on by itself."""
    script = FULL.format(wire=str(team.mac.program), hub=team.remote.url, home=str(team.mac.wire_home))
    ran = on_small_disk(tmp_path, script, kib=6144)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    team.settle(team.spark)
    assert [one for one in incidents(team.spark) if one["integrity"]] == []
    shown = read(team.spark)
    assert shown == ["before", *["x" * 900] * int(ran.stdout), "after"]
