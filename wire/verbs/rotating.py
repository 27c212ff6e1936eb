"""A fresh key for an agent of this machine, without a pause in sending.

    done = rotate(here)
    done.state                  "active": the trust names it; "asked": who holds a root key has to approve it

The old key is closed first, here and at once: from then on the fresh one signs. Everything after that may fail or wait,
and doing it again goes on where it stopped; the daemon publishes the request by itself.
"""

import os
from typing import NamedTuple

from wire.daemon import cycle, rotating, trusting
from wire.daemon.rotating import Change
from wire.daemon.shape import request_path
from wire.daemon.site import Site
from wire.errors import RemoteError, WireError
from wire.gitio import GitFailed
from wire.keys import keyfile, rotations
from wire.keys.requests import file_name
from wire.keys.trust import Chain, give_key, prove
from wire.protocol.encoding import fingerprint
from wire.store.files import utc_now
from wire.verbs.here import Here

ACTIVE = "active"
ASKED = "asked"


class Rotated(NamedTuple):
    """What a change of keys came to.

    Attributes:
        fingerprint: of the fresh key.
        former: of the key that it replaces, empty where none was active any more.
        state: `active`, or `asked`.
        checkpoint: of the trust that is in force here.
        failure: why the remote does not know of it yet, if so; it is tried again with every look.
    """

    name: str
    fingerprint: str
    former: str
    state: str
    checkpoint: str
    failure: WireError | None


def rotate(here: Here) -> Rotated:
    """Change the key of the chosen agent.

    Raises:
        UsageError: it is not approved (`not-approved`), or was removed (`removed`).
        IdentityError: its key cannot be used, or is not the one that the trust names (`name-taken`).
        TrustError: this machine's root may not do it; the old key is closed all the same.
        StoreError: a journal lost lines; the next cycle rebuilds it, and this goes on then.
    """
    agent = here.agent()
    site = Site.open(here.settings, here.config)
    site.signer(agent, here.pin().wire).ready(ask=True)
    # What this machine sent and does not know is to be found before the old key is closed.
    cycle.run(site)
    chain = site.trust(site.pin())
    change = rotating.begin(site, chain, agent)
    failure: WireError | None = None
    state = ASKED
    try:
        if _decides(site, chain):
            chain = _change(site, agent, change)
            state = ACTIVE
        else:
            rotating.publish(site, chain, agent, change)
    except (RemoteError, GitFailed) as error:
        failure = error
    old = fingerprint(change.old.public) if change.old is not None else ""
    return Rotated(agent, fingerprint(change.new.public), old, state, chain.newest.checkpoint, failure)


def _decides(site: Site, chain: Chain) -> bool:
    """Return whether a root key of this machine is enough."""
    if chain.newest.threshold > 1:
        return False
    path = keyfile.key_path(site.settings.keys_dir, wire=chain.wire, kind="root", name="root")
    return os.path.lexists(path) and trusting.root_signer(site, chain.wire).public in chain.newest.roots


def _change(site: Site, agent: str, change: Change) -> Chain:
    new = change.new

    def build(chain: Chain) -> bytes | None:
        if chain.key(agent, new.key_id) is not None:
            return None
        name, raw = rotating.request(site, chain, agent, change)
        if change.old is not None:
            return rotating.build(site, chain, rotations.parse(raw, wire=chain.wire, file_name=name))
        role = chain.newest.agents[agent].role
        proof = prove(new, wire=chain.wire, name=agent, role=role)
        return give_key(chain.newest, chain.wire, name=agent, public=new.public, proof=proof, created=utc_now())

    drop = [request_path(file_name(agent, new.key_id))]
    return trusting.change(site, build, f"trust: another key for {agent}", drop=drop).chain
