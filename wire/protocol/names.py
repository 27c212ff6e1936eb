"""Names, channels and ids (PROTOCOL.md, section "Names").

Names become folder names on every kind of file system, so they are validated before any use: ASCII `[a-z0-9-]`,
1 to 32 characters, no hyphen at either end, not reserved.
"""

import re
from functools import lru_cache

from wire.errors import UsageError

_WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)
EVERYONE = "all"
RESERVED = frozenset({EVERYONE, "trust", "requests", "wire", "presence"}) | _WINDOWS_DEVICES
_NEVER_RECIPIENTS = RESERVED - {EVERYONE}

_NAME_FORM = r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?"
_NAME = re.compile(_NAME_FORM, re.ASCII)
# 15 digits stay below 2^53-1, whatever they are, so that a `seq` is an integer of strict JSON.
_ID = re.compile(rf"({_NAME_FORM})/({_NAME_FORM})/([1-9][0-9]{{0,14}})", re.ASCII)


def valid_name(name: str) -> bool:
    """Return whether `name` may name an agent or a group."""
    return _NAME.fullmatch(name) is not None and name not in RESERVED


def check_name(name: str, what: str = "name") -> str:
    """Return `name`.

    Raises:
        UsageError: reason `bad-name`.
    """
    if valid_name(name):
        return name
    why = "is a reserved word" if name in RESERVED else "is not 1 to 32 of a-z, 0-9 and inner hyphens"
    raise UsageError(f"{what} {name[:64]!r} {why}", reason="bad-name")


def valid_recipient(name: str) -> bool:
    """Return whether `name` may stand as the second half of a channel: an agent, a group or `all`."""
    return name == EVERYONE or valid_name(name)


@lru_cache(maxsize=256)
def valid_channel(sender: str, recipient: str) -> bool:
    """Return whether `<sender>/<recipient>` may be a channel."""
    return sender != recipient and valid_name(sender) and valid_recipient(recipient)


def split_channel(channel: str) -> tuple[str, str]:
    """Return (sender, recipient) of `mac/spark`.

    Raises:
        UsageError: reason `bad-channel`.
    """
    sender, _, recipient = channel.partition("/")
    if valid_channel(sender, recipient):
        return sender, recipient
    raise UsageError(f"{channel[:80]!r} is not a channel; one is written mac/spark", reason="bad-channel")


def parse_id(text: str) -> tuple[str, int]:
    """Return (channel, seq) of an id such as `mac/spark/42`.

    Raises:
        UsageError: reason `bad-id`.
    """
    if not valid_id(text):
        raise UsageError(f"{text[:80]!r} is not a message id; one is written mac/spark/42", reason="bad-id")
    channel, _, number = text.rpartition("/")
    return channel, int(number)


def valid_id(text: object) -> bool:
    """Return whether `text` is a well-formed message id."""
    found = _ID.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return False
    sender, recipient = found[1], found[2]
    return sender != recipient and sender not in RESERVED and recipient not in _NEVER_RECIPIENTS


def segment_name(number: int) -> str:
    """Return the file name of a segment: at least six digits, counting from 1."""
    return f"{number:06d}.jsonl"


def parse_segment_name(name: str) -> int | None:
    """Return the number of a segment's file name, or None when it is not exactly what `segment_name` makes."""
    match = re.fullmatch(r"([0-9]{6,9})\.jsonl", name, re.ASCII)  # compiled at the first use
    if match is None:
        return None
    number = int(match.group(1))
    return number if number > 0 and segment_name(number) == name else None
