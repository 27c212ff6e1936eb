"""When a line was first seen: appended, cut when torn, found quickly."""

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sizes import size
from support.small_disk import on_small_disk
from wire.errors import StoreError, UsageError
from wire.store import seen
from wire.store.seen import Seen, SeenAt

RECORDS = size(20_000, 100_000, "records of first sight")


def lookup(path: Path, channel: str, seq: int) -> SeenAt | None:
    with Seen(str(path)) as opened:
        return opened.lookup(channel, seq)


def test_nothing_recorded(tmp_path: Path) -> None:
    assert lookup(tmp_path / "seen", "mac/spark", 1) is None
    (tmp_path / "seen").write_bytes(b"")
    assert lookup(tmp_path / "seen", "mac/spark", 1) is None
    with pytest.raises(StoreError, match="cannot read"):
        lookup(tmp_path, "mac/spark", 1)


def test_ranges_of_several_channels(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    seen.append(str(path), "t1", "a" * 40, {"mac/spark": (1, 3), "spark/mac": (1, 1)})
    seen.append(str(path), "t2", "b" * 40, {"mac/spark": (4, 4)})
    seen.append(str(path), "t3", "c" * 40, {})
    seen.append(str(path), "t4", "d" * 40, {"mac/all": (1, 9), "mac/spark": (5, 8)})
    found = {seq: lookup(path, "mac/spark", seq) for seq in range(10)}
    one, two, four = SeenAt("t1", "a" * 40), SeenAt("t2", "b" * 40), SeenAt("t4", "d" * 40)
    assert found == {0: None, 1: one, 2: one, 3: one, 4: two, 5: four, 6: four, 7: four, 8: four, 9: None}
    assert lookup(path, "spark/mac", 1) == one
    assert lookup(path, "mac/all", 9) == four
    assert lookup(path, "spark/all", 1) is None
    assert oct(path.stat().st_mode)[-3:] == "600"


def test_a_follower_takes_in_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    with Seen(str(path)) as opened:
        assert opened.lookup("mac/spark", 1) is None
        seen.append(str(path), "t1", "a" * 40, {"mac/spark": (1, 1)})
        opened.refresh()
        assert opened.lookup("mac/spark", 1) == SeenAt("t1", "a" * 40)
        os.unlink(path)
        opened.refresh()
        assert opened.lookup("mac/spark", 1) is None


def test_numbers_that_come_again_after_a_cut(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    seen.append(str(path), "t1", "a" * 40, {"mac/spark": (1, 10), "spark/mac": (1, 10)})
    seen.cut(str(path), "t2", "mac/spark", 5)
    assert lookup(path, "mac/spark", 5) == SeenAt("t1", "a" * 40)
    assert lookup(path, "mac/spark", 6) is None
    assert lookup(path, "spark/mac", 6) == SeenAt("t1", "a" * 40)
    seen.append(str(path), "t3", "b" * 40, {"mac/spark": (6, 12)})
    seen.cut(str(path), "t4", "mac/spark", 8)
    seen.append(str(path), "t5", "c" * 40, {"mac/spark": (9, 9)})
    expected = {5: "t1", 6: "t3", 8: "t3", 9: "t5"}
    assert {seq: found.time for seq in expected if (found := lookup(path, "mac/spark", seq))} == expected
    assert lookup(path, "mac/spark", 10) is None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), st.booleans()), max_size=40))
def test_looking_up_is_the_same_as_reading_everything(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, bool]]
) -> None:
    path = tmp_path_factory.mktemp("seen") / "seen"
    ends = [0, 0, 0]
    expected: dict[tuple[str, int], str] = {}
    for turn, (number, length, is_cut) in enumerate(steps):
        channel = f"mac/c{number}"
        if is_cut:
            ends[number] = max(0, ends[number] - length)
            seen.cut(str(path), str(turn), channel, ends[number])
            expected = {key: value for key, value in expected.items() if key[0] != channel or key[1] <= ends[number]}
        else:
            seen.append(str(path), str(turn), "c", {channel: (ends[number] + 1, ends[number] + length)})
            expected.update({(channel, ends[number] + n): str(turn) for n in range(1, length + 1)})
            ends[number] += length
    with Seen(str(path)) as opened:
        for number in range(3):
            for seq in range(ends[number] + 3):
                found = opened.lookup(f"mac/c{number}", seq)
                assert (found and found.time) == expected.get((f"mac/c{number}", seq))


