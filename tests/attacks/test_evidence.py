"""What one machine found, shown to somebody who has joined nothing: a file, the tool and a checkpoint are enough.

Evidence is believed for its signatures alone. Whoever makes a file can claim what he likes; what nobody signed is said
to be his word, and what was changed in a file proves nothing any more.
"""

import itertools
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import hostile_host as hostile
from support.besieged import Siege, all_incidents, pin, signer, site
from support.machine import Machine, Result
from support.moves import ELSEWHERE, MOVES
from support.moves_signed import of_a_revoked_key
from wire.checking import verify_file
from wire.errors import IntegrityError, TrustError, UsageError
from wire.keys.exhibits import Claim, Exhibit, read, write
from wire.keys.trust import sign_document
from wire.store.incident_codes import INTEGRITY_CODES

CHANNEL = "mac/spark"


@pytest.fixture
def stranger(machines: Callable[..., Machine]) -> Machine:
    """Return a machine that has joined no wire."""
    return machines("stranger")


def _checkpoint(siege: Siege) -> str:
    shown: str = siege.mac.json("trust", "show")["checkpoint"]
    return shown


def _evidence(machine: Machine, code: str, file: Path) -> Path:
    (incident,) = all_incidents(machine, code)[:1]
    machine.wire("evidence", incident.id, "-o", str(file))
    return file


def _checked(stranger: Machine, file: Path, checkpoint: str) -> tuple[int, dict[str, Any]]:
    result: Result = stranger.wire("verify", str(file), "--trust", checkpoint, "--json", check=False)
    return result.status, json.loads(result.out)


def _proved(found: dict[str, Any]) -> set[str]:
    return {proof["code"] for proof in found["proved"]}


def _forked(siege: Siege) -> Machine:
    ELSEWHERE["another line for some"](siege)
    siege.sync(siege.lee, siege.spark)
    return siege.spark


def _seen_by(name: str, title: str) -> Callable[[Siege], Machine]:
    """Return what makes a move, lets a machine see it, and returns that one."""

    def happen(siege: Siege) -> Machine:
        MOVES[title](siege)
        siege.sync(siege.machines[name])
        return siege.machines[name]

    return happen


def _retired(siege: Siege) -> Machine:
    of_a_revoked_key(siege)
    siege.sync(siege.spark)
    return siege.spark


def _cut(siege: Siege) -> Machine:
    siege.retire("mac", siege.ends("mac", spark=(2, _head(siege, 2))))
    siege.sync(siege.spark)
    return siege.spark


def _head(siege: Siege, seq: int) -> str:
    from wire.protocol.line import head

    return head(siege.host.lines(CHANNEL)[seq - 1])


def _two_documents(siege: Siege) -> Machine:
    ELSEWHERE["two trust documents with one number"](siege)
    siege.sync(siege.mac)
    return siege.mac


def _too_long_a_subject(siege: Siege) -> Machine:
    author = siege.host.author(CHANNEL, signer(siege.mac))
    siege.host.append(CHANNEL, author.line(middle=b'"subject":"%s",' % (b"x" * 201)))
    siege.sync(siege.spark)
    return siege.spark


PROVED: dict[str, tuple[Callable[[Siege], Machine], str]] = {
    "a fork": (_forked, "FORK"),
    "a line of a retired key": (_retired, "KEY_RETIRED"),
    "lines that were cut": (_cut, "KEY_RETIRED"),
    "a line that cannot be read": (_seen_by("spark", "lines that nobody can read"), "SCHEMA"),
    "a trust version that is withheld": (_seen_by("spark", "a new trust version is held back"), "TRUST_WITHHELD"),
    "two trust documents with one number": (_two_documents, "TRUST_FORK"),
    "a member that is too long": (_too_long_a_subject, "SIZE"),
    "one key on two machines": (_seen_by("mac", "a second machine under one key"), "CLONED"),
}


SCOPES = {
    **dict.fromkeys(("SHAPE", "TRUST", "TRUST_FORK", "TRUST_WITHHELD", "FORCED", "CLONED"), "wire"),
    "MISPLACED": "mac/lee",
    "PRESENCE": "refs/wire/presence/mac",
    "STATE_LOST": "spark/mac",
}
"""What is concerned, where it is not the channel that nearly all is done to."""
EXHIBITS = {
    **dict.fromkeys(("SIGNATURE", "KEY_UNKNOWN", "TRUST", "PRESENCE", "GAP", "MISPLACED", "REPLAY", "PREFIX"), 1),
    "STATE_LOST": 1,
}
"""How many pieces there are at least to show, of what no signature proves."""


