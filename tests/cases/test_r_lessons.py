"""R: what others who carry messages by git paid for, where no other test shows it."""

import contextlib
import os
import re
import signal
import sqlite3

import pytest

from support import gitcmd
from support.daemons import set_cadence
from support.team import bodies, end, forge, path, pin, read, state, write
from support.waiting import eventually
from wire import Wire
from wire.errors import Busy
from wire.protocol.line import head
from wire.verbs import operating


def test_r1_a_refused_push_is_told_in_its_own_words_and_nobody_is_asked_to_send_again(team):
    """Whoever waits for a message hears what keeps it here; whoever does not has its id, and no error."""
    team.mac.wire("sync")
    waits = ("send", "spark", "one", "--wait", "pushed", "--timeout", "0")
    nobody = team.mac.wire(*waits, check=False)
    assert "do not send it again; no daemon is running here: `wire sync` sends it" in nobody.stderr
    team.remote.reject_pushes("GH013: not on a Sunday")
    assert team.mac.wire("sync", check=False).status == 6
    assert team.mac.send("spark", "two") == "mac/spark/2"
    for awaited in ("pushed", "delivered"):
        told = team.mac.wire(*waits[:-3], awaited, *waits[-2:], check=False)
        assert told.status == 3
        assert re.search(r"do not send it again; the last try failed: .*GH013: not on a Sunday", told.stderr), told
    set_cadence(team.mac, t0=1)
    team.mac.start_daemon()
    eventually(lambda: "GH013" in team.mac.json("status", check=False)["failure_text"], what="a try of the daemon's")
    told = team.mac.wire(*waits, check=False)
    assert "GH013: not on a Sunday" in told.stderr
    assert "it is tried again by itself" in told.stderr
    team.remote.remove_pre_receive()
    eventually(lambda: pin(team.mac).remote_seq.get("mac/spark") == 5, what="all of them at the remote")
    team.mac.stop_daemon()
    team.sync_and_check(sent=[f"mac/spark/{number}" for number in range(1, 6)])


def test_r5_and_r45_who_is_meant_is_said_and_never_guessed(team):
    """Two agents on one machine: nobody writes or reads as the other, and an empty inbox names whose it is."""
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    joined = team.spark.json("join", team.remote.url, "--as", "lee", "--trust", checkpoint)
    team.mac.wire("trust", "approve", "lee", "--fingerprint", joined["fingerprint"])
    team.settle()
    team.mac.send("lee", "for lee")
    team.settle()
    for args in (("send", "mac", "from whom?"), ("tail",), ("inbox",), ("read", "mac/lee/1")):
        refused = team.spark.wire(*args, check=False)
        assert refused.status in (2, 5), str(refused)
        assert "lee" in refused.stderr
        assert "spark" in refused.stderr
    assert "spark" in team.spark.wire("inbox", "--as", "spark").stdout
    assert "for lee" in team.spark.wire("inbox", "--as", "lee", "--full").stdout
    assert bodies(team.spark.wire("tail", "--json", env={"WIRE_AGENT": "lee"})) == ["for lee"]
    assert "mac" not in {channel.partition("/")[2] for channel in pin(team.spark).accepted}, "nothing was sent"


def test_r13_two_machines_that_build_at_once_make_two_commits(team):
    """The same text, the same second, the same parent: both lines are carried, each by a commit of its own."""
    team.settle()
    before = len(team.remote.commits())
    tip = team.remote.tip()
    # Both have built before either could push.
    team.remote.reject_pushes("one moment")
    team.mac.send("spark", "at once")
    team.spark.send("mac", "at once")
    built = []
    for machine in team.machines:
        assert machine.wire("sync", check=False).status == 6
        built.append(gitcmd.line(machine.clone(), "rev-list", "--parents", "-1", "refs/wire/outgoing").split())
    assert [parent for _, parent in built] == [tip, tip]
    assert built[0][0] != built[1][0]
    team.remote.remove_pre_receive()
    team.settle()
    assert len(team.remote.commits()) == before + 2
    assert bodies(team.mac.wire("tail", "--json")) == bodies(team.spark.wire("tail", "--json")) == ["at once"]
    team.check()


def test_r14_no_decision_is_undone_by_what_is_put_back_or_taken_away(team):
    """Somebody who had not heard pushes an old state of things: what was decided stands, for it is a version."""
    lee = team.join("lee")
    team.settle()
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    newest = int(checkpoint.partition(":")[0])
    folder = "_coordination/trust"
    added = ("log", "--format=%H", "--diff-filter=A", team.remote.branch, "--", "_coordination/requests")
    before = team.remote.git(*added).split()[0].decode()
    (request,) = [path for path in team.remote.files(before) if "/requests/lee." in path]
    vera = team.vandal()
    vera.write(request, team.remote.show(request, before))
    for gone in (f"{folder}/{newest:06}.json", f"{folder}/{newest:06}.json.sig"):
        (vera.path / gone).unlink()
    vera.write("_coordination/trust.json", vera.read(f"{folder}/{newest - 1:06}.json"))
    vera.commit()
    vera.push()
    team.remote.git("update-ref", "-d", "refs/wire/presence/lee")
    for machine in (team.spark, team.mac, lee):
        machine.wire("sync", check=False)
    for machine in team.machines:
        assert machine.json("trust", "show")["checkpoint"] == checkpoint
    assert team.mac.jsonl("trust", "requests") == [], "it was answered"
    assert f"{folder}/{newest:06}.json" in team.remote.files(), "and put back, byte for byte"
    assert lee.send("mac", "still here") == "lee/mac/1"
    for machine in (lee, team.mac):
        machine.wire("sync", check=False)
    assert bodies(team.mac.wire("tail", "--json", check=False)) == ["still here"]


