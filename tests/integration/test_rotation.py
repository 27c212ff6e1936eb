"""Changing keys: sending goes on, nothing is lost, and the trust decides what counts."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.besieged import site
from support.gitcmd import GitFailed
from support.team import Team, incidents, path, pin, read, signer, write
from support.waiting import eventually
from wire.daemon import rotating
from wire.keys import rotations
from wire.protocol.encoding import Signer
from wire.protocol.line import parse

CHANNELS = ("spark/mac", "spark/all")


@contextmanager
def _away(team: Team) -> Iterator[None]:
    aside = team.remote.path.with_suffix(".away")
    team.remote.path.rename(aside)
    try:
        yield
    finally:
        aside.rename(team.remote.path)


def _keys(machine, channel):
    folder = machine.clone() / "_coordination" / channel
    return [parse(raw).key_id for file in sorted(folder.glob("*.jsonl")) for raw in file.read_bytes().splitlines()]


def test_rotation_where_the_root_is(team: Team) -> None:
    team.mac.send("spark", "with the old key")
    team.settle()
    done = team.mac.json("keys", "rotate")
    assert done["state"] == "active"
    assert done["fingerprint"] != done["former"]
    team.mac.send("spark", "with the new key")
    team.settle()
    old, new = _keys(team.spark, "mac/spark")
    assert old != new
    kinds = {one["fingerprint"]: one["kind"] for one in team.mac.jsonl("keys", "list")}
    assert (kinds[done["fingerprint"]], kinds[done["former"]]) == ("agent", "former")
    keys = team.spark.json("trust", "show")["agents"]["mac"]["keys"]
    assert [key["status"] for key in keys] == ["retired", "active"]
    assert [key["id"] for key in keys] == [old, new]
    team.check()


def test_rotation_that_a_root_elsewhere_approves(team: Team) -> None:
    team.spark.send("mac", "with the old key")
    team.settle()
    done = team.spark.json("keys", "rotate")
    assert done["state"] == "asked"
    team.spark.send("mac", "with the new key, before anybody knows it")
    team.settle()
    assert pin(team.mac).accepted["spark/mac"].seq == 1
    (asked,) = team.mac.jsonl("trust", "requests")
    assert asked["fingerprint"] == done["fingerprint"]
    assert asked["replaces"] == pin(team.mac).names.keys["spark"][0]
    team.mac.wire("trust", "approve", "spark", "--fingerprint", done["fingerprint"])
    team.settle()
    assert pin(team.mac).accepted["spark/mac"].seq == 2
    assert len(set(_keys(team.mac, "spark/mac"))) == 2
    assert not team.mac.jsonl("trust", "requests")
    team.check()


def test_rotation_without_the_remote(team: Team) -> None:
    # Offline: lines of both keys wait here. With the remote back, what the old key signed goes out at once, the request
    # by itself, and the rest after the approval.
    team.spark.send("mac", "one")
    team.settle()
    with _away(team):
        team.spark.send("mac", "two, offline, with the old key")
        assert team.spark.wire("keys", "rotate", check=False).status == 6
        team.spark.send("mac", "three, offline, with the new key")
        team.spark.send("all", "the first line of a channel")
        assert team.spark.wire("sync", check=False).status == 6
    team.settle()
    assert pin(team.mac).accepted["spark/mac"].seq == 2
    assert "spark/all" not in pin(team.mac).accepted
    (asked,) = team.mac.jsonl("trust", "requests")
    team.mac.wire("trust", "approve", "spark", "--fingerprint", asked["fingerprint"])
    team.settle()
    assert pin(team.mac).accepted["spark/mac"].seq == 3
    assert pin(team.mac).accepted["spark/all"].seq == 1
    team.check()


def test_rotation_in_the_middle_of_traffic(team: Team) -> None:
    # Daemons run on both sides and three threads send all the while: every line arrives once, whichever key signed it,
    # and those of the old key all stand before those of the new one.
    team.mac.start_daemon()
    team.spark.start_daemon()
    stop = threading.Event()
    sent: list[str] = []

    def chatter(number: int) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            sent.append(team.spark.send("mac" if number else "all", f"{number}: {count}"))

    senders = [threading.Thread(target=chatter, args=(number,)) for number in range(3)]
    for one in senders:
        one.start()
    try:
        eventually(lambda: len(sent) > 6, what="traffic")
        done = team.spark.json("keys", "rotate")
        before = len(sent)
        eventually(lambda: len(sent) > before + 6, what="traffic under the new key")
        team.mac.wire("trust", "approve", "spark", "--fingerprint", done["fingerprint"])
        eventually(lambda: len(sent) > before + 12, what="traffic after the approval")
    finally:
        stop.set()
        for one in senders:
            one.join()
    assert len(set(sent)) == len(sent)
    last = {channel: max(int(i.rpartition("/")[2]) for i in sent if i.startswith(channel)) for channel in CHANNELS}
    eventually(lambda: all(pin(team.mac).accepted[one].seq == last[one] for one in CHANNELS), what="all arrived")
    for channel in CHANNELS:
        assert len(list(itertools.groupby(_keys(team.mac, channel)))) <= 2
    assert len({*_keys(team.mac, "spark/mac")}) == 2
    assert not incidents(team.mac)
    assert not incidents(team.spark)
    for machine in team.machines:
        machine.stop_daemon()
    team.check()


def test_the_daemon_asks_by_itself(team: Team) -> None:
    # Killed between the change of keys and the request: the next look publishes it, once.
    chain = site(team.spark).trust(pin(team.spark))
    change = rotating.begin(site(team.spark), chain, "spark")
    assert change.old is not None
    commits = len(team.remote.commits())
    team.spark.wire("sync")
    team.spark.wire("sync")
    assert len(team.remote.commits()) == commits + 1
    (asked,) = team.mac.jsonl("trust", "requests")
    assert asked["replaces"] == change.old.key_id
    # Asked for again, it is the same change.
    assert team.spark.json("keys", "rotate")["fingerprint"] == asked["fingerprint"]


def test_a_rotation_that_would_cut_lines_is_refused(team: Team) -> None:
    # A copy of the machine writes with the old key behind the closing. The owner looks at it and asks again.
    team.spark.send("mac", "one")
    team.settle()
    old = signer(team.spark)
    done = team.spark.json("keys", "rotate")
    other = team.vandal()
    other.append(path("spark/mac"), *write(team.mac, "spark/mac", "by the copy", by=old))
    other.commit()
    other.push()
    failed = team.mac.wire(
        "trust", "approve", "spark", "--fingerprint", done["fingerprint"], "--json", check=False
    ).json()
    assert failed["reason"] == "rotation-behind"
    team.spark.wire("sync", check=False)
    assert team.spark.json("keys", "rotate")["fingerprint"] == done["fingerprint"]
    team.mac.wire("trust", "approve", "spark", "--fingerprint", done["fingerprint"])
    team.spark.send("mac", "three")
    for machine in (team.spark, team.mac, team.spark):
        machine.wire("sync", check=False)
    assert read(team.mac, status=None) == ["one", "by the copy", "three"]


def test_who_has_no_key_of_the_agent_cannot_ask_for_one(team: Team) -> None:
    wire, thief, another = pin(team.mac).wire, Signer(b"1" * 32), Signer(b"2" * 32)
    raw = rotations.make(
        thief, another, wire=wire, name="spark", role="agent", positions={}, created="2026-11-29T11:20:00.123Z"
    )
    active = pin(team.mac).names.keys["spark"][0]
    vandal = team.vandal()
    for number, data in enumerate((raw, raw.replace(thief.key_id.encode(), active.encode()))):
        name = f"spark.{another.key_id}.json" if number else f"spark.{thief.key_id}.json"
        vandal.write(f"_coordination/requests/{name}", data)
    vandal.commit()
    vandal.push()
    team.mac.wire("sync", check=False)
    assert team.mac.jsonl("trust", "requests") == []
    refused = team.mac.wire("trust", "approve", "spark", "--json", check=False)
    assert refused.json()["reason"] == "no-request"


def test_only_an_approved_agent_changes_its_key(team: Team) -> None:
    new = team.new_machine("zoe")
    new.json("join", team.remote.url, "--as", "zoe", "--trust", team.mac.json("trust", "show")["checkpoint"])
    failed = new.wire("keys", "rotate", "--json", check=False)
    assert (failed.status, failed.json()["reason"]) == (2, "not-approved")


def test_an_invitation_brings_a_lost_name_back(team: Team) -> None:
    team.spark.send("mac", "one")
    team.settle()
    team.mac.wire("trust", "revoke", "spark", "--reason", "lost", "--yes")
    code = team.mac.json("invite", "spark", "--no-wait")["code"]
    again = team.new_machine("again")
    again.json("join", code)
    team.mac.json("invite", "spark", "--no-wait")
    assert [key["status"] for key in team.mac.json("trust", "show")["agents"]["spark"]["keys"]] == ["revoked", "active"]
    again.wire("sync")
    assert again.send("mac", "two") == "spark/mac/2"
    again.wire("sync")
    team.mac.wire("sync")
    assert read(team.mac) == ["one", "two"]


def test_hooks_let_a_change_of_keys_through(team: Team) -> None:
    # The hook at the host judges what is pushed, and knows a rotation; one that is damaged is refused by it.
    team.mac.wire("hooks", "install", "pre-receive", "--repo", str(team.remote.path))
    done = team.spark.json("keys", "rotate")
    assert done["state"] == "asked"
    assert "failure" not in done
    team.spark.send("mac", "with the new key")
    team.mac.wire("trust", "approve", "spark", "--fingerprint", done["fingerprint"])
    team.mac.wire("trust", "revoke", "mac", "--reason", "stolen", "--yes")
    assert team.mac.json("keys", "rotate")["state"] == "active"
    team.mac.send("spark", "with another key")
    team.settle()
    assert pin(team.mac).accepted["spark/mac"].seq == 1
    assert pin(team.spark).accepted["mac/spark"].seq == 1
    raw = rotations.make(
        signer(team.spark), Signer(b"1" * 32), wire=pin(team.mac).wire, name="spark", role="agent", positions={},
        created="2026-11-29T11:20:00.123Z",
    )  # fmt: skip
    vandal = team.vandal()
    vandal.write(f"_coordination/requests/spark.{Signer(b'1' * 32).key_id}.json", raw.replace(b"{}", b'{"a":1}'))
    vandal.commit()
    with pytest.raises(GitFailed, match="REQUEST"):
        vandal.push()
    team.check()


def test_hooks_let_cut_lines_go(team: Team) -> None:
    # What was revoked is taken away by its owner, whose next line stands in its place: the host's hook agrees.
    for text in ("one", "two", "three"):
        team.spark.send("mac", text)
    team.settle()
    team.mac.wire("hooks", "install", "pre-receive", "--repo", str(team.remote.path))
    team.mac.wire("trust", "revoke", "spark", "--reason", "stolen", "--at", "spark/mac/1", "--yes")
    done = team.spark.json("keys", "rotate")
    team.mac.wire("trust", "approve", "spark", "--fingerprint", done["fingerprint"])
    team.spark.wire("sync", check=False)
    team.spark.wire("keys", "reissue", "spark/mac/3", "--yes")
    for machine in (team.spark, team.mac):
        machine.wire("sync", check=False)
    assert read(team.mac, status=None) == ["one", "three"]
    assert not incidents(team.spark, "REJECTED")
    team.check(sent=["spark/mac/1", "spark/mac/2"], attacked=True)
