"""The rules of the suite itself, each shown by a small suite that breaks it; and the environment's own script."""

import itertools
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import wire
from support import gitcmd
from support.checkout import ROOT
from wire import errors

SUITE = """
import sys, time
import pytest

def test_holds():
    pass

@pytest.mark.skipif(sys.platform != "no such", reason="no such thing here")
def test_marked():
    pass

def test_skips_itself():
    pytest.skip("not today")

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert False
"""


def run_suite(folder: Path, *args: str, **environ: str) -> tuple[int, str]:
    """Run a suite of its own under the rules of this one's conftest, and return its exit status and output."""
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    tests = folder / "tests"
    tests.mkdir(exist_ok=True)
    for name in ("conftest.py", "support"):
        if not (tests / name).exists():
            (tests / name).symlink_to(ROOT / "tests" / name)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "CI", "WIRE_"))}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", *args],
        cwd=folder,
        env={**kept, **environ},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("workers", "how"), [((), {"CI": "true"}), (("-n", "2"), {"WIRE_NO_SKIP": "1"})], ids=["alone", "xdist"]
)
def test_a_skip_fails_where_none_may_be(tmp_path, workers, how):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_suite.py").write_text(SUITE)
    status, output = run_suite(tmp_path, *workers, **how)
    assert status == 1, output
    assert "no such thing here" in output
    assert "not today" in output
    assert "1 failed, 1 passed, 1 xfailed, 1 error" in output


def test_a_skip_is_a_skip_elsewhere(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_suite.py").write_text(SUITE)
    status, output = run_suite(tmp_path)
    assert status == 0, output
    assert "1 passed, 2 skipped, 1 xfailed" in output


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_module_that_skips_itself_fails_too(tmp_path, workers):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_suite.py").write_text(SUITE)
    module = "import pytest\npytest.importorskip('no_such_module_anywhere')\n"
    (tmp_path / "tests" / "test_module.py").write_text(module)
    status, output = run_suite(tmp_path, *workers, CI="true")
    assert status != 0, output
    assert "no_such_module_anywhere" in output


def test_sizes_are_printed(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_suite.py").write_text(
        'from support.sizes import size\nN = size(2, 50, "senders at once")\n\ndef test_n():\n    assert N in (2, 50)\n'
    )
    _, output = run_suite(tmp_path, "-n", "2")
    assert "sizes: ci" in output
    assert "senders at once: 2 (full: 50)" in output
    _, output = run_suite(tmp_path, WIRE_TEST_SIZE="full")
    assert "senders at once: 50\n" in output


def test_an_exclusive_test_has_the_machine_to_itself(tmp_path):
    """Every test notes when it began and ended; an exclusive one overlaps with none."""
    suite = """
import pathlib, time
import pytest

def note():
    begin = time.monotonic()
    time.sleep(0.1)
    return begin

@pytest.mark.parametrize("n", range(12))
def test_shared(n, record_property):
    record_property("begin", note())
    record_property("end", time.monotonic())

@pytest.mark.exclusive
@pytest.mark.parametrize("n", range(3))
def test_alone(n, record_property):
    record_property("begin", note())
    record_property("end", time.monotonic())
"""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_suite.py").write_text(suite)
    status, output = run_suite(tmp_path, "-n", "3", "--dist", "each", "--tx", "3*popen", "--junitxml=out.xml")
    assert status == 0, output
    spans = []
    for case in ET.parse(tmp_path / "out.xml").iter("testcase"):
        times = {p.get("name"): float(p.get("value", "0")) for p in case.iter("property")}
        spans.append((times["begin"], times["end"], case.get("name", "").startswith("test_alone")))
    spans.sort()
    overlaps = [(a, b) for a, b in itertools.pairwise(spans) if b[0] < a[1]]
    assert overlaps, "the shared tests should run side by side"
    assert not any(a[2] or b[2] for a, b in overlaps)


def test_the_root_is_not_importable():
    assert str(ROOT) not in sys.path
    with pytest.raises(ModuleNotFoundError):
        __import__("daemon")


# The environment


def make_venv(python: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "tools/make-venv", python, folder], capture_output=True, text=True)


def pretend(folder: Path, before: str) -> Path:
    """Return a Python that is this one, after it ran some code: one without a module, or of another age."""
    program = folder / "python3"
    start = f"import sys\n{before}\nexec(sys.argv.pop(1))"
    program.write_text(f"#!/bin/sh\nshift\nexec {sys.executable} -c '{start}' \"$@\"\n")
    program.chmod(0o755)
    return program


def test_python_without_ensurepip_gets_one_line_that_helps(tmp_path):
    """As on a Debian without python3-venv: a clear line, no traceback, nothing left behind."""
    python = pretend(tmp_path, 'sys.modules["ensurepip"] = None')
    done = make_venv(python, tmp_path / "venv")
    assert done.returncode == 1
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert done.stderr.count("\n") == 1
    assert f"apt-get install python{version}-venv" in done.stderr or "'ensurepip' are missing" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_python_that_is_too_old_is_named(tmp_path):
    python = pretend(tmp_path, "sys.version_info = (3, 10, 0)")
    done = make_venv(python, tmp_path / "venv")
    assert done.returncode == 1
    assert done.stderr.startswith(f"make-venv: {python} is Python 3.10, 3.11 or newer is needed")


def test_no_python_at_all_is_said(tmp_path):
    done = make_venv(tmp_path / "nowhere", tmp_path / "venv")
    assert done.returncode == 1
    assert "make PYTHON=" in done.stderr


# The root and the public names


@pytest.mark.parametrize("room", ["daemon", "hooks", "keys", "systemd"])
def test_the_doors_lead_into_the_package(room):
    door = ROOT / room
    assert door.is_symlink()
    assert door.readlink() == Path("wire") / room
    assert (door / "__init__.py").is_file()


def test_every_error_is_a_public_name():
    family = {name for name, value in vars(errors).items() if isinstance(value, type)}
    family &= {name for name in family if issubclass(getattr(errors, name), errors.WireError)}
    assert family <= set(wire.__all__)
    assert all(getattr(wire, name) is getattr(errors, name) for name in family)
    with pytest.raises(AttributeError):
        wire.no_such_name  # noqa: B018


def test_the_package_imports_nothing_by_itself():
    code = "import sys; before = set(sys.modules); import wire; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "['wire']\n"


def test_git_of_the_tests_reads_no_configuration(tmp_path, monkeypatch):
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Somebody Else\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    gitcmd.git(tmp_path, "init", "-q")
    gitcmd.git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
    assert gitcmd.line(tmp_path, "log", "-1", "--format=%an") == "Vera Vandal"
