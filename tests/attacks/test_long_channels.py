"""The same moves against a channel that fills several segments: what one file can hide, two can."""

import pytest

from support import hostile_host as hostile
from support import oracle
from support.besieged import Siege, all_incidents, new_key, pin, shown, signer
from support.moves_many import DEEP
from support.moves_many import LONG as CHANNEL
from wire.protocol.encoding import Signer
from wire.protocol.line import head

LINES = 11
"""Lines of some 60 KB: four in each segment, three in the last."""
SEED = b"a new key for somebody, 32 bytes"


@pytest.fixture
def long(siege: Siege) -> Siege:
    """Let mac fill two segments and a part of the third, and everybody have it."""
    for number in range(1, LINES + 1):
        siege.send("mac", "lee", f"{number}:" + "x" * 60_000)
    siege.settle(rounds=1)
    siege.remember()
    assert [len(siege.host.lines(CHANNEL, number)) for number in (1, 2, 3, 4)] == [4, 4, 3, 0]
    return siege


CODES: dict[str, tuple[set[str], set[str]]] = {
    "the middle one deleted, in a long channel": ({"PREFIX"}, {"GAP"}),
    "the first one deleted, in a long channel": ({"PREFIX"}, {"GAP"}),
    "two swapped, in a long channel": ({"PREFIX", "REPLAY"}, {"GAP", "MISPLACED"}),
    "a line moved to the next, in a long channel": ({"PREFIX", "REPLAY"}, {"MISPLACED", "GAP"}),
    "all in one, in a long channel": ({"PREFIX", "REPLAY"}, {"MISPLACED", "GAP"}),
    "renamed, in a long channel": ({"PREFIX", "REPLAY"}, {"MISPLACED", "GAP"}),
}
"""What those raise who know the lines, and what a newcomer may raise, who does not."""


@pytest.mark.parametrize("title", CODES)
def test_segments(long: Siege, title: str) -> None:
    codes, newcomers = CODES[title]
    DEEP[title](long)
    long.sync(long.lee)
    newcomer = long.newcomer("zoe", approved=False)
    seen = pin(newcomer).accepted.get(CHANNEL)
    assert seen is None or seen.seq <= LINES
    long.send("mac", "lee", "going on")
    long.sync(long.mac, newcomer, long.lee, long.spark, newcomer)
    told = {one.code for one in all_incidents(newcomer) if one.integrity}
    assert told <= newcomers | {"PREFIX"} | codes
    raised = {f"{code} {CHANNEL}" for code in codes}
    long.check(everyone=raised, zoe={f"{code} {CHANNEL}" for code in told})


def test_key_revoked_several_segments_ago(long: Siege) -> None:
    # Cut at line 2, in the first segment: the later segments go, from what is accepted, from every clone, from the
    # journal, and from the remote.
    lost = [f"{CHANNEL}/{seq}" for seq in range(3, LINES + 1)]
    two = long.sent[f"{CHANNEL}/2"]
    for identity in lost:
        del long.sent[identity]
    long.retire("mac", long.ends("mac", lee=(2, head(two))), replacement=Signer(SEED))
    new_key(long.mac, SEED)
    long.settle()
    long.send("mac", "lee", "three, by the new key")
    long.settle()
    for machine in long.machines.values():
        held = oracle.segments(machine.clone(), pin(machine).accepted_commit)
        assert [path for path in held if f"/{CHANNEL}/" in path] == [hostile.segment(CHANNEL)]
        assert sorted(file.name for file in machine.segment(CHANNEL).parent.iterdir()) == ["000001.jsonl"]
    assert [path for path in long.remote.files() if f"/{CHANNEL}/" in path] == [hostile.segment(CHANNEL)]
    long.check(shorter=long.machines.values(), everyone={f"KEY_RETIRED {CHANNEL}"})


def test_fork_in_an_old_segment(long: Siege) -> None:
    # A thief with the real key rewrites line 3 of 11, long after everybody accepted it.
    thief = long.host.author(CHANNEL, signer(long.mac))
    thief.last = long.host.lines(CHANNEL)[1]
    other = thief.only("another three")
    long.host.rewrite(CHANNEL, 3, lambda _: other[:-1])
    long.settle()
    long.flows(("mac", "spark"), ("lee", "mac"))
    assert shown(long.lee)[f"{CHANNEL}/3"] == long.sent[f"{CHANNEL}/3"]
    long.check(frozen={CHANNEL}, everyone={f"FORK {CHANNEL}", f"PREFIX {CHANNEL}"})
