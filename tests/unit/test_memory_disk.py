"""Where the tests' folders are: in memory alone where there is plenty, and programs may run there."""

import os
from pathlib import Path

import pytest

from support import memory_disk

PLENTY = f"MemTotal: 1 kB\nMemAvailable:   {memory_disk.AVAILABLE >> 10} kB\n"


@pytest.mark.parametrize(
    ("meminfo", "blocks", "flags", "fits"),
    [
        (PLENTY, memory_disk.ROOM // 4096, 0, True),
        (PLENTY, memory_disk.ROOM // 4096 - 1, 0, False),
        (PLENTY, memory_disk.ROOM // 4096, os.ST_NOEXEC, False),
        (PLENTY, memory_disk.ROOM // 4096, os.ST_RDONLY, False),
        (f"MemAvailable: {(memory_disk.AVAILABLE >> 10) - 1} kB\n", memory_disk.ROOM // 4096, 0, False),
        ("MemFree: 1 kB\n", memory_disk.ROOM // 4096, 0, False),
        ("no such file", memory_disk.ROOM // 4096, 0, False),
    ],
    ids=["room", "too small", "no programs", "read only", "memory is needed", "unknown", "not Linux"],
)
def test_where_it_fits(tmp_path: Path, monkeypatch, meminfo, blocks, flags, fits):
    if meminfo != "no such file":
        (tmp_path / "meminfo").write_text(meminfo, "ascii")
    there = os.statvfs_result((4096, 4096, blocks, blocks, blocks, 9, 9, 9, flags, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: there)
    found = memory_disk.find(tmp_path, tmp_path / "meminfo")
    assert found == (tmp_path if fits else None)


def test_nowhere_is_no_place(tmp_path):
    (tmp_path / "meminfo").write_text(PLENTY, "ascii")
    assert memory_disk.find(tmp_path / "shm", tmp_path / "meminfo") is None
