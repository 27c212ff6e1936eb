"""Two machines over every transport: a local path, ssh with a real sshd, http with git's own backend."""

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import gitcmd, oracle, procs, sshd, team
from support.daemons import Inbox, set_cadence
from support.hostile_host import HostileHost
from support.machine import Machine
from support.remote import BareRemote
from support.waiting import eventually


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a path as short as a person's: a control socket below a test's own would not fit."""
    folder = Path(tempfile.mkdtemp(prefix="wt-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def over_ssh(server: sshd.Sshd, short: Path) -> Iterator[Callable[[str], Machine]]:
    """Return a function that makes machines which know the server."""
    made: list[Machine] = []

    def make(name: str) -> Machine:
        (short / name).mkdir()
        made.append(Machine(name, short / name))
        made[-1].env = server.environ(made[-1].env)
        return made[-1]

    yield make
    for machine in made:
        machine.close()


def converse(mac: Machine, spark: Machine, remote: BareRemote) -> None:
    """Begin, join, approve, and send both ways, by hand."""
    team.begin(mac, remote)
    team.join(mac, spark, remote)
    mac.wire("sync")
    mac.send("spark", "hello")
    spark.send("mac", "good morning")
    mac.wire("sync")
    spark.wire("sync")
    mac.wire("sync")
    assert team.read(spark) == ["hello"]
    assert team.read(mac) == ["good morning"]
    oracle.check([mac, spark], remote)


def masters(machine: Machine) -> list[str]:
    """Return the ssh connections that wait for the next use, which name their socket and lose their environment."""
    return [one.command for one in procs.processes() if one.command.startswith(f"ssh: {machine.root}/")]


def converse_by_daemons(mac: Machine, spark: Machine, remote: BareRemote) -> None:
    """Send both ways, by daemons alone."""
    inboxes = Inbox(mac), Inbox(spark)
    for machine in (mac, spark):
        machine.start_daemon("--log-level", "debug")
    for number in range(2):
        mac.send("spark", f"by daemon {number}")
        spark.send("mac", f"by daemon {number}")
        for inbox in inboxes:
            inbox.gets([f"by daemon {number}"])
    for machine in (mac, spark):
        eventually(lambda machine=machine: machine.json("status", check=False)["healthy"], what="a healthy daemon")


def stop(*machines: Machine, remote: BareRemote) -> None:
    """Stop daemons and ask the oracle."""
    for machine in machines:
        assert machine.stop_daemon() == 0
    oracle.check(machines, remote)


def test_daemons_leave_out_what_is_huge_over_ssh_and_heal(server, over_ssh, remote, tmp_path):
    remote.url = server.url(remote.path)
    gitcmd.git(remote.path, "config", "uploadpack.allowFilter", "true")
    mac, spark = over_ssh("mac"), over_ssh("spark")
    team.begin(mac, remote)
    team.join(mac, spark, remote)
    vera = remote.clone_as_vandal(tmp_path / "vera")
    inboxes = Inbox(mac), Inbox(spark)
    for machine in (mac, spark):
        set_cadence(machine, t0=1, hot=[1])
        # A limit of the system stands for the cap of a fetch, which would take half a gigabyte to reach.
        machine.start_daemon(prefix=("sh", "-c", 'ulimit -f 4096; exec "$@"', "sh"))
    (vera.path / "huge").write_bytes(random.Random(1).randbytes(3 << 20))
    vera.commit()
    vera.push()
    mac.send("spark", "behind the flood")
    inboxes[1].gets(["behind the flood"])
    assert (spark.clone() / ".git" / "wire-left-out").exists()

    for machine in (mac, spark):
        assert machine.stop_daemon() == 0
    HostileHost(remote).recreate()
    spark.send("mac", "while it stands still")
    for machine in (spark, mac):
        machine.wire("sync", check=False)
        assert team.pin(machine).frozen
    spark.wire("heal", check=False)
    mac.wire("sync", check=False)
    assert "while it stands still" in inboxes[0].look()
    mac.send("spark", "after the heal")
    for machine in (mac, spark):
        machine.wire("sync", check=False)
        assert team.pin(machine).frozen is None
    assert "after the heal" in inboxes[1].look()
    oracle.check([mac, spark], remote, attacked=True)


def test_over_ssh(server, over_ssh, remote):
    remote.url = server.url(remote.path)
    mac, spark = over_ssh("mac"), over_ssh("spark")
    converse(mac, spark, remote)
    eventually(lambda: not masters(mac) + masters(spark), what="a command ends the connection that it opened")
    run = mac.wire_home / "state" / ".run"
    assert list(run.iterdir()) == []
    before = server.connections
    mac.send("spark", "one more")
    mac.wire("sync")
    assert server.connections == before + 1, "fetch, push and the look at the tip share one connection"
    assert run.stat().st_mode & 0o777 == 0o700

    converse_by_daemons(mac, spark, remote)
    assert len(masters(mac)) == len(list(run.iterdir())) == 1, "a daemon keeps one"
    before = server.connections
    mac.wire("sync")
    assert len(masters(mac)) == 1, "which a command uses and leaves"
    assert server.connections == before
    stop(mac, spark, remote=remote)
    assert masters(mac) + masters(spark) == []
    assert list(run.iterdir()) == []


def test_connections_that_die_under_a_daemon(server, over_ssh, remote):
    """Cut by the host, and half open as after a nap or behind a router that forgot it."""
    remote.url = server.url(remote.path)
    mac = over_ssh("mac")
    team.begin(mac, remote)
    mac.start_daemon("--log-level", "debug", env={"WIRE_GIT_TIMEOUT": "3"})

    def arrives(body: str) -> None:
        mac.remember(mac.wire("send", "all", body, "--wait", "pushed", "--timeout", "30"))

    arrives("before")
    assert len(masters(mac)) == 1
    server.stop()
    server.start()
    arrives("after the host came back")
    server.freeze_connections()
    arrives("after the connection went dead")
    eventually(lambda: mac.json("status", check=False)["healthy"], what="a healthy daemon")
    stop(mac, remote=remote)
    eventually(lambda: not masters(mac), what="the end of every connection")
    assert list((mac.wire_home / "state" / ".run").iterdir()) == []


def test_over_http(host, machines, remote):
    remote.url = host.url(remote.path.name)
    mac, spark = machines("mac"), machines("spark")
    converse(mac, spark, remote)
    converse_by_daemons(mac, spark, remote)
    stop(mac, spark, remote=remote)


def test_over_a_file_url(machines, remote):
    remote.url = remote.path.as_uri()
    converse(machines("mac"), machines("spark"), remote)


# Repositories with SHA-256 objects


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_an_empty_remote_on_a_local_path_tells_its_object_format(machines, tmp_path, object_format):
    remote = BareRemote(tmp_path / "x.git", object_format=object_format)
    mac, spark = machines("mac"), machines("spark")
    converse(mac, spark, remote)
    assert {len(remote.tip()), len(team.pin(spark, "x").verified)} == {64 if object_format == "sha256" else 40}
    assert mac.wire("verify", "--full").status == 0
    shutil.rmtree(mac.clone() / ".git")
    mac.wire("repair")
    mac.send("spark", "from a new repository")
    mac.wire("sync")
    spark.wire("sync")
    oracle.check([mac, spark], remote)


def test_an_empty_remote_elsewhere_is_told_its_object_format(host, machines, tmp_path):
    """A host does not tell what an empty repository is made for; git says so at the first push."""
    remote = BareRemote(tmp_path / "x.git", object_format="sha256")
    remote.url = host.url("x.git")
    mac, spark = machines("mac"), machines("spark")
    refused = mac.wire("init", remote.url, "--as", "mac", check=False)
    assert refused.status == 2, str(refused)
    assert "--object-format sha256" in refused.stderr
    assert mac.clones == []
    checkpoint = mac.json("init", remote.url, "--as", "mac", "--object-format", "sha256")["checkpoint"]
    spark.wire("join", remote.url, "--as", "spark", "--trust", checkpoint)
    assert len(team.pin(spark, "x").verified) == 64


def test_a_lost_clone_and_pin_come_back_in_the_remotes_object_format(machines, tmp_path):
    remote = BareRemote(tmp_path / "x.git", object_format="sha256")
    mac = machines("mac")
    checkpoint = team.begin(mac, remote)
    shutil.rmtree(mac.clone() / ".git")
    (team.state(mac, "x") / "pin.json").unlink()
    mac.wire("trust", "repin", "--checkpoint", checkpoint)
    mac.wire("sync")
    oracle.check([mac], remote)


def test_an_object_format_that_is_not_the_remotes_is_refused(machines, remote):
    mac = machines("mac")
    refused = mac.wire("init", remote.url, "--as", "mac", "--object-format", "sha256", check=False)
    assert refused.status == 2, str(refused)
    assert "sha1" in refused.stderr
    assert mac.clones == []


# A project's repository


def test_a_wire_beside_a_large_project_brings_nothing_of_it_here(machines, remote, tmp_path):
    """Its branches are looked at, at their tips and without their files; only the wire's own is fetched."""
    vera = remote.clone_as_vandal(tmp_path / "vera")
    for number in range(5):
        vera.write(f"assets/{number}.bin", random.Random(number).randbytes(1 << 20))
        vera.commit(f"release {number}")
    vera.push()
    mac, spark = machines("mac"), machines("spark")
    made = mac.json("init", remote.url, "--as", "mac")
    assert made["branch"] == "wire"
    spark.wire("join", remote.url, "--as", "spark", "--trust", made["checkpoint"])
    refused = spark.wire("init", remote.url, "--as", "other", "--wire", "second", check=False)
    assert (refused.status, "already carries a wire" in refused.stderr) == (2, True)
    for machine in (mac, spark):
        assert [clone.name for clone in machine.clones] == ["hub"]
        files = [file for file in machine.clone().rglob("*") if file.is_file()]
        assert sum(file.stat().st_size for file in files) < 1 << 20
        assert not (machine.clone() / ".git" / "shallow").exists()
        assert "assets" not in "".join(gitcmd.line(machine.clone(), "log", "--all", "--name-only"))
    assert remote.files() == [f"assets/{number}.bin" for number in range(5)]
