"""The machine's configuration: strict reading with a place for each complaint, and changes that keep comments."""

import os
import re
import stat
from pathlib import Path

import pytest

from support.checkout import ROOT
from wire.errors import Corrupt, UsageError
from wire.store import config
from wire.store.config import Config, WireConfig
from wire.store.paths import Settings
from wire.store.surfaces import Notify

TOKEN = "https://user:s3cret-t0ken@example.org/team/wire.git"

FULL = f"""\
# my wires
[[wire]]
name = "team"          # the first
remote = "{TOKEN}"
branch = "main"
agents = ["mac", "review-bot"]
identity = {{ name = "Me", email = "me@example.org" }}

[wire.cadence]
t0 = 10
t3 = 600.5
hot = [1, 1, 2]
jitter = 0
hourly_budget = 100
timeout = 20

# and the other
[[wire]]
name = "wire"
remote = "/srv/hub.git"
branch = "wire"
clone = "/srv/clone"
identity.name = "Other"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environ({"HOME": str(tmp_path), "WIRE_HOME": str(tmp_path / "w")}, str(tmp_path))


def write(settings: Settings, text: str | bytes) -> Path:
    path = Path(settings.config_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def team(settings: Settings, name: str = "team") -> WireConfig:
    return WireConfig(name, TOKEN, "main", settings.default_clone(name), ("mac",))


# Reading


def test_no_file_is_no_wires(settings: Settings) -> None:
    assert config.load(settings) == Config((), settings.config_file)


def test_everything(settings: Settings) -> None:
    write(settings, FULL)
    first, second = config.load(settings).wires
    assert first == WireConfig(
        "team",
        TOKEN,
        "main",
        settings.default_clone("team"),
        ("mac", "review-bot"),
        "Me",
        "me@example.org",
        {"t0": 10, "t3": 600.5, "hot": (1, 1, 2), "jitter": 0, "hourly_budget": 100, "timeout": 20},
    )
    assert second == WireConfig("wire", "/srv/hub.git", "wire", "/srv/clone", (), "Other", None, {})


def test_a_relative_clone_is_relative_to_the_file(settings: Settings) -> None:
    write(settings, '[[wire]]\nname = "a"\nremote = "r"\nbranch = "b"\nclone = "../c"\n')
    assert config.load(settings).wires[0].clone == str(Path(settings.config_file).parent.parent / "c")


WIRE = '[[wire]]\nname = "a"\nremote = "r"\nbranch = "b"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(b"", "is empty: 0 bytes", id="0 bytes"),
        pytest.param(b"\0" * 100, "line 1: a NUL byte", id="all NUL"),
        pytest.param(FULL.encode() + b"\0\0", "line 24: a NUL byte", id="NUL at the end"),
        pytest.param(b"# \xff", "line 1: not UTF-8", id="not UTF-8"),
        pytest.param(FULL[:100].encode(), "line 4: not valid TOML", id="half a file"),
        pytest.param(b'wire = "x"', "line 1: `wire` must be a list", id="wire is no list"),
        pytest.param(b"wire = [3]", "line 1: each wire must be a", id="wire is no table"),
        pytest.param(b'\n[wires]\nname = "a"', "line 2: unknown key `wires`; did you mean `wire`", id="top level"),
        pytest.param(b'[[wire]]\nname = "a"\nremote = "r"\n', "line 1: this wire has no `branch`", id="no branch"),
        pytest.param((WIRE + WIRE).encode(), "line 6: a second wire 'a'", id="one name twice"),
        pytest.param((WIRE + "agent = []").encode(), "line 5: unknown key `agent`; did you mean `agents`", id="typo"),
        pytest.param((WIRE + "zzz = 1").encode(), "line 5: unknown key `zzz`; known are name, remote", id="no idea"),
        pytest.param((WIRE + 'agents = "mac"').encode(), "line 5: `agents` must be a list", id="agents is a text"),
        pytest.param((WIRE + 'agents = ["../x"]').encode(), "line 5: '../x' cannot be", id="bad agent"),
        pytest.param((WIRE + 'agents = ["m", "m"]').encode(), "line 5: an agent is listed twice", id="agent twice"),
        pytest.param((WIRE + "clone = 1").encode(), "line 5: `clone` must be text in quotes", id="clone"),
        pytest.param(WIRE.replace('"a"', '"../a"').encode(), "line 2: '../a' is not 1 to 32", id="bad name"),
        pytest.param(WIRE.replace('"r"', '"--upload-pack=x"').encode(), "line 3: `remote` must be", id="an option"),
        pytest.param(WIRE.replace('"r"', '"a\\u0000b"').encode(), "line 3: `remote` must be", id="NUL in a remote"),
        pytest.param(WIRE.replace('"b"', '"a..b"').encode(), "line 4: 'a..b' is not the name of a", id="bad branch"),
        pytest.param((WIRE + 'identity = {nam = "x"}').encode(), "unknown key `identity.nam`; did you", id="identity"),
        pytest.param((WIRE + 'identity.email = "<a@b>"').encode(), "line 5: `identity.email`", id="angle brackets"),
        pytest.param((WIRE + "[wire.cadence]\nt4 = 1").encode(), "line 6: unknown key `cadence.t4`", id="tier"),
        pytest.param((WIRE + "[wire.cadence]\nt0 = 0").encode(), "line 6: `cadence.t0` must be seconds", id="0 s"),
        pytest.param((WIRE + "[wire.cadence]\nt0 = nan").encode(), "line 6: `cadence.t0` must be", id="nan"),
        pytest.param((WIRE + "[wire.cadence]\nt0 = true").encode(), "line 6: `cadence.t0` must be a num", id="bool"),
        pytest.param((WIRE + "[wire.cadence]\nt0=9\nt2=8").encode(), "line 7: `cadence.t2` must not be", id="order"),
        pytest.param((WIRE + "[wire.cadence]\nhot = []").encode(), "line 6: `cadence.hot`", id="hot is empty"),
        pytest.param((WIRE + "[wire.cadence]\nhot = [true]").encode(), "line 6: `cadence.hot`", id="hot holds a bool"),
        pytest.param((WIRE + "[wire.cadence]\njitter = 2").encode(), "line 6: `cadence.jitter`", id="jitter"),
        pytest.param((WIRE + "[wire.cadence]\nhourly_budget = 0").encode(), "line 6: `cadence.hourly", id="budget"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(settings: Settings, text: bytes, said: str) -> None:
    path = write(settings, text)
    with pytest.raises(Corrupt) as caught:
        config.load(settings)
    assert said in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.reason == "config-corrupt"
    with pytest.raises(Corrupt):
        config.add_wire(settings, team(settings, "new"))
    assert path.read_bytes() == text


def test_a_remote_is_never_told(settings: Settings) -> None:
    for bad in ("colour = 1", "agents = 1", "[wire.cadence]\nt0 = 0"):
        write(settings, f'[[wire]]\nname = "a"\nremote = "{TOKEN}"\nbranch = "b"\n{bad}\n')
        with pytest.raises(Corrupt) as caught:
            config.load(settings)
        assert "s3cret" not in caught.value.message


# Choosing


def test_choosing_a_wire(settings: Settings) -> None:
    with pytest.raises(UsageError, match="no wire is configured") as caught:
        config.choose_wire(config.load(settings), settings)
    assert caught.value.reason == "no-wire"
    one = config.add_wire(settings, team(settings))
    assert config.choose_wire(one, settings).name == "team"
    two = config.add_wire(settings, team(settings, "other"))
    with pytest.raises(UsageError, match="none was chosen: team, other") as caught:
        config.choose_wire(two, settings)
    assert caught.value.reason == "wire-ambiguous"
    assert config.choose_wire(two, settings.choosing(wire="other")).name == "other"
    with pytest.raises(UsageError, match=r"no wire 'x' \(chosen by --wire\).*there is team, other") as caught:
        config.choose_wire(two, settings.choosing(wire="x"))
    assert caught.value.reason == "wire-unknown"


def test_choosing_an_agent(settings: Settings) -> None:
    wire = team(settings)
    assert config.choose_agent(wire, settings) == "mac"
    with pytest.raises(UsageError, match=r"'bot' \(chosen by --as\).*there is mac") as caught:
        config.choose_agent(wire, settings.choosing(agent="bot"))
    assert caught.value.reason == "agent-unknown"
    both = wire._replace(agents=("mac", "bot"))
    assert config.choose_agent(both, settings.choosing(agent="bot")) == "bot"
    with pytest.raises(UsageError, match="none was chosen: mac, bot") as caught:
        config.choose_agent(both, settings)
    assert caught.value.reason == "agent-ambiguous"
    assert "--as mac" in (caught.value.next_step or "")
    with pytest.raises(UsageError, match="no agent of wire 'team'") as caught:
        config.choose_agent(wire._replace(agents=()), settings.choosing(agent="mac"))
    assert caught.value.reason == "no-agent"


# Writing


def test_adding_to_nothing(settings: Settings) -> None:
    wire = team(settings)._replace(identity_email="a@b", cadence={"t0": 5, "hot": (1, 2)})
    written = config.add_wire(settings, wire)
    assert written.wires == (wire,)
    assert config.load(settings) == written
    path = Path(settings.config_file)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "clone" not in path.read_text()


def test_adding_and_changing_keeps_what_a_person_wrote(settings: Settings) -> None:
    path = write(settings, FULL)
    old = config.load(settings).wires
    config.add_wire(settings, team(settings, "third"))
    assert path.read_text().startswith(FULL)
    changed = old[0]._replace(agents=("mac",), identity_name=None, identity_email=None, cadence={"t0": 11})
    written = config.update_wire(settings, changed)
    assert written.wires == (changed, old[1], team(settings, "third"))
    text = path.read_text()
    for comment in ("# my wires", "# the first", "# and the other"):
        assert comment in text
    assert text.count("[[wire]]") == 3
    assert config.update_wire(settings, changed) == written
    assert path.read_text() == text


def test_a_clone_in_another_place_is_written_down(settings: Settings, tmp_path: Path) -> None:
    config.add_wire(settings, team(settings)._replace(clone=str(tmp_path / "elsewhere")))
    config.add_wire(settings, team(settings, "other"))
    moved = settings._replace(config_file=str(tmp_path / "moved.toml"), clones_dir=str(tmp_path / "moved"))
    os.rename(settings.config_file, moved.config_file)
    assert [wire.clone for wire in config.load(moved).wires] == [
        str(tmp_path / "elsewhere"),
        str(tmp_path / "moved" / "other"),
    ]


def test_refused_changes_change_nothing(settings: Settings) -> None:
    path = write(settings, FULL)
    with pytest.raises(UsageError, match="there is a wire 'team'"):
        config.add_wire(settings, team(settings))
    with pytest.raises(UsageError, match="no wire 'none'"):
        config.update_wire(settings, team(settings, "none"))
    with pytest.raises(Corrupt, match="is not the name of a branch"):
        config.add_wire(settings, team(settings, "new")._replace(branch="a b"))
    with pytest.raises(Corrupt, match="unknown key"):
        config.update_wire(settings, team(settings)._replace(cadence={"t9": 1}))
    assert path.read_text() == FULL


def test_taking_a_wire_out(settings: Settings) -> None:
    assert config.remove_wire(settings, "team").wires == ()
    assert not Path(settings.config_file).exists()
    path = write(settings, FULL)
    left = config.remove_wire(settings, "team")
    assert [wire.name for wire in left.wires] == ["wire"]
    assert config.remove_wire(settings, "team") == config.load(settings) == left
    assert "# my wires" in path.read_text()
    config.remove_wire(settings, "wire")
    assert config.load(settings).wires == ()
    path.unlink()
    config.add_wire(settings, team(settings))
    config.remove_wire(settings, "team")
    assert config.load(settings).wires == ()
    assert config.add_wire(settings, team(settings)) == config.load(settings)


def test_a_linked_configuration_stays_linked(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "wire.toml"
    real.write_text("# mine\n")
    Path(settings.config_file).parent.mkdir()
    Path(settings.config_file).symlink_to(real)
    config.add_wire(settings, team(settings))
    assert Path(settings.config_file).is_symlink()
    assert real.read_text().startswith("# mine\n")
    assert config.load(settings).wires == (team(settings),)


# Notifications and drop folders

SURFACES = """\
[[wire]]
name = "team"
remote = "/srv/hub.git"
branch = "main"
agents = ["mac", "bot"]

