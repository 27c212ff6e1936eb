"""Real daemons: messages both ways, offline and back, pushing at once, killed and stopped at any moment."""

import json
import os
import random
import signal
import threading
import time

import pytest

from support import gitcmd, procs
from support.daemons import Inbox, next_round, set_cadence
from support.http_git import HttpGit
from support.sizes import size
from support.team import incidents, pin, state
from support.waiting import eventually

DEBUG = ("--log-level", "debug")


def away(remote):
    """Let the remote disappear, and return the function that brings it back."""
    elsewhere = remote.path.with_suffix(".away")
    remote.path.rename(elsewhere)
    return lambda: elsewhere.rename(remote.path)


def lines_pushed(team, machine):
    """Return the numbers up to which the remote has a machine's lines, per channel, as the machine knows it."""
    return dict(pin(machine).remote_seq)


def test_messages_arrive_both_ways_by_daemons_alone(team):
    for machine in team.machines:
        machine.start_daemon()
    mac, spark = Inbox(team.mac), Inbox(team.spark)
    baseline = {machine.name: procs.vitals(machine.daemon.pid) for machine in team.machines}
    for n in range(3):
        team.mac.send("spark", f"to spark {n}")
        spark.gets([f"to spark {n}"], timeout=10)
        team.spark.send("mac", f"to mac {n}")
        mac.gets([f"to mac {n}"], timeout=10)
    assert team.mac.wire("send", "spark", "waited for", "--wait", "pushed", "--timeout", "10").status == 0
    for machine in team.machines:
        procs.settles(machine.daemon.pid, baseline[machine.name], spare=4)
        shown = machine.json("status")
        assert shown["healthy"], shown
        assert shown["daemon"] == "running"
        assert shown["watching"] == "inotify"
        assert shown["pid"] == machine.daemon.pid
    for machine in team.machines:
        assert machine.stop_daemon() == 0
    team.check()


def test_offline_for_many_sends_then_few_commits_in_one_push(team):
    count = size(12, 200, "sends while the remote is away")
    team.mac.start_daemon()
    commits = len(team.remote.commits())
    back = away(team.remote)
    for n in range(count):
        team.mac.send("spark", f"line {n}")
    eventually(lambda: team.mac.json("status", check=False)["failure"], what="a failure that status tells of")
    shown = team.mac.json("status", check=False)
    assert shown["exit_status"] == 6
    assert shown["unpushed"] == count
    assert shown["daemon"] == "running"
    (incident,) = incidents(team.mac)
    assert incident["code"] == "NOT_FOUND"
    back()
    eventually(lambda: lines_pushed(team, team.mac).get("mac/spark") == count, what="all lines at the remote")
    assert len(team.remote.commits()) == commits + 1
    eventually(lambda: team.mac.json("status", check=False)["healthy"], what="a healthy daemon")
    team.spark.start_daemon()
    Inbox(team.spark).gets([f"line {n}" for n in range(count)])
    assert incidents(team.mac) == []
    for machine in team.machines:
        machine.stop_daemon()
    team.check()


def test_c10_a_remote_that_is_missing_at_the_start(team):
    back = away(team.remote)
    team.mac.start_daemon()
    team.mac.send("spark", "early")
    eventually(lambda: team.mac.json("status", check=False)["failure"], what="a failure that status tells of")
    assert team.mac.json("status", check=False)["daemon"] == "running"
    back()
    eventually(lambda: lines_pushed(team, team.mac).get("mac/spark") == 1, what="the line at the remote")
    eventually(lambda: team.mac.json("status", check=False)["healthy"])
    team.mac.stop_daemon()
    team.sync_and_check()


