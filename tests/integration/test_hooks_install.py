"""`wire hooks install RUNTIME`: what is ours goes in and comes out, and nothing else in anybody's settings changes."""

import json
import os
import re
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest

from support.machine import Machine
from support.team import Team
from wire.hooks.runtimes import NAMES, find

SETTINGS = ("claude-code", "codex", "gemini", "cursor")
OWN_FILES = ("opencode", "pi")
USER_FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
    "opencode": ".config/opencode/plugins/wire.js",
    "pi": ".pi/agent/extensions/wire.ts",
}
PROJECT_FILES = {**USER_FILES, "opencode": ".opencode/plugins/wire.js", "pi": ".pi/extensions/wire.ts"}
MOVED = {
    "claude-code": ("CLAUDE_CONFIG_DIR", "settings.json"),
    "codex": ("CODEX_HOME", "hooks.json"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini/settings.json"),
    "opencode": ("OPENCODE_CONFIG_DIR", "plugins/wire.js"),
    "pi": ("PI_CODING_AGENT_DIR", "extensions/wire.ts"),
}
FOREIGN = {
    "model": "großes",
    "hooks": {
        "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say wire hook claude-code stop"}]}],
        "PreToolUse": [],
        "stop": [{"command": "./mine.sh"}],
        "Odd": [7, {"hooks": 7}, {"hooks": [None]}],
    },
    "last": [1, 2],
}


@pytest.fixture
def mac(machines: Any) -> Machine:
    # Hooks can be installed before there is a wire.
    machine: Machine = machines("mac")
    return machine


def commands(value: Any) -> list[str]:
    """Return all commands in settings, at any depth."""
    if isinstance(value, dict):
        own = [value["command"]] if isinstance(value.get("command"), str) else []
        return own + [found for inner in value.values() for found in commands(inner)]
    return [found for inner in value for found in commands(inner)] if isinstance(value, list) else []


@pytest.mark.parametrize("runtime", NAMES)
def test_hooks_go_in_once_and_come_out_without_a_trace(mac: Machine, runtime: str) -> None:
    path = mac.home / USER_FILES[runtime]
    assert mac.wire("hooks", "install", runtime, "--check", check=False).status == 1
    assert not path.exists()
    first = mac.json("hooks", "install", runtime)
    assert (first["path"], first["state"], first["changed"]) == (str(path), "installed", True)
    data = path.read_bytes()
    again = mac.json("hooks", "install", runtime)
    assert (again["state"], again["changed"]) == ("installed", False)
    assert path.read_bytes() == data
    assert mac.wire("hooks", "install", runtime, "--check").status == 0
    gone = mac.json("hooks", "install", runtime, "--uninstall")
    assert (gone["state"], gone["changed"]) == ("missing", True)
    assert not path.exists(), "there was none before"
    assert mac.json("hooks", "uninstall", runtime)["changed"] is False


@pytest.mark.parametrize("runtime", NAMES)
def test_the_commands_are_the_same_everywhere_and_each_is_a_hook(mac: Machine, runtime: str) -> None:
    mac.wire("hooks", "install", runtime)
    text = (mac.home / USER_FILES[runtime]).read_text("utf-8")
    assert str(mac.root) not in text
    assert not re.search(r"\b\d+\.\d+\.\d+\b|/usr/|/bin/|python", text)
    known = {event.name for event in find(runtime).events}  # type: ignore[union-attr]
    if runtime in SETTINGS:
        found = [shlex.split(command) for command in commands(json.loads(text))]
        assert {tuple(words[:3]) for words in found} == {("wire", "hook", runtime)}
        assert {words[3] for words in found} == known
    else:
        asked = set(re.findall(r'ask\(directory, (?:begun \? )?"([a-z-]+)"', text))
        asked |= set(re.findall(r'(?:begun \?|:) "([a-z-]+)"', text)) & known
        assert asked <= known
        assert {"stop", "wait", "session-end", "prompt", "session-start"} == asked


