"""Incidents: counted and not repeated, bounded whatever a stranger does, and in nobody's way."""

import json
import os
import re
import stat
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sizes import size
from support.small_disk import on_small_disk
from wire.errors import Busy, StoreError, UsageError
from wire.protocol.codes import Code
from wire.store import incidents
from wire.store.evidence import bounded
from wire.store.files import locked
from wire.store.incident_codes import CODES, INTEGRITY_CODES, OPERATIONAL_CODES
from wire.store.incidents import Incident

RAISERS = size(6, 50, "processes raising one incident at once")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "incidents")


def gap(folder: str, now: str = "2026-11-29T11:20:00.000Z", **rest: Any) -> Incident:
    values: dict[str, Any] = {"code": "GAP", "scope": "mac/spark", "message": "line 9 where 7 is next", "now": now}
    return incidents.raise_(folder, **{**values, **rest})


def records(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


# The table of codes


def test_every_code_of_the_protocol_is_about_bytes_that_do_not_hold() -> None:
    assert {str(code) for code in Code} == INTEGRITY_CODES
    assert INTEGRITY_CODES.isdisjoint(OPERATIONAL_CODES)
    assert set(CODES) == INTEGRITY_CODES | OPERATIONAL_CODES


def test_every_next_step_can_be_filled_in_and_says_something() -> None:
    for code, info in CODES.items():
        step = info.next_step.format(id="i-0123456789ab", scope="mac/spark", subject="x")
        assert "{" not in step, code
        assert len(step) > 20, code
        assert info.title[0].islower(), code


# Raising, counting, ending


def test_a_new_one(folder: str) -> None:
    found = gap(folder, evidence={"seq": 9, "tip": "ab" * 20})
    assert found == Incident(
        id=incidents.incident_id("GAP", "mac/spark"),
        code="GAP",
        scope="mac/spark",
        subject="",
        first="2026-11-29T11:20:00.000Z",
        last="2026-11-29T11:20:00.000Z",
        count=1,
        evidence={"seq": 9, "tip": "ab" * 20},
        message="line 9 where 7 is next",
        next_step=CODES["GAP"].next_step,
        state="open",
        ended=None,
        published=None,
    )
    assert re.fullmatch("i-[0-9a-f]{12}", found.id)
    assert incidents.list_(folder) == [found]
    assert incidents.get(folder, found.id) == incidents.get(folder, found.id[:6]) == found
    assert incidents.find(folder, "GAP", "mac/spark") == found
    assert incidents.find(folder, "GAP", "mac/spark", "other") is None
    path = os.path.join(folder, records(folder)[0])
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_a_repeat_is_counted_and_keeps_the_newest(folder: str) -> None:
    gap(folder, evidence={"n": 1})
    again = gap(folder, now="2026-11-29T11:21:00.000Z", message="line 10", evidence={"n": 2})
    assert (again.count, again.first, again.last) == (2, "2026-11-29T11:20:00.000Z", "2026-11-29T11:21:00.000Z")
    assert (again.message, again.evidence) == ("line 10", {"n": 2})
    assert len(records(folder)) == 1


def test_code_scope_and_subject_tell_them_apart(folder: str) -> None:
    for code, scope, subject in [("GAP", "a/b", ""), ("FORK", "a/b", ""), ("GAP", "a/c", ""), ("GAP", "a/b", "x")]:
        gap(folder, code=code, scope=scope, subject=subject)
    assert [one.count for one in incidents.list_(folder)] == [1, 1, 1, 1]


def test_an_unknown_code_is_a_mistake_of_the_caller(folder: str) -> None:
    with pytest.raises(ValueError, match=r"'\.\./X' is not an incident code"):
        gap(folder, code="../X")


def test_its_own_next_step_is_taken_as_it_is(folder: str) -> None:
    assert gap(folder, next_step="run `chmod 600 {x}`").next_step == "run `chmod 600 {x}`"
    forked = gap(folder, code="FORK")
    assert f"`wire evidence {forked.id} -o FILE`" in forked.next_step
    assert "mac/spark stands still" in forked.next_step


@pytest.mark.parametrize("state", ["open", "acked", "resolved"])
@pytest.mark.parametrize("ended", [False, True])
def test_found_again(folder: str, state: str, ended: bool) -> None:
    one = gap(folder)
    if state != "open":
        {"acked": incidents.ack, "resolved": incidents.resolve}[state](folder, one.id)
    if ended:
        incidents.end(folder, "GAP", "mac/spark")
    again = gap(folder)
    assert again.ended is None
    # Known and going on: stays known. Anything else is news.
    assert again.state == ("acked" if state == "acked" and not ended else "open")
    assert again.count == 2


def test_the_end_of_a_breakdown_resolves_it_and_of_the_rest_does_not(folder: str) -> None:
    gap(folder)
    gap(folder, code="NETWORK", scope="wire")
    gap(folder, code="AUTH", scope="wire", subject="fetch")
    gap(folder, code="AUTH", scope="wire", subject="push")
    now = "2026-11-29T12:00:00.000Z"
    assert [one.id for one in incidents.end(folder, "AUTH", "wire", "push", now=now)] == [
        incidents.incident_id("AUTH", "wire", "push")
    ]
    assert incidents.end(folder, ("AUTH", "NETWORK"), "mac/spark") == []
    assert len(incidents.end(folder, ("AUTH", "NETWORK", "GAP"), "wire", now=now)) == 2
    assert len(incidents.end(folder, "GAP", "mac/spark", now=now)) == 1
    assert incidents.end(folder, ("AUTH", "NETWORK", "GAP"), "wire") == []
    assert {(one.code, one.subject): (one.state, one.ended) for one in incidents.list_(folder)} == {
        ("GAP", ""): ("open", now),
        ("NETWORK", ""): ("resolved", now),
        ("AUTH", "fetch"): ("resolved", now),
        ("AUTH", "push"): ("resolved", now),
    }


def test_an_end_without_a_beginning_touches_nothing(folder: str, tmp_path: Path) -> None:
    assert incidents.end(folder, "NETWORK", "wire") == []
    assert incidents.list_(folder) == []
    assert os.listdir(tmp_path) == []
    gap(folder)
    with locked(folder, what="the test"):
        assert incidents.end(folder, "NETWORK", "wire") == []


def test_a_person_decides(folder: str) -> None:
    one = gap(folder)
    assert incidents.ack(folder, one.id[:8]).state == "acked"
    assert incidents.resolve(folder, one.id, now="2026-11-29T12:00:00.000Z").ended == "2026-11-29T12:00:00.000Z"
    assert incidents.mark_published(folder, one.id, now="2026-11-29T12:00:00.000Z").published
    assert gap(folder).published == "2026-11-29T12:00:00.000Z"
    for wanted in ("i-", "", "x"):
        gap(folder, code="FORK")
        with pytest.raises(UsageError) as caught:
            incidents.ack(folder, wanted)
        assert caught.value.reason == "incident-unknown"


def test_what_was_over_and_is_there_again_is_told_again_but_not_twice_a_day(folder: str) -> None:
    told = "2026-11-29T12:00:00.000Z"
    one = gap(folder, now=told)
    incidents.mark_published(folder, one.id, now=told)
    assert gap(folder, now="2026-12-03T08:00:00.000Z").published == told, "it goes on, and was told"
    incidents.end(folder, "GAP", one.scope, now="2026-11-29T13:00:00.000Z")
    assert gap(folder, now="2026-11-29T14:00:00.000Z").published == told
    incidents.resolve(folder, one.id, now="2026-11-30T00:00:00.000Z")
    assert gap(folder, now="2026-11-30T00:00:01.000Z").published is None


def test_concerning(folder: str) -> None:
    gap(folder)
    gap(folder, code="TRUST", scope="wire")
    gap(folder, code="NETWORK", scope="wire")
    gap(folder, code="FORK", scope="spark/mac")
    gap(folder, code="CORRUPT", scope="mac/spark")
    assert {one.code for one in incidents.concerning(folder, ["mac/spark"])} == {"GAP", "TRUST"}
    assert {one.code for one in incidents.concerning(folder, ["spark/mac", "x/y"])} == {"FORK", "TRUST"}
    incidents.ack(folder, incidents.incident_id("TRUST", "wire"))
    assert incidents.concerning(folder, []) == []
    assert incidents.concerning(os.path.join(folder, "none"), ["mac/spark"]) == []


RAISE = """
import sys
from wire.store import incidents
for _ in range(20):
    incidents.raise_(sys.argv[1], code="GAP", scope="a/b", message="x")
"""


def test_no_repeat_is_lost_between_processes(folder: str) -> None:
    raisers = [subprocess.Popen([sys.executable, "-c", RAISE, folder]) for _ in range(RAISERS)]
    assert [raiser.wait() for raiser in raisers] == [0] * RAISERS
    assert [one.count for one in incidents.list_(folder)] == [20 * RAISERS]


def test_listing_waits_for_nobody(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gap(folder)
    Path(folder, "FORK.i-000000000000.json").write_bytes(b"")
    monkeypatch.setattr(incidents, "_SHORT_WAIT", 0.05)
    monkeypatch.setattr(incidents, "_WAIT", 0.05)
    with locked(folder, what="the test"):
        assert {one.code for one in incidents.list_(folder)} == {"GAP", "CORRUPT"}
        assert [one.code for one in incidents.concerning(folder, ["mac/spark"])] == ["GAP"]
        with pytest.raises(Busy, match="the incidents"):
            gap(folder)


# Bounds


def test_evidence_is_bounded(folder: str) -> None:
    line = b'{"from":"\x1b[31mmac"}' + b"x" * 100_000
    found = gap(
        folder,
        evidence={
            "line": line,
            "reason": "é" * 10_000,
            "short": "\x1b[2J",
            "list": [1, None, True, b"\0\xff", {"deep": ("a", {3, 1})}],
            "long list": list(range(10_000)),
            "odd": Path("/x"),
            "n" * 500: 1,
        },
    )
    assert found.evidence["line"] == {
        "sha256": sha256(line).hexdigest(),
        "bytes": len(line),
        "start": '{"from":"\\x1b[31mmac"}' + "x" * 21,
    }
    assert found.evidence["reason"].endswith("… (10000 characters)")
    assert found.evidence["short"] == "\x1b[2J"
    assert found.evidence["list"][3]["start"] == "\\x00\\xff"
    assert found.evidence["list"][4] == {"deep": ["a", [1, 3]]}
    assert found.evidence["long list"].startswith("[0, 1, 2")
    assert found.evidence["odd"] == "/x"
    assert found.evidence["omitted"] == 1
    assert all(len(json.dumps(value)) <= 4200 for value in found.evidence.values())
    assert incidents.list_(folder) == [found]


def test_a_whole_record_is_bounded(folder: str) -> None:
    big = "\x00\udcff" * 100_000
    found = gap(
        folder,
        scope=big,
        subject=big,
        message=big,
        next_step=big,
        evidence={f"{n}{big}"[:100]: big for n in range(1000)},
    )
    assert os.path.getsize(os.path.join(folder, records(folder)[0])) <= 65_536
    assert found.evidence["omitted"] > 900
    assert len(json.dumps(bounded({f"{n:04d}" + "é" * 120: n for n in range(1000)}))) <= 32_768
    assert incidents.list_(folder) == [found]
    assert incidents.find(folder, "GAP", big, big) == found
    assert gap(folder, scope=big, subject=big).count == 2
    assert len(incidents.end(folder, "GAP", big, big)) == 1


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON_LIKE, max_size=4))
def test_any_evidence_can_be_kept(evidence: dict[str, Any]) -> None:
    kept = bounded(evidence)
    text = json.dumps(kept)
    assert len(text) <= 40_000
    assert json.dumps(json.loads(text)) == text


