"""A fetch that is too large is tried again without the huge blobs: what comes, what stays, what never happens."""

import os
import subprocess
from pathlib import Path

import pytest

from support import gitcmd
from support.clones import INCOMING, MAIN, MB, commit, seed
from support.http_git import HttpGit
from wire.gitio import Drop, Git, GitFailed, Kind, Put

CAP = 3 * MB
LINES = b"_coordination/mac/spark/000001.jsonl"
REF = "refs/wire/incoming"


@pytest.fixture
def filtering(remote):
    """A remote whose host can leave blobs out, as the large ones can."""
    _git(remote.path, "config", "uploadpack.allowFilter", "true")
    return remote


def _git(folder: Path, *args: str) -> str:
    return gitcmd.git(folder, *args).decode()


def _push(git: Git, remote, parent: str, *changes: Put | Drop) -> str:
    made = commit(git, parent, *changes)
    assert git.push(remote.url, f"{made}:{MAIN}").status == "ok"
    return made


def _huge(path: bytes = b"huge", megabytes: int = 4) -> Put:
    return Put(path, os.urandom(megabytes * MB))


def _oid(git: Git, commit: str, path: bytes) -> str:
    return next(entry.oid for entry in git.entries(commit) if entry.path == path)


def _whole_but(git: Git, missing: set[str]) -> None:
    """Everything that the refs reach is there and sound, but for these."""
    listed = _git(Path(git.git_dir), "rev-list", "--all", "--objects", "--no-object-names", "--missing=print")
    assert {line[1:] for line in listed.split() if line.startswith("?")} == missing
    told = subprocess.run(
        ["git", f"--git-dir={git.git_dir}", "fsck", "--no-dangling"], capture_output=True, text=True, check=False
    )
    assert {line.split()[-1] for line in told.stdout.splitlines() if line.startswith("missing")} == missing
    assert "error" not in told.stderr


def _no_promises(git: Git, config: bytes) -> None:
    """The clone knows no remote that it could ask for what it lacks, and nothing of the second try is left."""
    assert Path(git.git_dir, "config").read_bytes() == config
    assert not list(Path(git.git_dir).rglob("*.promisor"))
    assert not list(Path(git.git_dir).glob("wire-second*"))


@pytest.mark.parametrize("knows", [True, False], ids=["a clone", "a newcomer"])
@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_what_is_huge_is_left_out(new_git, tmp_path, knows, object_format):
    hub = tmp_path / "hub.git"
    subprocess.run(["git", "init", "-q", "--bare", f"--object-format={object_format}", str(hub)], check=True)
    _git(hub, "config", "uploadpack.allowFilter", "true")
    mac, spark = new_git("mac", object_format), new_git("spark", object_format)
    first = commit(mac, None, Put(LINES, b"one\n"))
    assert mac.push(str(hub), f"{first}:{MAIN}").status == "ok"
    if knows:
        spark.fetch(str(hub), [INCOMING], max_bytes=CAP)
    config = Path(spark.git_dir, "config").read_bytes()
    lawful = os.urandom(MB)
    tip = commit(mac, first, _huge(), Put(LINES, b"one\ntwo\n"), Put(b"lawful", lawful))
    assert mac.push(str(hub), f"{tip}:{MAIN}").status == "ok"
    spark.fetch(str(hub), [INCOMING], max_bytes=CAP)
    assert spark.resolve(REF) == tip
    huge = _oid(mac, tip, b"huge")
    _whole_but(spark, {huge})
    _no_promises(spark, config)
    # Nothing is asked for afterwards: the host is gone, and what is left out is too large to be read.
    hub.rename(tmp_path / "gone.git")
    oids = [entry.oid for entry in spark.entries(tip)]
    read = spark.blobs(oids, max_size=MB)
    assert read[huge] is None
    assert read[_oid(mac, tip, LINES)] == b"one\ntwo\n"
    assert read[_oid(mac, tip, b"lawful")] == lawful
    assert spark.sizes(oids)[huge] > MB
    spark.linger(True)
    assert spark.blobs([huge], max_size=MB) == {huge: None}
    assert spark.sizes([huge])[huge] > MB
    spark.linger(False)
    assert {change.path for change in spark.diff(None, tip)} == {b"huge", b"lawful", LINES}
    assert len(spark.history(None, tip, max_count=9).commits) == 2


