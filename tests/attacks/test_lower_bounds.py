"""Lines that a host withholds, found by what others signed to have: by acks at once, by presences after a few looks.

Who is told has never seen the lines: a newcomer, or a machine that was away. What is told is the exact channel, and it
is over when the lines arrive. What a key's revocation cut is held against nobody.
"""

import json
import re
from pathlib import Path

from support import hostile_host as hostile
from support.besieged import Siege, all_incidents, api, incidents, new_key, pin, shown, signer, site
from support.machine import Machine
from support.moves import ELSEWHERE, MOVES
from support.moves_shown import acknowledged, yesterday
from wire.daemon.bounds import LOOKS
from wire.keys.exhibits import read as read_bundle
from wire.protocol.line import head
from wire.store.incidents import Incident

CHANNEL = "mac/spark"
SEED = bytes(range(32))


def _gaps(machine: Machine, channel: str) -> list[Incident]:
    return [one for one in all_incidents(machine, "GAP") if one.scope == channel]


def test_a_newcomer_on_a_shortened_wire_is_told_at_once(siege: Siege, tmp_path: Path) -> None:
    MOVES["lines are cut that somebody acknowledged"](siege)
    zoe = siege.newcomer("zoe", approved=False)
    (told,) = _gaps(zoe, CHANNEL)
    assert (told.subject, told.evidence["seq"], told.evidence["end"]) == ("acknowledged by spark", 4, 2)
    assert told.evidence["ack"] == "spark/mac/4"
    assert "spark/mac/4 says to have mac/spark/4, and the remote shows 2 line(s)" in told.message
    assert "wire heal" in told.next_step
    assert incidents(zoe) == {f"GAP {CHANNEL}"}, "and nothing else"
    # What it has is shown, and the channel waits: it is no longer told of once the lines are there.
    assert pin(zoe).accepted[CHANNEL].seq == 2
    bundle = tmp_path / "evidence"
    zoe.wire("evidence", told.id, "-o", str(bundle))
    shown = json.loads(zoe.wire("verify", str(bundle), "--json", check=False).out)
    assert [one["signed"] for one in shown["shown"]] == [True, True], "the ack, and the last line that is here"
    assert not shown["holds"], "that a host withholds is signed by nobody"
    siege.sync(siege.mac, zoe)
    (told,) = _gaps(zoe, CHANNEL)
    assert told.ended
    siege.settle()
    siege.check(everyone={f"PREFIX {CHANNEL}"}, zoe={f"GAP {CHANNEL}"})


def test_it_is_told_for_as_long_as_the_lines_are_withheld(siege: Siege) -> None:
    MOVES["lines are cut that somebody acknowledged"](siege)
    zoe = siege.newcomer("zoe", approved=False)
    for number in range(2):
        siege.host.commit({f"{number}.md": b"of no concern\n"})
        siege.sync(zoe)
    (told,) = _gaps(zoe, CHANNEL)
    assert not told.ended
    assert told.count == 3, "once for each tip"


def test_a_newcomer_is_told_by_presences_where_nobody_wrote_of_it(siege: Siege) -> None:
    # mac never answered lee, and its presence says that it has both of lee's lines.
    siege.host.truncate("lee/mac", 1)
    zoe = siege.newcomer("zoe", approved=False)
    for _ in range(LOOKS - 1):
        assert _gaps(zoe, "lee/mac") == [], "one look is not enough: a presence can be ahead of the branch for a moment"
        siege.sync(zoe)
    (told,) = _gaps(zoe, "lee/mac")
    assert (told.subject, told.evidence["by"]) == ("presences", "mac")
    assert (told.evidence["seq"], told.evidence["end"]) == (2, 1)
    assert '"agent":"mac"' in told.evidence["presence"]
    assert incidents(zoe) == {"GAP lee/mac"}
    siege.sync(siege.lee, zoe)
    (told,) = _gaps(zoe, "lee/mac")
    assert (told.ended is not None, told.count) == (True, 1)


def test_a_machine_that_was_away_learns_what_is_withheld_from_it(siege: Siege) -> None:
    # mac tells all, and lee and zoe have it; spark is shown the state of yesterday, with the presences of today.
    siege.newcomer("zoe")
    siege.settle()
    yesterday(siege, "spark")
    siege.sync(siege.machines["zoe"])
    siege.sync(*[siege.spark] * (LOOKS + 2))
    assert incidents(siege.spark) == {"GAP mac/all", "GAP mac/lee"}
    (told,) = _gaps(siege.spark, "mac/all")
    assert (told.subject, told.count) == ("presences", 1), "one, although two say so"
    paths = [hostile.segment(channel) for channel in ("mac/all", "mac/lee")]
    today = {path: siege.host.read(path) for path in paths}
    with siege.host.asked_by("spark"):
        siege.host.commit(today)
    siege.sync(siege.spark)
    assert _gaps(siege.spark, "mac/all")[0].ended


