"""Pushes that others win: tried again with jitter, and not for ever."""

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from wire.errors import StoreError

RACES = 8


class RaceLost(Exception):
    """Somebody pushed between our fetch and our push."""


def racing(lost: type[Exception] = RaceLost) -> Retrying:
    """Return the attempts at a push, made again when one raises `lost`."""
    return Retrying(
        retry=retry_if_exception_type(lost),
        stop=stop_after_attempt(RACES),
        wait=wait_random_exponential(multiplier=0.1, max=3),
        reraise=True,
    )


def gave_up(lost: RaceLost) -> StoreError:
    """Return the failure of a cycle in which every attempt was lost."""
    return StoreError(
        f"others pushed first {RACES} times in a row ({lost}); nothing is lost, the next cycle goes on", reason="race"
    )
