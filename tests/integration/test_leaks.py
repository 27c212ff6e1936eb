"""A likely secret stops a message on every way out; a reason lets it through, is said once and kept on this machine."""

import json
from typing import Any

import pytest

from support.mcp_client import Refused, harness
from support.team import Team, pin, state
from wire import Wire
from wire.store import allowed
from wire.surfacing import drop
from wire.verbs.leaks import LikelySecret

TOKEN = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2"
KIND = "a GitHub token"


def nothing_was_written(team: Team) -> bool:
    return not (state(team.mac) / "journal" / "mac").exists() and allowed.FILE not in {
        file.name for file in state(team.mac).iterdir()
    }


COMMANDS: dict[str, tuple[list[str], str | None]] = {
    "a body": (["send", "spark", f"use {TOKEN}"], None),
    "standard input": (["send", "spark", "-"], f"use\n{TOKEN}\n"),
    "a subject": (["send", "spark", "x", "--subject", TOKEN], None),
    "a ref": (["send", "spark", "x", "--ref", f"https://h.test/{TOKEN}"], None),
    "a closed letter": (["send", "spark", TOKEN, "--seal"], None),
    "a batch, whose first message is in order": (
        ["send", "--batch"],
        "\n".join(json.dumps({"to": "spark", "body": body}) for body in ("fine", TOKEN)),
    ),
}


def test_every_command_stops_before_anything_is_written(team: Team) -> None:
    for name, (args, given) in COMMANDS.items():
        refused = team.mac.wire(*args, "--json", input=given, check=False)
        told = refused.json()
        assert (refused.status, told["reason"], told["exit_status"]) == (2, "likely-secret", 2), f"{name}: {refused}"
        assert KIND in told["error"]
        assert "--allow-secret" in told["next_step"]
        assert TOKEN not in refused.stdout + refused.stderr
        assert nothing_was_written(team), name
    refused = team.mac.wire("send", "spark", f"one\ntwo {TOKEN}", check=False)
    assert "a GitHub token in the body, line 2" in refused.stderr
    assert "for ever" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_answers_stop_as_well(team: Team) -> None:
    team.spark.send("mac", "which token?")
    team.settle()
    for args in (["reply", "spark/mac/1", TOKEN], ["ack", "spark/mac/1", TOKEN]):
        refused = team.mac.wire(*args, "--json", check=False)
        assert (refused.status, refused.json()["reason"]) == (2, "likely-secret")
    assert nothing_was_written(team)
    team.mac.wire("ack", "spark/mac/1", TOKEN, "--allow-secret", "a dead one")


def test_an_agents_tools_stop_and_have_no_way_around(team: Team) -> None:
    with harness(team.mac) as mac:
        for arguments in ({"body": TOKEN}, {"body": {"deep": [TOKEN]}}, {"body": "x", "refs": [TOKEN]}):
            with pytest.raises(Refused) as caught:
                mac.call("send", to="spark", **arguments)
            assert caught.value.told["reason"] == "likely-secret"
            assert TOKEN not in json.dumps(caught.value.told)
        with pytest.raises(Refused) as caught:
            mac.call("send", to="spark", body=TOKEN, allow_secret="please")
        assert caught.value.told["reason"] == "bad-arguments"
    assert nothing_was_written(team)


def test_notes_that_go_out_beside_messages_stop_as_well(team: Team) -> None:
    edited = json.loads(team.remote.show("_coordination/trust.json"))
    edited["policy"] = {"x": 1}
    for args in (["state", "busy"], ["trust", "propose", "-", "--yes", "--note"]):
        told = team.mac.wire(*args, f"with {TOKEN}", "--json", input=json.dumps(edited), check=False)
        assert (told.status, told.json()["reason"]) == (2, "likely-secret"), str(told)
        assert TOKEN not in told.stdout + told.stderr
    assert nothing_was_written(team)
    assert team.mac.json("state")["note"] == ""


def test_the_api_and_the_drop_folder_stop(team: Team) -> None:
    wire = Wire.open(environ=team.mac.env)
    with pytest.raises(LikelySecret):
        wire.send("spark", TOKEN)
    folder = team.mac.root / "drop"
    drop.prepare(str(folder))
    (folder / "outbox" / "a.json").write_text(json.dumps({"to": "spark", "body": TOKEN}))
    (folder / "outbox" / "b.json").write_text(json.dumps({"to": "spark", "body": "fine"}))
    # That it may go out all the same an agent cannot say, which can only write files.
    (folder / "outbox" / "c.json").write_text(json.dumps({"to": "spark", "body": TOKEN, "allow_secret": "please"}))
    done = drop.run(wire, str(folder), 1e9)
    assert ([name for name, _ in done.refused], len(done.sent)) == (["a.json", "c.json"], 1)
    reason = (folder / "outbox" / "refused" / "a.reason").read_text()
    assert json.loads(reason)["reason"] == "likely-secret"
    assert TOKEN not in reason


def test_a_reason_lets_it_through_and_is_kept_here(team: Team) -> None:
    told = team.mac.json("send", "spark", f"use {TOKEN}", "--allow-secret", "revoked an hour ago")
    assert told["id"] == "mac/spark/1"
    file = state(team.mac) / allowed.FILE
    (warning,) = told["warnings"]
    assert KIND in warning
    assert str(file) in warning
    assert file.stat().st_mode & 0o777 == 0o600
    team.mac.wire("send", "spark", f"closed: {TOKEN}", "--seal", "--allow-secret", "for spark alone")
    team.mac.wire("send", "spark", "nothing in it", "--allow-secret", "to be sure")
    records: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(one["id"], one["reason"]) for one in records] == [
        ("mac/spark/1", "revoked an hour ago"),
        ("mac/spark/2", "for spark alone"),
    ]
    assert records[0]["found"] == [[KIND, "the body"]]
    assert TOKEN not in file.read_text()
    shown = team.mac.wire("show", "mac/spark/1", "--json").json()
    assert shown["allowed_secret"] == {"reason": "revoked an hour ago", "found": [[KIND, "the body"]]}
    assert "revoked an hour ago" in team.mac.wire("show", "mac/spark/1").stdout
    team.settle()
    assert "allowed_secret" not in team.spark.wire("show", "mac/spark/1", "--json").json()
    line = team.spark.wire("show", "mac/spark/1", "--json").json()["line"]
    assert "revoked" not in json.dumps(line), "the reason stays on this machine"
    assert allowed.of(Wire.open(environ=team.mac.env).here.places, "mac/spark/1", pin(team.mac).wire) is None
    team.check()


def test_without_a_record_nothing_goes_out(team: Team) -> None:
    (state(team.mac) / allowed.FILE).mkdir()
    refused = team.mac.wire("send", "spark", TOKEN, "--allow-secret", "x", "--json", check=False)
    assert (refused.status, refused.json()["reason"]) == (1, "store")
    assert not (state(team.mac) / "journal" / "mac" / "spark" / "000001.jsonl").exists()