def test_what_was_ahead_is_compared_when_it_arrives(siege: Siege, tmp_path: Path) -> None:
    # spark has the owner's line 5. lee is shown nothing of it first, and then a thief's: spark's presence, which did
    # not change since, contradicts that, and both are kept as evidence.
    thief = siege.host.author(CHANNEL, signer(siege.mac))
    before = siege.host.tip
    siege.send("mac", "spark", "five")
    siege.sync(siege.mac, siege.spark, siege.mac)
    siege.host.put_back(before)
    siege.sync(siege.lee)
    siege.host.append(CHANNEL, thief.line("five, says the thief"))
    siege.sync(siege.lee)
    assert incidents(siege.lee) == {f"SPLIT_VIEW {CHANNEL}"}
    (told,) = all_incidents(siege.lee, "SPLIT_VIEW")
    assert told.evidence["claimed"] == pin(siege.spark).accepted[CHANNEL].head
    file = tmp_path / "evidence"
    siege.lee.wire("evidence", told.id, "-o", str(file))
    assert {one.kind for one in read_bundle(file.read_bytes()).exhibits} == {"line", "presence"}
    checked = siege.spark.wire("verify", str(file), "--json", check=False)
    assert (checked.status, json.loads(checked.out)["proved"][0]["code"]) == (0, "SPLIT_VIEW")


def test_an_ack_that_was_ahead_is_compared_when_it_arrives(siege: Siege) -> None:
    # The same by a line: it stands in the history that lee was shown, behind a line that lee was not shown.
    thief = siege.host.author(CHANNEL, signer(siege.mac))
    before = siege.host.tip
    siege.send("mac", "spark", "five")
    siege.sync(siege.mac, siege.spark)
    siege.send("spark", "mac", "I have your five")
    siege.sync(siege.spark)
    answer = siege.host.read(hostile.segment("spark/mac"))
    siege.host.put_back(before)
    siege.host.commit({hostile.segment("spark/mac"): answer})
    siege.sync(siege.lee)
    assert incidents(siege.lee) == {f"GAP {CHANNEL}"}
    siege.host.append(CHANNEL, thief.line("five, says the thief"))
    siege.sync(siege.lee)
    told = {one.subject: one for one in all_incidents(siege.lee, "SPLIT_VIEW")}
    assert told.keys() == {"", "presence of spark"}
    assert (told[""].scope, told[""].evidence["ack"]) == (CHANNEL, "spark/mac/4")
    assert _gaps(siege.lee, CHANNEL)[0].ended


def test_what_a_revocation_cut_is_held_against_nobody(siege: Siege) -> None:
    # spark acknowledged mac's line 4, which was cut since; the next key's lines 3 and 4 are others. A newcomer sees an
    # ack of another line 4, and neither a split view nor a gap: by the trust that spark held then, it was right.
    acknowledged(siege)
    keep = head(siege.host.lines(CHANNEL)[1])
    replacement = new_key(siege.mac, SEED)
    siege.retire("mac", siege.ends("mac", spark=(2, keep)), replacement=replacement)
    siege.settle()
    lost = {f"{CHANNEL}/3", f"{CHANNEL}/4"}
    cut = {one: siege.sent.pop(one) for one in lost}
    zoe = siege.newcomer("zoe", approved=False)
    assert not incidents(zoe) & {f"GAP {CHANNEL}", f"SPLIT_VIEW {CHANNEL}"}, "before the next key says anything"
    for _ in range(2):
        siege.send("mac", "spark", "by the next key")
    siege.settle()
    zed = siege.newcomer("zed", approved=False)
    for machine in (zoe, zed, *(siege.machines[name] for name in ("mac", "spark", "lee"))):
        assert not incidents(machine) & {f"GAP {CHANNEL}", f"SPLIT_VIEW {CHANNEL}"}, machine.name
        assert pin(machine).accepted[CHANNEL].seq == 4
    assert cut.keys() == lost


def test_lines_that_a_machine_forgot_and_the_remote_withholds(siege: Siege) -> None:
    # mac's state goes back to a backup, and the remote shows what suits that. Whatever mac sends next would be a second
    # line for a place; spark's ack of the first one is what gives it away.
    ELSEWHERE["what a machine forgot is held back"](siege)
    siege.sync(siege.mac)
    (told,) = [one for one in all_incidents(siege.mac, "STATE_LOST") if one.scope == CHANNEL]
    assert "spark/mac/4 says to have mac/spark/5, and this machine has sent 4 line(s)" in told.message
    assert "send nothing as 'mac'" in told.next_step
    # spark has it, and brings it back; mac takes it over, and what it sends then stands behind it.
    api_heal = siege.heal(siege.spark)
    assert api_heal.failure is None
    siege.sync(siege.mac)
    assert siege.send("mac", "spark", "six") == f"{CHANNEL}/6"
    siege.settle()
    assert not pin(siege.spark).forks


