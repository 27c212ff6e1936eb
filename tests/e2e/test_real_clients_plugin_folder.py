"""The plugin folder, as Claude Code itself finds it: all of it is understood, and its hooks reach the model."""

from pathlib import Path

from support.clients import ClaudeCode, Desk
from support.model_service import Text
from support.team import Team


def test_the_plugin_folder_is_valid_and_tells_the_session_once(team: Team, tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    team.spark.wire("hooks", "install", "claude-code", "--plugin", folder)
    team.mac.send("spark", "alpha was there before")
    team.settle(team.mac, team.spark, rounds=1)
    with Desk(team.spark, tmp_path / "project") as desk:
        client = ClaudeCode(desk)
        said = client.ends([client.program, "plugin", "validate", str(folder)])
        for part in (
            "SessionStart",
            "UserPromptSubmit",
            "PostToolBatch",
            "Stop",
            "SessionEnd",
            '"wire monitor"',
            "wire:wire",
        ):
            assert part in said, said
        assert "Validation passed" in said
        assert "refuses" not in said
        desk.service.script(Text("hello"))
        client.ends([*client.command("say hello", resume=False), "--plugin-dir", str(folder)])
        (turn,) = desk.service.turns
        assert turn.count("alpha was there before") == 1, desk.service.told()
        assert turn.count("agent spark on the wire hub") == 1
    assert team.spark.json("tail")["result"] == "nothing-new"
