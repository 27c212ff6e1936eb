"""Appending with real processes: many at once, killed, refused by the system, on a full disk, and beside a person.

The sender here is `journal.append` in a process of its own, which is what `wire send` does besides reading its options.
After every trouble the same questions: is the journal whole lines in sequence, is what was acknowledged in it exactly
once, and is the next send clean?
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.lines import WIRE, Author
from support.sizes import size
from support.small_disk import on_small_disk
from wire.protocol.chain import lines_of
from wire.protocol.line import parse
from wire.store import journal, mending
from wire.store.paths import WirePlaces
from wire.store.segments import next_position

CHANNEL = "mac/spark"
MAC = Author(CHANNEL)
TESTS = Path(__file__).resolve().parents[1]

SENDER = f"""
import os, sys
sys.path.insert(0, {str(TESTS)!r})
from support.lines import WIRE, Author
from wire.errors import DiskFull, WireError
from wire.store import journal
from wire.store.paths import WirePlaces

def send(places, *bodies):
    return journal.append(places, WIRE, {CHANNEL!r}, Author({CHANNEL!r}).saying(*bodies), copy_to=places.coordination)
"""

SEND_MANY = f"""{SENDER}
places = WirePlaces(sys.argv[1], "team", sys.argv[2])
for number in range(int(sys.argv[4])):
    send(places, sys.argv[3] + " " + str(number))
    os.write(1, (sys.argv[3] + " " + str(number) + "\\n").encode())
"""

# Exit status 0: acknowledged; 3: refused with an error of ours; anything else is a defect.
SEND_BATCH = f"""{SENDER}
places = WirePlaces(sys.argv[1], "team", sys.argv[2])
try:
    send(places, *(sys.argv[3] + " " + str(number) + "x" * 60_000 for number in range(int(sys.argv[4]))))
except WireError as error:
    os._exit(3)
os._exit(0)
"""


@pytest.fixture
def places(tmp_path):
    clone = tmp_path / "clone"
    (clone / "_coordination").mkdir(parents=True)
    return WirePlaces(str(tmp_path / "state"), "team", str(clone))


def start(places, script, *args, **rest):
    command = [sys.executable, "-c", script, places.state_dir, places.clone, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, **rest)


def run(places, *args):
    """Send from another process and wait for it."""
    process = start(places, SEND_MANY, *args)
    process.communicate()
    assert process.returncode == 0


def sent_lines(places):
    """Return the bodies in the journal, after asking the questions that always hold."""
    with journal.hold(places, WIRE, CHANNEL) as held:
        end = journal.settle(held)
    position, bodies = MAC.start, []
    for raw in journal.read_lines(places, CHANNEL, MAC.start):
        position = next_position(position, raw, wire=WIRE, channel=CHANNEL)
        assert position is not None, f"line {len(bodies) + 1} does not follow"
        bodies.append(re.search(rb'"body":"([^"]*)"', raw)[1].decode())
    assert position == end
    for number in journal.segments(places, CHANNEL):
        data = journal.read_segment(places, CHANNEL, number)
        assert not data or data.endswith(b"\n")
    return bodies


def clone_file(places, number=1):
    return Path(places.coordination, CHANNEL) / f"{number:06d}.jsonl"


def mend_all(places):
    """Do what the daemon does with its own channel, refusing every candidate."""
    with journal.hold(places, WIRE, CHANNEL) as held:
        end = journal.settle(held)
        seen = mending.inspect(places.coordination, held.folder, CHANNEL, end)
        for number in journal.segments(places, CHANNEL):
            wanted = journal.read_segment(places, CHANNEL, number)
            name = f"{CHANNEL}/{number:06d}.jsonl"
            mending.mend(places.coordination, name, wanted, places.aside_dir, grace=0)
        for name in seen.beyond:
            mending.mend(places.coordination, name, None, places.aside_dir, grace=0)
        assert mending.inspect(places.coordination, held.folder, CHANNEL, end).same
    return seen


def test_many_processes_at_once_make_one_sequence(places):
    """A1."""
    senders, each = size(12, 50, "senders at once in one channel"), size(5, 20, "sends of each sender")
    running = [start(places, SEND_MANY, f"sender {n}", each) for n in range(senders)]
    said = [process.communicate()[0].decode().splitlines() for process in running]
    assert [process.returncode for process in running] == [0] * senders
    bodies = sent_lines(places)
    assert len(bodies) == senders * each
    assert sorted(bodies) == sorted(line for lines in said for line in lines)
    for n in range(senders):
        own = [body for body in bodies if body.startswith(f"sender {n} ")]
        assert own == [f"sender {n} {m}" for m in range(each)], "each sender's own order is kept"
    assert clone_file(places).read_bytes() == journal.read_segment(places, CHANNEL, 1)


RAW_WRITER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for number in range(int(sys.argv[2])):
    os.write(fd, b"raw line %d\\n" % number)
    time.sleep(0.001)
os.write(fd, b"raw, unfinished")
"""


