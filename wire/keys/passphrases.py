"""Where the passphrase of a key comes from, in this order.

1. A credential that systemd gave to the service: `wire-agent-mac` for one key, `wire-passphrase` for all of them.
2. The file that WIRE_PASSPHRASE_FILE names, readable by its owner alone; its first line counts.
3. A person at a terminal, where a command asks for it; a daemon or a hook never does.

A passphrase is UTF-8 in the form NFC, so that it is the same bytes from every keyboard. It is never an argument of a
command, and never part of a message, a log or an error.
"""

import os
import stat
import sys
import unicodedata
from collections.abc import Callable, Mapping
from typing import NamedTuple

from wire.errors import UsageError

FILE = "WIRE_PASSPHRASE_FILE"
CREDENTIAL = "wire-passphrase"
LEAST, MOST = 8, 1024
"""Characters that a new one has at least, and bytes that any has at most."""
NEXT_STEP = (
    f"name a file that holds it ({FILE}=FILE wire …), or run the command at a terminal; for the service: "
    "wire service install --passphrase-file FILE"
)
_TRIES = 3
_asking = True


class Source(NamedTuple):
    """A place that was looked at; its representation shows no passphrase.

    Attributes:
        what: the place, for people.
        passphrase: None where there is none.
        trouble: why it could not be read, empty where it could.
    """

    what: str
    passphrase: bytes | None
    trouble: str

    def __repr__(self) -> str:
        return f"Source({self.what!r}, {'…' if self.passphrase else None}, {self.trouble!r})"


def at_hand(kind: str, name: str, environ: Mapping[str, str]) -> list[Source]:
    """Return what the places hold that need nobody to ask, in their order."""
    found = []
    folder = environ.get("CREDENTIALS_DIRECTORY", "")
    for credential in (f"wire-{kind}-{name}", CREDENTIAL) if folder else ():
        path = os.path.join(folder, credential)
        if os.path.exists(path):
            found.append(_read(path, f"the credential {credential}", environ))
    path = environ.get(FILE, "")
    if path:
        found.append(_read(path, f"{FILE} ({path})", environ))
    return found


def typed(prompt: str, opens: Callable[[bytes], bool]) -> bool | None:
    """Ask a person up to three times; return whether an answer opened it, None where nobody was asked."""
    if not can_ask():
        return None
    for _ in range(_TRIES):
        answer = ask(prompt)
        if not answer:
            return None
        if opens(answer):
            return True
    return False


def never_ask() -> None:
    """Let nobody be asked in this process from now on, whatever its terminal: it has other things to do than wait."""
    global _asking
    _asking = False


def can_ask() -> bool:
    """Return whether a person is at a terminal."""
    try:
        return _asking and sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # closed
        return False


def ask(prompt: str) -> bytes:
    """Return what a person types without it being shown; empty for nothing, or an end of input."""
    from getpass import getpass

    try:
        return encoded(getpass(prompt))
    except EOFError:
        return b""


def encoded(text: str) -> bytes:
    """Return the bytes of a passphrase."""
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogateescape")[:MOST]


def new(text: str) -> bytes:
    """Return the bytes of a passphrase that somebody chose just now.

    Raises:
        UsageError: it is too short, too long or more than one line (`passphrase-weak`, `passphrase-form`).
    """
    if len(text) < LEAST:
        raise UsageError(f"a passphrase has at least {LEAST} characters, not {len(text)}", reason="passphrase-weak")
    if not text.isprintable() or len(text.encode("utf-8", "surrogateescape")) > MOST:
        raise UsageError(
            f"a passphrase is one line of at most {MOST} bytes, without control characters", reason="passphrase-form"
        )
    return encoded(text)


def _read(path: str, what: str, environ: Mapping[str, str]) -> Source:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                return Source(what, None, f"{path} is no regular file")
            if about.st_mode & 0o077 and environ.get("WIRE_ALLOW_LOOSE_KEYS") != "1":
                return Source(what, None, f"{path} is not read, since others can: chmod 600 it")
            line = file.read(MOST + 2).split(b"\n", 1)[0].rstrip(b"\r")
    except OSError as error:
        return Source(what, None, f"{path} cannot be read: {error.strerror}")
    if not line or len(line) > MOST:
        return Source(what, None, f"the first line of {path} holds no passphrase")
    return Source(what, encoded(line.decode("utf-8", "surrogateescape")), "")
