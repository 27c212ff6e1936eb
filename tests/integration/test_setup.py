"""Beginning and joining a wire: what is printed, what is refused, and what a crash leaves."""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.machine import Machine
from support.remote import BareRemote
from support.team import Team, begin, join, pin, read

Machines = Callable[..., Machine]


def test_init_prints_the_checkpoint_and_the_line_for_the_other_machine(machines: Machines, remote: BareRemote) -> None:
    mac, spark = machines("mac"), machines("spark")
    printed = mac.wire("init", remote.url, "--as", "mac").stdout
    checkpoint = next(word for word in printed.split() if word.startswith("1:SHA256:"))
    line = next(line.strip() for line in printed.split("\n") if line.strip().startswith("wire join"))
    assert line == f"wire join {remote.url} --as NAME --trust {checkpoint}"
    spark.wire(*line.replace("NAME", "spark").split()[1:])
    assert mac.wire("trust", "requests").stdout.startswith("spark (agent) SHA256:")


def test_keys_are_private_and_outside_every_clone(team: Team) -> None:
    keys = list((team.mac.wire_home / "keys").rglob("*.key"))
    assert {key.name for key in keys} == {"agent-mac.key", "root-root.key"}
    for key in keys:
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
        assert team.mac.clone() not in key.parents
    assert not any(key.read_bytes() in path.read_bytes() for key in keys for path in _files(team.mac.clone()))


def test_a_repository_with_other_content_gets_an_orphan_branch(machines: Machines, remote: BareRemote) -> None:
    vandal = remote.clone_as_vandal(remote.path.parent / "project")
    vandal.write("README", b"a project\n")
    vandal.commit("project")
    vandal.push()
    mac, spark = machines("mac"), machines("spark")
    assert mac.json("init", remote.url, "--as", "mac")["branch"] == "wire"
    join(mac, spark, remote)
    mac.send("spark", "beside a project")
    mac.wire("sync")
    spark.wire("sync")
    assert read(spark) == ["beside a project"]
    assert set(remote.git("ls-tree", "--name-only", "wire").split()) == {b"_coordination"}
    assert set(remote.git("ls-tree", "--name-only", "main").split()) == {b"README"}
    taken = machines("late").wire("init", remote.url, "--as", "late", "--branch", "main", check=False)
    assert taken.status == 2
    assert "already carries a wire" in taken.stderr


def test_a_second_init_is_told_how_to_join_and_leaves_nothing(team: Team) -> None:
    late = team.new_machine("late")
    refused = late.wire("init", team.remote.url, "--as", "late", check=False)
    assert refused.status == 2
    assert "already carries a wire" in refused.stderr
    assert "wire join" in refused.stderr
    assert not (late.wire_home / "config.toml").exists()
    assert not (late.wire_home / "clones" / "hub").exists()
    assert not (late.wire_home / "state" / "hub").exists()
    again = team.mac.wire("init", team.remote.url, "--as", "mac", check=False)
    assert again.status == 2
    assert "already has the wire 'hub'" in again.stderr