def test_a_raw_writer_in_the_clone_costs_no_line(places):
    """A1, second half: another program appends to the clone's file without any lock."""
    sends = size(20, 200, "sends beside a raw writer")
    run(places, "first", 1)
    raw = subprocess.Popen([sys.executable, "-c", RAW_WRITER, clone_file(places), "200"])
    running = [start(places, SEND_MANY, f"sender {n}", sends) for n in range(2)]
    for process in running:
        process.communicate()
        assert process.returncode == 0
    assert raw.wait() == 0
    assert len(sent_lines(places)) == 2 * sends + 1
    mend_all(places)
    assert clone_file(places).read_bytes() == journal.read_segment(places, CHANNEL, 1)
    aside = b"".join(path.read_bytes() for path in Path(places.aside_dir).iterdir())
    assert all(b"raw line %d\n" % n in aside for n in range(200))
    assert b"raw, unfinished" in aside


def test_a_kill_at_any_moment_leaves_whole_lines_and_a_clean_next_send(places):
    kills = size(15, 300, "senders killed at random moments")
    seed = 20261129
    chance = random.Random(seed)
    acknowledged = []
    for n in range(kills):
        process = start(places, SEND_MANY, f"round {n}", 10_000)
        assert process.stdout is not None
        first = process.stdout.readline()  # it is sending now
        time.sleep(chance.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        acknowledged += (first + process.communicate()[0]).decode().splitlines()
    bodies = sent_lines(places)
    assert len(set(bodies)) == len(bodies)
    lost = set(acknowledged) - set(bodies)
    assert not lost, f"acknowledged and lost with seed {seed}: {sorted(lost)[:3]}"
    assert len(bodies) - len(acknowledged) <= 2 * kills, "a kill can leave one line that nobody heard of"
    run(places, "after", 1)
    assert sent_lines(places)[-1] == "after 0"


CALLS = ("write", "fsync", "mkdir", "flock")


def traced(places, inject, *args):
    """Send a batch under strace; return its exit status and whether the fault was injected."""
    log = Path(places.state_dir).parent / "strace.log"
    done = subprocess.run(
        [
            *("strace", "-f", "--seccomp-bpf", "-qq", "-o", log),
            *("-e", f"trace={inject.partition(':')[0]}", "-e", f"inject={inject}"),
            *(sys.executable, "-c", SEND_BATCH, places.state_dir, places.clone, *map(str, args)),
        ],
        capture_output=True,
        check=False,
    )
    text = log.read_text()
    assert "Traceback" not in done.stderr.decode(), done.stderr.decode()
    return done.returncode, "INJECTED" in text or "killed by SIGKILL" in text


@pytest.mark.parametrize("fault", ["error=ENOSPC", "error=EIO", "signal=KILL"])
@pytest.mark.parametrize("fresh", [True, False], ids=["first send", "later send"])
def test_any_single_call_may_fail_or_be_the_last(places, fault, fresh):
    """Every n-th write, fsync and so on of a batch over two segments fails, or the process dies in it."""
    expected: list[str] = []
    number = 0
    for call in CALLS:
        for when in range(1, 40):
            number += 1
            if fresh:
                shutil.rmtree(places.state_dir, ignore_errors=True)
                shutil.rmtree(os.path.join(places.coordination, CHANNEL), ignore_errors=True)
                expected = []
            before = len(expected)
            status, injected = traced(places, f"{call}:{fault}:when={when}", f"batch {number}", 5)
            batch = [f"batch {number} {n}" for n in range(5)]
            bodies = [body.rstrip("x") for body in sent_lines(places)]
            assert bodies[:before] == expected, "what was acknowledged stays"
            new = bodies[before:]
            assert injected or status == 0
            if fault == "signal=KILL" and injected:
                assert new == batch[: len(new)], "whole lines in order, or none"
            else:
                assert status in (0, 3), f"{call} {when}"
                assert new == (batch if status == 0 else []), f"{call} {when}: all of it or none"
            expected = bodies
            if not injected:
                break
        else:
            pytest.fail(f"{call} is called without end")
    run(places, "after", 1)
    assert sent_lines(places)[-1] == "after 0"


def test_a_disk_that_is_really_full(tmp_path):
    """A3: the send fails and says why; afterwards the line is wholly absent, and the next one is clean."""
    ran = on_small_disk(
        tmp_path,
        f"""{SENDER}
places = WirePlaces(DISK + "/state", "team", DISK + "/clone")
os.makedirs(places.coordination)
send(places, "before")
fill()
for body in ("y" * 60_000, "y" * 5_000, "y" * 5_000):
    try:
        send(places, body)
    except DiskFull as error:
        assert "no space left" in str(error), str(error)
    else:
        sys.exit("a send to a full disk succeeded")
free()
(end,) = send(places, "after")
assert end.seq == 2, end
lines = list(journal.read_lines(places, {CHANNEL!r}, Author({CHANNEL!r}).start))
assert len(lines) == 2 and b"after" in lines[1], lines

# A batch that fits in part, over two segments.
try:
    send(places, *(["z" * 60_000] * 40))
except DiskFull:
    pass
else:
    sys.exit("the disk was meant to be smaller")
assert send(places, "last")[0].seq == 3
assert [n for n in os.listdir(places.journal_of({CHANNEL!r}))] == ["000001.jsonl"]
""",
        kib=1024,
    )
    assert ran.returncode == 0, ran.stderr


PERSONS = {
    "sed -i": lambda path: subprocess.run(["sed", "-i", "s/first/FIRST/", path], check=True),
    "rm": lambda path: path.unlink(),
    "rm -r": lambda path: subprocess.run(["rm", "-r", path.parent.parent], check=True),
    "an older checkout": lambda path: replace(path, lines_of(path.read_bytes())[0] + b"\n"),
    "an editor that drops the last newline": lambda path: replace(path, path.read_bytes().rstrip(b"\n")),
    "an editor that writes CR LF": lambda path: path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n")),
    "conflict markers": lambda path: path.write_bytes(b"<<<<<<< HEAD\n" + path.read_bytes() + b">>>>>>> theirs\n"),
    "emptied": lambda path: path.write_bytes(b""),
}


def replace(path, data):
    """Put a new file in the place of another, as git and editors do."""
    fresh = path.with_name("fresh")
    fresh.write_bytes(data)
    fresh.rename(path)


@pytest.mark.parametrize("what", PERSONS)
def test_what_a_person_does_in_the_clone_loses_nothing(places, what):
    run(places, "first", 3)
    PERSONS[what](clone_file(places))
    run(places, "second", 3)
    inode = clone_file(places).stat().st_ino if clone_file(places).exists() else None
    assert not mend_all(places).same
    assert inode in (None, clone_file(places).stat().st_ino), "mended in place"
    assert sent_lines(places) == [*(f"first {n}" for n in range(3)), *(f"second {n}" for n in range(3))]
    assert clone_file(places).read_bytes() == journal.read_segment(places, CHANNEL, 1)
    run(places, "third", 1)
    assert clone_file(places).read_bytes() == journal.read_segment(places, CHANNEL, 1), "the copy is made again"


def test_somebody_who_tails_sees_every_line_on_one_inode(places):
    rounds = size(20, 100, "sends and mendings under an open reader")
    run(places, "first", 1)
    seen = b""
    with clone_file(places).open("rb") as reader:
        for n in range(rounds):
            copy_to = places.coordination if n % 2 else None  # every other one is left for the mending
            journal.append(places, WIRE, CHANNEL, MAC.saying(f"line {n}"), copy_to=copy_to)
            mend_all(places)
            seen += reader.read()
        assert os.path.samestat(os.fstat(reader.fileno()), clone_file(places).stat())
    assert seen == journal.read_segment(places, CHANNEL, 1)
    assert [parse(raw).seq for raw in lines_of(seen)] == list(range(1, rounds + 2))
    assert not os.path.exists(places.aside_dir), "nothing ever had to go"
