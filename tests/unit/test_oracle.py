"""The oracle sees every fault that it is there for: each is planted, and must be the only one found."""

import subprocess
import sys
from pathlib import Path

import pytest

from support import gitcmd, oracle, procs
from support.machine import Machine
from support.remote import BareRemote, VandalClone

SEGMENT = "_coordination/mac/spark/000001.jsonl"


def line(seq: int, *, sender: str = "mac", to: str = "spark", body: str = "x") -> bytes:
    """Return what the oracle takes for a message; it asks for no signature."""
    fixed = f'{{"v":1,"wire":"{"0" * 32}","from":"{sender}","to":"{to}","seq":{seq},"body":"{body}"}}\n'
    return fixed.encode()


class Wire:
    """Two machines in sync over a remote with three lines in two commits, made with git alone."""

    def __init__(self, folder: Path) -> None:
        self.remote = BareRemote(folder / "hub.git")
        self.machines = []
        self.author = self.remote.clone_as_vandal(folder / "author")
        self.author.write(SEGMENT, line(1) + line(2))
        self.author.commit("mac: 2 lines to spark")
        self.author.append(SEGMENT, line(3))
        self.author.commit("mac: 1 line to spark")
        self.author.push()
        for name in ("mac", "spark"):
            (folder / name).mkdir()
            machine = Machine(name, folder / name)
            machine.clone("w").parent.mkdir(parents=True)
            self.remote.clone_as_vandal(machine.clone("w"))
            self.machines.append(machine)
        self.machines[0].sent = ["mac/spark/1", "mac/spark/2", "mac/spark/3"]

    @property
    def clone(self) -> Path:
        return self.machines[1].clone()

    def republish(self, message: str = "a change") -> None:
        """Commit and push the author's work tree, and bring both machines to it."""
        self.author.commit(message)
        self.author.push(force=True)
        for machine in self.machines:
            VandalClone(machine.clone(), self.remote).sync()

    def faults(self, **rest) -> list[str]:
        try:
            oracle.check(self.machines, self.remote, **rest)
        except AssertionError as error:
            return str(error).split("\n")[1:]
        return []


@pytest.fixture
def wire(tmp_path):
    return Wire(tmp_path)


def test_a_sound_wire_has_no_fault(wire):
    assert wire.faults() == []


def test_an_empty_remote_has_no_fault(tmp_path):
    oracle.check([], BareRemote(tmp_path / "hub.git"))


# Rule 1


def test_promised_line_that_is_nowhere(wire):
    wire.machines[1].sent = ["spark/mac/1"]
    assert wire.faults() == [
        f"(1) {place}: spark/mac/1 is there 0 times, expected once"
        for place in ("clone of mac", "clone of spark", "remote")
    ]


def test_line_missing_in_one_clone(wire):
    (wire.clone / SEGMENT).write_bytes(line(1) + line(2))
    assert wire.faults() == ["(1) clone of spark: mac/spark/3 is there 0 times, expected once"]


def test_line_without_its_newline_is_not_there(wire):
    (wire.clone / SEGMENT).write_bytes(line(1) + line(2) + line(3).rstrip(b"\n"))
    assert wire.faults() == ["(1) clone of spark: mac/spark/3 is there 0 times, expected once"]


def test_line_twice_in_one_clone(wire):
    (wire.clone / SEGMENT).write_bytes(line(1) + line(2) + line(3) + line(2))
    assert wire.faults() == ["(1) clone of spark: mac/spark/2 is there 2 times, expected once"]


def test_line_twice_in_two_segments(wire):
    (wire.clone / SEGMENT.replace("000001", "000002")).write_bytes(line(2))
    assert wire.faults() == ["(1) clone of spark: mac/spark/2 is there 2 times, expected once"]


def test_line_with_other_bytes_in_one_clone(wire):
    (wire.clone / SEGMENT).write_bytes(line(1) + line(2, body="y") + line(3))
    assert wire.faults() == ["(1) clone of mac, clone of spark: mac/spark/2 has 2 different lines"]


def test_line_in_another_channels_folder_does_not_count(wire):
    file = wire.clone / SEGMENT
    file.write_bytes(line(1) + line(2))
    other = wire.clone / "_coordination/spark/mac/000001.jsonl"
    other.parent.mkdir(parents=True)
    other.write_bytes(line(3))
    assert wire.faults() == ["(1) clone of spark: mac/spark/3 is there 0 times, expected once"]


def test_line_that_never_reached_the_remote(wire):
    for machine in wire.machines:
        with (machine.clone() / SEGMENT).open("ab") as segment:
            segment.write(line(4))
    wire.machines[0].sent.append("mac/spark/4")
    assert wire.faults() == ["(1) remote: mac/spark/4 is there 0 times, expected once"]


def test_junk_is_no_message(wire):
    wire.author.append(SEGMENT, b"junk\n" + b'{"seq":1}\n')
    wire.republish()
    assert wire.faults() == []


# Rule 2


