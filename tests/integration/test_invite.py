"""Joining with a code: one line for one person, and what a host, a thief and a mistake make of it."""

import json
import os
import subprocess
import time

import pytest

from support.team import incidents, pin, state
from support.waiting import eventually
from wire.keys import invitations


def invite(team, name="lee", *args):
    return team.mac.json("invite", name, "--no-wait", *args)["code"]


def altered(code, **changes):
    return invitations.encode(invitations.parse(code)._replace(**changes))


def test_two_commands_one_on_each_side(team, machines):
    lee = machines("lee")
    waiting = team.mac.spawn("invite", "lee", "--json")
    code = json.loads(waiting.stdout.readline())["code"]
    joined = lee.wire("join", "-", input=f"  {code[:40]}\n{code[40:]}\n").stdout
    enrolled = json.loads(waiting.communicate(timeout=60)[0])
    assert waiting.returncode == 0
    assert enrolled["fingerprint"] in joined
    assert "commit hook" in joined
    assert (lee.clone() / ".git" / "hooks" / "pre-commit").exists()
    lee.send("mac", "hello")
    team.machines.append(lee)
    team.settle()
    assert "hello" in team.mac.wire("tail").stdout
    assert not team.remote.git("ls-tree", "-r", "--name-only", team.remote.branch).count(b"requests/")
    team.check()


def test_a_lost_code_is_printed_again_and_a_used_one_is_not(team, machines):
    code = invite(team)
    again = team.mac.json("invite", "lee", "--no-wait")
    assert (again["code"], again["again"]) == (code, True)
    lee = machines("lee")
    lee.wire("join", code)
    lee.wire("join", code)
    assert team.mac.jsonl("invite", "lee")[-1]["name"] == "lee"
    assert lee.json("join", code)["approved"]
    refused = team.mac.wire("invite", "lee", "--no-wait", check=False)
    assert (refused.status, "belongs to an agent" in refused.stderr) == (2, True)


def test_a_code_that_was_given_out_stays_good_or_is_called_back_aloud(team, machines):
    code = invite(team)
    team.mac.wire("group", "set", "crew", "mac")
    assert invite(team) == code, "the trust went on, and what somebody has in hand is good"
    joined = machines("lee").json("join", code)
    assert team.mac.jsonl("invite", "lee")[-1]["fingerprint"] == joined["fingerprint"]
    first = team.mac.json("invite", "zoe", "--no-wait")
    second = team.mac.json("invite", "zoe", "--no-wait", "--role", "human")
    assert (second["code"] != first["code"], first.get("replaced"), second["replaced"]) == (True, None, True)
    assert "before is worthless now" in team.mac.wire("invite", "zoe", "--no-wait").stderr
    machines("zoe").json("join", second["code"])
    assert [one["name"] for one in team.mac.jsonl("trust", "requests")] == ["zoe"], "and it came with the old one"
    assert not team.mac.json("trust", "show")["agents"].get("zoe")


def test_only_the_owner_can_read_what_was_given_out(team):
    code = invite(team)
    folder = state(team.mac) / "invitations"
    assert oct(os.stat(folder).st_mode & 0o777) == "0o700"
    assert oct(os.stat(folder / "lee.json").st_mode & 0o777) == "0o600"
    secret = invitations.parse(code).secret.hex()
    for args in (("status", "--json"), ("trust", "show", "--json"), ("trust", "requests", "--json")):
        assert secret not in team.mac.wire(*args, check=False).stdout
    team.mac.wire("sync")
    assert secret.encode() not in b"".join(file.read_bytes() for file in team.remote.path.rglob("*") if file.is_file())


