"""The clone's per-direction files: compared, mended in place, and read although anybody may have touched them."""

import os
import shutil
import time
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.lines import WIRE, Author, end_of, laid_out
from wire.errors import DiskFull, IntegrityError, StoreError
from wire.protocol.chain import Position
from wire.protocol.line import LINE_MAX
from wire.store import files, mending, reading
from wire.store.clonefiles import read_segment
from wire.store.mending import Signatures, inspect, mend
from wire.store.reading import CloneSource, LostPlace

CHANNEL = "mac/spark"
NAME = f"{CHANNEL}/000001.jsonl"
MAC = Author(CHANNEL)
BIG = "x" * 60_000  # four of these fill a segment
OLD = 1_000_000_000


class Room:
    """A clone's `_coordination`, a journal folder with lines in it, and a folder for things set aside."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.coordination = root / "clone" / "_coordination"
        self.journal = root / "journal"
        self.aside = root / "aside"
        self.coordination.mkdir(parents=True)
        self.journal.mkdir()
        self.lines: list[bytes] = []

    def has(self, *bodies: str) -> Position:
        """Put lines into the journal."""
        self.lines += MAC.saying(*bodies)(self.end)
        for number, data in laid_out(MAC.start, self.lines).items():
            (self.journal / f"{number:06d}.jsonl").write_bytes(data)
        return self.end

    @property
    def end(self) -> Position:
        return end_of(MAC.start, self.lines)

    def file(self, number: int = 1) -> Path:
        return self.coordination / CHANNEL / f"{number:06d}.jsonl"

    def copied(self) -> "Room":
        """Make the clone's files hold what the journal has."""
        shutil.copytree(self.journal, self.file().parent, dirs_exist_ok=True)
        return self

    def inspect(self, **rest):
        return inspect(str(self.coordination), str(self.journal), CHANNEL, self.end, **rest)

    def mend(self, wanted, name=NAME, grace=0.0):
        return mend(str(self.coordination), name, wanted, str(self.aside), grace=grace)

    def kept(self) -> list[bytes]:
        return sorted(path.read_bytes() for path in self.aside.iterdir()) if self.aside.exists() else []


@pytest.fixture
def room(tmp_path):
    return Room(tmp_path)


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


# Comparing


def test_equal_files_are_the_same(room):
    room.has(*([BIG] * 6), "short")
    assert room.copied().inspect().same


def test_a_channel_without_lines_and_files_is_the_same(room):
    assert room.inspect().same


def test_files_that_lag_behind_or_are_missing_are_told_apart(room):
    room.has(*([BIG] * 6))
    room.copied()
    os.truncate(room.file(1), 100)
    room.file(2).unlink()
    seen = room.inspect()
    assert (seen.behind, seen.missing) == ((NAME,), (f"{CHANNEL}/000002.jsonl",))
    assert not seen.odd
    assert not seen.same


def test_a_folder_that_is_missing_counts_as_missing_files(room):
    room.has("one")
    assert room.inspect().missing == (NAME,)
    shutil.rmtree(room.coordination)
    assert room.inspect().missing == (NAME,)


def test_complete_lines_behind_the_journal_are_candidates(room):
    end = room.has("one")
    room.copied()
    made = MAC.lines(end, 2)
    append(room.file(), b"".join(made) + b"half")
    os.utime(room.file(), (OLD, OLD))
    seen = room.inspect()
    assert seen.candidates == tuple(raw[:-1] for raw in made)
    assert seen.loose is not None
    assert (seen.loose.offset, seen.loose.length) == (end.size + len(b"".join(made)), 4)
    assert seen.loose.age == pytest.approx(time.time() - OLD, abs=60)


def test_candidates_may_stand_in_a_segment_that_the_journal_does_not_have(room):
    end = room.has(*([BIG] * 4))
    room.copied()
    (line,) = MAC.lines(end, 1, BIG)
    append(room.file(2), line)
    seen = room.inspect()
    assert seen.candidates == (line[:-1],)
    assert seen.beyond == (f"{CHANNEL}/000002.jsonl",)


