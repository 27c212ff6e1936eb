"""Faults put into single calls: every n-th write, fsync and rename of a send and of a cycle fails, or is the last.

`strace` makes a call fail or kills the process in it. The calls of git's children are counted by themselves, so that
"every third write" means the third of each. Afterwards nothing is special: the same commands, and the oracle.
"""

import re
import subprocess

import pytest

from support.sizes import FULL, size
from support.team import bodies, incidents, read

FAULTS = {
    "write": ("write,pwrite64", ["error=ENOSPC", "error=EIO", "signal=KILL"]),
    "fsync": ("fsync,fdatasync", ["error=EIO", "error=ENOSPC", "signal=KILL"]),
    "rename": ("rename,renameat,renameat2", ["error=ENOSPC", "signal=KILL"]),
}
FOLLOW = ["-f", "--seccomp-bpf"]
"""Stop at the calls that are asked for, instead of at every call of thirty processes."""


def traced(machine, inject, *args, follow):
    """Run a command under strace; return its status and how often the fault was put in."""
    log = machine.root / "strace.log"
    log.unlink(missing_ok=True)
    calls = inject.partition(":")[0]
    how = FOLLOW if follow else []
    done = subprocess.run(
        ["strace", *how, "-qq", "-o", log, "-e", f"trace={calls}", "-e", f"inject={inject}", machine.program, *args],
        capture_output=True,
        env=machine.environ(),
        cwd=machine.home,
        timeout=120,
    )
    text = log.read_text("utf-8", "replace")
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    inside = [file.read_text() for file in (machine.wire_home / "state").glob("error-*.txt")]
    assert not inside, f"{inject}: {inside}"
    return done, len(re.findall(r"INJECTED|killed by SIGKILL", text))


def count(machine, calls, *args, follow):
    """Return the greatest number of such calls that one process of a command makes."""
    log = machine.root / "strace.log"
    how = FOLLOW if follow else []
    subprocess.run(
        ["strace", *how, "-qq", "-o", log, "-e", f"trace={calls}", machine.program, *args],
        capture_output=True,
        env=machine.environ(),
        cwd=machine.home,
        timeout=120,
    )
    per_process: dict[str, int] = {}
    for line in log.read_text("utf-8", "replace").split("\n"):
        pid = line.split(" ", 1)[0] if follow else ""
        if re.search(r"\b(write|pwrite64|fsync|fdatasync|rename\w*)\(", line):
            per_process[pid] = per_process.get(pid, 0) + 1
    return max(per_process.values(), default=0)


def spread(most, wanted):
    """Return which of the calls 1 to `most` are tried: all in the full size, else some, first and last among them."""
    if FULL or most <= wanted:
        return range(1, most + 1)
    return sorted({1, most, *(1 + n * (most - 1) // (wanted - 1) for n in range(wanted))})


@pytest.mark.parametrize("call", FAULTS)
def test_any_call_of_a_send_may_fail_or_be_the_last(team, call):
    calls, faults = FAULTS[call]
    team.mac.send("spark", "first")
    most = count(team.mac, calls, "send", "spark", "counted", follow=False)
    team.mac.sent.append("mac/spark/2")
    points = size(3, 1000, f"injected {call} of a send")
    for fault in faults:
        for when in spread(most, points):
            done, injected = traced(
                team.mac, f"{calls}:{fault}:when={when}", "send", "spark", f"{fault} {when}", follow=False
            )
            assert injected, f"{call} {when} of {most}"
            if done.returncode == 0 and done.stdout:
                team.mac.sent.append(done.stdout.split()[0].decode())
            elif fault.startswith("error"):
                assert done.returncode != 0
    team.mac.send("spark", "last")
    team.sync_and_check()
    said = read(team.spark)
    assert (said[0], said[-1]) == ("first", "last")
    assert len(said) == len(set(said)), "nothing twice"
    assert len(said) >= len(team.mac.sent)


@pytest.mark.parametrize("follow", [False, True], ids=["wire", "wire and git"])
@pytest.mark.parametrize("call", FAULTS)
def test_any_call_of_a_cycle_may_fail_or_be_the_last(team, call, follow):
    """Each cycle has something to fetch, to verify, to publish and to show."""
    calls, faults = FAULTS[call]
    said, heard = [], []

    def work():
        said.append(f"out {len(said)}")
        team.mac.send("spark", said[-1])
        heard.append(f"in {len(heard)}")
        team.spark.send("mac", heard[-1])
        team.spark.wire("sync", check=False)

    work()
    most = count(team.mac, calls, "sync", follow=follow)
    assert most
    points = size(2, 1000, f"injected {call} of a cycle, {'with git' if follow else 'in wire itself'}")
    for fault in faults:
        for when in spread(most, points):
            work()
            done, _ = traced(team.mac, f"{calls}:{fault}:when={when}", "sync", follow=follow)
            # Whatever became of it: what is shown was accepted, and a plain cycle goes on from there.
            shown = bodies(team.mac.wire("tail", "--json", "--all", check=False))
            assert shown == heard[: len(shown)], f"{fault} {when}: {done}"
            team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert read(team.spark, status=None) == said
    assert read(team.mac, status=None) == heard
    for machine in team.machines:
        assert machine.json("verify", "--full")["problems"] == []
        assert [one for one in incidents(machine) if one["integrity"]] == [], "an accident is no attack"
    assert not [one for one in incidents(team.mac) if one["code"] in ("DISK_FULL", "UNKNOWN", "NETWORK")], "over"


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_coming_aboard_may_end_at_any_call_on_either_side(team, machines, call):
    """Both commands are killed, she who joins and he who invites, and given again: that is all there is to do."""
    calls, _ = FAULTS[call]

    def code_for(name):
        return team.mac.json("invite", name, "--no-wait")["code"]

    joins = count(machines("ann"), calls, "join", code_for("ann"), follow=False)
    approvals = count(team.mac, calls, "invite", "ann", follow=False)
    assert joins
    assert approvals
    points = size(3, 1000, f"{call} calls at which a joining ends")
    both = [("join", when) for when in spread(joins, points)] + [("invite", when) for when in spread(approvals, points)]
    for number, (whose, when) in enumerate(both):
        name = f"n{number}"
        code, machine = code_for(name), machines(name)
        if whose == "join":
            traced(machine, f"{calls}:signal=KILL:when={when}", "join", code, follow=False)
        machine.wire("join", code)
        if whose == "invite":
            traced(team.mac, f"{calls}:signal=KILL:when={when}", "invite", name, follow=False)
        team.mac.wire("invite", name, check=False)
        assert machine.json("join", code)["approved"], f"{whose} {when}"
        machine.send("mac", f"from {name}")
        team.machines.append(machine)
    team.settle()
    assert {f"from n{number}" for number in range(len(both))} <= set(read(team.mac))
    for machine in team.machines:
        assert [one for one in incidents(machine) if one["integrity"]] == [], "an accident is no attack"
