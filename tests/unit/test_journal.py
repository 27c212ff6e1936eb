"""The journal: what is appended, what a dying or failing machine leaves, and what the next holder makes of it."""

import errno
import itertools
import os
import shutil
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from support.lines import WIRE, Author, end_of, laid_out
from wire.errors import Busy, DiskFull, StoreError, UsageError
from wire.protocol.chain import SEGMENT_MAX, Position
from wire.store import amend, incidents, journal, segments, sent
from wire.store.files import locked
from wire.store.held import PLAN
from wire.store.paths import WirePlaces

CHANNEL = "mac/spark"
MAC = Author(CHANNEL)
BIG = "x" * 60_000  # four of these fill a segment


@pytest.fixture
def places(tmp_path):
    clone = tmp_path / "clone"
    (clone / "_coordination").mkdir(parents=True)
    return WirePlaces(str(tmp_path / "state"), "team", str(clone))


def send(places, *bodies, **rest):
    return journal.append(places, WIRE, CHANNEL, MAC.saying(*bodies), **rest)


def hold(places, **rest):
    return journal.hold(places, WIRE, CHANNEL, **rest)


def file(places, number=1):
    return Path(segments.segment_path(places.journal_of(CHANNEL), number))


def content(places):
    return {number: file(places, number).read_bytes() for number in journal.segments(places, CHANNEL)}


def lines(places, after=MAC.start, until=None):
    return list(journal.read_lines(places, CHANNEL, after, until))


def record(places):
    return Path(journal.lock_of(places, CHANNEL)) / sent.FILE


def write(places, made, number=1):
    """Write into the journal behind its back."""
    file(places, number).parent.mkdir(parents=True, exist_ok=True)
    with file(places, number).open("ab") as target:
        target.write(b"".join(made))


def clone_file(places, number=1):
    return Path(places.coordination, CHANNEL) / f"{number:06d}.jsonl"


# Appending


def test_a_line_is_added_and_its_end_returned(places):
    (end,) = send(places, "hello")
    expected = MAC.line(MAC.start, "hello")
    assert file(places).read_bytes() == expected
    assert end == end_of(MAC.start, [expected])
    assert journal.tail(places, WIRE, CHANNEL) == end
    assert journal.channels(places) == [CHANNEL]
    assert lines(places) == [expected[:-1]]


def test_the_builder_sees_the_end_and_an_empty_answer_adds_nothing(places):
    (first,) = send(places, "one")
    seen = []
    assert journal.append(places, WIRE, CHANNEL, lambda end: seen.append(end) or []) == []
    assert seen == [first]
    assert journal.append(places, WIRE, CHANNEL, MAC.saying("two"))[0].seq == 2


def test_what_the_builder_raises_leaves_the_channel_as_it_was(places):
    send(places, "one")
    before = content(places)

    def build(end):
        raise UsageError("no")

    with pytest.raises(UsageError):
        journal.append(places, WIRE, CHANNEL, build)
    assert content(places) == before
    assert send(places, "two")[0].seq == 2


@pytest.mark.parametrize(
    "made",
    [
        pytest.param([b"no newline"], id="unterminated"),
        pytest.param([b"two\nlines\n"], id="two in one"),
        pytest.param([b"x" * 65_536 + b"\n"], id="longer than a line may be"),
        pytest.param([b""], id="empty"),
    ],
)
def test_what_is_no_single_line_is_refused(places, made):
    with pytest.raises(StoreError) as caught:
        journal.append(places, WIRE, CHANNEL, lambda end: made)
    assert caught.value.reason == "bad-line"
    assert content(places) == {}


def test_segments_roll_exactly_where_the_protocol_says(places):
    ends = send(places, *([BIG] * 9), "short")
    assert content(places) == laid_out(MAC.start, MAC.saying(*([BIG] * 9), "short")(MAC.start))
    assert [end.segment for end in ends] == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]
    assert all(len(data) <= SEGMENT_MAX for data in content(places).values())
    assert send(places, "next")[0].seq == 11
    assert len(lines(places)) == 11
    assert lines(places, ends[3], ends[5]) == lines(places)[4:6]