def test_a_channel_that_only_the_clone_has_is_all_candidates(room):
    room.file().parent.mkdir(parents=True)
    (line,) = MAC.lines(MAC.start, 1)
    append(room.file(), line)
    assert room.inspect().candidates == (line[:-1],)


def test_a_change_inside_is_odd_from_there_on(room):
    end = room.has("one", "two", "three")
    room.copied()
    data = room.file().read_bytes()
    room.file().write_bytes(data.replace(b"two", b"TWO"))
    (odd,) = room.inspect().odd
    assert (odd.kind, odd.path, odd.offset, odd.offset + odd.length) == ("differs", NAME, data.find(b"two"), end.size)


def test_more_bytes_in_a_segment_that_is_not_the_last_are_surplus(room):
    room.has(*([BIG] * 6))
    room.copied()
    append(room.file(1), b"junk\n")
    assert [(odd.kind, odd.length) for odd in room.inspect().odd] == [("surplus", 5)]


@pytest.mark.parametrize("kind", ["link", "folder", "fifo", "socket folder"])
def test_what_is_no_file_is_odd_and_never_opened_through(room, kind):
    room.has("one")
    room.copied()
    spoil(room, kind)
    assert [odd.kind for odd in room.inspect().odd] == ["not-a-file"]


def spoil(room, kind):
    path = room.file()
    if kind == "socket folder":
        shutil.move(path.parent, room.root / "elsewhere")
        path.parent.symlink_to(room.root / "elsewhere")
        return
    path.unlink()
    if kind == "link":
        (room.root / "target").write_bytes(b"precious\n")
        path.symlink_to(room.root / "target")
    elif kind == "folder":
        path.mkdir()
        (path / "inside").write_bytes(b"precious\n")
    else:
        os.mkfifo(path)


def test_an_overlong_line_is_not_read_into_memory_and_later_lines_are_still_seen(room):
    import tracemalloc

    end = room.has("one")
    room.copied()
    size = 200_000_000
    with room.file().open("ab") as file:
        file.truncate(end.size + size)  # zeros, without a newline
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + MAC.line(end, "later"))
    tracemalloc.start()
    seen = room.inspect()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(odd.kind, odd.offset, odd.length) for odd in seen.odd] == [("overlong", end.size, size + 1)]
    assert seen.candidates == (MAC.line(end, "later")[:-1],)
    assert peak < 8_000_000


@pytest.mark.parametrize(("length", "kind"), [(LINE_MAX - 1, None), (LINE_MAX, "overlong")])
def test_the_limit_of_a_line_counts_its_newline(room, length, kind):
    room.has("one")
    room.copied()
    append(room.file(), b"y" * length + b"\n")
    seen = room.inspect()
    assert [odd.kind for odd in seen.odd] == ([kind] if kind else [])
    assert len(seen.candidates) == (0 if kind else 1)


def test_an_unterminated_end_that_can_be_no_line_any_more_is_odd(room):
    room.has("one")
    room.copied()
    append(room.file(), b"y" * LINE_MAX)
    seen = room.inspect()
    assert (seen.loose, seen.odd[0].kind) == (None, "overlong")


def test_a_flood_is_cut_off(room):
    room.has("one")
    room.copied()
    append(room.file(), b"\n" * 1_000_000)
    seen = room.inspect()
    assert len(seen.candidates) <= mending.CANDIDATES_MAX // 256 + (1 << 18)
    assert seen.odd[-1].kind == "surplus"


