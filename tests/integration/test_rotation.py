"""Changing keys: sending goes on, nothing is lost, and the trust decides what counts."""

from collections.abc import Iterator
from contextlib import contextmanager

from support.team import Team, pin
from wire.protocol.line import parse


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
