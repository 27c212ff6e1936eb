"""What happens to a clone over time: packing, leftovers, a full disk."""

import os
import sys
import time
from pathlib import Path

import pytest

from support import gitcmd
from support.clones import OUT, commit
from support.small_disk import on_small_disk
from wire.gitio import Counts, GitFailed, Put

# Growth and damage


def test_packing_keeps_counts_small_whatever_lies_about(git):
    """Files that make git's own gc step back: of a dead process, or of a live one on another machine."""
    Path(git.git_dir, "gc.pid").write_text(f"{os.getpid()} {os.uname().nodename}\n")
    Path(git.git_dir, "objects").mkdir(exist_ok=True)
    Path(git.git_dir, "objects", "maintenance.lock").touch()
    tip = None
    for number in range(40):
        tip = commit(git, tip, Put(b"%d" % number, b"x"))
        git.run("hash-object", "-w", "--stdin", input=b"loose %d" % number)
    kept = git.run("hash-object", "-w", "--stdin", input=b"a ref holds it").stdout.decode().strip()
    git.update_ref("refs/wire/rescue/1", kept)
    assert git.counts() == Counts(41, 40)
    assert git.counts().loose == 41
    assert git.pack(full=False).packs <= 3
    assert git.counts().loose == 0
    assert git.pack(full=False).packs <= 3
    assert git.pack().packs <= 3, "the first one is full"
    assert len(git.history(None, tip, max_count=100).commits) == 40
    assert git.blobs([kept], max_size=100) == {kept: b"a ref holds it"}
    gitcmd.git(Path(git.git_dir), "fsck", "--full", "--strict")


def test_what_nothing_reaches_goes_after_its_time(git):
    """Presence replaces a commit per beat; the objects of the old ones must not stay for ever."""
    kept = commit(git, None, Put(b"a", b"1"))
    dropped = commit(git, None, Put(b"a", b"2"))
    git.update_ref(OUT, kept, dropped)
    git.pack(full=True)
    assert git.resolve(f"{dropped}^{{commit}}") == dropped, "not before its time"
    long_ago = time.time() - 3 * 86400
    for file in Path(git.git_dir, "objects", "pack").iterdir():
        os.utime(file, (long_ago, long_ago))
    # The times of unreachable objects stand in the cruft pack; make it anew from what looks old.
    for cruft in Path(git.git_dir, "objects", "pack").glob("*.mtimes"):
        cruft.unlink()
    git.pack(full=True)
    with pytest.raises(GitFailed):
        git.blobs([dropped], max_size=100)
    assert git.resolve(OUT) == kept
    gitcmd.git(Path(git.git_dir), "fsck", "--full", "--strict")


def test_leftovers_of_long_ago_are_removed_and_a_persons_mark_stays(git):
    commit(git, None, Put(b"a", b"1"))
    packs = Path(git.git_dir, "objects", "pack")
    old = {"tmp_pack_1": b"", ".tmp-9-pack-1.pack": b"", "pack-1.keep": b"fetch-pack 9 on host\n", "pack-2.keep": b"me"}
    for name, data in {**old, "tmp_pack_new": b""}.items():
        (packs / name).write_bytes(data)
        if name in old:
            os.utime(packs / name, (1, 1))
    git.pack()
    left = {name for name in os.listdir(packs) if name in {**old, "tmp_pack_new": b""}}
    assert left == {"pack-2.keep", "tmp_pack_new"}


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path):
    ran = on_small_disk(
        tmp_path,
        f"sys.path[:0] = {sys.path!r}\n"
        """
from wire.gitio import Git, GitFailed, Put
git = Git(DISK + "/w/.git", environ={"PATH": os.environ["PATH"], "HOME": DISK, "GIT_CONFIG_NOSYSTEM": "1"})
git.init()
def put(data, parent=None):
    made = git.write_commit("refs/wire/out", base=parent, parents=[parent] if parent else [], message="x",
        changes=[Put(b"a", data)])
    return made
first = put(b"1")
before = sorted(os.path.join(*x) for x in ((d, f) for d, _, fs in os.walk(git.git_dir) for f in fs))
fill()
for attempt in range(3):
    try:
        put(os.urandom(100_000), first)
    except GitFailed as e:
        assert e.kind == "disk-full", e.message
        assert e.exit_status == 1
    else:
        raise SystemExit("it fitted?")
assert before == sorted(os.path.join(*x) for x in ((d, f) for d, _, fs in os.walk(git.git_dir) for f in fs))
assert git.resolve("refs/wire/out") == first
free()
second = put(b"2", first)
assert git.resolve("refs/wire/out") == second
""",
        kib=512,
    )
    assert ran.returncode == 0, ran.stderr
