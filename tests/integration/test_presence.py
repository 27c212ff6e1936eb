"""Presences by hand, one `wire sync` after the other: what they prove, what is refused, and what trouble costs.

Where the time decides, the pure judges are asked (`tests/unit/test_heard.py`); the daemons are in `tests/e2e`.
"""

import os
import time
from pathlib import Path

import pytest

from support import gitcmd
from support import team as teams
from support.sizes import size
from support.team import incidents, pin, read, signer, state
from support.team import write as lines
from wire.daemon import beating, cycle, hearing, ledger, upkeep
from wire.daemon.beating import Promise
from wire.daemon.site import Site
from wire.protocol.encoding import LINE_TYPE, PRESENCE_TYPE, Signer, b64
from wire.protocol.presence import seal
from wire.store import config as configs
from wire.store import presences
from wire.store.files import utc_now
from wire.store.paths import Settings, WirePlaces
from wire.store.presences import Declared

SPARK = "refs/wire/presence/spark"


def places(machine):
    return WirePlaces(str(machine.wire_home / "state"), "hub", str(machine.clone()))


def heard(machine, agent):
    """Return the presence of an agent as a machine has it, None for none."""
    found = presences.load_one(places(machine), agent)
    return found and found.presence


def site_of(machine):
    settings = Settings.from_environ(machine.env, str(machine.home))
    return Site.open(settings, configs.load(settings).wires[0])


def sync(machine):
    """Sync, whatever it has to tell."""
    machine.wire("sync", check=False)


def at(team, ref=SPARK):
    """Return the commit at a ref of the remote, empty for none."""
    return gitcmd.line(team.remote.path, "for-each-ref", "--format=%(objectname)", ref)


def said(machine, agent="spark", *, by=None, **changes):
    """Return a presence of an agent that a test signs by itself, newline included."""
    held = pin(machine)
    members = {
        "wire": held.wire,
        "agent": agent,
        "instance": held.instance,
        "counter": int(time.time() * 1000) + 1_000_000,
        "ts": utc_now(),
        "trust": f"{held.trust_version}:{held.trust_hash[:16]}",
        "state": "idle",
        "tier": "T0",
        "interval": 90.0,
        "channels": {},
    }
    return seal(by or signer(machine), **{**members, **changes})


def commit_of(remote, data, name="presence.json"):
    """Make a commit with one file at the remote, and return its id."""
    blob = remote.git("hash-object", "-w", "--stdin", input=data).decode().strip()
    tree = remote.git("mktree", input=f"100644 blob {blob}\t{name}\n".encode()).decode().strip()
    return gitcmd.line(remote.path, "commit-tree", tree, "-m", "x")


def put(team, data, ref=SPARK, name="presence.json"):
    """Let somebody who can push replace a ref by a commit with one file."""
    commit = commit_of(team.remote, data, name)
    team.remote.git("update-ref", ref, commit)
    return commit


def test_the_sender_learns_how_far_a_message_got(team):
    commits = team.remote.commits()
    team.mac.send("spark", "hello")
    team.mac.wire("sync")
    team.spark.wire("sync")
    team.mac.wire("sync")
    end = pin(team.mac).accepted["mac/spark"]
    assert heard(team.mac, "spark").channels["mac/spark"] == (1, end.head, 0)
    assert read(team.spark) == ["hello"]
    presences.declare(places(team.spark), "spark", Declared("busy", "tests"))
    team.spark.wire("sync")
    team.mac.wire("sync")
    found = heard(team.mac, "spark")
    assert found.channels["mac/spark"] == (1, end.head, 1)
    assert (found.state, found.note, found.instance) == ("busy", "tests", pin(team.spark).instance)
    # Another reader than the agent's own does not count, and neither does a look.
    team.mac.send("spark", "again")
    team.settle()
    read(team.spark, "--reader", "child")
    read(team.spark, "--peek")
    team.settle()
    assert heard(team.mac, "spark").channels["mac/spark"][::2] == (2, 1)
    assert len(team.remote.commits()) == len(commits) + 2, "a presence made a commit on the branch"
    shown = gitcmd.line(team.remote.path, "log", "--format=%P", SPARK)
    assert shown == "", "a presence has a history"
    assert team.remote.files(at(team)) == ["presence.json"]
    assert incidents(team.mac) == incidents(team.spark) == []
    team.check()


def test_a_quiet_sync_pushes_nothing(team):
    team.settle()
    before = [at(team, f"refs/wire/presence/{name}") for name in ("mac", "spark")]
    assert all(before)
    team.settle(rounds=1)
    assert [at(team, f"refs/wire/presence/{name}") for name in ("mac", "spark")] == before


