"""The doctor finds what is wrong, says what to do, and is content with a machine on which all is well."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support import team
from support.machine import Machine
from support.small_disk import on_small_disk
from support.team import Team


def verdicts(machine: Machine, *, env: dict[str, str | None] | None = None) -> dict[str, tuple[str, str]]:
    """Return verdict and text per check."""
    done = machine.wire("doctor", "--json", check=False, env=env)
    checks = {one["check"]: (one["verdict"], f"{one['found']} | {one['next_step']}") for one in done.jsonl()}
    assert done.status == (1 if any(verdict == "wrong" for verdict, _ in checks.values()) else 0), str(done)
    return checks


def test_a_machine_on_which_all_is_well(team: Team) -> None:
    team.mac.wire("hooks", "install", "git")
    checks = verdicts(team.mac)
    notes = {name for name, (verdict, _) in checks.items() if verdict == "note"}
    assert notes == {"service"}  # there is no user manager here
    assert {verdict for verdict, _ in checks.values()} == {"ok", "note"}
    assert checks["hub: remote"][1].startswith("reachable 3/3")
    text = team.mac.wire("doctor").stdout
    assert "ok    git: git 2." in text
    assert "note  service:" in text
    assert "next: wire daemon run" in text


def test_a_daemon_that_was_started_by_hand_is_not_asked_for_again(team: Team) -> None:
    team.mac.start_daemon()
    verdict, said = verdicts(team.mac)["service"]
    assert verdict == "note"
    assert "a daemon that was started by hand serves this machine (process " in said
    assert "wire daemon run" not in said


def test_a_machine_without_a_wire(machines: Callable[..., Machine]) -> None:
    checks = verdicts(machines("fresh"))
    assert checks["configuration"][0] == "note"
    assert "wire join" in checks["configuration"][1]
    refused = machines("bare").wire("tail", check=False)
    assert refused.status == 2
    assert "`wire join CODE`" in refused.stderr


def loosen_a_key(crew: Team, tmp_path: Path) -> None:
    next((crew.mac.wire_home / "keys").glob("*/agent-mac.key")).chmod(0o644)


def remove_a_key(crew: Team, tmp_path: Path) -> None:
    next((crew.mac.wire_home / "keys").glob("*/agent-mac.key")).unlink()


def empty_the_pin(crew: Team, tmp_path: Path) -> None:
    (team.state(crew.mac) / "pin.json").write_bytes(b"")


def harm_the_trust(crew: Team, tmp_path: Path) -> None:
    (team.state(crew.mac) / "trust/000002.json").write_bytes(b"{}")


def take_the_remote_away(crew: Team, tmp_path: Path) -> None:
    crew.remote.path.rename(tmp_path / "gone")


def harm_the_configuration(crew: Team, tmp_path: Path) -> None:
    (crew.mac.wire_home / "config.toml").write_bytes(b"[[wire\n")


def silence_the_hook(crew: Team, tmp_path: Path) -> None:
    crew.mac.wire("hooks", "install", "git")
    (crew.mac.clone() / ".git/hooks/pre-commit").chmod(0o644)


def set_the_clock_back(crew: Team, tmp_path: Path) -> None:
    ahead = time.time() + 86_400
    os.utime(team.state(crew.mac) / "pin.json", (ahead, ahead))


def lose_the_branch(crew: Team, tmp_path: Path) -> None:
    crew.remote.git("update-ref", "-d", f"refs/heads/{crew.remote.branch}")


@pytest.mark.parametrize(
    ("harm", "check", "said"),
    [
        pytest.param(loosen_a_key, "hub: key of mac", "chmod 600", id="key-permissions"),
        pytest.param(remove_a_key, "hub: key of mac", "wire trust revoke mac --reason lost", id="key-missing"),
        pytest.param(empty_the_pin, "hub: pin and trust", "wire trust repin", id="pin"),
        pytest.param(harm_the_trust, "hub: pin and trust", "wire trust repin", id="trust"),
        pytest.param(take_the_remote_away, "hub: remote", "unreachable 0/3", id="remote-gone"),
        pytest.param(lose_the_branch, "hub: remote", "it has no branch", id="branch-gone"),
        pytest.param(harm_the_configuration, "configuration", "line 1", id="configuration"),
        pytest.param(silence_the_hook, "hub: hook", "hook inactive because", id="hook"),
        pytest.param(set_the_clock_back, "clock", "timedatectl", id="clock"),
    ],
)
def test_it_finds(team: Team, tmp_path: Path, harm: Callable[[Team, Path], None], check: str, said: str) -> None:
    assert verdicts(team.mac).get(check, ("ok", ""))[0] != "wrong"
    harm(team, tmp_path)
    found = verdicts(team.mac)
    assert found[check][0] == "wrong"
    assert said in found[check][1]
    # One trouble hides no other check.
    assert {"git", "clock", "disk", "service"} <= {name.partition(":")[0] for name in found}


def test_a_remote_that_answers_now_and_then(team: Team, tmp_path: Path) -> None:
    """Another trouble than none at all, and no reason to call it reachable."""
    counter = tmp_path / "count"
    flaky = tmp_path / "bin/ssh"
    flaky.parent.mkdir()
    flaky.write_text(
        "#!/bin/sh\n"
        'case "$*" in *-G*) exit 0;; esac\n'
        f'echo x >> {counter}\nn=$(wc -l < {counter})\n[ "$n" -eq 2 ] || {{ echo "ssh: connect to host h port 22: '
        'Connection refused" >&2; exit 255; }\n'
        'for last; do :; done\nexec sh -c "$last"\n'
    )
    flaky.chmod(0o755)
    team.reach_by(f"ssh://h{team.remote.path}")
    checks = verdicts(team.mac, env={"PATH": f"{flaky.parent}:{team.mac.env['PATH']}"})
    assert checks["hub: remote"][0] == "wrong"
    assert checks["hub: remote"][1].startswith("intermittent 1/3")


def test_an_old_git_or_none(team: Team, tmp_path: Path) -> None:
    old = tmp_path / "git"
    old.write_text("#!/bin/sh\necho git version 2.20.1\n")
    old.chmod(0o755)
    checks = verdicts(team.mac, env={"PATH": f"{tmp_path}:{team.mac.env['PATH']}"})
    assert checks["git"][0] == "wrong"
    assert "2.39" in checks["git"][1]
    checks = verdicts(team.mac, env={"PATH": "/nonexistent"})
    assert checks["git"] == ("wrong", "git not found in PATH=/nonexistent | " + checks["git"][1].partition(" | ")[2])


def test_another_program_called_wire(team: Team, tmp_path: Path) -> None:
    """It is told, and never run."""
    ran = tmp_path / "ran"
    other = tmp_path / "wire"
    other.write_text(f"#!/bin/sh\ntouch {ran}\necho wire 9.9\n")
    other.chmod(0o755)
    checks = verdicts(team.mac, env={"PATH": f"{tmp_path}:{team.mac.env['PATH']}"})
    assert checks["wire on PATH"][0] == "wrong"
    assert "git wire" in checks["wire on PATH"][1]
    assert not ran.exists()
    # Another installation of this one is worth knowing, and no fault.
    other.write_text("#!/usr/bin/python3\nfrom wire.cli import main\nmain()\n")
    assert verdicts(team.mac, env={"PATH": f"{tmp_path}:{team.mac.env['PATH']}"})["wire on PATH"][0] == "note"
    assert verdicts(team.mac, env={"PATH": "/usr/bin:/bin"})["wire on PATH"][0] == "note"


def test_a_disk_that_is_nearly_full(tmp_path: Path) -> None:
    ran = on_small_disk(
        tmp_path,
        """
from wire.doctor import examine
from wire.store.paths import Settings

settings = Settings.from_environ({"WIRE_HOME": DISK, "HOME": DISK, "PATH": "/usr/bin:/bin"}, "/")
for check in examine(settings):
    if check.name == "disk":
        print(check.verdict, check.found)
""",
        kib=1024,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("wrong ")
    assert "MiB free" in ran.stdout


def test_a_newcomer_who_waits_is_told_so(team: Team, tmp_path: Path) -> None:
    newcomer = team.new_machine("nova")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    newcomer.wire("join", team.remote.url, "--as", "nova", "--trust", checkpoint)
    checks = verdicts(newcomer)
    assert checks["hub: key of nova"][0] == "note"
    assert "wire trust approve nova" in checks["hub: key of nova"][1]


def test_it_prints_while_it_looks(team: Team) -> None:
    """A remote that does not answer takes a minute; what is known already is on the screen before."""
    process = team.mac.spawn("doctor", env={"GIT_SSH_COMMAND": "sleep 60"}, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"ok    git")
