"""Several roots: changes wait for signatures, nobody signs two for one number, and whoever signs last publishes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.besieged import site
from support.gitcmd import GitFailed
from support.machine import Machine
from support.team import Team, incidents, pin, signer, state
from wire.keys import proposals
from wire.keys.trust import successor
from wire.protocol.encoding import Signer
from wire.store.files import utc_now


def second_root(team: Team, *, threshold: int = 2) -> None:
    """Let spark's person, sam, be a root beside mac's, and let both be needed."""
    line = team.spark.json("keys", "root", "new", "sam")["line"]
    team.mac.wire("trust", "root", "add", "sam", line, "--yes")
    if threshold == 2:
        waits = team.mac.json("trust", "root", "threshold", "2", "--yes")["proposal"]
        done = team.spark.json("trust", "sign", waits["id"], "--yes")
        assert "proposal" not in done
    team.mac.wire("sync")


def asking(team: Team, name: str = "zoe") -> tuple[Machine, str]:
    """Let a newcomer ask to join."""
    newcomer = team.new_machine(name)
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    joined = newcomer.json("join", team.remote.url, "--as", name, "--trust", checkpoint)
    return newcomer, joined["fingerprint"]


def names(machine: Machine) -> set[str]:
    return set(machine.json("trust", "show")["agents"])


def requests_there(team: Team) -> list[str]:
    return [path for path in team.remote.files() if path.startswith("_coordination/requests/")]


def failed(machine: Machine, *args: str) -> dict[str, Any]:
    result = machine.wire(*args, "--json", check=False)
    assert result.status not in (0, 1), str(result)
    answer: dict[str, Any] = result.json()
    return answer


def test_a_second_root_and_a_threshold(team: Team) -> None:
    line = team.spark.json("keys", "root", "new", "sam")
    assert line["line"] not in (state(team.spark) / "pin.json").read_text()
    # Asked again, it is the same key and the same line.
    again = team.spark.json("keys", "root", "new", "sam")
    assert (again["line"], again["again"], again["counts"]) == (line["line"], True, False)
    cut = failed(team.mac, "trust", "root", "add", "sam", line["line"][:-1], "--yes")
    assert (cut["reason"], "copy all of it" in cut["error"]) == ("root-line-invalid", True)
    shown = team.mac.wire("trust", "root", "add", "sam", line["line"], "--yes")
    assert f"adds the root sam ({line['fingerprint']})" in shown.stdout
    held = team.mac.json("trust", "show")
    (first,) = held["root_names"].keys() - {line["fingerprint"]}
    assert held["root_names"] == {first: "mac", line["fingerprint"]: "sam"}, "who began the wire gave its root a name"
    assert f"  {first} mac\n" in team.spark.wire("trust", "show").stdout
    # One root is still enough, on either machine, so that a group is in force at once.
    team.spark.wire("group", "set", "all-of-us", "mac", "spark")
    # Both have to sign from the version on which says so.
    waits = team.mac.json("trust", "root", "threshold", "2", "--yes")
    assert waits["proposal"]["lacking"] == {"in_force": 0, "new": 1}
    assert (waits["proposal"]["by"], waits["proposal"]["signed"]) == (f"mac ({first})", [f"mac ({first})"])
    assert waits["proposal"]["warnings"]
    assert team.mac.json("trust", "show")["threshold"] == 1
    team.spark.wire("trust", "sign", waits["proposal"]["id"], "--yes")
    team.settle()
    assert [machine.json("trust", "show")["threshold"] for machine in team.machines] == [2, 2]
    assert requests_there(team) == []
    team.check()


def test_an_approval_waits_for_the_second_root(team: Team) -> None:
    second_root(team)
    zoe, fingerprint = asking(team)
    zoe.send("mac", "hello, from before the approval")
    waits = team.mac.json("trust", "approve", "zoe", "--fingerprint", fingerprint)["proposal"]
    assert waits["changes"] == [
        {"change": "agent-added", "name": "zoe", "text": f"adds zoe (agent) with the key {fingerprint}"}
    ]
    assert (waits["state"], waits["mine"], len(waits["signed"])) == ("open", True, 1)
    assert "zoe" not in names(team.mac)
    # What waits is seen on every machine, and who is no root cannot sign it.
    (seen,) = team.spark.jsonl("trust", "pending")
    assert (seen["id"], seen["mine"], seen["by"]) == (waits["id"], False, waits["by"])
    zoe.wire("sync")
    refused = failed(zoe, "trust", "sign", waits["id"], "--yes")
    assert (refused["reason"], "a machine that holds one" in refused["next_step"]) == ("key-missing", True)
    # The same approval by the other root is the missing signature.
    done = team.spark.json("trust", "approve", "zoe", "--fingerprint", fingerprint)
    assert "proposal" not in done
    team.machines.append(zoe)
    team.settle()
    assert pin(team.mac).accepted["zoe/mac"].seq == 1
    assert requests_there(team) == []
    assert team.mac.wire("trust", "pending").stdout == "nothing waits for signatures\n"
    team.check()


def test_an_invitation_becomes_a_proposal(team: Team) -> None:
    second_root(team)
    code = team.mac.json("invite", "zoe", "--no-wait")["code"]
    zoe = team.new_machine("zoe")
    zoe.json("join", code)
    waits = team.mac.json("invite", "zoe")["proposal"]
    # Asked again it is the same proposal, and the code is not used up by it.
    assert team.mac.json("invite", "zoe")["proposal"]["id"] == waits["id"]
    team.spark.wire("trust", "sign", waits["id"], "--yes")
    assert "proposal" not in team.mac.json("invite", "zoe", "--no-wait")
    team.machines.append(zoe)
    team.settle()
    assert "zoe" in names(zoe)
    assert not incidents(team.mac)
    team.check()


def test_keys_are_changed_and_revoked_by_two(team: Team) -> None:
    second_root(team)
    team.spark.send("mac", "one")
    team.settle()
    # A planned change, asked for on spark and approved by mac, who needs spark's root as well.
    asked = team.spark.json("keys", "rotate")
    assert asked["state"] == "asked"
    waits = team.mac.json("trust", "approve", "spark", "--fingerprint", asked["fingerprint"])["proposal"]
    assert [change["change"] for change in waits["changes"]] == ["key-retired", "key-added"]
    team.spark.wire("trust", "sign", waits["id"], "--yes")
    team.spark.send("mac", "two")
    team.settle()
    assert pin(team.mac).accepted["spark/mac"].seq == 2
    # A revocation says what it would cut, to whoever is to sign it.
    waits = team.mac.json("trust", "revoke", "spark", "--reason", "stolen", "--at", "spark/mac/1", "--yes")["proposal"]
    (seen,) = team.spark.jsonl("trust", "pending")
    assert seen["warnings"] == ["spark/mac: 1 message(s) after line 1 count no longer"]
    assert pin(team.mac).accepted["spark/mac"].seq == 2
    team.spark.wire("trust", "sign", waits["id"], "--yes")
    team.mac.wire("sync", check=False)
    assert pin(team.mac).accepted["spark/mac"].seq == 1


def test_nobody_signs_two_for_one_number(team: Team) -> None:
    second_root(team)
    first = team.mac.json("group", "set", "review", "mac", "spark")["proposal"]
    # Another change waits until the open one is decided, for both of them; nothing is signed for it.
    for machine in (team.mac, team.spark):
        refused = failed(machine, "group", "set", "ops", "mac")
        assert refused["reason"] == ("already-signed" if machine is team.mac else "proposal-open")
    assert first["hash"] in failed(team.mac, "group", "set", "ops", "mac")["error"]
    # It survives whatever happens at the remote: the proposal is gone, and the root still signs nothing else.
    vandal = team.vandal()
    (file,) = requests_there(team)
    vandal.remove(file)
    vandal.commit()
    vandal.push()
    refused = failed(team.mac, "group", "set", "ops", "mac")
    assert refused["reason"] == "already-signed"
    assert refused["details"]["signed"] == first["hash"]
    assert refused["details"]["refused"] != first["hash"]
    assert first["hash"] in team.mac.wire("trust", "pending").stderr
    # The other root may go on, since nobody else does; this one signs neither.
    other = team.spark.json("group", "set", "ops", "mac")["proposal"]
    refused = failed(team.mac, "trust", "sign", other["id"], "--yes")
    assert refused["details"] == {"version": first["version"], "signed": first["hash"], "refused": other["hash"]}
    # What was signed comes back as it was.
    assert team.mac.json("trust", "propose", "--again")["proposal"]["hash"] == first["hash"]
    assert failed(team.spark, "trust", "sign", first["id"], "--yes")["reason"] == "already-signed"
    assert failed(team.spark, "trust", "sign", first["id"][:8], "--yes")["reason"] == "no-proposal"


def test_a_restored_backup_signs_no_second_one(team: Team) -> None:
    # The state of the root's machine is older than its signature, which still stands at the remote.
    second_root(team)
    first = team.mac.json("group", "set", "review", "mac", "spark")["proposal"]
    shutil.rmtree(state(team.mac) / "signed")
    other = json.loads(team.remote.show("_coordination/trust.json"))
    other["policy"] = {**other["policy"], "encrypt": "required"}
    edited = team.spark.home / "edited.json"
    edited.write_text(json.dumps(other))
    waits = team.spark.json("trust", "propose", edited, "--beside", "--yes")["proposal"]
    refused = failed(team.mac, "trust", "sign", waits["id"], "--yes")
    assert (refused["reason"], refused["details"]["signed"]) == ("already-signed", first["hash"])


def test_an_edited_document(team: Team) -> None:
    # Where one root is enough, it is in force at once; several changes in one version.
    edited = json.loads(team.remote.show("_coordination/trust.json"))
    edited["policy"] |= {"encrypt": "required"}
    edited["groups"] = {"review": {"status": "active", "members": ["mac"]}}
    done = team.mac.json("trust", "propose", "-", "--yes", input=json.dumps(edited))
    assert [change["change"] for change in done["changes"]] == ["group-added", "policy"]
    assert "proposal" not in done
    assert failed(team.mac, "trust", "propose", write(team.mac, edited), "--yes")["reason"] == "no-change"
    edited["agents"].pop("spark")
    assert failed(team.mac, "trust", "propose", write(team.mac, edited), "--yes")["reason"] == "name-vanished"
    assert failed(team.mac, "trust", "propose", write(team.mac, "x"), "--yes")["reason"] == "bad-document"
    team.sync_and_check()


def write(machine: Machine, document: object) -> Path:
    file = machine.home / "document.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return file


def test_removing_roots(team: Team) -> None:
    second_root(team)
    called = team.mac.json("trust", "show")["root_names"]
    (fingerprint,) = [one for one, name in called.items() if name == "sam"]
    refused = failed(team.mac, "trust", "root", "remove", "sam", "--yes")
    assert (refused["reason"], refused["next_step"]) == ("threshold-invalid", "wire trust root threshold 1")
    assert failed(team.mac, "trust", "root", "threshold", "3", "--yes")["reason"] == "threshold-invalid"
    assert failed(team.mac, "trust", "root", "remove", "nobody", "--yes")["reason"] == "root-unknown"
    waits = team.mac.json("trust", "root", "threshold", "1", "--yes")["proposal"]
    team.spark.wire("trust", "sign", waits["id"], "--yes")
    # Oneself: said, and not without the one who stays.
    waits = team.spark.json("trust", "root", "remove", fingerprint, "--yes")["proposal"]
    assert waits["warnings"] == ["it removes this machine's own root: nothing more can be signed here"]
    team.mac.wire("trust", "sign", waits["id"], "--yes")
    assert failed(team.spark, "group", "set", "ops", "mac")["reason"] == "not-a-root"
    assert failed(team.mac, "trust", "root", "remove", team.mac.json("trust", "show")["roots"][0], "--yes")[
        "reason"
    ] == ("threshold-invalid")
    team.sync_and_check()


def test_an_expired_proposal(team: Team) -> None:
    second_root(team)
    chain, key = site(team.mac).trust(pin(team.mac)), signer(team.mac, kind="root")
    raw = team.mac.json("group", "set", "review", "mac")["proposal"]
    (file,) = requests_there(team)
    there = proposals.parse(team.remote.show(file), wire=chain.wire, file_name=file.rpartition("/")[2])
    old = proposals.make(
        key, chain, there.document, note="", created="2020-01-01T00:00:00.000Z", expires="2020-01-02T00:00:00.000Z"
    )
    vandal = team.vandal()
    vandal.write(file, old + there.signatures)
    vandal.commit()
    vandal.push()
    assert failed(team.spark, "trust", "sign", raw["id"], "--yes")["reason"] == "proposal-expired"
    (shown,) = team.spark.jsonl("trust", "pending")
    assert shown["state"] == "expired"
    # The next proposal of anybody takes it away, and who signed it can offer it again.
    edited = json.loads(team.remote.show("_coordination/trust.json"))
    edited["policy"] = {**edited["policy"], "x": 1}
    team.spark.json("trust", "propose", write(team.spark, edited), "--yes")
    assert len(requests_there(team)) == 1
    assert file not in requests_there(team)
    assert team.mac.json("trust", "propose", "--again")["proposal"]["hash"] == there.hash


def test_a_flood_of_proposals(team: Team) -> None:
    # Whoever may push writes a thousand: none of them is read, none is shown, and the next change takes them away.
    second_root(team)
    chain = site(team.mac).trust(pin(team.mac))
    stranger = Signer(b"9" * 32)
    raw = proposals.make(
        stranger, chain, trust_next(team), note="x", created=utc_now(), expires="2099-01-01T00:00:00.000Z"
    )
    vandal = team.vandal()
    for number in range(1_000):
        vandal.write(f"_coordination/requests/trust.{number:032x}.json", raw)
    # One in the place of a root's, by somebody else; and one that is nothing.
    mine, other = (signer(machine, kind="root").key_id for machine in (team.mac, team.spark))
    vandal.write(f"_coordination/requests/trust.{mine}.json", raw.replace(stranger.key_id.encode(), mine.encode()))
    vandal.write(f"_coordination/requests/trust.{other}.json", b"{}\n")
    vandal.commit()
    vandal.push()
    assert team.mac.jsonl("trust", "pending") == []
    assert not incidents(team.mac)
    waits = team.mac.json("group", "set", "review", "mac")["proposal"]
    assert requests_there(team) == [f"_coordination/requests/trust.{mine}.json"]
    team.spark.wire("trust", "sign", waits["id"], "--yes")
    assert requests_there(team) == []
    team.sync_and_check()


def trust_next(team: Team) -> bytes:
    chain = site(team.mac).trust(pin(team.mac))
    return successor(chain.newest, chain.wire, utc_now())


def test_hooks_know_proposals(team: Team) -> None:
    second_root(team)
    team.mac.wire("hooks", "install", "pre-receive", "--repo", str(team.remote.path))
    waits = team.mac.json("group", "set", "review", "mac")["proposal"]
    (file,) = requests_there(team)
    good = team.remote.show(file)
    vandal = team.vandal()
    stranger = Signer(b"9" * 32)
    for path, data in {
        file: good.replace(b'"v":1', b'"v":2'),
        file.replace(signer(team.mac, kind="root").key_id, stranger.key_id): proposals.make(
            stranger, site(team.mac).trust(pin(team.mac)), trust_next(team), note="", created=utc_now(),
            expires="2099-01-01T00:00:00.000Z",
        ),
    }.items():  # fmt: skip
        vandal.write(path, data)
        vandal.commit()
        with pytest.raises(GitFailed, match="REQUEST"):
            vandal.push()
        vandal.sync()
    team.spark.wire("trust", "sign", waits["id"], "--yes")
    team.sync_and_check()


def test_two_sign_at_once(team: Team) -> None:
    # Two of three must sign. Both that are missing sign at the same moment: one publishes, and both learn that it is
    # in force.
    lee = team.two_of_three()
    waits = team.mac.json("group", "set", "review", "mac")["proposal"]
    signing = [machine.spawn("trust", "sign", waits["id"], "--yes", "--json") for machine in (team.spark, lee)]
    told = [one.communicate(timeout=60) for one in signing]
    assert [one.returncode for one in signing] == [0, 0], told
    assert {json.loads(out)["checkpoint"].partition(":")[0] for out, _ in told} == {str(waits["version"])}
    # So does whoever comes when it is all done.
    late = team.mac.wire("trust", "sign", waits["id"], "--yes").stdout
    assert late.startswith(f"in force; checkpoint {waits['version']}:SHA256:")
    team.sync_and_check()
    assert requests_there(team) == []