def test_segment_that_was_rewritten_and_restored(wire):
    sound = wire.author.read(SEGMENT)
    wire.author.write(SEGMENT, sound.replace(b'"seq":2', b'"seq":7'))
    wire.author.commit()
    wire.author.write(SEGMENT, sound)
    wire.republish()
    faults = wire.faults()
    assert len(faults) == 2
    assert all(fault.startswith("(2) ") and "differing from byte" in fault for fault in faults)
    assert wire.faults(attacked=True) == []


def test_segment_that_was_truncated(wire):
    wire.author.write(SEGMENT, line(1) + line(2))
    wire.author.commit()
    wire.author.append(SEGMENT, line(3))
    wire.republish()
    (fault,) = wire.faults()
    assert fault.startswith("(2) ")
    assert SEGMENT in fault


def test_segment_that_was_removed(wire):
    wire.author.write("_coordination/mac/spark/000002.jsonl", line(4))
    wire.author.commit()
    wire.author.remove("_coordination/mac/spark/000002.jsonl")
    wire.republish()
    (fault,) = wire.faults()
    assert "removed, " in fault


def test_merge_that_drops_one_sides_lines(wire):
    wire.author.git("checkout", "-q", "-b", "side", "HEAD~1")
    wire.author.write("_coordination/spark/mac/000001.jsonl", line(1, sender="spark", to="mac"))
    wire.author.commit()
    wire.author.git("checkout", "-q", "main")
    wire.author.git("merge", "-q", "--strategy=ours", "-m", "merge", "side")
    wire.author.push()
    for machine in wire.machines:
        VandalClone(machine.clone(), wire.remote).sync()
    (fault,) = wire.faults()
    assert "_coordination/spark/mac/000001.jsonl: removed" in fault


def test_honest_merge_is_no_fault(wire):
    wire.author.git("checkout", "-q", "-b", "side", "HEAD~1")
    wire.author.write("_coordination/spark/mac/000001.jsonl", line(1, sender="spark", to="mac"))
    wire.author.commit()
    wire.author.git("checkout", "-q", "main")
    wire.author.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    wire.republish()
    assert wire.faults() == []


def test_accepted_bytes_that_shrank(wire):
    def accept(data: bytes) -> None:
        (wire.clone / SEGMENT).write_bytes(data)
        gitcmd.git(wire.clone, "add", "--all")
        tree = gitcmd.line(wire.clone, "write-tree")
        commit = gitcmd.line(wire.clone, "commit-tree", "-m", "accepted", tree)
        gitcmd.git(wire.clone, "update-ref", oracle.Accepted.REF, commit)

    accept(line(1) + line(2))
    before = oracle.Accepted(wire.machines[1])
    assert before.segments == {SEGMENT: line(1) + line(2)}
    accept(line(1) + line(2) + line(3))
    before.still_held()
    accept(line(1))
    with pytest.raises(AssertionError, match="accepted by spark"):
        before.still_held()


# Rule 3


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> theirs", "||||||| base"])
def test_conflict_marker_in_a_commit(wire, marker):
    wire.author.append(SEGMENT, marker.encode() + b"\n")
    wire.republish()
    (fault,) = wire.faults()
    assert fault.startswith("(3) ")
    assert fault.endswith("in line 4")


def test_marker_inside_a_message_is_no_conflict(wire):
    wire.author.append(SEGMENT, line(4, body="<<<<<<< HEAD ======="))
    wire.republish()
    assert wire.faults() == []


# Rule 4


@pytest.mark.parametrize(
    "leftover", ["index.lock", "refs/heads/main.lock", "rebase-merge", "rebase-apply", "MERGE_HEAD"]
)
def test_leftover_in_a_clone(wire, leftover):
    (wire.clone / ".git" / leftover).touch()
    assert wire.faults() == [f"(4) clone of spark: .git/{leftover} is left"]


def test_detached_head(wire):
    gitcmd.git(wire.clone, "checkout", "--quiet", "--detach")
    (fault,) = wire.faults()
    assert fault.startswith("(4) clone of spark: HEAD is detached")


def test_clone_without_a_repository(wire):
    (wire.clone / ".git").rename(wire.clone / "was-git")
    (fault,) = wire.faults(rules=[4])
    assert "no repository" in fault


# Rule 5

BUSY = """
import os, subprocess, sys, time
kept = []
print("calm", flush=True)
for word in sys.stdin:
    if word == "file\\n":
        kept.append(open(os.devnull))
    elif word == "child\\n":
        kept.append(subprocess.Popen(["sleep", "60"]))
    elif word == "zombie\\n":
        kept.append(subprocess.Popen(["true"]))
        time.sleep(0.3)
    elif word == "calm\\n":
        for thing in kept:
            thing.close() if hasattr(thing, "close") else (thing.kill(), thing.wait())
        kept.clear()
    print("done", flush=True)
"""


@pytest.mark.parametrize("growth", ["file", "child", "zombie"])
def test_what_a_process_holds_more_than_before(growth):
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def say(word: str) -> None:
            print(word, file=process.stdin, flush=True)
            process.stdout.readline()

        process.stdout.readline()
        baseline = procs.vitals(process.pid)
        say(growth)
        with pytest.raises(AssertionError, match="back at"):
            procs.settles(process.pid, baseline, timeout=0.2)
        say("calm")
        assert procs.settles(process.pid, baseline).rss_kib > 0
        process.stdin.close()
