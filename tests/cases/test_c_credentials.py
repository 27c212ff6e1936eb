"""C1, C6, C7: a host that asks who we are."""

import base64
import json
import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest

from support.clones import script
from support.http_git import Fault
from support.machine import Machine
from support.team import incidents, read

SECRET = "SECRETsecretSECRET"


def on_a_terminal(machine: Machine, *args: str, seconds: float) -> tuple[int, str]:
    """Run `wire ARGS` with a terminal that nobody types at; return its exit status and what it showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(machine.home)
        os.execve(machine.program, [str(machine.program), *args], machine.environ())
    shown = b""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    shown += os.read(terminal, 65536)
                except OSError:  # the other end is closed
                    break
        else:
            raise AssertionError(f"still running after {seconds:g} s; it showed: {shown!r}")
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode("utf-8", "replace")
    finally:
        os.close(terminal)


@pytest.mark.parametrize("where", ["terminal", "service"])
def test_c1_nobody_is_asked_for_credentials(team, host, tmp_path, where):
    """Neither the terminal that is there nor a window: git would wait for ever for somebody to type."""
    team.reach_by(host.url("hub.git"))
    host.credentials = ("mac", "token")
    asked = tmp_path / "asked"
    window = str(script(tmp_path / "window", f"echo asked >>{asked}; echo token"))
    (team.mac.home / ".gitconfig").write_text(f"[core]\n\taskPass = {window}\n")
    team.mac.env |= {"GIT_ASKPASS": window, "SSH_ASKPASS": window, "DISPLAY": ":0"}
    team.mac.send("spark", "it waits")
    if where == "terminal":
        status, shown = on_a_terminal(team.mac, "sync", seconds=20)
    else:
        result = team.mac.wire("sync", check=False, timeout=20)
        status, shown = result.status, result.stderr
    assert status == 6
    assert shown.count("(authentication, http-401)") == 1, "and it is said once"
    assert "could not read Username" in shown
    assert not re.search(r"(Username|Password) for .*:\s*\Z", shown), "no prompt"
    assert not asked.exists()
    (incident,) = incidents(team.mac)
    assert incident["code"] == "AUTH"
    looked = team.mac.wire("status", check=False)
    assert looked.status == 6
    assert "authentication" in looked.stdout
    host.credentials = None
    team.sync_and_check()
    assert incidents(team.mac) == []


def test_c6_an_expired_token_is_told_at_once_and_a_renewed_one_works(team, host, tmp_path):
    team.reach_by(host.url("hub.git"))
    host.credentials = ("mac", "good")
    token, told = tmp_path / "token", tmp_path / "told"
    helper = script(
        tmp_path / "helper",
        f'echo $1 >>{told}\n[ "$1" = get ] && echo username=mac && echo password=$(cat {token}); exit 0',
    )
    for machine in team.machines:
        (machine.home / ".gitconfig").write_text(f"[credential]\n\thelper = {helper}\n")
    token.write_text("good")
    team.sync_and_check()
    assert team.mac.json("status", check=False)["failure"] == ""

    host.credentials = ("mac", "renewed")
    team.mac.send("spark", "one")
    team.mac.send("spark", "two")
    asked = []
    for _ in range(3):
        told.write_text("")
        failed = team.mac.wire("sync", check=False)
        assert failed.status == 6
        assert "authentication" in failed.stderr
        asked.append(told.read_text().split().count("get"))
    assert min(asked) >= 1, "the helper is asked anew at each attempt"
    (incident,) = incidents(team.mac)
    assert (incident["code"], incident["count"]) == ("AUTH", 3)
    seen = team.mac.json("status", check=False)
    assert (seen["failure"], seen["unpushed"], seen["exit_status"]) == ("git-auth", 2, 6)
    assert seen["failing_since"] <= time.time() - 0.1
    assert "http-401" in seen["failure_text"]
    (told_line,) = [line for line in team.mac.wire("status", check=False).stdout.split("\n") if "http-401" in line]
    assert re.search(r"since 20..-.*, 2 message\(s\) unpushed: git fetch failed \(authentication", told_line), told_line

    token.write_text("renewed")
    team.sync_and_check()
    assert read(team.spark) == ["one", "two"]
    assert incidents(team.mac) == []
    assert team.mac.json("status", check=False)["failure"] == ""


def test_c6_a_token_that_may_only_read(team, host, tmp_path):
    """The look succeeds, the push does not: the status says which of the two."""
    team.reach_by(host.url("hub.git"))
    team.mac.wire("sync")
    host.refuse_pushes = True
    team.mac.send("spark", "one")
    failed = team.mac.wire("sync", check=False)
    assert failed.status == 6
    assert "git push failed (authentication, http-403)" in failed.stderr
    shown = team.mac.wire("status", check=False).stdout
    assert re.search(r"since 20.*, 1 message\(s\) unpushed: git push failed \(authentication, http-403\)", shown), shown
    seen = team.mac.json("status", check=False)
    assert seen["fetch_age_s"] < 30


# C7

FAULTS: tuple[Fault | None, ...] = (None, "401", "403", "404", "429", "500", "login", "redirect", "cut", "silent")

TRACE = ("strace", "-f", "--seccomp-bpf", "-qq", "-s", "100000", "-e", "trace=execve")


def traced(machine: Machine, *args: str, log: Path) -> subprocess.CompletedProcess[bytes]:
    """Run `wire ARGS` and note every command line of it and of all that it starts in `log`."""
    return subprocess.run(
        [*TRACE, "-o", log, machine.program, *args],
        env=machine.environ({"WIRE_GIT_TIMEOUT": "2"}),
        cwd=machine.home,
        capture_output=True,
        timeout=60,
    )


def test_c7_a_token_in_the_remotes_url_is_seen_nowhere(machines, host, remote, tmp_path):
    """Only where a person put it: in the configuration, and in the pin beside it, which nobody else can read."""
    host.credentials = ("x-access-token", SECRET)
    url = host.url("hub.git", userinfo=f"x-access-token:{SECRET}")
    mac = machines("mac")
    told: list[bytes] = []

    def run(*args: str) -> int:
        log = tmp_path / "strace.log"
        done = traced(mac, *args, log=log)
        # The first command line is the person's own.
        commands = log.read_bytes().split(b"\n", 1)[1]
        assert b"git-remote-http" in commands
        told.extend((done.stdout, done.stderr, commands))
        return done.returncode

    assert run("init", url, "--as", "mac") == 0
    assert f"wire join {host.url('hub.git')} --as NAME --trust 1:SHA256:".encode() in told[0], "for others, as it is"
    mac.send("all", "hello")
    for fault in FAULTS:
        host.fault = fault
        assert run("sync") == (6 if fault else 0), fault
    host.fault = None
    remote.reject_pushes(f"not with {url}")
    mac.send("all", "rejected")
    assert run("sync") == 6
    remote.remove_pre_receive()
    host.credentials = ("x-access-token", "another")
    assert run("sync") == 6
    for command in (("status",), ("incidents", "--all"), ("status", "--json"), ("incidents", "--all", "--json")):
        done = mac.wire(*command, check=False)
        told += [done.out, done.err]
    for one in incidents(mac, everything=True):
        told.append(mac.wire("incidents", "show", one["id"]).out)
    told.append(mac.wire("sync", "--json", check=False).out)
    told.append(mac.wire("join", url, "--as", "mac", "--trust", "nonsense", check=False).err)
    told.append(mac.wire("init", "--as", "mac", "hub.git", url, check=False).err)
    told.append(mac.wire("init", url, "--as", "another", "--wire", "hub", check=False).err)
    host.credentials = ("x-access-token", SECRET)
    mac.wire("sync")
    told.append(remote.git("log", "--format=%an %ae %cn %ce %B", "main"))
    told.append(remote.git("cat-file", "--batch-all-objects", "--batch"))

    secrets = [SECRET.encode(), base64.b64encode(f"x-access-token:{SECRET}".encode())]
    for text in told:
        for secret in secrets:
            assert secret not in text, text[max(0, text.index(secret) - 200) :][:500]
    may = {mac.wire_home / "config.toml", mac.wire_home / "state" / "hub" / "pin.json"}
    files = [file for file in mac.root.rglob("*") if file.is_file()]
    holders = {file for file in files if any(secret in file.read_bytes() for secret in secrets)}
    assert holders <= may
    assert {file.stat().st_mode & 0o777 for file in holders} == {0o600}
    assert json.loads(mac.wire("status", "--json", check=False).out)["remote"].startswith("http://***@127.0.0.1")
