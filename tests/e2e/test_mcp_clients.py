"""`wire mcp` and clients that its authors did not write: the MCP inspector's command line, and real agent runtimes.

The runtimes start the server by what `wire hooks install … --mcp` wrote, in a network where a stand-in for their model
service is the only host; the stand-in's script calls the tools.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support import npm
from support.clients import CLIENTS, ClaudeCode, Desk
from support.machine import Machine
from support.model_service import Tool
from support.team import Team, read
from wire.mcp.tools import TOOLS

SECONDS = 60.0


class Inspected(Exception):
    """The inspector exited non-zero."""


def inspect(machine: Machine, *args: str) -> Any:
    """Run the inspector's command line against `wire mcp` on a machine, and return the answer that it prints."""
    program = npm.tree("inspector") / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build"
    # Like most clients it hands on HOME and PATH alone.
    env = [part for name in ("WIRE_HOME", "TEST_MACHINE") for part in ("-e", f"{name}={machine.env[name]}")]
    argv = [str(npm.node()), str(program / "index.js"), "--cli", *env, str(machine.program), "mcp", *args]
    done = subprocess.run(
        argv, env=machine.environ(), cwd=machine.home, capture_output=True, text=True, timeout=SECONDS
    )
    if done.returncode:
        raise Inspected(done.stdout + done.stderr)
    assert "warning" not in done.stderr.lower(), done.stderr
    return json.loads(done.stdout)


def call(machine: Machine, tool: str, **arguments: str) -> str:
    """Call a tool by the inspector, and return its text."""
    pairs = [part for name, value in arguments.items() for part in ("--tool-arg", f"{name}={value}")]
    found = inspect(machine, "--method", "tools/call", "--tool-name", tool, *pairs)
    (content,) = found["content"]
    return str(content["text"])


def test_the_inspector_has_a_conversation_on_two_machines(team: Team) -> None:
    listed = inspect(team.mac, "--method", "tools/list", "--strict")["tools"]
    assert [tool["name"] for tool in listed] == list(TOOLS), "and no schema that some model's dialect refuses"
    sent = json.loads(call(team.mac, "send", to="spark", body="is it green?", type="request"))
    assert sent == {"id": "mac/spark/1", "state": "stored"}
    team.settle()
    assert "  | is it green?" in call(team.spark, "read")
    assert json.loads(call(team.spark, "reply", id=sent["id"], body="it is"))["id"] == "spark/mac/1"
    (inbox,) = inspect(team.spark, "--method", "resources/read", "--uri", "wire://inbox")["contents"]
    assert inbox["text"].startswith("0 unread messages for spark on hub")
    with pytest.raises(Inspected, match="no-message"):
        call(team.spark, "ack", id="mac/spark/9")
    team.settle()
    assert read(team.mac) == ["it is"]


def test_gemini_reads_and_answers_through_the_tools(team: Team, tmp_path: Path) -> None:
    asked = team.mac.send("spark", "what is the answer?", "--type", "request")
    team.settle()
    with Desk(team.spark, tmp_path / "project") as desk:
        client = CLIENTS["gemini"](desk)
        report = team.spark.json("hooks", "install", "gemini", "--mcp", env=client.env)
        assert report["mcp"]["state"] == "installed"
        # Reading by id shows a message that the hooks have told of already.
        desk.service.script(Tool("wire", "read", {"ids": [asked]}), Tool("wire", "reply", {"id": asked, "body": "42"}))
        client.run("hi")
        _, read_in, answered_in = desk.service.turns[:3]
        assert "  | what is the answer?" in read_in.text, desk.service.told()
        assert "spark/mac/1" in answered_in.text, desk.service.told()
    team.settle()
    assert read(team.mac) == ["42"]


def test_claude_code_connects_to_the_server(team: Team, tmp_path: Path) -> None:
    """Which tools its model sees is decided by how soon a server is there, and so is not asked for here."""
    with Desk(team.spark, tmp_path / "project") as desk:
        client = ClaudeCode(desk)
        team.spark.wire("hooks", "install", "claude-code", "--mcp", env=client.env)
        done = subprocess.run(
            [*desk.net.enter, client.program, "mcp", "list"],
            env={**client.environ(), "MCP_TIMEOUT": "60000"},
            cwd=desk.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    assert "wire: wire mcp - ✔ Connected" in done.stdout, done.stdout + done.stderr
