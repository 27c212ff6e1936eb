"""G1, G2, G4 to G7, G11: private keys at the command line, rotation, and lines that somebody else's key signed."""

import json
import os
import re
import shlex
import stat
import subprocess

import pytest

from support import oracle
from support.machine import Machine
from support.team import begin, bodies, end, incidents, path, read, signer, write
from support.waiting import eventually
from wire.daemon import trusting
from wire.daemon.site import Site
from wire.keys import keyfile
from wire.keys.build import retire
from wire.keys.trust import prove
from wire.protocol.encoding import Signer, b64
from wire.store import config as configs
from wire.store.files import utc_now
from wire.store.paths import Settings

CHANNEL = "mac/spark"


def key_files(machine):
    return sorted((machine.wire_home / "keys").rglob("*.key"))


@pytest.mark.parametrize("umask", ["000", "022", "077"])
def test_g1_keys_are_private_from_the_first_instant(machines, remote, tmp_path, umask):
    """Whatever the umask, and at no moment: every call that makes or widens a file is looked at."""
    mac = machines("mac")
    trace = tmp_path / "trace"
    calls = "open,openat,creat,mkdir,mkdirat,chmod,fchmod,fchmodat,link,linkat,rename,renameat,renameat2"
    traced = f'umask {umask}; exec strace -f -qq -o {trace} -e trace={calls} "$0" init {remote.url} --as mac'
    made = subprocess.run(
        ["sh", "-c", traced, str(mac.program)],
        env=mac.environ(),
        cwd=mac.home,
        capture_output=True,
    )
    assert made.returncode == 0, made.stderr
    assert len(key_files(mac)) == 2
    for file in key_files(mac):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        for folder in (file.parent, file.parent.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    keys = str(mac.wire_home / "keys")
    about_keys = [line for line in trace.read_text().split("\n") if f'"{keys}' in line]
    created = [line for line in about_keys if "O_CREAT" in line]
    assert len(created) >= 2
    for line in created:
        assert "O_EXCL" in line, line
        assert re.search(r", 0600\)", line), line
    for line in about_keys:
        if re.search(r"\b(mkdir|mkdirat)\(", line):
            assert re.search(r", 0700\)", line), line
        wider = re.search(r"chmod\w*\(.*, 0([0-7]{3})", line)
        assert wider is None or int(wider[1], 8) & 0o077 == 0, line
    # Everything else of the state is its owner's alone, too.
    for file in (mac.wire_home / "state").rglob("*"):
        assert file.stat().st_mode & 0o077 == 0, file


def test_g1_an_existing_key_is_never_written_over(machines, remote):
    mac = machines("mac")
    begin(mac, remote)
    before = {file: file.read_bytes() for file in key_files(mac)}
    for args in (("init", remote.url, "--as", "mac"), ("init", remote.url, "--as", "mac", "--wire", "other")):
        assert mac.wire(*args, check=False).status == 2
    assert {file: file.read_bytes() for file in key_files(mac)} == before


def test_g2_a_loose_key_is_refused_with_the_command_that_mends_it(team):
    (key,) = [file for file in key_files(team.mac) if file.name == "agent-mac.key"]
    for loose in (0o644, 0o640, 0o604, 0o660):
        key.chmod(loose)
        refused = team.mac.wire("send", "spark", "hello", check=False)
        assert refused.status == 5
        command = re.search(r"chmod 600 \S+", refused.stderr)[0]
        assert shlex.split(command)[2] == str(key)
    # A cycle says so as well, and goes on with everything else.
    team.spark.send("mac", "for a machine without a key")
    team.spark.wire("sync")
    team.mac.wire("sync", check=False)
    assert read(team.mac) == ["for a machine without a key"]
    assert incidents(team.mac, "KEY")
    # The command, literally.
    subprocess.run(command, shell=True, check=True)
    team.mac.send("spark", "hello")
    team.sync_and_check()
    assert read(team.spark) == ["hello"]
    assert incidents(team.mac) == []


def test_a_key_that_is_gone_is_no_good_health(team):
    """A daemon that has read its key goes on without the file; who asks how things stand is told before it has to."""
    (key,) = [file for file in key_files(team.mac) if file.name.startswith("agent-")]
    team.mac.start_daemon()
    eventually(lambda: team.mac.wire("status", check=False).status == 0, what="a healthy daemon")
    key.unlink()
    status = team.mac.wire("status", check=False)
    assert status.status == 1
    assert f"there is no key at {key}" in status.stdout
    assert team.mac.json("status", check=False)["healthy"] is False


def loosen(machine):
    """Let the keys look as they do where no modes are kept."""
    for file in (machine.wire_home / "keys", *(machine.wire_home / "keys").rglob("*")):
        file.chmod(0o777)


def test_g2_on_a_file_system_without_modes_a_person_may_say_so(team):
    """Whoever says so can do everything: keys are used and made there, an agent's and the root's."""
    for machine in team.machines:
        machine.env["WIRE_ALLOW_LOOSE_KEYS"] = "1"
        loosen(machine)
    team.mac.send("spark", "hello")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    asked = team.spark.json("join", team.remote.url, "--as", "lee", "--trust", checkpoint)
    loosen(team.spark)
    team.mac.wire("trust", "approve", "lee", "--fingerprint", asked["fingerprint"])
    for args in (("keys", "rotate"), ("keys", "list"), ("keys", "root", "new", "another"), ("keys", "list")):
        team.mac.wire(*args)
        loosen(team.mac)
    team.mac.send("spark", "by the next key")
    team.sync_and_check()
    assert read(team.spark, "--as", "spark") == ["hello", "by the next key"]
    assert incidents(team.mac) == incidents(team.spark) == []
    # Nobody else answers for it.
    del team.mac.env["WIRE_ALLOW_LOOSE_KEYS"]
    assert team.mac.wire("send", "spark", "who said so?", check=False).status == 5


def change_trust(machine: Machine, build):
    """Make a trust version on the machine that holds the root."""
    settings = Settings.from_environ(machine.environ(), str(machine.home))
    site = Site.open(settings, configs.choose_wire(configs.load(settings), settings))
    return trusting.change(site, build, "trust: a key changes").chain


def rotate(team, status="retired", keep=None, whose=None):
    """Retire or revoke a key (mac's) at the end of its channels (or at `keep`), and give the next one; return both."""
    machine = whose or team.mac
    name = machine.name
    old = signer(machine)
    seed = os.urandom(32)
    fresh = Signer(seed)
    positions = {
        channel: (place.seq, place.head)
        for channel in (f"{name}/{'mac' if machine is team.spark else 'spark'}", f"{name}/all")
        if (place := keep or end(machine, channel)).seq
    }

    def build(chain):
        proof = prove(fresh, wire=chain.wire, name=name, role="agent")
        return retire(
            chain.newest,
            chain.wire,
            name=name,
            key_id=old.key_id,
            status=status,
            positions=positions,
            created=utc_now(),
            replacement=(fresh.public, proof),
        )

    chain = change_trust(team.mac, build)
    file = keyfile.key_path(str(machine.wire_home / "keys"), wire=chain.wire, kind="agent", name=name)
    os.rename(file, f"{file}.old")
    keyfile.create(file, name=name, kind="agent", wire=chain.wire, seed=seed)
    return old, fresh


def test_g4_a_rotation_leaves_history_valid(team):
    for n in range(3):
        team.mac.send("spark", f"old {n}")
    team.settle()
    assert read(team.spark) == ["old 0", "old 1", "old 2"]
    old, fresh = rotate(team)
    for n in range(3):
        team.mac.send("spark", f"new {n}")
    team.sync_and_check()
    assert read(team.spark) == ["new 0", "new 1", "new 2"]
    newcomer = team.join("review")
    for machine in team.machines:
        checked = machine.json("verify", "--full")
        assert (checked["lines"], checked["problems"]) == (6, [])
        keys = [machine.json("show", f"mac/spark/{n}")["key"] for n in range(1, 7)]
        assert keys == [old.key_id] * 3 + [fresh.key_id] * 3
        held = machine.json("trust", "show")["agents"]["mac"]["keys"]
        assert [key["status"] for key in held] == ["retired", "active"]
    listed = json.loads(team.remote.show("_coordination/trust.json"))["agents"]["mac"]["keys"]
    assert listed[0]["positions"][CHANNEL][0] == 3, "up to where the old one counts"
    assert incidents(newcomer) == []
    team.check()


def test_g5_the_old_key_counts_no_more(team):
    """A line behind the rotation that the old key signed, dated back before it."""
    team.mac.send("spark", "before")
    team.settle()
    old, _ = rotate(team)
    team.settle()
    for dated in (utc_now(), "2020-01-01T00:00:00.000Z"):
        (line,) = write(team.mac, CHANNEL, "not mine any more", by=old, ts=dated)
        vera = team.vandal(f"vera-{dated[:4]}")
        vera.append(path(CHANNEL), line)
        vera.commit()
        vera.push()
        assert team.spark.wire("sync", check=False).status == 4
    (incident,) = incidents(team.spark, "KEY_RETIRED")
    assert "retired" in incident["message"]
    assert read(team.spark, status=4) == ["before"]
    assert team.mac.send("spark", "by the next key") == "mac/spark/2"
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert read(team.spark, status=None) == ["by the next key"]
    team.check(attacked=True)


def test_g5_what_a_stolen_key_wrote_is_cut_when_it_is_revoked(team):
    """Revoked at a position: lines behind it, already read, count no more; what comes after goes on from there."""
    team.mac.send("spark", "mine")
    team.settle()
    keep = end(team.mac, CHANNEL)
    thief = write(team.mac, CHANNEL, "the thief's 1", "the thief's 2")
    vera = team.vandal()
    vera.append(path(CHANNEL), b"".join(thief))
    vera.commit()
    vera.push()
    team.spark.wire("sync", check=False)
    assert read(team.spark) == ["mine", "the thief's 1", "the thief's 2"]
    rotate(team, status="revoked", keep=keep)
    team.spark.wire("sync", check=False)
    told = {one["subject"]: one for one in incidents(team.spark, "KEY_RETIRED")}
    assert "2 accepted line(s)" in told.pop("cut")["message"]
    assert [one["evidence"]["read"] for one in told.values()] == [["mac/spark/2", "mac/spark/3"]]
    assert bodies(team.spark.wire("tail", "--json", "--all", check=False)) == ["mine"]
    team.mac.wire("sync", check=False)
    assert team.mac.send("spark", "mine again") == "mac/spark/2"
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert bodies(team.spark.wire("tail", "--json", "--all", check=False)) == ["mine", "mine again"]
    for machine in team.machines:
        assert machine.json("verify", "--full")["problems"] == []
    team.check(attacked=True)


@pytest.mark.parametrize("known", [True, False], ids=["after it saw them", "before it saw them"])
def test_g5_what_nobody_had_yet_is_not_lost_with_a_revoked_key(team, known):
    """Lines that were stored here when the key was revoked behind a thief's: the next key signs them again."""
    team.spark.send("mac", "mine")
    team.settle()
    keep = end(team.spark, "spark/mac")
    vera = team.vandal()
    vera.append(path("spark/mac"), b"".join(write(team.spark, "spark/mac", "the thief's 1", "the thief's 2")))
    vera.commit()
    vera.push()
    if known:
        team.spark.wire("sync", check=False)
    team.spark.send("mac", "nobody has this yet")
    team.spark.sent.pop()  # its number becomes another one, and that is told
    rotate(team, status="revoked", keep=keep, whose=team.spark)
    for machine in (team.spark, team.mac, team.spark, team.mac):
        machine.wire("sync", check=False)
    said = bodies(team.mac.wire("tail", "--json", "--all", check=False))
    assert said == ["mine", "nobody has this yet"]
    assert any("issued again" in one["message"] for one in incidents(team.spark, "KEY_RETIRED"))
    assert team.spark.send("mac", "next") == "spark/mac/3"
    team.spark.wire("sync", check=False)
    team.mac.wire("sync", check=False)
    team.check(attacked=True)
    for machine in team.machines:
        assert machine.json("verify", "--full")["problems"] == []


def test_g6_a_sender_is_who_signed(team):
    """`from: mac`, validly signed by spark, in either folder; and the right key in the wrong folder."""
    team.mac.send("spark", "from mac")
    review = team.join("review")
    spark_key = signer(team.spark)
    lies = {
        path("mac/spark"): write(team.mac, "mac/spark", "I am mac", by=spark_key),
        path("spark/review"): write(team.mac, "mac/review", "I am mac", by=spark_key),
        path("spark/mac"): write(team.spark, "spark/review", "another direction"),
    }
    vera = team.vandal()
    for file, lines in lies.items():
        vera.append(file, b"".join(lines))
    vera.commit()
    vera.push()
    for machine in (review, team.mac):
        machine.wire("sync", check=False)
    told = {one["scope"]: one["message"] for one in incidents(review)}
    for scope in ("mac/spark", "spark/review"):
        assert told[scope].endswith("it names 'mac' and is signed by 'spark'"), told
    assert told["spark/mac"].endswith("it was signed for spark/review and stands in spark/mac"), told
    assert read(review, "--all", status=None) == []
    for machine in team.machines:
        machine.wire("sync", check=False)
    assert read(team.spark, status=None) == ["from mac"]
    assert "I am mac" not in str(oracle.messages(oracle.in_clone(review.clone())))


def test_g7_what_the_daemon_writes_is_signed_like_everything_else(team):
    team.mac.send("spark", "hello")
    team.settle()
    vera = team.vandal()
    vera.append(path(CHANNEL), b"junk\n")
    vera.commit()
    vera.push()
    team.spark.wire("sync", check=False)
    team.mac.wire("sync", check=False)
    written = [one for one in team.mac.wire("log", "--json").jsonl() if one.get("line", {}).get("type") == "incident"]
    assert written, "spark told the others"
    for one in written:
        assert one["verdict"] == "verified"
        author = {"mac": team.mac, "spark": team.spark}[one["from"]]
        assert one["line"]["key"] == signer(author).key_id
    assert team.mac.json("verify", "--full")["problems"] == []


UNSIGNED = {
    "missing": lambda line: re.sub(rb',"sig":"[^"]*"', b"", line),
    "null": lambda line: re.sub(rb'"sig":"[^"]*"', b'"sig":null', line),
    "empty": lambda line: re.sub(rb'"sig":"[^"]*"', b'"sig":""', line),
    "truncated": lambda line: re.sub(rb'"sig":"([^"]{40})[^"]*"', rb'"sig":"\1"', line),
    "of another line": lambda line: line.replace(b"unsigned", b"UNSIGNED"),
}


def test_g7_what_is_not_signed_is_never_delivered(team):
    team.mac.send("spark", "good")
    team.settle()
    (line,) = write(team.mac, CHANNEL, "unsigned")
    vera = team.vandal()
    vera.append(path(CHANNEL), b"".join(change(line) for change in UNSIGNED.values()))
    vera.commit()
    vera.push()
    assert team.spark.wire("sync", check=False).status == 4
    assert read(team.spark, status=4) == ["good"]
    (incident,) = incidents(team.spark, "SIGNATURE")
    assert f"{len(UNSIGNED)} line(s)" in incident["message"]


def test_g11_a_follower_runs_on_across_an_untrusted_line(team):
    """A line of an unknown key between two good ones."""
    follower = team.spark.spawn("tail", "-f")
    team.mac.send("spark", "good 1")
    team.mac.wire("sync")
    (odd,) = write(team.mac, CHANNEL, "who am I", by=Signer(bytes(range(32))))
    (good,) = write(team.mac, CHANNEL, "good 2")
    vera = team.vandal()
    vera.append(path(CHANNEL), odd + good)
    vera.commit()
    vera.push()
    for _ in range(5):
        team.spark.wire("sync", check=False)
    assert b"good 1" in follower.stdout.readline()
    assert b"good 2" in follower.stdout.readline()
    assert follower.poll() is None
    assert [(one["count"], one["scope"]) for one in incidents(team.spark, "KEY_UNKNOWN")] == [(1, CHANNEL)]
    # mac learns of the line that its own key signed, and the unknown one goes with its next push.
    team.mac.wire("sync", check=False)
    team.mac.send("spark", "good 3")
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    shown = follower.stdout.readline()
    while b" incident, " in shown:  # what the machines tell each other
        shown = follower.stdout.readline()
    assert b"good 3" in shown
    assert b"who am I" not in team.remote.show(path(CHANNEL))
    assert follower.poll() is None
    team.check(attacked=True)


def test_g16_a_trust_file_that_changed_underneath(team):
    """A peer adds a key of its own for another name: it is not honoured, and the trust in force stays."""
    thief = Signer(bytes(32))
    before = team.mac.json("trust", "show")
    vera = team.vandal()
    for file in ("_coordination/trust.json", "_coordination/trust/000004.json"):
        text = vera.read("_coordination/trust/000003.json").decode()
        public = re.search(r'"public": ?"([^"]+)"', text)[1]
        vera.write(file, text.replace(public, b64(thief.public)).replace('"version": 3', '"version": 4').encode())
    (line,) = write(team.mac, CHANNEL, "believe me", by=thief)
    vera.append(path(CHANNEL), line)
    vera.commit()
    vera.push()
    for machine in team.machines:
        assert machine.wire("sync", check=False).status == 4
        assert incidents(machine, "TRUST")
        assert machine.json("trust", "show") == before
    assert read(team.spark, status=4) == []
    # Malformed altogether: the last good one counts, and things go on.
    vera.sync()
    vera.write("_coordination/trust.json", b"{")
    vera.commit()
    vera.push()
    team.mac.send("spark", "goes on")
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert read(team.spark, status=4) == ["goes on"]
    assert team.spark.wire("status", check=False).status == 4
    assert team.remote.show("_coordination/trust.json") == team.remote.show("_coordination/trust/000003.json")
