"""The index: a hint that can always be thrown away."""

import sqlite3
from pathlib import Path

import pytest

from support.small_disk import on_small_disk
from wire.errors import Busy, Corrupt, StoreError
from wire.store import index as index_module
from wire.store.index import Entry, Index, Spot

WIRE = "ab" * 16


def entry(seq: int, channel: str = "mac/spark", thread: str | None = None) -> Entry:
    return Entry(channel, seq, 1, (seq - 1) * 100, 100, f"{seq:064x}", "message", thread, None, "t")


def opened(path: Path, wire: str = WIRE) -> Index:
    index, note = Index.open(str(path), wire)
    assert note is None
    return index


def test_what_was_added_is_found_also_later(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with opened(path) as index:
        index.add(entry(seq) for seq in range(1, 6))
        index.add([entry(1, "spark/mac", thread="mac/spark/2"), entry(6, thread="mac/spark/2")])
        assert index.locate("mac/spark", 3) == Spot(1, 200, 100)
    with opened(path) as index:
        assert (index.count("mac/spark"), index.last("mac/spark")) == (6, 6)
        assert (index.count("spark/mac"), index.last("spark/mac")) == (1, 1)
        assert (index.count("none/none"), index.last("none/none"), index.locate("none/none", 1)) == (0, 0, None)
        assert index.thread("mac/spark/2") == [("mac/spark", 6), ("spark/mac", 1)]
        index.drop_after("mac/spark", 2)
        assert (index.count("mac/spark"), index.last("mac/spark")) == (2, 2)
        assert index.locate("mac/spark", 3) is None
        index.add([entry(2)._replace(offset=7)])
        assert index.locate("mac/spark", 2) == Spot(1, 7, 100)
    assert oct(path.stat().st_mode)[-3:] == "600"


def test_all_or_none_are_added(tmp_path: Path) -> None:
    with opened(tmp_path / "index") as index:
        with pytest.raises(StoreError):
            index.add([entry(1), entry(2)._replace(head=None)])  # type: ignore[arg-type]  # what must not happen
        assert index.count("mac/spark") == 0


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    match how:
        case "0 bytes":
            path.write_bytes(b"")
        case "NUL":
            path.write_bytes(bytes(len(data)))
        case "half":
            path.write_bytes(data[: len(data) // 2])
        case "text":
            path.write_text("not a database at all, but long enough to be read as one\n" * 20)
        case "another database":
            path.unlink()
            with sqlite3.connect(path) as other:
                other.execute("CREATE TABLE lines (a)")
            other.close()
        case "another version":
            with sqlite3.connect(path) as other:
                other.execute("UPDATE meta SET value = '0' WHERE name = 'version'")
            other.close()


@pytest.mark.parametrize("how", ["0 bytes", "NUL", "half", "text", "another database", "another version"])
def test_what_is_no_index_is_moved_aside_and_told_once(tmp_path: Path, how: str) -> None:
    path = tmp_path / "index"
    with opened(path) as index:
        index.add([entry(1)])
    damage(path, how)
    data = path.read_bytes()
    (tmp_path / "index-journal").write_bytes(b"left by a crash")
    index, note = Index.open(str(path), WIRE)
    with index:
        assert index.count("mac/spark") == 0
        index.add([entry(1)])
    assert note is not None
    aside = next(found for found in tmp_path.glob("index.corrupt-*") if not found.name.endswith("-journal"))
    assert str(aside) in note
    assert aside.read_bytes() == data
    assert not (tmp_path / "index-journal").exists()
    with opened(path) as index:
        assert index.count("mac/spark") == 1


def test_the_index_of_another_wire(tmp_path: Path) -> None:
    opened(tmp_path / "index").close()
    index, note = Index.open(str(tmp_path / "index"), "cd" * 16)
    index.close()
    assert note
    assert "another wire" in note


def test_damage_found_in_use(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with opened(path) as index:
        index.add(entry(seq) for seq in range(1, 2000))
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    index, note = Index.open(str(path), WIRE)
    with index:
        if note is None:
            with pytest.raises(Corrupt) as caught:
                index.count("mac/spark")
            assert caught.value.reason == "index-corrupt"
    anew, note = Index.open(str(path), WIRE, anew=True)
    with anew:
        assert anew.count("mac/spark") == 0
    assert note


@pytest.mark.parametrize(
    "change",
    [
        "segment = 'x'",
        "segment = 0",
        '"offset" = -1',
        "length = 0",
        "length = 1.5",
        "segment = x'ff'",
        "seq = 'a'",
        "channel = x'ff'",
    ],
)
def test_rows_that_somebody_edited_never_raise(tmp_path: Path, change: str) -> None:
    path = tmp_path / "index"
    with opened(path) as index:
        index.add([entry(1)])
    with sqlite3.connect(path) as other:
        other.execute(f"UPDATE lines SET {change}")
    other.close()
    with opened(path) as index:
        assert index.locate("mac/spark", 1) is None
        assert index.last("mac/spark") in (0, 1)
        assert index.count("mac/spark") in (0, 1)


def test_readers_beside_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_WAIT", 0.05)
    path = tmp_path / "index"
    opened(path).close()
    writer = sqlite3.connect(path, isolation_level=None)
    with opened(path) as index:
        writer.execute("BEGIN IMMEDIATE")
        assert index.count("mac/spark") == 0
        with pytest.raises(Busy, match="in use by another process"):
            index.add([entry(1)])
        writer.execute("ROLLBACK")
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Busy):
            index.locate("mac/spark", 1)
        with pytest.raises(Busy):
            Index.open(str(path), WIRE)
    writer.close()
    assert not list(tmp_path.glob("*corrupt*"))


def test_a_place_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    with pytest.raises(StoreError):
        Index.open(str(tmp_path / "index"), WIRE)


def test_a_full_disk(tmp_path: Path) -> None:
    ran = on_small_disk(
        tmp_path,
        """
from wire.errors import DiskFull
from wire.store.index import Entry, Index
index, note = Index.open(os.path.join(DISK, "index"), "ab" * 16)
rows = [Entry("mac/spark", seq, 1, seq, 1, "0" * 64, "message", None, None, "t") for seq in range(1, 2000)]
index.add(rows[:10])
fill()
try:
    index.add(rows)
except DiskFull as error:
    assert "no space left" in error.message
else:
    sys.exit("no error")
assert index.count("mac/spark") == 10
free()
index.add(rows[:20])
assert index.count("mac/spark") == 20
""",
        kib=256,
    )
    assert ran.returncode == 0, ran.stderr