@pytest.mark.parametrize("runtime", SETTINGS)
def test_entries_of_others_survive_to_the_byte(mac: Machine, runtime: str) -> None:
    path = mac.home / USER_FILES[runtime]
    path.parent.mkdir(parents=True)
    before = (json.dumps(FOREIGN, ensure_ascii=False, indent=4) + "\n").encode()
    path.write_bytes(before)
    path.chmod(0o640)
    installed = mac.json("hooks", "install", runtime)
    found = json.loads(path.read_bytes())
    assert found["model"] == "großes"
    for event, groups in FOREIGN["hooks"].items():  # type: ignore[attr-defined]
        assert found["hooks"][event][: len(groups)] == groups
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert Path(installed["backup"]).read_bytes() == before
    mac.wire("hooks", "install", runtime)
    assert Path(installed["backup"]).read_bytes() == before
    taken = mac.wire("hooks", "install", runtime, "--uninstall")
    assert f"taken out of {path}\n" in taken.stdout
    after = json.loads(path.read_bytes())
    after.pop("version", None)
    assert after == FOREIGN
    if runtime != "cursor":
        assert path.read_bytes() == before


MALFORMED = (
    b"",
    b"{",
    b"[]",
    b'{"hooks": []}',
    b'{"hooks": {"Stop": {}}}',
    b'{"a": 1, "a": 2}',
    b"{} // a comment",
    b"\xef\xbb\xbf{}",
    b"\0" * 20,
    b'{"a": "\xff"}',
    b"[" * 100_000,
)


@pytest.mark.parametrize("runtime", SETTINGS)
def test_a_malformed_file_is_refused_and_left_as_it_is(mac: Machine, runtime: str) -> None:
    path = mac.home / USER_FILES[runtime]
    path.parent.mkdir(parents=True)
    for data in MALFORMED:
        path.write_bytes(data)
        for more in ((), ("--check",), ("--uninstall",)):
            result = mac.wire("hooks", "install", runtime, *more, "--json", check=False)
            assert (result.status, result.json()["reason"]) == (1, "settings-malformed"), data
            assert str(path) in result.json()["error"]
        assert path.read_bytes() == data
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("runtime", OWN_FILES)
def test_a_file_of_somebody_else_in_our_place_is_left(mac: Machine, runtime: str) -> None:
    path = mac.home / USER_FILES[runtime]
    path.parent.mkdir(parents=True)
    path.write_text("// my own\n")
    for more in ((), ("--uninstall",)):
        result = mac.wire("hooks", "install", runtime, *more, "--json", check=False)
        assert result.json()["reason"] == "foreign-hook"
    assert path.read_text() == "// my own\n"
    assert mac.json("hooks", "install", runtime, "--check", check=False)["state"] == "foreign"


@pytest.mark.parametrize("runtime", MOVED)
def test_variables_that_move_the_settings_are_honoured(mac: Machine, runtime: str) -> None:
    variable, file = MOVED[runtime]
    moved = mac.home / "moved here"
    report = mac.json("hooks", "install", runtime, env={variable: str(moved)})
    assert report["path"] == str(moved / file)
    assert (moved / file).is_file()
    assert not (mac.home / USER_FILES[runtime]).exists()


@pytest.mark.parametrize("runtime", NAMES)
def test_a_project_has_its_own(mac: Machine, runtime: str) -> None:
    project = mac.home / "project"
    project.mkdir()
    report = mac.json("hooks", "install", runtime, "--project", "project")
    assert report["path"] == str(project / PROJECT_FILES[runtime])
    assert mac.wire("hooks", "install", runtime, "--check", "--project", str(project)).status == 0
    assert mac.json("hooks", "install", runtime, "--check", "--user", check=False)["state"] == "missing"
    both = mac.wire("hooks", "install", runtime, "--project", "project", "--user", check=False)
    assert both.status == 2
    assert mac.wire("hooks", "install", runtime, "--project", "nowhere", "--json", check=False).json()["reason"] == (
        "no-project"
    )


