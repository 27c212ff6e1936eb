"""What is read and written without a child of its own is what git reads and writes, and git stays behind it."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support import gitcmd, procs
from support.clones import MB, OUT, commit
from support.waiting import eventually
from wire.gitio import Drop, Git, GitFailed, Kind, Put, RefUpdate, blob_id, file_in, limits, reader
from wire.gitio.child import Runner

WHO = ("somebody", "somebody@wire.invalid")
NAMES = [b"a", b"a.b", b"a-b", b"a/b", b"a/b/c", b"a/c", b"b", b"new\nline", b"\xff\xfe", b'quote"\\', b"z/y/x/w"]


@pytest.fixture
def lasting(new_git):
    """Return a function that makes a clone that lingers; it goes to rest at the end."""
    made = []

    def make(name, object_format=None):
        git = new_git(name, object_format, identity=WHO)
        git.linger(True)
        made.append(git)
        return git

    yield make
    for git in made:
        git.linger(False)


@pytest.fixture
def started(monkeypatch):
    """Return the list of the subcommands of git that were started and ended, in order."""
    found = []
    run = Runner.run

    def noting(self, argv, environment, **rest):
        found.append(next(word for word in argv[1:] if not word.startswith("-")))
        return run(self, argv, environment, **rest)

    monkeypatch.setattr(Runner, "run", noting)
    return found


def children():
    """Return the children of this process that read for it."""
    return [one for one in procs.processes() if one.parent == os.getpid() and "--batch-command" in one.command]


def write(git, parent, changes, *, parents=None, **rest):
    ids = parents if parents is not None else [parent] if parent else []
    return git.write_commit(OUT, base=parent, parents=ids, message="é\n\nx", changes=changes, when=1, **rest)


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_commits_are_those_that_git_makes(new_git, lasting, started, object_format):
    """The same changes, some of which put files where folders were, in both ways: the same ids, and git is content."""
    chance = random.Random(7)
    plain, quick = new_git("plain", object_format, identity=WHO), lasting("quick", object_format)
    size = 64 if object_format == "sha256" else 40
    tips: list[str | None] = [None]
    blob = blob_id(b"put\n", "0" * size)
    for number in range(25):
        changes: list[Put | Drop] = [Put(b"always/there", b"put\n")]
        for _ in range(chance.randrange(1, 5)):
            name = chance.choice(NAMES)
            pick = chance.randrange(4)
            known = Put(name, oid=blob) if number else Put(name, b"put\n")
            changes.append(Drop(name) if pick == 0 else known if pick == 1 else Put(name, b"%d\n" % number * number))
        base = tips[-1]
        parents = [base, chance.choice(tips[1:-1])] if number % 5 == 4 else None
        reset = number % 7 == 6
        first = write(plain, base, changes, parents=parents, reset_tree=reset)
        del started[:]
        second = write(quick, base, changes, parents=parents, reset_tree=reset, also=["refs/wire/also"])
        assert second == first
        assert set(started) <= {"rev-parse"}, "but for the format, nothing was started"
        assert quick.resolve(OUT) == quick.resolve("refs/wire/also") == second
        tips.append(second)
    gitcmd.git(Path(quick.git_dir), "fsck", "--strict", "--full")
    packs = Path(quick.git_dir, "objects", "pack")
    gitcmd.git(Path(quick.git_dir), "verify-pack", *map(str, packs.glob("*.idx")))
    assert not list(packs.glob("tmp_*"))
    assert {path.stat().st_mode & 0o777 for path in packs.iterdir()} == {0o444}


def test_differences_are_those_that_git_lists(new_git, lasting, started):
    """Files that become folders, links, programs and commits of others, and names in git's odd order."""
    chance = random.Random(11)
    quick = lasting("quick")
    plain = Git(quick.git_dir, environ=quick._core.environ)
    modes = ["100644", "100755", "120000", "160000"]
    base = commit(quick, None, Put(b"a", b"1"))
    blob = blob_id(b"1", base)
    tip = base
    for _ in range(25):
        index = {"GIT_INDEX_FILE": str(Path(quick.git_dir, "scratch"))}
        plain.run("read-tree", "--empty", env=index)
        for name in chance.sample([b"a", b"a.b", b"a-b", b"b/c", b"b/d", b"b.c", b"c/d/e"], 4):
            mode = chance.choice(modes)
            oid = base if mode == "160000" else blob
            plain.run("update-index", "--add", "--cacheinfo", f"{mode},{oid},{name.decode()}", env=index)
        tree = plain.run("write-tree", env=index).stdout.decode().strip()
        made = plain.run("commit-tree", "-p", tip, tree, input=b"x").stdout.decode().strip()
        del started[:]
        found, ways = quick.diff(tip, made), quick.history(tip, made, max_count=100)
        assert started == []
        assert found == plain.diff(tip, made)
        assert ways == plain.history(tip, made, max_count=100)
        tip = made
    fifth = plain.run("rev-parse", f"{tip}~5").stdout.decode().strip()
    several = quick.history(fifth, tip, max_count=100)
    assert len(several.commits) == 5
    assert several == plain.history(fifth, tip, max_count=100)


