"""`wire hooks install … --mcp`: the server in a runtime's list, beside what is there, and out again."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.machine import Machine
from support.mcp_client import harness
from support.team import Team

PLACES = {
    "claude-code": (".claude.json", ".mcp.json"),
    "codex": (".codex/config.toml", ".codex/config.toml"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
    "opencode": (".config/opencode/opencode.json", "opencode.json"),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json"),
}
PLAIN = {"command": "wire", "args": ["mcp"]}
ENTRIES: dict[str, tuple[str, dict[str, Any]]] = {
    "claude-code": ("mcpServers", {"type": "stdio", **PLAIN}),
    "codex": ("mcp_servers", PLAIN),
    "gemini": ("mcpServers", PLAIN),
    "opencode": ("mcp", {"type": "local", "command": ["wire", "mcp"], "enabled": True}),
    "cursor": ("mcpServers", PLAIN),
}
TOML = '# mine\nmodel = "o"\nnotify = ["prog"]\n\n[mcp_servers.other] # theirs\ncommand = "x"\n'


def settings(path: Path) -> Any:
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


@pytest.fixture
def mac(machines: Any) -> Machine:
    return machines("mac")


@pytest.mark.parametrize("runtime", PLACES)
@pytest.mark.parametrize("scope", ["user", "project"])
def test_the_server_is_put_in_beside_others_and_taken_out_again(mac: Machine, runtime: str, scope: str) -> None:
    member, entry = ENTRIES[runtime]
    project = mac.home / "project"
    project.mkdir()
    base, name = (mac.home, PLACES[runtime][0]) if scope == "user" else (project, PLACES[runtime][1])
    more = [] if scope == "user" else ["--project", str(project)]
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    before = (
        TOML if path.suffix == ".toml" else json.dumps({"theme": "ü", member: {"other": {"command": "x"}}}, indent=4)
    )
    path.write_text(before)
    path.chmod(0o640)
    assert mac.wire("hooks", "install", runtime, *more, "--mcp", "--check", check=False).status == 1
    assert path.read_text() == before, "a check changes nothing"
    report = mac.json("hooks", "install", runtime, *more, "--mcp")
    assert report["mcp"] == {"path": str(path), "state": "installed", "changed": True}
    found = settings(path)
    assert found[member]["wire"] == entry
    assert found[member]["other"] == {"command": "x"}
    assert path.stat().st_mode & 0o777 == 0o640
    if path.suffix == ".toml":
        assert path.read_text().startswith(TOML.rstrip("\n"))
    else:
        assert found["theme"] == "ü"
    again = mac.json("hooks", "install", runtime, *more, "--mcp")
    assert again["mcp"]["changed"] is False
    assert settings(path)[member].keys() == {"other", "wire"}
    assert mac.wire("hooks", "install", runtime, *more, "--mcp", "--check").status == 0
    gone = mac.json("hooks", "install", runtime, *more, "--uninstall")
    assert gone["mcp"] == {"path": str(path), "state": "missing", "changed": True}
    assert settings(path)[member] == {"other": {"command": "x"}}
    assert path.with_name(path.name + ".before-wire").read_text() == before


def test_no_list_is_made_unless_it_is_asked_for(mac: Machine) -> None:
    report = mac.json("hooks", "install", "cursor")
    assert "mcp" not in report
    assert not (mac.home / ".cursor" / "mcp.json").exists()


def test_what_somebody_added_stays(mac: Machine) -> None:
    path = mac.home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    entry = {"command": "wire", "args": ["mcp", "--as", "mac"], "env": {"WIRE_NAME": "team"}}
    path.write_text(json.dumps({"mcpServers": {"wire": entry}}))
    assert mac.json("hooks", "install", "cursor", "--mcp")["mcp"]["changed"] is False
    assert settings(path)["mcpServers"]["wire"] == entry


@pytest.mark.parametrize("runtime", ["codex", "opencode", "cursor"])
def test_an_entry_that_acts_for_another_agent_is_brought_up_to_date(mac: Machine, runtime: str) -> None:
    path = mac.home / PLACES[runtime][0]
    member = ENTRIES[runtime][0]

    def words() -> list[str]:
        entry = settings(path)[member]["wire"]
        return entry["command"] if runtime == "opencode" else [entry["command"], *entry["args"]]

    assert mac.json("hooks", "install", runtime, "--mcp")["mcp"]["changed"]
    assert words() == ["wire", "mcp"]
    pinned = ("hooks", "install", runtime, "--mcp", "--as", "mac", "--wire", "team")
    drifted = mac.wire(*pinned, "--check", "--json", check=False)
    assert (drifted.status, drifted.json()["mcp"]["state"]) == (1, "drifted")
    assert mac.json(*pinned)["mcp"] == {"path": str(path), "state": "installed", "changed": True}
    assert words() == ["wire", "mcp", "--as", "mac", "--wire", "team"]
    assert mac.json(*pinned)["mcp"]["changed"] is False
    if runtime == "cursor":
        text = path.read_text().replace('"--wire"', '"--odd", "x", "--wire"')
        path.write_text(text.replace('"args"', '"env": {"A": "b"}, "args"'))
    assert mac.json("hooks", "install", runtime, "--mcp", "--as", "bot")["mcp"]["changed"]
    assert words()[:4] == ["wire", "mcp", "--as", "bot"]
    assert words()[-2:] == ["--wire", "team"]
    if runtime == "cursor":
        assert words()[4:6] == ["--odd", "x"]
        assert settings(path)[member]["wire"]["env"] == {"A": "b"}
    assert mac.json("hooks", "install", runtime, "--mcp")["mcp"]["changed"] is False, "nothing was asked for"
    assert mac.json("hooks", "uninstall", runtime)["mcp"]["state"] == "missing"


def test_another_server_of_that_name_is_left_alone(mac: Machine) -> None:
    path = mac.home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    text = json.dumps({"mcpServers": {"wire": {"command": "hardwire"}}})
    path.write_text(text)
    result = mac.wire("hooks", "install", "cursor", "--mcp", "--json", check=False)
    assert (result.status, result.json()["reason"]) == (2, "foreign-mcp")
    assert not (mac.home / ".cursor" / "hooks.json").exists(), "nothing was done by halves"
    mac.wire("hooks", "install", "cursor")
    assert mac.json("hooks", "install", "cursor", "--uninstall")["mcp"]["state"] == "foreign"
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("runtime", "text"),
    [
        ("cursor", "{"),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": 5}'),
        ("codex", "model = \n"),
        ("codex", "mcp_servers = 5\n"),
        ("claude-code", '{"a": \xff}'),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(mac: Machine, runtime: str, text: str) -> None:
    path = mac.home / PLACES[runtime][0]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode("latin-1"))
    result = mac.wire("hooks", "install", runtime, "--mcp", "--json", check=False)
    assert (result.status, result.json()["reason"]) == (1, "settings-malformed")
    assert path.read_bytes() == text.encode("latin-1")


def test_a_runtime_without_a_list_is_told_so_before_anything_is_changed(mac: Machine) -> None:
    result = mac.wire("hooks", "install", "pi", "--mcp", "--json", check=False)
    assert (result.status, result.json()["reason"]) == (2, "no-mcp")
    assert not (mac.home / ".pi").exists()
    assert mac.wire("hooks", "install", "git", "--mcp", check=False).status == 2


@pytest.mark.parametrize("variable", ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_CONFIG_DIR", "GEMINI_CLI_HOME"])
def test_where_the_runtime_was_moved_to_is_where_it_goes(mac: Machine, variable: str) -> None:
    runtime, name = {
        "CLAUDE_CONFIG_DIR": ("claude-code", ".claude.json"),
        "CODEX_HOME": ("codex", "config.toml"),
        "OPENCODE_CONFIG_DIR": ("opencode", "opencode.json"),
        "GEMINI_CLI_HOME": ("gemini", ".gemini/settings.json"),
    }[variable]
    folder = mac.home / "moved"
    folder.mkdir()
    report = mac.json("hooks", "install", runtime, "--mcp", env={variable: str(folder)})
    assert report["mcp"]["path"] == str(folder / name)


def test_the_entry_starts_a_server_that_answers(team: Team) -> None:
    """The very words of the entry, started by the client."""
    team.mac.wire("hooks", "install", "cursor", "--mcp")
    entry = settings(team.mac.home / ".cursor" / "mcp.json")["mcpServers"]["wire"]
    assert entry["command"] == team.mac.program.name
    assert entry["args"][0] == "mcp"
    with harness(team.mac, *entry["args"][1:]) as agent:
        assert agent.data("status")["agent"] == "mac"