def test_there_is_evidence_of_every_code() -> None:
    shown = {code for _, code in (*PROVED.values(), *UNPROVED.values())} | {"SPLIT_VIEW"}
    assert shown == set(INTEGRITY_CODES)


def _told(machine: Machine, code: str) -> None:
    """Fail unless an incident names exactly what is concerned, and what helps."""
    (incident, *_) = all_incidents(machine, code)
    assert incident.scope == SCOPES.get(code, CHANNEL)
    assert incident.next_step
    assert incident.message
    for command in re.findall(r"`wire ([^`]+)`", incident.next_step):
        words = itertools.takewhile(lambda word: word.islower() and not word.startswith(("-", "i-")), command.split())
        result = machine.wire(*words, "--help", check=False)
        assert result.status == 0, f"`wire {command}` is no command"


@pytest.mark.parametrize("title", PROVED)
def test_evidence_that_proves_its_claim(siege: Siege, stranger: Machine, tmp_path: Path, title: str) -> None:
    happen, code = PROVED[title]
    checkpoint = _checkpoint(siege)
    machine = happen(siege)
    _told(machine, code)
    file = _evidence(machine, code, tmp_path / "evidence")
    status, found = _checked(stranger, file, checkpoint)
    assert status == 0, found
    assert found["claim"]["code"] == code
    assert code in _proved(found)
    assert found["unknown"]
    assert file.stat().st_mode & 0o077 == 0, "it holds messages"


def _outside(siege: Siege) -> None:
    siege.host.commit({"README.md": b"mine\n"})


def _no_trust(siege: Siege) -> None:
    version, raw, signatures = siege.host.trust
    siege.host.put_trust(version + 1, raw, signatures)


def _of_nobody(siege: Siege) -> None:
    siege.host.append(CHANNEL, siege.host.author(CHANNEL).line())
    siege.sync(siege.spark, siege.spark)


def _shortened(siege: Siege) -> None:
    siege.host.truncate(CHANNEL, 2)


def _forgotten(siege: Siege) -> None:
    backup = siege.folder / "backup"
    siege.spark.close()
    shutil.copytree(siege.spark.wire_home, backup, symlinks=True)
    siege.send("spark", "mac", "that it will forget")
    siege.sync(siege.spark)
    siege.spark.close()
    shutil.rmtree(siege.spark.wire_home)
    shutil.copytree(backup, siege.spark.wire_home, symlinks=True)


UNPROVED: dict[str, tuple[Callable[[Siege], None], str]] = {
    "a file that is none of the wire's": (_outside, "SHAPE"),
    "a trust document that does not count": (_no_trust, "TRUST"),
    "a line of a key that nobody knows": (_of_nobody, "KEY_UNKNOWN"),
    "a line after a hole": (MOVES["a line from the far future of its channel"], "GAP"),
    "an old presence again": (MOVES["an old presence is put back"], "PRESENCE"),
    "lines that their owner had forgotten": (_forgotten, "STATE_LOST"),
    "bytes that nobody signed": (MOVES["a junk line"], "SIGNATURE"),
    "a line in a place that it was not signed for": (MOVES["squatted with lines of another channel"], "MISPLACED"),
    "a copy": (MOVES["a copy of an old line"], "REPLAY"),
    "lines that the remote lacked": (_shortened, "PREFIX"),
    "a replaced history": (MOVES["an older mirror is restored"], "FORCED"),
}


@pytest.mark.parametrize("title", UNPROVED)
def test_evidence_of_what_nobody_signs(siege: Siege, stranger: Machine, tmp_path: Path, title: str) -> None:
    # What a host showed is no one's signature: the check shows what there is, and does not call it proved.
    happen, code = UNPROVED[title]
    happen(siege)
    siege.sync(siege.spark)
    _told(siege.spark, code)
    file = _evidence(siege.spark, code, tmp_path / "evidence")
    status, found = _checked(stranger, file, _checkpoint(siege))
    assert (status, found["holds"], found["proved"]) == (1, False, [])
    assert len(found["shown"]) >= EXHIBITS.get(code, 0), "the bytes themselves"
    text = stranger.wire("verify", str(file), "--trust", _checkpoint(siege), check=False).out.decode()
    assert f"no signature proves {code}: that is the word of who made the file" in text
    if code == "PREFIX":
        assert sum(one["signed"] for one in found["shown"]) == 2, "the lines that were gone"