def test_a_segment_can_be_filled_to_the_last_byte(places):
    ends = send(places, BIG, BIG, BIG, BIG)
    overhead = len(MAC.line(ends[-1], "x")) - 1
    room = SEGMENT_MAX - ends[-1].size - overhead
    (end,) = send(places, "y" * room)
    assert (end.segment, end.size) == (1, SEGMENT_MAX)
    assert send(places, "z")[0][2:] == (2, len(content(places)[2]))


def test_a_batch_costs_one_fsync_per_segment(places, monkeypatch):
    send(places, "first")
    calls = []
    monkeypatch.setattr(os, "fsync", lambda fd: calls.append(os.readlink(f"/proc/self/fd/{fd}")))
    send(places, *(f"line {n}" for n in range(100)))
    assert calls == [str(file(places))]


def test_the_usual_send_reads_one_line_and_lists_nothing(places, monkeypatch):
    send(places, *([BIG] * 3))
    read = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: read.append(n) or real(fd, n, at))
    monkeypatch.setattr(os, "listdir", lambda folder: pytest.fail("the folder was listed"))
    send(places, "short")
    assert read == [len(MAC.line(MAC.start, BIG))]


def test_a_channel_is_validated_before_it_becomes_a_path(places):
    with pytest.raises(UsageError):
        journal.append(places, WIRE, "mac/../../etc", MAC.saying("x"))


def test_a_held_channel_is_busy_and_others_are_not(places):
    with locked(journal.lock_of(places, CHANNEL), what="x"):
        with pytest.raises(Busy):
            send(places, "x", timeout=0)
        other = Author("mac/all")
        assert journal.append(places, WIRE, "mac/all", other.saying("x"))[0].seq == 1
    assert journal.channels(places) == ["mac/all"]


def test_looking_from_outside_needs_no_lock(places):
    (end,) = send(places, "x")
    with locked(journal.lock_of(places, CHANNEL), what="x"):
        assert journal.tail(places, WIRE, CHANNEL) == end
        assert len(lines(places)) == 1


# What a kill leaves


class Killed(BaseException):
    """Stands for SIGKILL: nothing of ours catches it."""


STEPS = ["open", "write", "fsync", "rename", "unlink", "truncate", "mkdir"]


def kill_at(patch, number):
    """Die before the n-th call that changes anything on disk; return how many there were."""
    count = [0]

    def wrap(name):
        real = getattr(os, name)

        def call(*args, **rest):
            flags = args[1] if name == "open" else os.O_CREAT
            if flags & (os.O_CREAT | os.O_TRUNC):
                count[0] += 1
                if count[0] == number:
                    raise Killed
            return real(*args, **rest)

        patch.setattr(os, name, call)

    for name in STEPS:
        wrap(name)
    return count


def kills(places, tmp_path, monkeypatch, work):
    """Do some work with a kill before its first step, from the same start with one before its second, and so on."""
    start = tmp_path / "start"
    shutil.copytree(places.root, start)
    for number in itertools.count(1):
        shutil.rmtree(places.root)
        shutil.copytree(start, places.root)
        with monkeypatch.context() as patch:
            count = kill_at(patch, number)
            with suppress(Killed):
                work()
        if count[0] < number:
            return
        yield number


