"""The daemon as a service under a real systemd user manager: it starts, is ready, works, survives, and stops."""

import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import user_systemd
from support.machine import Notices, Result, installed
from support.sizes import size
from support.team import Team, bodies
from support.user_systemd import RUNTIME_DIR, UserManager
from support.waiting import eventually
from wire.systemd import unit
from wire.systemd.unit import NAME

RESTARTS = size(6, 50, "restarts of the service during syncs")


class Serviced:
    """A team whose `mac` has a user manager; its `wire` runs beside it."""

    def __init__(self, team: Team, manager: UserManager) -> None:
        self.team = team
        self.mac, self.spark = team.mac, team.spark
        self.manager = manager
        self.unit_file = self.mac.home / ".config/systemd/user" / NAME
        self.mac.env["XDG_RUNTIME_DIR"] = RUNTIME_DIR
        self.enter()

    def enter(self) -> None:
        """Have `wire` run in the manager's namespaces, also after it was started anew."""
        self.mac.program = self.manager.wrapper(self.mac.root / "wire-beside", installed())

    def service(self, *args: str, **rest: object) -> Result:
        return self.mac.wire("service", *args, **rest)  # type: ignore[arg-type]

    def show(self, name: str) -> str:
        return self.manager.show(NAME, name)

    def pid(self) -> int:
        """Return the daemon's process id as the tests see it."""
        return self.manager.outer_pid(int(self.show("MainPID")))

    def is_running(self) -> bool:
        return self.show("ActiveState") == "active" and self.service("status", check=False).status == 0

    def reload(self) -> None:
        self.manager.run("systemctl", "--user", "daemon-reload")

    def drop_in(self, text: str) -> Path:
        file = Path(f"{self.unit_file}.d") / "override.conf"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.reload()
        return file

    def log(self) -> str:
        file = self.mac.wire_home / "state/daemon.log"
        return file.read_text("utf-8", "replace") if file.exists() else ""

    def locks(self) -> list[Path]:
        return [path for folder in (self.mac.clone(), self.team.remote.path) for path in folder.rglob("*.lock")]

    def gets_through(self, *texts: str) -> None:
        """Send from both sides; the service alone moves what concerns `mac`."""
        read: list[object] = []
        got: list[object] = []
        for text in texts:
            self.mac.send("spark", text)
            self.spark.send("mac", text)
        self.spark.wire("sync")

        def arrived() -> bool:
            self.spark.wire("sync", check=False)
            read.extend(bodies(self.spark.wire("tail", "--json", check=False)))
            got.extend(bodies(self.mac.wire("tail", "--json", check=False)))
            return set(texts) <= set(read) and set(texts) <= set(got)

        eventually(arrived, timeout=40, every=0.3, what=lambda: f"{texts}: {read}, {got}\n{self.log()[-3000:]}")


@pytest.fixture
def serviced(team: Team, tmp_path: Path) -> Iterator[Serviced]:
    missing = user_systemd.wanting()
    if missing is not None:
        pytest.skip(missing)
    kept = ("GIT_CONFIG_NOSYSTEM", "TEST_MACHINE", "TMPDIR", "XDG_CONFIG_HOME")
    env = {name: team.mac.env[name] for name in kept}
    with UserManager(tmp_path / "systemd", home=team.mac.home, env=env) as manager:
        yield Serviced(team, manager)


