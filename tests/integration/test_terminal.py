"""What stands on the other side of a command: pipes that close, full disks, narrow terminals, locales, programs."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from support.machine import Machine, Result, installed
from support.remote import BareRemote
from support.terminals import watch
from wire.cli import cli

TEXTS = ["grün ✓ 日本語", "plain", "escape \x1b[31mred\x1b[0m and \u202ereversed", "two\nlines", "x" * 3000]


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Iterator[tuple[Machine, Machine]]:
    """Two machines that have exchanged a few messages; tests read, and leave cursors alone."""
    folder = tmp_path_factory.mktemp("pair")
    remote = BareRemote(folder / "hub.git")
    made = []
    for name in ("mac", "spark"):
        (folder / name).mkdir()
        made.append(Machine(name, folder / name))
    mac, spark = made
    begun = mac.json("init", remote.url, "--as", "mac")
    joined = spark.json("join", remote.url, "--as", "spark", "--trust", begun["checkpoint"])
    mac.wire("trust", "approve", "spark", "--fingerprint", joined["fingerprint"])
    for text in TEXTS:
        mac.wire("send", "spark", "-", "--subject", "ünïcode", input=text)
    mac.wire("sync")
    spark.wire("sync")
    yield mac, spark
    for machine in made:
        machine.close()


def look(machine: Machine, *args: str, columns: int = 80, **env: str | None) -> tuple[int, str]:
    """Run a command at a terminal, and return its exit status and what was on it."""
    # Without COLUMNS: the terminal itself says how wide it is.
    env = machine.environ({"TERM": "xterm", **env})
    return watch(installed(), *args, env=env, cwd=machine.home, columns=columns, seconds=60)


def quiet(result: Result) -> None:
    """No traceback, and nothing of the interpreter's own."""
    assert "Traceback" not in result.stderr, result
    assert "Exception ignored" not in result.stderr, result


# Pipes and closed streams


@pytest.mark.parametrize(
    "script",
    [
        "wire tail --all | head -n 1",
        "wire tail --all --json | head -c 10",
        "wire log | true",
        "wire log --json | true",
        "wire show mac/spark/1 | true",
        "wire status | true",
        "wire status --json | true",
        "wire trust show --json | true",
        "wire --help | true",
        "wire send mac hello | true",
        "wire no-such-command --json | true",
    ],
)
def test_a_reader_that_goes_away_is_no_error_worth_a_word(pair, script):
    result = pair[1].shell(script)
    quiet(result)
    # Ended well or by the pipe; no daemon runs here, which is what `wire status` says by its own status.
    own = {"wire status": 1, "wire no-such-command": 2}
    assert result.status in {0, 141, *(status for begin, status in own.items() if script.startswith(begin))}, result
    assert result.status == 0 or "wire:" not in result.stderr, result


@pytest.mark.parametrize("script", ["wire status 2>&1 | true", "wire tail --peek 2>&1 >/dev/null | true"])
def test_a_warning_that_nobody_takes_is_no_error_either(pair, script):
    quiet(pair[1].shell(script))