def test_a_vandal_cannot_fill_the_disk_with_incidents(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents, "MOST_PER_CODE", 10)
    for number in range(30):
        gap(folder, subject=str(number), evidence={"n": number})
    found = incidents.list_(folder)
    assert len(found) == 11
    folded = incidents.find(folder, "GAP", "wire", "further ones, counted here")
    assert folded is not None
    assert (folded.count, folded.evidence) == (20, {"n": 29})
    assert gap(folder, subject="3").count == 2
    assert gap(folder, code="FORK").count == 1


def test_the_oldest_resolved_one_makes_room(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents, "MOST_PER_CODE", 3)
    for number in range(3):
        gap(folder, subject=str(number), now=f"2026-11-29T11:0{number}:00.000Z")
    for number in (2, 1):
        incidents.resolve(folder, incidents.incident_id("GAP", "mac/spark", str(number)))
    gap(folder, subject="new")
    assert {one.subject for one in incidents.list_(folder)} == {"0", "2", "new"}


# Damage


GOOD = json.dumps(
    {
        "id": incidents.incident_id("FORK", "a/b"),
        "code": "FORK",
        "scope": "a/b",
        "subject": "",
        "first": "t",
        "last": "t",
        "count": 1,
        "evidence": {},
        "message": "m",
        "next_step": "n",
        "state": "open",
        "ended": None,
        "published": None,
    }
)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("", id="0 bytes"),
        pytest.param("\0" * 300, id="NUL"),
        pytest.param(GOOD[:60], id="half JSON"),
        pytest.param("[]", id="a list"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param(GOOD.replace('"count": 1', '"count": true'), id="a bool as count"),
        pytest.param(GOOD.replace('"state": "open"', '"state": "gone"'), id="no state"),
        pytest.param(GOOD.replace('"evidence": {}', '"evidence": []'), id="evidence"),
        pytest.param(GOOD.replace('"ended": null', '"ended": 3'), id="ended"),
        pytest.param(GOOD.replace('"scope": "a/b"', '"scope": null'), id="no scope"),
        pytest.param(GOOD.replace('"FORK"', '"GAP"'), id="another code than its name says"),
        pytest.param(GOOD.replace('"subject": "", ', ""), id="a member less"),
    ],
)
def test_a_damaged_record_is_an_incident_itself(folder: str, data: str) -> None:
    kept = gap(folder)
    name = f"FORK.{incidents.incident_id('FORK', 'a/b')}.json"
    Path(folder, name).write_text(data)
    assert incidents.find(folder, "FORK", "a/b") is None
    for _ in range(2):
        damage, other = sorted(incidents.list_(folder), key=lambda one: one.code)
        assert other == kept
        assert (damage.code, damage.count, damage.scope) == ("CORRUPT", 1, folder)
        assert damage.evidence == {"files": [name], "number": 1}
    aside = [one for one in records(folder) if "corrupt-" in one]
    assert len(aside) == 1
    assert aside[0].startswith(f"{name}.corrupt-")
    assert Path(folder, aside[0]).read_text() == data