def test_it_is_installed_runs_and_carries_messages(serviced: Serviced) -> None:
    done = serviced.mac.json("service", "install")
    assert (done["action"], done["running"], done["unit"]) == ("installed", True, str(serviced.unit_file))
    assert serviced.show("ActiveState") == "active"
    assert serviced.show("UnitFileState") == "enabled"
    serviced.gets_through("hello", "again")
    status = serviced.mac.json("service", "status")
    assert status["healthy"], status
    assert [one["daemon"] for one in status["wires"]] == ["running"]
    assert status["wires"][0]["pid"] == int(status["systemd"]["MainPID"])
    serviced.team.settle()
    serviced.team.check()

    # Once more: nothing changes, and the daemon is not disturbed.
    pid, text = serviced.pid(), serviced.unit_file.read_bytes()
    assert serviced.mac.json("service", "install")["action"] == "unchanged"
    assert (serviced.pid(), serviced.unit_file.read_bytes()) == (pid, text)

    # From another place: the unit follows, and the daemon is started anew.
    changed = serviced.mac.json("service", "install", env={"GIT_SSH_COMMAND": "ssh -F none"})
    assert changed["action"] == "updated"
    assert b"GIT_SSH_COMMAND" in serviced.unit_file.read_bytes()
    assert serviced.pid() != pid

    # The daemon is in the sandbox that the unit describes.
    facts = Path(f"/proc/{serviced.pid()}/status").read_text()
    assert "\nNoNewPrivs:\t1\n" in facts
    assert "\nSeccomp:\t2\n" in facts
    assert "\nUmask:\t0077\n" in facts

    # What it printed can be read, and it is said from where.
    logs = serviced.service("logs", "-n", "100")
    assert " ready " in logs.stdout
    assert "without a journal the service prints to" in logs.stderr
    assert "ready" not in serviced.service("logs", "-n", "0").stdout


def test_it_survives_a_kill_and_ends_when_told(serviced: Serviced) -> None:
    serviced.service("install")
    serviced.gets_through("before")
    os.kill(serviced.pid(), signal.SIGKILL)
    serviced.mac.send("spark", "sent while it was dead")
    assert serviced.service("status", check=False).status == 1
    eventually(serviced.is_running, timeout=30, every=0.3, what=lambda: serviced.manager.log())
    assert serviced.show("NRestarts") == "1"
    serviced.gets_through("after")

    begin = time.monotonic()
    serviced.service("stop")
    assert time.monotonic() - begin < 8
    assert serviced.locks() == []
    assert serviced.show("Result") == "success"
    stopped = serviced.service("status", check=False)
    assert stopped.status == 1
    assert "systemd says inactive" in stopped.stderr
    assert "daemon stopped" in stopped.stdout

    serviced.service("start")
    serviced.gets_through("started again")
    serviced.team.settle()
    serviced.team.check()


def test_it_is_restarted_again_and_again_while_it_syncs(serviced: Serviced) -> None:
    """Every restart ends git children in the middle of something; no lock stays, and nothing is lost."""
    serviced.service("install")
    stop = threading.Event()
    failures: list[Exception] = []

    def talk() -> None:
        try:
            for number in itertools.count():
                if stop.is_set():
                    return
                serviced.mac.send("spark", f"from mac {number}")
                serviced.spark.send("mac", f"from spark {number}")
                serviced.spark.wire("sync", check=False)
        except (AssertionError, subprocess.SubprocessError) as error:
            failures.append(error)

    talking = threading.Thread(target=talk)
    talking.start()
    try:
        for number in range(RESTARTS):
            serviced.service("restart", timeout=60)
            time.sleep(0.05 * (number % 8))
    finally:
        stop.set()
        talking.join()
    assert not failures, failures
    serviced.gets_through("the end")
    serviced.service("stop")
    assert serviced.locks() == []
    serviced.team.settle()
    serviced.team.check()


def test_a_daemon_that_hangs_is_ended_by_the_watchdog(serviced: Serviced) -> None:
    serviced.service("install", "--no-start")
    serviced.drop_in("[Service]\nWatchdogSec=2\nRestartSec=100ms\n")
    serviced.service("start")
    os.kill(serviced.pid(), signal.SIGSTOP)
    eventually(lambda: serviced.show("NRestarts") == "1", timeout=40, what=lambda: serviced.manager.log())
    eventually(serviced.is_running, timeout=30, every=0.3, what=lambda: serviced.manager.log())
    serviced.gets_through("after a hang")


def test_it_comes_back_after_the_manager_was_killed(serviced: Serviced) -> None:
    """As at a logout without lingering, or a crash of the machine: the next start recovers by itself."""
    serviced.service("install")
    serviced.gets_through("before")
    serviced.spark.send("mac", "sent meanwhile")
    serviced.spark.wire("sync")
    serviced.manager.kill()
    serviced.mac.program = installed()
    serviced.mac.send("spark", "written meanwhile")
    serviced.manager.start()
    serviced.enter()
    eventually(serviced.is_running, timeout=30, every=0.3, what=lambda: serviced.manager.log())
    serviced.gets_through("after")
    serviced.team.settle()
    serviced.team.check()


