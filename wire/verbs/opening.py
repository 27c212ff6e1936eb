"""Opening closed letters, for whatever shows them: with the keys of the chosen agent, and in memory alone.

    opener = Opener(here, pin)
    sealed, members = opener.open(line, members)        a line's lawful members, with `enc` among them

An opened letter's members are those of an open one, in `enc`'s place what it closed. The keys that the agent signed
with before still open what was closed for them. Who has none sees for whom a letter is, by the trust.

What it does not do: write anything, or say whether a letter is to be shown.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from wire.errors import IdentityError, UsageError
from wire.keys import keychange, keyfile
from wire.keys.trust import ACTIVE, RETIRED, Chain
from wire.protocol import sealed
from wire.protocol.encoding import Signer
from wire.protocol.line import Line
from wire.protocol.messages import FIXED, OPTIONAL, TRAILING
from wire.store import trustfiles
from wire.store.pin import Pin
from wire.verbs.here import Here

_ORDER = (*FIXED, *OPTIONAL, *TRAILING)


class Sealed(NamedTuple):
    """What is known of a closed letter.

    Attributes:
        readers: the names whose keys may open it, sorted.
        strange: how many keys may open it that nobody on the wire has.
        opened: whether it was opened here.
        why: why not.
        flags: what speaks against trusting that its readers are its recipients: `old-readers`, somebody can open it
            who would not get it today; `other-readers`, somebody it was never for; `missing-readers`, a recipient
            cannot open it.
        text: the very text that its author closed, strict JSON; empty where it was not opened.
    """

    readers: tuple[str, ...]
    strange: int
    opened: bool
    why: str
    flags: tuple[str, ...]
    text: bytes = b""


class Opener:
    """The keys of the chosen agent, and the trust, read when the first letter is met."""

    def __init__(self, here: Here, pin: Pin) -> None:
        self._here = here
        self._pin = pin
        self._chain: Chain | None = None
        self._signers: dict[str, Signer] = {}
        self._former: bool | None = None
        self._trouble = ""

    def open(self, line: Line, members: Mapping[str, Any]) -> tuple[Sealed, Mapping[str, Any]]:
        """Return what is known of a closed letter, and its members: the open ones alone where it does not open.

        Raises:
            TrustError: the trust that is held here does not hold.
        """
        enc = members["enc"]
        readers, strange, flags = self._readers(line, enc)
        try:
            letter = self._opened(line, enc)
        except sealed.SealedError as error:
            return Sealed(readers, strange, False, str(error), flags), members
        told = {**members, **letter.members}
        shown = {name: told[name] for name in _ORDER if name in told and name != "enc"}
        return Sealed(readers, strange, True, "", flags, letter.text), shown

    def _opened(self, line: Line, enc: Mapping[str, Any]) -> sealed.Letter:
        if not sealed.is_known(enc):
            raise sealed.SealedError("it is closed in a way that this version does not know")
        signer = self._signer(sealed.key_ids(enc))
        if signer is None:
            raise sealed.NotForUs(self._trouble or "this agent has none of the keys that open it")
        try:
            signer.ready(ask=True)
        except IdentityError as error:
            # A key with a passphrase that is not at hand; a person is asked once, not for every letter.
            self._trouble = f"the agent's key cannot be used: {error.message}"
            del self._signers[signer.key_id]
            raise sealed.NotForUs(self._trouble) from error
        return sealed.opened(enc, signer, wire=line.wire, channel=line.channel)

    def _signer(self, ids: tuple[str, ...]) -> Signer | None:
        """Return a key of the agent's that is one of these; of trouble with the present one the text is kept."""
        if self._former is None:
            self._former = False
            self._present()
        if not self._former and self._signers.keys().isdisjoint(ids):
            self._former = True
            with suppress(UsageError):
                name, path, wire, loose = self._where()
                environ = self._here.settings.environ
                found = keychange.former(path, name=name, wire=wire, allow_loose=loose, environ=environ)
                self._signers |= found
        return next((self._signers[one] for one in ids if one in self._signers), None)

    def _present(self) -> None:
        try:
            name, path, wire, loose = self._where()
            environ = self._here.settings.environ
            signer = keyfile.load_for(path, name=name, kind="agent", wire=wire, allow_loose=loose, environ=environ)
        except UsageError:
            self._trouble = "no agent is chosen whose key could open it; --as says which"
        except IdentityError as error:
            self._trouble = f"the agent's key cannot be used: {error.message}"
        else:
            self._signers[signer.key_id] = signer

    def _where(self) -> tuple[str, str, str, bool]:
        """Return name, path and wire of the chosen agent's key, and whether others may read it; raises UsageError."""
        name, settings = self._here.agent(), self._here.settings
        path = keyfile.key_path(settings.keys_dir, wire=self._pin.wire, kind="agent", name=name)
        return name, path, self._pin.wire, settings.allow_loose_keys

    def _readers(self, line: Line, enc: Mapping[str, Any]) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
        """Return whose keys open a letter, how many are nobody's, and how that differs from for whom it is."""
        if self._chain is None:
            self._chain = trustfiles.read(self._here.places.trust_dir)
        chain = self._chain
        then = chain.members(line.recipient, line.trust_version) | {line.sender}
        now = chain.members(line.recipient, chain.newest.version) | {line.sender}
        readers: set[str] = set()
        strange, flags = 0, set()
        for key_id in sealed.key_ids(enc):
            owner = chain.owner(key_id)
            if owner is None:
                # The author's own may be one that the trust does not name yet.
                strange += key_id != line.key_id
                readers |= {line.sender} if key_id == line.key_id else set()
                continue
            name, key = owner
            readers.add(name)
            if name not in then:
                flags.add("other-readers")
            elif name not in now or key.status not in (ACTIVE, RETIRED) or chain.newest.agents[name].status != ACTIVE:
                flags.add("old-readers")
        if strange:
            flags.add("other-readers")
        if sealed.is_known(enc) and not then <= readers:
            flags.add("missing-readers")
        return tuple(sorted(readers)), strange, tuple(sorted(flags))
