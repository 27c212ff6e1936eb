"""Closing letters: for whom a message to some recipient is closed, and when it is (PROTOCOL.md, section "Closed
letters").

    closing = Closing(here, pin, "mac/review")          who may read, at the trust version that the lines will name
    members = closing.close(signer, "message", said)    `subject`, `body` and `refs` are in `enc` now

A letter is closed for the active keys of its recipients, and for the author's own. Where somebody has none it is said;
where nobody has one nothing is sent, since an open letter is not what was asked for.
"""

from collections.abc import Mapping
from typing import Any

from wire.errors import TrustError, UsageError
from wire.protocol import sealed
from wire.protocol.encoding import Signer
from wire.protocol.messages import OPTIONAL, SEALED, check_content
from wire.store import trustfiles
from wire.store.pin import Pin
from wire.verbs.here import Here

OPEN_TYPES = frozenset({"incident", "heartbeat"})
"""Types that are for whoever checks the wire, and are never closed."""


def asked_for_by_policy(here: Here) -> bool:
    """Return what the trust's policy says, for a pin that does not know; raises TrustError."""
    return trustfiles.read(here.places.trust_dir).newest.asks_for_sealing


def is_wanted(type: str, said: Mapping[str, Any], *, seal: bool | None, required: bool) -> bool:
    """Return whether a message is to be closed.

    Args:
        said: its members; those that are None do not count.
        seal: what its author asked for.
        required: whether the policy asks for it.

    Raises:
        UsageError: `seal-required`, `not-sealable`.
    """
    if seal is False and required and type not in OPEN_TYPES:
        raise UsageError(
            "the wire's policy asks for closed letters (`encrypt: required`), and this one was to be open; nothing was"
            " sent",
            reason="seal-required",
            next_step="leave --no-seal out; see `wire trust policy`",
        )
    something = any(said.get(name) is not None for name in SEALED)
    if seal and (type in OPEN_TYPES or not something):
        why = f"a {type!r} is for whoever checks the wire" if something else "it has no subject, body or refs"
        raise UsageError(f"the message cannot be closed: {why}; nothing was sent", reason="not-sealable")
    return bool(seal) or (required and something and type not in OPEN_TYPES)


class Closing:
    """Who may read what is sent in one channel now.

    Attributes:
        without_key: recipients that have no key, and cannot read it.

    Raises:
        TrustError: nobody behind the recipient has a key (`no-key-to-seal-for`), or the trust does not hold.
    """

    def __init__(self, here: Here, pin: Pin, channel: str) -> None:
        self._wire = pin.wire
        self._channel = channel
        self._recipient = channel.partition("/")[2]
        chain = trustfiles.read(here.places.trust_dir).until(pin.trust_version)
        document = chain.newest
        if document.hash != pin.trust_hash:
            raise TrustError(
                f"the trust in {here.places.trust_dir} is not that of the pin (version {pin.trust_version}), so that"
                " nobody can say for whom to close a letter; nothing was sent",
                reason="trust-corrupt",
                next_step="wire sync",
            )
        names = sorted(chain.members(self._recipient, pin.trust_version))
        active = {name: document.agents[name].active_key for name in names}
        self._keys = {key.id: key.public for key in active.values() if key is not None}
        self.without_key = tuple(name for name, key in active.items() if key is None)
        if not self._keys:
            raise TrustError(
                f"{self._recipient!r} has no key in trust version {pin.trust_version} that a letter could be closed"
                " for; nothing was sent",
                reason="no-key-to-seal-for",
                next_step="wire trust show",
            )

    def close(self, signer: Signer, type: str, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of a line with subject, body and refs closed.

        Raises:
            UsageError: `bad-content`, as for an open message.
        """
        said = {name: members[name] for name in OPTIONAL if members.get(name) is not None}
        problem = check_content(self._recipient, type, said)
        if problem is not None:
            raise UsageError(f"the message was not sent: {problem[1]}", reason="bad-content")
        keys = {**self._keys, signer.key_id: signer.public}
        try:
            enc = sealed.close(said, keys, wire=self._wire, channel=self._channel)
        except ValueError as error:
            raise UsageError(f"the message cannot be written as strict JSON: {error}", reason="bad-content") from error
        return {**{name: value for name, value in said.items() if name not in SEALED}, "enc": enc}

    def cost(self) -> str:
        """Return in words what closing adds to a line."""
        return f"closing adds a third to the text, and {sealed.KEY_COST} bytes for each of {len(self._keys) + 1} keys"