@pytest.mark.parametrize("mode", [b"040000", b"100664"], ids=["a zero in front", "a mode of long ago"])
def test_a_tree_of_another_form_is_left_to_git(lasting, started, mode):
    quick = lasting("quick")
    base = commit(quick, None, Put(b"f/x", b"1"), Put(b"g", b"2"))
    held = {entry.path: entry.oid for entry in quick.entries(base)}
    folder = quick.run("rev-parse", f"{base}:f").stdout.decode().strip()
    entry = folder if mode == b"040000" else held[b"g"]
    odd = b"%s %s\0%s" % (mode, b"f", bytes.fromhex(entry))
    tree = quick.run("hash-object", "-t", "tree", "-w", "--stdin", "--literally", input=odd).stdout.decode().strip()
    tip = quick.run("commit-tree", "-p", base, tree, input=b"x").stdout.decode().strip()
    plain = Git(quick.git_dir, environ=quick._core.environ)
    del started[:]
    assert quick.diff(base, tip) == plain.diff(base, tip)
    assert started == ["diff-tree", "diff-tree"]
    made = commit(quick, tip, Put(b"h", b"3"))
    assert "fast-import" in started
    assert {entry.path for entry in quick.entries(made)} >= {b"h"}


def test_what_is_no_line_of_single_commits_is_left_to_git(lasting, started):
    quick = lasting("quick")
    base = commit(quick, None, Put(b"a", b"1"))
    ours, theirs = commit(quick, base, Put(b"b", b"1")), commit(quick, base, Put(b"c", b"1"))
    merge = write(quick, ours, [Put(b"c", b"1")], parents=[ours, theirs])
    del started[:]
    assert not quick.history(ours, theirs, max_count=100).descends
    assert {one.oid for one in quick.history(base, merge, max_count=100).commits} == {ours, theirs, merge}
    assert started == ["log", "log"]


def test_little_things_are_read_by_one_child_that_outlives_a_packing(lasting, started):
    quick = lasting("quick")
    first = commit(quick, None, Put(b"a", b"1"), Put(b"big", b"x" * 5000))
    held = {entry.path: entry.oid for entry in quick.entries(first)}
    del started[:]
    assert quick.blobs(held.values(), max_size=100) == {held[b"a"]: b"1", held[b"big"]: None}
    assert quick.sizes(held.values()) == {held[b"a"]: 1, held[b"big"]: 5000}
    assert file_in(quick, [first], "a", max_size=10) == {first: b"1"}
    assert started == []
    assert len(children()) == 1
    gitcmd.git(Path(quick.git_dir), "repack", "-a", "-d", "-q")  # somebody else packs, and ours is not told
    second = commit(quick, first, Put(b"b", b"2"))
    assert quick.blobs([blob_id(b"2", second), held[b"a"]], max_size=10) == {
        blob_id(b"2", second): b"2",
        held[b"a"]: b"1",
    }
    assert started == []
    quick.pack()
    assert children() == [], "it held files that are gone"
    assert quick.blobs([held[b"a"]], max_size=10) == {held[b"a"]: b"1"}