def test_two_that_begin_at_once_end_with_one_root_and_one_clear_error(machines: Machines, remote: BareRemote) -> None:
    both = [machines("mac"), machines("spark")]
    racing = [
        machine.spawn("init", remote.url, "--as", machine.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for machine in both
    ]
    results = [(process.communicate(timeout=60), process.returncode) for process in racing]
    assert sorted(status for _, status in results) == [0, 2], results
    loser = next(i for i, (_, status) in enumerate(results) if status)
    assert b"wire join" in results[loser][0][1]
    assert len(remote.git("rev-list", "--max-parents=0", "main").split()) == 1
    winner = both[1 - loser]
    join(winner, both[loser], remote)
    assert len(winner.json("trust", "show")["agents"]) == 2


def test_init_goes_on_after_a_crash_before_the_push(machines: Machines, remote: BareRemote) -> None:
    mac = machines("mac")
    remote.reject_pushes("not now")
    refused = mac.wire("init", remote.url, "--as", "mac", check=False)
    assert refused.status == 6
    assert "not now" in refused.stderr
    remote.remove_pre_receive()
    mac.wire("init", remote.url, "--as", "mac")
    assert mac.wire("sync").status == 0


def test_an_unreachable_remote_leaves_nothing(machines: Machines, tmp_path: Path) -> None:
    mac = machines("mac")
    missing = mac.wire("init", tmp_path / "nowhere.git", "--as", "mac", check=False)
    assert missing.status == 6
    assert "Traceback" not in missing.stderr
    assert not (mac.wire_home / "config.toml").exists()
    assert not (mac.wire_home / "state" / "nowhere").exists()


def test_join_refuses_another_checkpoint_and_leaves_nothing(team: Team) -> None:
    late = team.new_machine("late")
    other = "1:SHA256:" + "A" * 43
    refused = late.wire("join", team.remote.url, "--as", "late", "--trust", other, check=False)
    assert refused.status == 5
    assert f"expected {other}, found 1:SHA256:" in refused.stderr
    assert not (late.wire_home / "config.toml").exists()
    nonsense = late.wire("join", team.remote.url, "--as", "late", "--trust", "1:SHA256:short", check=False)
    assert nonsense.status == 2
    assert "is no checkpoint" in nonsense.stderr


def test_join_is_safe_to_repeat_and_asks_once(team: Team) -> None:
    late = team.new_machine("late")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    first = late.json("join", team.remote.url, "--as", "late", "--trust", checkpoint)
    again = late.json("join", team.remote.url, "--as", "late", "--trust", checkpoint)
    assert first["fingerprint"] == again["fingerprint"]
    assert len(team.mac.jsonl("trust", "requests")) == 1


def test_a_taken_name_is_refused_with_the_way_out(team: Team) -> None:
    late = team.new_machine("late")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    refused = late.wire("join", team.remote.url, "--as", "spark", "--trust", checkpoint, check=False)
    assert refused.status == 2
    assert "belongs to another key" in refused.stderr
    assert "--as ANOTHER-NAME" in refused.stderr
    late.wire("join", team.remote.url, "--as", "late", "--trust", checkpoint)


def test_approving_compares_the_fingerprint(team: Team) -> None:
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    true, false = team.new_machine("true"), team.new_machine("false")
    prints = [
        machine.json("join", team.remote.url, "--as", "bee", "--trust", checkpoint)["fingerprint"]
        for machine in (true, false)
    ]
    unclear = team.mac.wire("trust", "approve", "bee", check=False)
    assert unclear.status == 2
    assert "2 keys ask to join as 'bee'" in unclear.stderr
    wrong = team.mac.wire("trust", "approve", "bee", "SHA256:" + "A" * 43, check=False)
    assert wrong.status == 2
    assert all(one in wrong.stderr for one in prints)
    before = team.remote.tip()
    nobody = team.mac.wire("trust", "approve", "nobody", check=False)
    assert nobody.status == 2
    assert team.remote.tip() == before
    team.mac.wire("trust", "approve", "bee", "--fingerprint", prints[0])
    true.send("mac", "it is me")
    true.wire("sync")
    team.mac.wire("sync")
    assert read(team.mac) == ["it is me"]
    false.wire("sync", check=False)
    assert false.json("keys", "show", "bee")["status"] == "not approved yet"


def test_approving_asks_and_a_no_changes_nothing(team: Team) -> None:
    late = team.new_machine("late")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    late.wire("join", team.remote.url, "--as", "late", "--trust", checkpoint)
    refused = team.mac.wire("trust", "approve", "late", input="n\n", check=False)
    assert refused.status == 2
    assert "was not approved; nothing was changed" in refused.stderr
    alone = team.mac.wire("trust", "approve", "late", input="", check=False)
    assert alone.status == 2
    assert "nobody is here to answer this question; nothing was changed" in alone.stderr
    done = team.mac.wire("trust", "approve", "late", input="y\n")
    assert "late is enrolled" in done.stdout


def test_what_was_sent_before_the_approval_goes_out_by_itself(team: Team) -> None:
    late = team.new_machine("late")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    fingerprint = late.json("join", team.remote.url, "--as", "late", "--trust", checkpoint)["fingerprint"]
    for n in range(3):
        late.send("mac", f"early {n}")
    waiting = late.wire("sync")
    assert "late is not approved yet, 3 message(s) wait here" in waiting.stderr
    assert not [path for path in team.remote.files() if b"/late/" in os.fsencode(path)]
    team.mac.wire("trust", "approve", "late", "--fingerprint", fingerprint)
    late.wire("sync")
    team.mac.wire("sync")
    assert read(team.mac) == ["early 0", "early 1", "early 2"]
    team.check()


def test_without_the_remote_a_change_of_trust_fails_and_changes_nothing(team: Team) -> None:
    team.remote.path.rename(team.folder / "gone.git")
    before = pin(team.mac)
    failed = team.mac.wire("group", "set", "review", "mac", "spark", check=False)
    assert failed.status == 6
    assert pin(team.mac).trust_version == before.trust_version
    (team.folder / "gone.git").rename(team.remote.path)
    not_root = team.spark.wire("group", "set", "review", "mac", "spark", check=False)
    assert not_root.status == 5
    assert "Traceback" not in not_root.stderr


def test_a_lost_pin_is_no_first_contact_and_is_rebuilt_from_a_checkpoint(team: Team) -> None:
    team.mac.send("spark", "before")
    team.settle()
    assert read(team.spark) == ["before"]
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    for damage in (b"", b"\0" * 100, None):
        file = team.spark.wire_home / "state" / "hub" / "pin.json"
        if damage is None:
            file.unlink()
        else:
            file.write_bytes(damage)
        assert team.spark.wire("sync", check=False).status in (1, 5)
        assert team.spark.wire("tail", check=False).status in (1, 5)
        rebuilt = team.spark.json("trust", "repin", "--checkpoint", checkpoint)
        assert rebuilt["lines"] == 1
        team.spark.wire("sync")
        assert read(team.spark) == []
    fine = team.spark.wire("trust", "repin", "--checkpoint", checkpoint, check=False)
    assert fine.status == 2
    assert "replacing it would give up" in fine.stderr


@pytest.mark.parametrize("name", ["all", "Mac", "a" * 33, "-x", "x-", "trust", "con", "a/b", "ä", ".."])
def test_bad_names_are_refused_before_anything_is_made(machines: Machines, remote: BareRemote, name: str) -> None:
    mac = machines("mac")
    refused = mac.wire("init", remote.url, "--as", name, check=False)
    assert refused.status == 2
    assert not mac.wire_home.exists() or not list(mac.wire_home.iterdir())


def test_begin_returns_a_checkpoint_of_version_one(machines: Machines, remote: BareRemote) -> None:
    assert begin(machines("mac"), remote).startswith("1:SHA256:")


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def test_a_change_of_trust_that_lost_its_push_is_offered_again_and_never_a_second_one(team: Team) -> None:
    late = team.new_machine("late")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    fingerprint = late.json("join", team.remote.url, "--as", "late", "--trust", checkpoint)["fingerprint"]
    team.remote.reject_pushes("not now")
    failed = team.mac.wire("trust", "approve", "late", "--fingerprint", fingerprint, check=False)
    assert failed.status == 6
    assert "not now" in failed.stderr
    version = pin(team.mac).trust_version
    (signed,) = (team.mac.wire_home / "state/hub/signed").glob(f"{version + 1:06d}.*.json")
    offered = signed.read_bytes()
    team.remote.remove_pre_receive()
    # Whatever is changed next, the version that was signed for this number comes first, with the same bytes.
    team.mac.wire("group", "set", "pair", "mac", "late")
    assert team.remote.show(f"_coordination/trust/{version + 1:06d}.json") == offered
    shown = team.mac.json("trust", "show")
    assert shown["version"] == version + 2
    assert sorted(shown["groups"]["pair"]) == ["late", "mac"]
    again = team.mac.wire("trust", "approve", "late", "--fingerprint", fingerprint, check=False)
    assert again.status in (0, 2)
    assert pin(team.mac).trust_version == version + 2


def test_many_changes_of_trust_and_messages_at_once_all_win_in_the_end(team: Team) -> None:
    names = [f"bee-{n}" for n in range(3)]
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    prints = {}
    for name in names:
        machine = team.new_machine(name)
        prints[name] = machine.json("join", team.remote.url, "--as", name, "--trust", checkpoint)["fingerprint"]
    racing = [team.mac.spawn("trust", "approve", name, "--fingerprint", prints[name]) for name in names]
    for n in range(4):
        team.spark.send("mac", f"meanwhile {n}")
        team.spark.wire("sync", check=False)
    assert [process.wait(120) for process in racing] == [0, 0, 0]
    team.settle()
    assert set(names) <= set(team.spark.json("trust", "show")["agents"])
    assert read(team.mac) == [f"meanwhile {n}" for n in range(4)]
    team.check()


def test_a_second_agent_joins_where_the_trust_held_is_older_than_the_checkpoint(team):
    team.mac.wire("group", "set", "review", "mac", "spark")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    assert pin(team.spark).trust_version < pin(team.mac).trust_version
    joined = team.spark.json("join", team.remote.url, "--as", "lee", "--trust", checkpoint)
    team.mac.wire("trust", "approve", "lee", "--fingerprint", joined["fingerprint"])
    team.settle()
    team.check()


def test_ten_words_stand_for_a_fingerprint(team: Team) -> None:
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    late = team.new_machine("late")
    told = late.wire("join", team.remote.url, "--as", "late", "--trust", checkpoint).stdout
    shown = late.json("keys", "show", "late")
    assert shown["words"] in told
    assert len(shown["words"].split()) == 10
    asked = team.mac.json("trust", "requests")
    assert (asked["fingerprint"], asked["words"]) == (shown["fingerprint"], shown["words"])
    assert shown["words"] in team.mac.wire("trust", "requests").stdout
    words = shown["words"].split()
    before = team.remote.tip()
    for given, reason in (
        (words[:2], "fingerprint-short"),
        (["123456"], "fingerprint-short"),
        ([shown["fingerprint"][:13]], "fingerprint-short"),
        ([*words[:9], "zebraa"], "unknown-word"),
        ([*words[:9], "abacus" if words[9] != "abacus" else "abdomen"], "fingerprint"),
    ):
        refused = team.mac.wire("trust", "approve", "late", *given, "--json", check=False)
        assert (refused.status, json.loads(refused.stdout)["reason"]) == (2, reason), given
    assert team.remote.tip() == before
    typed = ", ".join(words).upper()
    assert team.mac.json("trust", "approve", "late", typed)["fingerprint"] == shown["fingerprint"]
    key = team.mac.json("trust", "show")["agents"]["late"]["keys"][0]
    assert (key["fingerprint"], key["words"]) == (shown["fingerprint"], shown["words"])