def test_over_http_with_credentials_in_the_url(new_git, filtering, tmp_path):
    """The second try reaches the same host as the same user, and writes neither down."""
    with HttpGit(tmp_path) as host:
        mac, spark = new_git("mac"), new_git("spark")
        tip = _push(mac, filtering, seed(mac, filtering), _huge())
        host.credentials = ("mac", "s3cret-t0ken")
        url = host.url(filtering.path.name, userinfo="mac:s3cret-t0ken")
        config = Path(spark.git_dir, "config").read_bytes()
        spark.fetch(url, [INCOMING], max_bytes=CAP)
        assert spark.resolve(REF) == tip
        assert host.requests[-1].user == "mac"
        asked = len(host.requests)
        huge = _oid(spark, tip, b"huge")
        assert spark.blobs([huge], max_size=MB) == {huge: None}
        spark.pack(full=True)
        assert len(host.requests) == asked
    _no_promises(spark, config)
    _whole_but(spark, {huge})
    written = b"".join(path.read_bytes() for path in Path(spark.git_dir).rglob("*") if path.is_file())
    assert b"s3cret" not in written


def test_what_a_killed_second_try_left_goes_one_day(git):
    left = Path(git.git_dir, "wire-second-try")
    (left / "objects").mkdir(parents=True)
    git.pack(full=False)
    assert left.exists(), "it may be in use"
    os.utime(left, (1, 1))
    git.pack(full=False)
    assert not left.exists()


def test_a_host_that_leaves_nothing_out(new_git, remote):
    mac, spark = new_git("mac"), new_git("spark")
    first = seed(mac, remote)
    spark.fetch(remote.url, [INCOMING], max_bytes=CAP)
    _push(mac, remote, first, _huge())
    before = sorted(path for path in Path(spark.git_dir).rglob("*") if path.name != "whole")
    for _ in range(2):
        with pytest.raises(GitFailed) as failed:
            spark.fetch(remote.url, [INCOMING], max_bytes=CAP)
        assert failed.value.kind is Kind.TOO_LARGE
        assert "uploadpack.allowFilter true" in failed.value.next_step
        assert spark.resolve(REF) == first
        assert sorted(path for path in Path(spark.git_dir).rglob("*") if path.name != "whole") == before
    # Its owner does what is said.
    _git(remote.path, "config", "uploadpack.allowFilter", "true")
    new = Git(spark.git_dir, environ=os.environ)
    new.fetch(remote.url, [INCOMING], max_bytes=CAP)
    assert new.resolve(REF) != first