def test_an_old_presence_put_back_is_refused_and_told_once(team):
    team.settle()
    old = at(team)
    first = heard(team.mac, "spark")
    presences.declare(places(team.spark), "spark", Declared("busy"))
    sync(team.spark)
    sync(team.mac)
    team.remote.git("update-ref", SPARK, old)
    for _ in range(2):
        sync(team.mac)
        assert heard(team.mac, "spark").counter > first.counter
    (one,) = incidents(team.mac, "PRESENCE")
    assert (one["count"], one["integrity"]) == (1, True)
    assert "an old one again" in one["message"]
    # Its owner notices, says so, and publishes again.
    sync(team.spark)
    (one,) = incidents(team.spark, "PRESENCE")
    assert "published again" in one["message"]
    sync(team.mac)
    assert heard(team.mac, "spark").state == "busy"
    team.remote.git("update-ref", "-d", SPARK)
    presences.declare(places(team.spark), "spark", Declared("paused"))
    for _ in range(2):  # the first finds that the ref is not what it was
        sync(team.spark)
    sync(team.mac)
    assert heard(team.mac, "spark").state == "paused"


def resigned(machine, payload_type):
    """Return a presence whose signature was made for another type."""
    signed = said(machine)[:-1][:-98] + b"}"
    return signed[:-1] + b',"sig":"%s"}\n' % b64(signer(machine).sign(payload_type, signed)).encode()


FORGED = {
    "signed by another agent": lambda team: said(team.spark, by=signer(team.mac)),
    "signed by nobody's key": lambda team: said(team.spark, by=Signer(bytes(32))),
    "signed as a line": lambda team: resigned(team.spark, LINE_TYPE),
    "another agent's presence": lambda team: said(team.mac, "mac"),
    "of another wire": lambda team: said(team.spark, wire="0" * 32),
    "a line of that agent": lambda team: lines(team.spark, "spark/mac", "hello")[0],
    "a byte changed": lambda team: said(team.spark, state="idle").replace(b'"idle"', b'"busy"'),
    "another member": lambda team: said(team.spark).replace(b'"channels"', b'"extra":1,"channels"'),
    "two lines": lambda team: said(team.spark) * 2,
    "no newline": lambda team: said(team.spark)[:-1],
    "empty": lambda team: b"",
    "200 KB": lambda team: b"x" * 200_000,
}


@pytest.mark.parametrize("kind", FORGED)
def test_what_is_not_that_agents_newest_presence_changes_nothing(team, kind):
    team.settle()
    before = heard(team.mac, "spark")
    put(team, FORGED[kind](team))
    team.mac.send("spark", "goes on")
    for _ in range(2):
        sync(team.mac)
    assert heard(team.mac, "spark") == before
    (one,) = incidents(team.mac, "PRESENCE")
    assert one["count"] == 1
    sync(team.spark)
    assert "goes on" in read(team.spark, status=None)
    sync(team.mac)
    assert heard(team.mac, "spark").channels["mac/spark"][2] == 0, "its owner did not publish again"
    assert resigned(team.spark, PRESENCE_TYPE), "the helper makes what is genuine, too"


@pytest.mark.parametrize("kind", ["a tag", "a blob", "another file", "a folder", "a ref below the name"])
def test_refs_of_another_kind_cost_nothing(team, kind):
    team.settle()
    if kind == "a ref below the name":
        team.remote.git("update-ref", "-d", SPARK)
        put(team, b"x", f"{SPARK}/below")
    elif kind == "another file":
        put(team, said(team.spark), name="other.json")
    else:
        blob = team.remote.git("hash-object", "-w", "--stdin", input=said(team.spark)).decode().strip()
        tree = team.remote.git("mktree", input=f"100644 blob {blob}\tpresence.json\n".encode()).decode().strip()
        above = team.remote.git("mktree", input=f"040000 tree {tree}\tpresence.json\n".encode()).decode().strip()
        commit = gitcmd.line(team.remote.path, "commit-tree", above, "-m", "x")
        team.remote.git("update-ref", SPARK, blob if kind == "a blob" else commit)
        if kind == "a tag":
            tag = f"object {commit}\ntype commit\ntag x\ntagger V <v@example.invalid> 1 +0000\n\nx\n".encode()
            team.remote.git("update-ref", SPARK, team.remote.git("mktag", input=tag).decode().strip())
    team.mac.send("spark", "goes on")
    sync(team.mac)
    sync(team.spark)
    assert "goes on" in read(team.spark, status=None)
    assert not incidents(team.mac, "UNKNOWN", "CORRUPT", "NETWORK")


