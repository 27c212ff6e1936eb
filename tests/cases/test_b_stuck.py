"""B1, B2, B6, B7, B8: locks, half-done rebases and a HEAD that stands elsewhere, in the wire's own clone."""

import os
import re
import shutil
import subprocess
import time

import pytest

from support import gitcmd
from support.team import incidents, path, read, state
from support.waiting import eventually

HOUR = 3600.0


def age(file, seconds=HOUR):
    """Make a file or folder look as if it had not changed for that long."""
    then = time.time() - seconds
    os.utime(file, (then, then))


def git_dir(machine):
    return machine.clone() / ".git"


LOCKS = ["index.lock", "HEAD.lock", "refs/heads/main.lock", "packed-refs.lock", "config.lock", "shallow.lock"]


def test_b1_stale_locks_stop_nothing_and_go(team):
    files = [git_dir(team.mac) / lock for lock in LOCKS]
    for file in files:
        file.touch()
    team.mac.send("spark", "through fresh locks")
    team.mac.wire("sync")
    assert all(file.exists() for file in files), "they may be somebody's"
    assert team.mac.json("status", check=False)["fetch_age_s"] < 60
    for file in files:
        age(file)
    team.mac.send("spark", "through stale locks")
    team.mac.wire("sync", check=False)
    told = incidents(team.mac)
    assert {one["code"] for one in told} == {"CLONE_STATE"}
    for file in files:
        assert not file.exists()
        (incident,) = [one for one in told if str(file) in one["message"]]
        assert re.search(r"360\d s old", incident["message"]), "its age"
        assert "no git process" in incident["message"]
    assert len(told) == len(files)
    team.sync_and_check()
    assert read(team.spark) == ["through fresh locks", "through stale locks"]


def test_b1_a_stale_lock_on_our_own_refs(team):
    """They belong to nobody but wire, whose lock is held, so that no age has to be waited for."""
    for name in ("incoming", "outgoing", "accepted", "verified"):
        (git_dir(team.mac) / "refs/wire" / f"{name}.lock").touch()
    team.mac.send("spark", "hello")
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert read(team.spark) == ["hello"]


def test_b2_a_lock_in_use_is_respected(team):
    """`git commit` with an editor that is still open."""
    clone = team.mac.clone()
    (clone / "note").write_text("by hand\n")
    gitcmd.git(clone, "add", "note")
    (clone / "note").write_text("by hand, later\n")
    released, open_now = team.mac.root / "released", team.mac.root / "open-now"
    editor = (
        f'sh -c \'touch {open_now}; while [ ! -e {released} ]; do sleep 0.05; done; echo "a commit by hand" >"$0"\''
    )
    committing = subprocess.Popen(
        ["git", "commit", "--quiet", "-a"],
        cwd=clone,
        env=gitcmd.clean_environ({"GIT_EDITOR": editor, "TERM": "dumb"}),
        stdout=subprocess.DEVNULL,
    )
    try:
        lock = git_dir(team.mac) / "index.lock"
        eventually(open_now.exists)
        age(lock)  # however old: somebody is at work
        for n in range(3):
            team.mac.send("spark", f"meanwhile {n}")
            team.mac.wire("sync")
            assert lock.exists()
        (waits,) = incidents(team.mac)
        assert (waits["code"], waits["count"]) == ("CLONE_STATE", 3)
        assert str(lock) in waits["message"]
        team.spark.wire("sync")
        assert read(team.spark) == ["meanwhile 0", "meanwhile 1", "meanwhile 2"]
    finally:
        released.touch()
        assert committing.wait(20) == 0
    made = gitcmd.line(clone, "rev-parse", "HEAD")
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    (incident,) = incidents(team.mac)
    assert incident["code"] == "RESCUED"
    assert made in gitcmd.line(clone, "for-each-ref", "--format=%(objectname)", "refs/wire/rescue")
    assert gitcmd.line(clone, "rev-parse", "HEAD") == team.remote.tip()