def test_a_file_that_did_not_change_is_not_read_again(room, monkeypatch):
    room.has(*([BIG] * 6))
    room.copied()
    for path in room.file().parent.iterdir():
        os.utime(path, (OLD, OLD))
    monkeypatch.setattr(mending, "_RACY_NS", 0)
    signatures = Signatures()
    assert room.inspect(signatures=signatures).same
    with monkeypatch.context() as patch:
        patch.setattr(mending, "_compare", lambda *args: pytest.fail("a file was read"))
        assert room.inspect(signatures=signatures).same
    data = room.file(1).read_bytes()
    room.file(1).write_bytes(data[:50] + b"!" + data[51:])
    os.utime(room.file(1), (OLD, OLD))  # same size, same inode, same mtime: the change time tells
    assert [odd.offset for odd in room.inspect(signatures=signatures).odd] == [50]


def test_a_journal_that_grew_has_its_unchanged_file_looked_at(room, monkeypatch):
    monkeypatch.setattr(mending, "_RACY_NS", 0)
    room.has("one")
    signatures = Signatures()
    assert room.copied().inspect(signatures=signatures).same
    room.has("two")
    assert room.inspect(signatures=signatures).behind == (NAME,)


# Signatures


def test_signatures_notice_every_kind_of_change(tmp_path, monkeypatch):
    monkeypatch.setattr(mending, "_RACY_NS", 0)
    path = tmp_path / "file"
    signatures = Signatures()
    assert signatures.changed(str(path))
    signatures.remember(str(path))
    assert not signatures.changed(str(path)), "a file that is still missing"
    changes = [
        lambda: path.write_bytes(b"one"),
        lambda: append(path, b"two"),
        lambda: path.write_bytes(b"onetwx"),
        lambda: (shutil.copy2(path, tmp_path / "new"), (tmp_path / "new").rename(path)),
        lambda: path.unlink(),
        lambda: path.symlink_to(tmp_path),
    ]
    for change in changes:
        change()
        assert signatures.changed(str(path))
        signatures.remember(str(path))
        assert not signatures.changed(str(path))
    assert signatures.changed(str(path), "another tag")
    signatures.forget(str(path))
    assert signatures.changed(str(path))


def test_a_file_that_changed_just_now_is_looked_at_again(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    signatures = Signatures()
    signatures.remember(str(path))
    assert signatures.changed(str(path)), "it can change again within the same tick of its clock"
    os.utime(path, (OLD, OLD))
    signatures.remember(str(path))
    assert not signatures.changed(str(path))


# Mending


@contextmanager
def same_inode(path):
    """Hold a file open across a block: it is still the one that stands there, and grew or was rewritten in place."""
    with path.open("rb") as reader:
        yield reader
        assert os.path.samestat(os.fstat(reader.fileno()), path.stat())


def test_a_file_that_is_right_is_not_written(room):
    room.has("one")
    room.copied()
    os.utime(room.file(), (OLD, OLD))
    before = room.file().stat()
    assert room.mend(room.file().read_bytes()).action == "unchanged"
    assert (room.file().stat().st_mtime_ns, room.file().stat().st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)


def test_a_missing_file_and_its_folders_are_made(room):
    wanted = MAC.line(MAC.start)
    shutil.rmtree(room.coordination)
    assert room.mend(wanted).action == "created"
    assert room.file().read_bytes() == wanted
    assert room.mend(b"text", ".gitattributes").action == "created"
    assert room.mend(None, "spark/mac/000001.jsonl").action == "unchanged"
    assert not (room.coordination / "spark").exists()


def test_appending_looks_like_appending_to_somebody_who_tails(room, monkeypatch):
    room.has(*([BIG] * 3))
    wanted = (room.journal / "000001.jsonl").read_bytes()
    room.file().parent.mkdir(parents=True)
    room.file().write_bytes(wanted[: 60_000 + 17])
    monkeypatch.setattr(os, "ftruncate", lambda *args: pytest.fail("the file was shortened"))
    os.utime(room.file(), (OLD, OLD))
    with same_inode(room.file()) as reader:
        assert reader.read() == wanted[: 60_000 + 17]
        assert room.mend(wanted).action == "appended"
        assert reader.read() == wanted[60_000 + 17 :]
    assert room.kept() == []


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda data: data.replace(b"two", b"TWO"), id="a word changed"),
        pytest.param(lambda data: data.replace(b"two", b"2"), id="shorter"),
        pytest.param(lambda data: data + b"junk\n", id="a line more"),
        pytest.param(lambda data: data + b"torn", id="torn"),
        pytest.param(lambda data: b"\n".join(reversed(data.split(b"\n"))), id="reordered"),
        pytest.param(lambda data: b"entirely different\n", id="replaced"),
        pytest.param(lambda data: data[: len(data) // 2] + b"\n", id="cut and ended"),
        pytest.param(lambda data: b"\0" * 5_000_000, id="much larger"),
    ],
)
def test_what_differs_is_kept_and_rewritten_on_the_same_inode(room, edit):
    room.has("one", "two", "three")
    wanted = (room.journal / "000001.jsonl").read_bytes()
    room.copied()
    with room.file().open("r+b") as file:
        spoiled = edit(wanted)
        file.write(spoiled)
        file.truncate()
    with same_inode(room.file()):
        done = room.mend(wanted)
    assert room.file().read_bytes() == wanted
    assert done.action == "rewritten"
    assert done.aside is not None
    assert spoiled[: done.aside.offset] + Path(done.aside.path).read_bytes() == spoiled
    assert done.aside.sha256 == sha256(spoiled[done.aside.offset :]).hexdigest()
    assert room.mend(wanted).action == "unchanged"


