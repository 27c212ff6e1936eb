"""C2, C8: a host whose key is not the known one, and a host with rules of its own."""

import re
import shlex

from support import gitcmd
from support.clones import failing_ssh
from support.team import incidents, read

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Someone could be eavesdropping on you right now (man-in-the-middle attack)!
It is also possible that a host key has just been changed.
The fingerprint for the ED25519 key sent by the remote host is
SHA256:0123456789abcdefghijklmnopqrstuvwxyzABCDEFG.
Please contact your system administrator.
Host key for hub.example.invalid has changed and you have requested strict checking.
Host key verification failed.
"""


def test_c2_an_unknown_host_and_one_that_changed(team, server):
    """Never accepted by us; once a person has put the known hosts right, it goes on without more ado."""
    team.reach_by(server.url(team.remote.path))
    for machine in team.machines:
        machine.env = server.environ(machine.env)
    team.settle(rounds=1)
    team.mac.send("spark", "it waits")
    known = server.folder / "known_hosts"
    for harm in (server.forget_host_key, server.change_host_key):
        harm()
        before = known.read_text()
        failed = team.mac.wire("sync", check=False)
        assert failed.status == 6
        assert "host key" in failed.stderr
        assert f"[127.0.0.1]:{server.port}" in failed.stderr, "names the host"
        assert known.read_text() == before
        (incident,) = incidents(team.mac)
        assert incident["code"] == "HOST_KEY"
        assert f"127.0.0.1]:{server.port}" in incident["message"]
        assert "host key" in team.mac.wire("status", check=False).stdout
        server.learn_host_key()
        team.mac.wire("sync")
        assert incidents(team.mac) == []
    team.sync_and_check()
    assert read(team.spark) == ["it waits"]


def test_c2_the_step_that_is_told_names_the_host(team, tmp_path):
    """What is printed can be run as it stands."""
    team.reach_by("ssh://git@hub.example.invalid:2222/team.git")
    (tmp_path / "said").write_text(CHANGED)
    team.mac.env = failing_ssh(
        tmp_path, team.mac.env, f'echo "$*" >>{tmp_path}/options; cat {tmp_path}/said >&2; exit 255'
    )
    failed = team.mac.wire("sync", check=False)
    assert failed.status == 6
    assert "Host key for hub.example.invalid has changed" in failed.stderr
    assert "next: compare the new fingerprint with the host's owner, then: ssh-keygen -R " in failed.stderr
    (incident,) = incidents(team.mac)
    command = shlex.split(incident["next_step"].rpartition(": ")[2])
    assert command == ["ssh-keygen", "-R", "[hub.example.invalid]:2222"]
    options = (tmp_path / "options").read_text()
    assert "BatchMode=yes" in options
    assert "StrictHostKeyChecking" not in options


RULE = """
while read old new ref; do
  for commit in $(git rev-list "$old..$new"); do
    case "$(git log -1 --format=%ae "$commit")" in
      *@example.org) ;;
      *) echo "GL-HOOK-ERR: the author's address must be one of example.org" >&2; exit 1;;
    esac
  done
done
"""


def test_c8_a_rule_of_the_host_is_told_in_its_own_words_and_can_be_obeyed(team):
    team.remote.install_pre_receive(RULE)
    sent = team.mac.wire("send", "spark", "recorded")
    team.mac.remember(sent)
    assert sent.stdout.split() == ["mac/spark/1", "stored"]
    failed = team.mac.wire("sync", check=False)
    assert failed.status == 6
    assert "GL-HOOK-ERR: the author's address must be one of example.org" in failed.stderr
    (incident,) = incidents(team.mac)
    assert incident["code"] == "REJECTED"
    assert "GL-HOOK-ERR" in incident["message"]
    shown = team.mac.wire("status", check=False)
    assert (shown.status, "GL-HOOK-ERR" in shown.stdout) == (6, True)
    assert "stored 1, committed 1, pushed 0" in shown.stdout

    config = team.mac.wire_home / "config.toml"
    text = config.read_text("utf-8").rstrip("\n")
    config.write_text(f'{text}\nidentity = {{ name = "Mac of the team", email = "mac@example.org" }}\n')
    team.mac.wire("sync")
    assert incidents(team.mac) == []
    assert gitcmd.line(team.remote.path, "log", "-1", "--format=%an <%ae> %cn <%ce>", "main") == (
        "Mac of the team <mac@example.org> Mac of the team <mac@example.org>"
    )
    team.remote.remove_pre_receive()
    team.sync_and_check()
    assert read(team.spark) == ["recorded"]


def test_c8_a_rule_about_paths_lets_the_rest_of_the_wire_go_on(team):
    """Nothing that is sent is lost to it, and what others send still arrives."""
    team.remote.install_pre_receive(
        'while read old new ref; do git diff --name-only "$old" "$new" | grep -q "_coordination/mac/" && '
        '{ echo "push declined: path restricted" >&2; exit 1; }; done; exit 0'
    )
    team.mac.send("spark", "restricted")
    team.spark.send("mac", "allowed")
    team.spark.wire("sync")
    failed = team.mac.wire("sync", check=False)
    assert (failed.status, "path restricted" in failed.stderr) == (6, True)
    assert read(team.mac) == ["allowed"]
    assert re.search(r"1 message\(s\) unpushed.*path restricted", team.mac.wire("status", check=False).stdout)
    team.remote.remove_pre_receive()
    team.sync_and_check()
