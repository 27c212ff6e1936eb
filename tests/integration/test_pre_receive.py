"""The host's hook and honest people: it lets everything lawful pass, and what it refuses is understood."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support import gitcmd
from support import team as people
from support.hostile_host import HostileHost, segment
from support.remote import BareRemote
from support.waiting import eventually
from wire.errors import UsageError
from wire.gitio import GitFailed
from wire.hooks import prereceive, serverhook
from wire.hooks.githook import Owner
from wire.hooks.prereceive import Rules, Update
from wire.protocol import chain as chain_module

RECALL = "wire-pre-receive.json"
CHANNEL = "mac/spark"


def install(remote: BareRemote, *, rules: Rules | None = None) -> None:
    report = serverhook.install({}, str(remote.path), rules or Rules())
    assert report.active, report.why


def settle(team: people.Team) -> None:
    """Let all sync where incidents are to be told."""
    for machine in [*team.machines, *team.machines]:
        told = machine.wire("sync", check=False)
        assert told.status in (0, 4), str(told)


# Honest people


def test_a_whole_life_passes_through_the_hook(machines, remote):
    install(remote, rules=Rules(branch="main"))
    mac, spark = machines("mac"), machines("spark")
    people.begin(mac, remote)
    people.join(mac, spark, remote)
    mac.send("spark", "before")
    code = mac.json("invite", "lee", "--no-wait")["code"]
    lee = machines("lee")
    lee.wire("join", code, "--no-service", check=False)
    mac.wire("sync")
    mac.wire("group", "set", "crew", "spark")
    for machine in (mac, spark):
        machine.start_daemon()
    mac.send("crew", "to the group")
    spark.send("all", "to everybody")
    mac.send("spark", "and so on", "--subject", "a subject")
    eventually(lambda: len(people.bodies(spark.wire("tail", "--all", "--json", check=False))) >= 3, what="three arrive")
    eventually(lambda: people.bodies(mac.wire("tail", "--all", "--json", check=False)) != [], what="the answer arrives")
    for machine in (mac, spark):
        assert machine.stop_daemon() == 0
        machine.wire("sync")
        assert people.incidents(machine, everything=True) == []
    # Of two pushes at one moment the later one's memory stays; one that is alone is remembered.
    mac.send("spark", "and that is all")
    mac.wire("sync")
    known = json.loads((remote.path / RECALL).read_bytes())
    assert known["channels"][CHANNEL][-1][2] == 3
    presences = remote.git("for-each-ref", "--format=%(refname)", "refs/wire/presence/").decode().split()
    assert presences == ["refs/wire/presence/mac", "refs/wire/presence/spark"]


def test_owners_take_out_what_is_not_theirs_and_put_back_what_is(team):
    host = HostileHost(team.remote)
    team.mac.send("spark", "one")
    team.mac.send("spark", "two")
    team.settle()
    install(team.remote)
    host.append(CHANNEL, b"junk\n")
    host.append("mac/all", b"junk\n", number=7)
    team.mac.send("spark", "three")
    settle(team)
    assert b"junk" not in (host.read(segment(CHANNEL)) or b"")
    assert host.read(segment("mac/all", 7)) is None
    host.delete(CHANNEL, 1)
    team.mac.wire("sync", check=False)
    assert len(host.lines(CHANNEL)) == 3
    settle(team)
    team.check(attacked=True)


@pytest.mark.parametrize(
    "loss",
    [
        lambda host: host.squash(),
        lambda host: host.roll_back(2),
        lambda host: host.unrelated({segment(CHANNEL): b"mine\n"}),
        lambda host: host.delete_branch(),
        lambda host: host.commit({"_coordination/trust/000002.json": None, segment(CHANNEL): None}, parents=[]),
    ],
    ids=["squashed", "rolled back", "unrelated", "deleted", "trust and lines gone"],
)
def test_a_lost_history_is_healed_through_the_hook(team, loss):
    team.mac.send("spark", "one")
    team.spark.send("mac", "two")
    team.settle()
    install(team.remote, rules=Rules(trust=team.mac.json("trust", "show")["checkpoint"]))
    host = HostileHost(team.remote)
    wanted = host.lines(CHANNEL)
    loss(host)
    team.mac.wire("sync", check=False)
    assert team.mac.wire("heal", check=False).status in (0, 4)
    assert host.lines(CHANNEL) == wanted
    team.mac.send("spark", "it goes on")
    settle(team)
    assert len(host.lines(CHANNEL)) == len(wanted) + 1


def test_keys_change_through_the_hook(team):
    install(team.remote, rules=Rules(branch="main"))
    team.mac.json("keys", "rotate")  # it holds the root
    team.spark.send("mac", "by the old key")
    asked = team.spark.json("keys", "rotate")
    team.spark.send("mac", "by the new key")
    team.mac.wire("trust", "approve", "spark", "--fingerprint", asked["fingerprint"])
    team.settle()
    for text in ("one", "two", "three"):
        team.spark.send("mac", text)
    team.settle()
    seen = len(HostileHost(team.remote).lines("spark/mac"))
    revoked = team.mac.wire("trust", "revoke", "spark", "--reason", "stolen", "--at", f"spark/mac/{seen - 1}", "--yes")
    assert revoked.status == 0
    for machine in [*team.machines, *team.machines]:
        machine.wire("sync", check=False)
    assert [one for machine in team.machines for one in people.incidents(machine, "REJECTED", everything=True)] == []


def test_a_long_history_that_is_healed_is_not_walked(team, monkeypatch):
    for number in range(4):
        team.mac.send("spark", f"line {number}")
        team.mac.wire("sync")
    host = HostileHost(team.remote)
    verified = host.tip
    base = host.squash()
    healed = host.commit({}, parents=[base, verified], base=verified, message="heal: every accepted line")
    monkeypatch.setattr(prereceive, "COMMITS_MAX", 2)
    push = "{} {} refs/heads/main\n"
    assert prereceive.run({}, str(team.remote.path), push.format(base, healed).encode(), Rules()) == []
    host.put_back(base)
    for _ in range(3):
        tip = host.commit({})
    (refused,) = prereceive.run({}, str(team.remote.path), push.format(base, tip).encode(), Rules())
    assert refused.text.endswith("SIZE: more than 2 commits in one push")


# What is refused


def test_the_daemon_shows_the_hosts_own_words(team):
    other = "1:SHA256:" + "A" * 43
    install(team.remote, rules=Rules(trust=other))
    sent = team.mac.send("spark", "to a host that takes another wire")
    refused = team.mac.wire("sync", check=False)
    assert refused.status == 6
    assert "wire: refused by the host's hook: TRUST in refs/heads/main" in refused.stderr
    (incident,) = people.incidents(team.mac, "REJECTED")
    assert f"does not pass through {other}" in incident["message"]
    assert team.mac.json("show", sent)["line"]["seq"] == 1
    serverhook.uninstall({}, str(team.remote.path))
    team.settle()
    assert people.incidents(team.mac, "REJECTED") == []
    team.check()


def test_another_wire_is_not_begun_where_one_is_pinned(machines, remote):
    install(remote, rules=Rules(trust="1:SHA256:" + "A" * 43))
    refused = machines("mac").wire("init", remote.url, "--as", "mac", check=False)
    assert refused.status == 6
    assert "does not pass through 1:SHA256:" in refused.stderr
    assert remote.tip() is None


def test_it_fails_closed(team, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for words, stdin in (((), b"no such line\n"), ((), f"{'1' * 40} {'2' * 40} refs/heads/main\n".encode())):
        argv = [sys.executable, "-P", "-m", "wire", "hooks", "run", "pre-receive", *words]
        done = subprocess.run(argv, input=stdin, cwd=team.remote.path, capture_output=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith(b"wire: refused, since this push cannot be judged: ")
        assert b"Traceback" not in done.stderr
    install(team.remote)
    hook = team.remote.path / "hooks" / "pre-receive"
    hook.write_text(hook.read_text().replace(sys.executable, "/nowhere/python"))
    done = subprocess.run([hook], env={"PATH": "/bin"}, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"can judge this push; it is refused" in done.stderr


def test_what_it_remembers_may_be_lost_or_damaged(team):
    install(team.remote)
    recall = team.remote.path / RECALL
    assert recall.exists() is False
    for damage in (
        None,
        b"{",
        b'{"v":1,"trust":3,"channels":[]}',
        b'{"v":1,"trust":[],"channels":{"mac/spark":[[1]]}}',
    ):
        if damage is not None:
            recall.write_bytes(damage)
        team.mac.send("spark", "one more")
        team.mac.wire("sync")
        assert json.loads(recall.read_bytes())["channels"][CHANNEL][-1][2] == len(
            HostileHost(team.remote).lines(CHANNEL)
        )
    vera = team.vandal()
    known = json.loads(recall.read_bytes())
    vera.append(people.path(CHANNEL), b"junk\n")
    vera.commit()
    with pytest.raises(gitcmd.GitFailed, match="SIGNATURE in refs/heads/main"):
        vera.push()
    assert json.loads(recall.read_bytes()) == known


def test_verdicts_are_given_as_json(team):
    vera = team.vandal()
    vera.append(people.path(CHANNEL), b"junk\n")
    made = vera.commit()
    gitcmd.git(team.remote.path, "fetch", "--quiet", vera.path, made)
    line = f"{team.remote.tip()} {made} refs/heads/main\n".encode()
    argv = [sys.executable, "-P", "-m", "wire", "hooks", "run", "pre-receive", "--json"]
    done = subprocess.run(argv, input=line, cwd=team.remote.path, capture_output=True, check=False)
    told = json.loads(done.stdout)
    assert (done.returncode, told["accepted"], told["problems"][0]["code"]) == (4, False, "SIGNATURE")
    assert told["problems"][0]["ref"] == "refs/heads/main"


def test_only_what_is_new_is_read(team, monkeypatch):
    """Ten lines on a long channel: its earlier segments are neither read nor verified."""
    for _ in range(5):
        team.mac.wire("send", "spark", "x" * 60_000)
    team.settle()
    install(team.remote)
    prereceive.prime({}, str(team.remote.path), Rules())
    (new,) = people.write(team.mac, CHANNEL, "the next one")
    host = HostileHost(team.remote)
    old, made = host.tip, host.append(CHANNEL, new, number=2)
    host.put_back(old)
    read: list[str] = []
    verified = []
    fetch = prereceive.Blobs.fetch

    def watch(self: prereceive.Blobs, oids: list[str]) -> None:
        wanted = list(oids)
        read.extend(wanted)
        fetch(self, wanted)

    monkeypatch.setattr(prereceive.Blobs, "fetch", watch)
    real = chain_module.verify
    monkeypatch.setattr(chain_module, "verify", lambda *args: verified.append(args) or real(*args))
    assert prereceive.run({}, str(team.remote.path), f"{old} {made} refs/heads/main\n".encode(), Rules()) == []
    first = gitcmd.line(team.remote.path, "rev-parse", f"{old}:{segment(CHANNEL)}")
    assert read
    assert first not in read
    assert len(verified) == 1


def test_it_loads_little(team):
    """Somebody's push waits for it: neither the command line nor what is slow to import."""
    install(team.remote)
    code = (
        "import os, sys\n"
        "before = set(sys.modules)\n"  # an editable install brings some of its own
        "from wire.hooks.prereceive import Rules, answer\n"
        "status, said = answer(os.environ, os.getcwd(), sys.stdin.buffer.read(), Rules())\n"
        "print(*sorted({name for name in sys.modules.keys() - before if name.count('.') < 2}))\n"
        "sys.exit(said or status)\n"
    )
    (new,) = people.write(team.mac, CHANNEL, "the next one")
    host = HostileHost(team.remote)
    old, made = host.tip, host.append(CHANNEL, new)
    line = f"{old} {made} refs/heads/main\n".encode()
    argv = [sys.executable, "-P", "-c", code]
    done = subprocess.run(argv, input=line, cwd=team.remote.path, capture_output=True, check=True)
    loaded = set(done.stdout.decode().split())
    assert "wire.hooks" in loaded
    slow = {
        "click",
        "git",
        "wire.cli",
        "wire.verbs",
        "wire.setup",
        "sqlite3",
        "tenacity",
        "tomlkit",
        "watchdog",
        "rich",
    }
    assert loaded & (slow | {"email.utils", "urllib.parse", "socket", "tempfile", "shutil", "tomllib"}) == set()


