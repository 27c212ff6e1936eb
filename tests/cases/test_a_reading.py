"""A15, A16: what a reader was shown and what it was not, and who can keep it from looking."""

import os
import signal
import subprocess
import sys
import time

import pytest

from support.team import bodies, read, state
from support.waiting import eventually


def lines_for_spark(team, count):
    for n in range(count):
        team.mac.send("spark", f"message {n}")
    team.settle()
    return [f"message {n}" for n in range(count)]


@pytest.mark.parametrize("how", [(), ("--json",)], ids=["text", "json"])
def test_a15_what_the_reader_did_not_take_appears_again(team, how):
    """`wire tail | (read one line; exit)`: everything fits into the pipe, and most of it is never read."""
    sent = lines_for_spark(team, 5)
    pipeline = f'wire tail {" ".join(how)} | (read -r line; echo "$line")'
    piped = team.spark.shell(pipeline)
    assert "message 0" in piped.stdout
    assert "message 1" not in piped.stdout
    assert piped.stderr == ""
    assert piped.status in (0, 141)
    again = read(team.spark)
    assert again in (sent, sent[1:]), "the remainder, with perhaps more before it"
    assert read(team.spark) == []
    team.check()


def test_a15_a_reader_that_takes_much_and_goes(team):
    """More than a pipe holds: the writer is stopped in the middle."""
    drafts = b"".join(b'{"to":"spark","body":"%d %s"}\n' % (n, b"x" * 1000) for n in range(1000))
    team.mac.remember(team.mac.wire("send", "--batch", input=drafts))
    team.settle()
    reader = team.spark.spawn("tail")
    taken = reader.stdout.readline()
    assert b" 0 xxx" in taken
    reader.stdout.close()
    assert reader.wait(20) in (0, 141)
    assert reader.stderr.read() == b""
    seen = [int(body.split()[0]) for body in read(team.spark)]
    assert seen == list(range(seen[0], 1000))
    assert seen[0] <= 600, "no more than a pipe and a batch were taken for read"