@pytest.mark.parametrize("runtime", NAMES)
def test_a_drift_is_told_and_mended(mac: Machine, runtime: str) -> None:
    mac.wire("hooks", "install", runtime)
    path = mac.home / USER_FILES[runtime]
    good = path.read_bytes()
    changed = [good + b"\n// more\n"]
    if runtime in SETTINGS:
        settings = json.loads(good)
        event = next(iter(settings["hooks"]))
        twice = json.loads(good)
        twice["hooks"][event] += twice["hooks"][event]
        renamed = json.loads(good.replace(b"wire hook", b"wire hook", 1))
        renamed["hooks"][event] = json.loads(
            json.dumps(renamed["hooks"][event]).replace(f"wire hook {runtime} ", f"wire hook {runtime} older-", 1)
        )
        less = json.loads(good)
        del less["hooks"][event]
        changed = [json.dumps(one).encode() for one in (twice, renamed, less)]
    for data in changed:
        path.write_bytes(data)
        told = mac.wire("hooks", "install", runtime, "--check", "--json", check=False)
        assert (told.status, told.json()["state"]) == (1, "drifted"), data
        assert told.json()["next_step"] == f"wire hooks install {runtime}"
        assert path.read_bytes() == data
        assert mac.json("hooks", "install", runtime)["state"] == "installed"
        found = path.read_bytes()
        assert json.loads(found) == json.loads(good) if runtime in SETTINGS else found == good


def test_settings_that_were_empty_stay_there(mac: Machine) -> None:
    path = mac.home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text("{}\n")
    mac.wire("hooks", "install", "gemini")
    mac.wire("hooks", "uninstall", "gemini")
    assert path.read_text() == "{}\n"


def test_an_install_says_when_the_runtime_could_not_find_wire(mac: Machine) -> None:
    found = mac.wire("hooks", "install", "codex")
    assert "no `wire` on PATH" not in found.stderr
    mac.wire("hooks", "uninstall", "codex")
    missing = mac.wire("hooks", "install", "codex", env={"PATH": "/usr/bin:/bin"})
    assert "there is no `wire` on PATH here" in missing.stderr


def test_a_link_to_the_settings_stays_one(mac: Machine) -> None:
    # Many keep their settings in a repository of their own, and a link in the place where they are read.
    kept = mac.home / "dotfiles"
    kept.mkdir()
    (kept / "claude.json").write_text('{"model": "x"}\n')
    path = mac.home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.symlink_to(kept / "claude.json")
    mac.wire("hooks", "install", "claude-code")
    assert path.is_symlink()
    assert json.loads((kept / "claude.json").read_bytes())["model"] == "x"


def test_settings_that_cannot_be_written_are_said(mac: Machine) -> None:
    (mac.home / ".claude").write_text("in the way")
    result = mac.wire("hooks", "install", "claude-code", "--json", check=False)
    assert result.status == 1
    assert result.json()["reason"] == "store"


def test_git_and_runtimes_do_not_mix(team: Team) -> None:
    assert team.mac.wire("hooks", "install", "git", "--user", check=False).status == 2
    assert team.mac.wire("hooks", "install", "git", "--check", "--uninstall", check=False).status == 2
    assert team.mac.wire("hooks", "install", "codex", "--plugin", "x", check=False).status == 2
    team.mac.wire("hooks", "install", "git")
    assert team.mac.json("hooks", "install", "git", "--uninstall")["changed"] is True


# The plugin folder and the skill


def test_the_plugin_folder_has_everything_and_is_written_anew(mac: Machine) -> None:
    folder = mac.home / "plugins" / "wire"
    mac.wire("hooks", "install", "claude-code", "--plugin", str(folder))
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {
        ".claude-plugin/plugin.json",
        "README.md",
        "hooks/hooks.json",
        "monitors/monitors.json",
        "skills/wire/SKILL.md",
    }
    assert json.loads((folder / ".claude-plugin/plugin.json").read_bytes())["name"] == "wire"
    hooks = json.loads((folder / "hooks/hooks.json").read_bytes())
    mac.wire("hooks", "install", "claude-code")
    settings = json.loads((mac.home / ".claude/settings.json").read_bytes())
    assert set(commands(hooks)) == set(commands(settings)) - {"wire hook claude-code wait"}
    (monitor,) = json.loads((folder / "monitors/monitors.json").read_bytes())
    assert mac.wire(*shlex.split(monitor["command"])[1:], "--help").status == 0
    (folder / "hooks/hooks.json").write_text("{}")
    mac.wire("hooks", "install", "claude-code", "--plugin", str(folder))
    assert json.loads((folder / "hooks/hooks.json").read_bytes()) == hooks