def test_it_is_removed_without_a_trace(serviced: Serviced) -> None:
    serviced.service("install")
    override = serviced.drop_in("[Service]\nNice=5\n")
    text = serviced.service("uninstall").stdout
    assert str(serviced.unit_file) in text
    assert not serviced.unit_file.exists()
    assert override.exists()
    assert serviced.show("ActiveState") == "inactive"
    assert not list(serviced.unit_file.parent.glob("*.wants/*"))
    assert serviced.service("uninstall").stdout.strip() == "the service is not installed"
    for command in ("start", "stop", "restart", "logs"):
        refused = serviced.service(command, check=False)
        assert refused.status == 1
        assert "wire service install" in refused.stderr
    serviced.team.settle()


def test_a_unit_that_somebody_edited_is_kept(serviced: Serviced) -> None:
    serviced.service("install", "--no-start")
    edited = serviced.unit_file.read_text().replace("RestartSec=5", "RestartSec=7")
    serviced.unit_file.write_text(edited)
    for command in ("install", "uninstall"):
        refused = serviced.service(command, check=False)
        assert refused.status == 2
        assert "was edited" in refused.stderr
        assert serviced.unit_file.read_text() == edited
    done = serviced.mac.json("service", "install", "--force")
    assert Path(done["kept"]).read_text() == edited
    assert unit.origin(serviced.unit_file.read_bytes()) is unit.Origin.OURS
    assert done["running"]

    # Somebody else's unit of this name, and a masked one.
    serviced.service("uninstall")
    serviced.unit_file.write_text("[Service]\nExecStart=/bin/true\n")
    refused = serviced.service("install", check=False)
    assert "was not written by wire" in refused.stderr
    serviced.unit_file.unlink()
    serviced.unit_file.symlink_to("/dev/null")
    refused = serviced.service("install", check=False)
    assert refused.status == 1
    assert "systemctl --user unmask" in refused.stderr


def test_it_does_not_start_beside_a_daemon_that_runs_by_hand(serviced: Serviced) -> None:
    beside, serviced.mac.program = serviced.mac.program, installed()
    daemon = serviced.mac.start_daemon(prefix=tuple(serviced.manager.entering()))
    serviced.mac.program = beside
    refused = serviced.service("install", check=False)
    assert refused.status == 1
    assert "serves hub already" in refused.stderr
    assert serviced.show("ActiveState") == "inactive"
    step = refused.stderr.partition("next: end it (")[2].partition(")")[0]
    serviced.manager.run(*step.split())
    daemon.process.wait(20)
    serviced.mac.stop_daemon()
    serviced.service("start")
    serviced.gets_through("by the service")


def test_who_starts_it_by_hand_is_not_held_up_by_earlier_failures(serviced: Serviced) -> None:
    log = serviced.mac.wire_home / "state/daemon.log"
    log.write_bytes(bytes(9 << 20))
    serviced.service("install", "--no-start")
    serviced.drop_in("[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=2\n")
    for _ in range(4):
        serviced.service("restart")
    assert serviced.show("ActiveState") == "active"
    # A log that had grown was set aside, and nothing of it is lost.
    assert log.stat().st_size < 1 << 20
    assert log.with_name("daemon.log.1").stat().st_size == 9 << 20
    serviced.unit_file.touch()
    serviced.unit_file.write_text(serviced.unit_file.read_text() + "# mine\n")
    assert "daemon-reload" in serviced.service("status", check=False).stderr


@pytest.fixture
def word() -> Iterator[Path]:
    """A file with a passphrase. Not in /dev/shm, which a manager covers while it reads what is to be a credential."""
    with tempfile.TemporaryDirectory(prefix="wire-word-", dir="/var/tmp") as folder:
        file = Path(folder) / "a word, 100 % mine"
        file.write_text("correct horse battery\n")
        yield file