@pytest.mark.parametrize(
    ("call", "command"),
    [("write", ("tail", "--json")), ("rename", ("tail", "--json")), ("rename", ("read", "mac/spark/1"))],
)
def test_a15_a_kill_between_print_and_cursor_shows_it_again(team, call, command):
    sent = lines_for_spark(team, 3)
    calls = {"write": "write:signal=KILL:when=2", "rename": "rename,renameat,renameat2:signal=KILL:when=1"}
    killed = subprocess.run(
        ["strace", "-qq", "-o", "/dev/null", "-e", f"inject={calls[call]}", team.spark.program, *command],
        capture_output=True,
        env=team.spark.environ(),
        cwd=team.spark.home,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL, killed
    assert call == "write" or b"message 0" in killed.stdout
    assert read(team.spark) == sent
    assert read(team.spark) == []


def test_a15_the_cursor_waits_for_the_output(team):
    """A full pipe and a reader that does nothing: the cursor stays until somebody reads."""
    sent = lines_for_spark(team, 3)
    reader = team.spark.spawn("tail", "--json", stdout=subprocess.PIPE)
    cursor = state(team.spark) / "cursors" / "spark.tail.json"
    time.sleep(1.0)
    assert not cursor.exists(), "nobody has read"
    out = reader.stdout.read()
    assert reader.wait(20) == 0
    assert [n for n in range(3) if b"message %d" % n in out] == [0, 1, 2]
    eventually(cursor.exists)
    assert read(team.spark) == []
    assert sent


def test_a15_a_reader_that_reads_only_after_the_end_gets_everything(team):
    """A caller that first waits for the command and then reads its pipe is slow, and is not left waiting for ever."""
    lines_for_spark(team, 3)
    reader = team.spark.spawn("tail", "--json")
    assert reader.wait(20) == 0
    assert reader.stdout.read().count(b"\n") == 3
    assert read(team.spark) == []


@pytest.mark.parametrize("where", ["/dev/full", "&-"], ids=["a full disk", "a closed output"])
def test_a15_output_that_goes_nowhere_is_not_read(team, where):
    sent = lines_for_spark(team, 3)
    for command in ("tail", "read mac/spark/1"):
        done = team.spark.shell(f"wire {command} >{where}")
        assert done.status != 0
        assert "Traceback" not in done.stderr
    assert read(team.spark) == sent


def test_a15_a_follower_shows_everything_and_ends_quietly(team):
    """`wire tail -f | head -1`."""
    lines_for_spark(team, 2)
    piped = team.spark.shell("wire tail -f | head -1")
    assert "message 0" in piped.stdout
    assert piped.stderr == ""
    assert "message 1" in read(team.spark)


HOLDER = """
import fcntl, os, sys, time
held = []
for root, folders, files in os.walk(sys.argv[1]):
    for name in (*folders, *files):
        descriptor = os.open(os.path.join(root, name), os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        held.append(descriptor)
held.append(os.open(sys.argv[1], os.O_RDONLY))
fcntl.flock(held[-1], fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def all_locks_of_spark(team):
    """A process that holds a lock on everything in the state folder and the clone, whatever is used as a lock."""
    lines_for_spark(team, 1)
    assert read(team.spark) == ["message 0"]  # so that everything that can be locked is there
    sent = lines_for_spark(team, 2)
    git_dir = team.spark.clone() / ".git"
    for name in ("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"):
        (git_dir / name).touch()
    holders = [
        subprocess.Popen([sys.executable, "-c", HOLDER, folder], stdout=subprocess.PIPE)
        for folder in (state(team.spark).parent, team.spark.clone())
    ]
    for holder in holders:
        assert holder.stdout.readline() == b"held\n"
    yield sent
    for holder in holders:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_a16_a_reader_takes_no_lock(team, all_locks_of_spark):
    begin = time.monotonic()
    assert read(team.spark, "--peek") == all_locks_of_spark
    assert time.monotonic() - begin < 10
    assert bodies(team.spark.wire("tail", "--json", "--all")) == ["message 0", *all_locks_of_spark]
    assert bodies(team.spark.jsonl("log")) == ["message 0", *all_locks_of_spark]
    team.spark.wire("show", "mac/spark/1")
    # The place cannot be kept: that is said, and what was asked for was shown before.
    kept = team.spark.wire("tail", "--json", check=False)
    assert bodies([one for one in kept.jsonl() if "id" in one]) == all_locks_of_spark
    assert kept.status == 1
    assert "busy" in kept.stdout or "lock" in kept.stderr


def test_a16_locks_of_the_dead_hold_nobody(team):
    """Files that look like locks and belong to nobody."""
    sent = lines_for_spark(team, 2)
    for lock in state(team.spark).parent.rglob(".holder"):
        lock.write_text("1 somebody 0\n")
    assert read(team.spark) == sent
    team.spark.wire("sync")
    assert read(team.spark) == []


def test_a16_without_a_successful_look_there_is_no_nothing_new(team):
    """Nothing new, could not look, and lost my place are three answers."""
    lines_for_spark(team, 2)
    assert read(team.spark) == ["message 0", "message 1"]
    assert read(team.spark) == []
    progress = state(team.spark) / "progress.json"
    for harm in (progress.unlink, lambda: progress.write_bytes(b"")):
        harm()
        unknown = team.spark.wire("tail", "--json", check=False)
        assert (unknown.status, unknown.json()["result"]) == (6, "could-not-look")
        assert "nobody knows" in team.spark.wire("tail", check=False).stderr
    team.spark.wire("sync")
    cursor = state(team.spark) / "cursors" / "spark.tail.json"
    os.truncate(cursor, 0)
    lost = team.spark.wire("tail", "--json", check=False)
    assert lost.status == 4
    assert bodies([one for one in lost.jsonl() if "id" in one]) == ["message 0", "message 1"]
    assert "lost" in lost.stderr
    assert read(team.spark) == []
