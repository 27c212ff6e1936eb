"""No attack, and trouble all the same: backups, clones, lost files, curious people. Nothing that was sent may be lost.

The codes are those that an attacker would cause, too, because nobody can tell the difference from bytes. What differs
is how it ends: by itself, with every line in everybody's log.
"""

import itertools
import os
import shutil
from pathlib import Path

import pytest

from support import hostile_host as hostile
from support import oracle
from support.besieged import (
    Siege,
    accepted,
    all_incidents,
    git,
    incidents,
    journal,
    pin,
    shown,
    signer,
    site,
    state,
    tail,
)
from support.machine import Machine

CHANNEL = "mac/spark"
STATE_LOST = f"STATE_LOST {CHANNEL}"
CLONED = f"CLONED {CHANNEL}"


# Backups


def _back_up(machine: Machine, to: Path, *, clone: bool) -> None:
    shutil.copytree(machine.wire_home / "state", to / "state", symlinks=True)
    if clone:
        shutil.copytree(machine.wire_home / "clones", to / "clones", symlinks=True)


def _restore(machine: Machine, kept: Path) -> None:
    for folder in kept.iterdir():
        shutil.rmtree(machine.wire_home / folder.name)
        shutil.copytree(folder, machine.wire_home / folder.name, symlinks=True)


@pytest.mark.parametrize("clone", [True, False], ids=["with the clone", "without the clone"])
def test_restored_backup(siege: Siege, tmp_path: Path, clone: bool) -> None:
    # mac's home comes from a backup that is older than what mac sent. The remote has lines under mac's own key that mac
    # does not know: they are taken over, and mac goes on behind them.
    _back_up(siege.mac, tmp_path / "backup", clone=clone)
    siege.send("mac", "spark", "after the backup")
    siege.send("mac", "lee", "the first one to lee, after the backup")
    siege.settle()
    _restore(siege.mac, tmp_path / "backup")
    siege.sync(siege.mac)
    siege.send("mac", "spark", "after the restore")
    siege.settle()
    # Where the clone was not restored, its files still hold what the state forgot, and nothing is missed at all.
    siege.check(mac={STATE_LOST, "STATE_LOST mac/lee"} if clone else ())


@pytest.mark.parametrize("clone", [True, False], ids=["with the clone", "without the clone"])
def test_restored_backup_and_sent_before_anybody_looked(siege: Siege, tmp_path: Path, clone: bool) -> None:
    # The same, and an agent sends before the first sync: number 5 is signed twice. Nobody has the second one yet, so
    # that it is issued again behind the first; the sender is told the old id and the new one.
    _back_up(siege.mac, tmp_path / "backup", clone=clone)
    siege.send("mac", "spark", "the first five")
    siege.settle()
    _restore(siege.mac, tmp_path / "backup")
    old = siege.mac.send("spark", "the second five")
    assert old == f"{CHANNEL}/5"
    siege.sync(siege.mac)
    new = _issued_again(siege, siege.mac)[old]
    siege.sent[new] = journal(siege.mac, new)
    assert b"the second five" in siege.sent[new]
    siege.settle()
    siege.flows(("mac", "spark"), ("spark", "mac"))
    siege.check(mac={CLONED})


def test_restored_clone_alone(siege: Siege, tmp_path: Path) -> None:
    # Only the clone is old (somebody copied the folder back): what the state knows of is not in it.
    shutil.copytree(siege.spark.wire_home / "clones", tmp_path / "clones", symlinks=True)
    siege.send("mac", "spark", "five")
    siege.send("spark", "mac", "four")
    siege.settle()
    shutil.rmtree(siege.spark.wire_home / "clones")
    shutil.copytree(tmp_path / "clones", siege.spark.wire_home / "clones", symlinks=True)
    # What the pin vouches for is not there to be read: that is said, and nothing is shown that nobody can vouch for.
    refused = tail(siege.spark)
    assert (refused.status, refused.json()["reason"]) == (4, "view-damaged")
    _repair_if_asked(siege, siege.spark)
    siege.settle()
    siege.flows(("mac", "spark"), ("spark", "mac"))
    siege.check()