def test_a_passphrase_comes_as_a_credential(serviced: Serviced, word: Path) -> None:
    serviced.mac.wire("keys", "passphrase", "--stdin", input="correct horse battery\n")
    loose = serviced.service("install", "--passphrase-file", word, check=False)
    assert loose.status == 2
    assert "chmod 600" in loose.stderr
    word.chmod(0o600)

    # Without it the service runs, and says what it cannot do.
    done = serviced.mac.json("service", "install")
    assert done["running"]
    assert any("--passphrase-file" in note for note in done["notes"])
    eventually(lambda: "key of mac is locked" in serviced.mac.wire("status", check=False).stdout, what="it says so")

    # With it, by an option once; afterwards the unit keeps it.
    done = serviced.mac.json("service", "install", "--passphrase-file", word)
    assert (done["action"], done["running"]) == ("updated", True)
    assert not [note for note in done["notes"] if "passphrase" in note]
    assert serviced.mac.json("service", "install")["action"] == "unchanged"
    assert b"correct horse" not in serviced.unit_file.read_bytes()

    def well() -> bool:
        return "locked" not in serviced.mac.wire("status", check=False).stdout

    eventually(well, what="the service opens the key")
    silent = serviced.team.remote.git("rev-parse", "refs/wire/presence/mac")
    serviced.mac.wire("state", "busy")
    eventually(
        lambda: serviced.team.remote.git("rev-parse", "refs/wire/presence/mac") != silent,
        timeout=40,
        what="a presence that the service signed",
    )
    for file in ("environ", "cmdline"):
        assert b"correct horse" not in Path(f"/proc/{serviced.pid()}/{file}").read_bytes()

    # The file is gone at the next start: the service is there all the same.
    word.unlink()
    serviced.service("restart")
    assert serviced.show("ActiveState") == "active"
    eventually(lambda: not well(), what="it says so again")
    assert serviced.mac.json("service", "install", "--passphrase-file", "")["action"] == "updated"
    assert b"Credential" not in serviced.unit_file.read_bytes()


def test_lingering_is_told_with_the_command(serviced: Serviced) -> None:
    command = "loginctl enable-linger root"
    unknown = serviced.service("install", "--no-start")
    assert "cannot tell" in unknown.stderr
    assert command in unknown.stderr
    serviced.manager.run("mkdir", "/var/lib/systemd/linger")
    off = serviced.service("install", "--no-start")
    assert "lingering is off" in off.stderr
    assert command in off.stderr
    assert "lingering off" in serviced.service("status", check=False).stdout
    serviced.manager.run("touch", "/var/lib/systemd/linger/root")
    on = serviced.service("install", "--no-start")
    assert on.stderr == ""
    assert "lingering on" in serviced.service("status", check=False).stdout


def test_with_a_journal_its_lines_are_there(serviced: Serviced) -> None:
    serviced.manager.start_journal()
    serviced.service("install")
    assert "StandardOutput=journal" in serviced.unit_file.read_text()
    logs = eventually(lambda: serviced.service("logs") if "ready" in serviced.service("logs").stdout else None)
    assert "wire[" in logs.stdout
    assert "this is from the system's" in logs.stderr
    assert not (serviced.mac.wire_home / "state/daemon.log").exists()


def test_a_shared_repository_on_this_machine_can_be_pushed_to(serviced: Serviced) -> None:
    """git sets the group bit of its folders there, which a sandbox may forbid."""
    serviced.team.remote.git("config", "core.sharedRepository", "group")
    shutil.rmtree(serviced.team.remote.path / "objects/00", ignore_errors=True)
    serviced.service("install")
    assert "RestrictSUIDSGID=no" in serviced.unit_file.read_text()
    serviced.gets_through("through a shared repository")


@pytest.mark.parametrize("form", ["openpgp", "ssh"])
def test_a_user_who_signs_commits_is_not_asked(serviced: Serviced, form: str) -> None:
    """The signing program of the user waits for ever."""
    program = serviced.mac.root / "sign"
    program.write_text("#!/bin/sh\nexec sleep 9999\n")
    program.chmod(0o755)
    (serviced.mac.home / ".gitconfig").write_text(
        f"[commit]\n\tgpgsign = true\n[tag]\n\tgpgsign = true\n[push]\n\tgpgsign = true\n"
        f'[gpg]\n\tformat = {form}\n\tprogram = {program}\n[gpg "ssh"]\n\tprogram = {program}\n'
        "[user]\n\tsigningkey = /nowhere\n"
    )
    serviced.service("install")
    serviced.gets_through("not signed by the user")


