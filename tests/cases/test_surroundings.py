"""Section 7 of what must hold: hostile surroundings change nothing, readers keep their file, and what git is told."""

import os
import subprocess
from pathlib import Path

import pytest

from support import gitcmd, oracle
from support.machine import Machine
from support.sizes import size
from support.team import Team, begin, incidents, join, path, read
from support.waiting import eventually

HOSTILE = """
[user]
	name = Somebody Else
	email = else@example.invalid
	signingKey = /nonexistent
[commit]
	gpgSign = true
	template = ~/template
	cleanup = scissors
[tag]
	gpgSign = true
[push]
	gpgSign = true
	default = matching
	followTags = true
	recurseSubmodules = on-demand
[gpg]
	format = ssh
	program = {home}/sleep-for-ever
[gpg "ssh"]
	program = {home}/sleep-for-ever
[core]
	hooksPath = {home}/hooks
	autocrlf = true
	eol = crlf
	editor = {home}/sleep-for-ever
	pager = {home}/sleep-for-ever
	fsmonitor = {home}/sleep-for-ever
	attributesFile = {home}/attributes
	excludesFile = {home}/excludes
	ignoreCase = true
	precomposeUnicode = true
	quotePath = false
	abbrev = 4
	compression = 0
	sparseCheckout = true
[pull]
	rebase = true
[rebase]
	autoStash = true
[merge]
	conflictStyle = diff3
	ff = only
[fetch]
	prune = true
	recurseSubmodules = true
	parallel = 4
[diff]
	external = {home}/sleep-for-ever
	noprefix = true
	renames = copies
	mnemonicPrefix = true
[log]
	date = relative
	showSignature = true
[color]
	ui = always
[init]
	templateDir = {home}/template-dir
	defaultBranch = hostile
[i18n]
	commitEncoding = UTF-16
	logOutputEncoding = UTF-16
[gc]
	auto = 1
	autoDetach = true
	pruneExpire = now
[receive]
	denyCurrentBranch = refuse
[remote]
	pushDefault = elsewhere
[alias]
	fetch = !{home}/sleep-for-ever
	push = !{home}/sleep-for-ever
[credential]
	helper = {home}/sleep-for-ever
[filter "rot"]
	clean = tr a-z n-za-m
	smudge = tr a-z n-za-m
	required = true
[transfer]
	hideRefs = refs/wire
[safe]
	directory = /nowhere
"""

SLEEPER = '#!/bin/sh\necho called "$0" "$@" >>{home}/called\nexec sleep 600\n'


def make_hostile(machine):
    """Give a machine's user a git configuration in which every program sleeps and every setting is wrong."""
    home = machine.home
    (home / ".gitconfig").write_text(HOSTILE.format(home=home))
    (home / "attributes").write_text("* text eol=crlf filter=rot ident\n")
    (home / "excludes").write_text("*\n")
    # No hook of the receiving side: at a remote on a local path that one is the user's own, and is meant to run.
    hooks = ("pre-commit", "pre-push", "post-checkout", "post-index-change", "post-commit", "pre-auto-gc")
    for name in ("sleep-for-ever", "template-dir/hooks/pre-push", *(f"hooks/{hook}" for hook in hooks)):
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SLEEPER.format(home=home))
        file.chmod(0o755)


def test_a_hostile_configuration_changes_nothing(machines, remote, tmp_path):
    """From the first command on, with another repository's variables exported as a git hook has them."""
    other = tmp_path / "other"
    other.mkdir()
    gitcmd.git(other, "init", "--quiet")
    gitcmd.git(other, "commit", "--quiet", "--allow-empty", "-m", "theirs")
    before = {file: file.read_bytes() for file in sorted((other / ".git").rglob("*")) if file.is_file()}
    exported = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"),
        "GIT_NAMESPACE": "elsewhere",
        "GIT_PREFIX": "somewhere/",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_TRACE": "1",
        "GIT_EDITOR": "false",
        "GIT_AUTHOR_DATE": "nonsense",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": str(tmp_path),
    }
    mac, spark = machines("mac", env=exported), machines("spark", env=exported)
    for machine in (mac, spark):
        make_hostile(machine)
    begin(mac, remote)
    join(mac, spark, remote)
    team = Team(tmp_path, remote, mac, spark, [mac, spark], machines)
    mac.send("spark", "there")
    spark.send("mac", "and back")
    team.sync_and_check()
    assert (read(spark), read(mac)) == (["there"], ["and back"])
    for machine in (mac, spark):
        assert not (machine.home / "called").exists(), (machine.home / "called").read_text()
        assert machine.json("verify", "--full")["problems"] == []
        assert incidents(machine) == []
    assert {file: file.read_bytes() for file in sorted((other / ".git").rglob("*")) if file.is_file()} == before
    authors = gitcmd.line(remote.path, "log", "--format=%an <%ae>").split("\n")
    assert set(authors) <= {"mac <mac@wire.invalid>", "spark <spark@wire.invalid>"}


def test_a_lock_on_the_index_that_is_held_for_long_changes_nothing(team):
    lock = team.mac.clone() / ".git/index.lock"
    holder = subprocess.Popen(["sh", "-c", f"exec 9>{lock}; exec sleep 600"], start_new_session=True)
    try:
        eventually(lock.exists)
        for n in range(5):
            team.mac.send("spark", f"out {n}")
            team.spark.send("mac", f"in {n}")
            team.settle(rounds=1)
        team.settle(rounds=1)
        assert read(team.spark) == [f"out {n}" for n in range(5)]
        assert read(team.mac) == [f"in {n}" for n in range(5)]
        assert lock.exists()
        assert incidents(team.mac) == []
    finally:
        holder.kill()
        holder.wait()
    lock.unlink()
    team.sync_and_check()


