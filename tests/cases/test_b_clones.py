"""B12, B13, B14, B17: empty remotes, names of branches, no upstream, and a repository that lost power."""

import json
import os
import subprocess

import pytest

from support import gitcmd, oracle
from support.sizes import size
from support.team import begin, bodies, incidents, join, read


def test_b12_an_empty_wire_has_nothing_to_read(machines, remote):
    mac = machines("mac")
    begin(mac, remote)
    mac.wire("sync")
    empty = mac.wire("tail", "--json")
    assert empty.json()["result"] == "nothing-new"
    assert mac.wire("log").stdout == ""
    oracle.check([mac], remote)


def test_b12_of_those_who_begin_at_once_one_wins_and_the_others_can_join(machines, tmp_path):
    from support.remote import BareRemote

    rounds = size(2, 20, "rounds of beginning one wire at once")
    for n in range(rounds):
        remote = BareRemote(tmp_path / f"hub-{n}.git")
        names = ["mac", "spark", "review"]
        running = {
            name: machines(f"{name}-{n}").spawn("init", remote.url, "--as", name, "--wire", "hub", "--json")
            for name in names
        }
        ended = {name: (process.communicate(timeout=60), process.returncode) for name, process in running.items()}
        (winner,) = [name for name, (_, status) in ended.items() if status == 0]
        made = json.loads(ended[winner][0][0])
        for name, ((out, err), status) in ended.items():
            if name == winner:
                continue
            assert status == 2, err
            told = json.loads(out)
            assert told["reason"] == "already-a-wire"
            assert f"wire join {remote.url} --as NAME --trust" in told["next_step"]
        roots = gitcmd.line(remote.path, "rev-list", "--max-parents=0", "--all").split()
        assert len(roots) == 1
        assert remote.show("_coordination/trust/000001.json")
        loser = next(name for name in names if name != winner)
        assert made["checkpoint"].startswith("1:SHA256:")
        fresh = machines(f"later-{n}")
        fresh.wire("join", remote.url, "--as", loser, "--trust", made["checkpoint"])


REMOTE_DEFAULTS = ["main", "master", "trunk"]  # of an empty repository: its HEAD is unborn, and the branch is `main`
LOCAL_DEFAULTS = ["main", "master", None]


