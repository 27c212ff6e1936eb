"""The plugin for OpenCode and the extension for pi, run by node against a stand-in of their runtime.

What the runtimes themselves make of them is tested with the real ones, in `tests/e2e`. Here it is: which events ask
which hook, what is handed over where, and that nothing but silence comes of anything that fails. The extension has no
types, so that it runs as JavaScript.
"""

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.team import Team
from wire.hooks.runtimes.assets import asset

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node runs the plugins")

OPENCODE = """
import { WirePlugin } from "./wire.mjs"
const out = { system: [], prompts: [] }
const client = { session: { promptAsync: async (one) => out.prompts.push([one.path.id, one.body.parts[0].text]) } }
const plugin = await WirePlugin({ client, directory: process.cwd() })
const call = async () => {
  const output = { system: ["own"] }
  await plugin["experimental.chat.system.transform"]({ sessionID: "one" }, output)
  out.system.push(output.system)
}
const event = (type, properties) => plugin.event({ event: { type, properties } })
const send = (...words) => import("node:child_process").then((c) => c.execFileSync("./arrive", words))
"""
PI = """
import begin from "./wire.mjs"
const out = { messages: [], prompts: [] }
const on = {}
const pi = {
  on: (name, handler) => (on[name] = handler),
  sendUserMessage: (text, how) => out.prompts.push([text, how?.deliverAs]),
}
begin(pi)
const ctx = { cwd: process.cwd(), sessionManager: { getSessionId: () => "one" } }
const said = (reason) => on.message_end({ message: { role: "assistant", stopReason: reason } }, ctx)
const start = () => on.session_start({}, ctx)
const prompt = async () => out.messages.push((await on.before_agent_start({}, ctx))?.message ?? null)
const end = () => on.agent_end({}, ctx)
const send = (...words) => import("node:child_process").then((c) => c.execFileSync("./arrive", words))
"""
LAST = "\nconsole.log(JSON.stringify(out))\nprocess.exit(0)\n"
UNTIL = "\nfor (let n = 0; n < 300 && !out.prompts.length; n++) await new Promise((r) => setTimeout(r, 100))\n"


