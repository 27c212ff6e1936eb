"""Two trust documents with one number: shown side by side, and decided by people, machine by machine."""

import json
from typing import Any

import pytest

from support import team
from support.besieged import Siege, incidents, pin, site
from support.machine import Machine
from support.moves import ELSEWHERE
from support.moves_signed import EVE
from wire.protocol.encoding import format_checkpoint
from wire.store import trustforks
from wire.store.pin import replace

CODE = "TRUST_FORK wire"


def _forked(siege: Siege) -> tuple[str, str]:
    """Let mac hold one document and spark and lee another, which enrols eve; return both checkpoints."""
    both = ELSEWHERE["two trust documents with one number"](siege)
    for machine in (siege.spark, siege.lee, siege.mac):
        machine.wire("sync", check=False)
    assert CODE in incidents(siege.mac)
    return both


def _show(machine: Machine) -> dict[str, Any]:
    shown: dict[str, Any] = machine.json("trust", "show")
    return shown


def _follow(machine: Machine, checkpoint: str) -> dict[str, Any]:
    done: dict[str, Any] = machine.json("trust", "follow", checkpoint, "--yes")
    return done


def test_both_are_shown_with_what_they_change(siege: Siege) -> None:
    held, other = _forked(siege)
    (fork,) = _show(siege.mac)["forks"]
    assert (fork["held"]["checkpoint"], fork["other"]["checkpoint"], fork["decided"]) == (held, other, False)
    assert [one["change"] for one in fork["held"]["changes"]] == ["group-added"]
    assert [one["change"] for one in fork["other"]["changes"]] == ["agent-added"]
    assert [one["change"] for one in fork["apart"]] == ["agent-added", "group-absent"]
    text = siege.mac.wire("trust", "pending").stdout
    assert held in text
    assert other in text
    assert "adds eve (agent)" in text
    (told,) = siege.mac.jsonl("trust", "pending")
    assert told["fork"] == fork
    # What a machine holds stays in force, and only a checkpoint of one of the two decides.
    assert _show(siege.mac)["checkpoint"] == held
    for wrong, reason in ((format_checkpoint(3, bytes(32)), "no-fork"), (other[:20], "bad-checkpoint")):
        refused = siege.mac.wire("trust", "follow", wrong, "--yes", "--json", check=False)
        assert (refused.status, refused.json()["reason"]) == (2, reason)
    assert siege.mac.wire("trust", "follow", other, "--json", check=False).status == 2


def test_the_other_one_is_followed(siege: Siege) -> None:
    # The others hold what the remote shows: mac follows, and all agree.
    held, other = _forked(siege)
    done = _follow(siege.mac, other)
    assert (done["checkpoint"], done["switched"], done["put_right"]) == (other, True, False)
    assert not team.incidents(siege.mac, "TRUST_FORK")
    assert {_show(machine)["checkpoint"] for machine in (siege.mac, siege.spark, siege.lee)} == {other}
    assert not siege.mac.jsonl("trust", "pending")
    (fork,) = _show(siege.mac)["forks"]
    assert (fork["other"]["checkpoint"], fork["decided"]) == (held, True)
    siege.flows()
    # The next version goes on from it: the root signed both, and this is another base.
    siege.mac.wire("group", "set", "ops", "mac", "spark")
    siege.settle()
    assert {_show(machine)["version"] for machine in (siege.mac, siege.spark)} == {_show(siege.lee)["version"]}


def test_the_one_held_is_followed(siege: Siege) -> None:
    # The remote shows the other: mac puts its own there, and the others, who had accepted what eve wrote, follow.
    held, other = _forked(siege)
    line = team.write(siege.spark, "eve/all", "I am one of you", by=EVE)
    siege.host.append("eve/all", *line)
    for machine in (siege.spark, siege.lee):
        machine.wire("sync", check=False)
    assert pin(siege.spark).accepted["eve/all"].seq == 1
    done = _follow(siege.mac, held)
    assert (done["checkpoint"], done["switched"], done["put_right"]) == (held, False, True)
    for machine in (siege.spark, siege.lee):
        machine.wire("sync", check=False)
        assert _show(machine)["checkpoint"] == other
        done = _follow(machine, held)
        assert (done["switched"], done["put_right"], done["cut"]) == (True, False, 1)
        assert "eve" not in _show(machine)["agents"]
    assert pin(siege.spark).accepted.get("eve/all", (0,))[0] == 0
    siege.settle()
    assert json.loads(siege.remote.show("_coordination/trust.json"))["groups"]["review"]["status"] == "active"
    for machine in (siege.mac, siege.spark, siege.lee):
        assert not team.incidents(machine, "TRUST_FORK")


def test_a_fork_below_the_checkpoint_that_was_given_first(siege: Siege) -> None:
    # A newcomer pinned the side that is given up: who decides gives the checkpoint of the other.
    held, other = _forked(siege)
    zoe = siege.new_machine("zoe")
    zoe.json("join", siege.remote.url, "--as", "zoe", "--trust", other)
    _follow(siege.mac, held)
    zoe.wire("sync", check=False)
    done = _follow(zoe, held)
    assert (done["checkpoint"], done["switched"]) == (held, True)
    zoe.wire("sync")
    assert pin(zoe).checkpoint == held
    assert zoe.wire("verify", check=False).status == 0


@pytest.mark.parametrize("offline", [True, False])
def test_a_decision_survives(siege: Siege, offline: bool) -> None:
    # Decided, and killed or cut off before it took effect: the next look goes on.
    held, other = _forked(siege)
    if offline:
        away = siege.remote.path.with_suffix(".away")
        siege.remote.path.rename(away)
        refused = siege.mac.wire("trust", "follow", other, "--yes", "--json", check=False)
        assert refused.status == 6
        away.rename(siege.remote.path)
        siege.mac.wire("sync", check=False)
        assert _show(siege.mac)["checkpoint"] == held, "nothing was decided"
        return
    here = site(siege.mac)
    (kept,) = trustforks.kept(here.places)
    trustforks.decide(here.places, kept.version, kept.hash)
    here.save(replace(here.pin(), judged_trust=0))
    siege.mac.wire("sync", check=False)
    assert _show(siege.mac)["checkpoint"] == other


def test_who_was_a_root_once_stops_no_later_version(siege: Siege) -> None:
    # The key counted for the version before its removal, and makes another one of that number, which the host shows.
    held = ELSEWHERE["a removed root goes on"](siege)
    # What the roots decide from then on is in force for everybody all the same; nobody takes hers over.
    done = siege.mac.json("group", "set", "review", "mac", "spark")
    for machine in (siege.spark, siege.lee):
        machine.wire("sync", check=False)
        shown = _show(machine)
        assert set(shown["groups"]) == {"review"}
        assert CODE in incidents(machine)
        assert [fork["held"]["checkpoint"] for fork in shown["forks"]] == [held]
    assert "checkpoint" not in done or _show(siege.spark)["checkpoint"] == done["checkpoint"]
