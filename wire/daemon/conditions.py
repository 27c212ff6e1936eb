"""Conditions of the remote: one that has no tip, and those that a later tip shows no more, which are over then."""

from wire.daemon.bounds import BY_PRESENCE, BY_PRESENCES
from wire.daemon.findings import WIRE, Finding
from wire.daemon.judged import Judged
from wire.daemon.report import TROUBLE
from wire.gitio import GitFailed, Kind
from wire.keys.trust import Chain
from wire.store import incidents, trustforks
from wire.store.incidents import Incident
from wire.store.paths import WirePlaces

CODES = frozenset({"PREFIX", "GAP", "FORCED", "TRUST", "TRUST_FORK", "TRUST_WITHHELD", "SHAPE", "KEY_UNKNOWN"})
"""Codes that tell of a state of the remote; the others tell of something that happened."""


REMOTE = "remote"
"""What tells incidents of the remote from those of this machine."""


def remote_failed(error: GitFailed) -> list[Finding]:
    """Return what is told of a fetch or push that failed; nothing where somebody asked for its end."""
    if error.kind is Kind.CANCELLED:
        return []
    if error.kind in (Kind.CORRUPT, Kind.CLONE):
        error.next_step = "wire repair"
    evidence = {"kind": str(error.kind), "stderr": error.stderr}
    return [Finding(TROUBLE.get(error.kind, "UNKNOWN"), WIRE, error.message, evidence, REMOTE, error.next_step)]


def end_remote(places: WirePlaces) -> None:
    """Note that fetch and push went well."""
    incidents.end(places.incidents_dir, sorted({*TROUBLE.values(), "UNKNOWN"}), WIRE, REMOTE)


def branch_gone(branch: str, verified: str) -> Finding:
    """Return what is told, and freezes the wire, where the remote no longer has the branch that it had."""
    return Finding(
        "FORCED",
        WIRE,
        f"the remote no longer has the branch {branch!r}; it lost commit {verified[:12]} that it had before. "
        "Nothing is accepted or published until that is healed, and everything is kept here",
        {"old_tip": verified, "new_tip": None, "tip": "none"},
        subject="frozen",
    )


def _keep_other(places: WirePlaces, judged: Judged) -> None:
    """Keep the other of two trust documents with one number, for a person to decide."""
    if judged.other is not None:
        newest = judged.other.newest
        trustforks.keep(places, newest.version, newest.raw, judged.other.signatures[-1])


def end_conditions(places: WirePlaces, judged: Judged, chain: Chain) -> None:
    """Note which conditions the tip that was judged does not show, and keep what a person has to decide about.

    Args:
        chain: the trust in force after it.
    """
    _keep_other(places, judged)
    shown = {(finding.code, finding.scope, finding.subject) for finding in judged.findings}
    # Lines of an unknown key are no finding at each tip, and still stand there.
    shown |= {("KEY_UNKNOWN", channel, "") for channel in judged.pending}
    for incident in incidents.list_(places.incidents_dir):
        key = (incident.code, incident.scope, incident.subject)
        if incident.ended is not None or incident.code not in CODES or key in shown:
            continue
        if incident.subject == BY_PRESENCES or incident.subject.startswith(BY_PRESENCE):
            continue  # no tip shows that; see `bounds`, which ends it
        if incident.code == "TRUST_WITHHELD" and _names_later(incident, chain):
            continue
        incidents.end(places.incidents_dir, incident.code, incident.scope, incident.subject)


def _names_later(incident: Incident, chain: Chain) -> bool:
    """Return whether the trust version that a line named has not arrived: only its arrival ends that condition."""
    version, _, _ = str(incident.evidence.get("named", "")).partition(":")
    return version.isdigit() and int(version) > chain.newest.version
