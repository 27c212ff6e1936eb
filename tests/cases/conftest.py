"""Fixtures of the fault cases."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.machine import Machine
from support.remote import BareRemote
from support.team import Team, Template


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def team(template: Template, tmp_path: Path, remote: BareRemote, machines: Callable[..., Machine]) -> Team:
    """`mac` and `spark` on one wire; see `support.team`."""
    return template.copy(tmp_path, remote, machines)
