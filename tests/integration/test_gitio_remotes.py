"""Fetch and push with real git and a remote on a local path."""

import os
from pathlib import Path

import pytest

from support.clones import INCOMING, MAIN, MB, OUT, commit, seed
from support.remote import BareRemote
from wire.gitio import GitFailed, Kind, Put

# Remotes on a local path


def test_an_empty_remote(git, remote):
    assert git.ls_remote(remote.url) == {}
    assert git.default_branch(remote.url) is None
    with pytest.raises(GitFailed) as failed:
        git.fetch(remote.url, [INCOMING], max_bytes=MB)
    assert failed.value.kind is Kind.NO_REF
    git.fetch(remote.url, ["+refs/wire/presence/mac*:refs/wire/seen/mac*"], max_bytes=MB)
    assert git.refs() == {}


@pytest.mark.parametrize("branch", ["main", "master", "trunk"])
@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_fetch_and_push(tmp_path, new_git, branch, object_format):
    remote = BareRemote(tmp_path / "x.git", branch=branch, object_format=object_format)
    mac, spark = new_git("mac", object_format), new_git("spark", object_format)
    ref = f"refs/heads/{branch}"
    first = commit(mac, None, Put(b"a", b"1"))
    assert mac.push(remote.url, f"{first}:{ref}").status == "ok"
    assert spark.default_branch(remote.url) == ref
    spark.fetch(remote.url, [f"+{ref}:refs/wire/incoming"], max_bytes=MB)
    second = commit(spark, first, Put(b"b", b"2"))
    assert spark.push(remote.url, f"{second}:{ref}").status == "ok"
    assert spark.push(remote.url, f"{second}:{ref}").status == "up-to-date"
    assert mac.ls_remote(remote.url, ref) == {ref: second}
    assert mac.ls_remote(remote.url, branch) == {}, "a short name is no name"
    assert mac.ls_remote(remote.url, "refs/heads/*") == {ref: second}
    mac.fetch(remote.url, [f"+{ref}:refs/wire/incoming"], max_bytes=MB)
    assert mac.history(first, "refs/wire/incoming", max_count=9).commits[0].oid == second


def test_a_fetch_without_news_writes_nothing(git, remote):
    seed(git, remote)
    git.fetch(remote.url, [INCOMING], max_bytes=MB)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in Path(git.git_dir).rglob("*")}
    git.fetch(remote.url, [INCOMING], max_bytes=MB)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in Path(git.git_dir).rglob("*")} == before


def test_the_loser_of_a_race_is_told_so(new_git, remote):
    mac, spark = new_git("mac"), new_git("spark")
    first = seed(mac, remote)
    spark.fetch(remote.url, [INCOMING], max_bytes=MB)
    ours, theirs = commit(mac, first, Put(b"m", b"")), commit(spark, first, Put(b"s", b""))
    assert mac.push(remote.url, f"{ours}:{MAIN}").status == "ok"
    assert spark.push(remote.url, f"{theirs}:{MAIN}").status == "race"
    assert remote.tip() == ours


def test_an_identical_commit_is_no_victory(new_git, remote):
    """Two writers with the same tree, parent, text and second make one commit; the second did not push anything."""
    mac, spark = new_git("mac"), new_git("spark", identity=("mac", "mac@wire.invalid"))
    first = seed(mac, remote)
    spark.fetch(remote.url, [INCOMING], max_bytes=MB)
    how = {"base": first, "parents": [first], "message": "same", "changes": [Put(b"x", b"")], "when": 1}
    ours, theirs = mac.write_commit(OUT, **how), spark.write_commit(OUT, **how)
    assert ours == theirs
    assert mac.push(remote.url, f"{ours}:{MAIN}").status == "ok"
    assert spark.push(remote.url, f"{theirs}:{MAIN}").status == "up-to-date"


def test_a_lock_on_the_remote_is_a_race_and_no_policy(git, remote):
    first = seed(git, remote)
    (remote.path / "refs" / "heads" / "main.lock").touch()
    second = commit(git, first, Put(b"a", b""))
    result = git.push(remote.url, f"{second}:{MAIN}")
    assert result.status == "race", result
    (remote.path / "refs" / "heads" / "main.lock").unlink()
    assert git.push(remote.url, f"{second}:{MAIN}").status == "ok"


def test_a_rule_of_the_host_is_told_in_its_words(git, remote):
    first = seed(git, remote)
    remote.reject_pushes("\x1b[31mno pushes\x1b[0m on\tFridays\x07\n" + "and more\n" * 50 + "x" * 5000)
    result = git.push(remote.url, f"{commit(git, first, Put(b'a', b''))}:{MAIN}")
    assert result.status == "rejected"
    assert result.reason.startswith("pre-receive hook declined; no pushes on Fridays; and more")
    assert result.reason.isprintable()
    assert len(result.reason) < 1500
    assert remote.tip() == first


