"""What the commands that agents run all the time may import: every module costs about as much as the fsync of a send.

The lists are exact for `wire`. Of the standard library everything that click and PyNaCl bring is free; what comes on
top stands here by name. A module that is missing from a list is no accident to be waved through: look for a way to
import it only where it is needed, and add it here when there is none.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.team import Team

RUN = "from wire.__main__ import main; main()"
BROUGHT = "import click, nacl.bindings"

ALWAYS = {
    "wire",
    "wire.__main__",
    "wire.api",
    "wire.cli",
    "wire.cli.common",
    "wire.cli.console",
    "wire.cli.groups",
    "wire.errors",
    "wire.keys",
    "wire.protocol",
    "wire.protocol.chain",
    "wire.protocol.codes",
    "wire.protocol.encoding",
    "wire.protocol.line",
    "wire.protocol.messages",
    "wire.protocol.names",
    "wire.protocol.strictjson",
    "wire.store",
    "wire.store.clonefiles",
    "wire.store.config",
    "wire.store.files",
    "wire.store.paths",
    "wire.store.pin",
    "wire.store.segments",
    "wire.verbs",
    "wire.verbs.here",
    "wire.verbs.states",
}
SEND = ALWAYS | {
    "wire.cli.messages",
    "wire.keys.keyfile",
    "wire.store.held",
    "wire.store.journal",
    "wire.store.sent",
    "wire.verbs.leaks",
    "wire.verbs.sending",
}
NOTHING_NEW = (ALWAYS - {"wire.keys"}) | {
    "wire.cli.reading",
    "wire.cli.shown",
    "wire.store.cursors",
    "wire.store.progress",
    "wire.store.reading",
    "wire.verbs.health",
    "wire.verbs.look",
    "wire.verbs.order",
    "wire.verbs.reading",
    "wire.verbs.render",
}
SHOWN = NOTHING_NEW | {"wire.store.seen"}

JSON = {"json", "json.decoder", "json.encoder", "json.scanner", "_json"}
TOML = {"tomllib", "tomllib._parser", "tomllib._re", "tomllib._types", "string", "string.templatelib", "_string"}
CLICK_AT_WORK = {"locale", "_locale", "shutil", "gettext"}
"""What click imports only while it works."""
STANDARD = JSON | TOML | CLICK_AT_WORK | {"binascii", "fcntl", "gc", "unicodedata"}
PRINTED = STANDARD | {"select", "termios", "array"}
"""Beside what a look-up needs (`mmap`), who prints messages waits until they were taken."""


def imported(args: Sequence[str], env: dict[str, str], cwd: Path) -> set[str]:
    """Return what Python imports while it runs with these arguments, less what it imports anyway."""

    def seen(*arguments: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", *arguments], env=env, cwd=cwd, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        lines = (line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:"))
        return {parts[2].strip() for parts in lines if len(parts) == 3}

    return seen(*args) - seen("pass")


def check(team: Team, machine: str, args: Sequence[str], house: set[str], standard: set[str]) -> None:
    """Compare the imports of a command with what it may import."""
    where = getattr(team, machine)
    env = where.environ({"PYTHONDONTWRITEBYTECODE": None})
    found = imported([RUN, *args], env, where.home)
    brought = imported([BROUGHT], env, where.home)
    assert {name for name in found if name.partition(".")[0] == "wire"} == house
    rest = {name for name in found - brought if name.partition(".")[0] != "wire"}
    assert rest <= standard, sorted(rest - standard)


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["send", "spark", "hello"], id="a text"),
        pytest.param(["send", "spark", '{"a": 1}', "--json", "--subject", "s", "--ref", "x"], id="an object"),
    ],
)
def test_sending_imports_nothing_that_can_wait(team: Team, args: Sequence[str]) -> None:
    check(team, "mac", args, SEND, STANDARD)


def test_a_look_that_finds_nothing_imports_nothing_that_can_wait(team: Team) -> None:
    team.settle()
    check(team, "spark", ["tail", "--json"], NOTHING_NEW, PRINTED)


def test_showing_a_message_imports_nothing_that_can_wait(team: Team) -> None:
    team.mac.send("spark", "hello")
    team.settle()
    check(team, "spark", ["tail", "--json"], SHOWN, PRINTED | {"mmap"})


def test_the_hosts_hook_imports_nothing_that_it_does_not_meet(team: Team) -> None:
    """A push of lines: classes are not described, nothing is hashed by OpenSSL, no request is looked at."""
    team.mac.send("spark", "hello")
    old = team.remote.tip()
    team.mac.wire("sync")
    told = team.folder / "told"
    told.write_text(f"{old} {team.remote.tip()} refs/heads/main\n")
    code = f"import os; os.dup2(os.open({str(told)!r}, os.O_RDONLY), 0); {RUN}"
    env = team.mac.environ({"PYTHONDONTWRITEBYTECODE": None, "GIT_DIR": "."})
    found = imported([code, "hooks", "run", "pre-receive", "--branch", "main"], env, team.remote.path)
    assert "wire.hooks.judge" in found
    assert "wire.keys.requests" not in found
    assert not found & {"dataclasses", "inspect", "hashlib", "secrets", "random", "click", "git"}
