"""J4: the next step that an incident names is run to the letter, and things get better. J15: what a refusal shows."""

import re
import shlex
from pathlib import Path

import pytest

from support.checkout import ROOT
from support.team import bodies, end, incidents, path, pin, state, write
from wire.store import incidents as store
from wire.store.incident_codes import CODES

HARMLESS = ("incidents show", "trust show", "status", "verify", "doctor", "keys list", "--version", "trust requests")
"""Commands that only look."""


def told(machine, code):
    """Return the commands that the open incident of a code names."""
    (incident,) = incidents(machine, code)
    assert incident["next_step"], incident
    return re.findall(r"`wire ([^`]+)`", incident["next_step"])


def follow(machine, code):
    """Run what the incident says, as it stands there."""
    commands = told(machine, code)
    assert commands, f"{code} names no command"
    for command in commands:
        result = machine.wire(*shlex.split(command), check=False)
        assert result.status != 2, f"`wire {command}` is no command that can be run\n{result}"
        assert "Traceback" not in result.stderr
        if command.startswith(HARMLESS):
            assert result.out, str(result)
    return commands


ELSEWHERE = {
    "TRUST_FORK": "attacks/test_trust_forks.py::test_the_other_one_is_followed",
    "KEY_RETIRED": "integration/test_revocation.py::test_a_stolen_key",
    "FORK": "attacks/test_keys.py::test_fork_that_is_ended_by_commands",
    "CLONED": "integration/test_presence.py::test_a_second_machine_under_one_key_shows_before_anything_is_sent",
    "TRUST_WITHHELD": "attacks/test_trust.py::test_trust_withheld",
    "AUTH": "cases/test_c_credentials.py::test_c6_an_expired_token_is_told_at_once_and_a_renewed_one_works",
    "HOST_KEY": "cases/test_c_hosts.py::test_c2_an_unknown_host_and_one_that_changed",
    "NETWORK": "cases/test_c_network.py::test_c4_a_hanging_ssh_is_ended_with_all_it_started",
    "TOO_LARGE": "attacks/test_huge_transfers.py::test_a_host_that_leaves_nothing_out_is_told_how",
    "MOVED": "cases/test_r_pinned.py::test_r31_a_remote_that_moved_is_taken_over_by_the_command_that_the_refusal_names",
    "INVITED_TWICE": "integration/test_requests.py::test_two_with_a_code_that_nobody_used_yet",
    "KEY": "cases/test_j_reporting.py::test_j1_a_key_that_cannot_be_used_stops_its_own_lines_and_says_so",
    "UNKNOWN": "cases/test_injected.py::test_any_call_of_a_cycle_may_fail_or_be_the_last",
}
"""Where the step that an incident names is taken in that state and mends it, for codes that this module lacks."""


def commands_of(code):
    """Return the commands that a code's own next step names, without those that only look."""
    looks = (*HARMLESS, "evidence", "remote check", "tail", "send")
    found = re.findall(r"`wire ([^`]+)`", CODES[code].next_step)
    return [command for command in found if not command.startswith(looks)]


def test_j4_every_code_is_raised_and_every_step_is_taken_somewhere():
    product = "".join(
        file.read_text("utf-8") for file in (ROOT / "wire").rglob("*.py") if file.name != "incident_codes.py"
    )
    here = Path(__file__).read_text("utf-8").partition("def vandalise")[2]
    for code in CODES:
        assert re.search(rf'"{code}"|Code\.{code}\b', product), f"nothing raises {code}"
        if code in ELSEWHERE:
            file, _, test = ELSEWHERE[code].partition("::")
            assert f"def {test}(" in (ROOT / "tests" / file).read_text("utf-8"), ELSEWHERE[code]
        else:
            assert not commands_of(code) or f'"{code}"' in here, f"{code}: who does {commands_of(code)}?"


def test_j4_every_command_that_a_code_names_can_be_run(team, tmp_path):
    """As it stands there, with what is meant by a word in capitals; none is misspelt, or of another form."""
    team.mac.send("spark", "one")
    team.settle()
    given = {
        "CHECKPOINT": team.mac.json("trust", "show")["checkpoint"],
        "NAME": "spark",
        "ID": "mac/spark/1",
        "TO": "spark",
        "BODY": "once more",
    }
    facts = {"tip": team.remote.tip(), "path": path("mac/spark"), "offset": 0, "length": 100}
    for code in CODES:
        store.raise_(str(state(team.mac) / "incidents"), code=code, scope="mac/spark", message="as if", evidence=facts)
    for one in incidents(team.mac):
        for command in re.findall(r"`wire ([^`]+)`", one["next_step"]):
            given["FILE"] = str(tmp_path / one["id"])
            words = [given.get(word, word) for word in shlex.split(command)]
            result = team.mac.wire(*words, check=False)
            assert result.status != 2 or one["code"] in ELSEWHERE, (one["code"], str(result))
            assert not re.search("Traceback|error inside wire|next: wire .* --help", result.stderr), str(result)
            assert result.out or result.err, str(result)


def vandalise(team, change):
    vandal = team.vandal()
    change(vandal)
    vandal.commit()
    vandal.push()
    for machine in team.machines[1:]:
        machine.wire("sync", check=False)


def junk(vandal):
    vandal.append(path("mac/spark"), b"not a line\n")


def rewrite(vandal):
    vandal.write(path("mac/spark"), vandal.read(path("mac/spark")).replace(b"one", b"two"))


def copy(vandal):
    vandal.append(path("mac/spark"), vandal.read(path("mac/spark")).split(b"\n")[0] + b"\n")


def elsewhere(vandal):
    vandal.write("_coordination/spark/mac/000001.jsonl", vandal.read(path("mac/spark")))