@pytest.mark.parametrize("taken", [SPARK, f"{SPARK}/below", "refs/wire/presence"])
def test_a_ref_that_was_taken_before_its_owner_came(machines, remote, taken):
    """Junk in a presence's own place is replaced. What keeps its place from being is told, and stops no line."""
    remote.git("update-ref", taken, commit_of(remote, b"x"))
    mac, spark = machines("mac"), machines("spark")
    teams.begin(mac, remote)
    teams.join(mac, spark, remote)
    spark.send("mac", "goes on")
    sync(spark)
    sync(mac)
    assert read(mac, "--type", "message", status=None) == ["goes on"]
    assert not incidents(mac, "UNKNOWN", "CORRUPT", "NETWORK")
    shown = spark.json("status", check=False)["presence_refused"]
    if taken == SPARK:
        assert (shown, heard(mac, "spark").agent) == (None, "spark")
        return
    assert shown["why"]
    assert "takes no presences since" in spark.wire("status", check=False).stdout


def test_a_flood_of_refs_is_bounded_and_stops_nobody(team):
    count = size(300, 10_000, "refs beside a presence")
    team.settle()
    commit = put(team, b"junk", "refs/wire/presence/junk")
    team.remote.git(
        "update-ref",
        "--stdin",
        input="".join(
            f"create refs/wire/presence/{name}-{n} {commit}\n" for n in range(count) for name in ("spark", "zorro")
        ).encode(),
    )
    mac = site_of(team.mac)
    team.mac.send("spark", "goes on")
    for _ in range(3):
        assert cycle.run(mac, promise=Promise()).failure is None
    (one,) = incidents(team.mac, "PRESENCE")
    assert one["subject"] == "flood"
    # Those of the trust's names are still asked for, and nobody else's.
    assert hearing.refspecs(mac.ears.names, exact=True) == [f"+{SPARK}:{ledger.HEARD}spark"] * 0 + [
        f"+refs/wire/presence/{name}:{ledger.HEARD}{name}" for name in ("mac", "spark")
    ]
    kept = gitcmd.line(team.mac.clone(), "for-each-ref", "--format=%(refname)", ledger.HEARD).split()
    assert kept == [f"{ledger.HEARD}mac", f"{ledger.HEARD}spark"]
    sync(team.spark)
    assert "goes on" in read(team.spark, status=None)
    presences.declare(places(team.spark), "spark", Declared("blocked"))
    sync(team.spark)
    cycle.run(mac, promise=Promise())
    assert heard(team.mac, "spark").state == "blocked"


@pytest.mark.parametrize("refs", [0, 3000])
def test_a_remote_with_many_refs_is_asked_for_those_that_matter(team, monkeypatch, refs):
    """What is new comes in the shorter way, unless that would list what thousands of branches stand at."""
    team.settle()
    settings = Settings.from_environ(team.mac.env, str(team.mac.home))
    mac = Site.open(settings, configs.load(settings).wires[0], lasting=True)
    packed = "".join(f"{team.remote.tip()} refs/heads/b{number}\n" for number in range(refs))
    (team.remote.path / "packed-refs").write_text("# pack-refs with: peeled fully-peeled \n" + packed)
    short, few = [], mac.git.remotes.fetch_few
    monkeypatch.setattr(mac.git.remotes, "fetch_few", lambda *a, **k: short.append(few(*a, **k)) or short[-1])
    team.spark.send("mac", "goes on")
    sync(team.spark)
    assert cycle.run(mac, promise=Promise()).accepted == {"spark/mac": 1}
    assert short == ([] if refs else [True])
    mac.git.linger(False)


def test_a_huge_presence_stops_no_fetch_of_the_branch(team, monkeypatch):
    monkeypatch.setattr(hearing, "BOTH_MAX_BYTES", 1 << 20)
    team.settle()
    put(team, os.urandom(3 << 20))
    team.spark.send("mac", "goes on")
    sync(team.spark)
    put(team, os.urandom(3 << 20))
    mac = site_of(team.mac)
    assert cycle.run(mac, promise=Promise()).accepted == {"spark/mac": 1}
    assert heard(team.mac, "spark") is not None
    assert not incidents(team.mac, "TOO_LARGE")
    # For a while nobody's presence is asked for any more than once.
    assert mac.ears.held_until > time.monotonic()
    team.mac.send("spark", "answer")
    assert cycle.run(mac, promise=Promise()).pushed == 1