def test_a_kill_before_any_step_of_a_batch_leaves_whole_lines_and_a_clean_next_send(places, tmp_path, monkeypatch):
    send(places, BIG, BIG)
    before = content(places)
    left = []
    for _ in kills(places, tmp_path, monkeypatch, lambda: send(places, *([BIG] * 8))):
        whole = len(lines(places))
        left.append(whole)
        (end,) = send(places, "next", on_incident=lambda finding: pytest.fail("nothing is torn"))
        assert end.seq == whole + 1
        assert content(places) == laid_out(MAC.start, [raw + b"\n" for raw in lines(places)])
        assert content(places)[1].startswith(before[1])
    assert left == sorted(left)
    assert (left[0], left[-1]) == (2, 10)


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize(
    "fragment",
    [
        pytest.param(b'{"v":1,"body":"ha', id="half a line"),
        pytest.param(b"\0" * 4096, id="zeros of a power cut"),
        pytest.param(MAC.line(MAC.start)[:-1], id="a line without its newline"),
        pytest.param(b"x" * 700_000, id="larger than a segment"),
    ],
)
@pytest.mark.parametrize("with_record", [True, False])
def test_an_incomplete_end_is_set_aside_told_and_cut(places, count, fragment, with_record):
    if count:
        send(places, *["before"] * count)
    offset = file(places).stat().st_size if count else 0
    write(places, [fragment])
    if not with_record:
        record(places).unlink(missing_ok=True)
    told = []
    (end,) = send(places, "after", on_incident=told.append)
    assert end.seq == count + 1
    assert lines(places)[-1] == MAC.line(end_of(MAC.start, MAC.lines(MAC.start, count, "before")), "after")[:-1]
    (finding,) = told
    evidence = finding.evidence
    assert (finding.code, finding.scope) == ("TORN", CHANNEL)
    assert (evidence["file"], evidence["offset"], evidence["length"]) == (str(file(places)), offset, len(fragment))
    assert evidence["sha256"] == sha256(fragment).hexdigest()
    assert evidence["starts"] == repr(fragment[:40])[2:-1]
    assert Path(evidence["aside"]).read_bytes() == fragment
    assert f"mac.spark.000001.{offset}." in evidence["aside"]
    assert incidents.raise_(places.incidents_dir, **finding._asdict()).code == "TORN"
    assert send(places, "again", on_incident=lambda finding: pytest.fail("told twice"))[0].seq == count + 2


def test_whole_lines_behind_the_record_are_taken_over_and_brought_to_disk(places, monkeypatch):
    """A sender was killed between its write and its record."""
    (end,) = send(places, "one")
    write(places, MAC.lines(end, 3))
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    with hold(places) as held:
        assert journal.settle(held).seq == 4
    assert str(file(places)) in synced
    with hold(places) as held:
        assert held.sent().end.seq == 4


def test_whole_lines_in_a_segment_that_the_record_does_not_know_are_taken_over(places):
    """Even when the next line would fit into the segment before."""
    ends = send(places, BIG, BIG, BIG, BIG, "small")
    big = MAC.line(ends[-1], BIG)
    write(places, [big], number=2)
    (end,) = send(places, "small")
    assert (end.seq, end.segment) == (7, 2)
    assert len(lines(places)) == 7


def test_an_empty_segment_that_was_just_made_is_no_obstacle(places):
    send(places, BIG, BIG, BIG, BIG)
    file(places, 2).touch()
    assert send(places, "x")[0].seq == 5
    assert send(places, BIG)[0].segment == 2


@pytest.mark.parametrize(
    "junk",
    [
        pytest.param(b"no line at all\n", id="not a line"),
        pytest.param(MAC.line(MAC.start, "again"), id="an old number"),
        pytest.param(Author("mac/all").line(Author("mac/all").start), id="another channel"),
        pytest.param(b"\n\n\n", id="empty lines"),
    ],
)
def test_complete_lines_behind_the_record_that_do_not_follow_are_set_aside(places, junk):
    (end,) = send(places, "one")
    write(places, [junk, MAC.line(end, "would follow")])
    told = []
    assert send(places, "two", on_incident=told.append)[0].seq == 2
    assert told[0].evidence["length"] == len(junk) + len(MAC.line(end, "would follow"))
    assert len(lines(places)) == 2


def test_bytes_in_several_segments_are_all_set_aside(places):
    send(places, "one")
    write(places, [b"torn"])
    write(places, [b"more\n"], number=2)
    told = []
    send(places, "two", on_incident=told.append)
    assert [finding.evidence["length"] for finding in told] == [5, 4]
    assert journal.segments(places, CHANNEL) == [1]


def test_without_a_record_complete_lines_that_do_not_follow_are_not_cut(places):
    """They may have been sent: nobody vouches for where the journal ended."""
    send(places, "one", "two")
    write(places, [b"junk\n"])
    record(places).unlink()
    before = content(places)
    with pytest.raises(StoreError) as caught:
        send(places, "three")
    assert caught.value.reason == "journal-damaged"
    assert "wire sync" in caught.value.next_step
    assert content(places) == before


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 136, b"x" * 200])
def test_a_damaged_record_counts_as_none(places, damage):
    send(places, *([BIG] * 9))
    record(places).write_bytes(damage)
    assert send(places, "x")[0].seq == 10
    with hold(places) as held:
        assert held.sent().end.seq == 10


