"""Keys that are lost or stolen, and people who leave: what counted goes on counting, and nothing else does."""

import json

from support.team import Team, incidents, path, pin, read, write


def _revoked(team: Team, *args: str) -> dict[str, object]:
    found: dict[str, object] = team.mac.json("trust", "revoke", *args, "--yes")
    return found


def _settle(team: Team) -> None:
    """Let everybody have everything; that there are incidents is no failure here."""
    for _ in range(2):
        for machine in team.machines:
            assert machine.wire("sync", check=False).status in (0, 4)


def test_a_lost_laptop(team: Team) -> None:
    # The key is gone with the laptop. What it had published counts; the owner goes on with another key, elsewhere.
    team.spark.send("mac", "one")
    _settle(team)
    team.spark.send("mac", "never left the laptop")
    told = _revoked(team, "spark", "--reason", "lost")
    assert [(row["channel"], row["keep"], row["cut"]) for row in told["channels"]] == [("spark/mac", 1, 0)]
    team.machines.remove(team.spark)
    again = team.new_machine("again")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    joined = again.json("join", team.remote.url, "--as", "spark", "--trust", checkpoint)
    early = again.wire("send", "mac", "too early", check=False)
    assert early.status == 5
    assert "not approved yet" in early.stderr
    team.mac.wire("trust", "approve", "spark", "--fingerprint", joined["fingerprint"])
    team.machines.append(again)
    _settle(team)
    assert again.send("mac", "two, from the new laptop") == "spark/mac/2"
    team.mac.send("spark", "welcome back")
    _settle(team)
    assert read(team.mac) == ["one", "two, from the new laptop"]
    assert read(again, status=None) == ["welcome back"]
    keys = team.mac.json("trust", "show")["agents"]["spark"]["keys"]
    assert [key["status"] for key in keys] == ["revoked", "active"]
    assert not incidents(again)
    assert not incidents(team.mac)
    team.check(sent=["spark/mac/1", "spark/mac/2", "mac/spark/1"])


def test_a_stolen_key(team: Team) -> None:
    # A thief writes with spark's key, and mac reads it. The key is revoked at the last line that is spark's; what was
    # read is told of once, what spark had sent behind it is sent again under its next key, and mac reads that as new.
    team.spark.send("mac", "one")
    _settle(team)
    thief = team.vandal()
    thief.append(path("spark/mac"), *write(team.spark, "spark/mac", "give the thief the money"))
    thief.commit("spark: 1 line to mac")
    thief.push()
    team.spark.wire("sync", check=False)
    team.spark.send("mac", "three, by spark itself")
    _settle(team)
    assert read(team.mac) == ["one", "give the thief the money", "three, by spark itself"]
    told = _revoked(team, "spark", "--reason", "stolen", "--at", "spark/mac/1")
    row = next(one for one in told["channels"] if one["channel"] == "spark/mac")
    assert (row["channel"], row["last"], row["keep"], row["cut"]) == ("spark/mac", 3, 1, 2)
    (once,) = [one for one in incidents(team.mac, "KEY_RETIRED") if one["subject"].startswith("read-")]
    assert once["evidence"]["read"] == ["spark/mac/2", "spark/mac/3"]
    assert once["evidence"]["agents"] == ["mac"]
    shown = team.mac.json("show", "spark/mac/2", check=False)
    assert shown["verdict"] == "revoked"
    cut = ("spark/mac/1", "spark/mac/2", "spark/mac/3")
    logged = [(one["id"], one["verdict"]) for one in team.mac.jsonl("log", check=False) if one["id"] in cut]
    assert logged == [("spark/mac/1", "verified"), ("spark/mac/2", "revoked"), ("spark/mac/3", "revoked")]
    (thread,) = [one for one in team.mac.jsonl("thread", "spark/mac/3", check=False) if "id" in one]
    assert (thread["id"], thread["verdict"]) == ("spark/mac/3", "revoked")
    assert "does not count" in team.mac.wire("show", "spark/mac/2", check=False).stdout
    _settle(team)
    rotated = team.spark.json("keys", "rotate")
    assert (rotated["state"], rotated["former"]) == ("asked", "")
    team.mac.wire("trust", "approve", "spark", "--fingerprint", rotated["fingerprint"])
    _settle(team)
    cut = team.spark.jsonl("keys", "reissue")
    assert [(one["id"], one["foreign"]) for one in cut] == [("spark/mac/2", True), ("spark/mac/3", False)]
    (done,) = team.spark.jsonl("keys", "reissue", "--all", "--yes")
    assert done == {"old": "spark/mac/3", "id": "spark/mac/2"}
    assert [one["id"] for one in team.spark.jsonl("keys", "reissue")] == ["spark/mac/2"]
    _settle(team)
    assert read(team.mac, status=None) == ["three, by spark itself"]
    team.check(sent=["spark/mac/1", "spark/mac/2"], attacked=True)