def test_a_peer_who_says_to_have_what_never_was(siege: Siege) -> None:
    # A malicious peer can make everybody ask, once; it stops nothing and takes nothing back.
    MOVES["an ack of lines that never were"](siege)
    siege.sync(siege.mac)
    (told,) = _gaps(siege.mac, "spark/lee")
    assert (told.count, told.evidence["by"]) == (1, "lee")
    records = list((Path(site(siege.mac).places.incidents_dir)).glob("GAP.*.json"))
    assert len(records) == 1
    siege.send("mac", "spark", "going on")
    siege.sync(siege.mac, siege.spark)
    assert pin(siege.spark).accepted[CHANNEL].seq == 5
    (own,) = [one for one in all_incidents(siege.spark, "STATE_LOST") if one.scope == "spark/lee"]
    assert "either what it sent was lost here" in own.message
    assert hostile.segment("spark/lee") not in siege.remote.files()


def test_who_is_shown_yesterday_for_ever_hears_of_nobody(siege: Siege) -> None:
    # Lines and presences of yesterday fit together, and nothing contradicts them: no look can tell. What can be told
    # is silence: nobody is heard of again by who is frozen, and the sender sees that nothing arrived there.
    MOVES["one is shown yesterday for ever"](siege)
    identity = siege.send("mac", "spark", "are you there?")
    asks = siege.send("spark", "mac", "is anybody there?")
    siege.sync(siege.mac, *[siege.spark] * LOOKS)
    before = {one.name: one.age for one in api(siege.spark).agents()}
    siege.sync(siege.mac, siege.spark, siege.mac)
    after = {one.name: one.age for one in api(siege.spark).agents()}
    assert incidents(siege.spark) == set()
    assert f"{CHANNEL}/5" not in shown(siege.spark)
    assert all(after[name] > before[name] for name in ("mac", "lee")), "somebody was heard of"
    for sender, sent in ((siege.mac, identity), (siege.spark, asks)):
        (recipient,) = api(sender).trace(sent).recipients
        assert "delivered" not in [one.state for one in recipient.reached], sent
    # What spark sent was swallowed; when the host shows the truth again, spark misses its line and brings it back.
    siege.host.views.clear()
    siege.sync(siege.spark)
    assert pin(siege.spark).frozen is not None
    siege.heal(siege.spark)
    siege.settle()
    assert (identity in shown(siege.spark), asks in shown(siege.mac)) == (True, True)


def test_who_is_answered_by_nobody_loses_nothing(siege: Siege) -> None:
    ELSEWHERE["nobody is answered"](siege)
    siege.send("mac", "spark", "it waits")
    assert siege.mac.wire("sync", check=False).status == 6
    seen = siege.mac.json("status", check=False)
    assert (seen["exit_status"], seen["unpushed"]) == (6, 1)
    siege.host.bring_back()
    siege.settle()
    siege.check()


def test_objects_that_git_refuses_are_taken_by_nobody(siege: Siege) -> None:
    before = siege.host.tip
    ELSEWHERE["objects that are none"](siege)
    siege.send("mac", "spark", "it waits")
    assert siege.sync(siege.mac, failing=True).failure is not None
    assert siege.sync(siege.spark, failing=True).failure is not None
    assert pin(siege.spark).frozen is None
    siege.host.put_back(before)
    siege.settle()
    siege.check()


def test_folders_without_number_keep_nobody_longer_than_git_may_take(siege: Siege) -> None:
    """Two thousand folders, each of which holds two thousand that each hold as many: a commit of a few kilobytes."""
    before, git = siege.host.tip, siege.remote.git
    tree = git("hash-object", "-t", "tree", "-w", "--stdin", input=b"")
    for _ in range(3):
        rows = (b"040000 tree %s\t%04d\n" % (tree.strip(), number) for number in range(2000))
        tree = git("mktree", input=b"".join(rows))
    top = git("mktree", input=git("ls-tree", before) + b"040000 tree %s\tfolders\n" % tree.strip()).decode().strip()
    siege.host.put_back(
        git("-c", "user.name=x", "-c", "user.email=x", "commit-tree", top, "-p", before, "-m", "x").decode().strip()
    )
    siege.send("mac", "spark", "it waits")
    failed = siege.spark.wire("sync", check=False, env={"WIRE_GIT_TIMEOUT": "1"})
    assert failed.status == 6, failed
    assert pin(siege.spark).frozen is None
    siege.host.put_back(before)
    siege.settle()
    siege.check()


def test_a_host_that_reads_everything_reads_no_closed_letter(siege: Siege) -> None:
    siege.send("mac", "spark", "the launch is at noon", subject="launch", seal=True)
    siege.send("mac", "spark", "an open word")
    siege.settle()
    everything = ELSEWHERE["everything is read"](siege)
    assert b"an open word" in everything
    assert b"noon" not in everything
    assert b"launch" not in everything
    # Who writes to whom, and when, is plain.
    plain = rb'"from":"mac","to":"spark","seq":5,"prev":"[0-9a-f]{64}","ts":"20'
    assert re.search(plain, everything)