@pytest.mark.parametrize("count", [1, 4, 5, 8, 9])
def test_without_a_record_the_end_is_found_from_the_last_segments(places, count):
    ends = send(places, *([BIG] * count))
    record(places).unlink()
    assert journal.tail(places, WIRE, CHANNEL) == ends[-1]
    assert send(places, "x")[0].seq == count + 1


def test_a_stale_record_is_brought_up(places):
    """The record is not fsync'd: a power cut may leave an older one."""
    send(places, "one")
    old = record(places).read_bytes()
    send(places, *([BIG] * 6))
    record(places).write_bytes(old)
    assert send(places, "x")[0].seq == 8


def test_a_record_that_cannot_be_written_does_not_fail_a_durable_send(places, monkeypatch):
    def refuse(folder, value):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sent, "write", refuse)
    assert send(places, "one")[0].seq == 1
    assert send(places, "two")[0].seq == 2


# Never below what was sent


def test_a_journal_that_lost_lines_refuses_to_send(places):
    ends = send(places, "one", "two", "three")
    os.truncate(file(places), ends[1].size)
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            send(places, "another three")
        assert caught.value.reason == "journal-behind"
        assert "wire sync" in caught.value.next_step
    assert file(places).stat().st_size == ends[1].size


def test_a_journal_that_is_gone_refuses_to_send(places):
    send(places, "one")
    shutil.rmtree(places.journal_dir)
    with pytest.raises(StoreError) as caught:
        send(places, "another one")
    assert caught.value.reason == "journal-behind"


def test_a_last_line_that_changed_refuses_to_send(places):
    send(places, "one", "two")
    data = bytearray(file(places).read_bytes())
    data[-200] ^= 1
    file(places).write_bytes(data)
    with pytest.raises(StoreError) as caught:
        send(places, "three")
    assert caught.value.reason == "journal-damaged"
    assert file(places).read_bytes() == data


def test_a_state_older_than_what_is_accepted_refuses_to_send(places):
    """A restored backup: journal and record agree with each other, and the pin knows better."""
    send(places, "one")
    write(places, [b"torn"])
    floor = end_of(MAC.start, MAC.lines(MAC.start, 3))
    with pytest.raises(StoreError) as caught:
        send(places, "two", floor=floor)
    assert caught.value.reason == "journal-behind"
    assert file(places).read_bytes().endswith(b"torn"), "nothing is cut before it is known what was lost"
    assert send(places, "two", floor=MAC.start)[0].seq == 2


# Full disks and failing calls


def failing(monkeypatch, name, number, error=errno.ENOSPC):
    """Let the n-th call of an os function fail."""
    real = getattr(os, name)
    calls = []

    def call(*args):
        calls.append(args)
        if len(calls) == number:
            raise OSError(error, os.strerror(error))
        return real(*args)

    monkeypatch.setattr(os, name, call)
    return calls


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("error", "expected"), [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, StoreError)]
)
def test_a_batch_over_three_segments_is_whole_or_taken_back(places, monkeypatch, number, error, expected):
    send(places, BIG, BIG)
    before = content(places)
    with monkeypatch.context() as patch:
        failing(patch, "fsync", number, error)
        with pytest.raises(expected):
            send(places, *([BIG] * 8), timeout=1)
    assert content(places) == before
    assert send(places, *([BIG] * 8))[-1].seq == 10
    assert len(lines(places)) == 10