def test_what_is_new_and_large_together_stays_too_large(new_git, filtering):
    mac, spark = new_git("mac"), new_git("spark")
    first = seed(mac, filtering)
    spark.fetch(filtering.url, [INCOMING], max_bytes=CAP)
    _push(mac, filtering, first, *(Put(b"%d" % n, os.urandom(MB // 2)) for n in range(12)))
    with pytest.raises(GitFailed) as failed:
        spark.fetch(filtering.url, [INCOMING], max_bytes=CAP)
    assert failed.value.kind is Kind.TOO_LARGE
    assert spark.resolve(REF) == first
    spark.fetch(filtering.url, [INCOMING], max_bytes=10 * MB)
    _whole_but(spark, set())


def test_later_looks_whatever_becomes_of_the_huge_blob(new_git, filtering):
    """It goes, comes back, stands where a segment stood, and is replaced by what a host stores as its delta."""
    mac, spark = new_git("mac"), new_git("spark")
    config = Path(spark.git_dir, "config").read_bytes()
    body = os.urandom(200_000)
    tip = _push(mac, filtering, seed(mac, filtering), Put(LINES, body))
    spark.fetch(filtering.url, [INCOMING], max_bytes=CAP)
    huge = Put(LINES, body + os.urandom(4 * MB))
    other = _huge(b"other")
    steps = [
        [huge], [Put(LINES, body + b"new\n")], [Put(b"again", huge.data)], [Drop(b"again")], [Put(b"again", huge.data)],
        [other], [Drop(b"other"), Put(b"again", body[:-9])], [other], [Put(LINES, body + b"new\nnewer\n")],
    ]  # fmt: skip
    for step in steps:
        tip = _push(mac, filtering, tip, *step)
        _git(filtering.path, "repack", "-a", "-d", "-f", "-q", "-b", "--window=50")
        spark.fetch(filtering.url, [INCOMING], max_bytes=CAP)
        assert spark.resolve(REF) == tip
        _no_promises(spark, config)
    read = spark.blobs([_oid(mac, tip, LINES)], max_size=MB)
    assert list(read.values()) == [body + b"new\nnewer\n"]
    # And this machine's own commits stand on such a tip.
    mine = commit(spark, tip, Put(b"_coordination/spark/mac/000001.jsonl", b"hello\n"))
    assert spark.push(filtering.url, f"{mine}:{MAIN}").status == "ok"
    assert _git(filtering.path, "fsck", "--strict", "--no-dangling") == ""


def test_packing_goes_on_without_what_is_left_out(new_git, filtering):
    mac, spark = new_git("mac"), new_git("spark")
    tip = _push(mac, filtering, seed(mac, filtering), _huge())
    spark.fetch(filtering.url, [INCOMING], max_bytes=CAP)
    huge = _oid(mac, tip, b"huge")
    old, young = (commit(spark, None, Put(b"presence.json", text), ref="refs/wire/own") for text in (b"1", b"2"))
    spark.delete_ref("refs/wire/own")
    # The packs of the unreachable ones: one that is older than what is kept, and one that is not.
    packs = sorted(Path(spark.git_dir, "objects", "pack").glob("*.pack"), key=lambda path: path.stat().st_mtime_ns)
    for name, oid in ((path, old) for path in packs):
        shown = _git(Path(spark.git_dir), "verify-pack", "-v", str(name.with_suffix(".idx")))
        if oid in shown:
            os.utime(name, (1, 1))
    spark.pack(full=True)
    assert spark.resolve(f"{young}^{{tree}}") is not None
    assert spark.resolve(f"{old}^{{tree}}") is None
    for round_ in range(2):
        tip = _push(mac, filtering, tip, Put(LINES, b"line\n" * (round_ + 1)))
        spark.fetch(filtering.url, [INCOMING], max_bytes=CAP)
        assert spark.pack(full=False).packs <= 8
        _whole_but(spark, {huge})
        left = spark.pack(full=True)
        assert left.packs <= 2
        assert left.loose == 0
        _whole_but(spark, {huge})
        assert spark.resolve(f"{young}^{{tree}}") is not None
    assert list(spark.blobs([_oid(mac, tip, LINES)], max_size=MB).values()) == [b"line\n" * 2]


def _loose_tree(git: Git, *entries: tuple[str, bytes, str]) -> str:
    raw = b"".join(b"%s %s\0" % (mode.encode(), name) + bytes.fromhex(oid) for mode, name, oid in entries)
    args = ["git", f"--git-dir={git.git_dir}", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    return subprocess.run(args, input=raw, capture_output=True, check=True).stdout.decode().strip()


@pytest.mark.parametrize(
    ("names", "taken"),
    [([b".git"], True), ([b"b", b"a"], False), ([b"a", b"a"], False)],
    ids=["tolerated", "order", "twice"],
)
def test_gits_checks_are_made_as_ever(new_git, filtering, names, taken):
    """A filter costs git its list of what is let pass; a vandal who pushes both must not stop the wire either."""
    mac, spark = new_git("mac"), new_git("spark")
    first = seed(mac, filtering)
    spark.fetch(filtering.url, [INCOMING], max_bytes=CAP)
    small = mac.entries(first)[0].oid
    odd = _loose_tree(mac, *(("100644", name, small) for name in names))
    second = _push(mac, filtering, first, _huge())
    root = _git(Path(mac.git_dir), "ls-tree", second).splitlines()
    rows = [line.split() for line in root if line]
    tree = _loose_tree(
        mac, *((mode.lstrip("0"), name.encode(), oid) for mode, _, oid, name in rows), ("40000", b"zz", odd)
    )
    made = _git(Path(mac.git_dir), "commit-tree", "-p", second, "-m", "odd", tree).strip()
    _git(Path(mac.git_dir), "push", "-q", filtering.url, f"{made}:{MAIN}")
    if taken:
        spark.fetch(filtering.url, [INCOMING], max_bytes=CAP)
        assert spark.resolve(REF) == made
        return
    packs = set(os.listdir(Path(spark.git_dir, "objects", "pack")))
    with pytest.raises(GitFailed) as failed:
        spark.fetch(filtering.url, [INCOMING], max_bytes=CAP)
    assert failed.value.kind is Kind.MALFORMED
    assert spark.resolve(REF) == first
    assert set(os.listdir(Path(spark.git_dir, "objects", "pack"))) == packs


def test_what_is_missing_and_was_not_left_out_is_damage(new_git, filtering):
    mac, spark = new_git("mac"), new_git("spark")
    _push(mac, filtering, seed(mac, filtering), _huge())
    spark.fetch(filtering.url, [INCOMING], max_bytes=CAP)
    with pytest.raises(GitFailed) as failed:
        spark.blobs(["ab" * 20], max_size=MB)
    assert failed.value.kind is Kind.CORRUPT
    with pytest.raises(GitFailed) as failed:
        spark.sizes(["ab" * 20])
    assert failed.value.kind is Kind.CORRUPT
