"""Too much of everything: whoever can push can push a lot. Nobody may stop, swell or drown in incidents because of it.

Each of these measures a real `wire sync`, with all its git children: how long it takes, and how much memory the largest
of them has.
"""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from support import hostile_host as hostile
from support.besieged import Siege, incidents, pin, shown, state
from support.hostile_host import ROOT
from support.machine import Machine
from support.moves_many import (
    commits_without_end,
    files_without_end,
    huge_files,
    huge_line,
    junk_requests,
    nothing_but_lines,
    segments_without_end,
)
from support.sizes import size
from wire.daemon import findings

CHANNEL = "mac/spark"
HUGE = size(24, 200, "megabytes of a huge blob")
KILOBYTES = size(256, 1024, "kilobytes of nothing but line ends")
FILES = size(800, 10_000, "junk files of each kind")
MEMORY = 100
"""Megabytes above an ordinary sync that a flood may cost."""
SECONDS = 60
"""How long one look may take, on a machine that has other things to do; idle, it is a tenth of that."""


# Linux counts what the parent had before `exec` as the child's, and a test process has a lot: so a small one starts it.
_MEASURE = """
import os, resource, sys, time
begin = time.monotonic()
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(process, 0)
print(os.waitstatus_to_exitcode(status), time.monotonic() - begin, usage.ru_maxrss / 1024)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    seconds: float
    megabytes: float


def _sync(machine: Machine) -> Cost:
    """Run `wire sync` and return what it cost."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", _MEASURE, str(machine.program), "sync"],
        env=machine.env,
        cwd=machine.home,
        capture_output=True,
        timeout=300,
    )
    status, seconds, megabytes = map(float, done.stdout.split()[-3:])
    assert status in (0, 4), done
    return Cost(seconds, megabytes)


def _bounded(siege: Siege, machine: Machine, plain: Cost, *, records_most: int = 16) -> None:
    cost = _sync(machine)
    assert cost.seconds < SECONDS, cost
    assert cost.megabytes < plain.megabytes + MEMORY, (plain, cost)
    records = list((state(machine) / "incidents").glob("*.json"))
    assert len(records) <= records_most
    assert sum(record.stat().st_size for record in records) < 200_000


def test_huge_line(siege: Siege) -> None:
    # 200 MB without a newline at the end of a segment. It is not read; what the owner says later is.
    siege.remote.compress_nothing()
    plain = _sync(siege.spark)
    huge_line(siege, HUGE)
    _bounded(siege, siege.spark, plain)
    siege.send("mac", "spark", "behind the flood")
    _bounded(siege, siege.mac, plain)
    siege.settle()
    assert f"{CHANNEL}/5" in shown(siege.spark)
    siege.check(everyone={f"SIZE {CHANNEL}", f"PREFIX {CHANNEL}"})


def test_huge_blobs_elsewhere(siege: Siege) -> None:
    siege.remote.compress_nothing()
    plain = _sync(siege.spark)
    huge_files(siege, HUGE)
    _bounded(siege, siege.spark, plain)
    siege.settle()
    siege.flows(("mac", "spark"), ("lee", "mac"))
    siege.check(everyone={"SIZE lee/mac", "TRUST wire", "SHAPE wire"}, mac={"TRUST wire", "SHAPE wire", "SIZE lee/mac"})


@pytest.mark.parametrize("unit", [b"\n", b"x\n", b'{"v":1,"wire":"\n'], ids=["newlines", "short", "beginnings"])
def test_segment_of_nothing_but_lines(siege: Siege, unit: bytes) -> None:
    # A megabyte of the shortest lines there are: a million pieces, each of which is foreign.
    plain = _sync(siege.spark)
    nothing_but_lines(siege, unit, KILOBYTES / 1024)
    _bounded(siege, siege.spark, plain)
    siege.send("mac", "spark", "behind the flood")
    siege.settle()
    siege.check(everyone={f"SIGNATURE {CHANNEL}", "SIGNATURE mac/lee"})


def test_segments_without_end(siege: Siege) -> None:
    # Files that would be segments, each with something else in it, behind the only one that is.
    plain = _sync(siege.spark)
    segments_without_end(siege, FILES)
    _bounded(siege, siege.spark, plain)
    siege.send("mac", "spark", "going on")
    siege.settle()
    siege.check(everyone={f"SIGNATURE {CHANNEL}"})


def test_channels_without_end(siege: Siege) -> None:
    # To thousands of names that nobody has, in the name of somebody whom all know; some are too large to be read.
    plain = _sync(siege.spark)
    large = hostile.File(b"x" * 1_500_000)
    junk = {hostile.segment(f"lee/n{n}"): large if n % 9 == 0 else b"junk %d\n" % n * 50 for n in range(FILES)}
    tip = siege.host.commit(junk)
    _bounded(siege, siege.spark, plain, records_most=2 * findings.BLANK_TOLD + 1)
    told = [one for one in incidents(siege.spark) if "lee/" in one]
    assert findings.BLANK_TOLD <= len(told) <= 2 * findings.BLANK_TOLD
    siege.sync(siege.mac)
    # Its owner puts its folders right, which others have to look at, too.
    siege.send("lee", "mac", "I was never there")
    siege.settle()
    assert siege.host.tip != tip
    assert not any("n1" in path for path in siege.remote.files())
    siege.check(**{name: incidents(machine) for name, machine in siege.machines.items()})


def test_junk_files(siege: Siege) -> None:
    # Ten thousand files outside, of illegal shape, of unknown names, of trust versions and of requests.
    plain = _sync(siege.spark)
    files_without_end(siege, FILES)
    _bounded(siege, siege.spark, plain)
    assert len(list((siege.spark.clone() / ROOT).rglob("*"))) < 1000, "a stranger's files fill the clone"
    siege.send("mac", "spark", "going on")
    siege.settle()
    siege.check(everyone={"SHAPE wire", "TRUST wire"})
    # And somebody can still come aboard.
    newcomer = siege.newcomer("zoe")
    assert pin(newcomer).accepted[CHANNEL].seq == 5


def test_commits_without_end(siege: Siege) -> None:
    # Between two looks a vandal rewrites a line again and again, and at last leaves everything as it was.
    plain = _sync(siege.spark)
    commits_without_end(siege, size(30, 3000, "commits between two looks"))
    _bounded(siege, siege.spark, plain)
    siege.settle()
    siege.check(everyone={f"PREFIX {CHANNEL}", f"SIGNATURE {CHANNEL}"})


def test_junk_requests(siege: Siege) -> None:
    # Requests of every wrong kind, and one honest one among them: that one is found, and can be approved.
    junk_requests(siege)
    asked = siege.mac.jsonl("trust", "requests")
    assert [one["name"] for one in asked] == ["vera"]
    siege.newcomer("zoe")
    siege.settle()
    siege.check(mac={"SHAPE wire"}, zoe={"SHAPE wire"})
