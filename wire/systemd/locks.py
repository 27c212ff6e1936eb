"""The passphrase that the service gets as a credential, since nobody is there to be asked.

Systemd reads the file when it starts the service and shows it to that service alone. The unit names the file; what
stands in it is never written anywhere else.
"""

import os
import stat
from contextlib import suppress

from wire.daemon.site import Site
from wire.errors import UsageError, WireError
from wire.keys import passphrases
from wire.keys.locked import LockedSigner
from wire.store import config as configs
from wire.store.paths import Settings
from wire.systemd import unit


def file_for(settings: Settings, given: str | None, before: bytes | None) -> str | None:
    """Return the file that the unit is to name, absolute: the given one, WIRE_PASSPHRASE_FILE, or what it named before.

    Raises:
        UsageError: it is not there, or others can read it (`passphrase-file`).
    """
    chosen = given if given is not None else settings.environ.get(passphrases.FILE, "")
    if not chosen:
        return unit.passphrase(before) if given is None and before is not None else None
    path = os.path.abspath(os.path.expanduser(chosen))
    try:
        about = os.stat(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", reason="passphrase-file") from error
    if not stat.S_ISREG(about.st_mode) or about.st_mode & 0o077:
        raise UsageError(
            f"{path} has mode {stat.S_IMODE(about.st_mode):04o}; a file with a passphrase is its owner's alone",
            reason="passphrase-file",
            next_step=f"chmod 600 {path}",
        )
    return path


def notes(settings: Settings, path: str | None) -> list[str]:
    """Return what the service cannot do, agent by agent, with the file that it gets."""
    told = []
    environ = {passphrases.FILE: path} if path is not None else {}
    for wire in configs.load(settings).wires:
        site = Site.open(settings, wire)
        for agent in wire.agents:
            with suppress(WireError):
                signer = site.signer(agent, site.pin().wire)
                found = passphrases.at_hand("agent", agent, environ)
                if isinstance(signer, LockedSigner) and not any(
                    one.passphrase and signer.open_with(one.passphrase) for one in found
                ):
                    what = f"{path} does not open it" if path is not None else "the service has no way to it"
                    told.append(
                        f"the key of {agent} in {wire.name} has a passphrase, and {what}: no presence, receipt, notice "
                        "or line is signed in its name. "
                        "Put the passphrase into a file: wire service install --passphrase-file FILE"
                    )
    return told
