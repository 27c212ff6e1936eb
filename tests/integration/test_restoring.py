"""A line of ours that somebody changed on the remote: our own push puts it back, and that ends the matter."""

from support import oracle

CHANNEL = "_coordination/mac/spark/000001.jsonl"


def test_what_the_own_push_restored_is_over_at_once(machines, remote, tmp_path):
    """The condition ends with the push that mends it, not only when somebody else's commit makes us look again."""
    mac, spark = machines("mac"), machines("spark")
    made = mac.json("init", remote.url, "--as", "mac")
    joined = spark.json("join", remote.url, "--as", "spark", "--trust", made["checkpoint"])
    mac.wire("trust", "approve", "spark", "--fingerprint", joined["fingerprint"])
    mac.send("spark", "the original")
    mac.wire("sync")
    spark.wire("sync")
    vera = remote.clone_as_vandal(tmp_path / "vera")
    vera.write(CHANNEL, vera.read(CHANNEL).replace(b"original", b"forgery!"))
    vera.commit()
    vera.push()
    assert spark.wire("sync", check=False).status == 4

    assert mac.wire("sync", check=False).status == 4
    assert remote.show(CHANNEL) == mac.segment("mac/spark").read_bytes()
    ended = {one["code"]: one["ended"] is not None for one in mac.jsonl("incidents")}
    assert ended == {"PREFIX": True, "SIGNATURE": False}

    spark.wire("sync")
    assert {one["code"]: one["ended"] is not None for one in spark.jsonl("incidents")} == ended
    oracle.check([mac, spark], remote, attacked=True)
