"""A vandal puts something into somebody else's channel, and three machines that saw different tips agree in the end.

Four people are concerned: `spark`, who looks while the vandal's bytes stand there; `lee`, who was offline and sees only
what the owner published afterwards; a newcomer, who joins while they stand there and has nothing to compare them with;
and `mac`, the owner, who comes back last and sends. A verifier that compared files, or that took a longer file for an
honest one, would part from the others here for ever.
"""

from collections.abc import Callable

import pytest

from support.besieged import Siege
from support.hostile_host import HostileHost

CHANNEL = "mac/spark"
NEW_CHANNEL = "mac/lee"
"""A channel in which `mac` has not said anything yet."""

Move = Callable[[HostileHost], object]


def _junk(host: HostileHost) -> None:
    host.append(CHANNEL, b"junk\n")


def _junk_without_newline(host: HostileHost) -> None:
    host.append(CHANNEL, b"junk")


def _a_line_under_way(host: HostileHost) -> None:
    host.append(CHANNEL, host.lines(CHANNEL)[0][:200])


def _copy_of_an_old_line(host: HostileHost) -> None:
    host.append(CHANNEL, host.lines(CHANNEL)[1] + b"\n")


def _copy_of_the_last_line(host: HostileHost) -> None:
    host.append(CHANNEL, host.lines(CHANNEL)[-1] + b"\n")


def _line_of_his_own(host: HostileHost) -> None:
    host.append(CHANNEL, host.author(CHANNEL).line())


def _junk_in_front(host: HostileHost) -> None:
    host.insert(CHANNEL, 1, b"junk")


def _junk_between(host: HostileHost) -> None:
    host.insert(CHANNEL, 3, b"junk")


def _extra_segment(host: HostileHost) -> None:
    host.append(CHANNEL, b"junk\n", number=2)


def _extra_segment_far_away(host: HostileHost) -> None:
    host.append(CHANNEL, b"junk\n", number=999)


def _extra_segment_with_a_copy(host: HostileHost) -> None:
    host.append(CHANNEL, host.lines(CHANNEL)[-1] + b"\n", number=2)


def _squatted_with_junk(host: HostileHost) -> None:
    host.append(NEW_CHANNEL, b"junk\n")


def _squatted_without_newline(host: HostileHost) -> None:
    host.append(NEW_CHANNEL, b"junk")


def _squatted_with_a_signed_line_of_another_channel(host: HostileHost) -> None:
    host.append(NEW_CHANNEL, host.lines(CHANNEL)[0] + b"\n")


def _squatted_in_the_second_segment(host: HostileHost) -> None:
    host.append(NEW_CHANNEL, b"junk\n", number=2)


MATRIX: dict[str, tuple[Move, str, str]] = {
    "a junk line": (_junk, CHANNEL, "SIGNATURE"),
    "junk without a newline": (_junk_without_newline, CHANNEL, "SIGNATURE"),
    "the beginning of a line": (_a_line_under_way, CHANNEL, "SIGNATURE"),
    "a copy of an old line": (_copy_of_an_old_line, CHANNEL, "REPLAY"),
    "a copy of the last line": (_copy_of_the_last_line, CHANNEL, "REPLAY"),
    "a line that he signed himself": (_line_of_his_own, CHANNEL, ""),
    "junk in front of the first line": (_junk_in_front, CHANNEL, "SIGNATURE"),
    "junk between two lines": (_junk_between, CHANNEL, "SIGNATURE"),
    "an extra segment": (_extra_segment, CHANNEL, "SIGNATURE"),
    "an extra segment far away": (_extra_segment_far_away, CHANNEL, "SIGNATURE"),
    "an extra segment with a copy": (_extra_segment_with_a_copy, CHANNEL, "REPLAY"),
    "a folder squatted before the first line": (_squatted_with_junk, NEW_CHANNEL, "SIGNATURE"),
    "a folder squatted without a newline": (_squatted_without_newline, NEW_CHANNEL, "SIGNATURE"),
    "a folder squatted with a line of another channel": (
        _squatted_with_a_signed_line_of_another_channel, NEW_CHANNEL, "MISPLACED",
    ),
    "a folder squatted in its second segment": (_squatted_in_the_second_segment, NEW_CHANNEL, "SIGNATURE"),
}  # fmt: skip


@pytest.mark.parametrize("title", MATRIX)
def test_vandal(siege: Siege, title: str) -> None:
    move, channel, code = MATRIX[title]
    move(siege.host)
    siege.sync(siege.spark)
    newcomer = siege.newcomer("zoe", approved=False)
    siege.send("mac", channel.partition("/")[2], "the owner goes on")
    siege.send("spark", "lee", "and so does everybody else")
    siege.sync(siege.mac, siege.lee, newcomer, siege.spark, siege.lee, siege.mac, newcomer)
    siege.check(everyone={f"{code} {channel}"} if code else set())