def test_a_reader_that_holds_a_segment_open_sees_every_line(team):
    """On one inode, through cycles in which somebody also vandalises the file and the remote."""
    cycles = size(12, 100, "cycles under an open reader")
    team.mac.send("spark", "line 0")
    team.settle()
    file = team.spark.segment("mac/spark")
    seen = b""
    with file.open("rb") as reader:
        seen += reader.read()
        for n in range(1, cycles):
            team.mac.send("spark", f"line {n}")
            if n % 5 == 3:
                vera = team.vandal(f"vera-{n}")
                vera.append(path("mac/spark"), b"junk\n")
                vera.commit()
                vera.push()
            team.mac.wire("sync", check=False)
            team.spark.wire("sync", check=False)
            seen += reader.read()
        assert os.path.samestat(os.fstat(reader.fileno()), file.stat())
    assert seen == file.read_bytes()
    assert read(team.spark, status=None) == [f"line {n}" for n in range(cycles)]
    team.check(attacked=True)


RECORDER = '#!/bin/sh\n{ printf "%s\\037" "$@"; echo; } >>"$RECORDED"\nexec $REAL_GIT "$@"\n'
FORBIDDEN = {
    "pull",
    "rebase",
    "merge",
    "reset",
    "checkout",
    "stash",
    "clean",
    "switch",
    "restore",
    "am",
    "gc",
    "commit",
}


@pytest.fixture
def recorded(tmp_path, machines, remote):
    """A team on whose machines every command line of git is written down; and the file with them."""
    log = tmp_path / "recorded"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(RECORDER)
    program.chmod(0o755)
    import shutil

    real = shutil.which("git") or "/usr/bin/git"

    def make(name: str) -> Machine:
        machine = machines(name, env={"RECORDED": str(log), "REAL_GIT": real})
        machine.env["PATH"] = f"{program.parent}:{machine.env['PATH']}"
        return machine

    mac, spark = make("mac"), make("spark")
    begin(mac, remote)
    join(mac, spark, remote)
    return Team(tmp_path, remote, mac, spark, [mac, spark], make), log


def command_lines(log: Path) -> list[list[str]]:
    return [line.split("\x1f")[:-1] for line in log.read_text("utf-8", "surrogateescape").split("\n") if line]


def words(argv: list[str]) -> list[str]:
    """Return a git command line from its subcommand on."""
    rest = list(argv)
    while rest and rest[0].startswith("-"):
        takes = rest.pop(0)
        if takes in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") and rest:
            rest.pop(0)
    return rest


def test_git_is_never_told_to_throw_anything_away(recorded):
    """Every command line of a long run: honest traffic, races, vandals, a forced history, repairs and daemons."""
    team, log = recorded
    for n in range(3):
        team.mac.send("spark", f"out {n}")
        team.spark.send("mac", f"in {n}")
        racing = [machine.spawn("sync") for machine in team.machines]
        for process in racing:
            process.communicate(timeout=60)
    team.settle()
    # A vandal appends, rewrites, and replaces history.
    vera = team.vandal()
    vera.append(path("mac/spark"), b"junk\n")
    vera.write("elsewhere", b"x")
    vera.commit()
    vera.push()
    for machine in team.machines * 2:
        machine.wire("sync", check=False)
    vera.sync()
    vera.git("checkout", "--quiet", "--orphan", "new")
    vera.write(path("mac/spark"), b"")
    vera.commit("history, as I like it")
    vera.push(force=True)
    for machine in team.machines:
        machine.wire("sync", check=False)
    team.mac.wire("heal", check=False)
    team.spark.wire("sync", check=False)
    # A person in the clone, stale locks, a rejecting host.
    clone = team.mac.clone()
    gitcmd.git(clone, "checkout", "--quiet", "--detach")
    (clone / "note").write_text("by hand\n")
    gitcmd.git(clone, "add", "note")
    gitcmd.git(clone, "commit", "--quiet", "-m", "by hand")
    team.remote.reject_pushes("no")
    team.mac.send("spark", "rejected at first")
    team.mac.wire("sync", check=False)
    team.remote.remove_pre_receive()
    team.mac.wire("repair")
    team.mac.wire("sync", check=False)
    # Daemons, at last.
    for machine in team.machines:
        machine.start_daemon()
    team.mac.send("spark", "by daemons")
    team.spark.send("mac", "by daemons too")
    eventually(lambda: b"by daemons too" in oracle.in_clone(team.mac.clone()).get(path("spark/mac"), b""), timeout=60)
    eventually(lambda: b"by daemons" in oracle.in_clone(team.spark.clone()).get(path("mac/spark"), b""), timeout=60)
    for machine in team.machines:
        machine.stop_daemon()
        machine.wire("sync", check=False)
    team.check(attacked=True)

    lines = [words(argv) for argv in command_lines(log)]
    seen = {line[0] for line in lines if line}
    assert {"fetch", "push", "fast-import"} <= seen, seen
    assert not seen & FORBIDDEN, [line for line in lines if line and line[0] in FORBIDDEN]
    for line in lines:
        if line[:1] != ["push"]:
            continue
        to_branch = [word for word in line if "refs/heads/" in word]
        assert not any(word.startswith("+") for word in to_branch), line
        if to_branch:
            # A presence is replaced where it is what we expect, also in the push that only extends the branch.
            others = [word for word in line if not word.startswith("--force-with-lease=refs/wire/presence/")]
            assert not any(word.startswith(("--force", "-f", "--mirror", "--delete")) for word in others), line
