"""Presence by real daemons: how far a message got, an agent that falls silent, what quiet costs the remote."""

import shutil
import time
from collections import Counter

from support.clones import script
from support.daemons import Inbox, next_round, set_cadence
from support.team import incidents, pin
from support.waiting import eventually
from wire.store import presences
from wire.store.paths import WirePlaces
from wire.store.presences import Declared, stale
from wire.store.progress import Progress

DEBUG = ("--log-level", "debug")


def places(machine):
    return WirePlaces(str(machine.wire_home / "state"), "hub", str(machine.clone()))


def spark_as_mac_knows_it(team):
    found = presences.load_one(places(team.mac), "spark")
    assert found is not None, "mac has not heard of spark"
    return found


def test_the_sender_sees_a_message_arrive_and_be_read_and_an_agent_fall_silent(team):
    for machine in team.machines:
        # Quick tiers, so that a promise is short: the one of the next slower tier.
        set_cadence(machine, t0=0.5, t1=1.0, t2=1.0, t3=1.0, hot=[0.2, 0.2])
        machine.start_daemon(*DEBUG)
    commits = len(team.remote.commits())
    team.mac.send("spark", "hello")
    eventually(lambda: pin(team.spark).accepted.get("mac/spark"), what="the message at spark")

    def places_of_spark():
        return spark_as_mac_knows_it(team).presence.channels.get("mac/spark", (0, "", 0))

    eventually(lambda: places_of_spark()[0] == 1, what="delivered")
    seq, head, read = places_of_spark()
    assert (seq, head, read) == (1, pin(team.mac).accepted["mac/spark"].head, 0)
    Inbox(team.spark).gets(["hello"])
    eventually(lambda: places_of_spark()[2] == 1, what="read")
    # Who sends may wait for either, and is not told before it is proved.
    waiting = team.mac.spawn("send", "spark", "again", "--wait", "read", "--timeout", "30")
    Inbox(team.spark).gets(["again"])
    done = waiting.communicate(timeout=40)[0]
    assert waiting.returncode == 0
    assert b"mac/spark/2 read" in done
    team.mac.sent.append("mac/spark/2")
    presences.declare(places(team.spark), "spark", Declared("blocked", "waits for ana"))
    eventually(lambda: spark_as_mac_knows_it(team).presence.state == "blocked", what="its state")
    alive = spark_as_mac_knows_it(team)
    assert alive.presence.interval == 1.0
    assert alive.presence.tier in ("hot", "T0", "T1", "T2", "T3")
    # It keeps its promises while nothing happens.
    eventually(lambda: spark_as_mac_knows_it(team).presence.counter > alive.presence.counter, what="the next beat")
    assert not stale(spark_as_mac_knows_it(team), Progress.load(places(team.mac)).fetched)
    assert team.spark.stop_daemon() == 0
    eventually(
        lambda: stale(spark_as_mac_knows_it(team), Progress.load(places(team.mac)).fetched), what="spark to be stale"
    )
    # Who cannot look does not know, however much time passes.
    seen = spark_as_mac_knows_it(team)
    assert not stale(seen, seen.changed + 0.5)
    assert len(team.remote.commits()) == commits + 2, "presences are on the branch"
    assert incidents(team.mac) == incidents(team.spark) == []
    team.spark.start_daemon(*DEBUG)
    eventually(
        lambda: not stale(spark_as_mac_knows_it(team), Progress.load(places(team.mac)).fetched), what="spark is back"
    )
    for machine in team.machines:
        machine.stop_daemon()
    team.check()


def test_a_quiet_daemon_asks_the_remote_once_a_look_and_pushes_seldom(team, tmp_path):
    """What the daemon starts, counted at its door: every git child, by its command."""
    noted = tmp_path / "children"
    noted.touch()
    shim = script(
        tmp_path / "bin" / "git",
        f'for word do case $word in -*) ;; *) echo "$word" >>{noted}; break;; esac; done\n'
        f'exec {shutil.which("git")} "$@"',
    )
    set_cadence(team.mac, t0=0.4, t1=1.6, t2=1.6, t3=1.6, hot=[0.4], jitter=0.01)
    team.settle()
    team.mac.start_daemon(*DEBUG, env={"PATH": f"{shim.parent}:{team.mac.env['PATH']}"})
    next_round(team.mac, 3)
    before, start = len(noted.read_text().split()), len(team.mac.log())
    began = time.monotonic()
    next_round(team.mac, 12, timeout=60)
    took = time.monotonic() - began
    assert team.mac.stop_daemon() == 0
    children = Counter(noted.read_text().split()[before:])
    looks = team.mac.log()[start:].count(" round wire=")
    assert looks - 1 <= children["fetch"] <= looks + 1, f"{children} in {looks} looks"
    # A promise of 1.6 s is kept by one push.
    assert 1 <= children["push"] <= took / (1.6 - 0.4) + 2, f"{children} in {took:.1f} s"
    assert children["push"] < children["fetch"]
    # What makes and reads objects stays, or is no child at all.
    assert children.keys() <= {"fetch", "push", "cat-file"}, children
    assert children["cat-file"] <= 1, children
    team.check()