def trust(vandal):
    vandal.write("_coordination/trust/000009.json", b"{}")


@pytest.mark.parametrize(
    ("change", "code"),
    [(junk, "SIGNATURE"), (rewrite, "PREFIX"), (copy, "REPLAY"), (elsewhere, "MISPLACED"), (trust, "TRUST")],
)
def test_j4_of_bytes_that_do_not_hold(team, change, code):
    team.mac.send("spark", "one")
    team.settle()
    vandalise(team, change)
    follow(team.spark, code)
    # What the text promises beside the commands: it goes away when the owner syncs, or sends again.
    team.mac.send("spark", "again")
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert end(team.spark, "mac/spark").seq == 2
    for incident in incidents(team.spark, code):
        team.spark.wire("incidents", "resolve", incident["id"])
    team.spark.wire("sync")
    assert incidents(team.spark, code) == []
    assert pin(team.spark).accepted == pin(team.mac).accepted
    assert bodies(team.spark.wire("tail", "--json", check=False)) == ["one", "again"]


def test_j4_of_a_forced_history(team):
    first = team.remote.tip()
    team.mac.send("spark", "one")
    team.settle()
    team.remote.git("update-ref", f"refs/heads/{team.remote.branch}", first)
    team.spark.wire("sync", check=False)
    assert pin(team.spark).frozen is not None
    assert "heal" in follow(team.spark, "FORCED")
    assert pin(team.spark).frozen is None
    assert bodies(team.spark.wire("tail", "--json", check=False)) == ["one"]
    team.mac.wire("sync", check=False)
    assert pin(team.mac).frozen is None
    team.check()


def test_j4_of_a_gap(team):
    """Lines two ahead of what is there: their owner's next sync brings the one between."""
    team.mac.send("spark", "one")
    team.settle()
    between, beyond = write(team.mac, "mac/spark", "two", "three")
    vandalise(team, lambda vandal: vandal.append(path("mac/spark"), beyond))
    follow(team.spark, "GAP")
    with team.mac.segment("mac/spark").open("ab") as file:
        file.writelines([between, beyond])
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert end(team.spark, "mac/spark").seq == 3


@pytest.mark.parametrize("code", ["NOT_FOUND", "REJECTED"])
def test_j4_of_a_remote_that_does_not_take_it(team, code):
    team.mac.send("spark", "one")
    away = team.remote.path.with_name("away.git")
    if code == "REJECTED":
        team.remote.reject_pushes("not on a Sunday")
    else:
        team.remote.path.rename(away)
    team.mac.wire("sync", check=False)
    # The first part is a person's: the rules, or the way to the remote.
    if code == "REJECTED":
        assert "not on a Sunday" in team.mac.wire("incidents", "show", incidents(team.mac, code)[0]["id"]).stdout
        team.remote.remove_pre_receive()
    else:
        away.rename(team.remote.path)
    assert "sync" in follow(team.mac, code)
    assert incidents(team.mac, code) == []
    team.sync_and_check()


def test_j4_of_a_journal_that_was_damaged(team):
    team.mac.send("spark", "one")
    team.settle()
    journal = state(team.mac) / "journal" / "mac" / "spark" / "000001.jsonl"
    journal.write_bytes(b"\0" * journal.stat().st_size)
    refused = team.mac.wire("send", "spark", "two", check=False)
    assert "`wire sync`" in refused.stderr
    team.mac.wire("sync", check=False)
    team.mac.send("spark", "two")
    assert any(command.startswith("incidents ack ") for command in follow(team.mac, "STATE_LOST"))
    assert team.mac.wire("status", check=False).status == 1, "no daemon runs, and nothing else is wrong"
    assert team.mac.wire("verify").status == 0
    team.settle()
    assert bodies(team.spark.wire("tail", "--json", check=False)) == ["one", "two"]
    team.check()


ODD = {
    "it begins with a byte order mark": lambda line: b"\xef\xbb\xbf" + line,
    "it ends in CR LF": lambda line: line[:-1] + b"\r\n",
    "it holds NUL bytes": lambda line: b"\0" + line,
    "it has another protocol version": lambda line: line.replace(b'{"v":1,', b'{"v":2,'),
    "it is torn": lambda line: line[:-150] + b"\n",
    "unterminated bytes at the end of the segment": lambda line: line[:-1],
}
"""What is odd about a line, and the guess at it that people are shown."""


def test_j15_a_refusal_says_where_and_why_and_shows_how_it_begins(team):
    """File, line, byte, the first 40 bytes and a guess at the cause: for the first odd line of the file."""
    team.mac.send("spark", "one")
    team.mac.send("spark", "two")
    team.settle()
    begin = team.remote.show(path("mac/spark"))
    (line,) = write(team.mac, "mac/spark", "three")
    vera = team.vandal()
    for guess, change in ODD.items():
        vera.sync()
        vera.write(path("mac/spark"), begin + change(line))
        vera.commit()
        vera.push()
        told = team.spark.wire("sync", check=False)
        assert re.search(f"the first is line 3 of segment 1: (not a signed line: )?{guess}", told.stderr), told
        (incident,) = incidents(team.spark, "SIGNATURE")
        shown = team.spark.wire("incidents", "show", incident["id"])
        for fact in (f"path: {path('mac/spark')}", "line: 3", f"offset: {len(begin)}"):
            assert f"  {fact}\n" in shown.stdout, (guess, shown.stdout)
        begins = repr(change(line)[:40])[2:-1].replace("\\", "\\\\")
        assert f"'start': '{begins}'" in shown.stdout, (guess, shown.stdout)
        assert not re.search(rb"[\0\r]", shown.out)