DAMAGE = {
    "cut": (lambda code: code[:-20], "not whole"),
    "a letter": (lambda code: code[:50] + ("A" if code[50] != "A" else "B") + code[51:], "not whole"),
    "nothing": (lambda code: invitations.PREFIX, "not whole"),
    "expired": (lambda code: altered(code, expires=int(time.time()) - 1), "was good until"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_or_late_code_makes_nothing(team, machines, damage):
    change, said = DAMAGE[damage]
    lee = machines("lee")
    refused = lee.wire("join", change(invite(team)), check=False)
    assert (refused.status, said in refused.stderr) == (2, True), str(refused)
    assert invitations.parse(invite(team)).secret.hex() not in refused.stderr
    assert not lee.wire_home.exists() or not any(lee.wire_home.rglob("*.json"))


def test_a_code_and_its_parts_do_not_mix(team, machines):
    lee = machines("lee")
    assert lee.wire("join", invite(team), "--as", "lee", check=False).status == 2
    assert lee.wire("join", team.remote.url, check=False).status == 2


def test_another_checkpoint_or_a_missing_tip_is_refused(team, machines):
    code = invite(team)
    other = altered(code, checkpoint="1:SHA256:" + "A" * 43)
    refused = machines("lee").wire("join", other, check=False)
    assert (refused.status, "checkpoint" in refused.stderr) == (5, True)
    first = team.remote.git("rev-list", "--max-parents=0", team.remote.branch).split()[0].decode()
    ahead = altered(code, tip="ab" * 20)
    refused = machines("ada").wire("join", ahead, check=False)
    assert (refused.status, "does not have the commit" in refused.stderr) == (5, True)
    assert machines("eve").wire("join", altered(code, tip=first)).status == 0


def test_who_guesses_or_replays_is_not_enrolled(team, machines):
    """A request for the name without the secret, one with another's, one of another role: none is let in."""
    code = invite(team)
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    machines("guess").wire("join", team.remote.url, "--as", "lee", "--trust", checkpoint)
    machines("other").wire("join", altered(code, secret=bytes(invitations.SECRET_BYTES)))
    machines("human").wire("join", altered(code, role="human"))
    mac = team.mac.spawn("invite", "lee")
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            mac.wait(4)
    finally:
        mac.kill()
    assert "lee" not in team.mac.json("trust", "show")["agents"]
    machines("lee").wire("join", code)
    assert team.mac.jsonl("invite", "lee")[-1]["name"] == "lee"


def test_two_who_have_the_code_are_told_and_none_is_enrolled(team, machines):
    code = invite(team)
    machines("one").wire("join", code)
    machines("two").wire("join", code)
    refused = team.mac.wire("invite", "lee", check=False)
    assert (refused.status, "somebody else had it" in refused.stderr) == (5, True)
    assert "lee" not in team.mac.json("trust", "show")["agents"]
    (incident,) = incidents(team.mac, "INVITED_TWICE")
    assert len(incident["evidence"]["fingerprints"]) == 2


def test_who_comes_with_a_used_code_is_told_of(team, machines):
    code = invite(team)
    lee, thief = machines("lee"), machines("thief")
    joined = lee.json("join", code)
    team.mac.wire("invite", "lee")
    refused = thief.wire("join", code, check=False)
    assert refused.status == 2
    assert "belongs to another key" in refused.stderr
    # A thief with tools of its own pushes the request all the same.
    vandal = team.vandal()
    raced = machines("raced")
    held = json.loads((state(team.mac) / "invitations" / "lee.json").read_text())
    assert held["taken_by"]
    request = stolen_request(raced, code, pin(team.mac).wire)
    vandal.write(f"_coordination/requests/{request[0]}", request[1])
    vandal.commit()
    vandal.push()
    team.mac.wire("trust", "requests")
    (incident,) = incidents(team.mac, "INVITED_TWICE")
    assert joined["fingerprint"] in incident["evidence"]["fingerprints"]
    assert team.mac.json("trust", "show")["agents"]["lee"]["keys"][0]["fingerprint"] == joined["fingerprint"]


def stolen_request(machine, code, wire):
    from nacl.signing import SigningKey

    from wire.keys import requests
    from wire.protocol.encoding import Signer
    from wire.store.files import utc_now

    signer = Signer(bytes(SigningKey.generate()))
    proof = invitations.mac(invitations.parse(code), signer.public)
    raw = requests.make(signer, wire=wire, name="lee", role="agent", created=utc_now(), mac=proof)
    return requests.file_name("lee", signer.key_id), raw


def test_a_name_that_looks_like_another_is_warned_about(team, machines):
    joined = machines("nova").json(
        "join", team.remote.url, "--as", "nova", "--trust", team.mac.json("trust", "show")["checkpoint"]
    )
    team.mac.wire("trust", "approve", "nova", "--fingerprint", joined["fingerprint"])
    assert "looks like 'nova'" in team.mac.wire("invite", "n0va", "--no-wait").stderr
    assert "looks like" not in team.mac.wire("invite", "lee", "--no-wait").stderr


def test_only_a_root_can_invite(team):
    refused = team.spark.wire("invite", "lee", "--no-wait", check=False)
    assert refused.status == 5
    assert team.mac.wire("invite", "lee", "--no-wait", "--ttl", "0s", check=False).status == 2
    assert team.mac.wire("invite", "lee", "--no-wait", "--ttl", "soon", check=False).status == 2


def test_a_daemon_publishes_what_waited_once_the_newcomer_is_in(team, machines):
    lee = machines("lee")
    lee.wire("join", invite(team))
    lee.start_daemon()
    lee.send("mac", "sent before anybody knew me")
    team.mac.wire("invite", "lee")
    team.machines.append(lee)
    eventually(lambda: pin(lee).remote_seq.get("lee/mac") == 1, timeout=30, what="its line at the remote")