@pytest.mark.parametrize("tail", [b'{"t":"t9","com', bytes(5000), b"x" * 9000], ids=["half", "NUL", "long"])
def test_a_torn_tail_is_passed_over_and_cut(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "seen"
    seen.append(str(path), "t1", "a" * 40, {"mac/spark": (1, 3)})
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    with Seen(str(path)) as opened:
        assert opened.lookup("mac/spark", 3) == SeenAt("t1", "a" * 40)
        seen.append(str(path), "t2", "b" * 40, {"mac/spark": (4, 4)})
        assert opened.lookup("mac/spark", 3) == SeenAt("t1", "a" * 40)
    assert path.read_bytes().startswith(whole + b'{"t":"t2"')
    assert lookup(path, "mac/spark", 4) == SeenAt("t2", "b" * 40)
    path.write_bytes(tail)
    assert lookup(path, "mac/spark", 3) is None
    seen.append(str(path), "t2", "b" * 40, {"mac/spark": (4, 4)})
    assert path.read_bytes().startswith(b'{"t":"t2"')


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":"t","commit":"c","channels":{"mac/spark":[5,6]',
        b'{"t":"t","commit":"c","channels":{"mac/spark":[5]}}',
        b'{"t":"t","commit":"c","channels":{"mac/spark":["5",6]}}',
        b'{"t":3,"commit":"c","channels":{"mac/spark":[5,6]}}',
        b'{"t":"t","channels":{"mac/spark":[5,6]}}',
        b'{"t":"t","commit":"c","channels":["mac/spark"],"x":{"mac/spark":[5,6]}}',
        b'{"t":"t","cut":{"mac/spark":"x"}}',
        b'{"t":"t","cut":{"mac/spark":',
        b"\0\0\0",
    ],
)
def test_a_damaged_record_gives_no_answer(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "seen"
    path.write_bytes(line + b"\n")
    assert lookup(path, "mac/spark", 5) is None


def test_what_is_no_channel_or_no_range(tmp_path: Path) -> None:
    path = str(tmp_path / "seen")
    with pytest.raises(UsageError):
        seen.append(path, "t", "c", {'a":[1,1],"x': (1, 1)})
    with pytest.raises(UsageError):
        seen.cut(path, "t", "a/../b", 1)
    for bounds in ((0, 1), (3, 2)):
        with pytest.raises(ValueError, match="mac/spark"):
            seen.append(path, "t", "c", {"mac/spark": bounds})
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_no_half_record(tmp_path: Path) -> None:
    ran = on_small_disk(
        tmp_path,
        """
from wire.errors import DiskFull
from wire.store import seen
path = os.path.join(DISK, "seen")
turn = 0
fill()
free()
try:
    while True:
        turn += 1
        seen.append(path, "t%d" % turn, "c" * 40, {"mac/spark": (turn, turn)})
except DiskFull as error:
    assert "no space left" in error.message
assert open(path, "rb").read().endswith(b"]}}\\n")
with seen.Seen(path) as opened:
    assert opened.lookup("mac/spark", turn - 1).time == "t%d" % (turn - 1)
    assert opened.lookup("mac/spark", turn) is None
""",
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.exclusive
def test_a_long_file_is_searched_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    with path.open("wb") as file:
        for turn in range(1, RECORDS + 1):
            channels = {"mac/spark": [turn, turn]}
            if turn % 10_000 == 7:
                channels["mac/rare"] = [turn // 10_000 + 1] * 2
            record = {"t": f"t{turn}", "commit": "c" * 40, "channels": channels}
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
    with Seen(str(path)) as opened:
        start = time.process_time()
        for seq in range(1, RECORDS + 1, RECORDS // 100):
            found = opened.lookup("mac/spark", seq)
            assert found
            assert found.time == f"t{seq}"
        each = (time.process_time() - start) / 100
        assert opened.lookup("mac/rare", 2) == SeenAt("t10007", "c" * 40)
        assert opened.lookup("mac/none", 1) is None
    # Parsing the records one by one takes some microseconds for each of them.
    assert each < RECORDS * 1e-7
