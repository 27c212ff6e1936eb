"""Signing and verifying in bulk, against PyNaCl alone on the same bytes."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

from figures import PAIRS, Figure, alternate, ms
from history import BATCH, drafts, segments
from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from world import World, making

from wire.daemon.reverify import Segment, check_all
from wire.protocol.chain import lines_of
from wire.protocol.encoding import LINE_TYPE, new_seed, pae
from wire.protocol.line import Line, parse

FREE = 1.9
"""Processors that two workers have got where nobody else wanted them."""


def batch() -> Figure:
    """Measure sending a batch through the API, durably, against signing the same bytes."""
    with making("mac", "spark") as here:
        wire = here.api("mac")
        messages = drafts("spark", BATCH)
        wire.send_all(messages)
        said = [pae(LINE_TYPE, line.body_bytes) for data in segments(here, "mac", "spark") for line in lines_in(data)]
        _, secret = crypto_sign_seed_keypair(new_seed())
        cpu = []

        def send(_: int) -> float:
            began, used = time.perf_counter(), time.process_time()
            wire.send_all(messages)
            cpu.append(time.process_time() - used)
            return time.perf_counter() - began

        pairs = alternate(lambda _: clocked(time.perf_counter, lambda: sign(said, secret)), send)
    return Figure(
        "batch",
        f"`send` through the API with a batch of {BATCH:,}, of PyNaCl's raw signing rate",
        100 * pairs.share,
        40,
        "%",
        f"nacl.bindings.crypto_sign over the same {BATCH:,} messages, {ms(statistics.median(pairs.floor))}",
        f"in one process, wall clock with every fsync, {PAIRS} alternating pairs",
        at_most=False,
        beside={"ours": ms(statistics.median(pairs.ours)), "ours, processor time": ms(statistics.median(cpu))},
    )


def verification(here: World) -> tuple[Figure, Figure]:
    """Measure full verification on one core and on two, against raw verification of the same messages on one.

    Args:
        here: where `mac/kay` holds a long channel, see `history`.
    """
    site = here.site("mac")
    chain = site.trust(site.pin())
    whole = [Segment("mac/kay", number, data) for number, data in enumerate(segments(here, "mac", "kay"), 1)]
    cuts = [len(whole) * number // PAIRS for number in range(PAIRS + 1)]
    parts = [whole[start:stop] for start, stop in pairwise(cuts)]
    raw = [[_signed(line) for segment in part for line in lines_in(segment.data)] for part in parts]
    owner = chain.owner(lines_in(whole[0].data)[0].key_id)
    assert owner is not None
    public = owner[1].public
    lines = sum(map(len, raw))

    def check(some: Sequence[Segment], jobs: int) -> None:
        done = check_all(some, chain, jobs=jobs)
        assert done.lines == sum(segment.data.count(b"\n") for segment in some)
        # A part that does not begin with the channel is told as such, and nothing else is.
        assert [problem.code for problem in done.problems] == ["GAP"] * (some[0].number > 1)

    one = alternate(
        lambda number: clocked(time.process_time, lambda: verify(raw[number], public)),
        lambda number: clocked(time.process_time, lambda: check(parts[number], 1)),
        warm=0,
    )
    used, got = [], []

    def both(_: int) -> float:
        before = os.times()
        wall = clocked(time.perf_counter, lambda: check(whole, 2))
        parent, children = _spent(before, os.times())
        used.append((parent + children / 2) / lines)
        got.append((parent + children) / wall)
        return wall / lines

    two = alternate(
        lambda number: clocked(time.perf_counter, lambda: verify(raw[number], public)) / len(raw[number]),
        both,
        warm=0,
    )
    floor = "nacl.bindings.crypto_sign_open over the same messages on one core"
    cores, alone = statistics.median(got), sum(one.floor) / lines / statistics.median(used)
    free = cores >= FREE
    clock = (
        "wall clock"
        if free
        else f"processor time, all of ours and half of the workers', since it got only {cores:.2f} cores"
    )
    return (
        Figure(
            "verify-one",
            f"full verification of a {lines:,}-line history on one core, of raw PyNaCl verification",
            100 * one.share,
            75,
            "%",
            f"{floor}, {1e6 * sum(one.floor) / lines:.1f} us a line",
            f"reverify.check_all with jobs=1, processor time, {PAIRS} alternating pairs that together check it all",
            at_most=False,
            beside={"ours": f"{1e6 * sum(one.ours) / lines:.1f} us a line"},
        ),
        Figure(
            "verify-two",
            f"full verification of a {lines:,}-line history on two cores, over raw PyNaCl verification on one",
            two.share if free else alone,
            1.5,
            "x",
            f"{floor}, {1e6 * statistics.median(two.floor):.1f} us a line, another {PAIRS}th of them in each pair",
            f"reverify.check_all with jobs=2 over everything, {clock}, {PAIRS} alternating pairs",
            at_most=False,
            beside={
                "ours": f"{1e6 * statistics.median(two.ours):.1f} us a line",
                "cores that it got": f"{cores:.2f}",
                "by the wall clock": f"{two.share:.2f} x",
                "by processor time": f"{alone:.2f} x",
            },
        ),
    )


def _spent(before: os.times_result, after: os.times_result) -> tuple[float, float]:
    """Return the processor time of this process and of its children between two looks."""
    return (
        after.user - before.user + after.system - before.system,
        after.children_user - before.children_user + after.children_system - before.children_system,
    )


def clocked(clock: Callable[[], float], work: Callable[[], None]) -> float:
    """Return what a clock shows after some work, less what it showed before."""
    began = clock()
    work()
    return clock() - began


def sign(messages: Sequence[bytes], secret: bytes) -> None:
    """Sign as fast as PyNaCl can."""
    for message in messages:
        crypto_sign(message, secret)


def verify(signed: Sequence[bytes], public: bytes) -> None:
    """Verify as fast as PyNaCl can."""
    for one in signed:
        crypto_sign_open(one, public)


def lines_in(data: bytes) -> list[Line]:
    """Return the lines of a segment."""
    return [parse(raw) for raw in lines_of(data)]


def _signed(line: Line) -> bytes:
    return line.signature + pae(LINE_TYPE, line.body_bytes)