def test_raising_over_a_damaged_record(folder: str) -> None:
    gap(folder)
    path = Path(folder, records(folder)[0])
    path.write_bytes(b"\0")
    assert gap(folder).count == 1
    assert {one.code for one in incidents.list_(folder)} == {"GAP", "CORRUPT"}


def test_every_record_damaged_at_once(folder: str) -> None:
    for number in range(30):
        gap(folder, subject=str(number))
    for name in records(folder):
        Path(folder, name).write_bytes(b"\0" * 10)
    (damage,) = incidents.list_(folder)
    assert damage.evidence["number"] == 30
    assert incidents.list_(folder) == [damage]


def test_a_folder_that_cannot_be_read_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "incidents").write_text("")
    with pytest.raises(StoreError):
        incidents.list_(str(tmp_path / "incidents"))


def test_a_full_disk_is_an_incident_that_can_be_kept(tmp_path: Path) -> None:
    ran = on_small_disk(
        tmp_path,
        """
from wire.errors import DiskFull
from wire.store import incidents
folder = os.path.join(DISK, "incidents")
incidents.raise_(folder, code="GAP", scope="a/b", message="before")
fill()
full = incidents.raise_(folder, code="DISK_FULL", scope="wire", message="no space left")
assert full in incidents.list_(folder)
fill()
try:
    for number in range(9):
        incidents.raise_(folder, code="FORK", scope=f"a/c{number}", message="x")
        fill()
except DiskFull as error:
    assert "no space left" in error.message
else:
    sys.exit("no error")
assert full in incidents.list_(folder)
assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]
free()
for _ in range(2):
    (ended,) = incidents.end(folder, "DISK_FULL", "wire")
    assert ended.state == "resolved"
    fill()
    incidents.raise_(folder, code="DISK_FULL", scope="wire", message="again")
    free()
""",
        kib=128,
    )
    assert ran.returncode == 0, ran.stderr
