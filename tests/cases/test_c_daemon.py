"""C1, C2, C6 with a daemon: degraded within a look, one incident, and well again without a restart."""

import os
import pty
import re
import signal

import pytest

from support import sshd
from support.clones import script
from support.daemons import next_round, set_cadence
from support.team import incidents, pin
from support.waiting import eventually

DEBUG = ("--log-level", "debug")
EVERY_SECOND = {"t0": 1, "t1": 1, "t2": 1, "t3": 1, "hot": "[1]"}


def on_remote(team, seq):
    return lambda: pin(team.mac).remote_seq.get("mac/spark") == seq


def test_c1_a_daemon_that_was_started_from_a_terminal_asks_nobody(team, host):
    team.reach_by(host.url("hub.git"))
    set_cadence(team.mac, **EVERY_SECOND)
    host.credentials = ("mac", "token")
    team.mac.send("spark", "it waits")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(team.mac.home)
        os.execve(team.mac.program, [str(team.mac.program), "daemon", "run"], team.mac.environ())
    try:
        eventually(lambda: incidents(team.mac, "AUTH"), what="an incident about credentials")
        seen = team.mac.json("status", check=False)
        assert (seen["daemon"], seen["exit_status"]) == ("running", 6)
        assert "authentication" in seen["failure_text"]
        host.credentials = None
        eventually(on_remote(team, 1), what="the line at the remote")
    finally:
        os.kill(pid, signal.SIGTERM)
        shown = b""
        try:
            while data := os.read(terminal, 65536):
                shown += data
        except OSError:  # the daemon is gone
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)
    assert status == 0
    assert b"Username for 'http" not in shown.replace(b"could not read Username for 'http", b"")
    team.sync_and_check()


def test_c6_a_token_that_expires_under_a_daemon_and_is_renewed(team, host, tmp_path):
    token = tmp_path / "token"
    token.write_text("good")
    helper = script(tmp_path / "helper", f'[ "$1" = get ] && echo username=mac && echo password=$(cat {token}); exit 0')
    (team.mac.home / ".gitconfig").write_text(f"[credential]\n\thelper = {helper}\n")
    team.reach_by(host.url("hub.git"))
    set_cadence(team.mac, **EVERY_SECOND)
    host.credentials = ("mac", "good")
    team.mac.start_daemon(*DEBUG)
    team.mac.send("spark", "before")
    eventually(on_remote(team, 1), what="the first line at the remote")

    host.credentials = ("mac", "renewed")
    team.mac.send("spark", "one")
    team.mac.send("spark", "two")
    eventually(lambda: incidents(team.mac, "AUTH"), what="an incident about credentials")
    next_round(team.mac, 2)
    (incident,) = incidents(team.mac)
    assert incident["count"] >= 2
    seen = team.mac.json("status", check=False)
    assert (seen["daemon"], seen["exit_status"], seen["unpushed"], seen["failure"]) == ("running", 6, 2, "git-auth")
    assert "http-401" in seen["failure_text"]

    token.write_text("renewed")
    eventually(on_remote(team, 3), what="all lines at the remote")
    eventually(lambda: team.mac.json("status", check=False)["healthy"], what="a healthy daemon")
    assert incidents(team.mac) == []
    team.mac.stop_daemon()
    # J13: one line for each attempt, with its number; git's reason with the first.
    failed = [line for line in team.mac.log().split("\n") if " attempt=" in line]
    assert [re.search(r"attempt=(\d+)", line)[1] for line in failed] == [str(n + 1) for n in range(len(failed))]
    assert len(failed) >= 2
    # In which request of a push the host changed its mind decides how git puts it.
    told = [bool(re.search("why=.*(Authentication failed for|401)", line)) for line in failed]
    assert told == [True] + [False] * (len(failed) - 1)
    assert not re.search("Traceback|RetryError", team.mac.log())
    host.credentials = None
    team.sync_and_check()


def test_c6_a_token_in_the_url_is_renewed_in_the_configuration(team, host):
    """Without a restart, and it is seen in no log."""
    old, new = "SECRETold1234", "SECRETnew1234"
    team.reach_by(host.url("hub.git", userinfo=f"mac:{old}"))
    set_cadence(team.mac, **EVERY_SECOND)
    host.credentials = ("mac", old)
    team.mac.start_daemon(*DEBUG)
    team.mac.send("spark", "before")
    eventually(on_remote(team, 1), what="the first line at the remote")
    host.credentials = ("mac", new)
    team.mac.send("spark", "after")
    eventually(lambda: incidents(team.mac, "AUTH"), what="an incident about credentials")
    config = team.mac.wire_home / "config.toml"
    config.write_text(config.read_text("utf-8").replace(old, new), "utf-8")
    eventually(on_remote(team, 2), what="the second line at the remote")
    eventually(lambda: not incidents(team.mac), what="the incident to be over")
    team.mac.stop_daemon()
    assert "SECRET" not in team.mac.log()
    host.credentials = None
    team.sync_and_check()


def test_c2_a_daemon_goes_on_when_the_known_hosts_are_put_right(team, tmp_path):
    if sshd.PROGRAM is None:
        pytest.skip("sshd is not installed")
    with sshd.Sshd(tmp_path / "sshd") as server:
        team.reach_by(server.url(team.remote.path))
        for machine in team.machines:
            machine.env = server.environ(machine.env)
        set_cadence(team.mac, **EVERY_SECOND)
        server.forget_host_key()
        team.mac.start_daemon(*DEBUG)
        team.mac.send("spark", "it waits")
        eventually(lambda: incidents(team.mac, "HOST_KEY"), what="an incident about the host's key")
        (incident,) = incidents(team.mac)
        assert f"[127.0.0.1]:{server.port}" in incident["message"]
        assert f"-p {server.port} " in incident["next_step"]
        server.learn_host_key()
        eventually(on_remote(team, 1), what="the line at the remote")
        eventually(lambda: not incidents(team.mac), what="the incident to be over")
        assert team.mac.stop_daemon() == 0
        team.sync_and_check()
