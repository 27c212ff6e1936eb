"""What a command costs as a process, against an interpreter that does nothing, and in a long channel."""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator

from figures import PAIRS, Figure, Pairs, alternate, ms
from history import LONG, SHORT, grow
from world import BODY, Took, World, making, took

from wire.hooks import prereceive, serverhook
from wire.hooks.prereceive import Rules

PUSHED = 10
HOW = "processes with their output thrown away, {}, {} alternating pairs"


def send_and_tail() -> Iterator[Figure]:
    """Measure `wire send`, and `wire tail --json` with nothing new."""
    with making("mac", "spark") as here:
        yield _against_nothing(
            here,
            "mac",
            "send",
            "`wire send` as a process, fsync included, over a bare `python -c pass`",
            lambda: here.run("mac", "send", "spark", BODY),
            waits=True,
        )
    with making("mac", "spark") as here:
        here.run("mac", "send", "spark", BODY)
        here.run("mac", "sync")
        here.run("spark", "sync")
        here.run("spark", "tail", "--json")
        assert here["spark"].json("tail")["result"] == "nothing-new"
        yield _against_nothing(
            here,
            "spark",
            "tail",
            "`wire tail --json` with nothing new, over a bare `python -c pass`",
            lambda: here.run("spark", "tail", "--json"),
            waits=False,
        )


def hook() -> Iterator[Figure]:
    """Measure a runtime's hook while nothing is pending: what every prompt and every end of a turn costs."""
    told = json.dumps({"session_id": "bench", "hook_event_name": "Stop", "stop_hook_active": False}).encode()
    with making("mac", "spark") as here:
        event = here.folder / "event.json"
        event.write_bytes(told)

        def stop() -> Took:
            machine = here["spark"]
            return took([str(machine.program), "hook", "claude-code", "stop"], machine.environ(), machine.home, event)

        stop()
        yield _against_nothing(
            here,
            "spark",
            "hook",
            "`wire hook claude-code stop` with nothing pending, over a bare `python -c pass`",
            stop,
            waits=False,
            target=2.5,
        )


def long_channel(here: World) -> Figure:
    """Compare sending into a long channel with sending into a short one of the same machine.

    Args:
        here: where `mac/kay` holds the long one, see `history`.
    """
    grow(here, "mac", "spark", SHORT)
    here.run("mac", "sync")
    pairs = alternate(
        lambda _: here.run("mac", "send", "spark", BODY).wall,
        lambda _: here.run("mac", "send", "kay", BODY).wall,
        pairs=2 * PAIRS,
    )
    return Figure(
        "long",
        f"`wire send` at {LONG:,} lines in the channel, over one at {SHORT}",
        pairs.ratio,
        1.3,
        "x",
        f"into the short channel, {ms(statistics.median(pairs.floor))}",
        HOW.format("wall clock", 2 * PAIRS),
        beside={"into the long one": ms(statistics.median(pairs.ours))},
    )


def _against_nothing(
    here: World, machine: str, name: str, what: str, ours: Callable[[], Took], *, waits: bool, target: float = 6
) -> Figure:
    """Compare a command with an interpreter that does nothing.

    Args:
        waits: whether the command waits for a disk, so that only the clock on the wall tells what it takes; else
            processor time does, in which others on the machine have no part.
        target: how many times the floor it may take.
    """
    found: tuple[list[Took], list[Took]] = ([], [])

    def noted(took: Took, into: list[Took]) -> float:
        into.append(took)
        return took.wall if waits else took.cpu

    pairs = alternate(
        lambda _: noted(here.floor(machine), found[0]), lambda _: noted(ours(), found[1]), warm=0, pairs=2 * PAIRS
    )
    walls = Pairs(*(tuple(took.wall for took in side) for side in found))
    cpus = Pairs(*(tuple(took.cpu for took in side) for side in found))
    return Figure(
        name,
        what,
        pairs.ratio,
        target,
        "x",
        f"python -c pass of the same environment, {ms(statistics.median(pairs.floor))}",
        HOW.format("wall clock" if waits else "processor time, user and system", 2 * PAIRS),
        beside={
            "ours": ms(statistics.median(pairs.ours)),
            "by the wall clock": f"{walls.ratio:.2f} x",
            "by processor time": f"{cpus.ratio:.2f} x",
        },
    )


def pre_receive(here: World) -> Figure:
    """Measure the host's hook as a process: a push of ten lines on top of a long channel.

    Args:
        here: where `mac/kay` holds the long one, see `history`.
    """
    rules = Rules(branch="main")
    repository = here.remote.path
    serverhook.install(os.environ, str(repository), rules)
    began = time.perf_counter()
    prereceive.prime(os.environ, str(repository), rules)
    primed = time.perf_counter() - began
    old = here.remote.tip()
    grow(here, "mac", "kay", PUSHED)
    here.run("mac", "sync")
    told = here.folder / "push"
    told.write_text(f"{old} {here.remote.tip()} refs/heads/main\n")
    environ = {**os.environ, "GIT_DIR": "."}
    hook = str(repository / "hooks" / "pre-receive")
    nothing = [sys.executable, "-P", "-c", "pass"]
    pairs = alternate(
        lambda _: took(nothing, environ, repository, told).wall, lambda _: took([hook], environ, repository, told).wall
    )
    return Figure(
        "pre-receive",
        f"the host's hook for a push of {PUSHED} lines on top of {LONG:,}",
        1000 * statistics.median(pairs.ours),
        100,
        "ms",
        f"a bare `python -c pass`, {ms(statistics.median(pairs.floor))}",
        HOW.format("wall clock", PAIRS),
        beside={"quickest": ms(min(pairs.ours)), "walking all of it once, when it is installed": ms(primed)},
    )
