"""What people are told to run for an ssh remote."""

import pytest

from wire.gitio.ssh import addressed, private

TEXT = "ssh <the remote's user@host>; ssh-keygen -R <the remote's host>"

REMOTES = [
    ("git@example.org:team.git", "ssh git@example.org; ssh-keygen -R example.org"),
    ("hub:team.git", "ssh hub; ssh-keygen -R hub"),
    ("ssh://git@example.org/team.git", "ssh git@example.org; ssh-keygen -R example.org"),
    ("ssh://example.org:22/team.git", "ssh -p 22 example.org; ssh-keygen -R example.org"),
    ("ssh://me@127.0.0.1:2222/x", "ssh -p 2222 me@127.0.0.1; ssh-keygen -R '[127.0.0.1]:2222'"),
    ("ssh://me@[::1]:2222/x", "ssh -p 2222 me@::1; ssh-keygen -R '[::1]:2222'"),
    ("git+ssh://$(x)@host/x", "ssh '$(x)@host'; ssh-keygen -R host"),
    ("/srv/hub.git", TEXT),
    ("https://example.org/x", TEXT),
]


@pytest.mark.parametrize(("remote", "told"), REMOTES)
def test_a_command_names_the_host(remote, told):
    assert addressed(TEXT, remote) == told


def test_sockets_go_into_a_folder_of_ones_own(tmp_path):
    assert private(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert not private(str(tmp_path / "open"))
    (tmp_path / "file").touch()
    assert not private(str(tmp_path / "file"))
    assert not private(str(tmp_path / "file" / "below"))
