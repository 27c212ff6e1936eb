"""The bare repository that stands in for a host, and waiting for what others do."""

import pytest

from support.gitcmd import GitFailed
from support.remote import BareRemote
from support.waiting import eventually


def test_an_empty_remote(remote):
    assert remote.tip() is None
    assert remote.commits() == []
    assert remote.files() == []


@pytest.mark.parametrize("branch", ["main", "master", "trunk"])
@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_what_a_vandal_pushes_is_there(tmp_path, branch, object_format):
    remote = BareRemote(tmp_path / "hub.git", branch=branch, object_format=object_format)
    vera = remote.clone_as_vandal(tmp_path / "vera")
    vera.write("a/b.txt", b"one\n")
    first = vera.commit()
    vera.append("a/b.txt", b"two\n")
    vera.write(".gitignore", b"*\n")
    second = vera.commit()
    assert vera.push() == second == remote.tip()
    assert remote.commits() == [first, second]
    assert remote.files() == [".gitignore", "a/b.txt"]
    assert remote.show("a/b.txt") == b"one\ntwo\n"
    assert remote.show("a/b.txt", first) == b"one\n"


def test_history_is_rewritten_by_force_alone(remote, tmp_path):
    vera = remote.clone_as_vandal(tmp_path / "vera")
    vera.commit("first")
    vera.push()
    rewritten = vera.commit("other", amend=True)
    with pytest.raises(GitFailed):
        vera.push()
    vera.push(force=True)
    assert remote.tip() == rewritten


def test_a_second_vandal_catches_up(remote, tmp_path):
    vera, otto = remote.clone_as_vandal(tmp_path / "vera"), remote.clone_as_vandal(tmp_path / "otto")
    vera.write("a", b"a")
    vera.commit()
    otto.write("left", b"over")
    assert vera.push() == otto.sync()
    assert not (otto.path / "left").exists()


def test_a_host_that_refuses_says_why(remote, tmp_path):
    vera = remote.clone_as_vandal(tmp_path / "vera")
    vera.commit()
    remote.reject_pushes("pushes are closed until Monday")
    with pytest.raises(GitFailed, match="pushes are closed until Monday"):
        vera.push()
    assert remote.tip() is None
    remote.remove_pre_receive()
    assert vera.push() == remote.tip()


def test_a_host_that_judges_what_is_pushed(remote, tmp_path):
    remote.install_pre_receive(
        'while read old new ref; do [ "$ref" = refs/heads/main ] || { echo "no $ref"; exit 1; }; done'
    )
    vera = remote.clone_as_vandal(tmp_path / "vera")
    vera.commit()
    vera.push()
    remote.set_default_branch("other")
    with pytest.raises(GitFailed, match="no refs/heads/other"):
        vera.push()


def test_waiting_returns_the_first_true_answer():
    answers = iter([0, None, 7])
    assert eventually(lambda: next(answers), every=0.001) == 7


def test_waiting_in_vain_says_for_what():
    with pytest.raises(AssertionError, match=r"not within 0\.01 s: the end; last answer: 0"):
        eventually(lambda: 0, timeout=0.01, every=0.001, what="the end")


def test_a_failed_assertion_is_not_yet():
    def look() -> bool:
        raise AssertionError("still 3 of 4")

    with pytest.raises(AssertionError, match="still 3 of 4"):
        eventually(look, timeout=0.01, every=0.001, what="all four")
