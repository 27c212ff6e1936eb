"""Stolen, cloned, retired and revoked keys: what a key may still say is decided by position, and never by a time.

The thief here has the real key. What he writes is as valid as what the owner writes, so that only three things can
hold: two lines for one place are noticed, nothing else stops, and the root ends it by saying which line counts.
"""

from support import hostile_host as hostile
from support.besieged import Siege, accepted, all_incidents, journal, new_key, pin, shown, signer, site, state, tail
from support.machine import Machine
from support.moves import ELSEWHERE, MOVES
from support.moves_signed import NEXT_KEY
from wire.keys.trust import Key, prove, sign_document, successor
from wire.protocol.encoding import Signer
from wire.protocol.line import head

CHANNEL = "mac/spark"
FORK = f"FORK {CHANNEL}"


def _fork(siege: Siege) -> bytes:
    """Let a thief put another line 5 in the place of mac's. spark has seen mac's, lee sees the thief's."""
    other = ELSEWHERE["another line for some"](siege)
    siege.sync(siege.lee)
    return other


def test_fork(siege: Siege) -> None:
    # Two valid lines for one place. The channel stands still for everybody who knows of both; everything else goes on.
    _fork(siege)
    siege.settle()
    siege.send("mac", "spark", "nobody can know whether this is mac")
    siege.flows(("spark", "mac"), ("mac", "lee"), ("lee", "spark"))
    for machine in siege.machines.values():
        assert set(pin(machine).forks) == {CHANNEL}, machine.name
        assert pin(machine).accepted[CHANNEL].seq == 5
    assert f"{CHANNEL}/6" not in shown(siege.spark)
    siege.check(frozen={CHANNEL}, everyone={FORK, f"PREFIX {CHANNEL}"}, lee={FORK, f"SPLIT_VIEW {CHANNEL}"})


def test_fork_that_goes_on(siege: Siege) -> None:
    # The thief goes on behind his own line 5: nobody follows him, and nobody takes mac's 6 for his.
    other = _fork(siege)
    thief = siege.host.author(CHANNEL, signer(siege.mac))
    assert thief.last == other
    siege.settle(rounds=1)
    siege.host.append(CHANNEL, thief.line("six, says the thief"))
    siege.settle()
    assert pin(siege.spark).accepted[CHANNEL].seq == 5
    assert shown(siege.spark)[f"{CHANNEL}/5"] == siege.sent[f"{CHANNEL}/5"]


def test_fork_that_is_ended(siege: Siege) -> None:
    # The root revokes the key at mac's own line 5 and names the next one. lee, who had taken the thief's line, gives it
    # up and keeps it aside; the channel goes on from the named line.
    other = _fork(siege)
    siege.settle()
    key = Signer(NEXT_KEY)
    five = siege.sent[f"{CHANNEL}/5"]
    siege.retire("mac", siege.ends("mac", spark=(5, head(five))), replacement=key)
    new_key(siege.mac, NEXT_KEY)
    siege.sync(siege.mac)
    siege.send("mac", "spark", "it is me again")
    siege.settle()
    siege.flows(("mac", "spark"), ("mac", "lee"), ("spark", "mac"))
    for machine in siege.machines.values():
        assert accepted(machine)[f"{CHANNEL}/5"] == five
        assert pin(machine).forks == {}
    assert other in _aside(siege.lee)
    after = accepted(siege.spark)[f"{CHANNEL}/6"]
    assert key.key_id.encode() in after
    siege.check(
        shorter={siege.lee},
        mac={FORK, f"PREFIX {CHANNEL}", f"KEY_RETIRED {CHANNEL}"},
        spark={FORK, f"PREFIX {CHANNEL}"},
        lee={FORK, f"KEY_RETIRED {CHANNEL}"},
    )


def test_fork_that_is_ended_by_commands(siege: Siege) -> None:
    # The same, as people do it: the root names the line that is right, and mac gets another key. What mac had stored
    # behind it goes out under that one.
    _fork(siege)
    siege.settle()
    siege.mac.send("spark", "six, while nothing moved")
    five = siege.sent[f"{CHANNEL}/5"]
    siege.mac.wire("trust", "revoke", "mac", "--reason", "stolen", "--at", f"{CHANNEL}/5:{head(five)}", "--yes")
    rotated = siege.mac.json("keys", "rotate")
    assert rotated["state"] == "active"
    siege.settle()
    siege.flows(("mac", "spark"), ("mac", "lee"), ("spark", "mac"))
    for machine in siege.machines.values():
        assert accepted(machine)[f"{CHANNEL}/5"] == five
        assert b"six, while nothing moved" in accepted(machine)[f"{CHANNEL}/6"]
        assert pin(machine).forks == {}


def test_key_retired_by_position(siege: Siege) -> None:
    # A planned rotation: the old key counts up to its last line, the new one goes on. Nobody loses anything.
    siege.retire("mac", siege.ends("mac"), status="retired", replacement=Signer(NEXT_KEY))
    new_key(siege.mac, NEXT_KEY)
    siege.sync(siege.mac)
    siege.send("mac", "spark", "with the new key")
    siege.settle()
    newcomer = siege.newcomer("zoe")
    siege.check()
    assert newcomer.wire("verify", "--full").status == 0