HOSTS = {
    "refuses the whole push": "while read old new ref; do case $ref in refs/wire/*) echo no >&2; exit 1;; esac; done",
    "refuses the ref": None,
}


def let_refuse(team, kind):
    name, script = ("pre-receive", HOSTS[kind]) if HOSTS[kind] else ("update", "case $1 in refs/wire/*) exit 1;; esac")
    hook = team.remote.path / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)
    return hook.unlink


@pytest.mark.parametrize("kind", HOSTS)
def test_where_a_host_takes_no_presences_a_line_shows_life(team, kind):
    team.settle()
    allow = let_refuse(team, kind)
    team.mac.send("spark", "hello")
    team.settle()
    assert read(team.spark, "--type", "message") == ["hello"]
    for _ in range(3):
        for machine, other in ((team.mac, "spark"), (team.spark, "mac")):
            # That the host takes lines shows that it is presences which it refuses.
            machine.send(other, "more")
            machine.wire("sync")
    # Both have found out, said so, and sent one line; more of them are not due for a long time.
    for machine in team.machines:
        shown = machine.json("status", check=False)
        assert shown["presence_refused"]["why"], shown
        assert b"takes no presences since" in machine.wire("status", check=False).out
        assert pin(machine).accepted[f"{machine.name}/all"].seq == 1
    team.mac.wire("sync")
    found = heard(team.mac, "spark")
    assert found.channels["mac/spark"][0] >= 2
    assert incidents(team.mac) == incidents(team.spark) == []
    # A line of that kind is judged as the ref is: an old one again says nothing.
    assert found.interval == beating.SLOWEST_SECONDS
    team.check()
    # It is tried again after hours, and then all is as before.
    allow()
    for machine in team.machines:
        refused = presences.refusal(places(machine))
        presences.refuse(places(machine), refused._replace(tried=refused.tried - beating.RETRY_SECONDS))
    read(team.spark)
    last = pin(team.spark).accepted["mac/spark"].seq
    presences.declare(places(team.mac), "mac", Declared("busy"))
    team.settle()
    team.mac.wire("sync")
    for machine in team.machines:
        assert machine.json("status", check=False)["presence_refused"] is None
    assert heard(team.mac, "spark").channels["mac/spark"][2] == last
    assert pin(team.mac).accepted["spark/all"].seq == 1


def test_a_shared_repository_takes_presences(team):
    # What `git init --shared` sets concerns branches.
    team.remote.git("config", "receive.denyNonFastForwards", "true")
    team.settle()
    presences.declare(places(team.spark), "spark", Declared("busy"))
    team.spark.wire("sync")
    team.mac.wire("sync")
    assert heard(team.mac, "spark").state == "busy"
    assert team.spark.json("status", check=False)["presence_refused"] is None


def test_a_second_machine_under_one_key_shows_before_anything_is_sent(team):
    team.settle()
    other = said(team.mac, "mac", instance="f" * 32, counter=heard(team.mac, "mac").counter + 1)
    put(team, other, "refs/wire/presence/mac")
    team.mac.send("spark", "hello")
    seen = []
    hook = team.remote.path / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\nls {state(team.mac)}/incidents > {team.folder}/known\ncat >/dev/null\n")
    hook.chmod(0o755)
    sync(team.mac)
    (one,) = incidents(team.mac, "CLONED")
    assert f"CLONED.{one['id']}.json" in (team.folder / "known").read_text().split(), "it was told after the push"
    assert "f" * 12 in one["message"]
    assert "wire service stop" in one["next_step"]
    # What is sent goes on by the rules for lines, and the presence counts above the other's.
    sync(team.spark)
    assert "hello" in read(team.spark, status=None)
    assert heard(team.spark, "mac").instance == pin(team.mac).instance
    assert not seen
    for _ in range(2):
        sync(team.mac)
    assert incidents(team.mac, "CLONED")[0]["count"] == 1


def test_state_that_was_made_anew_counts_above_what_is_known(team):
    """The old instance is dead: nothing of it is to be expected any more."""
    team.settle()
    high = int(time.time() * 1000) + 10**9
    put(
        team,
        said(team.mac, "mac", instance="f" * 32, counter=high, ts="2020-01-01T00:00:00.000Z"),
        "refs/wire/presence/mac",
    )
    for path in (state(team.mac) / presences.FOLDER).iterdir():
        path.unlink()
    sync(team.mac)
    assert incidents(team.mac) == []
    sync(team.spark)
    assert heard(team.spark, "mac").counter == high + 1
    assert heard(team.spark, "mac").instance == pin(team.mac).instance


