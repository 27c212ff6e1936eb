"""Requests to join: what they give before anybody approves them (nothing), what many cost, and what tidies them."""

import json
import re
import time
from pathlib import Path

import pytest

from support import gitcmd
from support.mcp_client import harness
from support.sizes import size
from support.team import bodies, incidents, pin, state, write
from support.waiting import eventually
from wire.daemon import asked
from wire.hooks import serverhook
from wire.hooks.prereceive import Rules
from wire.keys import invitations, requests, rotations
from wire.protocol.chain import Position
from wire.protocol.encoding import Signer
from wire.store.files import utc_now

FOLDER = "_coordination/requests"
FLOOD = size(1_500, 5_000, "requests of a flood")


def key(number: int) -> Signer:
    return Signer(number.to_bytes(32, "big"))


def request(team, name: str, signer: Signer, code: str = "", created: str = "") -> tuple[str, bytes]:
    """Return path and bytes of a request that somebody with tools of his own makes."""
    mac = invitations.mac(invitations.parse(code), signer.public) if code else None
    raw = requests.make(signer, wire=pin(team.mac).wire, name=name, role="agent", created=created or utc_now(), mac=mac)
    return f"{FOLDER}/{requests.file_name(name, signer.key_id)}", raw


def push(team, *files: tuple[str, bytes], name: str = "vera") -> None:
    """Let somebody who may push put files there, in one commit."""
    out = [f"commit refs/heads/{team.remote.branch}\n".encode()]
    out.append(b"committer Vera <vera@example.invalid> %d +0000\ndata 1\nx\n" % time.time())
    out.append(f"from refs/heads/{team.remote.branch}^0\n".encode())
    for path, raw in files:
        out.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(raw), raw))
    team.remote.git("fast-import", "--quiet", "--force", input=b"".join(out))


def there(team) -> list[str]:
    return [path for path in team.remote.files() if path.startswith(FOLDER)]


def names(machine) -> list[str]:
    return [one["name"] for one in machine.jsonl("trust", "requests") if "name" in one]


# A request gives nothing


