"""J1, J2, J3, J13: what commands say when something did not happen."""

import re
import shutil
import subprocess
import threading
import time

import pytest

from support.daemons import set_cadence
from support.team import incidents, path, pin, read, state

FORBIDDEN = re.compile(r"Traceback|RetryError|error inside wire|No such file or directory: ")


# J1

GONE = "does not appear to be a git repository"


def test_j1_every_command_that_needs_the_remote_fails_with_gits_own_reason(team, machines):
    """And none of them leaves anything half done behind."""
    newcomer = machines("late")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    joined = newcomer.json("join", team.remote.url, "--as", "late", "--trust", checkpoint)
    team.mac.wire("sync")
    away = team.remote.path.with_name("away.git")
    team.remote.path.rename(away)
    nobody = machines("nobody")
    for machine, args in (
        (team.mac, ("sync",)),
        (team.mac, ("heal",)),
        (team.mac, ("trust", "approve", "late", "--fingerprint", joined["fingerprint"])),
        (team.mac, ("group", "set", "both", "mac", "spark")),
        (nobody, ("init", team.remote.url, "--as", "nobody")),
        (nobody, ("join", team.remote.url, "--as", "nobody", "--trust", checkpoint)),
    ):
        failed = machine.wire(*args, check=False)
        assert failed.status == 6, str(failed)
        assert GONE in failed.stderr
        assert not FORBIDDEN.search(failed.stderr)
        as_json = machine.wire(*args, "--json", check=False)
        assert as_json.status == 6
        assert GONE in as_json.stdout
    assert nobody.clones == []
    listed = team.mac.wire("trust", "requests", check=False)
    assert (listed.status, "late" in listed.stdout, GONE in listed.stderr) == (6, True, True)
    away.rename(team.remote.path)
    assert team.mac.json("trust", "show")["checkpoint"] == checkpoint, "nothing was changed"
    team.mac.wire("trust", "approve", "late", "--fingerprint", joined["fingerprint"])
    nobody.wire("join", team.remote.url, "--as", "nobody", "--trust", checkpoint)


def without_git(team):
    lonely = team.mac.root / "lonely"
    lonely.mkdir()
    return {"PATH": str(lonely)}


def clone_gone(team):
    shutil.rmtree(team.mac.clone() / ".git")


def damaged_objects(team):
    for file in (team.mac.clone() / ".git" / "objects").rglob("*"):
        if file.is_file():
            file.chmod(0o644)
            file.write_bytes(b"")


def loose_key(team):
    for file in (team.mac.wire_home / "keys").rglob("*"):
        if file.is_file():
            file.chmod(0o644)


def corrupt_pin(team):
    (state(team.mac) / "pin.json").write_bytes(b"\0" * 100)


def corrupt_config(team):
    (team.mac.wire_home / "config.toml").write_bytes(b"[[wire]\n")


def no_state(team):
    shutil.rmtree(state(team.mac))
    state(team.mac).touch()


HARM = {
    "no git": (without_git, 1, "git not found in PATH="),
    "the clone is gone": (clone_gone, 1, "there is no repository at"),
    "empty objects": (damaged_objects, 1, "is too small"),
    "a damaged pin": (corrupt_pin, 1, "pin.json"),
    "a damaged configuration": (corrupt_config, 1, "config.toml, line 1"),
    "a file in the place of the state": (no_state, 1, "state/hub"),
}


@pytest.mark.parametrize("what", HARM)
def test_j1_trouble_of_this_machine_is_told_with_its_cause(team, what):
    harm, status, said = HARM[what]
    team.mac.send("spark", "it waits")
    environ = harm(team)
    failed = team.mac.wire("sync", check=False, env=environ)
    assert failed.status == status, str(failed)
    assert said in failed.stderr, str(failed)
    assert not FORBIDDEN.search(failed.stderr)
    shown = team.mac.wire("status", check=False, env=environ)
    assert shown.status != 0
    as_json = team.mac.wire("sync", "--json", check=False, env=environ)
    assert as_json.status == status
    assert as_json.stdout.count("\n") == 1
    assert said in as_json.stdout or what == "a file in the place of the state"


def test_j1_a_key_that_cannot_be_used_stops_its_own_lines_and_says_so(team):
    team.mac.send("spark", "it waits")
    loose_key(team)
    done = team.mac.wire("sync", check=False)
    assert done.status == 5, str(done)
    assert "mode 0644" in done.stderr
    assert "not approved" not in done.stderr
    (incident,) = incidents(team.mac, "KEY")
    assert incident["next_step"].startswith("chmod 600 ")
    assert team.mac.wire("status", check=False).status != 0
    refused = team.mac.wire("send", "spark", "not with this key", check=False)
    assert (refused.status, "chmod 600" in refused.stderr) == (5, True)
    for command in incident["next_step"].split("; "):
        subprocess.run(["sh", "-c", command], check=True)
    team.sync_and_check()
    assert incidents(team.mac) == []


# J2


def says_pushed(team, message_id):
    """Return what any command says of a message that is a claim to be on the remote."""
    claims = []
    for args in (("sync",), ("status",), ("show", message_id), ("log",), ("status", "--json"), ("log", "--json")):
        result = team.mac.wire(*args, check=False)
        text = result.stdout + result.stderr
        claims += re.findall(r"pushed [1-9]\d*\b(?! (?:s|min|h|d) ago)|" + re.escape(message_id) + r"\W+pushed", text)
        claims += re.findall(r"\"(?:state|pushed)\":\"?[p1-9]\w*", text)
        claims += re.findall(r"\bdelivered", text)
    return claims