@pytest.mark.parametrize("local_default", LOCAL_DEFAULTS, ids=["local main", "local master", "local unset"])
@pytest.mark.parametrize("remote_default", REMOTE_DEFAULTS)
def test_b13_any_names_of_branches(machines, remote, remote_default, local_default):
    remote.set_default_branch(remote_default)
    mac, spark = machines("mac"), machines("spark")
    for machine in (mac, spark):
        if local_default is not None:
            (machine.home / ".gitconfig").write_text(f"[init]\n\tdefaultBranch = {local_default}\n")
    begin(mac, remote)
    join(mac, spark, remote)
    for machine in (mac, spark):
        assert machine.json("status", check=False)["branch"] == "main"
        assert "branch main" in machine.wire("status", check=False).stdout
    assert (
        gitcmd.line(remote.path, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags") == "refs/heads/main"
    )
    mac.send("spark", "hello")
    mac.wire("sync")
    spark.wire("sync")
    assert read(spark) == ["hello"]
    oracle.check([mac, spark], remote, branch="main")


@pytest.mark.parametrize("name", ["master", "trunk"])
def test_b13_a_branch_that_was_asked_for(machines, remote, name):
    mac, spark = machines("mac"), machines("spark")
    mac.wire("init", remote.url, "--as", "mac", "--branch", name)
    for args in ((), ("--branch", name)):
        found = spark.wire("join", remote.url, "--as", "spark", "--trust", checkpoint(mac), *args, check=False)
        assert found.status == (0 if args else 2), str(found)
    assert spark.json("status", check=False)["branch"] == name


def checkpoint(machine):
    return machine.json("trust", "show")["checkpoint"]


def test_b13_a_remote_whose_head_names_no_branch(team):
    """`origin/HEAD` is missing, or names a branch that is not there."""
    team.remote.set_default_branch("gone")
    newcomer = team.join("review")
    newcomer.send("mac", "hello")
    team.settle()
    assert read(team.mac) == ["hello"]
    team.check(branch="main")


PUSH = "[push]\n\tdefault = {how}\n\tautoSetupRemote = true\n[branch]\n\tautoSetupMerge = always\n"


@pytest.mark.parametrize("how", ["nothing", "upstream", "matching"])
def test_b14_no_upstream_is_needed(team, how):
    for machine in team.machines:
        (machine.home / ".gitconfig").write_text(PUSH.format(how=how))
        assert b"branch." not in gitcmd.git(machine.clone(), "config", "--list", "--local")
    before = gitcmd.line(team.remote.path, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags")
    team.mac.send("spark", "there")
    team.spark.send("mac", "and back")
    team.sync_and_check()
    assert (read(team.spark), read(team.mac)) == (["there"], ["and back"])
    assert gitcmd.line(team.remote.path, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags") == before


def newest(folder, pattern):
    """Return the file that was written last."""
    return max(folder.glob(pattern), key=lambda file: (file.stat().st_mtime_ns, file.name))


def loosen(clone):
    """Make the objects of all packs loose, as another git's would be."""
    packs = clone / ".git/objects/pack"
    parked = clone.parent.parent / "parked-packs"
    packs.rename(parked)
    packs.mkdir()
    for pack in sorted(parked.glob("*.pack")):
        with pack.open("rb") as data:
            subprocess.run(
                ["git", "unpack-objects", "-q"], cwd=clone, stdin=data, env=gitcmd.clean_environ(), check=True
            )


def test_b17_an_empty_loose_object_is_told_and_repaired(team):
    """The newest object of the newest commit is 0 bytes long after a loss of power."""
    for n in range(3):
        team.mac.send("spark", f"line {n}")
    team.settle()
    team.mac.send("spark", "not pushed")
    clone = team.mac.clone()
    loosen(clone)
    oid = gitcmd.line(clone, "rev-parse", "refs/wire/accepted:_coordination/mac/spark/000001.jsonl")
    damaged = clone / ".git/objects" / oid[:2] / oid[2:]
    damaged.chmod(0o644)
    os.truncate(damaged, 0)
    failed = team.mac.wire("sync", check=False)
    assert failed.status != 0
    (incident,) = incidents(team.mac, "CORRUPT")
    assert oid in json.dumps(incident), "names the object"
    told = team.mac.json("status", check=False)
    assert not told["healthy"]
    # Reading and sending need no git, and the files are whole.
    assert bodies(team.mac.wire("tail", "--json", "--all", check=False)) == []
    assert team.mac.json("show", "mac/spark/2")["line"]["body"] == "line 1"
    team.mac.send("spark", "sending goes on")
    assert "wire repair" in incident["next_step"]
    team.mac.wire("repair")
    team.mac.wire("sync")
    team.sync_and_check()
    assert read(team.spark) == [*(f"line {n}" for n in range(3)), "not pushed", "sending goes on"]
    assert incidents(team.mac, "CORRUPT") == []
    gitcmd.git(clone, "fsck", "--full")


HARMS = {
    "the newest pack is empty": lambda git_dir: os.truncate(newest(git_dir, "objects/pack/*.pack"), 0),
    "the newest pack is cut": lambda git_dir: os.truncate(newest(git_dir, "objects/pack/*.pack"), 100),
    "the newest index of a pack is empty": lambda git_dir: os.truncate(newest(git_dir, "objects/pack/*.idx"), 0),
    "every pack is gone": lambda git_dir: [file.unlink() for file in git_dir.glob("objects/pack/*")],
    "all refs are empty": lambda git_dir: [os.truncate(file, 0) for file in git_dir.glob("refs/*/*") if file.is_file()],
    "our refs are NUL": lambda git_dir: [
        file.write_bytes(bytes(41)) for file in git_dir.glob("refs/wire/**/*") if file.is_file()
    ],
    "HEAD is empty": lambda git_dir: os.truncate(git_dir / "HEAD", 0),
    "the configuration is NUL": lambda git_dir: (git_dir / "config").write_bytes(bytes(100)),
    "the index is NUL": lambda git_dir: (git_dir / "index").write_bytes(bytes(100)),
}


@pytest.mark.parametrize("harm", HARMS)
def test_b17_what_a_loss_of_power_does_to_a_repository_loses_no_line(team, harm):
    """Either the next cycles mend it by themselves, or they say what it is and `wire repair` mends it."""
    team.mac.send("spark", "pushed")
    team.spark.send("mac", "an answer")
    team.settle()
    team.mac.send("spark", "not pushed")
    HARMS[harm](team.mac.clone() / ".git")
    first = team.mac.wire("sync", check=False)
    assert "Traceback" not in first.stderr
    assert "internal" not in first.stdout
    team.mac.send("spark", "sending goes on")
    if team.mac.wire("sync", check=False).status:
        assert not team.mac.json("status", check=False)["healthy"]
        (incident,) = [one for one in incidents(team.mac) if one["state"] == "open"]
        assert "wire repair" in incident["next_step"], str(incident)
        team.mac.wire("repair")
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert read(team.spark) == ["pushed", "not pushed", "sending goes on"]
    assert read(team.mac) == ["an answer"]
    assert team.mac.json("verify", "--full")["problems"] == []
    assert [one for one in incidents(team.mac) if one["code"] == "CORRUPT"] == []