[wire.notify.mac]
tmux = "work:0.1"
tmux_socket = "/run/t"
command = ["wake", "--now"]
[wire.notify.bot]
desktop = true
[wire.drop]
mac = "drops/mac"
bot = "/srv/bot"
"""


def test_how_agents_are_told(settings: Settings) -> None:
    path = write(settings, SURFACES)
    (wire,) = config.load(settings).wires
    assert wire.notify == {
        "mac": Notify("work:0.1", "/run/t", ("wake", "--now")),
        "bot": Notify(desktop=True),
    }
    assert wire.notify["mac"].adapters == ("tmux", "command")
    assert wire.drop == {"mac": str(path.parent / "drops/mac"), "bot": "/srv/bot"}
    config.update_wire(settings, wire._replace(branch="other"))
    (changed,) = config.load(settings).wires
    assert (changed.branch, changed.notify, changed.drop) == ("other", wire.notify, wire.drop)


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ("[wire.notify.bot]", "[wire.notify.eve]", 11, "no such agent lives here; there is mac, bot"),
        ("desktop = true", "dekstop = true", 12, "unknown key `notify.bot.dekstop`"),
        ("desktop = true", "desktop = 1", 12, "`notify.bot.desktop` must be true or false"),
        ('command = ["wake", "--now"]', 'command = "wake --now"', 10, "`notify.mac.command` must be a list"),
        ('command = ["wake", "--now"]', "command = [1]", 10, "must be a list of words"),
        ('tmux = "work:0.1"', 'tmux = "-t x"', 8, "not beginning with '-'"),
        ('tmux = "work:0.1"', 'tmux = ""', 8, "must be plain text"),
        ('bot = "/srv/bot"', "bot = 7", 13, "`drop.bot` must be the path of a folder"),
        ('bot = "/srv/bot"', 'bot = "./drops/../drops/mac"', 13, "two agents have one drop folder"),
    ],
)
def test_a_complaint_about_telling_names_file_and_line(
    settings: Settings, old: str, new: str, line: int, why: str
) -> None:
    path = write(settings, SURFACES.replace(old, new))
    with pytest.raises(Corrupt) as caught:
        config.load(settings)
    assert caught.value.message.startswith(f"{path}, line {line}: ")
    assert why in caught.value.message


def test_what_the_page_about_telling_shows_is_understood(settings: Settings) -> None:
    page = (ROOT / "docs" / "notify.md").read_text("utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```$", page, re.M | re.S)
    assert len(blocks) == 2
    head = SURFACES.partition("[wire.notify")[0]
    write(settings, head + "".join(blocks))
    (wire,) = config.load(settings).wires
    assert wire.notify["mac"].adapters == ("tmux", "command", "desktop")
    assert wire.drop == {"mac": "/srv/agents/mac"}