@pytest.mark.parametrize("closing", [">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["log", "tail --peek --all", "status", "--help", "send mac hello", "nonsense"])
def test_closed_streams_are_survived(pair, command, closing):
    result = pair[1].shell(f"wire {command} {closing}")
    quiet(result)
    assert result.status in (0, 1, 2, 4, 6, 141), result


@pytest.mark.parametrize("command", ["log", "tail --peek --all", "status", "trust show", "log --json"])
def test_a_full_disk_behind_the_output_fails(pair, command):
    result = pair[1].shell(f"wire {command} >/dev/full")
    quiet(result)
    assert result.status == 1, result
    assert result.stderr.startswith("wire: "), result
    assert "No space left" in result.stderr


def test_a_sent_message_is_not_denied_because_its_id_could_not_be_printed(pair):
    """Whoever sees a failure sends again: what was stored must not look as if it had not been."""
    mac, _ = pair
    before = len((mac.wire_home / "state/hub/journal/mac/all/000001.jsonl").read_bytes()) if mac.sent else 0
    result = mac.shell("wire send all 'once' --idem once >/dev/full")
    assert result.status == 1
    again = mac.json("send", "all", "once", "--idem", "once")
    assert again["again"] is True
    assert before == 0


# Locales


LOCALES = [
    pytest.param({"LC_ALL": "C"}, id="C"),
    pytest.param({"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, id="ascii"),
    pytest.param({"PYTHONIOENCODING": "latin-1"}, id="latin-1"),
    pytest.param({"PYTHONIOENCODING": "utf-16"}, id="utf-16"),
    pytest.param({"LANG": None, "LC_ALL": None}, id="none"),
]


@pytest.mark.parametrize("locale", LOCALES)
def test_messages_are_shown_in_any_locale(pair, locale):
    result = pair[1].shell("wire tail --all", **locale)
    assert result.status == 0, result
    quiet(result)
    shown = result.out.decode("utf-16" if locale.get("PYTHONIOENCODING") == "utf-16" else "latin-1")
    assert sum(one.startswith("mac/spark/") for one in shown.split("\n")) == len(TEXTS)
    assert shown.endswith(" (all of it: wire read mac/spark/5)\n")
    assert "\x1b" not in shown


@pytest.mark.parametrize("locale", LOCALES)
def test_json_is_utf8_in_any_locale(pair, locale):
    result = pair[1].shell("wire tail --all --json", **locale)
    assert result.status == 0, result
    assert [one["line"]["body"] for one in result.jsonl()] == TEXTS
    assert [one["line"]["subject"] for one in result.jsonl()] == ["ünïcode"] * len(TEXTS)


@pytest.mark.parametrize("locale", LOCALES)
def test_an_argument_is_sent_byte_for_byte_in_any_locale(pair, locale):
    mac, _ = pair
    result = mac.shell("wire send spark 'grün ✓' --subject 'ünïcode' --json", **locale)
    assert result.status == 0, result
    sent = mac.json("show", result.jsonl()[0]["id"])
    assert sent["line"]["body"] == "grün ✓"
    assert sent["line"]["subject"] == "ünïcode"


def test_errors_quote_strange_arguments_safely(pair):
    result = pair[0].wire("show", "a\x1b[31m/\u202eb/1", check=False)
    assert result.status == 2
    assert "\x1b" not in result.stderr
    assert "\u202e" not in result.stderr
    result = pair[0].shell("wire send $'\\xff\\xfe' hello")
    assert result.status == 2, result
    quiet(result)


# Terminals


@pytest.mark.parametrize("columns", [1, 20, 80, 500])
def test_terminals_of_any_width(pair, columns):
    for args in (["tail", "--all"], ["--help"], ["send", "--help"], ["log"], ["show", "mac/spark/1"], ["incidents"]):
        status, shown = look(pair[1], *args, columns=columns)
        assert status == 0, shown
        assert "Traceback" not in shown


def test_a_terminal_gets_the_readable_form_and_a_pipe_one_line_each(pair):
    _, shown = look(pair[1], "tail", "--all")
    assert "  | two\r\n  | lines\r\n" in shown
    piped = pair[1].wire("tail", "--all").stdout
    assert piped.count("\n") == len(TEXTS)


def test_an_object_stands_on_one_line_in_a_pipe(pair):
    mac, _ = pair
    sent = mac.json("send", "all", '{"build": {"state": "grün"}, "tests": [1, 2]}')["id"]
    mac.wire("sync", check=False)
    (shown,) = [line for line in mac.wire("log").stdout.split("\n") if line.startswith(sent)]
    assert shown.startswith(f"{sent} message, ")
    assert shown.endswith(' ago (own text): build: {"state": "grün"}; tests: [1, 2]')


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"NO_COLOR": "1"}, id="NO_COLOR"),
        pytest.param({"TERM": "dumb"}, id="dumb-terminal"),
    ],
)
def test_no_colour_where_none_is_wanted(pair, environment):
    _, coloured = look(pair[1], "tail", "--all")
    assert "\x1b[1m" in coloured
    _, plain = look(pair[1], "tail", "--all", **environment)
    assert "\x1b" not in plain


def test_an_empty_no_color_is_none(pair):
    """As its specification has it: present and not empty."""
    assert "\x1b[1m" in look(pair[1], "tail", "--all", NO_COLOR="")[1]


