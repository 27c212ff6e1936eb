"""The documents tell the truth: what they say to type works, what they link to is there, what they name exists.

A command in a fenced `sh` or `console` block is run, in the order of the document, on real machines: `mac$` and `# on
mac` say on which. What a `console` block shows below a command must be what it prints, `…` standing for anything. What
cannot run here is listed in `ELSEWHERE` with what runs it.
"""

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from support import gitcmd, oracle
from support.checkout import ROOT, tool
from support.machine import Machine
from support.remote import BareRemote
from support.team import read
from support.waiting import eventually
from wire import errors
from wire.cli import cli
from wire.verbs.states import STATES

PAGES = sorted(p for p in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])

ELSEWHERE = {
    "make demo": ("tests/e2e/test_demo.py", '"demo"'),
    "make test": (".ci/run", "make test"),
    "make lint test": (".ci/run", "make lint"),
    "make core": (".ci/run", "make lint core"),
    "make mutants MODULE=wire.keys.chain": ("Makefile", "tools/mutants.py $(MODULE)"),
    "make mutants": ("Makefile", "tools/mutants.py $(MODULE)"),
    "make dev": ("Makefile", "--editable ."),
    ". .venv/bin/activate": ("Makefile", "VENV := .venv"),
    "pytest tests/unit": ("Makefile", "$(BIN)/pytest"),
    "pipx install .": ("Makefile", "$(PIP_INSTALL) dist/*.whl"),
    "wire service install": ("tests/e2e/test_service.py", '"service", "install"'),
    "wire service install --passphrase-file ~/.config/wire-passphrase": (
        "tests/e2e/test_service.py",
        '"service", "install", "--passphrase-file", word',
    ),
    "wire keys passphrase": ("tests/integration/test_passphrases.py", '["keys", "passphrase"], [WORD'),
    "wire keys passphrase --root": ("tests/integration/test_passphrases.py", 'lock(team.mac, WORD, "--root")'),
}
"""Commands that would test the tests, install from the network, or need a service manager or a terminal; and what
does it instead: a file, and words in it."""

