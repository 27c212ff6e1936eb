"""The places of readers: merged, never lost in silence, and no reader waits for a lock."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.sizes import size
from wire.errors import UsageError
from wire.protocol.chain import Position
from wire.store import cursors
from wire.store.cursors import Cursors
from wire.store.files import locked

SAVERS = size(8, 50, "readers saving one cursor at once")


def at(seq: int) -> Position:
    return Position(seq, f"{seq:064x}", 1, seq * 100)


def test_a_reader_that_never_saved_has_no_place(tmp_path: Path) -> None:
    assert cursors.load(str(tmp_path / "cursors"), "mac", "tail") == Cursors({})
    assert os.listdir(tmp_path) == []


def test_places_come_back_and_are_kept_apart(tmp_path: Path) -> None:
    folder = str(tmp_path / "cursors")
    cursors.save(folder, "mac", "tail", {"spark/mac": at(3)})
    cursors.save(folder, "mac", "tail", {"spark/all": at(7)})
    cursors.save(folder, "mac", "hook", {"spark/mac": at(1)})
    cursors.save(folder, "bot", "tail", {"spark/bot": at(2)})
    assert cursors.load(folder, "mac", "tail").positions == {"spark/mac": at(3), "spark/all": at(7)}
    assert cursors.load(folder, "mac", "hook").positions == {"spark/mac": at(1)}
    assert cursors.readers(folder, "mac") == ["hook", "tail"]
    assert cursors.readers(folder, "nobody") == []
    assert cursors.readers(str(tmp_path / "none"), "mac") == []


def test_a_place_goes_back_only_when_asked(tmp_path: Path) -> None:
    folder = str(tmp_path)
    cursors.save(folder, "mac", "tail", {"spark/mac": at(5), "spark/all": at(5)})
    merged = cursors.save(folder, "mac", "tail", {"spark/mac": at(4), "spark/all": at(6)})
    assert merged.positions == {"spark/mac": at(5), "spark/all": at(6)}
    assert cursors.load(folder, "mac", "tail").positions == merged.positions
    back = cursors.save(folder, "mac", "tail", {"spark/mac": at(1)}, rewind=True)
    assert back.positions == {"spark/mac": at(1), "spark/all": at(6)}
    assert cursors.load(folder, "mac", "tail").positions == back.positions


def test_saving_what_is_saved_writes_nothing(tmp_path: Path) -> None:
    cursors.save(str(tmp_path), "mac", "tail", {"spark/mac": at(5)})
    before = (tmp_path / "mac.tail.json").stat().st_ino
    cursors.save(str(tmp_path), "mac", "tail", {"spark/mac": at(5)})
    cursors.save(str(tmp_path), "mac", "tail", {})
    assert (tmp_path / "mac.tail.json").stat().st_ino == before


def test_what_was_read_out_of_turn_stands_beyond_until_the_gap_closes(tmp_path: Path) -> None:
    folder = str(tmp_path)
    cursors.save(folder, "mac", "tail", {"spark/mac": at(2)}, beyond={"spark/mac": {4: "4" * 64, 2: "2" * 64}})
    cursors.save(folder, "mac", "tail", {}, beyond={"spark/mac": {6: "6" * 64}, "spark/all": {9: "9" * 64}})
    found = cursors.load(folder, "mac", "tail")
    assert found.positions == {"spark/mac": at(2)}
    assert found.beyond == {"spark/mac": {4: "4" * 64, 6: "6" * 64}, "spark/all": {9: "9" * 64}}
    cursors.save(folder, "mac", "tail", {"spark/mac": at(4)})
    assert cursors.load(folder, "mac", "tail").beyond == {"spark/mac": {6: "6" * 64}, "spark/all": {9: "9" * 64}}
    cursors.save(folder, "mac", "tail", {"spark/mac": at(6), "spark/all": at(9)})
    assert cursors.load(folder, "mac", "tail") == Cursors({"spark/all": at(9), "spark/mac": at(6)})


def test_what_stands_beyond_is_bounded(tmp_path: Path) -> None:
    many = {n: f"{n:064x}" for n in range(2, cursors.BEYOND_MAX + 12)}
    cursors.save(str(tmp_path), "mac", "tail", {}, beyond={"spark/mac": many})
    kept = cursors.load(str(tmp_path), "mac", "tail").beyond["spark/mac"]
    assert len(kept) == cursors.BEYOND_MAX
    assert max(kept) == max(many)


SAVE = """
import sys
from wire.protocol.chain import Position
from wire.store import cursors
base = int(sys.argv[2])
for seq in range(base, base + 5):
    cursors.save(sys.argv[1], "mac", "tail", {f"spark/c{seq % 3}": Position(seq, "0" * 64, 1, 0)})