def test_old_key_after_its_retirement(siege: Siege) -> None:
    # Whoever finds the old key writes with it behind its position, back-dated to when it counted, and in a channel in
    # which it never wrote: nobody is shown that, the owner's next key goes on in both, and newcomers agree.
    MOVES["lines of a retired key"](siege)
    siege.sync(siege.spark, siege.lee)
    assert b"long ago" not in tail(siege.spark).out + tail(siege.lee).out
    siege.flows(("mac", "spark"), ("mac", "lee"))
    siege.check(everyone={f"KEY_RETIRED {CHANNEL}", "KEY_RETIRED mac/lee"})


def test_what_a_thief_wrote_alone_is_cut(siege: Siege) -> None:
    # Lines 5 and 6 turn out to be a thief's, and everybody has accepted and read them: until somebody notices, they
    # are the owner's. Then they are cut everywhere, kept aside, and told of; the owner's next key goes on behind 4.
    cut = ELSEWHERE["a thief goes on alone"](siege)
    siege.settle()
    assert set(cut) <= shown(siege.spark).keys()
    siege.retire("mac", siege.ends("mac", spark=(4, head(siege.sent[f"{CHANNEL}/4"]))), replacement=Signer(NEXT_KEY))
    siege.sync(siege.spark)
    assert set(cut).isdisjoint(shown(siege.spark))
    for identity in cut:
        assert siege.sent.pop(identity) in _aside(siege.spark)
    new_key(siege.mac, NEXT_KEY)
    siege.sync(siege.mac)
    siege.send("mac", "spark", "five, by the new key")
    siege.settle()
    siege.flows(("mac", "spark"), ("lee", "mac"))
    for machine in siege.machines.values():
        (told,) = [one for one in all_incidents(machine, "KEY_RETIRED") if one.subject == "cut"]
        assert (told.evidence["first"], told.evidence["last"]) == (5, 6)
    codes = {f"KEY_RETIRED {CHANNEL}"}
    siege.check(shorter=siege.machines.values(), everyone=codes, mac=codes | {f"STATE_LOST {CHANNEL}"})


def test_key_that_counts_for_nothing_any_more(siege: Siege) -> None:
    # Revoked without any position: every line of lee's is cut, in all channels, on all machines, lee's own included.
    ids = [identity for identity in siege.sent if identity.startswith("lee/")]
    siege.retire("lee", {})
    siege.settle()
    siege.flows(("mac", "spark"), ("spark", "mac"), ("mac", "lee"))
    for machine in siege.machines.values():
        assert not [identity for identity in accepted(machine) if identity.startswith("lee/")]
        assert not any(file.read_bytes() for file in (machine.clone() / hostile.ROOT / "lee").rglob("*.jsonl"))
    siege.check(lost=ids, at_tip=False, everyone={"KEY_RETIRED lee/mac", "KEY_RETIRED lee/spark"})


def test_position_that_is_moved(siege: Siege) -> None:
    # The first look was wrong: a later version moves the position, and the lines that were cut count again.
    two, four = (siege.sent[f"{CHANNEL}/{seq}"] for seq in (2, 4))
    key = signer(siege.mac).key_id
    siege.retire("mac", siege.ends("mac", spark=(2, head(two))))
    siege.sync(siege.spark)
    assert pin(siege.spark).accepted[CHANNEL].seq == 2
    siege.sync(siege.mac)
    siege.retire("mac", siege.ends("mac", spark=(4, head(four))), key_id=key)
    siege.settle()
    assert pin(siege.spark).accepted[CHANNEL].seq == 4
    cut = f"KEY_RETIRED {CHANNEL}"
    siege.check(spark={cut}, mac={cut, f"STATE_LOST {CHANNEL}"})


def test_unpublished_lines_of_a_retired_key(siege: Siege) -> None:
    # mac is away and sends; meanwhile the root retires its key at the last line that was published. What is stored
    # stays stored, is never published under a key that does not count, and is issued again under the next one.
    held = siege.ends("mac")
    identity = siege.send("mac", "spark", "too late")
    siege.retire("mac", held, status="retired")
    siege.settle()
    raw = siege.sent.pop(identity)
    assert journal(siege.mac, identity) == raw
    assert raw not in (siege.host.read(hostile.segment(CHANNEL)) or b"")
    assert siege.mac.json("show", identity)["state"] == "stored"
    siege.flows(("spark", "mac"), ("lee", "spark"))
    siege.check(mac={f"KEY_RETIRED {CHANNEL}"})
    key = Signer(NEXT_KEY)
    _enrol_next_key(siege, key)
    new_key(siege.mac, NEXT_KEY)
    siege.sync(siege.mac)
    siege.sent[identity] = journal(siege.mac, identity)
    assert key.key_id.encode() in siege.sent[identity]
    assert b"too late" in siege.sent[identity]
    siege.flows(("mac", "spark"))
    siege.check(mac={f"KEY_RETIRED {CHANNEL}"})


def _enrol_next_key(siege: Siege, key: Signer) -> None:
    """Give mac another active key by the next trust version."""
    chain = site(siege.mac).trust(pin(siege.mac))
    mac = chain.newest.agents["mac"]
    proof = prove(key, wire=chain.wire, name="mac", role=mac.role)
    keys = (*mac.keys, Key(key.public, "active", proof, {}))
    agents = {**chain.newest.agents, "mac": mac._replace(keys=keys)}
    raw = successor(chain.newest, chain.wire, hostile.TS, agents=agents)
    siege.host.put_trust(chain.newest.version + 1, raw, sign_document(raw, signer(siege.mac, "root")))


def _aside(machine: Machine) -> bytes:
    return b"".join(file.read_bytes() for file in (state(machine) / "aside").glob("*") if file.is_file())