def test_no_escape_of_a_peer_reaches_a_terminal(pair):
    _, shown = look(pair[1], "tail", "--all", NO_COLOR="1")
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\u001b[31mred" in shown


# Help


def every_command() -> Iterator[tuple[str, click.Command]]:
    def walk(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield name, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for below in command.list_commands(context):
                found = command.get_command(context, below)
                assert found is not None
                yield from walk(f"{name} {below}", found)

    return walk("wire", cli)


COMMANDS = dict(every_command())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_complete_and_fits(name):
    command = COMMANDS[name]
    text = command.get_help(click.Context(command, info_name=name, terminal_width=80, max_content_width=80))
    assert max(map(len, text.split("\n"))) <= 80
    assert command.help, f"{name} does not say what it does"
    plain = [
        option.opts[0]
        for option in command.params
        if isinstance(option, click.Option) and not option.help and not isinstance(option.type, click.Choice)
    ]
    assert not plain, f"{name} does not say what {plain} are for"


def test_help_costs_no_wire_and_no_git(pair, tmp_path):
    """A newcomer asks for help first, on a machine where nothing is set up."""
    home = tmp_path / "home"
    home.mkdir()
    for name in COMMANDS:
        argv = [str(installed()), *name.split()[1:], "--help"]
        if name.count(" ") == 2:
            continue
        done = subprocess.run(argv, env={"HOME": str(home), "PATH": "/nonexistent"}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"Usage: {name} ")
        assert done.stderr == ""
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("group", [name for name, command in COMMANDS.items() if isinstance(command, click.Group)])
def test_a_group_alone_says_what_it_has(pair, group):
    if group == "wire incidents":  # it lists them
        return
    result = pair[0].wire(*group.split()[1:], check=False)
    assert result.status == 2
    assert result.out == b""
    assert result.stderr.startswith(f"Usage: {group} ")
    assert "next:" not in result.stderr


# Errors, for programs and people


@pytest.mark.parametrize(
    ("args", "status", "reason"),
    [
        (["tail"], 2, "no-wire"),
        (["send", "mac", "hello"], 2, "no-wire"),
        (["status"], 2, "no-wire"),
        (["incidents"], 2, "no-wire"),
        (["sync"], 2, "no-wire"),
        (["tail", "--nonsense"], 2, "usage"),
        (["nonsense"], 2, "usage"),
        (["tail", "-n", "-3"], 2, "usage"),
        (["join", "/nowhere", "--as", "x", "--trust", "nonsense"], 2, None),
        (["init", "/nowhere/at/all", "--as", "mac"], 6, None),
        (["init", "/nowhere/at/all", "--as", "Mac!"], 2, "bad-name"),
        (["init", "/nowhere/at/all", "--as", "mac", "--wire", "trust"], 2, "bad-name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors_are_one_object_or_one_sentence(machines, args, status, reason):
    mac = machines("mac")
    told = mac.wire(*args, "--json", check=False)
    assert told.status == status, told
    error = told.json()
    assert error["exit_status"] == status
    assert error["error"]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", error["reason"])
    assert reason is None or error["reason"] == reason
    assert told.err == b""
    person = mac.wire(*args, check=False)
    assert person.status == status
    assert person.out == b""
    assert person.stderr.startswith("wire: ")
    assert person.stderr.count("\n") <= 2, person


def test_exit_statuses_are_what_the_readme_says(machines, remote):
    mac = machines("mac")
    mac.wire("init", remote.url, "--as", "mac")
    assert mac.wire("send", "all", "hello", check=False).status == 0
    assert mac.wire("status", check=False).status == 1
    assert mac.wire("send", check=False).status == 2
    late = mac.wire("send", "all", "late", "--wait", "pushed", "--timeout", "0.1", "--json", check=False)
    assert late.status == 3
    assert late.jsonl()[-1]["reason"] == "not-reached"

    vera = remote.clone_as_vandal(mac.root / "vera")
    mac.wire("sync")
    vera.sync()
    channel = "_coordination/mac/all/000001.jsonl"
    vera.write(channel, vera.read(channel).replace(b"hello", b"HELLO"))
    vera.commit()
    vera.push()
    assert mac.wire("sync", check=False).status == 4

    key = Path(mac.jsonl("keys", "list")[0]["path"])
    key.chmod(0o644)
    unsafe = mac.wire("send", "all", "hello", "--json", check=False)
    assert (unsafe.status, unsafe.json()["reason"]) == (5, "key-permissions")
    key.chmod(0o600)

    remote.path.rename(remote.path.with_name("gone.git"))
    away = mac.wire("sync", "--json", check=False)
    assert away.status == 6
    assert away.json()["failure"]["reason"]


def test_an_error_inside_is_written_down_and_never_a_traceback(machines, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "if importlib.util.find_spec('wire'):\n"
        "    from wire.store import config\n"
        "    def load(settings):\n"
        "        raise RuntimeError('planted')\n"
        "    config.load = load\n"
    )
    mac = machines("mac")
    told = mac.wire("tail", "--json", env={"PYTHONPATH": str(site)}, check=False)
    assert told.status == 1
    assert told.json()["reason"] == "internal"
    assert told.err == b""
    written = list((mac.wire_home / "state").glob("error-*.txt"))
    assert len(written) == 1
    assert "RuntimeError: planted" in written[0].read_text()


def test_the_commands_are_one_program(tmp_path):
    """`wire`, `git-wire` and `python -m wire` answer alike."""
    answers = set()
    for argv in ([str(installed())], [str(installed("git-wire"))], [sys.executable, "-P", "-m", "wire"]):
        done = subprocess.run([*argv, "--version"], env={"HOME": str(tmp_path)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        answers.add(done.stdout)
    assert len(answers) == 1
    assert json.dumps(answers.pop()).startswith('"wire ')
    assert not Path(tmp_path / ".local").exists()