LYING = {
    "refuses": ("pre-receive", "exit 1"),
    "takes it and puts the old tip back": (
        "post-receive",
        'while read old new ref; do git update-ref "$ref" "$old"; done',
    ),
}


@pytest.mark.parametrize("how", LYING)
def test_j2_nothing_is_called_pushed_that_the_remote_does_not_have(team, how):
    hook, script = LYING[how]
    team.remote.install_pre_receive(script)
    if hook != "pre-receive":
        (team.remote.path / "hooks" / "pre-receive").rename(team.remote.path / "hooks" / hook)
    tip = team.remote.tip()
    message_id = team.mac.send("spark", "hello")
    failed = team.mac.wire("sync", check=False)
    assert failed.status == 6, str(failed)
    assert team.remote.tip() == tip
    assert says_pushed(team, message_id) == []
    waited = team.mac.wire("send", "spark", "waited for", "--wait", "pushed", "--timeout", "1", check=False)
    assert waited.status == 3
    assert "mac/spark/2 stored" in waited.stdout
    assert "mac/spark/2 pushed" not in waited.stdout
    team.mac.sent.append("mac/spark/2")
    (team.remote.path / "hooks" / hook).unlink()
    team.sync_and_check()
    assert says_pushed(team, message_id) != [], "and now it is"
    assert read(team.spark) == ["hello", "waited for"]


def test_j2_a_push_whose_answer_was_lost_is_found_at_the_next_look(team, host):
    """The other way round: it is there, and we were told that it failed. It is there once."""
    team.reach_by(host.url("hub.git"))
    team.mac.wire("sync")
    host.lose_answers = True
    tip = team.remote.tip()
    team.mac.send("spark", "hello")
    failed = team.mac.wire("sync", check=False)
    assert failed.status == 6, str(failed)
    assert team.remote.tip() != tip
    commits = len(team.remote.commits())
    host.lose_answers = False
    team.sync_and_check()
    assert len(team.remote.commits()) == commits
    assert read(team.spark) == ["hello"]
    assert pin(team.mac).remote_seq["mac/spark"] == 1


# J3


def test_j3_a_message_that_is_only_here_is_never_called_more(team):
    sent = team.mac.wire("send", "spark", "one")
    team.mac.remember(sent)
    assert sent.stdout == "mac/spark/1 stored\n"
    began = time.monotonic()
    waited = team.mac.wire("send", "spark", "two", "--wait", "pushed", "--timeout", "1", check=False)
    assert 1 <= time.monotonic() - began < 10
    assert waited.status == 3
    assert waited.stdout == "mac/spark/2 stored\n"
    assert "not pushed within 1 s" in waited.stderr
    assert "do not send it again" in waited.stderr
    as_json = team.mac.wire("send", "spark", "three", "--wait", "pushed", "--timeout", "0.5", "--json", check=False)
    assert as_json.status == 3
    (told,) = as_json.jsonl()
    assert told["reason"] == "not-reached"
    assert told["details"] == {"ids": ["mac/spark/3"], "states": ["stored"], "awaited": "pushed"}
    team.mac.sent += ["mac/spark/2", "mac/spark/3"]
    seen = team.mac.json("status", check=False)
    assert seen["unpushed"] == 3
    assert 0 < seen["oldest_unpushed_age_s"] < 60
    assert "3 message(s) are not on the remote yet, the oldest from 20" in team.mac.wire("status", check=False).stdout
    team.sync_and_check()
    assert read(team.spark) == ["one", "two", "three"]
    assert team.mac.json("status", check=False)["unpushed"] == 0


def test_j3_waiting_ends_well_only_when_the_remote_has_it(team):
    """Somebody else's `wire sync` may be what brings it there."""
    set_cadence(team.mac, t0=1)
    syncs = threading.Timer(0.7, lambda: team.mac.wire("sync"))
    syncs.start()
    waited = team.mac.wire("send", "spark", "by hand", "--wait", "pushed", "--timeout", "30")
    syncs.join()
    assert waited.stdout.split("\n")[:2] == ["mac/spark/1 stored", "mac/spark/1 pushed"]
    team.mac.start_daemon()
    for n in range(3):
        waited = team.mac.wire("send", "spark", f"line {n}", "--wait", "pushed", "--timeout", "30")
        assert waited.stdout.endswith(f"mac/spark/{n + 2} pushed\n")
        assert f'"line {n}"'.encode() in team.remote.show(path("mac/spark"))
    team.mac.stop_daemon()


# J13


def test_j13_lost_races_are_told_with_what_git_said_and_how_often(team):
    """Somebody pushes between every fetch and push of ours: no retry hides what happened."""
    # A hook that lets somebody else be faster, every time.
    faster = (
        'parent=$(git rev-parse refs/heads/main); tree=$(git rev-parse "$parent^{tree}"); '
        "commit=$(env -u GIT_QUARANTINE_PATH -u GIT_OBJECT_DIRECTORY -u GIT_ALTERNATE_OBJECT_DIRECTORIES "
        'git commit-tree -p "$parent" -m faster "$tree" </dev/null); '
        'env -u GIT_QUARANTINE_PATH git update-ref refs/heads/main "$commit"; exit 0'
    )
    team.remote.install_pre_receive(faster)
    team.mac.send("spark", "in the end")
    failed = team.mac.wire("sync", check=False)
    assert failed.status == 1, str(failed)
    assert re.search(r"others pushed first 8 times in a row \(.*(cannot lock ref|failed to update)", failed.stderr)
    assert not FORBIDDEN.search(failed.stderr)
    team.remote.remove_pre_receive()
    team.sync_and_check()