@given(present=st.binary(max_size=200), wanted=st.lists(st.binary(max_size=50)).map(b"\n".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_content_becomes_what_is_wanted_and_nothing_of_it_is_lost(room, present, wanted):
    room.file().parent.mkdir(parents=True, exist_ok=True)
    room.file().write_bytes(present)
    with same_inode(room.file()):
        done = room.mend(wanted)
    assert room.file().read_bytes() == wanted
    kept = Path(done.aside.path).read_bytes() if done.aside else b""
    offset = done.aside.offset if done.aside else len(present)
    assert present == wanted[:offset] + kept


def test_at_every_moment_the_file_is_a_beginning_of_the_right_one(room, monkeypatch):
    room.has("one", "two", "three")
    wanted = (room.journal / "000001.jsonl").read_bytes()
    room.copied()
    room.file().write_bytes(wanted.replace(b"two", b"TWO"))
    states = []
    for name in ("ftruncate", "write"):
        real = getattr(os, name)

        def call(*args, real=real):
            done = real(*args)
            states.append(room.file().read_bytes())
            return done

        monkeypatch.setattr(os, name, call)
    room.mend(wanted)
    assert all(wanted.startswith(state) or b"TWO" in state for state in states)
    assert states[-1] == wanted


@pytest.mark.parametrize("with_wanted", [True, False])
def test_an_unterminated_end_has_a_time_of_grace(room, with_wanted):
    """D8: half a line, and the rest ten seconds later."""
    room.has("one")
    room.copied()
    wanted = room.file().read_bytes()
    line = MAC.line(room.end, "by hand")
    append(room.file(), line[:40])
    more = wanted + MAC.line(room.end, "sent meanwhile") if with_wanted else wanted
    assert room.mend(more, grace=60).action == "waiting"
    append(room.file(), line[40:])
    assert room.inspect().candidates == (line[:-1],)
    append(room.file(), b"never finished")
    os.utime(room.file(), (OLD, OLD))
    done = room.mend(more, grace=60)
    assert done.action == "rewritten"
    assert room.kept() == [line + b"never finished"]
    assert done.aside.offset == len(wanted)
    assert room.file().read_bytes() == more


def test_a_time_in_the_future_does_not_keep_an_end_for_ever(room, monkeypatch):
    room.has("one")
    room.copied()
    wanted = room.file().read_bytes()
    append(room.file(), b"torn")
    os.utime(room.file(), (4_000_000_000, 4_000_000_000))
    assert room.mend(wanted, grace=60).action == "waiting", "its change time is believed"
    monkeypatch.setattr(time, "time", lambda: OLD)
    assert room.mend(wanted, grace=60).action == "rewritten"


@pytest.mark.parametrize("kind", ["link", "folder", "fifo", "socket folder"])
def test_what_is_no_file_is_moved_out_of_the_way_and_nothing_behind_it_touched(room, kind):
    room.has("one")
    wanted = (room.journal / "000001.jsonl").read_bytes()
    room.copied()
    spoil(room, kind)
    done = room.mend(wanted)
    assert (done.action, room.file().read_bytes()) == ("created", wanted)
    assert not room.file().is_symlink()
    assert done.moved is not None
    assert os.path.lexists(done.moved)
    for name in ("target", "elsewhere/000001.jsonl"):
        if (room.root / name).exists():
            assert (room.root / name).read_bytes() in (b"precious\n", wanted)
    if kind == "folder":
        assert (Path(done.moved) / "inside").read_bytes() == b"precious\n"


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_things_are_moved_to_another_disk_as_well(room, kind):
    room.aside = Path(f"/dev/shm/wire-test-{os.getpid()}")
    room.has("one")
    room.copied()
    spoil(room, kind)
    try:
        assert os.path.lexists(room.mend(b"x\n").moved)
    finally:
        shutil.rmtree(room.aside)


def test_a_file_in_the_way_of_a_folder_is_moved(room):
    (room.coordination / "mac").write_bytes(b"a file")
    assert room.mend(b"x\n").action == "created"
    assert room.kept() == [b"a file"]


def test_a_file_that_must_not_be_is_kept_and_removed(room):
    room.file().parent.mkdir(parents=True)
    room.file(7).write_bytes(b"extra\n")
    assert room.mend(None, f"{CHANNEL}/000007.jsonl").action == "removed"
    assert not room.file(7).exists()
    assert room.kept() == [b"extra\n"]
    room.file(7).write_bytes(b"extra, not finished")
    assert room.mend(None, f"{CHANNEL}/000007.jsonl", grace=60).action == "waiting"
    room.file(7).write_bytes(b"")
    assert room.mend(None, f"{CHANNEL}/000007.jsonl").action == "removed"


def test_nothing_is_cut_when_the_copy_does_not_fit(room, monkeypatch):
    room.has("one")
    room.copied()
    wanted = room.file().read_bytes()
    append(room.file(), b"junk\n")
    spoiled = room.file().read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("wire.store.segments.write_all", full)
        with pytest.raises(DiskFull):
            room.mend(wanted)
    assert room.file().read_bytes() == spoiled
    assert room.kept() == []
    with monkeypatch.context() as patch:
        patch.setattr(mending, "write_all", full)
        with pytest.raises(DiskFull, match="beginning"):
            room.mend(wanted.replace(b"one", b"1") + wanted)
    assert wanted.startswith(room.file().read_bytes())
    assert room.mend(wanted).action == "appended"


def test_somebody_who_writes_meanwhile_is_not_overwritten(room, monkeypatch):
    room.has("one")
    room.copied()
    wanted = room.file().read_bytes()
    append(room.file(), b"junk\n")
    real = mending.keep
    rounds = []

    def keep(*args):
        if len(rounds) < limit:
            append(room.file(), b"more\n")
        rounds.append(real(*args))
        return rounds[-1]

    monkeypatch.setattr(mending, "keep", keep)
    limit = 1
    done = room.mend(wanted)
    assert (done.action, len(rounds)) == ("rewritten", 2)
    assert Path(done.aside.path).read_bytes() == b"junk\nmore\n"
    append(room.file(), b"junk\n")
    limit = 100
    with pytest.raises(StoreError) as caught:
        room.mend(wanted)
    assert caught.value.reason == "view-busy"
    assert room.file().read_bytes().startswith(wanted + b"junk\nmore\n")


# Reading


class Elsewhere:
    """A source that has the right bytes, as git's copy has."""

    def __init__(self, segments):
        self.segments = segments
        self.asked = []

    def read(self, segment):
        self.asked.append(segment)
        return self.segments.get(segment)

    def name(self, segment):
        return f"git:{segment}"


def clone(room):
    return CloneSource(str(room.coordination), CHANNEL)


def after(room, cursor=MAC.start, accepted=None, sources=None, **rest):
    return list(
        reading.lines_after(
            sources or [clone(room)], WIRE, CHANNEL, accepted=accepted or room.end, cursor=cursor, **rest
        )
    )


def newest(room, count, accepted=None, **rest):
    return list(reading.newest([clone(room)], WIRE, CHANNEL, count, accepted=accepted or room.end, **rest))


def bodies(room):
    return [raw[:-1] for raw in room.lines]


def test_lines_behind_a_cursor_are_read_in_order(room):
    room.has(*([BIG] * 9), *["short"] * 40)
    room.copied()
    for cursor in (0, 1, 3, 4, 5, 8, 9, 48, 49):
        position = end_of(MAC.start, room.lines[:cursor])
        read = after(room, position)
        assert [item.line.raw for item in read] == bodies(room)[cursor:]
        assert [item.after for item in read] == [
            end_of(MAC.start, room.lines[: n + 1]) for n in range(cursor, len(room.lines))
        ]


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9, 10, 1000])
def test_the_newest_lines_are_read_oldest_first(room, count):
    room.has(*([BIG] * 9))
    room.copied()
    assert [item.line.raw for item in newest(room, count)] == (bodies(room)[-count:] if count else [])