def test_evidence_of_a_split_view(siege: Siege, stranger: Machine, tmp_path: Path) -> None:
    _forked(siege)
    siege.send("spark", "mac", "what spark has seen of mac's goes along")
    siege.settle()
    file = _evidence(siege.lee, "SPLIT_VIEW", tmp_path / "evidence")
    status, found = _checked(stranger, file, _checkpoint(siege))
    assert (status, "SPLIT_VIEW" in _proved(found)) == (0, True), found


def test_evidence_that_somebody_changed(siege: Siege, tmp_path: Path, stranger: Machine) -> None:
    machine = _forked(siege)
    checkpoint = _checkpoint(siege)
    honest = _evidence(machine, "FORK", tmp_path / "evidence").read_bytes()
    bundle = read(honest)
    assert write(bundle) == honest

    def checked(**changes: Any) -> Any:
        from dataclasses import replace

        return verify_file(write(replace(bundle, **changes)), checkpoint=checkpoint, environ=stranger.env)

    # One byte of a line: nobody signed that.
    spoiled = tuple(Exhibit(e.kind, e.data.replace(b"thief", b"chief"), e.found) for e in bundle.exhibits)
    assert not checked(exhibits=spoiled).holds
    # Another claim beside the same bytes: that is not what they prove.
    other = checked(claim=Claim("KEY_RETIRED", CHANNEL))
    assert not other.holds
    assert {proof.code for proof in other.proved} == {"FORK"}
    # A trust that the maker began himself, with keys of his own.
    with pytest.raises(TrustError):
        checked(trust=bundle.trust[:1])
    own = siege.host.key
    newest = bundle.trust[-1][0]
    with pytest.raises(TrustError):
        checked(trust=(*bundle.trust[:-1], (newest, sign_document(newest, own))))
    with pytest.raises(IntegrityError):
        verify_file(honest.replace(b'"exhibits"', b'"exhibit"'), checkpoint=checkpoint, environ=stranger.env)


def test_evidence_of_another_wire(siege: Siege, stranger: Machine, tmp_path: Path) -> None:
    machine = _forked(siege)
    file = _evidence(machine, "FORK", tmp_path / "evidence")
    version, _, _ = _checkpoint(siege).partition(":")
    result = stranger.wire("verify", str(file), "--trust", f"{version}:SHA256:{'A' * 43}", "--json", check=False)
    assert (result.status, json.loads(result.out)["reason"]) == (5, "checkpoint")
    result = stranger.wire("verify", str(file), "--json", check=False)
    assert (result.status, json.loads(result.out)["reason"]) == (2, "trust-needed")
    # Who has joined the wire needs no checkpoint: the pin is one.
    assert siege.lee.wire("verify", str(file)).status == 0


def test_evidence_of_a_breakdown(siege: Siege) -> None:
    from wire.store import incidents

    places = site(siege.mac).places
    one = incidents.raise_(places.incidents_dir, code="NETWORK", scope="wire", message="down")
    result = siege.mac.wire("evidence", one.id, "--json", check=False)
    assert (result.status, json.loads(result.out)["reason"]) == (2, "no-evidence")


# Lines, and repositories that were never joined


def test_a_line_by_itself(siege: Siege, stranger: Machine, tmp_path: Path) -> None:
    checkpoint = _checkpoint(siege)
    lines = siege.host.lines(CHANNEL)
    file = tmp_path / "line"
    how = ("verify", str(file), "--trust", checkpoint, "--repo", siege.remote.url)
    for data in (lines[1], lines[1] + b"\n", b"\n".join(lines) + b"\n"):
        file.write_bytes(data)
        assert stranger.wire(*how).status == 0
    assert siege.lee.wire("verify", str(file)).status == 0
    bad = {
        "changed": lines[1].replace(b"number", b"numbed"),
        "of nobody": hostile.with_signature(hostile.signed_part(lines[1]), "A" * 86 + "==")[:-1],
        "torn": lines[1][:-1],
        "with a hole": lines[0] + b"\n" + lines[2],
    }
    for what, data in bad.items():
        file.write_bytes(data)
        assert stranger.wire(*how, check=False).status == 4, what
    with pytest.raises(UsageError, match="nothing says which trust counts"):
        verify_file(lines[0], checkpoint=checkpoint, environ=stranger.env)