def test_what_is_missing_or_damaged_is_told_as_ever(lasting):
    quick = lasting("quick")
    gone = "1" * 40
    with pytest.raises(GitFailed) as failed:
        quick.blobs([gone], max_size=10)
    assert (failed.value.kind, failed.value.object_id) == (Kind.CORRUPT, gone)
    with pytest.raises(GitFailed, match="Not a valid commit"):
        commit(quick, gone, Put(b"a", b"1"))
    first = commit(quick, None, Put(b"a", b"1"))
    assert file_in(quick, [first], "nothing", max_size=10) == {first: None}
    quick.linger(False)
    quick.linger(True)
    pack = next(Path(quick.git_dir, "objects", "pack").glob("*.pack"))
    pack.chmod(0o644)
    pack.write_bytes(pack.read_bytes()[:20] + b"\0" * 60 + pack.read_bytes()[80:])
    with pytest.raises(GitFailed) as failed:
        quick.blobs([blob_id(b"1", first)], max_size=10)
    assert failed.value.kind is Kind.CORRUPT


def test_a_child_that_was_killed_is_replaced(lasting, started):
    quick = lasting("quick")
    first = commit(quick, None, Put(b"a", b"1"))
    oid = blob_id(b"1", first)
    assert quick.blobs([oid], max_size=10) == {oid: b"1"}
    os.kill(children()[0].pid, signal.SIGKILL)
    assert quick.blobs([oid], max_size=10) == {oid: b"1"}
    assert quick.blobs([oid], max_size=10) == {oid: b"1"}
    assert started[-1:] in ([], ["cat-file"]), "at most the question it died in was asked the ordinary way"
    assert len(children()) == 1


def test_a_repository_that_was_made_anew_is_not_taken_for_the_old_one(lasting):
    quick = lasting("quick")
    first = commit(quick, None, Put(b"a", b"1"))
    second = commit(quick, first, Put(b"a", b"2"))
    oid = blob_id(b"1", first)
    assert quick.blobs([oid], max_size=10) == {oid: b"1"}
    os.rename(quick.git_dir, quick.git_dir + ".old")
    quick.init()
    with pytest.raises(GitFailed) as failed:
        quick.blobs([oid], max_size=10)
    assert failed.value.kind is Kind.CORRUPT
    with pytest.raises(GitFailed):
        commit(quick, second, Put(b"b", b"1"))
    with pytest.raises(GitFailed):
        quick.history(first, second, max_count=100)
    shutil.rmtree(quick.git_dir + ".old")


