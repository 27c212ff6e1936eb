"""The shorter way to fetch a little: what comes is what `git fetch` brings, and whatever is odd is left to that."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.clones import INCOMING, MAIN, MB, OUT, commit, failing_ssh, script, seed
from support.remote import BareRemote
from wire.gitio import Git, GitFailed, Kind, Put, leftout, refs_below

HERE = "refs/wire/incoming"
MAC = "refs/wire/presence/mac"
PRESENCE = f"+{MAC}:refs/wire/heard/mac"


class Two(NamedTuple):
    """One who pushes and one who fetches, over a remote that both know up to `base`."""

    mac: Git
    spark: Git
    remote: BareRemote
    base: str

    def push(self, *puts: Put) -> str:
        """Push one more commit than the remote has."""
        made = commit(self.mac, self.remote.tip(), *puts)
        assert self.mac.push(self.remote.url, f"{made}:{MAIN}").status == "ok"
        return made

    def few(self, *refspecs: str, base: str | None = None, max_bytes: int = MB) -> bool:
        wanted = refspecs or (INCOMING,)
        return self.spark.remotes.fetch_few(self.remote.url, wanted, base=base or self.base, max_bytes=max_bytes)

    def here(self) -> str | None:
        return self.spark.resolve(HERE)


@pytest.fixture
def two(new_git: Callable[..., Git], remote: BareRemote) -> Iterator[Two]:
    mac, spark = new_git("mac"), new_git("spark")
    base = seed(mac, remote)
    spark.fetch(remote.url, [INCOMING], max_bytes=MB)
    for one in (mac, spark):
        one.linger(True)
    yield Two(mac, spark, remote, base)
    for one in (mac, spark):
        one.linger(False)


def ids(git: Git, tip: str) -> set[str]:
    listed = git.run("rev-list", "--objects", "--no-object-names", tip).stdout
    return {line.decode() for line in listed.split()}


def test_it_brings_what_a_fetch_brings(two, new_git):
    commits = [two.push(Put(b"a/b/c", b"%d" % number)) for number in range(3)]
    said = two.mac.write_commit(OUT, base=None, parents=[], message="", changes=[Put(b"presence.json", b"{}")])
    two.mac.push(two.remote.url, f"{said}:{MAC}", replace="")
    assert two.few(INCOMING, PRESENCE)
    assert two.here() == commits[-1]
    assert refs_below(two.spark, "refs/wire/heard/") == {"refs/wire/heard/mac": said}
    other = new_git("amy")
    other.fetch(two.remote.url, [INCOMING, PRESENCE], max_bytes=MB)
    for tip in (commits[-1], said):
        assert ids(two.spark, tip) == ids(other, tip)
    two.spark.run("fsck", "--strict", "--connectivity-only")
    packs = os.listdir(Path(two.spark.git_dir) / "objects" / "pack")
    assert packs
    assert not [name for name in packs if name.endswith(".keep")], "a pack with that mark would never be packed again"


def test_a_long_file_costs_its_end(two):
    """What comes is small where little was added to much, as with any fetch."""
    much = b"".join(os.urandom(60).hex().encode() + b"\n" for _ in range(4000))
    base = two.push(Put(b"segment", much))
    assert two.few()
    tip = two.push(Put(b"segment", much + b"one line\n"))
    before = sum(path.stat().st_size for path in (Path(two.spark.git_dir) / "objects" / "pack").glob("*.pack"))
    assert two.few(base=base, max_bytes=len(much))
    assert two.here() == tip
    # A pack stands alone here, so that the object that a difference builds on is in it, deflated.
    after = sum(path.stat().st_size for path in (Path(two.spark.git_dir) / "objects" / "pack").glob("*.pack"))
    assert after - before < len(much) * 0.7


def a_merge(two: Two) -> None:
    one, other = commit(two.mac, two.base, Put(b"one", b"")), commit(two.mac, two.base, Put(b"other", b""))
    merged = two.mac.write_commit(OUT, base=one, parents=[one, other], message="m", changes=[Put(b"other", b"")])
    two.mac.push(two.remote.url, f"{merged}:{MAIN}")


def another_history(two: Two) -> None:
    new = two.mac.write_commit(OUT, base=None, parents=[], message="m", changes=[Put(b"a/b", b"")])
    two.mac.run("push", "--force", two.remote.url, f"{new}:{MAIN}")


def many_commits(two: Two) -> None:
    for number in range(9):
        two.push(Put(b"n", b"%d" % number))


def a_tag(two: Two) -> None:
    two.mac.run("tag", "-a", "-m", "t", "v1", two.push(Put(b"x", b"")))
    two.remote.path.joinpath(MAIN).unlink()
    two.mac.run("push", two.remote.url, f"v1:{MAIN}", ok=(0, 1))
    tag = two.mac.run("rev-parse", "v1").stdout.decode()
    two.mac.run("push", two.remote.url, "v1:refs/tags/v1")
    two.remote.path.joinpath(MAIN).write_text(tag)


def a_branch_that_is_gone(two: Two) -> None:
    two.remote.path.joinpath(MAIN).unlink()


def too_much(two: Two) -> None:
    two.push(Put(b"x", os.urandom(2 * MB)))


def folders_without_number(two: Two) -> None:
    """Two thousand folders, each of which holds two thousand that each hold as many."""
    tree = two.mac.run("hash-object", "-t", "tree", "-w", "--stdin").stdout.decode().strip()
    for _ in range(3):
        rows = "".join(f"040000 tree {tree}\t{number:04d}\n" for number in range(2000))
        tree = two.mac.run("mktree", input=rows.encode()).stdout.decode().strip()
    made = two.mac.run("commit-tree", tree, "-p", two.base, "-m", "m").stdout.decode().strip()
    two.mac.push(two.remote.url, f"{made}:{MAIN}")


def a_rule_that_sends_git_elsewhere(two: Two) -> None:
    two.push(Put(b"x", b""))
    two.spark.run("config", "url./elsewhere/.insteadOf", f"{two.remote.path.parent}/")


def something_left_out(two: Two) -> None:
    two.push(Put(b"x", b""))
    leftout.add(two.spark.git_dir, frozenset({"0" * 40}))


def no_child_that_stays(two: Two) -> None:
    two.push(Put(b"x", b""))
    two.spark.linger(False)


@pytest.mark.parametrize(
    "odd",
    [
        a_merge, another_history, many_commits, a_tag, a_branch_that_is_gone, too_much, folders_without_number,
        a_rule_that_sends_git_elsewhere, something_left_out, no_child_that_stays,
    ],
)  # fmt: skip
def test_what_is_odd_is_left_to_git(two, odd):
    odd(two)
    assert not two.few()
    assert two.here() == two.base


@pytest.mark.parametrize("gone", ["blob", "tree", "commit", None])
def test_a_host_that_sends_less_than_all(tmp_path, environ, two, gone):
    """No ref names what came where something is missing behind it; nor would `git fetch` take it."""
    first = two.push(Put(b"a/b", b"1"))
    tip = two.push(Put(b"a/b", b"2"), Put(b"c", b""))
    lost = {"blob": f"{tip}:a/b", "tree": f"{tip}:a", "commit": first, None: two.base}[gone]
    sent = ids(two.mac, tip) - ids(two.mac, two.base) - {two.mac.run("rev-parse", lost).stdout.decode().strip()}
    pack = two.mac.run("pack-objects", "--stdout", "-q", input="".join(f"{oid}\n" for oid in sorted(sent)).encode())
    (tmp_path / "pack").write_bytes(pack.stdout)
    hook = script(tmp_path / "hook", f"cat >/dev/null; cat {tmp_path}/pack")
    settings = f"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=uploadpack.packObjectsHook GIT_CONFIG_VALUE_0={hook}"
    host = failing_ssh(tmp_path, environ, f"exec env {settings} git upload-pack {two.remote.path}")
    spark = Git(two.spark.git_dir, environ=host)
    spark.linger(True)
    taken = spark.remotes.fetch_few("ssh://wire@host.invalid/x.git", [INCOMING], base=two.base, max_bytes=MB)
    spark.linger(False)
    assert taken == (gone is None)
    assert two.here() == (two.base if gone else tip)


def test_a_host_that_cuts_history_off_where_a_commit_was_forgotten(two):
    """What was read once is not here for that: it may have been packed away since."""
    first = two.push(Put(b"x", b"1"))
    assert two.few()
    two.spark.update_ref(HERE, two.base)
    two.spark.run("repack", "-a", "-d", "--quiet")
    two.spark.linger(False)
    two.spark.linger(True)
    assert two.spark.resolve(f"{first}^{{commit}}") is None
    (two.remote.path / "shallow").write_text(two.push(Put(b"y", b"2")) + "\n")
    assert not two.few()
    assert two.here() == two.base


def test_patterns_and_refs_that_are_not_to_be_replaced_go_the_ordinary_way(two):
    two.push(Put(b"x", b""))
    assert not two.few(INCOMING, f"+{MAC}*:refs/wire/heard/mac*")
    assert not two.few(INCOMING.removeprefix("+"))
    assert two.here() == two.base


def test_one_that_hangs_is_ended_in_its_time(tmp_path, environ, two):
    slow = Git(two.spark.git_dir, environ=failing_ssh(tmp_path, environ, "exec sleep 600"), timeout=1)
    slow.linger(True)
    with pytest.raises(GitFailed) as failed:
        slow.remotes.fetch_few("ssh://wire@host.invalid/x.git", [INCOMING], base=two.base, max_bytes=MB)
    assert failed.value.kind is Kind.TIMEOUT
    slow.linger(False)
