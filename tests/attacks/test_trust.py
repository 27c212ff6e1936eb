"""The trust is swapped, rolled back, unsigned, deleted, or split: what is held stays in force, and is put back.

`trust/` has no owner, so that any machine which holds the chain restores it. Only a document that is as validly signed
as the one held is never written over: then a person has to decide.
"""

import json
from collections.abc import Callable
from typing import Any

from support import moves
from support.besieged import Siege, all_incidents, incidents, pin, signer, site
from wire.keys.trust import Chain, enroll, prove, sign_document, successor
from wire.protocol.encoding import Signer

TRUST = "TRUST wire"
NOW = "2026-11-29T11:20:00.123Z"


def _chain(siege: Siege) -> Chain:
    return site(siege.mac).trust(pin(siege.mac))


def _trust_at_tip(siege: Siege) -> dict[str, bytes]:
    files = [path for path in siege.remote.files() if "/trust" in path]
    return {path: siege.remote.show(path) for path in files}


# Versions that are not held.


def _next(chain: Chain, edit: Callable[[dict[str, Any]], object]) -> bytes:
    fields = json.loads(successor(chain.newest, chain.wire, NOW))
    edit(fields)
    return json.dumps(fields, indent=1).encode() + b"\n"


def _grants_itself_a_name(chain: Chain, key: Signer) -> bytes:
    proof = prove(key, wire=chain.wire, name="mallory", role="agent")
    return enroll(chain.newest, chain.wire, name="mallory", role="agent", public=key.public, proof=proof, created=NOW)


def test_next_version_without_a_root(siege: Siege) -> None:
    # A vandal enrols himself. No root signed it, so that nobody learns of mallory, and his lines are nobody's.
    moves.MOVES["a next trust version signed by an agent"](siege)
    siege.sync(siege.spark, siege.lee)
    siege.send("mac", "spark")
    siege.settle()
    siege.check(everyone={TRUST, "SHAPE wire"})
    assert pin(siege.lee).trust_version == 4
    # A version of the root goes into the place that the vandal took.
    siege.newcomer("zoe")
    siege.settle()
    assert pin(siege.lee).trust_version == 5


def test_version_of_the_far_future(siege: Siege) -> None:
    # Nothing can be said of a version whose predecessor is not there; a thousand of them are one incident.
    moves.MOVES["a thousand trust versions of the far future"](siege)
    siege.sync(siege.mac)
    assert len(all_incidents(siege.mac, "TRUST")) == 1


def test_two_documents_with_one_number(siege: Siege) -> None:
    # The root signs two versions 5 (two roots at once, or a malicious one), and the host shows one to spark and the
    # other to mac and lee. Each keeps what it has, nobody writes over the other's, and everything else goes on.
    chain, root = _chain(siege), signer(siege.mac, "root")
    one = _grants_itself_a_name(chain, siege.host.key)
    two = _next(chain, lambda fields: fields.update(policy={"x": 1}))
    tip = siege.host.tip
    siege.host.put_trust(5, one, sign_document(one, root))
    siege.sync(siege.spark)
    siege.host.put_back(tip)
    siege.host.put_trust(5, two, sign_document(two, root))
    siege.sync(siege.mac, siege.lee)
    there = _trust_at_tip(siege)
    siege.send("spark", "mac")
    siege.send("mac", "lee")
    siege.settle()
    siege.flows(("mac", "spark"), ("spark", "lee"))
    assert _trust_at_tip(siege) == there, "after a fork nobody touches trust/"
    assert pin(siege.spark).trust_hash != pin(siege.mac).trust_hash
    # Who names another version 5 than one's own is shown another trust: that is told of each of the channels, and of
    # the wire, since presences name it too.
    views = {
        name: {code for code in incidents(m) if code.startswith("SPLIT_VIEW")} for name, m in siege.machines.items()
    }
    assert "SPLIT_VIEW mac/spark" in views["spark"]
    told = {f"SPLIT_VIEW {scope}" for scope in ("spark/all", "spark/lee", "spark/mac", "wire")}
    assert views["mac"] == views["lee"] == told
    siege.check(spark={"FORCED wire", "TRUST_FORK wire"} | views["spark"], mac=views["mac"], lee=views["lee"])


def test_trust_withheld(siege: Siege) -> None:
    # mac names a version that the host keeps back. The line is taken, since its key is known, and everybody is told
    # that what they hold is old, until the version arrives.
    moves.MOVES["a new trust version is held back"](siege)
    siege.sync(siege.spark)
    assert "TRUST_WITHHELD wire" in incidents(siege.spark)
    items = siege.spark.wire("tail", "--all", "--json", check=False).jsonl()
    assert [item["flags"] for item in items if item["id"] == "mac/spark/5"] == [["trust-ahead"]]
    siege.send("lee", "spark", "of no concern")
    siege.sync(siege.lee, siege.spark)
    (told,) = all_incidents(siege.spark, "TRUST_WITHHELD")
    assert not told.ended, "it is still withheld"
    siege.settle()
    (told,) = all_incidents(siege.spark, "TRUST_WITHHELD")
    assert told.ended
    siege.check(mac={TRUST}, spark={"TRUST_WITHHELD wire"}, lee={"TRUST_WITHHELD wire"})
    assert pin(siege.spark).trust_version == 5


# Newcomers


def test_request_that_is_spoiled(siege: Siege) -> None:
    # Somebody overwrites a newcomer's request. Joining again puts it right, and whom the root approves is the newcomer.
    newcomer = siege.newcomer("zoe", approved=False)
    (path,) = [path for path in siege.remote.files() if "/requests/" in path]
    siege.host.commit({path: b"spoiled\n"})
    checkpoint = siege.mac.json("trust", "show")["checkpoint"]
    joined = newcomer.json("join", siege.remote.url, "--as", "zoe", "--trust", checkpoint)
    siege.mac.wire("trust", "approve", "zoe", "--fingerprint", joined["fingerprint"])
    siege.enrolled["zoe"] = 5
    siege.settle()
    siege.flows(("zoe", "mac"), ("mac", "zoe"))
    siege.check()
