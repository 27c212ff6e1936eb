"""A wire with a past, for each test its own copy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.besieged import Siege, Template
from support.machine import Machine
from support.remote import BareRemote


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def siege(_template: Template, tmp_path: Path, remote: BareRemote, machines: Callable[..., Machine]) -> Siege:
    """Return three machines in sync, and the host that they do not know to be hostile."""
    return _template.copy(tmp_path, remote, machines)