def test_a_position_that_is_moved(team: Team) -> None:
    for text in ("one", "two", "three"):
        team.spark.send("mac", text)
    _settle(team)
    _revoked(team, "spark", "--reason", "stolen", "--at", "spark/mac/1")
    _settle(team)
    assert pin(team.mac).accepted["spark/mac"].seq == 1
    told = _revoked(team, "spark", "--reason", "stolen", "--at", "spark/mac/3")
    assert told["channels"][0]["keep"] == 3
    _settle(team)
    assert pin(team.mac).accepted["spark/mac"].seq == 3
    assert pin(team.spark).accepted["spark/mac"].seq == 3
    assert team.spark.jsonl("keys", "reissue") == []
    again = _revoked(team, "spark", "--reason", "stolen", "--at", "spark/mac/3")
    assert again["checkpoint"] == told["checkpoint"]
    _revoked(team, "spark", "--reason", "stolen", "--at", "spark/mac/0")
    _settle(team)
    assert pin(team.mac).accepted["spark/mac"].seq == 0


def test_somebody_leaves(team: Team) -> None:
    team.spark.send("mac", "good bye")
    _settle(team)
    _revoked(team, "spark", "--reason", "left")
    team.spark.wire("sync", check=False)
    assert team.mac.json("trust", "show")["agents"]["spark"]["status"] == "removed"
    team.spark.send("mac", "one more thing")
    _settle(team)
    assert pin(team.mac).accepted["spark/mac"].seq == 1
    refused = team.spark.wire("keys", "rotate", check=False)
    assert (refused.status, "removed" in refused.stderr) == (2, True)
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    other = team.new_machine("other").wire(
        "join", team.remote.url, "--as", "spark", "--trust", checkpoint, "--json", check=False
    )
    assert json.loads(other.stdout)["reason"] == "name-taken"


def test_what_others_have_is_shown_before(team: Team) -> None:
    # mac acknowledges line 1 by the line that it sends back; of line 2 nobody says anything.
    team.spark.send("mac", "one")
    _settle(team)
    team.mac.send("spark", "yes")
    _settle(team)
    team.spark.send("mac", "two")
    team.spark.wire("sync", check=False)
    asked = team.mac.wire("trust", "revoke", "spark", "--reason", "stolen", input="n\n", check=False)
    assert asked.status == 2
    assert "spark/mac/2  (here: 2, mac has 1)" in asked.stdout
    assert "nobody says to have lines 2 to 2" in asked.stderr
    assert pin(team.mac).trust_version == 3
    for args, reason in (
        (("nobody", "--reason", "lost"), "name-unknown"),
        (("spark", "0" * 32, "--reason", "lost"), "key-unknown"),
        (("spark", "--reason", "lost", "--at", "mac/spark/1"), "bad-id"),
        (("spark", "--reason", "lost", "--at", "spark/mac/9"), "no-message"),
        (("spark", "--reason", "lost", "--at", "spark/mac"), "bad-id"),
    ):
        failed = team.mac.wire("trust", "revoke", *args, "--yes", "--json", check=False)
        assert json.loads(failed.stdout)["reason"] == reason, failed.stdout
    unconfirmed = team.mac.wire("trust", "revoke", "spark", "--reason", "lost", "--json", check=False)
    assert (unconfirmed.status, json.loads(unconfirmed.stdout)["reason"]) == (2, "usage")
    nothing = team.mac.wire("trust", "revoke", "spark", "--reason", "lost", "--at", "spark/mac/0", "--yes", "--json")
    assert json.loads(nothing.stdout)["channels"][0]["cut"] == 2
