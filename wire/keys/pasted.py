"""Lines that people carry from one machine to another: base64 behind a word, with a checksum at the end.

line("wire-join-1.", raw)                              wire-join-1.<base64url>.<8 hex>
read("wire-join-1.", text, most=4_096) == raw
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

from wire.protocol.encoding import sha256_hex

_SUM = 8
_FORM = re.compile(r"[A-Za-z0-9_-]+\Z", re.ASCII)


def line(prefix: str, raw: bytes) -> str:
    """Return bytes as one line without spaces, safe to paste."""
    return f"{prefix}{urlsafe_b64encode(raw).decode().rstrip('=')}.{sha256_hex(raw)[:_SUM]}"


def read(prefix: str, text: str, *, most: int) -> bytes:
    """Return the bytes of a line, and none where it is not whole; what a mail put into it does no harm.

    Args:
        most: characters of it.
    """
    whole = "".join(text.split())
    body, _, check = whole.removeprefix(prefix).rpartition(".")
    if not whole.startswith(prefix) or len(whole) > most or not _FORM.match(body):
        return b""
    try:
        raw = urlsafe_b64decode(body + "=" * (-len(body) % 4))
    except ValueError:
        return b""
    return raw if sha256_hex(raw)[:_SUM] == check else b""
