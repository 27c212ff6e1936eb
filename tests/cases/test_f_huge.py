"""F17: a line of many megabytes, at the remote and in one's own clone."""

import os
import subprocess

from support.sizes import size
from support.team import incidents, path, read

CHANNEL = "mac/spark"
MEGABYTE = 1 << 20


def peak(machine, *args):
    """Run a command and return its exit status and its greatest memory in MB, with that of its children."""
    process = subprocess.Popen(
        [machine.program, *args],
        env=machine.environ(),
        cwd=machine.home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_maxrss / 1024


def write_huge(file, megabytes):
    with file.open("ab") as out:
        for _ in range(megabytes):
            out.write(b"x" * MEGABYTE)


def test_f17_a_huge_line_at_the_remote_costs_no_memory_and_stops_nobody(team):
    megabytes = size(40, 200, "megabytes of one line")
    team.mac.send("spark", "before")
    team.settle()
    _, baseline = peak(team.spark, "sync")
    vera = team.vandal()
    write_huge(vera.path / path(CHANNEL), megabytes)
    vera.commit()
    vera.push()
    status, used = peak(team.spark, "sync")
    assert status == 4
    assert used < baseline + 100, f"{used:.0f} MB, {baseline:.0f} MB before"
    assert read(team.spark, status=4) == ["before"]
    assert [one["count"] for one in incidents(team.spark, "SIZE") if one["subject"] == "segment"] == [1]
    # Its owner takes it out again, and goes on.
    team.mac.send("spark", "after")
    status, used = peak(team.mac, "sync")
    assert used < baseline + 100
    team.spark.wire("sync", check=False)
    assert read(team.spark, status=4) == ["after"]
    assert len(team.remote.show(path(CHANNEL))) < 10_000
    team.check(attacked=True)


def test_f17_a_huge_line_in_ones_own_file(team):
    megabytes = size(40, 200, "megabytes of one line in the clone")
    team.mac.send("spark", "before")
    team.settle()
    _, baseline = peak(team.mac, "sync")
    file = team.mac.segment(CHANNEL)
    write_huge(file, megabytes)
    with file.open("ab") as out:
        out.write(b"\n")
    team.mac.send("spark", "after")
    status, used = peak(team.mac, "sync")
    assert used < baseline + 100, f"{used:.0f} MB, {baseline:.0f} MB before"
    assert status == 0
    team.sync_and_check()
    assert read(team.spark) == ["before", "after"]
    assert file.stat().st_size < 10_000
    assert len(incidents(team.mac, "ADOPT_REFUSED")) == 1
