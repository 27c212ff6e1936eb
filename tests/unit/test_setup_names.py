"""What a wire is called on this machine, from its remote."""

import pytest

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
