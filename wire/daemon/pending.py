"""Lines whose key nobody vouched for yet: foreign for now, and an incident only when that lasts.

A newcomer's approval and its first lines can arrive in either order. Such lines are not stored and block nothing; they
are judged anew at each tip and each trust version. Only the number of beats is kept.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from wire.daemon.findings import Finding
from wire.store.files import atomic_write, read_bytes
from wire.store.paths import WirePlaces

BEATS = 3


@dataclass(slots=True)
class Pending:
    """How many beats each channel has been waiting for a key."""

    path: str
    beats: dict[str, int]

    @classmethod
    def load(cls, places: WirePlaces) -> "Pending":
        """Read the counts; a damaged file counts as none, which only delays an incident."""
        path = os.path.join(places.root, "pending.json")
        data = read_bytes(path)
        try:
            found = json.loads(data) if data else {}
        except ValueError:
            found = {}
        beats = {k: v for k, v in found.items() if isinstance(v, int)} if isinstance(found, dict) else {}
        return cls(path, beats)

    @property
    def due(self) -> bool:
        """Whether some channel has to be judged again although neither tip nor trust changed."""
        return any(count < BEATS for count in self.beats.values())

    def beat(
        self, waiting: Mapping[str, int], tip: str, places: Mapping[str, Mapping[str, object]] = MappingProxyType({})
    ) -> list[Finding]:
        """Count one beat; return the findings that are due.

        Args:
            waiting: lines of unknown keys per channel at this tip.
            places: where the first of them stands, as evidence.
        """
        beats = {channel: min(self.beats.get(channel, 0) + 1, BEATS) for channel in waiting}
        due = [channel for channel, count in beats.items() if count == BEATS and self.beats.get(channel) != BEATS]
        if beats != self.beats:
            self.beats = beats
            atomic_write(self.path, json.dumps(beats).encode(), durable=False)
        return [
            Finding(
                "KEY_UNKNOWN",
                channel,
                f"{waiting[channel]} line(s) in {channel} are signed with a key that the trust does not know",
                {"tip": tip, "count": waiting[channel], **places.get(channel, {})},
            )
            for channel in due
        ]
