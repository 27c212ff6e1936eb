"""The presences of others: fetched with the branch, judged, kept (PROTOCOL.md, section "Presence").

    fetch(site, pin, chain)             the branch, and in the same request the presences of the names in the trust
    listen(site, …, own, tell)          what came is judged; only what holds and is newer is kept

Rules that it keeps:

- Presence never stands in the way of the branch. A fetch of both that failed is made again for the branch alone; for
  a while after it nobody's presence is asked for but those that were there before.
- Only names that the trust knows are asked for, and only one small file of each is read. What a stranger put beside
  them is taken out of the clone again when there is much of it.
- A presence that is refused changes nothing; what was accepted before stays. What is wrong is told before it counts as
  judged.
"""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from wire.daemon import transport
from wire.daemon.accepted import Accepted
from wire.daemon.findings import Finding
from wire.daemon.heard import Refused, contradictions, judge, judge_own
from wire.daemon.ledger import FILE, HEARD, Ledger
from wire.daemon.site import FETCH_MAX_BYTES, INCOMING_REF, Site
from wire.gitio import REPLACEABLE, GitFailed, Kind, RefUpdate, file_in, refs_below
from wire.keys.trust import ACTIVE, Chain
from wire.protocol.encoding import sha256_hex
from wire.protocol.presence import PRESENCE_MAX, Presence, parse
from wire.store import incidents, presences
from wire.store.pin import Pin

BOTH_MAX_BYTES = 16 * 1024 * 1024
"""Bytes of a fetch that brings presences too, once the wire is known."""
NAMES_MAX = 256
"""Names beyond which they are not listed one by one."""
JUNK_MAX = 64
"""Refs beside those of the trust's names, from which on they are a flood."""

# What fails of these fails for the branch as well.
_NOT_PRESENCE = frozenset(
    {
        Kind.AUTH, Kind.HOST_KEY, Kind.NETWORK, Kind.NOT_FOUND, Kind.NO_REF, Kind.RATE_LIMIT, Kind.DISK_FULL,
        Kind.CLONE, Kind.GIT_MISSING, Kind.CANCELLED,
    }
)  # fmt: skip


def fetch(site: Site, pin: Pin, chain: Chain) -> bool:
    """Fetch the wire's branch into the quarantine ref, and the presences of the agents of the trust with it.

    Returns whether presences came with it.

    Raises:
        GitFailed: the branch could not be fetched.
    """
    branch = f"+refs/heads/{pin.branch}:{INCOMING_REF}"
    ears = site.ears
    now = time.monotonic()
    held = now < ears.held_until
    if not held and pin.verified is not None and (seen := _seen(site, pin, chain)) is not None:
        wanted = [branch, *seen]
        if site.git.remotes.fetch_few(pin.remote, wanted, base=pin.verified, max_bytes=BOTH_MAX_BYTES):
            return True
    beside = refspecs(ears.names if held else _agents(chain), exact=held)
    if beside:
        cap = BOTH_MAX_BYTES if pin.verified is not None else FETCH_MAX_BYTES
        try:
            site.git.fetch(pin.remote, [branch, *beside], max_bytes=cap, second=False)
            return True
        except GitFailed as error:
            if error.kind in _NOT_PRESENCE and not (held and error.kind is Kind.NO_REF):
                raise
            ears.hold(now, _there(site, chain))
            if error.kind is Kind.TIMEOUT:
                raise  # it may have been a flood; the next look asks for less
    site.git.fetch(pin.remote, [branch], max_bytes=FETCH_MAX_BYTES)
    return False


def _seen(site: Site, pin: Pin, chain: Chain) -> list[str] | None:
    """Return what asks for the presences that are new at a remote on this machine; None unless its branch moved."""
    path = transport.of(pin.remote).path
    if path is None or not site.lasting or transport.crowded(path):
        return None
    if transport.glance(path, pin.branch) in (None, pin.verified, site.git.resolve(INCOMING_REF)):
        return None
    there, held = transport.presences(path, without=()), refs_below(site.git, HEARD)
    names = (name for name in _agents(chain) if name in there)
    return refspecs([name for name in names if there[name].strip() != held.get(HEARD + name, "").encode()], exact=True)


def refspecs(names: Collection[str], *, exact: bool = False) -> list[str]:
    """Return what asks for the presences of some agents.

    One that matches nothing is no failure, where an exact one that is missing fails the whole fetch.

    Args:
        exact: ask for these refs and no others, where all of them are known to be there.
    """
    if exact:
        return [f"+{REPLACEABLE}{name}:{HEARD}{name}" for name in names]
    if len(names) > NAMES_MAX:
        return [f"+{REPLACEABLE}*:{HEARD}*"]
    kept: list[str] = []
    for name in sorted(names):
        # The pattern of `mac` matches `mac-mini` as well.
        if not kept or not name.startswith(kept[-1]):
            kept.append(name)
    return [f"+{REPLACEABLE}{name}*:{HEARD}{name}*" for name in kept]


Tell = Callable[[Finding], None]


