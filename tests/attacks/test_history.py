"""The history is replaced, shortened, bent or deleted: content decides, and nothing that was accepted is given up.

A forced history that still carries everything is an alarm and no more. One that lacks accepted lines freezes the wire
on every machine that sees it, until a tip carries everything again: by itself, or because somebody heals.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from support import hostile_host as hostile
from support.besieged import Siege, Template, all_incidents, git, incidents, pin, shown, tail
from support.machine import Machine
from support.moves_files import LOSSES
from support.remote import BareRemote

FORCED = "FORCED wire"
LAST = {"PREFIX lee/mac", "PREFIX lee/spark"}
"""What is missed when the last commit is gone: lee made it."""


def _frozen(siege: Siege) -> set[str]:
    return {name for name, machine in siege.machines.items() if pin(machine).frozen is not None}


def test_forced_history_with_everything_still_there(siege: Siege) -> None:
    # Somebody squashes the history to one commit. No line is missing, so nobody stops.
    siege.host.squash()
    siege.send("mac", "spark", "sent before mac looked")
    siege.settle()
    siege.flows(("spark", "mac"), ("mac", "lee"))
    siege.check(everyone={FORCED})


def test_forced_history_with_more_than_before(siege: Siege) -> None:
    # A new root with everything and one honest line more, which the host had in its hands.
    siege.send("mac", "spark", "five")
    siege.sync(siege.mac)
    siege.host.squash()
    siege.settle()
    siege.check(everyone={FORCED})


LOOKED: dict[str, set[str]] = {
    "an older mirror is restored": LAST,
    "history with a line rewritten": {"PREFIX mac/spark", "SIGNATURE mac/spark"},
    "the branch is deleted": set(),
}
"""Losses, and what everybody raises who looks while they stand; `test_matrix.py` has more of them."""


@pytest.mark.parametrize("title", LOOKED)
def test_forced_history_with_lines_missing(siege: Siege, title: str) -> None:
    LOSSES[title](siege)
    left = siege.remote.tip()
    # Whoever looks stands still, loses nothing, can still read and send, and puts nothing there by itself.
    siege.sync(siege.spark, siege.lee)
    assert _frozen(siege) == {"spark", "lee"}
    siege.send("spark", "mac", "sent while frozen")
    siege.send("mac", "spark", "sent by one who has not looked")
    siege.settle()
    assert _frozen(siege) == {"mac", "spark", "lee"}
    assert siege.remote.tip() == left, "somebody put something there without being asked"
    siege.only_grew()
    known = [i for i in siege.sent if i.split("/")[1] in ("lee", "all")]
    assert set(shown(siege.lee)) == set(known)
    assert tail(siege.lee).status == 4, "an open incident concerns what was asked"
    # One of them heals; the others thaw by themselves, and what waited goes out.
    siege.heal(siege.lee)
    siege.settle()
    siege.flows(("mac", "lee"), ("lee", "spark"))
    siege.check(everyone={FORCED} | LOOKED[title])


def test_forced_history_that_is_put_back(siege: Siege) -> None:
    # The host puts the old tip back before anybody healed: nothing is missing any more, and nothing stays frozen.
    tip = siege.host.tip
    siege.host.roll_back()
    siege.sync(siege.spark)
    assert _frozen(siege) == {"spark"}
    siege.send("spark", "lee", "sent while frozen")
    siege.host.put_back(tip)
    siege.settle()
    siege.check(spark={FORCED, *LAST})


def test_forced_history_seen_by_a_newcomer(siege: Siege) -> None:
    # A newcomer meets a shortened history, has nothing to compare it with, and gets every line once it is healed.
    siege.host.roll_back()
    siege.sync(siege.spark)
    newcomer = siege.newcomer("zoe", approved=False)
    assert "lee/mac" not in pin(newcomer).accepted
    siege.heal(siege.spark)
    siege.settle()
    siege.check(zoe=(), spark={FORCED, *LAST})


def test_two_heal_at_once(siege: Siege) -> None:
    # Both saw the same loss. Who comes second finds everything there, and merges nothing more.
    siege.host.roll_back()
    siege.settle(rounds=1)
    siege.heal(siege.spark)
    healed = siege.host.tip
    siege.heal(siege.mac)
    merges = siege.remote.git("rev-list", "--merges", f"{healed}..{siege.host.tip}")
    assert merges == b""
    siege.settle()
    siege.check(everyone={FORCED, *LAST})


def test_heal_where_nothing_is_missing(siege: Siege) -> None:
    tip = siege.host.tip
    siege.mac.wire("heal")
    assert siege.host.tip == tip
    siege.check()


def test_healers_who_know_different_parts(siege: Siege) -> None:
    # lee was away and knows less than spark. What lee heals lacks a line; spark does not thaw before that is there.
    siege.send("mac", "spark", "five")
    siege.sync(siege.mac, siege.spark)
    siege.host.roll_back(2)
    siege.sync(siege.spark, siege.lee)
    _do_what_is_said(siege, siege.lee)
    siege.sync(siege.spark)
    assert _frozen(siege) == {"spark"}
    _do_what_is_said(siege, siege.spark)
    siege.settle()
    siege.flows(("mac", "spark"), ("spark", "lee"))
    # mac knows the same as spark, so that for it nothing was ever missing.
    siege.check(lee={FORCED, *LAST}, spark={FORCED, "PREFIX mac/spark", *LAST})


def _do_what_is_said(siege: Siege, machine: Machine) -> None:
    """Run the command that the incident names, as a person would."""
    (told,) = all_incidents(machine, "FORCED")
    assert "`wire heal`" in told.next_step
    assert machine.wire("heal", check=False).status in (0, 4)
    assert pin(machine).frozen is None


def test_line_published_and_withdrawn_between_two_looks(siege: Siege) -> None:
    # mac's newest line was there and was taken away before anybody saw it. mac puts it back; the others learn of both.
    siege.send("mac", "spark", "five")
    siege.sync(siege.mac)
    siege.host.truncate("mac/spark", 4)
    siege.sync(siege.spark)
    assert "PREFIX mac/spark" in incidents(siege.spark)
    siege.settle()
    siege.check(everyone={"PREFIX mac/spark"})


def test_evil_replace_in_the_clone(siege: Siege) -> None:
    # The same, slipped into a machine's own clone.
    clone_tip = pin(siege.spark).verified or ""
    blob = git(siege.spark, "rev-parse", f"{clone_tip}:{hostile.segment('mac/spark')}").decode().strip()
    evil = git(siege.spark, "rev-parse", f"{clone_tip}:{hostile.segment('lee/spark')}").decode().strip()
    git(siege.spark, "replace", blob, evil)
    siege.settle()
    siege.flows(("mac", "spark"), ("spark", "mac"))
    siege.check()


def test_objects_named_by_sha_256(tmp_path: Path, machines: Callable[..., Machine]) -> None:
    # The same in a repository whose objects have longer names, since ids are computed here as well as asked for.
    siege = Template(tmp_path / "template", object_format="sha256").copy(
        tmp_path, BareRemote(tmp_path / "hub.git", object_format="sha256"), machines
    )
    assert len(siege.host.tip) == 64
    siege.host.flash(lambda: siege.host.rewrite("mac/spark", 2))
    siege.host.replace_segment("lee/spark", hostile.File(b"elsewhere", "120000"))
    siege.sync(siege.spark)
    siege.host.squash()
    siege.settle()
    siege.flows(("lee", "spark"))
    raised = {"PREFIX mac/spark", "SIGNATURE mac/spark", "PREFIX lee/spark", "SHAPE wire", FORCED}
    siege.check(spark=raised, mac=incidents(siege.mac), lee=incidents(siege.lee))
