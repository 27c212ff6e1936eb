"""What a change of the trust would bring: what a person should know before signing it."""

from functools import partial

from wire.daemon import trusting
from wire.daemon.bounds import head_at
from wire.daemon.site import Site
from wire.errors import IdentityError
from wire.keys import roots
from wire.keys.alike import alike
from wire.keys.trust import ACTIVE, Chain, Document
from wire.store import journal


def warnings(site: Site, chain: Chain, draft: Document) -> tuple[str, ...]:
    """Return what a person should know before signing."""
    newest = chain.newest
    found = []
    try:
        own = trusting.root_signer(site, chain.wire).public
    except IdentityError:
        own = b""
    if own in newest.roots and own not in draft.roots:
        found.append("it removes this machine's own root: nothing more can be signed here")
    if draft.threshold == len(draft.roots) > 1 and (draft.threshold, len(draft.roots)) != (
        newest.threshold,
        len(newest.roots),
    ):
        found.append("every root will have to sign: if one key is lost, nobody can change the trust any more")
    if draft.threshold < newest.threshold:
        found.append(f"{draft.threshold} signature(s) will be enough from then on")
    return (*found, *_look_alikes(newest, draft), *_cuts(site, chain, draft), *_strange_ends(site, chain, draft))


def _look_alikes(newest: Document, draft: Document) -> list[str]:
    """Return which new names a person would take for others."""
    there = [*draft.agents, *draft.groups]
    known = {*newest.agents, *newest.groups}
    found = [
        f"the name {name} looks like {', '.join(others)}"
        for name in there
        if name not in known and (others := alike(name, there))
    ]
    called, before = roots.names(draft), roots.names(newest)
    for one, name in called.items():
        same = [other for key, other in called.items() if key != one and (other == name or alike(name, [other]))]
        if same and before.get(one) != name:
            found.append(f"the root's name {name} looks like that of another root, {same[0]}: compare fingerprints")
    return found


def _strange_ends(site: Site, chain: Chain, draft: Document) -> list[str]:
    """Return where a key would end at another line than the one that was accepted here, or at one that is not here."""
    ends = site.pin().accepted
    found = []
    for name, agent in draft.agents.items():
        for key in agent.keys:
            held = chain.key(name, key.id)
            before = held.positions if held is not None else {}
            for channel, (seq, head) in key.positions.items():
                end = ends.get(channel)
                if not seq or before.get(channel) == (seq, head):
                    continue
                if end is None or seq > end.seq:
                    found.append(
                        f"{channel}: line {seq}, at which a key ends, is not here; nobody here can vouch for it"
                    )
                elif head_at(channel, seq, end, partial(journal.read_segment, site.places)) != head:
                    found.append(f"{channel}: the line {seq} at which a key ends is not the one that was accepted here")
    return found


def _cuts(site: Site, chain: Chain, draft: Document) -> list[str]:
    """Return which accepted lines would count no more, channel by channel."""
    ends = site.pin().accepted
    found = []
    for name, agent in draft.agents.items():
        moved = [
            key
            for key in agent.keys
            if (held := chain.key(name, key.id)) is not None
            and key.status != ACTIVE
            and (held.status, held.positions) != (key.status, key.positions)
        ]
        for channel, end in ends.items():
            if channel.partition("/")[0] != name or not moved or not end.seq:
                continue
            # Keys that were retired before keep theirs; the last of them all is where the channel would end.
            last = max(
                (key.positions.get(channel, (0, ""))[0] for key in agent.keys if key.status != ACTIVE), default=0
            )
            held_active = chain.newest.agents[name].active_key
            if end.seq > last and (held_active is None or agent.key(held_active.id) in moved):
                found.append(f"{channel}: {end.seq - last} message(s) after line {last} count no longer")
    return found