def test_two_daemons_that_push_at_once_both_win(team):
    count = size(15, 100, "sends from each of two machines at once")
    for machine in team.machines:
        machine.start_daemon()

    def send(machine, to):
        for n in range(count):
            machine.send(to, f"{machine.name} {n}")

    senders = [
        threading.Thread(target=send, args=(machine, other.name))
        for machine, other in ((team.mac, team.spark), (team.spark, team.mac))
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    Inbox(team.spark).gets([f"mac {n}" for n in range(count)])
    Inbox(team.mac).gets([f"spark {n}" for n in range(count)])
    for machine in team.machines:
        machine.stop_daemon()
    assert incidents(team.mac) == incidents(team.spark) == []
    team.check()


@pytest.mark.timeout(1200)
def test_killed_at_any_moment(team):
    """The daemon dies, with its git children or without them, again and again; the next one clears away and goes on."""
    kills = size(6, 60, "kills of a daemon at random moments")
    moments = random.Random(7)
    team.spark.start_daemon()
    for n in range(kills):
        team.mac.start_daemon()
        for m in range(3):
            team.mac.send("spark", f"line {n}.{m}")
            team.spark.send("mac", f"back {n}.{m}")
            time.sleep(moments.uniform(0, 0.15))
        if n % 2:
            team.mac.kill_daemon()
            # The host's own half of a push died with it; what that left behind there is the host's to clear away.
            for lock in (team.remote.path / "refs").rglob("*.lock"):
                lock.unlink()
        else:
            assert team.mac.stop_daemon(signal.SIGKILL) == -signal.SIGKILL
    team.mac.start_daemon()
    Inbox(team.spark).gets([f"line {n}.{m}" for n in range(kills) for m in range(3)])
    Inbox(team.mac).gets([f"back {n}.{m}" for n in range(kills) for m in range(3)])
    eventually(lambda: team.mac.json("status", check=False)["healthy"], what=lambda: str(team.mac.json("status")))
    for machine in team.machines:
        machine.stop_daemon()
    team.sync_and_check()


@pytest.mark.timeout(900)
def test_b3_a_stop_during_a_sync_leaves_no_lock(team):
    stops = size(8, 50, "stops of a daemon during a sync")
    moments = random.Random(3)
    longest = 0.0
    for n in range(stops):
        team.mac.start_daemon()
        team.mac.send("spark", f"line {n}")
        time.sleep(moments.uniform(0, 0.3))
        began = time.monotonic()
        assert team.mac.stop_daemon() == 0
        longest = max(longest, time.monotonic() - began)
        locks = sorted((team.mac.clone() / ".git").rglob("*.lock"))
        assert not locks, f"stop {n}: {locks}"
    assert longest < 10
    team.sync_and_check()
    assert incidents(team.mac) == []
    assert not list(state(team.mac).rglob("*.tmp"))


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_a_push_that_hangs(team, sig):
    """The server's hook sleeps: git gets its moment, then it is ended with all that it started."""
    team.remote.install_pre_receive("sleep 600")
    team.mac.start_daemon()
    team.mac.send("spark", "hello")
    eventually(lambda: any("sleep 600" in one.command for one in procs.processes()), what="the hook")
    began = time.monotonic()
    assert team.mac.stop_daemon(sig) == 0
    assert time.monotonic() - began < 12
    assert not procs.marked(f"TEST_MACHINE={team.mac.root}")
    team.remote.remove_pre_receive()
    assert incidents(team.mac) == [], "to be stopped is no incident"
    team.sync_and_check()


def test_signals_look_now_and_read_the_configuration_again(team):
    set_cadence(team.mac, t0=600, t1=600, t2=600, t3=600, hot=[600])
    daemon = team.mac.start_daemon(*DEBUG)
    next_round(team.mac)
    time.sleep(0.5)
    start = len(team.mac.log())
    os.kill(daemon.pid, signal.SIGUSR1)
    eventually(lambda: "cause=asked" in team.mac.log(start), what="a round for SIGUSR1")
    file = team.mac.wire_home / "config.toml"
    file.write_text(file.read_text("utf-8").replace("t0 = 600", "t0 = 1"), "utf-8")
    os.kill(daemon.pid, signal.SIGHUP)
    next_round(team.mac, 3)
    file.write_text("[[wire]]\nnonsense", "utf-8")
    eventually(lambda: "error configuration" in team.mac.log(), what="a complaint about the configuration")
    next_round(team.mac, 2)
    assert daemon.process.poll() is None


def test_a_wire_that_appears_and_one_that_goes(team):
    """The daemon of a machine without a wire waits for one; a wire that is taken out of the configuration is let go."""
    file = team.mac.wire_home / "config.toml"
    text = file.read_text("utf-8")
    file.write_text("# none yet\n", "utf-8")
    team.mac.start_daemon()
    file.write_text(text, "utf-8")
    team.mac.send("spark", "hello")
    eventually(lambda: lines_pushed(team, team.mac).get("mac/spark") == 1, what="the line at the remote")
    eventually(lambda: team.mac.json("status", check=False)["healthy"], what="a healthy daemon")
    file.write_text("# none any more\n", "utf-8")
    eventually(lambda: "configuration wires=none" in team.mac.log())
    time.sleep(3)
    file.write_text(text, "utf-8")
    eventually(lambda: team.mac.json("status", check=False)["daemon"] == "running", timeout=30)


def test_a_wire_is_begun_and_joined_beside_a_daemon_that_runs(machines, remote):
    """Also where beginning it fails and everything is taken back: the daemon keeps its hands off until it is done."""
    mac, spark = machines("mac"), machines("spark")
    for machine in (mac, spark):
        machine.start_daemon()
    back = away(remote)
    assert mac.wire("init", remote.url, "--as", "mac", check=False).status == 6
    back()
    remote.reject_pushes("not today")
    refused = mac.wire("init", remote.url, "--as", "mac", check=False)
    assert refused.status == 6
    time.sleep(3)
    assert "not-served wire=hub" not in mac.log() or "has not finished" in mac.log()
    remote.remove_pre_receive()
    begun = mac.json("init", remote.url, "--as", "mac")
    joined = spark.json("join", remote.url, "--as", "spark", "--trust", begun["checkpoint"])
    spark.send("mac", "before I was known")
    mac.wire("trust", "approve", "spark", "--fingerprint", joined["fingerprint"])
    Inbox(mac).gets(["before I was known"])
    mac.send("spark", "welcome")
    Inbox(spark).gets(["welcome"])
    for machine in (mac, spark):
        assert machine.json("status")["daemon"] == "running"


def test_one_wire_that_fails_closed_stops_no_other(team, tmp_path):
    """The pin of one wire is damaged: it is visible, and the other one goes on."""
    from support.remote import BareRemote

    second = BareRemote(tmp_path / "second.git")
    team.mac.wire("init", second.url, "--as", "mac", "--wire", "second")
    (state(team.mac) / "pin.json").write_bytes(bytes(100))
    daemon = team.mac.start_daemon()
    tip = second.tip()
    team.mac.wire("--wire", "second", "send", "all", "hello")
    eventually(lambda: second.tip() != tip, what="the line of the other wire")
    assert daemon.process.poll() is None
    eventually(lambda: "failed wire=hub reason=pin-corrupt" in team.mac.log())
    assert team.mac.wire("status", check=False).status != 0
    assert team.mac.wire("--wire", "second", "status").status == 0


@pytest.mark.timeout(900)
def test_sigcont_is_a_resume(team):
    """E5: a process that was stopped looks at once when it goes on, with connections of its own making."""
    set_cadence(team.mac, t0=600, t1=600, t2=600, t3=600, hot=[600])
    daemon = team.mac.start_daemon(*DEBUG, env={"WIRE_WATCH": "off"})
    next_round(team.mac)
    time.sleep(0.5)
    os.kill(daemon.pid, signal.SIGSTOP)
    team.spark.send("mac", "while you slept")
    team.spark.wire("sync")
    time.sleep(size(2, 600, "seconds of sleep"))
    start = len(team.mac.log())
    os.kill(daemon.pid, signal.SIGCONT)
    Inbox(team.mac).gets(["while you slept"], timeout=5)
    log = team.mac.log(start)
    assert "resume why=" in log
    assert log.count(" round wire=") <= 3, "no burst of missed looks"


def test_told_to_the_service_manager(team):
    daemon = team.mac.start_daemon(env={"WATCHDOG_USEC": "2000000"})
    notices = daemon.notices.messages
    assert notices.index("READY=1") == 0
    eventually(lambda: notices.count("WATCHDOG=1") > 3)
    assert any(message.startswith("STATUS=hub: ") for message in notices)
    os.kill(daemon.pid, signal.SIGSTOP)
    time.sleep(1)
    before = notices.count("WATCHDOG=1")
    time.sleep(2)
    assert notices.count("WATCHDOG=1") == before
    os.kill(daemon.pid, signal.SIGCONT)
    eventually(lambda: notices.count("WATCHDOG=1") > before)
    notices = daemon.notices
    assert team.mac.stop_daemon() == 0
    assert "STOPPING=1" in notices.messages


def test_a_vandals_act_is_told_once_by_each_machine(team):
    """Junk in mac's channel: spark and mac tell it once each, and nothing is told about the telling."""
    for machine in team.machines:
        machine.start_daemon()
    team.mac.send("spark", "before")
    Inbox(team.spark).gets(["before"])
    for machine in team.machines:
        machine.stop_daemon()
    vera = team.vandal()
    vera.append("_coordination/mac/spark/000001.jsonl", b"junk\n")
    vera.commit("tidy up")
    vera.push()
    for machine in team.machines:
        machine.start_daemon()

    def told(machine):
        seen = machine.jsonl("tail", "--all", "--peek", "--type", "incident", check=False)
        return [one["line"]["body"] for one in seen if "line" in one]

    (body,) = eventually(lambda: told(team.mac), what="spark's incident line at mac")
    assert (body["code"], body["scope"], body["count"]) == ("SIGNATURE", "mac/spark", 1)
    assert "junk" not in json.dumps(body)
    assert vera.head in body["evidence"].values(), "the commit, so that others can look"
    eventually(lambda: told(team.spark), what="mac's incident line at spark")
    team.mac.send("spark", "after")
    Inbox(team.spark).gets(["after"])
    time.sleep(2)
    assert len(told(team.mac)) == len(told(team.spark)) == 1
    assert gitcmd.line(team.remote.path, "show", "main:_coordination/mac/spark/000001.jsonl").count("junk") == 0
    for machine in team.machines:
        machine.stop_daemon()
    team.sync_and_check(attacked=True)
    assert len(told(team.mac)) == 1


def test_a_live_exchange_over_http_and_a_host_that_asks_for_patience(team, tmp_path):
    """Nobody tells of a push there: quick looks do, and within the time that the host asks for there are none."""
    with HttpGit(tmp_path) as host:
        team.reach_by(host.url("hub.git"))
        for machine in team.machines:
            set_cadence(machine, t0=5, t1=5, t2=5, t3=5)
            machine.start_daemon(*DEBUG)
        mac, spark = Inbox(team.mac), Inbox(team.spark)
        team.mac.send("spark", "first")
        spark.gets(["first"], timeout=20)
        took = []
        for n in range(3):
            began = time.monotonic()
            team.spark.send("mac", f"answer {n}")
            mac.gets([f"answer {n}"], timeout=10)
            team.mac.send("spark", f"question {n}")
            spark.gets([f"question {n}"], timeout=10)
            took.append(time.monotonic() - began)
        assert sorted(took)[1] < 10, "there and back"
        host.retry_after = "4"
        host.fault = "429"
        eventually(lambda: "failed wire=hub reason=git-rate-limit" in team.mac.log(), what=team.mac.log)
        team.mac.send("spark", "patience")
        asked = len(host.requests)
        team.spark.stop_daemon()
        time.sleep(2)
        assert len(host.requests) - asked <= 3, "spark's last ones at most"
        host.fault = None
        eventually(lambda: pin(team.mac).remote_seq["mac/spark"] == 5, timeout=20, what=team.mac.log)
        team.mac.stop_daemon()
        team.sync_and_check()