def test_clone_deleted(siege: Siege) -> None:
    shutil.rmtree(siege.spark.clone())
    siege.send("spark", "mac", "sent without a clone")
    _repair_if_asked(siege, siege.spark)
    siege.settle()
    siege.flows(("mac", "spark"), ("spark", "mac"))
    siege.check()


def _repair_if_asked(siege: Siege, machine: Machine) -> None:
    """Sync; where that is refused, do literally what the refusal says."""
    result = machine.wire("sync", "--json", check=False)
    if result.status in (0, 4):
        return
    step = result.json().get("next_step") or result.json()["failure"]["next_step"]
    assert "wire repair" in step, str(result)
    machine.wire("repair")


# Lost and damaged files


def test_power_lost_between_collecting_and_fsync(siege: Siege) -> None:
    # The cycle had collected a line, and the journal's last bytes did not reach the disk: it is shorter than what was
    # accepted, and (after the push) than what the remote has.
    identity = siege.send("mac", "spark", "five")
    siege.sync(siege.mac)
    file = state(siege.mac) / "journal" / CHANNEL / "000001.jsonl"
    whole = file.read_bytes()
    for cut in (len(whole) - 1, len(whole) - 100, len(whole) - len(siege.sent[identity]) - 1):
        with file.open("r+b") as opened:
            opened.truncate(cut)
        siege.sync(siege.mac)
        assert file.read_bytes() == whole
    siege.settle()
    siege.flows(("mac", "spark"))
    siege.check(mac={STATE_LOST})


def test_journal_damaged_in_its_accepted_part(siege: Siege) -> None:
    # Zeroed, emptied, or with one line changed in the middle: the accepted bytes are taken from git, the clone's file
    # is not "mended" to the damage, and the damaged bytes are kept.
    file = state(siege.mac) / "journal" / CHANNEL / "000001.jsonl"
    whole = file.read_bytes()
    for damaged in (bytes(len(whole)), whole.replace(b"number 2", b"number 9"), b""):
        file.write_bytes(damaged)
        siege.sync(siege.mac)
        assert file.read_bytes() == whole
        assert siege.mac.segment(CHANNEL).read_bytes() == whole
    siege.send("mac", "spark", "five")
    siege.settle()
    siege.flows(("mac", "spark"))
    siege.check(mac={STATE_LOST})


def test_unpublished_line_damaged(siege: Siege) -> None:
    # A line that nobody else has was damaged on the disk. It cannot be sent any more, and nobody signs another in its
    # name: it is kept aside and told of, and what was sent behind it goes out.
    siege.mac.send("spark", "nobody has this")
    siege.mac.send("spark", "behind it")
    file = state(siege.mac) / "journal" / CHANNEL / "000001.jsonl"
    file.write_bytes(file.read_bytes().replace(b"nobody has", b"nobody\0has"))
    shutil.rmtree(siege.mac.clone() / "_coordination/mac/spark")
    siege.sync(siege.mac)
    (told,) = all_incidents(siege.mac, "CORRUPT")
    assert told.evidence["issued_again"] == {f"{CHANNEL}/6": f"{CHANNEL}/5"}
    assert b"nobody\0has" in b"".join(file.read_bytes() for file in (state(siege.mac) / "aside").glob("*"))
    siege.sent[f"{CHANNEL}/5"] = journal(siege.mac, f"{CHANNEL}/5")
    assert b"behind it" in siege.sent[f"{CHANNEL}/5"]
    siege.settle()
    siege.flows(("mac", "spark"), ("spark", "mac"), ("mac", "lee"))
    siege.check()


def test_newest_line_damaged(siege: Siege) -> None:
    # The same with the last line: the next send is refused, because it must not sign a number twice without looking,
    # and names a step that helps.
    siege.mac.send("spark", "nobody has this")
    file = state(siege.mac) / "journal" / CHANNEL / "000001.jsonl"
    file.write_bytes(file.read_bytes().replace(b"nobody has", b"nobody\0has"))
    refused = siege.mac.wire("send", "spark", "six?", check=False)
    assert refused.status == 1
    assert "`wire sync`" in refused.stderr
    assert siege.mac.wire("sync", check=False).status == 4
    assert all_incidents(siege.mac, "CORRUPT")
    siege.flows(("mac", "spark"), ("spark", "mac"), ("mac", "lee"))
    siege.check(mac={STATE_LOST})


