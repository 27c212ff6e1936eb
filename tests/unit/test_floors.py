"""The import floors hold, and their checker would notice if they did not."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.checkout import ROOT, tool

floors = tool("floors")


def test_the_house_stands():
    assert [str(violation) for violation in floors.check(ROOT)] == []


def plant(root: Path, path: str, source: str) -> list[str]:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source, "utf-8")
    return [str(violation) for violation in floors.check(root)]


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        pytest.param("wire/protocol/line.py", "import wire.store.pin\n", "imports wire.store.pin", id="upward"),
        pytest.param("wire/protocol/line.py", "from wire import store\n", "imports wire.store", id="from-the-package"),
        pytest.param("wire/errors.py", "from wire.protocol import names\n", "may know nobody", id="ground"),
        pytest.param(
            "wire/keys/trust.py",
            "def f():\n    from wire.store import pin\n",
            ":2: imports",
            id="in-a-function",
        ),
        pytest.param(
            "wire/store/pin.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from wire.gitio import Git\n",
            "imports wire.gitio.Git",
            id="for-types-only",
        ),
        pytest.param("wire/store/a.py", "from ..daemon import cycle\n", "imports wire.daemon.cycle", id="relative"),
        pytest.param("wire/store/__init__.py", "from .. import cli\n", "imports wire.cli", id="relative-in-init"),
        pytest.param(
            "wire/api.py",
            "import importlib\nimportlib.import_module('wire.cli')\n",
            "imports wire.cli",
            id="dynamic",
        ),
        pytest.param("wire/daemon/cycle.py", "from wire import Wire\n", "imports wire.Wire", id="public-names"),
        pytest.param("wire/daemon/cycle.py", "import git\n", "only wire/gitio/child.py may", id="git-has-one-door"),
        pytest.param("wire/gitio/parse.py", "from wire.store import files\n", "imports wire.store.files", id="gitio"),
        pytest.param(
            "wire/store/watch.py",
            "from watchdog.observers import Observer\n",
            "only wire/daemon/watch.py may",
            id="watchdog-has-one-door",
        ),
        pytest.param("wire/setup.py", "from wire.cli import main\n", "imports wire.cli.main", id="cli-is-on-top"),
        pytest.param("wire/attic.py", "", "has no floor", id="room-without-a-floor"),
        pytest.param("wire/api.py", "x = 1\n" * 451, "451 lines", id="too-long"),
    ],
)
def test_planted_violation_is_found(tmp_path, path, source, expected):
    found = plant(tmp_path, path, source)
    assert len(found) == 1
    assert found[0].startswith(f"{path}:")
    assert expected in found[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        pytest.param(
            "wire/gitio/child.py", "import git\nfrom wire.errors import WireError\n", id="git-through-its-door"
        ),
        pytest.param("wire/daemon/watch.py", "import watchdog.events\n", id="watchdog-through-its-door"),
        pytest.param("wire/cli/send.py", "import click\nfrom wire.api import Wire\n", id="cli-knows-all"),
        pytest.param("wire/store/pin.py", "from .files import atomic_write\nimport json\n", id="own-room"),
        pytest.param("wire/daemon/status.py", "from wire import __version__\n", id="version"),
        pytest.param("wire/api.py", "x = 1\n" * 450, id="as-long-as-allowed"),
    ],
)
def test_lawful_import_passes(tmp_path, path, source):
    assert plant(tmp_path, path, source) == []


@pytest.mark.parametrize(
    ("source", "status"),
    [("import json\n", 0), ("import wire.cli\n", 1)],
    ids=["clean", "violation"],
)
def test_exit_status_says_it_too(tmp_path, source, status):
    plant(tmp_path, "wire/errors.py", source)
    argv = [sys.executable, ROOT / "tools/floors.py", tmp_path]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == status, done.stdout
    assert f"{status} violations" in done.stdout


def test_an_empty_tree_is_not_a_clean_one(tmp_path):
    assert floors.main(["floors", str(tmp_path)]) == 1