def test_r16_what_can_be_made_again_is_lost_and_nothing_is_read_twice(team):
    """Another form of the index, a damaged one, none at all: where a reader stands is no part of it."""
    team.mac.send("spark", "read")
    team.settle()
    assert read(team.spark) == ["read"]
    assert team.spark.json("inbox")["unread"] == 0
    assert [one["id"] for one in team.spark.jsonl("search", "read") if "id" in one] == ["mac/spark/1"]
    indexes = sorted(state(team.spark).rglob("*.sqlite"))
    assert indexes
    for change in (another_schema, lambda file: file.write_bytes(b"\0" * 5_000), lambda file: file.unlink()):
        for file in indexes:
            change(file)
        team.spark.wire("sync")
        assert [one["id"] for one in team.spark.jsonl("search", "read") if "id" in one] == ["mac/spark/1"]
        assert read(team.spark) == []
        assert team.spark.json("inbox")["unread"] == 0
    team.mac.send("spark", "new")
    team.settle()
    assert read(team.spark) == ["new"]


def another_schema(file):
    """Let an index look like one that another version made."""
    with contextlib.closing(sqlite3.connect(file)) as index:
        (version,) = index.execute("PRAGMA user_version").fetchone()
        index.execute(f"PRAGMA user_version = {version + 100}")
        index.commit()


def test_r22_no_command_waits_for_a_daemon_that_does_not_answer(team, monkeypatch):
    """It stands still in the middle of a round, with its locks in hand: only what needs a round of its own says so."""
    team.mac.send("spark", "before")
    team.settle()
    set_cadence(team.spark, t0=1)
    hold = team.folder / "hold"
    team.remote.install_pre_receive(f"cat >/dev/null; touch {hold}; sleep 600")
    daemon = team.spark.start_daemon()
    team.spark.send("mac", "it hangs")
    eventually(hold.exists, what="a push that hangs")
    os.kill(daemon.pid, signal.SIGSTOP)
    looks = ("inbox", "tail", "log", "sent", "agents", "status")
    for args in (("send", "mac", "hello"), *((look, "--json") for look in looks)):
        done = team.spark.wire(*args, check=False, timeout=20)
        assert done.seconds < 10, str(done)
        assert done.status in ((0, 1, 6) if args[0] == "status" else (0,)), str(done)
    monkeypatch.setattr(operating, "CYCLE_LOCK_SECONDS", 0.2)
    with pytest.raises(Busy) as caught:
        Wire.open(environ=team.spark.environ()).sync()
    assert str(daemon.pid) in f"{caught.value.message} {caught.value.next_step}"
    team.spark.kill_daemon()
    team.remote.remove_pre_receive()
    team.spark.sent += ["spark/mac/2"]
    team.sync_and_check()
    assert read(team.mac) == ["it hangs", "hello"]


def test_r52_what_verification_found_is_printed_for_people(team):
    """Not in a field of some object: in the plain output of the commands that people read."""
    team.mac.send("spark", "good")
    team.mac.wire("sync")
    (ahead,) = write(team.mac, "mac/spark", "from the future", ts="2099-01-01T00:00:00.000Z")
    broken = forge(
        team.mac, "mac/spark", b',"body":1e400', after=end(team.mac, "mac/spark").after(len(ahead), head(ahead[:-1]))
    )
    vera = team.vandal()
    vera.append(path("mac/spark"), ahead + broken + b"nobody signed this\n")
    vera.commit()
    vera.push()
    said = team.spark.wire("sync", check=False)
    assert (said.status, "SIGNATURE in mac/spark" in said.stderr) == (4, True)
    for command in (("tail", "--peek"), ("log",), ("inbox", "--full"), ("wait", "--timeout", "0", "--peek", "-n", "9")):
        shown = team.spark.wire(*command, check=False)
        assert re.search(r"cannot be shown|cannot be read", shown.stdout), (command, shown.stdout)
        assert re.search(r"clock", shown.stdout), (command, shown.stdout)
        assert "nobody signed this" not in shown.stdout + shown.stderr
    told = team.spark.wire("tail", "--peek", check=False)
    assert (told.status, "mac/spark" in told.stderr) == (4, True)
    status = team.spark.wire("status", check=False)
    assert (status.status, "SIGNATURE in mac/spark" in status.stdout, "SCHEMA in mac/spark" in status.stdout) == (
        4, True, True,
    )  # fmt: skip
    checked = team.spark.wire("verify", "--full", check=False)
    assert "1 of them cannot be shown" in checked.stdout
