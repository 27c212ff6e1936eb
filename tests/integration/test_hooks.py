"""The pre-commit hook as git runs it: installed, refusing real commits, and said to be inactive when it is."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import gitcmd, team
from support.machine import Result
from support.team import Team

MINE = team.path("mac/spark")
JUNK = b"a line that nobody signed\n"


class Clone:
    """The clone of `mac`, with a person and a shell that knows nothing of wire."""

    def __init__(self, crew: Team) -> None:
        self.team = crew
        self.mac = crew.mac
        self.path = crew.mac.clone()
        self.hook = self.path / ".git/hooks/pre-commit"
        crew.mac.send("spark", "first")
        crew.mac.wire("sync")

    def environ(self, **changes: str) -> dict[str, str]:
        """A shell in which `wire` is not on PATH and no variable of it is set."""
        kept = {k: v for k, v in self.mac.env.items() if not k.startswith(("WIRE_", "XDG_"))}
        return {**kept, **gitcmd.PERSON, "PATH": "/usr/local/bin:/usr/bin:/bin", **changes}

    def git(self, *args: str | Path, where: Path | None = None, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *map(str, args)],
            cwd=where or self.path,
            env=self.environ(**changes),
            capture_output=True,
            text=True,
            timeout=60,
        )

    def hooks(self, *args: str, **rest: object) -> Result:
        return self.mac.wire("hooks", *args, check=False, **rest)  # type: ignore[arg-type]

    def install(self) -> Result:
        return self.mac.wire("hooks", "install", "git")

    def append(self, *data: bytes, where: Path | None = None) -> None:
        file = (where or self.path) / MINE
        file.write_bytes(file.read_bytes() + b"".join(data))

    @property
    def head(self) -> str:
        return gitcmd.line(self.path, "rev-parse", "HEAD")


@pytest.fixture
def clone(team: Team) -> Clone:
    return Clone(team)


# It runs


def test_an_honest_commit_passes_and_a_bad_one_is_refused(clone: Clone) -> None:
    clone.install()
    clone.append(*team.write(clone.mac, "mac/spark", "by hand"))
    done = clone.git("commit", "-a", "-m", "honest")
    assert done.returncode == 0, done.stderr
    before, size = clone.head, (clone.path / MINE).stat().st_size
    clone.append(JUNK)
    done = clone.git("commit", "-a", "-m", "bad")
    assert done.returncode != 0
    assert f"{MINE}:3: byte {size}: SIGNATURE" in done.stderr
    assert "begins with 'a line that nobody signed'" in done.stderr
    assert clone.head == before
    assert not list(clone.path.rglob("*.lock"))


@pytest.mark.parametrize(
    "commit",
    [
        pytest.param(["commit", "-a", "-m", "x"], id="all"),
        pytest.param(["commit", "-m", "x", MINE], id="one-path"),
        pytest.param(["commit", "--amend", "-a", "--no-edit"], id="amend"),
        pytest.param(["commit", "-a", "-m", "x", "--quiet", "--allow-empty"], id="quiet"),
    ],
)
def test_every_kind_of_commit_is_judged(clone: Clone, commit: list[str]) -> None:
    """git hands the hook another index for each of them."""
    clone.install()
    clone.append(JUNK)
    before = clone.head
    assert clone.git(*commit).returncode != 0
    assert clone.head == before
    (clone.path / MINE).write_bytes(gitcmd.git(clone.path, "show", f"HEAD:{MINE}"))
    clone.append(*team.write(clone.mac, "mac/spark", "honest"))
    done = clone.git(*commit)
    assert done.returncode == 0, done.stderr
    assert clone.head != before


def test_from_a_folder_below_and_from_a_linked_work_tree(clone: Clone, tmp_path: Path) -> None:
    clone.install()
    below = clone.path / "_coordination/mac"
    clone.append(JUNK)
    assert "SIGNATURE" in clone.git("commit", "-a", "-m", "x", where=below).stderr
    clone.git("checkout", "--", ".")
    linked = tmp_path / "linked"
    assert clone.git("worktree", "add", "--detach", linked).returncode == 0
    clone.append(JUNK, where=linked)
    assert "SIGNATURE" in clone.git("commit", "-a", "-m", "x", where=linked).stderr
    clone.git("checkout", "--", ".", where=linked)
    clone.append(*team.write(clone.mac, "mac/spark", "honest"), where=linked)
    done = clone.git("commit", "-a", "-m", "x", where=linked)
    assert done.returncode == 0, done.stderr


def test_a_conflict_that_was_committed_with_its_markers_is_refused(clone: Clone) -> None:
    """As an autostash leaves it: three markers and both sides."""
    clone.install()
    good = (clone.path / MINE).read_bytes()
    ours, theirs = team.write(clone.mac, "mac/spark", "ours"), team.write(clone.mac, "mac/spark", "theirs")
    (clone.path / MINE).write_bytes(
        b"".join([good, b"<<<<<<< Updated upstream\n", *ours, b"=======\n", *theirs, b">>>>>>> Stashed changes\n"])
    )
    done = clone.git("commit", "-a", "-m", "merged")
    assert done.returncode != 0
    for line in (2, 4, 6):
        assert f"{MINE}:{line}: byte" in done.stderr
    assert done.stderr.count("conflict marker") == 3


def test_a_key_in_the_clone_is_refused(clone: Clone) -> None:
    clone.install()
    key = next((clone.mac.wire_home / "keys").glob("*/agent-mac.key"))
    shutil.copy(key, clone.path / "_coordination/mac/backup.key")
    clone.git("add", "--all")
    done = clone.git("commit", "-m", "backup")
    assert done.returncode != 0
    assert "_coordination/mac/backup.key:1: byte" in done.stderr
    assert "PRIVATE_KEY" in done.stderr


@pytest.mark.parametrize("harm", [b"", b"\0" * 64, b"{}", None], ids=["empty", "zeros", "other", "missing"])
def test_it_fails_closed_where_the_pin_cannot_be_used(clone: Clone, harm: bytes | None) -> None:
    clone.install()
    pin = team.state(clone.mac) / "pin.json"
    pin.unlink()
    if harm is not None:
        pin.write_bytes(harm)
    before = clone.head
    done = clone.git("commit", "--allow-empty", "-m", "x")
    assert done.returncode != 0
    assert str(pin) in done.stderr
    assert clone.head == before


def test_it_runs_when_the_interpreter_that_installed_it_is_gone(clone: Clone, tmp_path: Path) -> None:
    """After an upgrade that moved it: `git-wire` on PATH does it; without either the commit is refused."""
    clone.install()
    clone.hook.write_text(clone.hook.read_text().replace(sys.executable, "/opt/gone/bin/python3"))
    clone.append(*team.write(clone.mac, "mac/spark", "honest"))
    refused = clone.git("commit", "-a", "-m", "x")
    assert refused.returncode != 0
    assert "wire hooks install git" in refused.stderr
    scripts = f"{clone.mac.program.parent}:/usr/bin:/bin"
    assert clone.git("commit", "-a", "-m", "x", PATH=scripts).returncode == 0
    clone.append(JUNK)
    assert "SIGNATURE" in clone.git("commit", "-a", "-m", "x", PATH=scripts).stderr
    # A stranger's program named `wire` is never asked.
    (tmp_path / "wire").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "wire").chmod(0o755)
    assert clone.git("commit", "-a", "-m", "x", PATH=f"{tmp_path}:/usr/bin:/bin").returncode != 0


def test_a_commit_in_a_shell_with_another_home_is_judged_by_the_pin_of_the_clone(clone: Clone, tmp_path: Path) -> None:
    clone.install()
    clone.append(JUNK)
    other = {"WIRE_HOME": str(tmp_path / "other"), "WIRE_AGENT": "nobody", "WIRE_NAME": "nothing"}
    assert "SIGNATURE" in clone.git("commit", "-a", "-m", "x", **other).stderr


# It is installed, and said to be inactive


def test_it_is_installed_once_and_stays_executable(clone: Clone) -> None:
    missing = clone.hooks("status")
    assert missing.status == 1
    assert "hook inactive because there is no" in missing.stderr
    assert clone.hooks("install", "git", "--check").status == 1
    assert not clone.hook.exists()
    assert "hook active" in clone.install().stdout
    text, mode = clone.hook.read_bytes(), clone.hook.stat().st_mode
    assert mode & 0o111 == 0o111
    inode = clone.hook.stat().st_ino
    clone.install()
    assert (clone.hook.read_bytes(), clone.hook.stat().st_mode, clone.hook.stat().st_ino) == (text, mode, inode)
    clone.hook.write_bytes(text + b"# mine\n")
    clone.install()
    assert clone.hook.read_bytes() == text
    assert clone.hooks("status").status == 0
    assert clone.mac.json("hooks", "status")["active"] is True
    assert clone.mac.wire("hooks", "uninstall", "git").stdout.startswith("removed")
    assert not clone.hook.exists()
    assert "no hook" in clone.mac.wire("hooks", "uninstall", "git").stdout


def test_somebody_elses_hook_is_left_alone_and_can_call_ours(clone: Clone) -> None:
    clone.hook.parent.mkdir(exist_ok=True)
    clone.hook.write_text("#!/bin/sh\nexit 0\n")
    clone.hook.chmod(0o755)
    refused = clone.hooks("install", "git")
    assert refused.status == 2
    assert "somebody else's hook" in refused.stderr
    assert clone.hook.read_text() == "#!/bin/sh\nexit 0\n"
    assert clone.hooks("uninstall", "git").status == 2
    assert "does not call wire" in clone.hooks("status").stderr
    # What is said to be added works as it is said.
    line = refused.stderr.partition("with a line of its own: ")[2].strip()
    clone.hook.write_text(f"#!/bin/sh\n# first theirs, then ours\n{line}\n")
    assert clone.hooks("status").status == 0
    assert clone.hooks("install", "git").status == 0
    assert line in clone.hook.read_text()
    clone.append(JUNK)
    assert "SIGNATURE" in clone.git("commit", "-a", "-m", "x").stderr


def set_global(clone: Clone, tmp_path: Path) -> None:
    (clone.mac.home / ".gitconfig").write_text(f"[core]\n\thooksPath = {tmp_path}/shared-hooks\n")


def set_local(clone: Clone, tmp_path: Path) -> None:
    clone.git("config", "core.hooksPath", tmp_path / "elsewhere")


def set_relative(clone: Clone, tmp_path: Path) -> None:
    clone.git("config", "core.hooksPath", ".githooks")


def set_to_nothing(clone: Clone, tmp_path: Path) -> None:
    clone.git("config", "core.hooksPath", os.devnull)


def set_for_the_work_tree(clone: Clone, tmp_path: Path) -> None:
    clone.git("config", "extensions.worktreeConfig", "true")
    clone.git("config", "--worktree", "core.hooksPath", tmp_path / "elsewhere")


def take_the_x_bit(clone: Clone, tmp_path: Path) -> None:
    clone.hook.chmod(0o644)


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        pytest.param(set_global, "core.hooksPath (global", id="global"),
        pytest.param(set_local, "core.hooksPath (local", id="local"),
        pytest.param(set_relative, "core.hooksPath (local", id="relative"),
        pytest.param(set_to_nothing, "core.hooksPath (local", id="devnull"),
        pytest.param(set_for_the_work_tree, "core.hooksPath (worktree", id="worktree"),
        pytest.param(take_the_x_bit, "is not executable", id="not-executable"),
    ],
)
def test_a_hook_that_git_does_not_run_is_told_and_the_next_step_mends_it(
    clone: Clone, tmp_path: Path, harm: Callable[[Clone, Path], None], why: str
) -> None:
    clone.install()
    harm(clone, tmp_path)
    clone.append(JUNK)
    assert clone.git("commit", "--dry-run", "-a").returncode == 0
    for command in (("status",), ("install", "git", "--check")):
        told = clone.hooks(*command)
        assert told.status == 1
        assert "hook inactive because" in told.stderr
        assert why in told.stderr
    if harm is not take_the_x_bit:
        assert "hook inactive because" in clone.hooks("install", "git").stderr
    step = told.stderr.partition("next: ")[2].strip()
    subprocess.run(shlex.split(step), check=True, env=clone.environ())
    assert clone.hooks("status").status == 0
    assert "SIGNATURE" in clone.git("commit", "-a", "-m", "x").stderr


def test_it_is_inactive_where_one_work_tree_does_not_run_it(clone: Clone, tmp_path: Path) -> None:
    """A relative hooksPath leads somewhere else in each work tree."""
    clone.install()
    clone.git("config", "core.hooksPath", ".git/hooks")
    assert clone.hooks("status").status == 0
    assert clone.git("worktree", "add", "--detach", tmp_path / "linked").returncode == 0
    told = clone.hooks("status")
    assert told.status == 1
    assert str(tmp_path / "linked") in told.stderr


def test_a_hooks_folder_that_calls_wire_is_active(clone: Clone, tmp_path: Path) -> None:
    clone.install()
    shared = tmp_path / "shared-hooks"
    shared.mkdir()
    set_global(clone, tmp_path)
    shutil.copy(clone.hook, shared / "pre-commit")
    assert clone.hooks("status").status == 0
    (shared / "pre-commit").chmod(0o644)
    assert "is not executable" in clone.hooks("status").stderr


def test_asked_from_within_another_repository_it_looks_at_the_clone(clone: Clone, tmp_path: Path) -> None:
    """As `git wire hooks status`, where git has set its variables."""
    clone.install()
    gitcmd.git(tmp_path, "init", "--quiet", "other")
    environ = {"GIT_DIR": str(tmp_path / "other/.git"), "GIT_WORK_TREE": str(tmp_path / "other")}
    assert clone.hooks("status", env=environ).status == 0


def test_a_clone_that_is_gone_is_told(clone: Clone) -> None:
    shutil.rmtree(clone.path)
    told = clone.hooks("status")
    assert told.status != 0
    assert str(clone.path) in told.stderr


# What it is not


def test_what_was_committed_around_the_hook_is_accepted_by_nobody(clone: Clone) -> None:
    """`--no-verify` and a push by hand: peers verify for themselves, and the next honest push takes it out again."""
    clone.install()
    crew = clone.team
    crew.spark.wire("sync")
    assert team.read(crew.spark, status=None) == ["first"]
    clone.append(JUNK)
    assert clone.git("commit", "-a", "--no-verify", "-m", "around").returncode == 0
    pushed = clone.git("push", crew.remote.url, f"HEAD:refs/heads/{crew.remote.branch}")
    assert pushed.returncode == 0, pushed.stderr
    assert JUNK in crew.remote.show(MINE)
    crew.spark.wire("sync", check=False)
    assert [one["code"] for one in team.incidents(crew.spark, "SIGNATURE")] == ["SIGNATURE"]
    assert team.read(crew.spark, status=None) == []
    assert JUNK not in crew.spark.segment("mac/spark").read_bytes()
    clone.mac.send("spark", "honest")
    clone.mac.wire("sync", check=False)
    assert JUNK not in crew.remote.show(MINE)
    crew.spark.wire("sync", check=False)
    shown = team.read(crew.spark, status=None)
    assert "honest" in shown
    assert JUNK.decode().strip() not in shown
    crew.check(attacked=True)