def test_nothing_new_costs_no_reading(room):
    end = room.has("one")
    source = Elsewhere({})
    assert after(room, end, sources=[source]) == []
    assert source.asked == []


def test_few_lines_of_a_long_channel_read_few_segments(room):
    end = room.has(*([BIG] * 40))
    source = Elsewhere(laid_out(MAC.start, room.lines))
    assert len(list(reading.newest([source], WIRE, CHANNEL, 2, accepted=end))) == 2
    assert source.asked == [10]
    source.asked.clear()
    assert reading.line_at([source], WIRE, CHANNEL, 37, accepted=end).line.seq == 37
    assert source.asked == [10]
    assert reading.line_at([source], WIRE, CHANNEL, 41, accepted=end) is None
    assert reading.line_at([source], WIRE, CHANNEL, 0, accepted=end) is None


def test_what_stands_behind_the_accepted_end_is_not_shown(room):
    accepted = room.has(*([BIG] * 4), "accepted")
    room.has("not accepted yet")
    room.copied()
    append(room.file(1), b"junk of somebody\nand half")
    assert [item.line.seq for item in after(room, accepted=accepted)] == [1, 2, 3, 4, 5]
    assert newest(room, 1, accepted=accepted)[0].after == accepted


@pytest.mark.parametrize("where", [1, 2, 3])
@pytest.mark.parametrize("how", ["a bit", "cut", "missing", "link", "inserted", "emptied"])
def test_no_changed_byte_is_ever_shown(room, where, how):
    room.has(*([BIG] * 10))
    room.copied()
    path, data = room.file(where), room.file(where).read_bytes()
    if how == "a bit":
        path.write_bytes(data[:70_000] + bytes([data[70_000] ^ 1]) + data[70_001:])
    elif how == "cut":
        os.truncate(path, 70_000)
    elif how == "missing":
        path.unlink()
    elif how == "link":
        path.rename(room.root / "target")
        path.symlink_to(room.root / "target")
    elif how == "inserted":
        path.write_bytes(b"inserted\n" + data)
    else:
        path.write_bytes(b"")
    with pytest.raises(IntegrityError) as caught:
        after(room)
    assert caught.value.reason == "view-damaged"
    assert str(path) in str(caught.value)
    assert "byte" in str(caught.value)
    told = []
    source = Elsewhere(laid_out(MAC.start, room.lines))
    read = after(room, sources=[clone(room), source], on_damage=told.append)
    assert [item.line.raw for item in read] == bodies(room)
    assert set(source.asked) == {where}
    assert {damage.name for damage in told} == {str(path)}