def test_several_channels_are_built_before_one_is_written(places, monkeypatch):
    other = Author("mac/all")
    builds = {CHANNEL: (MAC.saying("one"), None), "mac/all": (other.saying("two", "three"), None)}

    def refuse(end):
        raise UsageError("too large")

    with pytest.raises(UsageError):
        journal.append_all(places, WIRE, {**builds, CHANNEL: (refuse, None)})
    assert journal.tail(places, WIRE, "mac/all").seq == 0
    real = os.write

    def short(fd, data):
        return real(fd, bytes(data)[:10] if b'"to":"spark"' in bytes(data) else data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short)
        with pytest.raises(DiskFull, match=r"stored before, not to be sent again: mac/all/1, mac/all/2$"):
            journal.append_all(places, WIRE, builds)
    # In the order of their names, so that two who want the same channels do not wait for each other.
    assert journal.tail(places, WIRE, CHANNEL).seq == 0
    ends = journal.append_all(places, WIRE, {**builds, "mac/all": (other.saying(), None)})
    assert [end.seq for end in ends[CHANNEL]] == [1]
    assert ends["mac/all"] == []


def test_a_short_write_is_taken_back(places, monkeypatch):
    send(places, "one")
    before = content(places)
    real = os.write

    def short(fd, data):
        return real(fd, bytes(data)[:100]) if len(data) > 1000 else real(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short)
        with pytest.raises(DiskFull) as caught:
            send(places, BIG)
    assert "no space" in str(caught.value)
    assert content(places) == before
    assert send(places, BIG)[0].seq == 2


def test_a_batch_that_cannot_even_be_taken_back_says_so(places, monkeypatch):
    send(places, "one")
    with monkeypatch.context() as patch:
        failing(patch, "fsync", 1)
        failing(patch, "truncate", 1, errno.EIO)
        with pytest.raises(StoreError, match="may still be sent") as caught:
            send(places, "two")
    assert caught.value.reason == "not-taken-back"
    assert send(places, "three")[0].seq == 3


def test_bytes_of_another_program_in_the_journal_are_not_cut_by_a_failing_send(places, monkeypatch):
    send(places, "one")
    with hold(places) as held:
        runs, _ = segments.runs_of(journal.settle(held), MAC.lines(journal.settle(held), 1))
        write(places, [b"surprise"])
        with pytest.raises(StoreError, match="another program"):
            segments.write_runs(held.folder, runs)
    assert file(places).read_bytes().endswith(b"surprise")


# The copy


def test_the_same_bytes_are_in_the_clone(places):
    send(places, *([BIG] * 5), copy_to=places.coordination)
    assert send(places, "short", copy_to=places.coordination)
    assert {n: clone_file(places, n).read_bytes() for n in (1, 2)} == content(places)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda path: path.write_bytes(b""), id="emptied"),
        pytest.param(lambda path: path.unlink(), id="removed"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes() + b"raw"), id="longer"),
        pytest.param(lambda path: (path.unlink(), path.mkdir()), id="a folder"),
        pytest.param(lambda path: (path.unlink(), os.mkfifo(path)), id="a fifo"),
        pytest.param(lambda path: shutil.rmtree(path.parent), id="folder removed"),
    ],
)
def test_a_file_in_the_clone_that_is_not_ours_is_left_for_the_daemon(places, spoil):
    send(places, "one", copy_to=places.coordination)
    spoil(clone_file(places))
    was = clone_file(places).read_bytes() if clone_file(places).is_file() else None
    assert send(places, "two", copy_to=places.coordination)[0].seq == 2
    assert (clone_file(places).read_bytes() if clone_file(places).is_file() else None) == was


@pytest.mark.parametrize("level", ["file", "channel", "sender", "top"])
def test_no_link_in_the_clone_is_followed(places, tmp_path, level):
    send(places, "one", copy_to=places.coordination)
    channel = clone_file(places).parent
    victim = {"file": clone_file(places), "channel": channel, "sender": channel.parent, "top": channel.parent.parent}[
        level
    ]
    elsewhere = tmp_path / "elsewhere"
    victim.rename(elsewhere)
    victim.symlink_to(elsewhere)
    before = {path: path.read_bytes() for path in tmp_path.glob("elsewhere/**/*.jsonl")}
    assert send(places, "two", copy_to=places.coordination)[0].seq == 2
    assert {path: path.read_bytes() for path in tmp_path.glob("elsewhere/**/*.jsonl")} == before
    if level == "file":
        assert elsewhere.read_bytes() == MAC.line(MAC.start, "one")


def test_a_clone_that_is_not_there_does_not_fail_a_send(places):
    shutil.rmtree(places.clone)
    assert send(places, "one", copy_to=places.coordination)[0].seq == 1


