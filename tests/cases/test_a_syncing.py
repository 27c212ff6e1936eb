"""A5 to A8, A11, A13, A17, A20: what a cycle does with history that is not as it left it."""

import random
import re
import signal
import time
from pathlib import Path

import pytest

import wire
from support import gitcmd, oracle
from support.sizes import size
from support.team import bodies, incidents, path, pin, read, signer, write
from support.waiting import eventually
from wire.protocol.chain import Position

CHANNEL = "mac/spark"


def commits_of(machine):
    """Return all commits that stand in a machine's clone, reachable or not."""
    listed = gitcmd.git(
        machine.clone(), "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objecttype) %(objectname)"
    )
    return {line.split()[1].decode() for line in listed.split(b"\n") if line.startswith(b"commit ")}


def test_a5_unpushed_commits_survive_a_diverged_remote(team):
    """Five commits that nobody has, a remote that went on meanwhile, and any number of cycles."""
    team.remote.reject_pushes("not today")
    for n in range(5):
        team.mac.send("spark", f"local {n}")
        assert team.mac.wire("sync", check=False).status != 0
    team.remote.remove_pre_receive()
    for n in range(5):
        team.spark.send("mac", f"remote {n}")
        team.spark.wire("sync")
    team.remote.reject_pushes("not today")
    for _ in range(3):
        assert team.mac.wire("sync", check=False).status != 0
    assert read(team.mac) == [f"remote {n}" for n in range(5)], "fetching goes on"
    team.remote.remove_pre_receive()
    team.sync_and_check()
    assert read(team.spark) == [f"local {n}" for n in range(5)]


def test_a5_the_product_knows_no_command_that_throws_work_away():
    """The words themselves occur nowhere in the code; `tests/cases/test_git_commands.py` watches what is run."""
    forbidden = re.compile(r'"(reset|checkout|clean|stash|rebase|pull|--hard|--autostash|--force-with-lease=?)"')
    for file in sorted(Path(wire.__file__).parent.rglob("*.py")):
        for number, text in enumerate(file.read_text("utf-8").split("\n"), 1):
            assert not forbidden.search(text), f"{file}:{number}: {text}"