def test_the_byte_that_differs_is_named_by_its_line(room):
    ends = [end_of(MAC.start, MAC.lines(MAC.start, n)) for n in range(4)]
    room.has("line 1", "line 2", "line 3")
    room.copied()
    room.file().write_bytes(room.file().read_bytes().replace(b"line 2", b"line X"))
    with pytest.raises(IntegrityError) as caught:
        after(room)
    assert caught.value.details["damage"][0]["offset"] == ends[1].size


def test_a_forged_end_that_is_linked_properly_is_not_shown(room):
    """Somebody replaced the last lines by others that follow each other, before anything of them was handed out."""
    end = room.has("one", "two", "three")
    room.copied()
    start = end_of(MAC.start, room.lines[:1])
    forged = Author(CHANNEL, key="thief").lines(start, 2)
    room.file().write_bytes(room.lines[0] + b"".join(forged))
    with pytest.raises(IntegrityError):
        reading.lines_after([clone(room)], WIRE, CHANNEL, accepted=end, cursor=start)


def test_a_change_while_lines_are_handed_out_is_noticed(room):
    room.has(*([BIG] * 10))
    room.copied()
    lines = reading.lines_after([clone(room)], WIRE, CHANNEL, accepted=room.end, cursor=MAC.start)
    assert next(lines).line.seq == 1
    room.file(2).write_bytes(room.file(2).read_bytes().replace(b"x", b"y"))
    with pytest.raises(IntegrityError) as caught:
        list(lines)
    assert caught.value.reason == "view-damaged"


