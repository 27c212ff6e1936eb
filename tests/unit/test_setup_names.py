"""What a wire is called on this machine, from its remote."""

import pytest

from wire.protocol.names import valid_name
from wire.setup.common import local_name

NAMES = [
    ("git@example.org:team/Wire-Test.git", "wire-test"),
    ("ssh://git@example.org/team.git/", "team"),
    ("/srv/hub.git", "hub"),
    ("https://example.org", "example-org"),
    ("https://x-access-token:SECRET@example.org/team.git", "team"),
    ("https://x-access-token:SECRET@example.org", "example-org"),
    ("https://SECRET@example.org", "example-org"),
    ("https://example.org/äöü.git", "wire"),
]


@pytest.mark.parametrize(("remote", "name"), NAMES)
def test_a_name_from_the_remote_holds_no_secret(remote, name):
    assert local_name(remote) == name


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        pytest.param("/srv/trust.git", "trust-wire", id="a folder of the layout"),
        pytest.param("/srv/all", "all-wire", id="everybody"),
        pytest.param("/srv/lpt1.git", "lpt1-wire", id="a device of Windows"),
        pytest.param("/srv/wire.git", "wire", id="the one that a wire may have"),
        pytest.param("/srv/" + "x" * 50, "x" * 32, id="too long"),
        pytest.param("/", "wire", id="nothing"),
    ],
)
def test_a_repository_may_be_called_what_no_wire_can_be(remote, name):
    assert local_name(remote) == name
    assert valid_name(name) or name == "wire"