def test_a6_a_remote_that_rejects_everything_gathers_no_commits(team):
    cycles = size(12, 50, "cycles against a remote that rejects")
    team.remote.reject_pushes("GH013: repository rule violations found")
    before = commits_of(team.mac)
    for n in range(cycles):
        if n in (0, cycles // 3, cycles // 2):
            team.mac.send("spark", f"line {n}")
        failed = team.mac.wire("sync", check=False)
        assert failed.status == 6, str(failed)
        assert "GH013" in failed.stderr
    made = commits_of(team.mac) - before
    ours = gitcmd.line(team.mac.clone(), "rev-parse", "refs/wire/accepted", "refs/wire/outgoing").split()
    published = [commit for commit in made if gitcmd.line(team.mac.clone(), "rev-list", "--count", commit) != "1"]
    assert len(published) <= 3, "commits that carry lines"
    assert len(made) <= 6, "with those that only hold what was accepted"
    assert set(ours) <= made
    (incident,) = incidents(team.mac)
    assert (incident["code"], incident["count"]) == ("REJECTED", cycles)
    assert "GH013" in incident["message"]
    team.remote.remove_pre_receive()
    team.sync_and_check()
    assert len(read(team.spark)) == 3
    assert incidents(team.mac) == []
    assert team.mac.json("incidents", "--all")["state"] == "resolved"


def test_a6_a_daemon_that_is_rejected_tries_seldom_and_recovers(team):
    tries = team.folder / "tries"
    team.remote.install_pre_receive(f"cat >/dev/null; echo x >>{tries}; echo no, says the host >&2; exit 1")
    team.mac.start_daemon()
    for n in range(3):
        team.mac.send("spark", f"line {n}")
        eventually(tries.exists)
    time.sleep(6)
    assert len(tries.read_text().split()) <= 8, "attempts are bounded by backoff"
    (incident,) = incidents(team.mac)
    assert "no, says the host" in incident["message"]
    team.remote.remove_pre_receive()
    team.mac.daemon.process.send_signal(signal.SIGUSR1)  # "look now": the tier would take minutes
    eventually(lambda: team.remote.tip() and path(CHANNEL) in team.remote.files())
    team.mac.stop_daemon()
    team.sync_and_check()
    assert len(read(team.spark)) == 3
    assert incidents(team.mac) == []


def test_a7_lines_that_arrive_by_another_commit_count_once(team):
    """The remote got six lines through somebody's cherry-pick, on top of history that their author has not seen."""
    team.remote.reject_pushes("not today")
    for n in range(6):
        team.mac.send("spark", f"line {n}")
    team.mac.wire("sync", check=False)
    team.remote.remove_pre_receive()
    team.spark.send("mac", "meanwhile")
    team.spark.wire("sync")
    vera = team.vandal()
    vera.git("fetch", "--quiet", team.mac.clone(), "refs/wire/outgoing")
    vera.git("cherry-pick", "FETCH_HEAD")
    vera.push()
    team.sync_and_check()
    assert read(team.spark) == [f"line {n}" for n in range(6)]
    assert team.mac.send("spark", "next") == "mac/spark/7"
    team.sync_and_check()
    assert incidents(team.mac) == incidents(team.spark) == []


def test_a7_a_merge_by_union_doubles_lines_for_nobody(team):
    """Both sides of a merge hold the same lines, and the driver keeps both blocks."""
    team.mac.send("spark", "before")
    team.settle()
    vera = team.vandal()
    team.mac.send("spark", "one")
    team.mac.send("spark", "two")
    team.mac.wire("sync")
    file = vera.path / path(CHANNEL)
    block = team.remote.show(path(CHANNEL))[len(file.read_bytes()) :]
    vera.append(path(CHANNEL), block + b"noise that makes both sides differ\n")
    vera.commit("the same lines")
    vera.git("config", "merge.union-all.driver", "git merge-file --union %A %O %B")
    (vera.path / ".git/info/attributes").write_text("*.jsonl merge=union-all\n")
    vera.git("fetch", "--quiet", "origin")
    vera.git("merge", "--quiet", "-m", "both", "origin/main")
    # The driver is clever enough to see what is common, so that the doubled block is made by hand.
    vera.append(path(CHANNEL), block)
    vera.commit("union", amend=True)
    vera.push()
    assert team.spark.wire("sync", check=False).status == 4
    assert read(team.spark, status=4) == ["before", "one", "two"]
    assert {one["code"] for one in incidents(team.spark)} <= {"REPLAY", "SIGNATURE"}
    assert incidents(team.spark, "REPLAY")
    # The owner's next push puts its folder right.
    team.mac.wire("sync", check=False)
    team.settle(rounds=1)
    team.check(attacked=True)
    assert team.remote.show(path(CHANNEL)).count(b"\n") == 3


def test_a7_one_id_with_two_contents_is_an_incident(team):
    team.mac.send("spark", "the truth")
    team.settle()
    (other,) = write(team.mac, CHANNEL, "another truth", after=Position.start(pin(team.mac).wire, CHANNEL))
    vera = team.vandal()
    vera.append(path(CHANNEL), other)
    vera.commit()
    vera.push()
    team.spark.wire("sync", check=False)
    assert read(team.spark, status=4) == ["the truth"]
    (incident,) = incidents(team.spark, "FORK")
    assert incident["scope"] == CHANNEL


MARKED = b"<<<<<<< Updated upstream\n%s=======\n%s>>>>>>> Stashed changes\n"


def test_a8_conflict_markers_in_the_clone_are_never_committed(team):
    """What an autostash leaves in the work tree when it does not apply."""
    team.mac.send("spark", "one")
    team.settle()
    file = team.mac.segment(CHANNEL)
    held = file.read_bytes()
    file.write_bytes(MARKED % (held, held))
    team.mac.send("spark", "two")
    team.spark.send("mac", "a change of the remote")
    team.spark.wire("sync")
    assert team.mac.wire("sync", check=False).status == 0
    team.sync_and_check()
    assert read(team.spark) == ["one", "two"]
    assert file.read_bytes() == team.remote.show(path(CHANNEL))
    (incident,) = incidents(team.mac)
    assert incident["code"] == "ADOPT_REFUSED"


def test_a11_lines_of_both_sides_meet_after_a_time_apart(team):
    """Ten lines here, half of them appended by hand, and ten at the remote, before the next cycle begins."""
    for n in range(10):
        team.spark.send("mac", f"remote {n}")
    team.spark.wire("sync")
    for n in range(5):
        team.mac.send("spark", f"local {n}")
    end = pin(team.mac).accepted.get(CHANNEL) or Position.start(pin(team.mac).wire, CHANNEL)
    for raw in team.mac.segment(CHANNEL).read_bytes().split(b"\n")[:-1]:
        end = end.after(len(raw) + 1, wire_head(raw))
    with team.mac.segment(CHANNEL).open("ab") as file:
        file.writelines(write(team.mac, CHANNEL, *(f"local {n}" for n in range(5, 10)), after=end))
    team.mac.sent += [f"{CHANNEL}/{n}" for n in range(6, 11)]
    team.sync_and_check()
    assert read(team.mac) == [f"remote {n}" for n in range(10)]
    assert read(team.spark) == [f"local {n}" for n in range(10)]


def wire_head(raw):
    from wire.protocol.line import head

    return head(raw)


def test_a13_no_cycle_ever_shortens_what_a_machine_had(team):
    """Somebody puts older versions, torn ones and junk on the branch, in any order, while both go on sending."""
    chance = random.Random(20261129)
    vera = team.vandal()
    rounds = size(12, 200, "rounds with an older remote version")
    held = {machine.name: oracle.in_clone(machine.clone()) for machine in team.machines}
    for n in range(rounds):
        sender, other = chance.sample(team.machines, 2)
        sender.send(other.name, f"line {n}")
        harm(vera, chance)
        for machine in chance.sample(team.machines, 2):
            machine.wire("sync", check=False)
            now = oracle.in_clone(machine.clone())
            for name, before in held[machine.name].items():
                assert now[name].startswith(before), f"round {n}: {name} of {machine.name}"
            held[machine.name] = now
    for machine in team.machines * 2:
        machine.wire("sync", check=False)
    team.check(attacked=True)
    for machine in team.machines:
        assert incidents(machine, "PREFIX"), "the older version was seen"
        assert machine.wire("verify", "--full").status == 0
        assert len(bodies(machine.wire("tail", "--json", "--all", check=False))) > 0


def harm(vera, chance):
    """Push one of the things that must shorten nothing."""
    vera.sync()
    files = sorted(file for file in vera.path.glob("_coordination/*/*/*.jsonl"))
    if not files:
        return
    file = chance.choice(files)
    data = file.read_bytes()
    lines = data.split(b"\n")[:-1]
    what = chance.choice(["older", "torn", "junk", "empty", "gone", "reordered"])
    if what == "gone":
        file.unlink()
    else:
        file.write_bytes(
            {
                "older": b"".join(raw + b"\n" for raw in lines[: len(lines) // 2]),
                "torn": data[: len(data) * 2 // 3],
                "junk": data + b"junk\n",
                "empty": b"",
                "reordered": b"".join(raw + b"\n" for raw in reversed(lines)),
            }[what]
        )
    vera.commit(what)
    vera.push()


def test_a17_a_clone_without_its_repository_never_touches_the_one_around_it(team):
    """The clone stands inside somebody's repository, and loses its own `.git`."""
    outer = team.mac.root
    gitcmd.git(outer, "init", "--quiet", "-b", "main")
    (outer / "work").write_text("somebody's work\n")
    gitcmd.git(outer, "add", "work")
    gitcmd.git(outer, "commit", "--quiet", "-m", "theirs")
    (outer / "staged").write_text("staged\n")
    gitcmd.git(outer, "add", "staged")
    team.mac.send("spark", "waits")
    parked = team.mac.root / "parked"
    (team.mac.clone() / ".git").rename(parked)
    before = {file: file.read_bytes() for file in sorted((outer / ".git").rglob("*")) if file.is_file()}
    failed = team.mac.wire("sync", check=False)
    assert failed.status == 1
    assert f"there is no repository at {team.mac.clone()}/.git; expected the clone of the wire" in failed.stderr
    team.mac.send("spark", "sending goes on")
    assert team.mac.wire("status", check=False).status != 0
    assert {file: file.read_bytes() for file in sorted((outer / ".git").rglob("*")) if file.is_file()} == before
    (incident,) = incidents(team.mac, "CLONE_STATE")
    assert "wire repair" in incident["next_step"]
    team.mac.wire("repair")
    team.sync_and_check()
    assert read(team.spark) == ["waits", "sending goes on"]
    assert {file: file.read_bytes() for file in sorted((outer / ".git").rglob("*")) if file.is_file()} == before


def test_a20_a_rewritten_line_is_an_incident_however_well_signed(team):
    """Valid JSON, a valid signature of the same author, another content: no proof of integrity."""
    for n in range(3):
        team.mac.send("spark", f"line {n}")
    team.settle()
    old = team.remote.tip()
    start = Position.start(pin(team.mac).wire, CHANNEL)
    rewritten = write(team.mac, CHANNEL, "line 0", "a lie", "line 2", after=start, by=signer(team.mac))
    vera = team.vandal()
    vera.write(path(CHANNEL), b"".join(rewritten))
    new = vera.commit("nothing to see here")
    vera.push()
    seen = team.spark.wire("sync", check=False)
    assert seen.status == 4
    assert read(team.spark, "--all", status=4) == ["line 0", "line 1", "line 2"]
    found = {one["code"]: one for one in incidents(team.spark)}
    assert {"PREFIX", "FORK"} <= found.keys()
    told = str(found["PREFIX"])
    assert old in told, "the commit that had it"
    assert new in told, "the commit that has not"
    assert team.spark.wire("status", check=False).status == 4


@pytest.mark.parametrize("byte", ["first", "middle", "last"])
def test_a20_a_changed_byte_is_seen_and_put_right_by_its_owner(team, byte):
    for n in range(3):
        team.mac.send("spark", f"line {n}")
    team.settle()
    old = team.remote.tip()
    data = bytearray(team.remote.show(path(CHANNEL)))
    at = {"first": 0, "middle": len(data) // 2, "last": len(data) - 2}[byte]
    data[at] ^= 1
    vera = team.vandal()
    vera.write(path(CHANNEL), bytes(data))
    new = vera.commit()
    vera.push()
    assert team.spark.wire("sync", check=False).status == 4
    (incident,) = incidents(team.spark, "PREFIX")
    assert old in str(incident)
    assert new in str(incident)
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert team.remote.show(path(CHANNEL)) != bytes(data)
    team.check(attacked=True)
    assert incidents(team.spark, "PREFIX")[0]["ended"], "over, and still to be read by a person"
