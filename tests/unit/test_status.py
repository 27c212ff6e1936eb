"""What a wire's files and locks mean: a table, in both directions."""

from types import MappingProxyType
from typing import Any

import pytest

from wire.daemon.status import Owed, Snapshot, judge
from wire.errors import DONE, FAILED, INTEGRITY, REMOTE
from wire.store.config import WireConfig
from wire.store.incidents import Incident
from wire.store.pin import Frozen, Names, Pin
from wire.store.progress import Progress

NOW = 1_800_000_000.0
WELL = Progress(pid=7, beat=NOW - 1, fetched=NOW - 10, pushed=NOW - 10, next_look=NOW + 20, interval=30.0, tier="T0")
FAILING = {"failing_since": NOW - 600, "failure_text": "git push failed (…)"}


def incident(code: str, message: str = "found", state: str = "open") -> Incident:
    return Incident("i-1", code, "wire", "", "first", "last", 1, MappingProxyType({}), message, "next", state)


def snapshot(
    progress: Progress = WELL, *, locked: bool = True, pin: dict[str, Any] | None = None, **rest: Any
) -> Snapshot:
    wire = "0" * 32
    held = Pin(
        wire=wire,
        wire_hash=wire * 2,
        remote="/srv/hub.git",
        branch="main",
        checkpoint="1:SHA256:x",
        trust_version=1,
        trust_hash=wire * 2,
        instance=wire,
        names=Names((), {}, {}),
        **(pin or {}),
    )
    config = WireConfig("hub", "/srv/hub.git", "main", "/clones/hub", ("mac",))
    return Snapshot(
        config, held, progress, locked, 7 if locked else None, rest.get("owed", []), rest.get("incidents", [])
    )


OWED = [Owed("mac/spark", 5, 4, 2, "2026-11-29T11:20:00.123Z"), Owed("mac/all", 1, 1, 1, None)]

CASES: dict[str, tuple[Snapshot, str, int, str]] = {
    "alive and well": (snapshot(), "running", DONE, ""),
    "never started": (snapshot(Progress(), locked=False), "stopped", REMOTE, "no daemon is running"),
    "ended, and looked at by hand just now": (snapshot(locked=False), "stopped", FAILED, "no daemon is running"),
    "killed: its beat is young, its lock is gone": (snapshot(locked=False), "stopped", FAILED, "no daemon is running"),
    "stands still: its lock is held, its beat is old": (
        snapshot(WELL._replace(beat=NOW - 50)),
        "stuck",
        FAILED,
        "the daemon (pid 7) holds its lock and has shown no life for 50 s",
    ),
    "holds its lock and never showed life": (
        snapshot(WELL._replace(beat=None)),
        "stuck",
        FAILED,
        "has shown no life for ever",
    ),
    "alive and cannot push": (
        snapshot(WELL._replace(failure="git-auth", **FAILING), owed=OWED),
        "running",
        REMOTE,
        "the last look failed, since 2027-01-15T07:50:00.000Z, 3 message(s) unpushed: git push failed (…)",
    ),
    "alive, and its own disk is full": (
        snapshot(WELL._replace(failure="git-disk-full", **FAILING)),
        "running",
        FAILED,
        "the last look failed",
    ),
    "alive, and has not reached the remote for too long": (
        snapshot(WELL._replace(fetched=NOW - 91)),
        "running",
        REMOTE,
        "the remote was not reached lately",
    ),
    "alive, with a tight promise and a slow look": (
        snapshot(WELL._replace(fetched=NOW - 10, interval=1.0)),
        "running",
        DONE,
        "",
    ),
    "an operational incident": (snapshot(incidents=[incident("TORN")]), "running", FAILED, "TORN in wire: found"),
    "an incident of bytes that do not hold": (
        snapshot(incidents=[incident("PREFIX")]),
        "running",
        INTEGRITY,
        "PREFIX in wire: found",
    ),
    "one that a person has seen": (snapshot(incidents=[incident("PREFIX", state="acked")]), "running", DONE, ""),
    "frozen": (snapshot(pin={"frozen": Frozen("FORCED", "2026-11-29T11:20:00.123Z")}), "running", INTEGRITY, "frozen"),
    "a fork": (snapshot(pin={"forks": {"mac/spark": "0" * 32}}), "running", INTEGRITY, "mac/spark accepts nothing"),
    "frozen and not reached: what matters more": (
        snapshot(WELL._replace(failure="git-auth", **FAILING), pin={"forks": {"mac/spark": "0" * 32}}),
        "running",
        INTEGRITY,
        "mac/spark accepts nothing",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_a_snapshot_means(what):
    seen, daemon, status, trouble = CASES[what]
    found = judge(seen, NOW)
    assert (found.daemon, found.exit_status) == (daemon, status)
    assert any(trouble in one for one in found.troubles) if trouble else not found.troubles


def test_a_failure_that_is_an_incident_too_is_told_once():
    failing = WELL._replace(failure="git-auth", **FAILING)
    found = judge(snapshot(failing, incidents=[incident("AUTH", FAILING["failure_text"])]), NOW)
    assert len(found.troubles) == 1


def test_what_is_unpushed_is_counted_over_all_channels():
    found = judge(snapshot(owed=OWED), NOW)
    assert (found.unpushed, found.oldest_unpushed) == (3, "2026-11-29T11:20:00.123Z")