def test_another_history_in_a_presence_is_a_split_view(team):
    team.mac.send("spark", "one")
    team.mac.send("spark", "two")
    team.settle()
    other = "ab" * 32
    put(team, said(team.spark, channels={"mac/spark": (1, other, 0), "mac/all": (7, other, 0)}))
    sync(team.mac)
    (one,) = incidents(team.mac, "SPLIT_VIEW")
    assert one["scope"] == "mac/spark"
    assert one["evidence"]["claimed"] == other
    assert len(one["evidence"]["accepted"]) == 64
    assert other in one["evidence"]["presence"], "the presence is not kept as evidence"
    # It is taken all the same: what it proves is looked up by head.
    assert heard(team.mac, "spark").channels["mac/spark"][1] == other
    put(
        team,
        said(
            team.spark, counter=int(time.time() * 1000) + 2_000_000, trust=f"{pin(team.mac).trust_version}:{'0' * 16}"
        ),
    )
    sync(team.mac)
    assert {found["subject"] for found in incidents(team.mac, "SPLIT_VIEW")} == {"presence of spark", "trust of spark"}


def test_a_long_presence_is_evidence_all_the_same(team, tmp_path):
    """An incident's record is short; what it is about is kept whole, and a third person can check its signature."""
    team.mac.send("spark", "one")
    team.settle()
    many = {f"mac/g{number}": (number + 1, "cd" * 32, 0) for number in range(120)}
    put(team, said(team.spark, channels={"mac/spark": (1, "ab" * 32, 0), **many}))
    sync(team.mac)
    (one,) = incidents(team.mac, "SPLIT_VIEW")
    kept = state(team.mac) / presences.FOLDER / "shown" / one["evidence"]["presence_sha256"]
    assert kept.stat().st_size > 10_000
    file = tmp_path / "evidence"
    team.mac.wire("evidence", one["id"], "-o", str(file))
    checked = team.spark.json("verify", str(file), check=False)
    assert [found["code"] for found in checked["proved"]] == ["SPLIT_VIEW"]
    # However many there are, what is kept is bounded.
    for number in range(presences.SHOWN_MOST + 5):
        presences.shown(places(team.mac), b"x" * 3001 + b"%d" % number)
    assert len(list(kept.parent.iterdir())) == presences.SHOWN_MOST
    assert presences.as_shown(places(team.mac), one["evidence"]) is None, (
        "the oldest are gone, and nothing else is shown"
    )


def objects(repository: Path) -> dict[str, int]:
    told = gitcmd.line(repository, "count-objects", "-v")
    return {name: int(value) for name, _, value in (line.partition(": ") for line in told.split("\n"))}


@pytest.mark.timeout(3600)
def test_thousands_of_beats_leave_the_branch_as_it_was_and_both_repositories_small(team, monkeypatch):
    count = size(80, 10_000, "beats of one agent")
    team.settle()
    commits, clone = team.remote.commits(), team.mac.clone()
    held, before = pin(team.mac), objects(team.remote.path)
    files = {path: path.stat().st_mtime_ns for path in clone.rglob("_coordination/**/*")}
    mac, spark = site_of(team.mac), site_of(team.spark)
    for n in range(count):
        presences.declare(places(team.mac), "mac", Declared("busy", f"beat {n}"))
        assert cycle.beat(mac, Promise(), lock_timeout=10) == 1
        if n % 4 == 0:
            assert cycle.run(spark).failure is None
        for site in (mac, spark):
            if upkeep.due(site):
                upkeep.pack(site)
    assert heard(team.spark, "mac").note == f"beat {(count - 1) // 4 * 4}"
    assert team.remote.commits() == commits
    assert pin(team.mac) == held
    assert {path: path.stat().st_mtime_ns for path in files} == files
    for site in (mac, spark):
        assert site.git.counts().packs <= upkeep.PACKS_DUE
    # Whoever keeps house at the host has nothing to keep of them; neither have we, once they are old enough.
    team.remote.git("gc", "--quiet", "--prune=now")
    assert objects(team.remote.path)["in-pack"] <= before["count"] + before["in-pack"]
    monkeypatch.setattr("wire.gitio.packing.KEEP_UNREACHABLE", "now")
    for site in (mac, spark):
        site.git.pack(full=True)
        left = objects(Path(site.git.git_dir))
        assert left["in-pack"] + left["count"] < before["count"] + before["in-pack"] + 40
