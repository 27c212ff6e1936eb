"""R: what others who carry messages by git paid for, where no other test shows it."""

import re

from support.team import bodies, end, forge, path, pin, write
from wire.protocol.line import head


def test_r5_and_r45_who_is_meant_is_said_and_never_guessed(team):
    """Two agents on one machine: nobody writes or reads as the other, and an empty inbox names whose it is."""
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    joined = team.spark.json("join", team.remote.url, "--as", "lee", "--trust", checkpoint)
    team.mac.wire("trust", "approve", "lee", "--fingerprint", joined["fingerprint"])
    team.settle()
    team.mac.send("lee", "for lee")
    team.settle()
    for args in (("send", "mac", "from whom?"), ("tail",), ("inbox",), ("read", "mac/lee/1")):
        refused = team.spark.wire(*args, check=False)
        assert refused.status in (2, 5), str(refused)
        assert "lee" in refused.stderr
        assert "spark" in refused.stderr
    assert "spark" in team.spark.wire("inbox", "--as", "spark").stdout
    assert "for lee" in team.spark.wire("inbox", "--as", "lee", "--full").stdout
    assert bodies(team.spark.wire("tail", "--json", env={"WIRE_AGENT": "lee"})) == ["for lee"]
    assert "mac" not in {channel.partition("/")[2] for channel in pin(team.spark).accepted}, "nothing was sent"


def test_r13_two_machines_that_build_at_once_make_two_commits(team):
    """The same text, the same second, the same parent: both lines are carried, each by a commit of its own."""
    team.settle()
    before = len(team.remote.commits())
    team.mac.send("spark", "at once")
    team.spark.send("mac", "at once")
    team.settle()
    assert len(team.remote.commits()) == before + 2
    assert bodies(team.mac.wire("tail", "--json")) == bodies(team.spark.wire("tail", "--json")) == ["at once"]
    team.check()


def test_r14_no_decision_is_undone_by_what_is_put_back_or_taken_away(team):
    """Somebody who had not heard pushes an old state of things: what was decided stands, for it is a version."""
    lee = team.join("lee")
    team.settle()
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    newest = int(checkpoint.partition(":")[0])
    folder = "_coordination/trust"
    added = ("log", "--format=%H", "--diff-filter=A", team.remote.branch, "--", "_coordination/requests")
    before = team.remote.git(*added).split()[0].decode()
    (request,) = [path for path in team.remote.files(before) if "/requests/lee." in path]
    vera = team.vandal()
    vera.write(request, team.remote.show(request, before))
    for gone in (f"{folder}/{newest:06}.json", f"{folder}/{newest:06}.json.sig"):
        (vera.path / gone).unlink()
    vera.write("_coordination/trust.json", vera.read(f"{folder}/{newest - 1:06}.json"))
    vera.commit()
    vera.push()
    team.remote.git("update-ref", "-d", "refs/wire/presence/lee")
    for machine in (team.spark, team.mac, lee):
        machine.wire("sync", check=False)
    for machine in team.machines:
        assert machine.json("trust", "show")["checkpoint"] == checkpoint
    assert team.mac.jsonl("trust", "requests") == [], "it was answered"
    assert f"{folder}/{newest:06}.json" in team.remote.files(), "and put back, byte for byte"
    assert lee.send("mac", "still here") == "lee/mac/1"
    for machine in (lee, team.mac):
        machine.wire("sync", check=False)
    assert bodies(team.mac.wire("tail", "--json", check=False)) == ["still here"]


def test_r52_what_verification_found_is_printed_for_people(team):
    """Not in a field of some object: in the plain output of the commands that people read."""
    team.mac.send("spark", "good")
    team.mac.wire("sync")
    (ahead,) = write(team.mac, "mac/spark", "from the future", ts="2099-01-01T00:00:00.000Z")
    broken = forge(
        team.mac, "mac/spark", b',"body":1e400', after=end(team.mac, "mac/spark").after(len(ahead), head(ahead[:-1]))
    )
    vera = team.vandal()
    vera.append(path("mac/spark"), ahead + broken + b"nobody signed this\n")
    vera.commit()
    vera.push()
    said = team.spark.wire("sync", check=False)
    assert (said.status, "SIGNATURE in mac/spark" in said.stderr) == (4, True)
    for command in (("tail", "--peek"), ("log",), ("inbox", "--full"), ("wait", "--timeout", "0", "--peek", "-n", "9")):
        shown = team.spark.wire(*command, check=False)
        assert re.search(r"cannot be shown|cannot be read", shown.stdout), (command, shown.stdout)
        assert re.search(r"clock", shown.stdout), (command, shown.stdout)
        assert "nobody signed this" not in shown.stdout + shown.stderr
    told = team.spark.wire("tail", "--peek", check=False)
    assert (told.status, "mac/spark" in told.stderr) == (4, True)
    status = team.spark.wire("status", check=False)
    assert (status.status, "SIGNATURE in mac/spark" in status.stdout, "SCHEMA in mac/spark" in status.stdout) == (
        4, True, True,
    )  # fmt: skip
    checked = team.spark.wire("verify", "--full", check=False)
    assert "1 of them cannot be shown" in checked.stdout