def test_no_surface_shows_a_newcomer_before_it_is_approved(team, tmp_path):
    """eve asks, and pushes lines to everybody, signed by the key that asks: nothing is seen, and nobody answers."""
    eve = key(1)
    start = pin(team.mac).wire
    lines = []
    for to in ("spark", "mac", "all"):
        begin = Position.start(start, f"eve/{to}")
        lines.append((f"_coordination/eve/{to}/000001.jsonl", b"".join(
            write(team.mac, f"eve/{to}", "let me in, says eve", by=eve, after=begin)
        )))  # fmt: skip
    config = team.spark.wire_home / "config.toml"
    seen, drop = tmp_path / "seen", tmp_path / "drop"
    command = json.dumps(["/bin/sh", "-c", f"env >> {seen}"])
    with config.open("a") as file:
        file.write(f'\n[wire.drop]\nspark = "{drop}"\n\n[wire.notify.spark]\ncommand = {command}\n')
    push(team, request(team, "eve", eve), *lines)
    before = team.remote.tip()
    team.spark.start_daemon()
    team.mac.send("spark", "a word of mac's")
    team.mac.wire("sync", check=False)
    eventually(lambda: seen.exists() and b"mac/spark/1" in seen.read_bytes(), what="mac's message is told of")
    page = drop / "inbox" / "mac_spark_1.md"
    eventually(page.exists, what="and dropped")
    shown = [seen.read_text(), *(path.read_text() for path in drop.rglob("*") if path.is_file())]
    for args in (
        ("inbox", "--full"), ("tail", "--peek", "--all"), ("log",), ("search", "let"), ("summary",), ("agents",),
        ("status",), ("thread", "mac/spark/1"), ("wait", "--timeout", "0", "--peek"), ("sent",), ("trust", "show"),
    ):  # fmt: skip
        for form in ((), ("--json",)):
            result = team.spark.wire(*args, *form, check=False)
            assert "let me in" not in result.stdout + result.stderr, args
            # That a folder of nobody's stands there is an incident, and its evidence says whose it would be.
            shown.append(re.sub(r'"names": ?\["eve"\]', "", result.stdout))
    session = json.dumps({"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(team.spark.home)})
    hooked = team.spark.wire("hook", "claude-code", "session-start", input=session, check=False)
    assert "mac/spark/1" in hooked.stdout
    shown.append(hooked.stdout)
    with harness(team.spark) as spark:
        shown += [json.dumps(spark.data("inbox")), spark.call("read"), json.dumps(spark.data("status"))]
    assert not [one for one in shown if re.search(r"\beve\b", one)], "its name is nowhere"
    assert not list(drop.rglob("*eve*"))
    assert team.spark.wire("show", "eve/spark/1", check=False).status != 0
    team.spark.stop_daemon()
    # Nobody answered: no line to eve, no presence of eve, and what the branch got is mac's and spark's own.
    assert not [path for path in team.remote.files() if "/eve/" in path and not path.startswith("_coordination/eve/")]
    assert "presence/eve" not in gitcmd.line(team.remote.path, "for-each-ref", "--format=%(refname)")
    changed = gitcmd.line(team.remote.path, "log", "--name-only", "--format=", f"{before}..{team.remote.branch}")
    assert {path.split("/")[1] for path in changed.split("\n") if path} <= {"mac", "spark"}
    warned = team.spark.wire("send", "eve", "who are you?", check=False)
    assert "asks to join and is not approved yet" in warned.stderr
    # Once it is approved, all of it is there.
    team.mac.wire("trust", "approve", "eve", "--fingerprint", requests.parse(
        request(team, "eve", eve)[1], wire=start, file_name=requests.file_name("eve", eve.key_id)
    ).fingerprint)  # fmt: skip
    team.spark.wire("sync", check=False)
    assert "let me in, says eve" in bodies(team.spark.wire("tail", "--peek", "--json", "--all", check=False))


# Many of them


def test_a_flood_of_requests_costs_little_and_hides_nobody(team, machines):
    """Thousands ask, for many names and for one; who was invited, and whom a person names, is found all the same."""
    team.settle()
    code = team.mac.json("invite", "lee", "--no-wait")["code"]
    team.mac.wire("sync")
    begin = time.monotonic()
    team.spark.wire("sync")
    plain = time.monotonic() - begin
    flood = [request(team, f"z{number % 3_000}", key(number + 10)) for number in range(FLOOD)]
    flood += [request(team, "lee", key(number + 20_000)) for number in range(FLOOD // 5)]
    push(team, *flood)
    ada, lee = machines("ada"), machines("lee")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    joined = ada.json("join", team.remote.url, "--as", "ada", "--trust", checkpoint)
    lee.json("join", code)
    team.mac.send("spark", "in the middle of it")
    begin = time.monotonic()
    team.mac.wire("sync")
    team.spark.wire("sync")
    assert time.monotonic() - begin < 2 * plain + 20, "a round stays cheap"
    assert bodies(team.spark.wire("tail", "--json")) == ["in the middle of it"]
    found = team.mac.jsonl("trust", "requests")
    assert found[0]["name"] == "lee", "who has a code of this machine comes first"
    assert len(found) == asked.LISTED + 2
    assert found[-1]["more"] > FLOOD, "and how many are not looked at is told, once"
    assert "further request(s) are not looked at" in team.mac.wire("trust", "requests").stdout
    assert incidents(team.mac) == []
    # A name and a fingerprint from a person find the one that is meant, and a code its own.
    team.mac.wire("trust", "approve", "ada", joined["fingerprint"])
    assert team.mac.jsonl("invite", "lee")[-1]["name"] == "lee"
    refused = team.mac.wire("trust", "approve", "z1", "SHA256:abcdef", check=False)
    assert (refused.status, "whole" in refused.stderr or "short" in refused.stderr) == (2, True), refused.stderr
    agents = team.mac.json("trust", "show")["agents"]
    assert agents.keys() == {"mac", "spark", "ada", "lee"}
    # What asked for a name that is taken now is gone, with the version that answered.
    assert not [path for path in there(team) if path.startswith((f"{FOLDER}/lee.", f"{FOLDER}/ada."))]
    team.machines += [ada, lee]
    team.settle()
    team.check()


def test_a_taken_or_removed_name_is_never_shown(team):
    taken = [request(team, name, key(number + 30)) for number, name in enumerate(("mac", "spark"))]
    push(team, *taken, request(team, "zoe", key(40)))
    team.mac.wire("group", "set", "crew", "mac")
    push(team, request(team, "crew", key(41)))
    assert names(team.mac) == ["zoe"]
    refused = team.mac.wire("trust", "approve", "crew", "--json", check=False)
    assert refused.json()["reason"] == "no-request"


def test_names_that_look_alike_are_warned_about(team):
    push(team, request(team, "rnac", key(50)), request(team, "5park", key(51)), request(team, "zoe", key(52)))
    told = team.mac.wire("trust", "requests")
    assert "'rnac' looks like 'mac'" in told.stderr
    assert "'5park' looks like 'spark'" in told.stderr
    assert "'zoe' looks" not in told.stderr
    alike = {one["name"]: one.get("alike") for one in team.mac.jsonl("trust", "requests")}
    assert alike == {"rnac": ["mac"], "5park": ["spark"], "zoe": None}
    approved = team.mac.wire("trust", "approve", "5park", "--json", check=False)
    assert "looks like 'spark'" in approved.stderr


# One code, two keys


def test_a_daemon_tells_that_somebody_else_had_the_code(team, machines):
    """The second request with a used code is an incident, raised by the daemon of who invited, with what to do."""
    code = team.mac.json("invite", "lee", "--no-wait")["code"]
    lee = machines("lee")
    joined = lee.json("join", code)
    team.mac.wire("invite", "lee")
    team.mac.start_daemon()
    thief = key(60)
    push(team, request(team, "lee", thief, code))
    (one,) = eventually(lambda: incidents(team.mac, "INVITED_TWICE"), what="the incident")
    assert "Somebody else had your code; the later one got nothing" in one["message"]
    assert joined["fingerprint"] in one["evidence"]["fingerprints"]
    assert "wire trust revoke lee --reason stolen" in one["next_step"]
    assert invitations.parse(code).secret.hex() not in json.dumps(one)
    # It stands there for days, and is told once.
    for number in range(3):
        push(team, (f"{number}.md", b"of no concern"))
        team.mac.wire("sync", check=False)
    assert [found["count"] for found in incidents(team.mac, "INVITED_TWICE")] == [1]
    team.mac.stop_daemon()
    team.spark.wire("sync", check=False)
    assert incidents(team.spark, "INVITED_TWICE") == [], "only who gave the code out can know"
    # A third one is news. Without the secret nothing is.
    push(team, request(team, "lee", key(61), code), request(team, "lee", key(62)))
    team.mac.wire("sync", check=False)
    (one,) = incidents(team.mac, "INVITED_TWICE")
    assert (one["count"], len(one["evidence"]["fingerprints"])) == (2, 3)


def test_two_with_a_code_that_nobody_used_yet(team):
    code = team.mac.json("invite", "lee", "--no-wait")["code"]
    push(team, request(team, "lee", key(70), code))
    team.mac.wire("sync")
    assert incidents(team.mac, "INVITED_TWICE") == []
    push(team, request(team, "lee", key(71), code))
    team.mac.wire("sync", check=False)
    (one,) = incidents(team.mac, "INVITED_TWICE")
    assert "none of them was let in" in one["message"]
    assert "wire trust approve lee SHA256:" in one["next_step"]
    # The newcomer says by another way which of the two is its own, and that one is let in.
    (own, _) = one["evidence"]["fingerprints"]
    team.mac.wire("trust", "approve", "lee", own)
    assert [held["fingerprint"] for held in team.mac.json("trust", "show")["agents"]["lee"]["keys"]] == [own]


# Tidying


def first_seen(machine, **ages: float) -> None:
    """Let requests for some names have been first seen so many days ago."""
    file = state(machine) / "requests.json"
    found = json.loads(file.read_text())
    for name, when in found.items():
        found[name] = when - 86_400 * ages.get(name.split(".")[0], 0.0)
    file.write_text(json.dumps(found))


def test_old_and_answered_requests_go_with_the_next_trust_version(team):
    push(
        team,
        request(team, "old", key(80)),
        request(team, "young", key(81), created="2001-01-01T00:00:00.000Z"),
        request(team, "spark", key(82)),
        (f"{FOLDER}/junk.{'0' * 32}.json", b"{}"),
    )
    team.mac.wire("sync")
    team.spark.wire("sync")
    assert not (state(team.spark) / "requests.json").exists(), "who cannot answer keeps no record"
    first_seen(team.mac, old=31.0, young=29.0)
    team.mac.wire("sync")
    assert len(there(team)) == 4, "nobody takes anything away but with a trust version"
    team.mac.wire("group", "set", "crew", "mac")
    assert [path.split("/")[2].split(".")[0] for path in there(team)] == ["young"]
    assert names(team.mac) == ["young"]
    assert list(json.loads((state(team.mac) / "requests.json").read_text())) == [there(team)[0].rpartition("/")[2]]
    team.settle()
    team.check(attacked=True)


def test_a_used_rotation_goes_and_one_that_waits_stays(team, machines):
    lee = team.join("lee")
    team.settle()
    for machine in (team.spark, lee):
        machine.wire("keys", "rotate")
    assert len(there(team)) == 2
    fingerprint = next(one["fingerprint"] for one in team.mac.jsonl("trust", "requests") if one["name"] == "spark")
    # Somebody puts a copy of it under another name, which is not it, and hides nothing.
    (mine,) = [path for path in there(team) if "/spark." in path]
    push(
        team,
        (f"{FOLDER}/spark.{'f' * 32}.json", team.remote.show(mine)),
        (f"{FOLDER}/zz.{'f' * 32}.json", team.remote.show(mine)),
    )
    assert sorted(names(team.mac)) == ["lee", "spark"]
    team.mac.wire("trust", "approve", "spark", fingerprint)
    assert [path.split("/")[2].split(".")[0] for path in there(team)] == ["lee"], (
        "the copies are none, and went as well"
    )
    # What was answered and comes back is tidied too.
    push(team, (mine, team.remote.show(mine, f"{team.remote.branch}~1")))
    team.mac.wire("group", "set", "crew", "mac")
    assert [path.split("/")[2].split(".")[0] for path in there(team)] == ["lee"]
    assert rotations.ROTATION_MAX > requests.REQUEST_MAX


@pytest.mark.parametrize("who", ["waits", "answered", "junk"])
def test_the_hosts_hook_lets_only_a_trust_version_take_requests_away(team, who):
    """An unanswered request is taken away by nobody else; what was answered, or is none, by anybody."""
    path, raw = request(team, "zoe", key(90))
    if who == "answered":
        path, raw = request(team, "spark", key(91))
    elif who == "junk":
        raw = b"{}"
    push(team, (path, raw))
    assert serverhook.install({}, str(team.remote.path), Rules()).active
    vera = team.vandal()
    (vera.path / path).unlink()
    vera.commit()
    if who == "waits":
        with pytest.raises(AssertionError, match="was not answered yet; it stays"):
            vera.push()
    else:
        vera.push()
    assert (path in team.remote.files()) is (who == "waits")
    if who == "waits":
        team.mac.wire("sync")
        first_seen(team.mac, zoe=31.0)
        team.mac.wire("group", "set", "crew", "mac")
        assert there(team) == []


def test_a_damaged_record_of_first_sight_forgets_and_stops_nothing(team):
    push(team, request(team, "zoe", key(95)))
    team.mac.wire("sync")
    file = Path(state(team.mac) / "requests.json")
    for damage in (b"", b"{", b"[1]", b'{"zoe":"x"}', b"\0" * 40):
        file.write_bytes(damage)
        push(team, ("a.md", damage))
        team.mac.wire("sync", check=False)
        assert len(json.loads(file.read_text())) == 1