def test_only_presence_is_ever_replaced(git, remote):
    first = seed(git, remote)
    other = commit(git, None, Put(b"x", b""), ref="refs/wire/other")
    presence = "refs/wire/presence/mac"
    assert git.push(remote.url, f"{other}:{MAIN}").status == "race"
    for refspec in (f"+{other}:{MAIN}", f":{MAIN}", f"{other}", f"{other}:main"):
        with pytest.raises(ValueError, match="no refspec"):
            git.push(remote.url, refspec)
    with pytest.raises(ValueError, match="never replaced"):
        git.push(remote.url, f"{other}:{MAIN}", replace=first)
    assert git.push(remote.url, f"{first}:{presence}", replace="").status == "ok"
    assert git.push(remote.url, f"{other}:{presence}", replace=first).status == "ok"
    assert git.push(remote.url, f"{first}:{presence}", replace=first).status == "race"
    assert remote.tip() == first

    second = commit(git, first, Put(b"y", b""))
    results = git.push_refs(remote.url, [f"{second}:{MAIN}", f"{first}:{presence}"], replace={presence: first})
    assert {ref: result.status for ref, result in results.items()} == {MAIN: "ok", presence: "race"}
    assert remote.tip() == second


def test_a_host_that_hides_refs_has_a_rule(git, remote):
    first = seed(git, remote)
    remote.git("config", "receive.hideRefs", "refs/wire")
    result = git.push(remote.url, f"{first}:refs/wire/presence/mac", replace="")
    assert (result.status, result.reason) == ("rejected", "deny updating a hidden ref")


@pytest.mark.parametrize("remote_url", ["ext::touch %s", "git://127.0.0.1/x", "foo::bar"])
def test_transports_outside_the_list_are_refused(tmp_path, git, remote_url):
    with pytest.raises(GitFailed) as failed:
        git.fetch(remote_url.replace("%s", str(tmp_path / "touched")), [INCOMING], max_bytes=MB)
    assert failed.value.label == "transport"
    assert not (tmp_path / "touched").exists()


def test_a_remote_that_is_gone(tmp_path, git):
    with pytest.raises(GitFailed) as failed:
        git.fetch(str(tmp_path / "nowhere.git"), [INCOMING], max_bytes=MB)
    assert failed.value.kind is Kind.NOT_FOUND


@pytest.mark.parametrize("files", [1, 90])
def test_a_transfer_beyond_the_cap_is_ended_and_swept(new_git, remote, files):
    """One large file, and many that are small each: git itself takes any amount."""
    mac, spark = new_git("mac"), new_git("spark")
    first = seed(mac, remote)
    spark.fetch(remote.url, [INCOMING], max_bytes=MB)
    large = commit(mac, first, *(Put(b"%d" % n, os.urandom(8 * MB // files)) for n in range(files)))
    assert mac.push(remote.url, f"{large}:{MAIN}").status == "ok"
    packs = set(os.listdir(f"{spark.git_dir}/objects/pack"))
    with pytest.raises(GitFailed) as failed:
        spark.fetch(remote.url, [INCOMING], max_bytes=2 * MB)
    assert failed.value.kind is Kind.TOO_LARGE, failed.value
    assert set(os.listdir(f"{spark.git_dir}/objects/pack")) == packs
    assert spark.resolve("refs/wire/incoming") == first
    spark.fetch(remote.url, [INCOMING], max_bytes=20 * MB)
    assert spark.resolve("refs/wire/incoming") == large


def test_the_sweep_leaves_what_somebody_has_open(git):
    """A person runs git in the clone while a child of ours fails."""
    packs = Path(git.git_dir, "objects", "pack")
    packs.mkdir(exist_ok=True)
    (packs / "tmp_pack_ours").write_bytes(b"x")
    with (packs / "tmp_pack_theirs").open("wb"), pytest.raises(GitFailed):
        git.run("no-such-command")
    assert sorted(os.listdir(packs)) == ["tmp_pack_theirs"]


def test_objects_that_git_refuses_stay_outside(git, remote):
    """A vandal pushes a tree with two files of one name to a host that does not look."""
    blob = bytes.fromhex(remote.git("hash-object", "-w", "--stdin", input=b"x").decode().strip())
    entries = (b"100644 a\0" + blob) * 2
    tree = remote.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", input=entries).decode().strip()
    bad = remote.git("commit-tree", "-m", "x", tree).decode().strip()
    remote.git("update-ref", MAIN, bad)
    with pytest.raises(GitFailed) as failed:
        git.fetch(remote.url, [INCOMING], max_bytes=MB)
    assert failed.value.kind is Kind.MALFORMED, failed.value
    assert git.refs() == {}


def test_names_that_only_harm_a_checkout_are_let_in(git, remote):
    """History keeps such a tree for ever: refusing it would let one push stop the wire for ever."""
    blob = remote.git("hash-object", "-w", "--stdin", input=b"x").decode().strip()
    tree = remote.git("mktree", input=f"100644 blob {blob}\t.git\n100644 blob {blob}\t..\n".encode()).decode().strip()
    bad = remote.git("commit-tree", "-m", "x", tree).decode().strip()
    remote.git("update-ref", MAIN, bad)
    git.fetch(remote.url, [INCOMING], max_bytes=MB)
    assert git.resolve("refs/wire/incoming") == bad