ENDLESS = {"wire tail -f"}
"""Commands that go on until they are stopped."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    line: int
    text: str


def blocks(page: Path) -> list[Block]:
    found, inside, start, language = [], [], 0, ""
    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        if line.startswith("```"):
            if start:
                found.append(Block(language, start, "\n".join(inside)))
                start = 0
            else:
                start, language, inside = number, line[3:].strip(), []
        elif start:
            inside.append(line)
    assert not start, f"{page.name}:{start}: a block that does not end"
    return found


@dataclass(frozen=True)
class Command:
    """One command of a page, the machine that it is for, and what the page says that it prints."""

    where: str
    machine: str
    text: str
    prints: tuple[str, ...] | None


def commands(page: Path) -> Iterator[Command]:
    for block in blocks(page):
        if block.language not in ("sh", "console"):
            continue
        machine = "mac"
        shown: list[tuple[int, str, str, list[str]]] = []
        for number, line in enumerate(block.text.split("\n"), block.line + 1):
            if block.language == "sh":
                if on := re.fullmatch(r"# on (?:the )?([a-z]+).*", line):
                    machine = on[1]
                elif line and not line.startswith("#"):
                    shown.append((number, machine, re.sub(r"\s+#\s.*", "", line), []))
            elif prompt := re.match(r"([a-z]+)\$ (.*)", line):
                shown.append((number, prompt[1], prompt[2], []))
            else:
                shown[-1][3].append(line)
        for number, on_machine, text, prints in shown:
            told = tuple(prints) if block.language == "console" else None
            yield Command(f"{page.name}:{number}", on_machine, text, told)


@dataclass
class Readers:
    """Two machines whose people follow a page, and what they have in hand."""

    machines: dict[str, Machine]
    folder: Path
    facts: dict[str, str] = field(default_factory=dict)
    answers: str | None = None
    remotes: dict[str, str] = field(default_factory=dict)

    def run(self, command: Command) -> None:
        if command.text in ELSEWHERE:
            self._instead(command.text)
            return
        machine = self.machines[command.machine]
        text = self._filled(command.text)
        if command.text in ENDLESS:
            text = f"timeout 3 {text}"
        done = subprocess.run(
            ["sh", "-c", text],
            cwd=machine.home,
            env=machine.environ({**gitcmd.PERSON, "GIT_CONFIG_COUNT": None}),
            input=self.answers,
            capture_output=True,
            text=True,
            timeout=90,
        )
        wanted = 124 if command.text in ENDLESS else 0
        assert done.returncode == wanted, f"{command.where}: `{command.text}` exits {done.returncode}\n{done.stderr}"
        if command.prints is not None:
            assert re.fullmatch(self._pattern(command.prints), done.stdout + done.stderr), (
                f"{command.where}: `{command.text}` prints\n{done.stdout}{done.stderr}"
            )
        self._remember(done.stdout)
        if " send " in command.text or " reply " in command.text:
            machine.sent += re.findall(r"[a-z]+/[a-z]+/[0-9]+(?= stored)|(?<=\"id\":\")[a-z/0-9]+", done.stdout)

    def _filled(self, text: str) -> str:
        for word in shlex.split(text):
            if "/wire.git" in word and word not in self.remotes and not word.startswith("/tmp"):
                remote = BareRemote(self.folder / f"remote-{len(self.remotes)}" / "wire.git")
                self.remotes[word] = remote.url
        for word, url in self.remotes.items():
            text = text.replace(word, url)
        text = re.sub(r"wire-join-1\.…", lambda _: self.facts["code"], text)
        text = re.sub(r"--trust 1:SHA256:…", lambda _: f"--trust {self.facts['checkpoint']}", text)
        text = re.sub(r"wire-root-1\.…", lambda _: self.facts["root"], text)
        return re.sub(r"( approve [a-z]+) SHA256:…", lambda found: f"{found[1]} {self.facts['fingerprint']}", text)

    def _pattern(self, prints: tuple[str, ...]) -> str:
        text = "\n".join(prints)
        for word, url in self.remotes.items():
            text = text.replace(word, url)
        return ".+?".join(re.escape(part) for part in text.split("…")) + "\n"

    def _remember(self, out: str) -> None:
        if found := re.search(r"^checkpoint ([0-9]+:SHA256:\S+)$", out, re.M):
            self.facts["checkpoint"] = found[1]
        if found := re.search(r"^  wire join (wire-join-1\.\S+)$", out, re.M):
            self.facts["code"] = found[1]
        if found := re.search(r"(wire-root-1\.\S+)$", out, re.M):
            self.facts["root"] = found[1]
        if found := re.search(r"(?:has the key|signs with) (SHA256:\S+)(?: from now on)?$", out, re.M):
            self.facts["fingerprint"] = found[1]

    def _instead(self, text: str) -> None:
        file, words = ELSEWHERE[text]
        assert words in (ROOT / file).read_text("utf-8"), f"`{text}` is said to be run by {file}"
        if text == "wire service install":
            for machine in self.machines.values():
                machine.start_daemon()


def wait_for(machine: Machine, count: int) -> None:
    """Wait until a machine has accepted so many messages."""

    def arrived() -> bool:
        return sum("id" in one for one in machine.jsonl("tail", "--all", check=False)) >= count

    eventually(arrived, what=f"{count} messages at {machine.name}")


def test_the_readme_from_top_to_bottom(machines, tmp_path):
    """A newcomer on two machines: begin, join, approve, daemons, send, read, answer, look after it."""
    mac, spark = machines("mac"), machines("spark")
    (mac.home / "report.md").write_text("# Nightly report\n\nAll green.\n")
    gitcmd.git(mac.home, "init", "--quiet")
    gitcmd.git(mac.home, "commit", "--quiet", "--allow-empty", "-m", "the work of the day")
    readers = Readers({"mac": mac, "spark": spark}, tmp_path)
    on = "mac"
    for command in commands(ROOT / "README.md"):
        if command.machine != on and mac.daemon is not None:
            # The people of the page wait for the daemons; here the last message is waited for.
            wait_for(spark, len(mac.sent))
            wait_for(mac, len(spark.sent))
        on = command.machine
        readers.run(command)
    assert len(mac.sent) == 6
    assert len(spark.sent) == 1
    for block in blocks(ROOT / "README.md"):
        if block.language == "python":
            argv = [sys.executable, "-P", "-c", block.text]
            ran = subprocess.run(argv, env=mac.environ(), cwd=mac.home, capture_output=True, text=True, timeout=60)
            assert ran.returncode == 0, ran.stderr
            mac.sent += ran.stdout.split()
    assert len(mac.sent) == 7
    wait_for(spark, 7)
    for machine in (mac, spark):
        eventually(lambda m=machine: m.wire("sync", check=False).status == 0, what="all in sync")
    for machine in (mac, spark):
        assert machine.stop_daemon() == 0
    url = next(iter(readers.remotes.values()))
    hub = BareRemote.__new__(BareRemote)
    hub.path = Path(url)
    oracle.check([mac, spark], hub)


def test_the_transports_are_set_up_as_written(machines, tmp_path):
    mac, host = machines("mac"), machines("host")
    readers = Readers({"mac": mac, "host": host}, tmp_path)
    found = list(commands(ROOT / "TRANSPORTS.md"))
    for command in found:
        # Each of the page's wires begins on a machine that has none.
        if " init " in command.text and command.text.startswith("wire"):
            readers.machines["mac"] = machines(f"mac-{len(readers.remotes)}")
        readers.run(command)
    assert sum(command.text.startswith("wire init") for command in found) == 3
    own = host.home / "wire.git"
    other = machines("mac-own")
    other.wire("init", str(own), "--as", "mac")
    other.send("all", "through my own repository")
    other.wire("sync")
    with pytest.raises(gitcmd.GitFailed, match="FORCED in refs/heads/main"):
        gitcmd.git(own, "push", "--force", str(own), "main~1:main")


def test_the_runbook_for_keys(team):
    """Every key of the page is changed, lost, stolen and left behind, on the machines that it names."""
    mac, spark, laptop = team.mac, team.spark, team.new_machine("laptop")
    readers = Readers({"mac": mac, "spark": spark, "laptop": laptop}, team.folder, answers="y\n")
    readers.remotes["git@example.org:team/wire.git"] = team.remote.url
    spark.send("mac", "from the old laptop")
    team.settle()
    ran = []
    for command in commands(ROOT / "docs" / "keys.md"):
        if "--reason stolen" in command.text:
            laptop.send("mac", "also from the new one")
        if "--reason" in command.text and "lost" not in command.text:
            laptop.wire("sync", check=False)
        readers.run(command)
        ran.append(command.text)
    assert len(ran) == 30
    keys = mac.json("trust", "show", "--wire", "hub")["agents"]["spark"]
    assert keys["status"] == "removed"
    assert [key["status"] for key in keys["keys"]] == ["retired", "revoked", "revoked", "revoked"]
    kept = ["from the old laptop", "I am back", "also from the new one"]
    assert read(mac, "--all", "--wire", "hub", status=None) == kept
    assert mac.json("trust", "show", "--wire", "hub")["threshold"] == 2


def test_the_page_about_closed_letters(team):
    """Closed, answered, asked for by the policy, and one that holds what looks like a secret."""
    readers = Readers({"mac": team.mac, "spark": team.spark}, team.folder)
    on, ran = "mac", 0
    for command in commands(ROOT / "docs" / "sealed.md"):
        if command.machine != on:
            team.settle()
        on, ran = command.machine, ran + 1
        readers.run(command)
    assert ran == 8
    team.settle()
    shown = [one["opened"]["body"] for one in team.spark.jsonl("tail") if "opened" in one]
    assert shown == ["closed without a word", "the old one was redis://:changed-it@cache.example:6379"]
    (answer,) = [one for one in team.mac.jsonl("tail") if "id" in one]
    assert answer["opened"]["body"] == "noon it is"
    team.check()


def test_what_the_house_says_to_type_is_run_by_somebody(machines, tmp_path):
    readers = Readers({"mac": machines("mac")}, tmp_path)
    for command in commands(ROOT / "CONTRIBUTING.md"):
        readers.run(command)


@pytest.mark.parametrize("target", ["demo", "test", "lint", "bench", "dev", "test-full", "core", "mutants"])
def test_make_knows_the_targets_that_are_named(target):
    named = [page.name for page in PAGES if f"make {target}" in page.read_text("utf-8")]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(rf"^{target}:.*## ", makefile, re.M)
    assert named, f"no page says what `make {target}` is for"


def test_make_demo_runs_the_installed_demo():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(r"^demo: \$\(VENV\)/\.wheel.*\n\t\$\(BIN\)/wire demo$", makefile, re.M)


def test_the_house_is_drawn_as_it_is_checked():
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rooms = set(re.findall(r"`wire/([a-z_]+)(?:\.py)?`", page.split("## Style")[0]))
    assert tool("floors").FLOORS.keys() - {"__init__"} <= rooms


def test_the_readme_has_the_exit_statuses_and_the_states():
    page = (ROOT / "README.md").read_text("utf-8")
    statuses = [value for value in vars(errors).values() if isinstance(value, int)]
    assert [int(number) for number in re.findall(r"^\| ([0-9]) \|", page, re.M)] == sorted(statuses)
    assert tuple(re.findall(r"^\| `([a-z]+)` \|", page, re.M)) == STATES


def test_the_readme_says_where_things_are(machines, remote):
    mac = machines("mac")
    bare = {"WIRE_HOME": None, "XDG_CONFIG_HOME": None, "XDG_DATA_HOME": None, "XDG_STATE_HOME": None}
    mac.wire("init", remote.url, "--as", "mac", env=bare)
    page = (ROOT / "README.md").read_text("utf-8")
    places = re.findall(r"\| `~/([^`]+)` \|$", page, re.M)
    assert len(places) == 4
    for place in places:
        assert (mac.home / place.replace("NAME", "hub")).exists(), place


# Links


def _slug(heading: str) -> str:
    """Return the anchor that git hosts give a heading."""
    text = re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def _prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            broken.append(target)
        elif anchor:
            headings = re.findall(r"^#+ (.*)$", _prose(file), re.M)
            if anchor not in {_slug(heading) for heading in headings}:
                broken.append(target)
    assert not broken


# Commands that are mentioned


def _in_docs() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        text = page.read_text("utf-8")
        for mention in re.findall(r"`((?:git )?wire(?: [^`\n=][^`\n]*)?)`", text):
            yield page.name, mention
        for command in commands(page):
            for part in re.findall(r"(?:^|\| )((?:git )?wire [^|]*)", command.text):
                yield command.where, part


def _texts(node: ast.AST) -> str | None:
    """Return a literal text; a computed part of it stands as `X`."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_texts(part) or "X" for part in node.values)
    if isinstance(node, ast.IfExp):
        return f"{_texts(node.body)} `{_texts(node.orelse)}`"
    return None


