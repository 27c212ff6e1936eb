"""SQLite files of ours: what can always be thrown away is never in anybody's way."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.small_disk import on_small_disk
from wire.errors import Busy, Corrupt, StoreError
from wire.store import sqlite as ours

META = {"version": "1", "wire": "ab" * 16}
SCHEMA = "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL); CREATE TABLE rows (number INTEGER)"


def opened(path: Path, meta: dict[str, str] = META, *, anew: bool = False) -> tuple[sqlite3.Connection, str | None]:
    return ours.open_file(str(path), meta, SCHEMA, what="the rows", anew=anew)


def add(connection: sqlite3.Connection, numbers: range) -> None:
    with connection:
        connection.executemany("INSERT INTO rows VALUES (?)", ((number,) for number in numbers))


def count(path: Path, connection: sqlite3.Connection) -> int:
    with ours.failures(str(path), "the rows"):
        return connection.execute("SELECT count(*) FROM rows WHERE number > 0").fetchone()[0]


def filled(path: Path, many: int) -> None:
    connection, note = opened(path)
    with closing(connection):
        add(connection, range(1, many + 1))
    assert note is None


def edited(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(statement)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "0 bytes": lambda path: path.write_bytes(b""),
    "NUL": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "text": lambda path: path.write_text("not a database at all, but long enough to be read as one\n" * 20),
    "another database": lambda path: edited(path, "DROP TABLE meta"),
    "another version": lambda path: edited(path, "UPDATE meta SET value = '0' WHERE name = 'version'"),
    "another wire": lambda path: edited(path, "UPDATE meta SET value = 'cd' WHERE name = 'wire'"),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_what_is_not_ours_is_moved_aside_and_told_once(tmp_path: Path, how: str) -> None:
    path = tmp_path / "rows"
    filled(path, 1)
    DAMAGES[how](path)
    data = path.read_bytes()
    (tmp_path / "rows-journal").write_bytes(b"left by a crash")
    connection, note = opened(path)
    with closing(connection):
        assert count(path, connection) == 0
    aside = next(found for found in tmp_path.glob("rows.corrupt-*") if not found.name.endswith("-journal"))
    assert note is not None
    assert str(aside) in note
    assert aside.read_bytes() == data
    assert not (tmp_path / "rows-journal").exists()
    assert oct(path.stat().st_mode)[-3:] == "600"
    filled(path, 1)


def test_damage_found_in_use(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    filled(path, 5000)
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    connection, note = opened(path)
    assert note is None
    with closing(connection), pytest.raises(Corrupt, match=r"the rows in .* are damaged"):
        count(path, connection)
    connection, note = opened(path, anew=True)
    with closing(connection):
        assert count(path, connection) == 0
    assert note


def test_one_in_use_is_not_moved_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "WAIT_SECONDS", 0.05)
    path = tmp_path / "rows"
    filled(path, 1)
    reader, _ = opened(path)
    with closing(reader), closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert count(path, reader) == 1
        with pytest.raises(Busy, match="in use by another process"), ours.failures(str(path), "the rows"):
            add(reader, range(1))
        writer.execute("ROLLBACK")
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Busy):
            count(path, reader)
        with pytest.raises(Busy):
            opened(path)
    assert not list(tmp_path.glob("*corrupt*"))


def test_a_place_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    with pytest.raises(StoreError):
        opened(tmp_path / "rows")


def test_a_full_disk(tmp_path: Path) -> None:
    ran = on_small_disk(
        tmp_path,
        f"""
from wire.errors import DiskFull
from wire.store import sqlite
path = os.path.join(DISK, "rows")
connection, _ = sqlite.open_file(path, {META!r}, {SCHEMA!r}, what="the rows")
def add(many):
    with sqlite.failures(path, "the rows"), connection:
        connection.executemany("INSERT INTO rows VALUES (?)", ((number,) for number in range(many)))
add(10)
fill()
try:
    add(20000)
except DiskFull as error:
    assert "no space left" in error.message
else:
    sys.exit("no error")
count = lambda: connection.execute("SELECT count(*) FROM rows").fetchone()[0]
assert count() == 10
free()
add(20)
assert count() == 30
""",
        kib=256,
    )
    assert ran.returncode == 0, ran.stderr
