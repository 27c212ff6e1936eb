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
from support import hostile_host as hostile
from support.besieged import Siege, incidents, lines_in, pin, shown
from support.hostile_host import HostileHost
from support.machine import Machine
from wire.keys.trust import found, sign_document
from wire.store.files import utc_now


def _pushed_by_force(host: HostileHost) -> None:
    host.roll_back(3)


def _branch_deleted(host: HostileHost) -> None:
    host.delete_branch()


def _created_again(host: HostileHost) -> None:
    host.recreate()


def _squashed(host: HostileHost) -> None:
    # Somebody keeps "the current state" in one commit, and forgets a channel.
    host.commit({hostile.segment("mac/spark"): None}, parents=[], base=host.tip)


def _older_mirror_that_goes_on(host: HostileHost) -> None:
    # A backup is put back, and somebody works on it.
    host.roll_back(2)
    host.commit({"README.md": b"we are back\n"})


def _unrelated_root(host: HostileHost) -> None:
    host.unrelated({"README.md": b"a fresh start\n"})


def _trust_rewritten(host: HostileHost) -> None:
    # Another wire's trust, with a root of the host's, stands where this one's was.
    raw = found(created=utc_now(), nonce="01" * 16, roots=[host.key.public], threshold=1)
    versions = range(2, host.trust[0] + 1)
    host.commit(
        {
            hostile.document(1): raw,
            f"{hostile.document(1)}.sig": sign_document(raw, host.key),
            **{path: None for n in versions for path in (hostile.document(n), f"{hostile.document(n)}.sig")},
            f"{hostile.ROOT}/trust.json": raw,
        },
        parents=[],
        base=host.tip,
    )


def _every_line_rewritten(host: HostileHost) -> None:
    segments = [path for path in host.remote.files(host.tip) if path.endswith(".jsonl")]
    changed = {path: (host.read(path) or b"").replace(b'"body":"', b'"body":"not ') for path in segments}
    host.commit(dict(changed), parents=[], base=host.tip)


def _last_lines_cut(host: HostileHost) -> None:
    # A filter over the whole history, which takes the newest line of every channel.
    segments = [path for path in host.remote.files(host.tip) if path.endswith(".jsonl")]
    cut = {path: b"".join(line + b"\n" for line in (host.read(path) or b"").split(b"\n")[:-2]) for path in segments}
    host.commit({path: data or None for path, data in cut.items()}, parents=[], base=host.tip)


def _emptied(host: HostileHost) -> None:
    host.commit({hostile.ROOT: None}, parents=[], base=host.tip)


LOSSES: dict[str, Callable[[HostileHost], None]] = {
    "an older state is pushed by force": _pushed_by_force,
    "the branch is deleted": _branch_deleted,
    "the repository is created again, empty": _created_again,
    "the history is squashed without a channel": _squashed,
    "an older mirror goes on": _older_mirror_that_goes_on,
    "an unrelated root": _unrelated_root,
    "the trust is rewritten": _trust_rewritten,
    "every line is rewritten": _every_line_rewritten,
    "the last line of every channel is cut": _last_lines_cut,
    "everything is deleted": _emptied,
}


def _checked_from_outside(siege: Siege, stranger: Machine, checkpoint: str) -> set[str]:
    """Return the ids that stand at the tip, after a machine that joined nothing found that all of it holds."""
    result = stranger.wire("verify", "--repo", siege.remote.url, "--trust", checkpoint, "--json", check=False)
    found = json.loads(result.out)
    codes = {one["code"] for one in found["findings"]}
    # Files that are nobody's stay: a heal only lengthens.
    assert codes <= {"SHAPE"}, found["findings"]
    return {f"{name}/{seq}" for name, end in found["channels"].items() for seq in range(1, end["seq"] + 1)}


@pytest.mark.parametrize("title", LOSSES)
def test_two_heal_at_once_while_the_owner_is_gone(siege: Siege, machines: Callable[..., Machine], title: str) -> None:
    checkpoint = siege.mac.json("trust", "show")["checkpoint"]
    LOSSES[title](siege.host)
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