def test_updates_are_read_as_git_tells_them():
    zeros = "0" * 40
    assert prereceive.updates(f"{zeros} {'1' * 40} refs/heads/a b\n".encode()) == [
        Update(zeros, "1" * 40, "refs/heads/a b")
    ]
    for wrong in (b"nothing\n", b"nothing of it\n", f"{zeros} {'1' * 41} refs/heads/a\n".encode()):
        with pytest.raises(ValueError, match="git tells"):
            prereceive.updates(wrong)


# Installed


def test_installed_looked_at_and_removed(team):
    repo = str(team.remote.path)
    assert team.mac.wire("hooks", "install", "pre-receive", "--repo", repo, "--check", check=False).status == 1
    told = team.mac.json("hooks", "install", "pre-receive", "--repo", repo, "--branch", "main")
    hook = Path(told["path"])
    assert (told["active"], hook.name, told["notes"]) == (True, "pre-receive", [])
    assert stat.S_IMODE(hook.stat().st_mode) & 0o111
    assert [command.rpartition("config ")[2] for command in told["settings"]] == [
        "receive.denyNonFastForwards true",
        "receive.denyDeletes true",
        "receive.fsckObjects true",
    ]
    for command in told["settings"]:
        subprocess.run(["sh", "-c", command], check=True, env=gitcmd.clean_environ())
    assert team.mac.json("hooks", "install", "pre-receive", "--repo", repo, "--branch", "main")["settings"] == []
    other = team.mac.wire("hooks", "install", "pre-receive", "--repo", repo, "--check", check=False)
    assert (other.status, "not as this version and these rules want it" in other.stderr) == (1, True)
    team.mac.send("spark", "with all of git's own rules on")
    team.settle()
    assert team.mac.json("hooks", "uninstall", "pre-receive", "--repo", repo)["changed"] is True
    assert not hook.exists()
    assert team.mac.wire("hooks", "uninstall", "pre-receive", "--repo", repo).stdout == "there is no hook\n"