@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param(lambda room: room.end._replace(seq=room.end.seq + 1), id="beyond the end"),
        pytest.param(lambda room: room.end._replace(head="0" * 64), id="another end"),
        pytest.param(lambda room: end_of(MAC.start, MAC.lines(MAC.start, 1, "other")), id="another line 1"),
        pytest.param(lambda room: Position.start("0" * 32, CHANNEL), id="the start of another wire"),
    ],
)
def test_a_cursor_that_is_not_on_the_chain_is_a_lost_place(room, cursor):
    room.has("one", "two", "three")
    room.copied()
    with pytest.raises(LostPlace) as caught:
        after(room, cursor(room))
    assert caught.value.reason == "lost-place"
    assert caught.value.exit_status == 4


def test_damage_is_told_before_a_place_is_called_lost(room):
    cursor = room.has("one")
    room.has("two")
    room.copied()
    room.file().write_bytes(room.file().read_bytes().replace(b"two", b"TWO"))
    with pytest.raises(IntegrityError) as caught:
        after(room, cursor)
    assert caught.value.reason == "view-damaged"


def test_the_place_of_a_cursor_does_not_count_only_its_line(room):
    cursor = room.has("one")
    room.has("two")
    room.copied()
    assert [item.line.seq for item in after(room, cursor._replace(segment=9, size=77))] == [2]


def test_a_channel_that_does_not_begin_with_the_genesis_is_refused(room):
    other = Author(CHANNEL, wire="f" * 32)
    line = other.line(other.start)
    accepted = end_of(other.start, [line])
    room.file().parent.mkdir(parents=True)
    room.file().write_bytes(line)
    with pytest.raises(IntegrityError):
        list(reading.newest([clone(room)], WIRE, CHANNEL, 5, accepted=accepted))


def test_reading_goes_on_while_every_lock_is_held(room):
    end = room.has("one")
    room.copied()
    with files.lock_folder(str(room.file().parent), what="x"), files.lock_folder(str(room.journal), what="y"):
        assert len(after(room, accepted=end)) == 1


def test_no_more_of_a_file_is_read_than_a_segment_may_have(room):
    room.has("one")
    room.copied()
    with room.file().open("ab") as file:
        file.truncate(300_000_000)
    assert len(read_segment(str(room.coordination), CHANNEL, 1)) == 262_144
    assert len(after(room)) == 1