def play(
    team: Team,
    tmp_path: Path,
    kind: str,
    script: str,
    *,
    env: dict[str, str | None] | None = None,
    argv: tuple[str, ...] = (),
) -> Any:
    """Let a runtime's stand-in go through a script beside spark, and return what the plugin handed over."""
    text, scene = (asset("opencode.js"), OPENCODE) if kind == "opencode" else (asset("pi.ts"), PI)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "wire.mjs").write_text(text)
    (folder / "scene.mjs").write_text(scene + script + LAST)
    arrive = folder / "arrive"
    mac = "env -i " + " ".join(shlex.quote(f"{name}={value}") for name, value in team.mac.environ().items())
    arrive.write_text(f'#!/bin/sh\nset -e\n{mac} wire send spark "$@" >&2\n{mac} wire sync >&2\nwire sync >&2\n')
    arrive.chmod(0o755)
    assert NODE is not None
    environ = team.spark.environ(env)
    # A group of its own: what ends processes by a wrong number must not end the tests.
    ran = subprocess.run(
        [NODE, "scene.mjs", *argv],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=150,
        start_new_session=True,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_opencode_is_told_in_the_system_text_and_woken_by_a_prompt(team: Team, tmp_path: Path) -> None:
    found = play(
        team,
        tmp_path,
        "opencode",
        """
await event("session.created", { info: { id: "child", parentID: "one" } })
await event("message.updated", { sessionID: "one", info: { id: "m2", sessionID: "one", parentID: "m1" } })
const child = { system: [] }
await plugin["experimental.chat.system.transform"]({ sessionID: "child" }, child)
out.system.push(child.system)
await event("session.idle", { sessionID: "one" })  // before it said anything: nothing is asked
await send("alpha waited")
await call()
await call()
await send("bravo must be answered", "--ack-required")
await event("session.idle", { sessionID: "one" })
await event("session.idle", { sessionID: "one" })  // goes on already: quiet, and the waiter begins
await send("charlie wakes")
"""
        + UNTIL.replace("!out.prompts.length", "out.prompts.length < 2")
        + 'await call()\nawait event("session.deleted", { info: { id: "one" } })\n',
    )
    child, first, second, last = found["system"]
    assert child == [], "a session that a session started takes nothing"
    assert first[0] == second[0] == last[0] == "own"
    assert "agent spark on the wire hub" in first[1]
    assert first[1].count("alpha waited") == 1
    assert second == first, "what was told stays, and is not told again"
    assert last == first, "what came as a prompt is in the conversation already"
    prompts = found["prompts"]
    assert [session for session, _ in prompts] == ["one", "one"]
    assert "bravo must be answered" in prompts[0][1]
    assert "charlie wakes" in prompts[1][1]
    assert "bravo must be answered" not in prompts[1][1]
    assert not list((team.spark.wire_home / "state" / ".hooks" / "sessions").iterdir())


def test_opencode_that_ends_with_its_turn_takes_nothing_at_the_end(team: Team, tmp_path: Path) -> None:
    """As `opencode run hello`: what a prompt brought then would be read by no model, and must stay unread."""
    found = play(
        team,
        tmp_path,
        "opencode",
        """
await call()
await send("bravo must be answered", "--ack-required")
await event("session.idle", { sessionID: "one" })
""",
        argv=("run", "hello"),
    )
    assert found["prompts"] == []
    assert team.spark.json("inbox")["unread"] == 1


def test_pi_is_told_with_the_turn_and_woken_by_a_message(team: Team, tmp_path: Path) -> None:
    found = play(
        team,
        tmp_path,
        "pi",
        """
await send("alpha waited")
await start()
await prompt()
await prompt()
await send("bravo must be answered", "--ack-required")
await end()
await end()
await send("charlie wakes")
"""
        + UNTIL.replace("!out.prompts.length", "out.prompts.length < 2")
        + "await prompt()\nawait on.session_shutdown({}, ctx)\n",
    )
    first, *rest = found["messages"]
    assert (first["customType"], first["display"]) == ("wire", True)
    assert first["content"].count("alpha waited") == 1
    assert rest == [None, None]
    assert "bravo must be answered" in found["prompts"][0][0]
    assert "charlie wakes" in found["prompts"][1][0]
    assert {how for _, how in found["prompts"]} == {"followUp"}


def test_pi_without_a_screen_is_told_before_its_run_is_over(team: Team, tmp_path: Path) -> None:
    found = play(
        team,
        tmp_path,
        "pi",
        """
ctx.hasUI = false
await start()
await prompt()
await send("bravo must be answered", "--ack-required")
said("toolUse")
out.messages.push(out.prompts.length)
said("stop")  // asked and told within the event
out.messages.push(out.prompts.length)
said("stop")
await end()
await on.session_shutdown({}, ctx)
""",
    )
    assert found["messages"][1:] == [0, 1]
    assert len(found["prompts"]) == 1
    assert "bravo must be answered" in found["prompts"][0][0]


@pytest.mark.parametrize("kind", ["opencode", "pi"])
def test_a_session_goes_on_where_wire_fails_or_is_missing(team: Team, tmp_path: Path, kind: str) -> None:
    script = (
        'await call()\nawait event("session.idle", { sessionID: "one" })\n'
        if kind == "opencode"
        else "await start()\nawait prompt()\nawait end()\nawait on.session_shutdown({}, ctx)\n"
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    found = play(team, tmp_path, kind, script, env={"PATH": str(empty)})
    assert found["prompts"] == []
    assert found.get("system", [["own"]]) == [["own"]]
    assert found.get("messages", [None]) == [None]
    broken = tmp_path / "broken" / "wire"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'no json'\nexit 1\n")
    broken.chmod(0o755)
    shutil.rmtree(tmp_path / "project")
    found = play(team, tmp_path, kind, script, env={"PATH": f"{broken.parent}:/usr/bin:/bin"})
    assert found["prompts"] == []
