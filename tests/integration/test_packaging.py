"""What is published: the sdist, the wheel built from it, and a command line that runs from the unpacked wheel.

A build backend that walks the root follows the links `daemon`, `keys`, `hooks` and `systemd`, and may leave out the
rooms they point to without a word. Only the wheel that was made from the sdist shows it.
"""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import wire
from support.checkout import ROOT

SOURCES = {
    file.relative_to(ROOT).as_posix()
    for file in (ROOT / "wire").rglob("*")
    if file.is_file() and "__pycache__" not in file.parts
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build both and return their paths."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir", folder, ROOT],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def unpacked(built, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(built[1]) as archive:
        archive.extractall(folder)
    return folder


def test_the_sdist_has_every_source_and_no_door(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= SOURCES
    assert not {name for name in names if name.split("/")[0] in {"daemon", "keys", "hooks", "systemd"}}
    assert names >= {"LICENSE", "Makefile", "pyproject.toml", "tests/conftest.py", "tools/floors.py"}


def test_the_wheel_from_the_sdist_has_every_source_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == SOURCES


def test_the_command_line_runs_from_the_unpacked_wheel(unpacked, tmp_path):
    code = "import sys, wire, wire.cli; print(wire.__file__, file=sys.stderr); wire.cli.main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "send" in done.stdout
    assert done.stderr == f"{unpacked / 'wire' / '__init__.py'}\n"


def test_what_these_tests_test_is_installed():
    """Not the source beside them, unless through an editable install."""
    installed = Path(wire.__file__).parent
    assert installed != ROOT / "wire" or str(ROOT) not in sys.path
