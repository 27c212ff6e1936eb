"""The unit's file in the folder that the user manager reads, and how it is treated.

The folder is the manager's, whatever this shell's variables say. A unit that somebody edited or wrote is never written
over or removed unasked, and is kept where that was asked for.
"""

import os
from collections.abc import Mapping

from wire.errors import UsageError, WireError
from wire.store.files import atomic_write, read_bytes, store_error, utc_now
from wire.systemd import unit
from wire.systemd.manager import no_manager
from wire.systemd.unit import NAME, Origin


def path_of(known: Mapping[str, str]) -> str:
    """Return the unit's file, given the variables of the manager; raises WireError for a manager without a home."""
    config = known.get("XDG_CONFIG_HOME") or os.path.join(known.get("HOME", ""), ".config")
    if not os.path.isabs(config):
        raise no_manager("it knows neither HOME nor XDG_CONFIG_HOME")
    return os.path.join(config, "systemd", "user", NAME)


def read(path: str) -> bytes | None:
    """Return the unit's text, None where there is none.

    Raises:
        WireError: the unit is masked (`unit-masked`), or cannot be read.
    """
    if os.path.islink(path) and os.path.realpath(path) == os.devnull:
        raise WireError(
            f"{NAME} is masked: {path} leads to {os.devnull}",
            reason="unit-masked",
            next_step=f"systemctl --user unmask {NAME}",
        )
    return read_bytes(path)


def write(path: str, text: bytes) -> None:
    """Put the unit's text in place; raises StoreError."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as error:
        raise store_error(error, "make the folder of", path) from error
    atomic_write(path, text, mode=0o644)


def remove(path: str) -> None:
    """Remove the unit's file; raises StoreError."""
    try:
        os.unlink(path)
    except OSError as error:
        raise store_error(error, "remove", path) from error


def set_aside(path: str) -> str:
    """Keep a unit that is not ours under another name, and return it."""
    kept = f"{path}.kept-{utc_now().replace(':', '')}"
    try:
        os.rename(path, kept)
    except OSError as error:
        raise store_error(error, "move aside", path) from error
    return kept


def edited(path: str, before: bytes | None, command: str) -> UsageError:
    """Return the refusal to touch a unit that is not as wire wrote it; `command` does it all the same."""
    changed = unit.origin(before) is Origin.EDITED
    what = "was edited after wire wrote it" if changed else "was not written by wire"
    return UsageError(
        f"{path} {what}; it was left as it is",
        reason="unit-edited",
        next_step=f"move the changes into a drop-in (systemctl --user edit {NAME}), then: {command}",
    )
