"""The Python API for the private keys of this machine.

    from wire.keeping import set_passphrase
    set_passphrase(wire.connect(), "correct horse battery staple")

All raise `WireError` and nothing else. No error or result holds a passphrase.
"""

from wire.api import Wire
from wire.keys import passphrases
from wire.verbs import locking
from wire.verbs.locking import Changed


def set_passphrase(wire: Wire, new: str | None, *, current: str | None = None, root: bool = False) -> Changed:
    """Put the agent's key, or this machine's root key, under a passphrase; None takes it away.

    Args:
        current: what opens it now; looked for as everywhere where None.

    Raises:
        UsageError: the new one is too short or too long (`passphrase-weak`, `passphrase-form`).
        IdentityError: there is no such key (`key-missing`), or it opens by another passphrase (`key-locked`,
            `passphrase-wrong`); nothing was changed.
    """
    kind, name = ("root", "root") if root else ("agent", wire.here.agent())
    return locking.change(
        wire.here,
        kind,
        name,
        new=passphrases.new(new) if new is not None else None,
        current=passphrases.encoded(current) if current is not None else None,
    )


def has_passphrase(wire: Wire, *, root: bool = False, opened: bool = False) -> bool:
    """Return whether the agent's key, or the root key, has a passphrase.

    Args:
        opened: open it as well, by what a person at a terminal types if need be; raises IdentityError.
    """
    kind, name = ("root", "root") if root else ("agent", wire.here.agent())
    return locking.is_locked(wire.here, kind, name, opened=opened)