def test_the_child_goes_when_nobody_asks_and_with_its_process(lasting, monkeypatch, tmp_path, environ):
    quick = lasting("quick")
    oid = blob_id(b"1", commit(quick, None, Put(b"a", b"1")))
    quick.blobs([oid], max_size=10)
    quick.rest()
    assert len(children()) == 1
    monkeypatch.setattr(reader, "IDLE_SECONDS", 0.0)
    quick.rest()
    assert children() == []
    program = f"""
import os
from wire.gitio import Git
git = Git({quick.git_dir!r}, environ=os.environ)
git.linger(True)
print(git.blobs([{oid!r}], max_size=10), flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True
    )
    assert done.stdout.startswith(b"{"), done.stderr
    eventually(lambda: not procs.marked(f"WIRE_TEST_MARK={tmp_path}"), what="the end of the killed process's child")


def test_a_child_that_hangs_holds_nobody_who_is_told_to_end(lasting):
    quick = lasting("quick")
    oid = blob_id(b"1", commit(quick, None, Put(b"a", b"1")))
    assert quick.blobs([oid], max_size=10) == {oid: b"1"}
    os.kill(children()[0].pid, signal.SIGSTOP)
    threading.Timer(0.3, lambda: quick.cancel(stop=True)).start()
    began = time.monotonic()
    with pytest.raises(GitFailed) as failed:
        quick.blobs([oid], max_size=10)
    assert failed.value.kind is Kind.CANCELLED
    assert time.monotonic() - began < 5
    assert children() == []


def test_refs_of_our_own_are_set_as_git_sets_them(lasting, started):
    quick = lasting("quick")
    first = commit(quick, None, Put(b"a", b"1"))
    second = commit(quick, first, Put(b"a", b"2"))
    del started[:]
    quick.update_refs([RefUpdate("refs/wire/verified", first), RefUpdate("refs/wire/heard/mac", first)])
    quick.update_ref("refs/wire/verified", second, old=first)
    assert started == []
    shown = gitcmd.git(Path(quick.git_dir), "rev-parse", "refs/wire/verified", "refs/wire/heard/mac")
    assert shown.decode().split() == [second, first]
    # All or none, as git has it.
    with pytest.raises(GitFailed) as failed:
        quick.update_refs([RefUpdate("refs/wire/heard/mac", second), RefUpdate("refs/wire/verified", first, old=first)])
    assert failed.value.kind is Kind.RACE
    assert quick.resolve("refs/wire/heard/mac") == first
    lock = Path(quick.git_dir, "refs/wire/verified.lock")
    lock.touch()
    with pytest.raises(GitFailed) as failed:
        quick.update_ref("refs/wire/verified", first)
    assert failed.value.kind is Kind.LOCKED
    lock.unlink()
    with pytest.raises(GitFailed):
        quick.update_ref("refs/wire/verified", "1" * 40)
    with pytest.raises(GitFailed):
        quick.update_ref("refs/wire/heard", first)
    # What is packed, and an empty folder in the way.
    gitcmd.git(Path(quick.git_dir), "pack-refs", "--all")
    quick.update_ref("refs/wire/verified", first, old=second)
    Path(quick.git_dir, "refs/wire/other/empty").mkdir(parents=True)
    quick.update_ref("refs/wire/other", first)
    assert (quick.resolve("refs/wire/verified"), quick.resolve("refs/wire/other")) == (first, first)
    assert not list(Path(quick.git_dir, "refs").rglob("*.lock"))
    # Branches keep their reflogs, which is git's to do.
    del started[:]
    quick.update_ref("refs/heads/main", first)
    assert started == ["update-ref"]


def test_a_full_disk_is_told_by_git_and_leaves_nothing(lasting, monkeypatch):
    quick = lasting("quick")
    first = commit(quick, None, Put(b"a", b"1"))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("wire.gitio.packs.os.fsync", full)
    made = commit(quick, first, Put(b"b", b"1" * MB))
    assert quick.resolve(OUT) == made, "git had the space, and made it"
    assert not list(Path(quick.git_dir).rglob("tmp_wire_*"))


def test_a_limit_reaches_what_was_started_before_it(tmp_path, environ):
    """However late a limit is set, it holds for the child, its children, and what these start later."""
    ready, go = tmp_path / "ready", tmp_path / "go"
    os.mkfifo(go)
    write = "head -c 300000 /dev/zero >"
    inner = f'touch {ready}; read line <{go}; {write} {tmp_path}/inner; sh -c "{write} {tmp_path}/later"; :'
    outer = f"(sh -c '{inner}'; :) & wait; {write} {tmp_path}/outer; ulimit -c"
    process = subprocess.Popen(["sh", "-c", outer], env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    eventually(ready.exists)
    limits.limit(process.pid, max_file=100_000)
    go.write_text("now\n")
    told, _ = process.communicate(timeout=20)
    assert told.split() == [b"0"]
    assert {name: (tmp_path / name).stat().st_size for name in ("inner", "later", "outer")} == {
        "inner": 100_000,
        "later": 100_000,
        "outer": 100_000,
    }
    limits.limit(process.pid, max_file=1)  # it is gone


def test_where_limits_cannot_be_set_from_outside_a_shell_sets_them(git, new_git, remote, monkeypatch):
    monkeypatch.setattr("wire.gitio.core.can_limit", lambda: False)
    large = commit(git, None, Put(b"a", random.Random(1).randbytes(2 * MB)))
    git.push(remote.url, f"{large}:refs/heads/main")
    with pytest.raises(GitFailed) as failed:
        new_git("spark").fetch(remote.url, ["+refs/heads/main:refs/wire/incoming"], max_bytes=MB)
    assert failed.value.kind is Kind.TOO_LARGE