"""


def test_readers_that_save_at_once_never_bring_each_other_back(tmp_path: Path) -> None:
    bases = range(10, 10 + 5 * SAVERS, 5)
    savers = [subprocess.Popen([sys.executable, "-c", SAVE, tmp_path, str(base)]) for base in bases]
    assert [saver.wait() for saver in savers] == [0] * SAVERS
    last = bases[-1] + 4
    found = cursors.load(str(tmp_path), "mac", "tail").positions
    assert sorted(position.seq for position in found.values()) == [last - 2, last - 1, last]


GOOD = json.dumps({"v": 1, "channels": {"spark/mac": [3, "a" * 64, 1, 300]}}).encode()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="0 bytes"),
        pytest.param(bytes(100), id="NUL"),
        pytest.param(GOOD[:30], id="half JSON"),
        pytest.param(GOOD + b"}", id="too much"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="an empty object"),
        pytest.param(GOOD.replace(b'"v": 1', b'"v": 2'), id="newer"),
        pytest.param(GOOD.replace(b"spark/mac", b"spark/../mac"), id="no channel"),
        pytest.param(GOOD.replace(b"[3,", b"[-3,"), id="a negative number"),
        pytest.param(GOOD.replace(b"[3,", b"[true,"), id="a bool"),
        pytest.param(GOOD.replace(b"aaaa", b"aaa"), id="a short head"),
        pytest.param(GOOD.rstrip()[:-1] + b',"beyond":{"spark/mac":{"4":"abc"}}}', id="a short head beyond"),
        pytest.param(GOOD.rstrip()[:-1] + b',"beyond":{"../mac":{}}}', id="no channel beyond"),
        pytest.param(GOOD.rstrip()[:-1] + b',"beyond":[]}', id="a list beyond"),
        pytest.param(b'{"v":1,"channels":' + b"[" * 2000 + b"]" * 2000 + b"}", id="deep"),
    ],
)
def test_a_damaged_place_is_moved_aside_and_told_once(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "mac.tail.json").write_bytes(data)
    found = cursors.load(str(tmp_path), "mac", "tail")
    assert found.lost
    assert found.positions == {}
    assert found.why
    assert found.aside
    assert found.aside.startswith(str(tmp_path / "mac.tail.json.corrupt-"))
    assert Path(found.aside).read_bytes() == data
    assert cursors.load(str(tmp_path), "mac", "tail") == Cursors({})
    assert cursors.readers(str(tmp_path), "mac") == []


def test_saving_over_a_damaged_place_tells_as_well(tmp_path: Path) -> None:
    (tmp_path / "mac.tail.json").write_bytes(b"\0")
    saved = cursors.save(str(tmp_path), "mac", "tail", {"spark/mac": at(2)})
    assert saved.lost
    assert saved.aside
    assert saved.positions == {"spark/mac": at(2)}
    assert cursors.load(str(tmp_path), "mac", "tail") == Cursors({"spark/mac": at(2)})


def test_readers_wait_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tmp_path)
    cursors.save(folder, "mac", "tail", {"spark/mac": at(5)})
    (tmp_path / "mac.hook.json").write_bytes(b"\0")
    monkeypatch.setattr(cursors, "_SHORT_WAIT", 0.05)
    with locked(folder, what="the test"):
        assert cursors.load(folder, "mac", "tail").positions == {"spark/mac": at(5)}
        lost = cursors.load(folder, "mac", "hook")
        assert lost.lost
        assert lost.aside is None
    assert cursors.load(folder, "mac", "hook").aside


@pytest.mark.parametrize(("agent", "reader"), [("../mac", "tail"), ("mac", "../tail"), ("mac", ""), ("mac", "a.b")])
def test_names_never_leave_the_folder(tmp_path: Path, agent: str, reader: str) -> None:
    with pytest.raises(UsageError):
        cursors.load(str(tmp_path), agent, reader)
    with pytest.raises(UsageError):
        cursors.save(str(tmp_path), agent, reader, {})
    with pytest.raises(UsageError):
        cursors.save(str(tmp_path), "mac", "tail", {"../x": at(1)})
    assert os.listdir(tmp_path) == []
