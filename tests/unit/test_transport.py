"""What a remote's URL says, and what the files of a local one show."""

import os

import pytest

from support.remote import BareRemote
from wire.daemon import transport


@pytest.mark.parametrize(
    ("remote", "kind"),
    [
        ("/srv/hub.git", "local"),
        ("hub.git", "local"),
        ("./odd:name.git", "local"),
        ("/srv/odd:name.git", "local"),
        ("file:///srv/hub%20one.git", "local"),
        ("git@example.org:team/wire.git", "ssh"),
        ("example.org:wire.git", "ssh"),
        ("ssh://git@example.org:2222/wire.git", "ssh"),
        ("https://example.org/wire.git", "http"),
        ("HTTP://example.org/wire.git", "http"),
        ("ext::sh", "ssh"),
        ("svn://example.org/x", "other"),
    ],
)
def test_kind_of_a_remote(remote, kind):
    found = transport.of(remote)
    assert found.kind == kind
    assert (found.path is not None) == (kind == "local")
    assert found.budgeted == (kind != "local")
    assert (found.minimum == 0) == (kind == "local")


def test_path_of_a_file_url():
    assert transport.of("file:///srv/hub%20one.git").path == "/srv/hub one.git"


def test_http_is_never_asked_more_than_once_a_second():
    assert transport.of("https://example.org/x").minimum >= 1.0


@pytest.mark.parametrize("place", ["refs/heads/main", "packed-refs"])
def test_glance_waits_for_nobody(tmp_path, place):
    """A fifo where a file is expected would hold whoever opens it until somebody writes."""
    remote = BareRemote(tmp_path / "hub.git")
    os.mkfifo(remote.path / place)
    other_end = os.open(remote.path / place, os.O_RDWR)
    os.write(other_end, b"a" * 40 + (b" refs/heads/main\n" if place == "packed-refs" else b"\n" * 40))
    assert transport.glance(remote.url, "main") is None
    os.close(other_end)


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_glance_sees_loose_and_packed_refs(tmp_path, object_format):
    remote = BareRemote(tmp_path / "hub.git", object_format=object_format)
    assert transport.glance(remote.url, "main") is None
    vera = remote.clone_as_vandal(tmp_path / "vera")
    vera.write("a", b"a")
    vera.commit()
    first = vera.push()
    assert transport.glance(remote.url, "main") == first
    assert transport.glance(remote.url, "mai") is None
    assert transport.glance(str(tmp_path / "vera"), "main") == first, "a repository with a work tree"
    remote.git("pack-refs", "--all")
    assert not (remote.path / "refs/heads/main").exists()
    assert transport.glance(remote.url, "main") == first
    vera.write("a", b"b")
    vera.commit()
    assert transport.glance(remote.url, "main") == first
    second = vera.push()
    assert transport.glance(remote.url, "main") == second, "the loose one is the newer"


def test_glance_at_what_is_no_repository(tmp_path):
    assert transport.glance(str(tmp_path / "nowhere"), "main") is None
    (tmp_path / "refs/heads").mkdir(parents=True)
    (tmp_path / "refs/heads/main").write_bytes(b"ref: refs/heads/other\n")
    assert transport.glance(str(tmp_path), "main") is None
    (tmp_path / "refs/heads/main").write_bytes(b"a" * 41 + b"\n")
    assert transport.glance(str(tmp_path), "main") is None


def test_a_push_shows_in_two_folders():
    assert transport.folders("/srv/hub.git", "team/wire") == {
        "/srv/hub.git/refs/heads/team": frozenset({"wire"}),
        "/srv/hub.git": frozenset({"packed-refs"}),
    }
