"""A1, A2, A3, A18: many senders, torn ends, a full disk, and somebody else's git in the clone."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from support import gitcmd, oracle
from support.sizes import size
from support.small_disk import on_small_disk
from support.team import end, incidents, read, state, write
from wire.protocol.chain import lines_of
from wire.protocol.line import parse

TESTS = Path(__file__).resolve().parents[1]

SEND_ALL = 'n=0; while [ $n -lt "$1" ]; do wire send spark "$2 $n" || exit 1; n=$((n+1)); done'


def senders(machine, number, each):
    """Start shells that send one after the other; return them."""
    return [
        subprocess.Popen(
            ["sh", "-c", SEND_ALL, "sh", str(each), f"sender {n}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=machine.environ(),
            cwd=machine.home,
        )
        for n in range(number)
    ]


def collect(machine, running):
    """Wait for senders; remember and return all ids that they were promised."""
    ids = []
    for process in running:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err.decode()
        ids += [line.split()[0] for line in out.decode().splitlines()]
    machine.sent += ids
    return ids


def test_a1_processes_that_send_at_once_make_one_sequence(team):
    number, each = size(10, 50, "processes that send at once"), size(3, 20, "sends of each process")
    ids = collect(team.mac, senders(team.mac, number, each))
    assert sorted(ids) == sorted(f"mac/spark/{n}" for n in range(1, number * each + 1))
    team.sync_and_check()
    said = read(team.spark)
    for n in range(number):
        assert [body for body in said if body.startswith(f"sender {n} ")] == [f"sender {n} {m}" for m in range(each)]
    assert len(said) == number * each
    assert team.spark.json("verify", "--full")["lines"] == number * each
    data = team.mac.segment("mac/spark").read_bytes()
    assert [parse(raw).seq for raw in lines_of(data)] == list(range(1, number * each + 1))


RAW_WRITER = f"""
import os, sys, time
sys.path.insert(0, {str(TESTS)!r})
from support.team import write
from wire.protocol.chain import Position, lines_of
from wire.protocol.line import parse

class Machine:
    name, wire_home = "mac", __import__("pathlib").Path(sys.argv[1])

path, count = sys.argv[2], int(sys.argv[3])
for number in range(count):
    with open(path, "ab+", buffering=0) as file:
        file.seek(0)
        # What it takes for the channel's end is the last line in the file that is one.
        last = None
        for raw in reversed(lines_of(file.read())):
            try:
                last = parse(raw)
                break
            except ValueError:
                continue
        after = Position(last.seq, last.head, 1, 0)
        (signed,) = write(Machine, "mac/spark", f"by hand {{number}}", after=after)
        file.write(signed)
        file.write(b"junk of the raw writer %d\\n" % number)
        print(f"by hand {{number}}", flush=True)
    time.sleep(0.02)
"""


def raw_writer(machine, count):
    """Start a program that appends to the clone's file without any lock: lines that it signed itself, and junk."""
    return subprocess.Popen(
        [sys.executable, "-c", RAW_WRITER, machine.wire_home, machine.segment("mac/spark"), str(count)],
        stdout=subprocess.PIPE,
        env=machine.environ(),
    )


def test_a1_a_raw_writer_beside_the_senders(team):
    """What it appended is in the channel or set aside, whole; no send is lost by it; the peer sees the same."""
    count, each = size(40, 400, "lines of a raw writer"), size(6, 60, "sends beside a raw writer")
    team.mac.send("spark", "first")
    writer = raw_writer(team.mac, count)
    ids = collect(team.mac, senders(team.mac, 3, each))
    by_hand = writer.communicate(timeout=300)[0].decode().splitlines()
    assert writer.returncode == 0
    assert len(set(ids)) == 3 * each
    team.mac.wire("sync", check=False)  # the junk is an incident
    team.sync_and_check()
    said = read(team.spark)
    assert len([body for body in said if not body.startswith("by hand ")]) == 3 * each + 1
    aside = b"".join(file.read_bytes() for file in (state(team.mac) / "aside").iterdir())
    lost = [line for line in by_hand if line not in said and f'"{line}"'.encode() not in aside]
    assert not lost, f"neither sent nor set aside: {lost}"
    assert all(b"junk of the raw writer %d\n" % n in aside for n in range(count))
    assert len(incidents(team.mac, "ADOPT_REFUSED")) == 1


def test_a1_lines_that_an_agent_signs_and_appends_by_itself_are_sent(team):
    team.mac.send("spark", "first")
    team.settle()
    lines = write(team.mac, "mac/spark", "by hand 1", "by hand 2")
    with team.mac.segment("mac/spark").open("ab") as file:
        file.writelines(lines)
    team.mac.send("spark", "after")  # its number would be the first one's: the journal wins
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert read(team.spark) == ["first", "after"]

    with team.mac.segment("mac/spark").open("ab") as file:
        file.writelines(write(team.mac, "mac/spark", "by hand 3", "by hand 4"))
    team.sync_and_check()
    assert read(team.spark) == ["by hand 3", "by hand 4"]
    assert team.mac.send("spark", "last") == "mac/spark/5"
    team.sync_and_check()


