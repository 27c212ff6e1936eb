"""One of three roots, two of which must sign, is somebody else's: what it can make the others sign, and hold up."""

import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from support.besieged import site
from support.machine import Machine
from support.team import Team, pin, signer
from support.trusts import OTHER_HEAD, begun, edited
from wire.daemon import proposing, rootkeys
from wire.daemon.proposing import _with_all
from wire.daemon.rootkeys import remember, signed_for
from wire.errors import TrustError
from wire.keys import proposals
from wire.keys.trust import Chain, sign_document
from wire.protocol.encoding import Signer
from wire.store.files import utc_now

FOR_EVER = "9999-12-31T23:59:59.999Z"


@pytest.fixture
def three(team: Team) -> Team:
    """The roots of mac, spark and lee, of which two must sign."""
    team.two_of_three()
    for machine in team.machines:
        machine.wire("sync")
    return team


def chain_of(team: Team) -> Chain:
    return site(team.mac).trust(pin(team.mac))


def next_version(chain: Chain, edit: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a next version that an edit makes of the newest one."""

    def whole(fields: dict[str, Any]) -> None:
        newest = chain.newest
        fields.update(version=newest.version + 1, prev=newest.hash, wire=chain.wire, nonce=None, created=utc_now())
        edit(fields)

    return edited(chain.newest.raw, whole)


def lee_offers(team: Team, document: bytes, *, created: str = "", expires: str = FOR_EVER, signs: bool = True) -> str:
    """Let lee's root offer a document, by hand; return its proposal's id."""
    root, chain = signer(team.machines[2], kind="root"), chain_of(team)
    raw = proposals.make(root, chain, document, note="", created=created or utc_now(), expires=expires)
    vandal = team.vandal(f"vandal-{len(list(team.folder.iterdir()))}")
    name = proposals.file_name(root.key_id)
    vandal.write(f"_coordination/requests/{name}", raw + (sign_document(document, root) if signs else b""))
    vandal.commit()
    vandal.push()
    return proposals.parse(raw, wire=chain.wire, file_name=name).id


def document_of(team: Team, machine: Machine) -> bytes:
    name = proposals.file_name(signer(machine, kind="root").key_id)
    raw = team.remote.show(f"_coordination/requests/{name}")
    return proposals.parse(raw, wire=chain_of(team).wire, file_name=name).document


def test_what_one_of_three_roots_can_do(three: Team) -> None:
    three.spark.send("mac", "one")
    three.settle()
    what_is_hidden_is_warned_about(three)
    for expires in ("2020-01-02T00:00:00.000Z", FOR_EVER):
        the_same_document_takes_no_signature_away(three, expires)
    what_is_urgent_goes_past_what_it_proposes(three)
    it_is_taken_off_whatever_it_proposes(three)
    three.sync_and_check()


def what_is_hidden_is_warned_about(team: Team) -> None:
    def bent(fields: dict[str, Any]) -> None:
        fields["groups"]["rnac"] = {"status": "active", "members": ["lee"]}
        key = fields["agents"]["spark"]["keys"][0]
        key.update(status="retired", positions={"spark/mac": [1, OTHER_HEAD], "spark/lee": [7, OTHER_HEAD]})
        sam, lea = (signer(machine, kind="root").key_id for machine in team.machines[1:])
        fields["policy"]["roots"] = {sam: "sam", lea: "sarn"}

    lee_offers(team, next_version(chain_of(team), bent))
    (seen,) = team.mac.jsonl("trust", "pending")
    warned = "\n".join(seen["warnings"])
    assert "the name rnac looks like mac" in warned
    assert "the root's name sarn looks like that of another root, sam" in warned
    assert "spark/mac: the line 1 at which a key ends is not the one that was accepted here" in warned
    assert "spark/lee: line 7, at which a key ends, is not here" in warned
    assert f"spark/mac/1 ({OTHER_HEAD[:16]})" in json.dumps(seen["changes"])
    vandal = team.vandal("tidy")
    vandal.remove(f"_coordination/requests/{proposals.file_name(signer(team.machines[2], kind='root').key_id)}")
    vandal.commit()
    vandal.push()


def the_same_document_takes_no_signature_away(team: Team, expires: str) -> None:
    """It names an older time, so that it comes first, and carries no signature."""
    waits = team.mac.json("group", "set", f"group-{chain_of(team).newest.version}", "mac", "spark")
    document = document_of(team, team.mac)
    same = lee_offers(team, document, created="2020-01-01T00:00:00.000Z", expires=expires, signs=False)
    assert same == waits["proposal"]["id"]
    assert "proposal" not in team.spark.json("trust", "sign", same, "--yes")
    team.mac.wire("sync")
    assert chain_of(team).newest.raw == document


def what_is_urgent_goes_past_what_it_proposes(team: Team) -> None:
    """A stolen key is revoked, and its owner enrolled again, each by the command that the refusal names."""
    for number, command in enumerate((("trust", "revoke", "lee", "--reason", "stolen", "--yes"), ("trust", "approve"))):
        if number:
            asked = team.machines[2].json("keys", "rotate")
            team.machines[2].wire("sync", check=False)
            command = (*command, "lee", asked["fingerprint"])
        lee_offers(team, next_version(chain_of(team), lambda f: f["policy"].update(x=f"held {len(f['agents'])}")))
        refused = team.mac.wire(*command, "--json", check=False).json()
        assert (refused["reason"], f"`wire {' '.join(command[:2])}`" in refused["next_step"]) == ("proposal-open", True)
        assert "--beside" in refused["next_step"]
        waits = team.mac.json(*command, "--beside")["proposal"]
        assert "proposal" not in team.spark.json("trust", "sign", waits["id"], "--yes")
        for machine in team.machines:
            machine.wire("sync", check=False)


def it_is_taken_off_whatever_it_proposes(team: Team) -> None:
    lee_offers(team, next_version(chain_of(team), lambda f: f["policy"].update(x=1)))
    refused = team.mac.wire("trust", "root", "remove", "lea", "--yes", "--json", check=False).json()
    assert refused["reason"] == "proposal-open"
    assert "--beside" in refused["next_step"]
    waits = team.mac.json("trust", "root", "remove", "lea", "--beside", "--yes")["proposal"]
    assert "proposal" not in team.spark.json("trust", "sign", waits["id"], "--yes")
    team.mac.wire("sync")
    # What it offers now is nobody's proposal any more.
    lee_offers(team, next_version(chain_of(team), lambda f: f["policy"].update(x=2)))
    assert team.mac.jsonl("trust", "pending") == []


def test_a_proposal_with_no_room_for_signatures_is_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two roots made it so by hand: the one is signed, and the other is as large as a proposal may be.
    a, b = Signer(b"a" * 32), Signer(b"b" * 32)
    chain = begun((a, b), threshold=2)
    document = next_version(chain, lambda f: f["policy"].update(x=1))
    raw = proposals.make(a, chain, document, note="", created="2026-01-01T00:00:00.000Z", expires=FOR_EVER)
    one = proposals.weigh(
        chain, proposals.parse(raw, wire=chain.wire, file_name=proposals.file_name(a.key_id)), utc_now()
    )
    lines = {b.key_id: sign_document(document, b)}
    assert _with_all(chain, one, lines, utc_now()).signed == lines
    monkeypatch.setattr(proposing, "PROPOSAL_MAX", len(raw))
    assert _with_all(chain, one, lines, utc_now()) == one


def test_two_processes_never_write_down_two_for_one_number(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    # The daemon enrols somebody while a person changes the trust: both looked, and found that nothing was signed.
    here, root, base = site(team.mac), signer(team.mac, kind="root"), chain_of(team).newest
    both_looked = threading.Barrier(2)

    def look(*args: Any) -> tuple[bytes, bytes] | None:
        found = signed_for(*args)
        with contextlib.suppress(threading.BrokenBarrierError):
            both_looked.wait(0.3)
        return found

    monkeypatch.setattr(rootkeys, "signed_for", look)
    refused: list[str] = []

    def write(raw: bytes) -> None:
        try:
            remember(here, base, raw, sign_document(raw, root))
        except TrustError as error:
            refused.append(error.reason)

    threads = [threading.Thread(target=write, args=(raw,)) for raw in (b"one", b"two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == ["already-signed"]
    kept = signed_for(here, base)
    assert kept is not None
    assert kept[1] == sign_document(kept[0], root)
