"""Conditions that a tip showed and that a later one shows no more: their incidents are noted as over."""

from wire.daemon.judged import Judged
from wire.keys.trust import Chain
from wire.store import incidents
from wire.store.incidents import Incident
from wire.store.paths import WirePlaces

CODES = frozenset({"PREFIX", "GAP", "FORCED", "TRUST", "TRUST_FORK", "TRUST_WITHHELD", "SHAPE", "KEY_UNKNOWN"})
"""Codes that tell of a state of the remote; the others tell of something that happened."""


def end_conditions(places: WirePlaces, judged: Judged, chain: Chain) -> None:
    """Note which conditions the tip that was judged does not show.

    Args:
        chain: the trust in force after it.
    """
    shown = {(finding.code, finding.scope, finding.subject) for finding in judged.findings}
    # Lines of an unknown key are no finding at each tip, and still stand there.
    shown |= {("KEY_UNKNOWN", channel, "") for channel in judged.pending}
    for incident in incidents.list_(places.incidents_dir):
        key = (incident.code, incident.scope, incident.subject)
        if incident.ended is not None or incident.code not in CODES or key in shown:
            continue
        if incident.code == "TRUST_WITHHELD" and _names_later(incident, chain):
            continue
        incidents.end(places.incidents_dir, incident.code, incident.scope, incident.subject)


def _names_later(incident: Incident, chain: Chain) -> bool:
    """Return whether the trust version that a line named has not arrived: only its arrival ends that condition."""
    version, _, _ = str(incident.evidence.get("named", "")).partition(":")
    return version.isdigit() and int(version) > chain.newest.version