# Adoption


def test_lines_written_elsewhere_with_our_key_are_adopted(places):
    (end,) = send(places, "one")
    foreign = MAC.lines(end, 6, BIG)
    with hold(places) as held:
        ends = journal.extend(held, foreign)
    assert ends[-1] == end_of(end, foreign)
    assert send(places, "next")[0].seq == 8


@pytest.mark.parametrize("pick", [slice(1, None), slice(None, None, -1)], ids=["a gap", "out of order"])
def test_lines_that_do_not_follow_are_not_adopted(places, pick):
    (end,) = send(places, "one")
    before = content(places)
    with hold(places) as held, pytest.raises(StoreError) as caught:
        journal.extend(held, MAC.lines(end, 3)[pick])
    assert caught.value.reason == "not-next"
    assert content(places) == before


def test_adoption_lets_a_journal_catch_up_with_what_it_sent(places):
    ends = send(places, "one", "two", "three")
    whole = file(places).read_bytes().splitlines(keepends=True)
    os.truncate(file(places), ends[0].size)
    with hold(places) as held:
        journal.extend(held, whole[1:2])
    with pytest.raises(StoreError):
        send(places, "a second three")
    with hold(places) as held:
        journal.extend(held, whole[2:])
    assert send(places, "four")[0].seq == 4


# Issuing again


def test_lines_are_issued_again_behind_those_of_another_instance(places):
    ends = send(places, "shared", "mine", BIG, BIG, BIG, BIG, BIG)
    old = content(places)
    theirs = MAC.lines(ends[0], 2, "theirs")
    again = MAC.lines(end_of(ends[0], theirs), 1, "mine")
    with hold(places) as held:
        end, kept = amend.replace_from(held, ends[0], theirs + again)
    assert end.seq == 4
    assert lines(places) == [raw[:-1] for raw in [MAC.line(MAC.start, "shared"), *theirs, *again]]
    assert [Path(copy.path).read_bytes() for copy in kept] == [old[1][ends[0].size :], old[2]]
    assert send(places, "next")[0].seq == 5
    assert journal.segments(places, CHANNEL) == [1]


def test_everything_can_be_replaced(places):
    send(places, "one", "two")
    theirs = MAC.lines(MAC.start, 1, "theirs")
    with hold(places) as held:
        amend.replace_from(held, MAC.start, theirs)
    assert send(places, "next")[0].seq == 2
    with hold(places) as held:
        assert amend.replace_from(held, MAC.start, [])[0] == MAC.start
    assert send(places, "fresh")[0].seq == 1


@pytest.mark.parametrize("what", ["position", "lines"])
def test_a_replacement_that_does_not_fit_changes_nothing(places, what):
    ends = send(places, "one", "two")
    before = content(places)
    position = ends[0]._replace(head="0" * 64) if what == "position" else ends[0]
    made = MAC.lines(position if what == "position" else ends[1], 2)
    with hold(places) as held, pytest.raises(StoreError) as caught:
        amend.replace_from(held, position, made)
    assert caught.value.reason == "not-next"
    assert content(places) == before
    assert not list(Path(places.journal_of(CHANNEL)).glob("*.plan"))


def test_a_kill_between_any_two_steps_of_a_replacement_replays_as_nothing_or_as_done(places, tmp_path, monkeypatch):
    ends = send(places, "shared", *([BIG] * 6))
    old = content(places)
    theirs = MAC.lines(ends[0], 6, "theirs " + BIG)
    new = laid_out(MAC.start, [MAC.line(MAC.start, "shared"), *theirs])
    outcomes = []

    def replace():
        with hold(places) as held:
            amend.replace_from(held, ends[0], theirs)

    for number in kills(places, tmp_path, monkeypatch, replace):
        with hold(places) as held:
            journal.settle(held)
        now = content(places)
        assert now in (old, new), f"after a kill before call {number}"
        outcomes.append(now == new)
        assert send(places, "next")[0].seq == 8
    assert outcomes == sorted(outcomes), "once it has happened, it stays so"
    assert outcomes[0] is False
    assert outcomes[-1] is True


