"""Fixtures for the tests of one room with real git."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import procs
from wire.gitio import Git


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment of nobody; what is started in it carries a mark, and must be gone at the end."""
    home = tmp_path / "home"
    home.mkdir()
    mark = f"{tmp_path}"
    yield {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "WIRE_TEST_MARK": mark,
    }
    left = procs.kill_marked(f"WIRE_TEST_MARK={mark}", grace=2)
    assert not left, f"left running: {left}"


@pytest.fixture
def new_git(tmp_path: Path, environ: dict[str, str]) -> Callable[..., Git]:
    """Return a function that makes a clone's Git: `new_git("mac")`."""

    def make(name: str, object_format: str | None = None, **rest: object) -> Git:
        folder = tmp_path / name
        folder.mkdir()
        settings = {"environ": environ, "identity": (name, f"{name}@wire.invalid"), **rest}
        git = Git(folder / ".git", work_tree=str(folder), **settings)
        git.init(object_format)
        return git

    return make


@pytest.fixture
def git(new_git: Callable[..., Git]) -> Git:
    return new_git("mac")
