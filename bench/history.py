"""A long history: made once, by the product's own batches, and used by several figures."""

from collections.abc import Iterator
from contextlib import contextmanager

from world import BODY, World, making

from wire.store import journal
from wire.verbs.sending import Draft

LONG = 100_000
SHORT = 100
BATCH = 10_000


def drafts(to: str, count: int) -> list[Draft]:
    """Return messages to send."""
    return [Draft(to, body=f"{BODY} ({number})") for number in range(count)]


def grow(here: World, sender: str, recipient: str, lines: int) -> None:
    """Send so many messages through the API."""
    wire = here.api(sender)
    for start in range(0, lines, BATCH):
        wire.send_all(drafts(recipient, min(BATCH, lines - start)))


def segments(here: World, sender: str, recipient: str) -> list[bytes]:
    """Return what a channel's segments hold, the first one first."""
    places = here.site(sender).places
    channel = f"{sender}/{recipient}"
    return [journal.read_segment(places, channel, number) for number in journal.segments(places, channel)]


@contextmanager
def long_history() -> Iterator[World]:
    """Make a world in which `mac/kay` has a long, accepted channel."""
    with making("mac", "spark", "kay") as here:
        grow(here, "mac", "kay", LONG)
        here.run("mac", "sync")
        yield here