def test_a_kill_while_a_replacement_is_finished_leaves_it_to_the_next(places, monkeypatch):
    ends = send(places, "shared", *([BIG] * 6))
    theirs = MAC.lines(ends[0], 6, "theirs " + BIG)
    new = laid_out(MAC.start, [MAC.line(MAC.start, "shared"), *theirs])
    with hold(places) as held, monkeypatch.context() as patch:
        patch.setattr(amend, "resume", lambda held: None)
        amend.replace_from(held, ends[0], theirs)
    for number in range(1, 12):
        with monkeypatch.context() as patch:
            kill_at(patch, number)
            try:
                with hold(places) as held:
                    journal.settle(held)
            except Killed:
                continue
    with hold(places) as held:
        assert journal.settle(held).seq == 7
    assert content(places) == new


def test_a_plan_that_does_not_hold_is_moved_aside_and_said(places):
    send(places, "one")
    plan = Path(places.journal_of(CHANNEL)) / PLAN
    plan.write_bytes(b'{"v":1,"position":[0,"",1,0],"length":3,"sha256":"00"}\nabc')
    with pytest.raises(StoreError) as caught:
        send(places, "two")
    assert caught.value.reason == "journal-damaged"
    assert not plan.exists()
    assert list(plan.parent.glob("reissue.plan.corrupt-*"))
    assert send(places, "two")[0].seq == 2


# Rebuilding


def test_damage_in_the_accepted_part_is_made_good_and_unpublished_lines_stay(places):
    ends = send(places, *([BIG] * 6), "accepted", "unpublished", *([BIG] * 4))
    good = content(places)
    accepted = [good[1], good[2][: ends[6].size]]
    for number in (1, 2):
        data = bytearray(good[number])
        data[1000] ^= 255
        file(places, number).write_bytes(data)
    with hold(places) as held:
        end = amend.rebuild(held, iter(accepted))
    assert end == ends[-1]
    assert content(places) == good
    assert len(list(Path(places.aside_dir).iterdir())) == 2
    assert send(places, "next")[0].seq == ends[-1].seq + 1


def test_a_journal_that_is_gone_is_rebuilt_and_stays_closed_until_it_is_complete(places):
    ends = send(places, "one", "two", "three")
    whole = file(places).read_bytes()
    shutil.rmtree(places.journal_dir)
    with hold(places) as held:
        assert amend.rebuild(held, [whole[: ends[1].size]]) == ends[1]
    with pytest.raises(StoreError) as caught:
        send(places, "a second three")
    assert caught.value.reason == "journal-behind"
    with hold(places) as held:
        journal.extend(held, [whole[ends[1].size :]])
    assert send(places, "four")[0].seq == 4


def test_a_journal_that_only_lacks_accepted_lines_gets_them_and_nothing_is_set_aside(places):
    ends = send(places, *([BIG] * 6))
    good = content(places)
    os.truncate(file(places, 1), ends[1].size)
    file(places, 2).unlink()
    with hold(places) as held:
        assert amend.rebuild(held, [good[1], good[2]]) == ends[-1]
    assert content(places) == good
    assert not os.path.exists(places.aside_dir)


def test_junk_behind_the_accepted_end_is_set_aside_by_a_rebuild(places):
    ends = send(places, "one", "two")
    whole = file(places).read_bytes()
    write(places, [b"junk\n", b"torn"])
    record(places).unlink()
    told = []
    with hold(places, on_incident=told.append) as held:
        assert amend.rebuild(held, [whole]) == ends[1]
    assert file(places).read_bytes() == whole
    assert told[0].evidence["length"] == 9


def test_a_segment_that_is_too_long_is_replaced(places):
    ends = send(places, *([BIG] * 5))
    good = content(places)
    write(places, [b"junk"])
    with hold(places) as held:
        assert amend.rebuild(held, [good[1], good[2]]) == ends[-1]
    assert content(places) == good


def test_reading_up_to_an_end_that_is_not_there_is_said(places):
    (end,) = send(places, "one")
    with pytest.raises(StoreError) as caught:
        lines(places, MAC.start, end._replace(size=end.size + 1))
    assert caught.value.reason == "journal-behind"
    assert lines(places, Position.start(WIRE, CHANNEL), MAC.start) == []