def own_commits(team, count=2):
    """Let a person commit in the clone, which nobody should; return the commits."""
    clone = team.mac.clone()
    made = []
    for n in range(count):
        (clone / f"note-{n}").write_text(f"by hand {n}\n")
        gitcmd.git(clone, "add", f"note-{n}")
        gitcmd.git(clone, "commit", "--quiet", "-m", f"by hand {n}")
        made.append(gitcmd.line(clone, "rev-parse", "HEAD"))
    return made


def start_rebase(team):
    """Begin a rebase in the clone and kill it with its editor open; return the commits that it was about."""
    made = own_commits(team)
    started = team.mac.root / "started"
    rebasing = subprocess.Popen(
        ["git", "rebase", "--quiet", "-i", "HEAD~1"],
        cwd=team.mac.clone(),
        env=gitcmd.clean_environ({"GIT_SEQUENCE_EDITOR": f"touch {started}; sleep 60; true", "TERM": "dumb"}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    eventually(started.exists)
    eventually((git_dir(team.mac) / "rebase-merge").exists)
    os.killpg(rebasing.pid, 9)
    rebasing.wait()
    return made


def test_b6_a_rebase_that_was_killed_ends_by_itself(team):
    team.mac.send("spark", "before")
    team.settle()
    made = start_rebase(team)
    team.mac.send("spark", "during")
    team.mac.wire("sync", check=False)
    team.spark.wire("sync")
    assert read(team.spark) == ["before", "during"], "syncing never waited for it"
    age(git_dir(team.mac) / "rebase-merge")
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert {one["code"] for one in incidents(team.mac)} == {"CLONE_STATE", "RESCUED"}
    rescued = gitcmd.line(team.mac.clone(), "for-each-ref", "--format=%(objectname)", "refs/wire/rescue")
    assert made[-1] in rescued
    assert gitcmd.line(team.mac.clone(), "symbolic-ref", "HEAD") == "refs/heads/main"


def test_b6_a_rebase_under_way_is_waited_for(team):
    """A person is in the middle of something: their HEAD is not moved under their hands."""
    own_commits(team)
    gitcmd.git(team.mac.clone(), "checkout", "--quiet", "--detach")
    head = gitcmd.line(team.mac.clone(), "rev-parse", "HEAD")
    (git_dir(team.mac) / "rebase-merge").mkdir()
    team.spark.send("mac", "news")
    team.spark.wire("sync")
    team.mac.wire("sync", check=False)
    assert read(team.mac, status=None) == ["news"]
    assert gitcmd.line(team.mac.clone(), "rev-parse", "HEAD") == head
    assert (git_dir(team.mac) / "rebase-merge").exists()
    age(git_dir(team.mac) / "rebase-merge")
    team.mac.wire("sync", check=False)
    team.sync_and_check()


HALF_DONE = {
    "an empty rebase-merge": {"rebase-merge": None},
    "a rebase-merge with only an autostash": {"rebase-merge/autostash": "HEAD"},
    "a rebase-merge with junk": {"rebase-merge/autostash": "no such object", "rebase-merge/orig-head": "\0\0"},
    "an empty rebase-apply": {"rebase-apply": None},
    "a merge": {"MERGE_HEAD": "HEAD", "MERGE_MSG": "merge by hand", "MERGE_MODE": ""},
    "a cherry-pick": {"CHERRY_PICK_HEAD": "HEAD"},
    "a revert": {"REVERT_HEAD": "HEAD"},
    "a bisect": {"BISECT_LOG": "git bisect start\n", "BISECT_START": "main"},
}


@pytest.mark.parametrize("what", HALF_DONE)
def test_b7_a_state_that_git_cannot_abort_is_cleared(team, what):
    """Unpushed lines stay, what it names stays reachable, and the daemon goes on."""
    team.remote.reject_pushes("not now")
    team.mac.send("spark", "unpushed")
    team.mac.wire("sync", check=False)
    clone = team.mac.clone()
    stash = gitcmd.line(clone, "commit-tree", "-m", "stashed by hand", "HEAD^{tree}")
    for name, content in HALF_DONE[what].items():
        file = git_dir(team.mac) / name
        file.parent.mkdir(exist_ok=True)
        if content is None:
            file.mkdir()
        else:
            file.write_text(stash + "\n" if content == "HEAD" else content)
    for name in HALF_DONE[what]:
        age(git_dir(team.mac) / name.split("/")[0])
    team.remote.remove_pre_receive()
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert read(team.spark) == ["unpushed"]
    assert "CLONE_STATE" in {one["code"] for one in incidents(team.mac)}
    if "HEAD" in HALF_DONE[what].values():
        rescued = gitcmd.line(clone, "for-each-ref", "--format=%(objectname)", "refs/wire/rescue")
        assert stash in rescued
    assert gitcmd.git(clone, "status", "--porcelain") == b""


def test_b7_what_was_set_aside_can_be_looked_at(team):
    folder = git_dir(team.mac) / "rebase-merge"
    folder.mkdir()
    (folder / "git-rebase-todo").write_text("pick abc\n")
    age(folder)
    team.mac.wire("sync", check=False)
    (aside,) = (state(team.mac) / "aside").glob("rebase-merge-*")
    assert (aside / "git-rebase-todo").read_text() == "pick abc\n"
    assert str(aside) in str(incidents(team.mac, "CLONE_STATE")[0]["evidence"])


def test_b8_a_detached_head_is_attached_again(team):
    team.mac.send("spark", "before")
    team.settle()
    gitcmd.git(team.mac.clone(), "checkout", "--quiet", "--detach")
    team.mac.send("spark", "on a detached HEAD")
    team.sync_and_check()
    assert read(team.spark) == ["before", "on a detached HEAD"]
    assert gitcmd.line(team.mac.clone(), "symbolic-ref", "HEAD") == "refs/heads/main"
    assert incidents(team.mac) == []


def test_b8_commits_on_a_detached_head_are_kept_before_anything_else(team):
    clone = team.mac.clone()
    gitcmd.git(clone, "checkout", "--quiet", "--detach")
    made = own_commits(team)
    team.mac.send("spark", "hello")
    # git itself must find them after it has forgotten how they came about.
    team.mac.wire("sync", check=False)
    gitcmd.git(clone, "reflog", "expire", "--expire=now", "--all")
    gitcmd.git(clone, "gc", "--quiet", "--prune=now")
    for commit in made:
        assert gitcmd.line(clone, "cat-file", "-t", commit) == "commit"
    (incident,) = incidents(team.mac)
    assert incident["code"] == "RESCUED"
    assert made[-1] in str(incident["evidence"])
    team.sync_and_check()
    assert read(team.spark) == ["hello"]


def test_b8_another_branch_is_left_for_the_wires_own(team):
    clone = team.mac.clone()
    gitcmd.git(clone, "checkout", "--quiet", "-b", "mine")
    made = own_commits(team)
    team.mac.send("spark", "hello")
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert gitcmd.line(clone, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert gitcmd.line(clone, "rev-parse", "mine") == made[-1], "their branch is theirs"
    assert not any(name.startswith("note") for name in team.remote.files()), "never published"


def test_b8_what_a_person_does_in_the_clone_loses_nothing(team):
    """checkout, stash, clean, rm, a wrong branch and all of it again, while lines go on."""
    clone = team.mac.clone()
    first = gitcmd.line(clone, "rev-list", "--max-parents=0", "HEAD")
    deeds = [
        lambda: gitcmd.git(clone, "checkout", "--quiet", first),
        lambda: (clone / path("mac/spark")).unlink(),
        lambda: gitcmd.git(clone, "clean", "-qffdx"),
        lambda: gitcmd.git(clone, "read-tree", "--empty"),
        lambda: shutil.rmtree(clone / "_coordination"),
        lambda: gitcmd.git(clone, "update-ref", "-d", "refs/heads/main"),
        lambda: (git_dir(team.mac) / "index").unlink(missing_ok=True),
        lambda: gitcmd.git(clone, "config", "core.bare", "true"),
        lambda: (git_dir(team.mac) / "HEAD").write_text("ref: refs/heads/nowhere\n"),
    ]
    team.mac.send("spark", "before")
    team.settle()
    for n, deed in enumerate(deeds):
        deed()
        team.mac.send("spark", f"line {n}")
        team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert read(team.spark) == ["before", *(f"line {n}" for n in range(len(deeds)))]
    assert team.mac.json("verify", "--full")["problems"] == []