def test_the_script_alone_is_what_is_installed(team):
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    printed = team.mac.wire("hooks", "install", "pre-receive", "--script", "--trust", checkpoint).stdout
    assert printed == serverhook.script(Rules(trust=checkpoint))
    assert printed.startswith("#!/bin/sh\n")


def test_a_hook_of_somebody_elses_stays(team):
    hook = team.remote.path / "hooks" / "pre-receive"
    team.remote.install_pre_receive("exit 0")
    text = hook.read_bytes()
    for act in (lambda: serverhook.install({}, str(team.remote.path), Rules()), lambda: _uninstall(team)):
        with pytest.raises(UsageError) as refused:
            act()
        assert refused.value.reason == "foreign-hook"
        assert "hooks run pre-receive || exit 1" in (refused.value.next_step or "")
    assert hook.read_bytes() == text
    hook.write_text(f"#!/bin/sh\n{sys.executable} -P -m wire hooks run pre-receive || exit 1\n")
    assert serverhook.look({}, str(team.remote.path)).owner is Owner.CALLING


def _uninstall(team):
    return serverhook.uninstall({}, str(team.remote.path))


def test_hosts_with_a_place_of_their_own(team):
    """Gitea and Forgejo call what stands in a folder beside the hook; GitLab has a folder for its owner's hooks."""
    below = team.remote.path / "hooks" / "pre-receive.d"
    below.mkdir()
    team.remote.install_pre_receive(
        'data=$(cat)\nfor hook in "$GIT_DIR"/hooks/pre-receive.d/*; do\n    echo "$data" | "$hook" || exit 1\ndone'
    )
    install(team.remote)
    assert [path.name for path in below.iterdir()] == ["wire"]
    vera = team.vandal()
    vera.write("README.md", b"hello\n")
    vera.commit()
    with pytest.raises(gitcmd.GitFailed, match="SHAPE in refs/heads/main"):
        vera.push()
    team.mac.send("spark", "through two hooks")
    team.settle()
    shutil.rmtree(below)
    (team.remote.path / "custom_hooks").mkdir()
    install(team.remote)
    assert os.access(team.remote.path / "custom_hooks" / "pre-receive", os.X_OK)


def test_what_is_wrong_there_already_is_said(team):
    HostileHost(team.remote).append(CHANNEL, b"junk\n")
    told = team.mac.json("hooks", "install", "pre-receive", "--repo", str(team.remote.path))
    assert told["notes"] == [
        f"refs/heads/main: {CHANNEL} carries bytes that are none of its lines; its owner takes them out"
    ]


def test_wrong_use_is_said(team, tmp_path):
    for words, why in (
        (["--repo", "x", "--script"], "--script prints the hook"),
        ([], "which repository?"),
        (["--repo", "x", "--mcp"], "agent runtime"),
        (["--script", "--trust", "nonsense"], "no checkpoint"),
    ):
        refused = team.mac.wire("hooks", "install", "pre-receive", *words, check=False)
        assert (refused.status, why in refused.stderr) == (2, True), refused.stderr
    with pytest.raises(GitFailed):
        serverhook.look({}, str(tmp_path))