def listen(
    site: Site,
    pin: Pin,
    chain: Chain,
    accepted: Accepted,
    own: Collection[str],
    tell: Tell,
) -> list[Presence]:
    """Judge what the last fetch brought, and keep and return what holds; presences have to have come with it.

    Args:
        own: names of this machine's approved agents.
        tell: told of each finding before the presence counts as judged.
    """
    tips = _tips(site, chain, tell)
    ledger = Ledger.load(site.places)
    # Of our own, what counts is not whether it is new but whether it is what this machine published.
    known = {**ledger.judged, **{agent: ledger.pushed.get(agent, "") for agent in own}}
    news = {agent: oid for agent, oid in tips.items() if known.get(agent) != oid}
    if not news:
        return []
    heard: list[Presence | None] = []
    files = file_in(site.git, news.values(), FILE, max_size=PRESENCE_MAX)
    for agent, oid in news.items():
        if agent in own:
            _hear_own(site, pin, chain, ledger, agent, files[oid], oid, tell)
        else:
            heard.append(_hear(site, pin, chain, accepted, agent, files[oid], oid, tell))
            ledger.judged[agent] = oid
    ledger.save()
    return [one for one in heard if one is not None]


def take(
    site: Site,
    pin: Pin,
    chain: Chain,
    accepted: Accepted,
    own: Collection[str],
    tell: Tell,
    lines: Iterable[tuple[str, bytes]],
) -> list[Presence]:
    """Judge presences that came as lines, by author, and return what holds: from where the host takes no such refs."""
    heard = [
        _hear(site, pin, chain, accepted, agent, raw + b"\n", sha256_hex(raw), tell)
        for agent, raw in lines
        if agent not in own
    ]
    return [one for one in heard if one is not None]


def _tips(site: Site, chain: Chain, tell: Tell) -> dict[str, str]:
    """Return the commit of each agent's presence, and clear a flood away."""
    found = refs_below(site.git, HEARD)
    known = {name: found[ref] for name in _agents(chain) if (ref := HEARD + name) in found}
    junk = found.keys() - {HEARD + name for name in known}
    if len(junk) > JUNK_MAX:
        site.ears.hold(time.monotonic(), known)
        site.git.update_refs([RefUpdate(ref, None) for ref in sorted(junk)])
        why = f"{len(junk)} refs of nobody stand beside the presences at the remote; they are not asked for now"
        tell(Finding("PRESENCE", REPLACEABLE, why, {"count": len(junk)}, "flood"))
    return known


def _hear(
    site: Site, pin: Pin, chain: Chain, accepted: Accepted, agent: str, raw: bytes | None, tip: str, tell: Tell
) -> Presence | None:
    """Judge a presence of an agent of another machine; return it where it counts and is new."""
    held = presences.load_one(site.places, agent)
    known = held.presence if held is not None else None
    try:
        presence = judge(raw, agent, known, chain)
    except Refused as refused:
        if refused.over:
            return None
        why = f"the presence of {agent} at the remote is refused: {refused}; what was heard of it before stays"
        known_by_tip = incidents.find(site.places.incidents_dir, "PRESENCE", REPLACEABLE + agent)
        told = known_by_tip is not None and known_by_tip.evidence.get("tip") == tip
        exhibit = presences.shown(site.places, raw.removesuffix(b"\n")) if raw and not told else {}
        tell(Finding("PRESENCE", REPLACEABLE + agent, why, {"tip": tip, **exhibit}))
        return None
    if presence is None:
        return None
    ends = {channel: end for channel, end in pin.accepted.items() if channel not in pin.forks}
    for finding in contradictions(presence, known, ends, accepted.segment, chain):
        tell(replace(finding, evidence={**finding.evidence, **presences.shown(site.places, presence.raw)}))
    presences.keep(site.places, presence, time.time())
    return presence


def _hear_own(
    site: Site, pin: Pin, chain: Chain, ledger: Ledger, agent: str, raw: bytes | None, tip: str, tell: Tell
) -> None:
    if tip == ledger.tried.get(agent) and raw is not None:
        # Its push was thought to have failed.
        ledger.pushed[agent] = tip
        presences.keep(site.places, parse(raw.removesuffix(b"\n")), time.time())
        return
    held = presences.load_one(site.places, agent)
    published = held.presence if held is not None else None
    seen = agent in ledger.odd
    found = judge_own(raw, agent, published, pin.instance, chain, now=time.time(), seen=seen)
    if found is None:
        return
    if found.problem is not None:
        shown = presences.shown(site.places, raw.removesuffix(b"\n")) if raw and found.floor else {}
        tell(replace(found.problem, evidence={**found.problem.evidence, "tip": tip, **shown}))
    if found.odd and not seen:
        ledger.odd.append(agent)
    ledger.floors[agent] = max(found.floor, ledger.floors.get(agent, 0))


def _agents(chain: Chain) -> list[str]:
    return [name for name, agent in chain.newest.agents.items() if agent.status == ACTIVE]


def _there(site: Site, chain: Chain) -> list[str]:
    found = refs_below(site.git, HEARD)
    return [name for name in _agents(chain) if HEARD + name in found]
