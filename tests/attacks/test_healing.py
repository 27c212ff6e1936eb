"""The remote is lost in ten ways while the owner of a channel is gone, and two machines heal it at once.

`mac`, who holds the root and owns two of the channels, is switched off from the beginning. `spark` and `lee` find the
loss, stand still, and both run `wire heal` in the same moment, as people do who were told of the same trouble. Then
every line is back, everybody has thawed by nothing but looking, and `mac`, who comes home last, has nothing to do.
Whether everything is back is asked of the repository itself, by a check that has joined nothing.
"""

import json
from collections.abc import Callable

import pytest

from support import gitcmd
from support.besieged import Siege, incidents, lines_in, pin, shown
from support.machine import Machine
from support.moves_files import LOSSES

TEN = (
    "an older state is pushed by force",
    "the branch is deleted",
    "the repository is created again, empty",
    "history without a channel",
    "an older mirror goes on",
    "an unrelated root",
    "history with another wire's trust",
    "history with every line rewritten",
    "history without the last line of every channel",
    "history without anything",
)


def _checked_from_outside(siege: Siege, stranger: Machine, checkpoint: str) -> set[str]:
    """Return the ids that stand at the tip, after a machine that joined nothing found that all of it holds."""
    result = stranger.wire("verify", "--repo", siege.remote.url, "--trust", checkpoint, "--json", check=False)
    found = json.loads(result.out)
    codes = {one["code"] for one in found["findings"]}
    # Files that are nobody's stay: a heal only lengthens.
    assert codes <= {"SHAPE"}, found["findings"]
    return {f"{name}/{seq}" for name, end in found["channels"].items() for seq in range(1, end["seq"] + 1)}


@pytest.mark.parametrize("title", TEN)
def test_two_heal_at_once_while_the_owner_is_gone(siege: Siege, machines: Callable[..., Machine], title: str) -> None:
    checkpoint = siege.mac.json("trust", "show")["checkpoint"]
    LOSSES[title](siege)
    left = siege.remote.tip()
    siege.sync(siege.spark, siege.lee)
    assert all(pin(machine).frozen for machine in (siege.spark, siege.lee))
    siege.send("spark", "lee", "sent while frozen")
    siege.send("lee", "spark", "and back")
    siege.sync(siege.spark, siege.lee)
    assert siege.remote.tip() == left, "nobody puts anything there without being asked"

    healers = [machine.spawn("heal") for machine in (siege.spark, siege.lee)]
    said = [process.communicate(timeout=120) for process in healers]
    assert all(process.returncode in (0, 4) for process in healers), said

    siege.settle(without=[siege.mac])
    for machine in (siege.spark, siege.lee):
        assert pin(machine).frozen is None, machine.name
    there = _checked_from_outside(siege, machines("stranger"), checkpoint)
    assert siege.sent.keys() <= there
    for identity, raw in lines_in(siege.remote.path, siege.host.tip).items():
        assert siege.sent.get(identity, raw) == raw, f"{identity} has other bytes"
    heals = gitcmd.git(siege.remote.path, "log", "--format=%s", siege.host.tip).decode().split("\n")
    assert sum(subject.startswith("heal") for subject in heals) <= 2

    # mac comes home, looks, and reads what was said meanwhile; it never healed anything.
    siege.settle()
    assert pin(siege.mac).frozen is None
    siege.flows(("mac", "spark"), ("lee", "mac"))
    siege.check(**{name: incidents(machine) for name, machine in siege.machines.items()})


def test_a_third_machine_thaws_by_looking(siege: Siege) -> None:
    # Who was frozen and does nothing at all goes on as soon as another has healed, with what waited there.
    siege.host.roll_back(3)
    siege.sync()
    assert all(pin(machine).frozen for machine in siege.machines.values())
    waiting = siege.send("mac", "lee", "waits until somebody heals")
    siege.heal(siege.spark)
    siege.sync(siege.mac, siege.lee)
    assert all(pin(machine).frozen is None for machine in siege.machines.values())
    assert waiting in shown(siege.lee)


def test_a_loss_after_a_heal_is_healed_again(siege: Siege) -> None:
    # The host does it once more, to a history with a heal in it.
    for _ in range(2):
        siege.host.roll_back(2)
        siege.sync()
        siege.heal(siege.lee)
        siege.settle()
        siege.flows(("mac", "spark"))
    siege.check(**{name: incidents(machine) for name, machine in siege.machines.items()})
