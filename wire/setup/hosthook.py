"""What a repository on this machine enforces when somebody pushes: git's own switches, and wire's hook."""

import os
from collections.abc import Mapping

from wire.errors import StoreError
from wire.gitio import Bare
from wire.store.files import read_bytes

HOOK = "pre-receive"
VERB = "hooks run pre-receive"
"""What the hook asks of wire; a hook of somebody else's that has this in it runs ours, too."""
SWITCHES = ("receive.denyNonFastForwards", "receive.denyDeletes", "receive.fsckObjects")
"""What git enforces by itself where it is switched on. The first two concern branches alone: presences stay
replaceable."""


def place(found: Bare) -> str:
    """Return the path where wire's hook belongs."""
    plain = os.path.join(found.hooks_dir, HOOK)
    below = os.path.join(found.hooks_dir, f"{HOOK}.d")
    if os.path.isdir(below) and b".d/" in (text_of(plain) or b""):
        return os.path.join(below, "wire")
    custom = os.path.join(found.git_dir, "custom_hooks")
    if os.path.isdir(custom):
        return os.path.join(custom, HOOK)
    return plain


def text_of(path: str) -> bytes | None:
    """Return a hook's text, None where there is none that can be read."""
    try:
        return read_bytes(path)
    except StoreError:
        return None


def calls(text: bytes, verb: str = VERB) -> bool:
    """Return whether a hook's text has wire do that: as it stands, judge the push."""
    return any(verb.encode() in line and not line.lstrip().startswith(b"#") for line in text.split(b"\n"))


def judges(found: Bare) -> bool:
    """Return whether wire's hook judges what is pushed there."""
    path = place(found)
    return calls(text_of(path) or b"") and os.access(path, os.X_OK)


def is_on(settings: Mapping[str, str], name: str) -> bool:
    """Return whether one of `SWITCHES` is on."""
    fallback = "transfer.fsckobjects" if name == "receive.fsckObjects" else ""
    value = settings.get(name.lower(), settings.get(fallback, ""))
    return value.lower() in ("true", "yes", "on", "1")
