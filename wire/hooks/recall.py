"""What the host's hook remembers between two pushes: where channels end, and which trust was verified.

Everything is named by the objects it was read from, so that it cannot be out of date: a channel's end counts for
exactly these segments, a verified trust for exactly these versions. A file that is missing or damaged costs time and
nothing else. Whoever can write it owns the repository's disk.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress

from wire.daemon.shape import ROOT, Kind, classify
from wire.errors import StoreError, TrustError
from wire.gitio import Entry
from wire.keys.document import parse
from wire.keys.trust import ACTIVE, Chain
from wire.protocol.chain import Position
from wire.protocol.encoding import sha256_hex
from wire.store.files import atomic_write, read_bytes

FILE = "wire-pre-receive.json"
"""In the repository's folder."""
CHANNELS_MAX = 4_096
STATES_MAX = 4
"""States of a channel: a push that was judged may still lose the race for the branch."""
_FORMAT = 1
_BELOW_TRUST = f"{ROOT}/trust/".encode()


class Recall:
    """See the module's text.

    Args:
        git_dir: the repository.
        pinned: the checkpoint through which a trust must pass to count as verified.

    Attributes:
        chain: the trust of the wire that this push was judged by, once that is known.
    """

    def __init__(self, git_dir: str, pinned: str | None) -> None:
        self.chain: Chain | None = None
        self._pinned = pinned or ""
        self._path = os.path.join(git_dir, FILE)
        self._trust: list[str] = []
        self._channels: dict[str, list[list[str | int]]] = {}
        self._changed = False
        with suppress(StoreError, ValueError, KeyError, TypeError, AttributeError):
            found = json.loads(read_bytes(self._path) or b"{}")
            if found["v"] == _FORMAT:
                states = {str(name): [list(known) for known in listed] for name, listed in found["channels"].items()}
                self._trust, self._channels = list(found["trust"]), states

    def save(self) -> None:
        """Write down what was learnt; a disk that refuses is no reason to refuse a push."""
        if not self._changed:
            return
        kept = dict(list(self._channels.items())[-CHANNELS_MAX:])
        data = {"v": _FORMAT, "trust": self._trust[-8:], "channels": kept}
        with suppress(StoreError):
            atomic_write(self._path, json.dumps(data).encode("ascii"), mode=0o644, durable=False)

    # Trust

    def newest(self, entries: Mapping[bytes, Entry]) -> tuple[str, str] | None:
        """Return the objects of a tree's newest trust version, if all its versions were verified before."""
        listed = _versions(entries)
        if not listed or self._named(listed) not in self._trust:
            return None
        newest = max(path for path in listed if path.endswith(b".json"))
        return listed[newest], listed.get(newest + b".sig", "")

    def chain_of(self, raw: bytes, signatures: bytes) -> Chain | None:
        """Return the end of a chain that was verified before, for who asks nothing of its earlier versions."""
        with suppress(TrustError):
            document = parse(raw)
            self.chain = Chain((document,), (signatures,), document.wire_id)
            return self.chain
        return None

    def trust(self, entries: Mapping[bytes, Entry], chain: Chain) -> None:
        """Note that the versions in a tree are exactly a chain that holds."""
        self.chain = chain
        listed = _versions(entries)
        digest = self._named(listed)
        if digest not in self._trust and len(listed) == 2 * len(chain.documents) == 2 * chain.newest.version:
            self._trust.append(digest)
            self._changed = True

    def _named(self, listed: Mapping[bytes, str]) -> str:
        # By the hash that the judging needs anyway: another one takes longer to load than all of a push's lines.
        return sha256_hex(
            self._pinned.encode() + b"".join(b"\n%s %s" % (path, oid.encode()) for path, oid in sorted(listed.items()))
        )

    # Channels

    def end(self, name: str, there: Mapping[int, Entry], chain: Chain) -> Position | None:
        """Return where a channel ends, if these very segments were walked before and all their lines still count."""
        digest = _digest_of(there)
        agent = chain.newest.agents.get(name.partition("/")[0])
        for known in self._channels.get(name, ()):
            with suppress(ValueError, TypeError):
                held, trust, seq, at, segment, size = known
                lasting = agent is not None and all(key.status == ACTIVE for key in agent.keys)
                if held == digest and (lasting or trust == chain.newest.hash):
                    return Position(int(seq), str(at), int(segment), int(size))
        return None

    def note(self, name: str, there: Mapping[int, Entry], chain: Chain, end: Position) -> None:
        """Note that these segments are a channel's lines up to `end` and nothing else."""
        digest = _digest_of(there)
        others = [known for known in self._channels.pop(name, []) if known[:1] != [digest]]
        self._channels[name] = [*others[1 - STATES_MAX :], [digest, chain.newest.hash, *end]]
        self._changed = True


def _versions(entries: Mapping[bytes, Entry]) -> dict[bytes, str]:
    return {
        path: entry.oid
        for path, entry in entries.items()
        if path.startswith(_BELOW_TRUST) and classify(path, entry.mode).kind in (Kind.TRUST, Kind.TRUST_SIGNATURES)
    }


def _digest_of(there: Mapping[int, Entry]) -> str:
    return sha256_hex(b"".join(b"%d %s\n" % (number, there[number].oid.encode()) for number in sorted(there)))