def test_a_folder_with_something_else_is_no_plugin(mac: Machine) -> None:
    (mac.home / "mine").mkdir()
    (mac.home / "mine" / "note").write_text("keep")
    result = mac.wire("hooks", "install", "claude-code", "--plugin", "mine", "--json", check=False)
    assert result.json()["reason"] == "foreign-folder"
    assert os.listdir(mac.home / "mine") == ["note"]


def test_the_skill_is_short_and_every_command_in_it_runs(team: Team) -> None:
    text = team.spark.wire("skill").stdout
    assert len(text.split("\n")) < 60
    assert text.startswith("---\nname: wire\ndescription: ")
    team.mac.send("spark", "hello")
    (team.spark.home / "notes.md").write_text("# Notes\n")
    team.settle()
    ran = 0
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S):
        for line in block.strip().split("\n"):
            command = re.sub(r"\s+#\s.*", "", line)
            words = shlex.split(command)
            assert words[0] == "wire"
            given = b""
            if "<" in words:
                given = (team.spark.home / words[words.index("<") + 1]).read_bytes()
                words = words[: words.index("<")]
            if words[1] == "wait":  # nothing comes any more, and no daemon looks
                words[words.index("--timeout") + 1] = "0"
            result = team.spark.wire(*words[1:], input=given, check=False)
            allowed = {"status": {0, 1}, "wait": {3, 6}}.get(words[1], {0})
            assert result.status in allowed, str(result)
            if words[1] in ("send", "reply", "ack"):
                team.spark.remember(result)
            ran += 1
    assert ran >= 10
    team.sync_and_check()


# What `wire doctor` says of them


def examined(machine: Machine, runtime: str) -> dict[str, Any] | None:
    """Return what doctor says of the hooks of a runtime."""
    checks = machine.jsonl("doctor", check=False)
    return next((check for check in checks if check["check"] == f"hooks of {runtime}"), None)


def test_doctor_tells_installed_but_never_fired(team: Team) -> None:
    mac = team.mac
    assert examined(mac, "codex") is None
    told = b'{"session_id": "s"}'
    mac.wire("hook", "codex", "stop", input=told)
    os.utime(mac.wire_home / "state" / ".hooks" / "runs" / "codex.stop", (1, 1))
    mac.wire("hooks", "install", "codex")
    found = examined(mac, "codex")
    assert found is not None
    assert (found["verdict"], "never fired" in found["found"]) == ("note", True)
    assert "/hooks" in found["next_step"]
    mac.wire("hook", "codex", "stop", input=told)
    found = examined(mac, "codex")
    assert found is not None
    assert (found["verdict"], "stop ran" in found["found"]) == ("ok", True)
    mac.wire("hook", "codex", "session-start", input=b"not json")
    found = examined(mac, "codex")
    assert found is not None
    assert (found["verdict"], "bad-input" in found["found"]) == ("wrong", True)


def test_doctor_tells_a_drift_and_a_malformed_file(team: Team) -> None:
    mac = team.mac
    mac.wire("hooks", "install", "gemini")
    path = mac.home / ".gemini" / "settings.json"
    settings = json.loads(path.read_bytes())
    del settings["hooks"]["AfterAgent"]
    for data, words in ((json.dumps(settings), "drifted"), ("{}", "missing"), ("{", "not plain JSON")):
        path.write_text(data)
        found = examined(mac, "gemini")
        assert found is not None
        assert (found["verdict"], words in found["found"]) == ("wrong", True), found
    path.write_text("{}")
    (mac.home / "my project").mkdir()
    mac.wire("hooks", "install", "gemini", "--project", "my project")
    (mac.home / "my project" / ".gemini" / "settings.json").unlink()
    (step,) = {check["next_step"] for check in mac.jsonl("doctor", check=False) if "my project" in check["found"]}
    mac.wire(*shlex.split(step)[1:])
    assert not [
        check
        for check in mac.jsonl("doctor", check=False)
        if "my project" in check["found"] and check["verdict"] == "wrong"
    ]
    mac.wire("hooks", "uninstall", "gemini", "--project", "my project")
    mac.wire("hooks", "uninstall", "gemini")
    assert examined(mac, "gemini") is None