def test_journal_deleted(siege: Siege) -> None:
    shutil.rmtree(state(siege.mac) / "journal")
    siege.sync(siege.mac)
    siege.send("mac", "spark", "five")
    siege.settle()
    siege.flows(("mac", "spark"))
    siege.check(mac={STATE_LOST, "STATE_LOST mac/all"})


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("pin.json", [("sync",), ("tail",), ("tail", "--all"), ("send", "mac", "x"), ("log",), ("verify",)]),
        ("trust/000002.json", [("sync",), ("verify",), ("trust", "show")]),
    ],
    ids=["pin", "trust"],
)
def test_security_state_corrupted(siege: Siege, name: str, commands: list[tuple[str, ...]]) -> None:
    # Pin and trust are what everything is verified against. Damaged, they fail closed: nothing is read, accepted or
    # published on a guess, the exit status says so, and what the refusal says to do helps. (Reading and sending
    # stand on
    # the pin alone.)
    checkpoint = siege.spark.json("trust", "show")["checkpoint"]
    siege.send("mac", "spark", "while spark was away")
    siege.sync(siege.mac)
    file = state(siege.spark) / name
    data = file.read_bytes()
    before = siege.remote.tip()
    edited = data.replace(b'"version": 2', b'"version": 3').replace(b'"accepted"', b'"accepteD"')
    for command, damaged in zip(
        itertools.cycle(commands), (bytes(len(data)), b"", data[: len(data) // 2], edited), strict=False
    ):
        file.write_bytes(damaged)
        _fails_closed(siege.spark, command)
    file.unlink()
    for command in commands:
        _fails_closed(siege.spark, command)
    assert siege.remote.tip() == before
    siege.spark.wire("trust", "repin", "--checkpoint", checkpoint)
    siege.settle()
    siege.flows(("spark", "mac"), ("mac", "spark"))
    siege.check()


def _fails_closed(machine: Machine, command: tuple[str, ...]) -> None:
    result = machine.wire(*command, check=False)
    assert result.status not in (0, 3), str(result)
    assert b"mac/spark/" not in result.out
    assert "wire trust repin" in result.stderr, str(result)


def test_pin_rolled_back_by_hand(siege: Siege, tmp_path: Path) -> None:
    # Somebody puts an old pin back, and nothing else. It knows less, and learns the rest again.
    old = (state(siege.spark) / "pin.json").read_bytes()
    siege.send("mac", "spark", "five")
    siege.send("spark", "mac", "four")
    siege.settle()
    (state(siege.spark) / "pin.json").write_bytes(old)
    siege.settle()
    siege.flows(("mac", "spark"), ("spark", "mac"))
    siege.check(spark=incidents(siege.spark) & {"STATE_LOST spark/mac"})


def test_first_sight_edited(siege: Siege) -> None:
    # A hint for people: edited by hand, emptied or filled with junk, it changes nothing that is shown.
    before = shown(siege.spark)
    seen = _seen(siege.spark)
    for data in (b"", bytes(1000), b"junk\n" * 100, seen.read_bytes().replace(b'"commit":"', b'"commit":"\x1b[2J')):
        seen.write_bytes(data)
        assert shown(siege.spark) == before
    siege.send("mac", "spark", "five")
    siege.settle()
    siege.flows(("mac", "spark"))
    siege.check()


def _seen(machine: Machine) -> Path:
    return Path(site(machine).places.seen_file)


# Clones


def _clone_machine(siege: Siege, name: str) -> Machine:
    """Copy mac's whole home to another machine, as somebody does who sets up a second laptop from the first."""
    other = siege.new_machine(name)
    shutil.copytree(siege.mac.wire_home, other.wire_home, symlinks=True, dirs_exist_ok=True)
    config = other.wire_home / "config.toml"
    config.write_text(config.read_text("utf-8").replace(str(siege.mac.root), str(other.root)), "utf-8")
    return other


def _issued_again(siege: Siege, machine: Machine) -> dict[str, str]:
    (told,) = all_incidents(machine, "CLONED")
    moved: dict[str, str] = dict(told.evidence["issued_again"])
    for old, new in moved.items():
        assert old in told.message
        assert new in told.message
    return moved


def test_two_clones_of_one_machine(siege: Siege) -> None:
    # One home on two machines, and both send. Nothing was published twice, so that nothing is a fork: at the next fetch
    # the slower one issues its lines again behind the faster one's, and the faster one takes those over.
    twin = _clone_machine(siege, "twin")
    siege.mac.send("spark", "from the first")
    twin.send("spark", "from the second")
    siege.sync(siege.mac, twin, siege.mac)
    moved = _issued_again(siege, twin)
    assert moved == {f"{CHANNEL}/5": f"{CHANNEL}/6"}
    for identity in (f"{CHANNEL}/5", f"{CHANNEL}/6"):
        siege.sent[identity] = journal(siege.mac, identity)
    assert b"from the first" in siege.sent[f"{CHANNEL}/5"]
    assert b"from the second" in siege.sent[f"{CHANNEL}/6"]
    siege.settle()
    # And the other way round, with several lines that speak of each other.
    siege.mac.send("spark", "the next from the first")
    first = twin.send("spark", "the next from the second")
    twin.wire("send", "spark", "about it", "--re", first)
    siege.sync(twin, siege.mac, twin)
    moved = {**_issued_again(siege, siege.mac)}
    for seq in (7, 8, 9):
        siege.sent[f"{CHANNEL}/{seq}"] = journal(twin, f"{CHANNEL}/{seq}")
    assert moved == {f"{CHANNEL}/7": f"{CHANNEL}/9"}
    siege.settle()
    siege.machines["twin"] = twin
    siege.sync(twin)
    both = {CLONED, STATE_LOST}
    # The lines by which the two tell of it collide, too; that is told of their channel.
    told = {name: incidents(machine) for name, machine in siege.machines.items()}
    assert {code for code in told["twin"] if code.endswith(CHANNEL)} == both
    assert {code for code in told["mac"] if code.endswith(CHANNEL)} == both
    assert {code.split()[0] for code in told["mac"] | told["twin"]} == {"CLONED", "STATE_LOST"}
    del siege.machines["twin"]
    siege.check(mac=told["mac"])


def test_two_clones_that_speak_of_their_own_lines(siege: Siege) -> None:
    # What is issued again names its own new ids, keeps its time and its text to the last digit, and an unreadable line
    # among them moves with the rest.
    twin = _clone_machine(siege, "twin")
    siege.mac.send("spark", "from the first")
    twin.wire("send", "spark", '{"n":1.10,"big":12345678901234}', "--json")
    two = twin.send("spark", "about it", "--re", f"{CHANNEL}/5", "--thread", f"{CHANNEL}/5")
    trust = f"{pin(twin).trust_version}:{pin(twin).trust_hash[:16]}"
    author = hostile.Author(signer(siege.mac), pin(twin).wire, CHANNEL, trust, [journal(twin, two)])
    odd = author.line(middle=b'"body":{"x":1,"x":2},')
    with twin.segment(CHANNEL).open("ab") as file:
        file.write(odd)
    siege.sync(siege.mac, twin)
    assert _issued_again(siege, twin) == {f"{CHANNEL}/{n}": f"{CHANNEL}/{n + 1}" for n in (5, 6, 7)}
    siege.settle()
    got = accepted(siege.spark)
    assert b'"body":{"n":1.10,"big":12345678901234}' in got[f"{CHANNEL}/6"]
    assert f'"thread":"{CHANNEL}/6","re":"{CHANNEL}/6"'.encode() in got[f"{CHANNEL}/7"]
    assert b'"body":{"x":1,"x":2}' in got[f"{CHANNEL}/8"]


def test_killed_between_taking_over_and_the_pin(siege: Siege) -> None:
    # The journal already holds the other copy's line and ours behind it; the pin still says what was before.
    twin = _clone_machine(siege, "twin")
    siege.mac.send("spark", "from the first")
    twin.send("spark", "from the second")
    siege.sync(siege.mac)
    kept = (state(twin) / "pin.json").read_bytes()
    kept_ref = git(twin, "rev-parse", "refs/wire/accepted").decode().strip()
    siege.sync(twin)
    (state(twin) / "pin.json").write_bytes(kept)
    git(twin, "update-ref", "refs/wire/accepted", kept_ref)
    siege.sync(twin)
    siege.settle()
    siege.sync(twin)
    got = accepted(siege.spark)
    assert [b"from the first" in got[f"{CHANNEL}/5"], b"from the second" in got[f"{CHANNEL}/6"]] == [True, True]
    assert f"{CHANNEL}/7" not in got
    assert accepted(twin)[f"{CHANNEL}/6"] == got[f"{CHANNEL}/6"]
    assert "SIGNATURE mac/spark" not in incidents(twin)


# Newer versions, other clocks, same names


def test_unknown_member_between_two_good_lines(siege: Siege) -> None:
    # A newer version of the product writes a member that this one does not know. The line keeps its place, is shown as
    # one that cannot be read, and both its neighbours are there.
    siege.send("mac", "spark", "before")
    siege.sync(siege.mac)
    newer = siege.host.author(CHANNEL, signer(siege.mac))
    raw = newer.line(middle=b'"body":"from the future","mood":"good",')
    siege.host.append(CHANNEL, raw)
    siege.sent[f"{CHANNEL}/6"] = raw[:-1]
    siege.sync(siege.mac)
    siege.send("mac", "spark", "after")
    siege.settle()
    items = {item["id"]: item for item in tail(siege.spark).jsonl()}
    assert [items[f"{CHANNEL}/{seq}"]["verdict"] for seq in (5, 6, 7)] == ["verified", "unreadable", "verified"]
    assert "mood" in items[f"{CHANNEL}/6"]["why"]
    schema = f"SCHEMA {CHANNEL}"
    siege.check(mac={schema, STATE_LOST}, spark={schema}, lee={schema})


def test_clock_in_2099(siege: Siege) -> None:
    # mac's clock stands in 2099 for one line. It is accepted, flagged as ahead, never called badly signed, and poisons
    # nothing: the next line is as new as it is.
    author = siege.host.author(CHANNEL, signer(siege.mac))
    raw = author.line("from the future", ts="2099-12-31T23:59:59.999Z")
    siege.host.append(CHANNEL, raw)
    siege.sent[f"{CHANNEL}/5"] = raw[:-1]
    siege.sync(siege.mac)
    siege.send("mac", "spark", "from now")
    siege.settle()
    items = {item["id"]: item for item in tail(siege.spark).jsonl()}
    assert items[f"{CHANNEL}/5"]["flags"] == ["clock-ahead"]
    assert items[f"{CHANNEL}/6"]["flags"] == []
    assert not [code for code in incidents(siege.spark) if code.startswith("SIGNATURE")]
    order = [item["id"] for item in siege.spark.jsonl("log", "-n", "200") if "id" in item]
    assert order.index(f"{CHANNEL}/5") < order.index(f"{CHANNEL}/6")
    siege.check(mac={STATE_LOST})


def test_two_honest_requests_for_one_name(siege: Siege) -> None:
    # Two newcomers want to be zoe. They are told apart by their fingerprints; who was not chosen learns why, keeps what
    # it had sent, and never mixes its lines with the other's.
    checkpoint = siege.mac.json("trust", "show")["checkpoint"]
    first, second = siege.new_machine("zoe-1"), siege.new_machine("zoe-2")
    prints = [
        machine.json("join", siege.remote.url, "--as", "zoe", "--trust", checkpoint)["fingerprint"]
        for machine in (first, second)
    ]
    second.wire("send", "mac", "I am the other one")
    assert {one["fingerprint"] for one in siege.mac.jsonl("trust", "requests")} == set(prints)
    asked = siege.mac.wire("trust", "approve", "zoe", check=False)
    assert asked.status == 2
    assert all(one in asked.stderr for one in prints)
    siege.mac.wire("trust", "approve", "zoe", "--fingerprint", prints[0])
    for machine in (first, second):
        machine.wire("sync", check=False)
    first.wire("send", "mac", "I am zoe")
    first.wire("sync")
    loser = second.wire("sync", check=False)
    assert "another key" in loser.stderr, str(loser)
    assert "another key" in second.wire("send", "lee", "still here", check=False).stderr
    again = second.wire("join", siege.remote.url, "--as", "zoe", "--trust", checkpoint, check=False)
    assert again.status == 2
    assert "another key" in again.stderr
    assert b"I am the other one" in (state(second) / "journal/zoe/mac/000001.jsonl").read_bytes()
    # Under another name the same machine comes aboard.
    joined = second.json("join", siege.remote.url, "--as", "zoe-the-second", "--trust", checkpoint)
    siege.mac.wire("trust", "approve", "zoe-the-second", "--fingerprint", joined["fingerprint"])
    # (5 says that the name `zoe` is still in the way of what was sent under it.)
    assert second.wire("sync", check=False).status == 5
    second.wire("send", "mac", "here I am", "--as", "zoe-the-second")
    assert second.wire("sync", check=False).status == 5
    siege.sync(siege.mac)
    bodies = [item["line"]["body"] for item in siege.mac.jsonl("tail", check=False) if "line" in item]
    assert bodies[-2:] == ["I am zoe", "here I am"]
    zoe = oracle.segments(second.clone(), pin(second).accepted_commit)["_coordination/zoe/mac/000001.jsonl"]
    assert zoe.count(b"\n") == 1


# What people do in the clone


def _sed(siege: Siege) -> None:
    file = siege.spark.segment(CHANNEL)
    file.write_bytes(file.read_bytes().replace(b"number 2", b"number 3"))


def _remove(siege: Siege) -> None:
    shutil.rmtree(siege.spark.clone() / "_coordination")


def _reset(siege: Siege) -> None:
    git(siege.spark, "reset", "--quiet", "--hard", "HEAD~2")


def _other_branch(siege: Siege) -> None:
    git(siege.spark, "checkout", "--quiet", "-b", "mine", "HEAD~1")


def _stash(siege: Siege) -> None:
    file = siege.spark.segment("spark/mac")
    file.write_bytes(file.read_bytes()[:-50])
    git(siege.spark, "stash", "--quiet", "--include-untracked")


def _clean(siege: Siege) -> None:
    git(siege.spark, "rm", "-r", "--quiet", "--cached", "_coordination")
    git(siege.spark, "clean", "--quiet", "-ffdx")


def _commit(siege: Siege) -> None:
    file = siege.spark.segment(CHANNEL)
    file.write_bytes(file.read_bytes() + b"my own line\n")
    git(siege.spark, "commit", "--quiet", "--no-verify", "-a", "-m", "I know git")


def _truncate(siege: Siege) -> None:
    # Long ago: a moment ago it might be a line that somebody is still writing.
    file = siege.spark.segment("spark/mac")
    os.truncate(file, 10)
    os.utime(file, (1, 1))


def _link(siege: Siege) -> None:
    file = siege.spark.segment(CHANNEL)
    file.unlink()
    file.symlink_to("/etc/passwd")


EDITS = {
    "sed -i": _sed,
    "rm -rf": _remove,
    "git reset --hard": _reset,
    "git checkout -b": _other_branch,
    "git stash": _stash,
    "git clean": _clean,
    "git commit": _commit,
    "truncate": _truncate,
    "ln -s": _link,
}


@pytest.mark.parametrize("title", EDITS)
def test_person_in_the_clone(siege: Siege, title: str) -> None:
    # The clone is the daemon's, and people go there all the same. Sent, seen and shown stays what it was, the files are
    # mended at the next look also where there is no news, and nothing of a person's is thrown away.
    siege.send("spark", "mac", "not pushed yet")
    before = shown(siege.spark)
    EDITS[title](siege)
    assert shown(siege.spark) == before
    siege.sync(siege.spark)
    clone = siege.spark.clone()
    assert oracle.in_clone(clone) == oracle.segments(clone, pin(siege.spark).accepted_commit)
    siege.settle()
    siege.flows(("mac", "spark"), ("spark", "lee"))
    siege.check()
