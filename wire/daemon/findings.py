"""What a cycle found: data first, incidents at the edge.

A `Finding` is what `verify` and its neighbours return. `raise_all` turns findings into incidents in the state folder;
the same finding at the same tip is raised once, however often that tip is judged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wire.daemon.shape import segment_path
from wire.protocol.chain import Foreign
from wire.protocol.encoding import sha256_hex
from wire.store import incidents
from wire.store.incidents import Incident
from wire.store.paths import WirePlaces

WIRE = "wire"
BLANK_TOLD = 16
"""Channels without an accepted line of which is told what is wrong with each: whoever can push can make thousands."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation or a breakdown, before it becomes an incident.

    Attributes:
        code: a code of PROTOCOL.md or an operational one.
        scope: a channel, `wire`, or a path.
        message: what was found and what was expected.
        evidence: hashes, commits, files, offsets; `tip` names the commit that was judged.
        subject: tells two incidents of one code and scope apart.
        next_step: where more is known than the code's own says.
    """

    code: str
    scope: str
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    subject: str = ""
    next_step: str | None = None


def where(channel: str, foreign: Foreign, rows: Mapping[tuple[int, int], int]) -> dict[str, Any]:
    """Return as evidence where foreign bytes stand in a tip, and what they are.

    Args:
        rows: the number of their line in the file, from 1, by segment and offset.
    """
    return {
        "path": segment_path(channel, foreign.segment),
        "line": rows[foreign.segment, foreign.offset],
        "offset": foreign.offset,
        "length": foreign.length,
        "begins": foreign.raw[:40],
        "sha256": sha256_hex(foreign.raw),
    }


def raise_all(places: WirePlaces, findings: Iterable[Finding], now: str) -> list[Incident]:
    """Record findings as incidents; return those that are new or were counted again."""
    raised = []
    for finding in findings:
        known = incidents.find(places.incidents_dir, finding.code, finding.scope, finding.subject)
        tip = finding.evidence.get("tip")
        if known is not None and tip is not None and known.evidence.get("tip") == tip:
            continue
        raised.append(
            incidents.raise_(
                places.incidents_dir,
                code=finding.code,
                scope=finding.scope,
                subject=finding.subject,
                message=finding.message,
                evidence=dict(finding.evidence),
                next_step=finding.next_step,
                now=now,
            )
        )
    return raised