def test_a1_senders_raw_writer_and_cycles_at_once(team):
    """Beside running cycles, too, nothing that was promised is lost or doubled."""
    each = size(5, 50, "sends beside cycles and a raw writer")
    team.mac.send("spark", "first")
    writer = raw_writer(team.mac, 4 * each)
    running = senders(team.mac, 3, each)
    while any(process.poll() is None for process in running):
        team.mac.wire("sync", check=False)
    collect(team.mac, running)
    writer.communicate(timeout=300)
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert len([body for body in read(team.spark) if not body.startswith("by hand ")]) == 3 * each + 1


def test_a2_the_record_after_a_torn_line_stands_by_itself(team):
    team.mac.send("spark", "one")
    team.settle()
    file = team.mac.segment("mac/spark")
    before = file.stat().st_size
    with file.open("ab") as torn:
        torn.write(b'{"v":1,"body":"ha')
    team.mac.send("spark", "two")
    team.mac.wire("sync", check=False)
    team.settle()
    assert read(team.spark) == ["one", "two"]
    # Somebody may still be writing the rest, so that the file is left alone for a while; never what is published.
    assert b'"body":"ha' not in b"".join(oracle.at_tip(team.remote).values())
    old = time.time() - 3600
    os.utime(file, (old, old))
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    (incident,) = incidents(team.mac)
    assert f"{file.parent.name}/{file.name}" in str(incident), "the file"
    offset = int(re.search(r"differs (\d+)\+", str(incident["evidence"]))[1])
    assert before <= offset < before + 18, "the byte where the file is no longer the channel"
    assert any(part.read_bytes() == b'{"v":1,"body":"ha' for part in (state(team.mac) / "aside").iterdir())


def test_a2_a_torn_line_in_the_journal_is_one_incident_with_file_and_offset(team):
    team.mac.send("spark", "one")
    journal = state(team.mac) / "journal/mac/spark/000001.jsonl"
    before = journal.stat().st_size
    with journal.open("ab") as torn:
        torn.write(b'{"v":1,"body":"ha')
    assert team.mac.send("spark", "two") == "mac/spark/2"
    team.sync_and_check()
    assert read(team.spark) == ["one", "two"]
    (incident,) = incidents(team.mac)
    assert incident["code"] == "TORN"
    assert (incident["evidence"]["file"], incident["evidence"]["offset"]) == (str(journal), before)


def test_a3_a_full_disk(tmp_path):
    """A send fails and says why, a cycle says why and goes on later; what was refused is wholly absent."""
    ran = on_small_disk(
        tmp_path,
        f"""
sys.path.insert(0, {str(TESTS)!r})
from pathlib import Path
from support import oracle, team
from support.machine import Machine
from support.remote import BareRemote

folder = Path({str(tmp_path)!r})
remote = BareRemote(folder / "hub.git")
(folder / "m").mkdir()
mac = Machine("mac", folder / "m", env={{"WIRE_HOME": DISK}})
mac.wire_home = Path(DISK)
team.begin(mac, remote)
mac.send("all", "before")
mac.wire("sync")
fill()
for body in ("x" * 5000, "x" * 60000):  # a small one still has room in the file's last page
    refused = mac.wire("send", "all", body, check=False)
    assert refused.status == 1, refused
    assert "no space" in refused.stderr.lower(), refused
    assert "Traceback" not in refused.stderr
free()
assert mac.send("all", "after") == "mac/all/2"
mac.wire("sync")
oracle.check([mac], remote)

# Now what has to be published is there, and the cycle has no room.
mac.send("all", "waits")
fill()
failed = mac.wire("sync", check=False)
assert failed.status != 0, failed
assert "Traceback" not in failed.stderr
assert "no space" in failed.stderr.lower() or "disk full" in failed.stderr.lower(), failed
told = mac.wire("status", check=False)
assert told.status != 0
assert "disk" in told.stdout.lower() or "no space" in told.stdout.lower(), told
free()
mac.wire("sync")
oracle.check([mac], remote)
assert team.incidents(mac) == [], team.incidents(mac)
import subprocess
subprocess.run(["git", "-C", str(mac.clone()), "fsck", "--full"], check=True, capture_output=True)
mac.close()
""",
        kib=4096,
    )
    assert ran.returncode == 0, ran.stderr


def test_a18_somebody_commits_in_the_clone_while_sixteen_agents_send(team):
    """`wire send` runs no git, so that no lock of git and no clean-up can fail or lose a send."""
    number, each = size(8, 16, "agents beside git in the clone"), size(3, 20, "sends of each of them")
    clone = team.mac.clone()
    team.mac.send("spark", "first")
    running = senders(team.mac, number, each)
    while any(process.poll() is None for process in running):
        for command in (("add", "--all"), ("commit", "-q", "-m", "by hand"), ("stash", "-q"), ("clean", "-qfd")):
            try:
                gitcmd.git(clone, *command)
            except gitcmd.GitFailed:
                continue  # nothing to commit, or a lock of the daemon's own tidying
        team.mac.wire("sync", check=False)
    ids = collect(team.mac, running)
    assert len(set(ids)) == number * each
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert len(read(team.spark)) == number * each + 1
    assert end(team.mac, "mac/spark") == end(team.spark, "mac/spark")
