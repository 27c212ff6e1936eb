"""What the remote is known to enforce: by its settings, by what it did, by its kind; and nothing is done to it."""

import os
from pathlib import Path

import pytest

from support import gitcmd
from support import team as people
from support.hostile_host import HostileHost
from wire.api import Wire
from wire.hooks import serverhook
from wire.hooks.prereceive import Rules
from wire.verbs import hosting
from wire.verbs.hosting import CONTENT, DELETED, FORCED, NO, OBJECTS, UNKNOWN, YES


def rules(team: people.Team, **rest: str) -> dict[str, str]:
    return {one.name: one.enforced for one in Wire.open(environ=team.mac.env).check_remote(**rest).rules}


def state(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return what changes where somebody writes."""
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def test_a_repository_on_this_machine_tells_all(team):
    before = state(team.remote.path)
    assert rules(team) == {FORCED: NO, DELETED: YES, OBJECTS: NO, CONTENT: NO}
    told = team.mac.wire("remote", "check").stdout
    assert "no      refuses forced pushes of the branch: receive.denyNonFastForwards is off in" in told
    assert "switch on: git config receive.denyNonFastForwards true" in told
    assert "yes     refuses to delete the branch: it is the branch of HEAD" in told
    assert state(team.remote.path) == before
    team.remote.git("config", "receive.denyDeleteCurrent", "warn")
    assert rules(team)[DELETED] == NO
    for setting in ("receive.denyNonFastForwards", "receive.denyDeletes", "transfer.fsckObjects"):
        team.remote.git("config", setting, "yes")
    assert rules(team) == {FORCED: YES, DELETED: YES, OBJECTS: YES, CONTENT: NO}


def test_wires_hook_is_seen(team):
    serverhook.install({}, str(team.remote.path), Rules())
    assert rules(team) == {FORCED: YES, DELETED: YES, OBJECTS: NO, CONTENT: YES}
    (team.remote.path / "hooks" / "pre-receive").chmod(0o644)
    assert rules(team)[CONTENT] == NO


def test_what_is_said_yes_is_refused(team):
    """The table and git agree: what is said to be enforced is refused, and nothing else."""
    vandal = team.vandal()
    vandal.git("checkout", "--quiet", "-B", "main", "HEAD~1")
    team.remote.git("config", "receive.denyNonFastForwards", "true")
    assert (rules(team)[FORCED], rules(team)[DELETED]) == (YES, YES)
    for refspec in ("+main:main", ":main"):
        with pytest.raises(gitcmd.GitFailed, match=r"denying|refusing to delete|non-fast-forward"):
            vandal.git("push", "origin", refspec)


def test_what_it_let_happen_is_remembered(team):
    team.mac.send("spark", "one")
    team.settle()
    host = HostileHost(team.remote)
    host.squash()
    team.mac.wire("sync", check=False)
    team.reach_by(f"ssh://hub.invalid{team.remote.path}")
    checked = Wire.open(environ={**team.mac.env, "GIT_SSH_COMMAND": "false"}).check_remote()
    (forced,) = [one for one in checked.rules if one.name == FORCED]
    assert (forced.enforced, "its history was replaced at 20" in forced.how) == (NO, True)
    assert checked.failure is not None
    told = team.mac.wire("remote", "check", "--json", "--kind", "gitlab", check=False, env={"GIT_SSH_COMMAND": "false"})
    assert told.status == 6
    found = told.json()
    assert (found["kind"], found["failure"]["exit_status"]) == ("gitlab", 6)
    switches = {one["name"]: one["switch"] for one in found["rules"]}
    assert "Protected branches" in switches[FORCED]


def test_a_hook_that_refused_is_remembered(team):
    serverhook.install({}, str(team.remote.path), Rules(trust="1:SHA256:" + "A" * 43))
    team.mac.send("spark", "refused")
    assert team.mac.wire("sync", check=False).status == 6
    team.reach_by(f"ssh://hub.invalid{team.remote.path}")
    checked = Wire.open(environ={**team.mac.env, "GIT_SSH_COMMAND": "false"}).check_remote()
    assert {one.name: one.enforced for one in checked.rules} == {
        FORCED: UNKNOWN,
        DELETED: UNKNOWN,
        OBJECTS: UNKNOWN,
        CONTENT: YES,
    }


@pytest.mark.parametrize(
    ("remote", "kind"),
    [
        ("/srv/wire.git", "bare"),
        ("file:///srv/wire.git", "bare"),
        ("git@github.com:team/wire.git", "github"),
        ("ssh://git@ssh.github.com:443/team/wire.git", "github"),
        ("https://x:y@gitlab.example.org/team/wire.git", "gitlab"),
        ("https://codeberg.org/team/wire.git", "gitea"),
        ("https://forgejo.example.org/team/wire.git", "gitea"),
        ("host:wire.git", "other"),
        ("https://notgithub.com.example.org/x.git", "other"),
    ],
)
def test_kinds_of_hosts(remote, kind):
    assert hosting.kind_of(remote) == kind
    assert set(hosting._SWITCH[kind]) <= set(hosting.REFUSES)


def test_a_closed_host_runs_no_hooks(team, monkeypatch):
    team.reach_by("ssh://git@github.com/team/wire.git")
    monkeypatch.setattr(hosting.Git, "default_branch", lambda self, remote: "refs/heads/main")
    checked = Wire.open(environ=team.mac.env).check_remote()
    found = {one.name: one for one in checked.rules}
    assert (found[CONTENT].enforced, found[DELETED].enforced, found[FORCED].enforced) == (NO, YES, UNKNOWN)
    assert "Block force pushes" in (found[FORCED].switch or "")
    assert os.sep not in checked.kind