def test_a_repository_that_was_never_joined(siege: Siege, stranger: Machine) -> None:
    checkpoint = _checkpoint(siege)
    how = ("verify", "--repo", siege.remote.url, "--trust", checkpoint, "--json")
    found = json.loads(stranger.wire(*how).out)
    assert (found["lines"], found["past"]) == (len(siege.sent), [])
    assert {name: end["seq"] for name, end in found["channels"].items()} == {
        name: end.seq for name, end in pin(siege.mac).accepted.items()
    }
    assert not list(stranger.wire_home.rglob("*.git")), "nothing is kept"
    assert not (stranger.wire_home / "config.toml").exists()
    siege.host.append(CHANNEL, b"junk\n")
    siege.host.rewrite("spark/mac", 2)
    result = stranger.wire(*how, check=False)
    codes = {(one["code"], one["scope"]) for one in json.loads(result.out)["findings"]}
    assert result.status == 4
    assert {("SIGNATURE", CHANNEL), ("SIGNATURE", "spark/mac")} <= codes


def test_a_repository_with_a_past(siege: Siege, stranger: Machine) -> None:
    # A line was rewritten for a second, and a fork was pushed over mac's line 5: the tip looks innocent, the way to it
    # does not.
    siege.host.flash(lambda: siege.host.rewrite("spark/mac", 2))
    _forked(siege)
    how = ("verify", "--repo", siege.remote.url, "--trust", _checkpoint(siege), "--json")
    found = json.loads(stranger.wire(*how).out)
    assert found["findings"] == []
    past = {(one["code"], one["scope"]) for one in found["past"]}
    assert {("PREFIX", "spark/mac"), ("SIGNATURE", "spark/mac"), ("FORK", CHANNEL)} <= past


def test_a_repository_of_one_commit(siege: Siege, stranger: Machine) -> None:
    # Squashed, and nothing is missing: there is no way to look at, and the lines speak for themselves.
    siege.host.squash()
    how = ("verify", "--repo", siege.remote.url, "--trust", _checkpoint(siege), "--json")
    found = json.loads(stranger.wire(*how).out)
    assert (found["lines"], found["findings"], found["past"]) == (len(siege.sent), [], [])


def test_a_repository_that_lacks_what_others_acknowledge(siege: Siege, stranger: Machine) -> None:
    # The last lines of a channel are withheld from a newcomer; an answer to them names their number.
    siege.send("spark", "mac", "with what spark has of mac's")
    siege.settle()
    siege.host.truncate(CHANNEL, 2)
    how = ("verify", "--repo", siege.remote.url, "--trust", _checkpoint(siege), "--json")
    result = stranger.wire(*how, check=False)
    assert result.status == 4
    assert ("GAP", CHANNEL) in {(one["code"], one["scope"]) for one in json.loads(result.out)["findings"]}


def test_a_repository_with_a_revoked_key(siege: Siege, stranger: Machine) -> None:
    # What was acknowledged and cut since is not withheld: nobody is accused.
    siege.send("spark", "mac", "with what spark has of mac's")
    siege.settle()
    checkpoint = _checkpoint(siege)
    siege.retire("mac", siege.ends("mac", spark=(2, _head(siege, 2))))
    how = ("verify", "--repo", siege.remote.url, "--trust", checkpoint, "--json")
    result = stranger.wire(*how, check=False)
    assert {one["code"] for one in json.loads(result.out)["findings"]} == {"KEY_RETIRED"}


def test_a_repository_of_another_wire(siege: Siege, stranger: Machine) -> None:
    other = f"1:SHA256:{'A' * 43}"
    result = stranger.wire("verify", "--repo", siege.remote.url, "--trust", other, "--json", check=False)
    assert (result.status, json.loads(result.out)["reason"]) == (5, "checkpoint")
    result = stranger.wire("verify", "--repo", siege.remote.url, "--json", check=False)
    assert (result.status, json.loads(result.out)["reason"]) == (2, "trust-needed")
