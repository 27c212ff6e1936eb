"""R: what others who carry messages by git paid for, where no other test shows it."""

from support.team import bodies, pin


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
