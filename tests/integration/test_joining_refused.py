"""A refused `wire join` leaves the machine as it was: above all, not believing that it is somebody else."""

from support import oracle


def test_a_name_that_is_taken_leaves_nothing_behind(machines, remote):
    """Mistyped once, joined right the second time: the machine is spark and has never been mac."""
    mac, spark = machines("mac"), machines("spark")
    checkpoint = mac.json("init", remote.url, "--as", "mac")["checkpoint"]
    mac.wire("group", "set", "crew", "mac")
    for name in ("mac", "crew"):
        refused = spark.wire("join", remote.url, "--as", name, "--trust", checkpoint, "--json", check=False)
        assert (refused.status, refused.json()["reason"]) == (2, "name-taken")
        assert "--as ANOTHER-NAME" in refused.json()["next_step"]
        assert spark.json("status", check=False)["reason"] == "no-wire"
        assert not spark.clones
        assert not list(spark.wire_home.rglob("*.key"))
    assert not [path for path in remote.files() if "/requests/" in path]

    joined = spark.json("join", remote.url, "--as", "spark", "--trust", checkpoint)
    mac.wire("trust", "approve", "spark", "--fingerprint", joined["fingerprint"])
    mac.send("spark", "hello")
    mac.wire("sync")
    spark.wire("sync")
    assert spark.jsonl("tail")[0]["from"] == "mac"
    assert spark.jsonl("incidents") == []
    oracle.check([mac, spark], remote)


def test_a_second_agent_with_a_name_that_is_taken_changes_nothing(machines, remote):
    mac, spark = machines("mac"), machines("spark")
    checkpoint = mac.json("init", remote.url, "--as", "mac")["checkpoint"]
    spark.wire("join", remote.url, "--as", "spark", "--trust", checkpoint)
    before = (spark.wire_home / "config.toml").read_bytes()
    refused = spark.wire("join", remote.url, "--as", "mac", "--trust", checkpoint, check=False)
    assert refused.status == 2
    assert (spark.wire_home / "config.toml").read_bytes() == before
    spark.wire("join", remote.url, "--as", "scout", "--trust", checkpoint)
    assert spark.json("status", check=False)["agents"] == ["spark", "scout"]


def test_joining_again_with_the_key_that_is_trusted_goes_on(machines, remote):
    """The same command once more, before and after approval, is no error."""
    mac, spark = machines("mac"), machines("spark")
    checkpoint = mac.json("init", remote.url, "--as", "mac")["checkpoint"]
    joining = ("join", remote.url, "--as", "spark", "--trust", checkpoint)
    first = spark.json(*joining)
    assert spark.json(*joining)["fingerprint"] == first["fingerprint"]
    mac.wire("trust", "approve", "spark", "--fingerprint", first["fingerprint"])
    assert spark.json(*joining)["approved"] is True
