"""The real programs that agents run in, each with an empty home, a dummy key and a stand-in for its model service.

    with Desk(spark, tmp_path / "project") as desk:          # a network of its own, and a model service in it
        client = CLIENTS["codex"](desk)                      # writes what the client must be told
        desk.service.script(Text("hello"))
        client.run("hi")                                     # headless, to its end
        client.run("and now?", resume=True)                  # the same session goes on

A client runs on a machine, in a project folder that is a git repository: what it is told by `wire hooks install` comes
from the test.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from support import gitcmd, npm
from support.lonely import LonelyNet
from support.machine import Machine
from support.model_service import Asked, ModelService
from support.pane import Pane
from support.team import Team

KEY = "sk-dummy-0000000000000000000000000000000000000000"
LIMIT_SECONDS = 100.0
"""What one headless run may take on a busy machine; alone it is a tenth."""


class Desk:
    """Where one client works: a project on a machine, and a network in which only the stand-in answers."""

    def __init__(self, machine: Machine, project: Path) -> None:
        self.machine = machine
        self.project = project
        self._stack = ExitStack()
        project.mkdir()
        gitcmd.git(project, "init", "-q")

    def __enter__(self) -> "Desk":
        with ExitStack() as stack:
            self.net = stack.enter_context(LonelyNet())
            self.service = stack.enter_context(ModelService(self.net.listener))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._stack.__exit__(*failure)


class Client:
    """One program; what differs is told by the classes below."""

    name: ClassVar[str]
    """As `wire hooks install` calls it."""
    env: Mapping[str, str]

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.home = desk.machine.home
        self.url = desk.service.url
        self.env = self.settle_in()
        # Some run a model's commands in a login shell, which forgets PATH.
        self.write(self.home / ".profile", f"PATH='{desk.machine.env['PATH']}'\n")

    def settle_in(self) -> dict[str, str]:
        """Write the client's settings, and return its variables."""
        raise NotImplementedError

    def command(self, prompt: str, *, resume: bool) -> list[str]:
        """Return the command line of a headless run."""
        raise NotImplementedError

    def environ(self) -> dict[str, str]:
        """Return the environment: the machine's, with the client's own variables and a Node.js on PATH."""
        found = self.desk.machine.environ(self.env)
        return {**found, "PATH": f"{found['PATH']}:{npm.node().parent}"}

    def run(self, prompt: str, *, resume: bool = False) -> str:
        """Let the client work on a prompt to its end; return what it printed.

        Raises:
            AssertionError: it failed, or took too long; with what it printed, and what the service saw.
        """
        return self.ends(self.command(prompt, resume=resume))

    def ends(self, argv: Sequence[str]) -> str:
        """Run a command line of the client to its end, as `run` does."""
        process = subprocess.Popen(
            [*self.desk.net.enter, *argv],
            env=self.environ(),
            cwd=self.desk.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired as error:
            process.kill()
            out, _ = process.communicate()
            raise AssertionError(self._told(f"took over {LIMIT_SECONDS:g} s", out)) from error
        assert process.returncode == 0, self._told(f"exited {process.returncode}", out)
        return out.decode("utf-8", "replace")

    @contextmanager
    def lives(self, argv: Sequence[str]) -> Iterator[Path]:
        """Run a command line of the client beside the test, and end it; the file is what it prints."""
        out = self.home / f"{self.name}.out"
        with out.open("wb") as file:
            process = subprocess.Popen(
                [*self.desk.net.enter, *argv],
                env=self.environ(),
                cwd=self.desk.project,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                yield out
            finally:
                process.terminate()
                process.wait(20)

    def terminal(self, argv: Sequence[str]) -> Pane:
        """Return a terminal in which a command line of the client runs, once it is entered."""
        desk = self.desk
        socket = desk.project.parent / "t"
        return Pane(argv, env=self.environ(), cwd=desk.project, socket=socket, prefix=desk.net.enter)

    def _told(self, what: str, out: bytes) -> str:
        shown = out.decode("utf-8", "replace")[-6000:]
        return f"{self.name} {what}:\n{shown}\n{self.desk.service.told()}"

    def write(self, path: Path, value: Any) -> None:
        """Write a file of settings."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1), "utf-8")


def _program(tree: str, *patterns: str) -> str:
    """Return the one file of a tree that fits."""
    found = [path for pattern in patterns for path in npm.tree(tree).glob(pattern) if path.is_file()]
    assert found, f"{tree} is not there: the package has no {' or '.join(patterns)}"
    return str(found[0])


class ClaudeCode(Client):
    """Claude Code, the executable of its platform package."""

    name = "claude-code"

    def settle_in(self) -> dict[str, str]:
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        self.write(
            self.home / ".claude.json",
            {
                "hasCompletedOnboarding": True,
                "theme": "dark",
                "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
                "projects": {str(self.desk.project): project},
            },
        )
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    @property
    def program(self) -> str:
        return _program("claude-code", "@anthropic-ai/claude-code-linux-*/claude")

    def command(self, prompt: str, *, resume: bool) -> list[str]:
        return [*self.interactive(), "-p", prompt, *(["--continue"] if resume else [])]

    def interactive(self) -> list[str]:
        """Return the command line of a session in a terminal."""
        return [self.program, "--permission-mode", "default", "--allowedTools=Bash(wire:*)"]


class Codex(Client):
    """Codex, the executable of its platform package."""

    name = "codex"

    def settle_in(self) -> dict[str, str]:
        home = self.home / ".codex"
        self.write(
            home / "config.toml",
            f"""\
model = "m"
model_provider = "standin"

[model_providers.standin]
name = "standin"
base_url = "{self.url}/v1"
wire_api = "responses"
env_key = "STANDIN_KEY"
request_max_retries = 0
stream_max_retries = 0

[features]
plugins = false

[analytics]
enabled = false

[projects."{self.desk.project}"]
trust_level = "trusted"
""",
        )
        return {"CODEX_HOME": str(home), "STANDIN_KEY": KEY}

    def command(self, prompt: str, *, resume: bool) -> list[str]:
        free = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"]
        again = ["resume", "--last"] if resume else []
        return [_program("codex", "@openai/codex-linux-*/vendor/*/*/codex"), "exec", *free, *again, prompt]


class Gemini(Client):
    """Gemini CLI, on Node.js."""

    name = "gemini"

    def settle_in(self) -> dict[str, str]:
        self.write(
            self.home / ".gemini" / "settings.json",
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
                "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
                "privacy": {"usageStatisticsEnabled": False},
            },
        )
        return {"GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_API_KEY": KEY}

    def command(self, prompt: str, *, resume: bool) -> list[str]:
        program = _program("gemini", "@google/gemini-cli/bundle/gemini.js")
        again = ["--resume", "latest"] if resume else []
        return [str(npm.node()), program, "-p", prompt, "--yolo", "-m", "gemini-2.5-flash", *again]


class OpenCode(Client):
    """OpenCode, the executable of its platform package."""

    name = "opencode"

    def settle_in(self) -> dict[str, str]:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "standin",
            "options": {"baseURL": f"{self.url}/v1", "apiKey": KEY},
            "models": {"m": {"name": "m", "tool_call": True, "limit": {"context": 100000, "output": 4096}}},
        }
        # It fetches what plugins may import as it starts, and does without; here it need not try again and again.
        self.write(self.home / ".npmrc", "fetch-retries=0\n")
        self.write(
            self.home / ".config" / "opencode" / "opencode.json",
            {
                "provider": {"standin": provider},
                "model": "standin/m",
                "small_model": "standin/m",
                "autoupdate": False,
                "share": "disabled",
            },
        )
        return {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }

    @property
    def program(self) -> str:
        return _program("opencode", "opencode-linux-*/bin/opencode")

    def command(self, prompt: str, *, resume: bool) -> list[str]:
        return [self.program, "run", *(["--continue"] if resume else []), prompt]

    def serve(self, port: int) -> list[str]:
        """Return the command line of a server, which keeps sessions alive between prompts."""
        return [self.program, "serve", "--hostname", "127.0.0.1", "--port", str(port)]

    def attached(self, port: int, prompt: str) -> list[str]:
        """Return the command line that gives a server a prompt."""
        return [self.program, "run", "--attach", f"http://127.0.0.1:{port}", prompt]


class Pi(Client):
    """pi, on Node.js."""

    name = "pi"

    def settle_in(self) -> dict[str, str]:
        model = {"id": "m", "contextWindow": 100000, "maxTokens": 4096}
        provider = {"baseUrl": f"{self.url}/v1", "api": "openai-completions", "apiKey": KEY, "models": [model]}
        self.write(self.home / ".pi" / "agent" / "models.json", {"providers": {"standin": provider}})
        return {"PI_SKIP_VERSION_CHECK": "1", "PI_OFFLINE": "1"}

    def command(self, prompt: str, *, resume: bool) -> list[str]:
        return [*self.interactive(), *(["--continue"] if resume else []), "-p", prompt]

    def interactive(self) -> list[str]:
        """Return the command line of a session in a terminal."""
        program = _program("pi", "@mariozechner/pi-coding-agent/dist/cli.js")
        return [str(npm.node()), program, "--provider", "standin", "--model", "m"]


CLIENTS: dict[str, type[Client]] = {one.name: one for one in (ClaudeCode, Codex, Gemini, OpenCode, Pi)}


# What the tests of all clients do


def reaches(team: Team, words: str, *more: str) -> str:
    """Let mac send a message, and let it arrive on spark's machine; return its id."""
    identity = team.mac.send("spark", words, *more)
    team.settle(team.mac, team.spark, rounds=1)
    return identity


def first(turns: list[Asked], words: str) -> int:
    """Return in which turn the model read some words first, after checking that it never did twice in one."""
    assert all(turn.count(words) <= 1 for turn in turns), [turn.count(words) for turn in turns]
    return next((number for number, turn in enumerate(turns) if turn.count(words)), -1)