def _in_code() -> Iterator[tuple[str, str]]:
    for file in sorted((ROOT / "wire").rglob("*.py")):
        where = file.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "next_step":
                text = _texts(node.value)
                if text and text.startswith("wire "):
                    yield f"{where}:{node.value.lineno}", text
            text = _texts(node)
            for mention in re.findall(r"`((?:git )?wire [^`\n]+)`", text or ""):
                yield f"{where}:{node.lineno}", mention


def unknown(mention: str) -> str | None:
    """Return what is wrong with a command that a text names, or None."""
    text = re.split(r"\s[#|&;]\s|\s*…\s*$|: ", mention.removeprefix("git "))[0]
    try:
        words = shlex.split(text.replace("…", "X"))[1:]
    except ValueError:
        words = text.split()[1:]
    command: click.Command = cli
    context = click.Context(cli, info_name="wire")
    while words:
        options = {opt: param for param in command.params for opt in (*param.opts, *param.secondary_opts)}
        word = words.pop(0)
        if word.startswith("-") and word != "-":
            name, given, _ = word.partition("=")
            option = options.get(name)
            if option is None and name not in ("-h", "--help"):
                return f"`wire {command.name or ''}` has no option {name}"
            if isinstance(option, click.Option) and not option.is_flag and not given and words:
                words.pop(0)
        elif isinstance(command, click.Group):
            if not re.fullmatch(r"[a-z|-]+", word):
                return None  # a placeholder for any command
            for name in word.split("|"):
                found = command.get_command(context, name)
                if found is None:
                    return f"`wire` has no command {name!r} there"
            command = found
    return None


@pytest.mark.parametrize("mentions", [_in_docs, _in_code], ids=["docs", "next-steps"])
def test_every_command_that_is_named_exists(mentions):
    wrong = [f"{where}: {mention}: {why}" for where, mention in mentions() if (why := unknown(mention)) is not None]
    assert not wrong, "\n".join(wrong)
    assert len(list(mentions())) > 20


@pytest.mark.parametrize(
    ("mention", "wrong"),
    [
        ("wire sned spark", True),
        ("wire send spark --prioritty high", True),
        ("wire incidents shwo ID", True),
        ("wire incidents ack ID", False),
        ("wire --as mac tail -n 5", False),
        ("git wire send …", False),
        ("wire trust approve NAME SHA256:…", False),
    ],
)
def test_a_command_that_does_not_exist_is_found(mention, wrong):
    assert (unknown(mention) is not None) is wrong
