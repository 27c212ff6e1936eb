"""Two trust documents with one number: shown side by side, and decided by people, machine by machine."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from typing import Any

import pytest

from support import team
from support.besieged import Siege, api, incidents, pin, signer, site
from support.hostile_host import TS
from support.machine import Machine
from support.moves import ELSEWHERE
from support.moves_signed import EVE
from wire.keys.trust import set_group, sign_document
from wire.protocol.encoding import format_checkpoint
from wire.store import pin as pins
from wire.store import trustfiles, trustforks
from wire.store.pin import replace
from wire.verbs import forking

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


def test_a_kill_while_another_document_is_followed(siege: Siege) -> None:
    # The held line is longer: its later versions go, one by one, before the other document takes its place. Wherever
    # that ends, nothing but the pinned trust is believed, and the same command completes it.
    root = signer(siege.mac, "root")
    base = chain = site(siege.mac).trust(pin(siege.mac))
    tip = siege.host.tip
    for name in ("ops", "review", "night"):
        raw = set_group(chain.newest, chain.wire, name=name, members=["mac"], created=TS)
        chain = chain.extend(raw, sign_document(raw, root))
        siege.host.put_trust(chain.newest.version, raw, chain.signatures[-1])
    siege.sync(siege.mac)
    siege.host.put_back(tip)
    raw = set_group(base.newest, base.wire, name="other", members=["lee"], created=TS)
    other = base.extend(raw, sign_document(raw, root)).newest
    siege.host.put_trust(other.version, raw, sign_document(raw, root))
    siege.mac.wire("sync", check=False)
    held, before = chain.newest.checkpoint, siege.folder / "before"
    assert _show(siege.mac)["checkpoint"] == held
    siege.mac.close()
    shutil.copytree(siege.mac.wire_home, before, symlinks=True)
    calls = 0
    while _killed(siege.mac, other.checkpoint, after=calls):
        if calls % 2:  # somebody else's next look goes on with it, or the same command does
            siege.sync(siege.mac)
        forking.follow(api(siege.mac).here, other.checkpoint, confirm=lambda _: True)
        assert site(siege.mac).trust(pin(siege.mac)).newest.checkpoint == other.checkpoint
        shutil.rmtree(siege.mac.wire_home)
        shutil.copytree(before, siege.mac.wire_home, symlinks=True)
        calls += 1
    assert calls >= 6, "the decision, two versions that go, the signatures and document that come, and the pin"


def _killed(machine: Machine, checkpoint: str, *, after: int) -> bool:
    """Follow a document in a process that is killed after so many changes of the trust's files, or of the pin."""
    child = os.fork()
    if child:
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended in (0, -signal.SIGKILL)
        return ended != 0
    left = after

    def counted(call: Callable[..., None]) -> Callable[..., None]:
        def changed(*args: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            call(*args)

        return changed

    try:
        trustfiles.atomic_write = counted(trustfiles.atomic_write)
        pins.atomic_write = counted(pins.atomic_write)
        os.unlink, unlink = lambda path, **rest: (gone if "/trust/" in str(path) else unlink)(path, **rest), os.unlink
        gone = counted(unlink)
        forking.follow(api(machine).here, checkpoint, confirm=lambda _: True)
        os._exit(0)
    finally:
        os._exit(1)


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