@pytest.mark.parametrize("name", ["my 50% env ö", 'it\'s "mine" $HOME \\'])
def test_odd_paths_are_no_obstacle(serviced: Serviced, name: str) -> None:
    """An environment and a home with blanks, per cent signs and quotes in their names."""
    odd = serviced.mac.root / name
    odd.symlink_to(Path(sys.prefix))
    home = serviced.mac.root / f"{name} wires"
    serviced.mac.wire_home.rename(home)
    serviced.mac.wire_home = home
    serviced.mac.env["WIRE_HOME"] = str(home)
    program = serviced.mac.root / "wire-odd"
    words = " ".join([*serviced.manager.entering(), shlex.quote(str(odd / "bin/python")), "-P", "-m", "wire"])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    serviced.mac.program = program
    serviced.service("install")
    assert str(odd / "bin/python") in unit.command(serviced.unit_file.read_bytes())
    serviced.gets_through("from an odd place")
    assert "ok    service: entry point" in serviced.mac.wire("doctor", check=False).stdout


def test_doctor_runs_the_very_program_that_the_unit_names(serviced: Serviced) -> None:
    serviced.service("install")
    eventually(serviced.is_running, timeout=20, what="the service")
    healthy = serviced.mac.wire("doctor")
    assert "ok    service: entry point" in healthy.stdout
    text = serviced.unit_file.read_text()
    serviced.unit_file.write_text(text.replace(unit.command(text.encode())[0], "/opt/gone/bin/python3"))
    serviced.reload()
    sick = serviced.mac.wire("doctor", check=False)
    assert sick.status == 1
    assert "wrong service: entry point" in sick.stdout
    assert "/opt/gone/bin/python3" in sick.stdout
    assert "wire service install" in sick.stdout


def test_the_unit_starts_with_a_bare_path(team: Team, tmp_path: Path) -> None:
    """As cron or a manager without a login shell would run it."""
    missing = user_systemd.wanting()
    if missing is not None:
        pytest.skip(missing)
    with UserManager(tmp_path / "systemd", home=team.mac.home) as manager:
        serviced = Serviced(team, manager)
        serviced.service("install", "--no-start")
        words = unit.command(serviced.unit_file.read_bytes())
    bare = {"PATH": "/usr/local/bin:/usr/bin", "WIRE_HOME": str(team.mac.wire_home)}
    notices = Notices()
    daemon = subprocess.Popen(
        words, env={**bare, "NOTIFY_SOCKET": notices.address, "TEST_MACHINE": str(team.mac.root)}, cwd="/"
    )
    try:
        assert notices.wait("READY=1", 20)
        team.mac.program = installed()
        team.mac.send("spark", "from a bare path")
        eventually(lambda: team.mac.json("status", check=False)["unpushed"] == 0, what="pushed")
    finally:
        daemon.terminate()
        daemon.wait(20)
        notices.close()

    without_git = subprocess.run(
        [*words[: -len(("daemon", "run"))], "sync", "--json"],
        env={**bare, "PATH": "/nonexistent"},
        capture_output=True,
        cwd="/",
        timeout=60,
    )
    assert without_git.returncode != 0
    assert "git not found in PATH=/nonexistent" in json.dumps(json.loads(without_git.stdout))


@pytest.mark.parametrize("command", ["install", "uninstall", "start", "stop", "restart", "status", "logs"])
def test_without_a_user_manager_it_is_said_what_to_do(team: Team, command: str) -> None:
    done = team.mac.wire("service", command, check=False, env={"DBUS_SESSION_BUS_ADDRESS": None})
    assert done.status == 1
    assert "there is no systemd user manager" in done.stderr
    assert "next: wire daemon run" in done.stderr
    assert not (team.mac.home / ".config/systemd").exists()


def test_without_systemctl_it_is_said_too(team: Team) -> None:
    done = team.mac.wire("service", "install", check=False, env={"PATH": "/nonexistent"})
    assert done.status == 1
    assert "no systemctl on PATH" in done.stderr
