"""Where things live: environment, project file, and names that never leave their folder."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from wire.errors import Corrupt, UsageError
from wire.store.paths import Settings, WirePlaces, find_project

HOME = {"HOME": "/home/me"}


def settings(environ: Mapping[str, str], cwd: str | Path = "/nowhere") -> Settings:
    return Settings.from_environ(environ, str(cwd))


def folders(environ: Mapping[str, str]) -> tuple[str, str, str, str, str]:
    found = settings(environ)
    return found.config_file, found.keys_dir, found.state_dir, found.clones_dir, found.runtime_dir


DEFAULTS = (
    "/home/me/.config/wire/config.toml",
    "/home/me/.local/share/wire/keys",
    "/home/me/.local/state/wire",
    "/home/me/.local/share/wire/clones",
    "/home/me/.local/state/wire/.run",
)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param(HOME, DEFAULTS, id="nothing set"),
        pytest.param(
            {
                **HOME,
                "XDG_CONFIG_HOME": "/c",
                "XDG_DATA_HOME": "/d",
                "XDG_STATE_HOME": "/s",
                "XDG_RUNTIME_DIR": "/run/user/1000",
            },
            ("/c/wire/config.toml", "/d/wire/keys", "/s/wire", "/d/wire/clones", "/run/user/1000/wire"),
            id="XDG",
        ),
        pytest.param(
            {**HOME, **dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"), "x")},
            DEFAULTS,
            id="relative XDG is ignored",
        ),
        pytest.param(
            {**HOME, **dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"), "")},
            DEFAULTS,
            id="empty XDG is ignored",
        ),
        pytest.param(
            {**HOME, "WIRE_HOME": "/w", "XDG_CONFIG_HOME": "/c", "XDG_RUNTIME_DIR": "/run/user/1000"},
            ("/w/config.toml", "/w/keys", "/w/state", "/w/clones", "/w/state/.run"),
            id="WIRE_HOME puts all of them in one folder",
        ),
        pytest.param(
            {**HOME, "WIRE_HOME": "w/"},
            tuple(f"/nowhere/w/{part}" for part in ("config.toml", "keys", "state", "clones", "state/.run")),
            id="relative WIRE_HOME",
        ),
    ],
)
def test_folders(environ: Mapping[str, str], expected: tuple[str, ...]) -> None:
    assert folders(environ) == expected


def test_without_a_home_the_user_list_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    assert settings({}).config_file == os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".config/wire/config.toml")
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_001)
    with pytest.raises(UsageError, match="no home folder"):
        settings({})


def test_nothing_is_made(tmp_path: Path) -> None:
    settings({"HOME": str(tmp_path), "WIRE_HOME": str(tmp_path / "w")}, tmp_path)
    assert os.listdir(tmp_path) == []


# Which wire, which agent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "home" / "project" / "deep" / "er").mkdir(parents=True)
    return tmp_path / "home" / "project"


def chosen(project: Path, *, at: str = ".", **environ: str) -> tuple[str | None, str | None]:
    found = settings({"HOME": str(project.parent), **environ}, os.path.normpath(project / at))
    return found.wire, found.agent


def test_project_file_is_searched_upward(project: Path) -> None:
    (project / ".wire.toml").write_text('wire = "team"\nagent = "mac"\n')
    assert chosen(project) == ("team", "mac")
    assert chosen(project, at="deep/er") == ("team", "mac")
    assert chosen(project, at="..") == (None, None)


def test_the_nearest_project_file_counts_alone(project: Path) -> None:
    (project / ".wire.toml").write_text('wire = "team"\nagent = "mac"\n')
    (project / "deep" / ".wire.toml").write_text('agent = "bot"\n')
    assert chosen(project, at="deep") == (None, "bot")


def test_the_environment_is_stronger_one_by_one(project: Path) -> None:
    (project / ".wire.toml").write_text('wire = "team"\nagent = "mac"\n')
    assert chosen(project, WIRE_AGENT="bot") == ("team", "bot")
    assert chosen(project, WIRE_NAME="other") == ("other", "mac")
    assert chosen(project, WIRE_NAME="", WIRE_AGENT="") == ("team", "mac")


def test_the_caller_is_strongest_and_messages_know_who_chose(project: Path) -> None:
    (project / ".wire.toml").write_text('wire = "team"\nagent = "mac"\n')
    found = settings({"HOME": str(project.parent), "WIRE_AGENT": "bot"}, project)
    assert (found.wire_from, found.agent_from) == (str(project / ".wire.toml"), "WIRE_AGENT")
    changed = found.choosing(wire="x", agent="y")
    assert (changed.wire, changed.agent, changed.wire_from, changed.agent_from) == ("x", "y", "--wire", "--as")
    assert found.choosing() == found


def test_the_search_ends_with_the_home_folder(project: Path) -> None:
    (project.parent / ".wire.toml").write_text('wire = "of-home"\n')
    (project.parent.parent / ".wire.toml").write_text('wire = "above"\n')
    assert chosen(project) == ("of-home", None)
    (project.parent / ".wire.toml").unlink()
    assert chosen(project) == (None, None)
    linked = project.parent.parent / "linked-home"
    linked.symlink_to(project.parent)
    assert settings({"HOME": str(linked)}, project).wire is None


def test_a_malformed_project_file_is_not_read_when_nothing_is_asked_of_it(project: Path) -> None:
    (project / ".wire.toml").write_bytes(b"\0\0")
    assert chosen(project, WIRE_NAME="a", WIRE_AGENT="b") == ("a", "b")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\0" * 30, r"\.wire\.toml, line 1: a NUL byte"),
        (b'wire = "a"\nagent = "b', r"\.wire\.toml, line 2: not valid TOML"),
        (b'wire = "a"\nagent = \xff', r"\.wire\.toml, line 2: not UTF-8"),
        (b'\nremote = "x"\n', r"\.wire\.toml, line 2: unknown key 'remote'; only `wire` and `agent`"),
        (b"\n\n  agent = 3\n", r"\.wire\.toml, line 3: `agent` must be a name"),
        (b'agent = "../../etc"\n', r"\.wire\.toml, line 1: `agent` must be a name"),
        (b'agent = "wire"\n', r"\.wire\.toml, line 1: `agent` must be a name"),
        (b"# " + b"x" * 5000, r"\.wire\.toml: 5002 bytes where at most 4096"),
    ],
)
def test_malformed_project_files_are_named_with_their_line(project: Path, data: bytes, said: str) -> None:
    (project / ".wire.toml").write_bytes(data)
    with pytest.raises(Corrupt, match=said):
        chosen(project)


def test_an_empty_project_file_binds_nothing(project: Path) -> None:
    (project / ".wire.toml").write_bytes(b"# nothing yet\n")
    assert chosen(project) == (None, None)


def test_a_project_file_of_somebody_else_does_not_decide_who_we_are(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = project / ".wire.toml"
    planted.write_text('agent = "planted"\n')
    if os.geteuid() == 0:
        os.chown(planted, 4000, -1)
    owner = planted.stat().st_uid
    found = (str(planted), {"agent": "planted"})
    for user, expected in ((owner, found), (0, found), (owner + 1, (None, {}))):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert find_project(str(project / "deep"), str(project.parent)) == expected


# The places of one wire


def test_places() -> None:
    places = WirePlaces("/s", "team", "/c")
    assert places.root == "/s/team"
    assert places.journal_of("mac/spark") == "/s/team/journal/mac/spark"
    assert places.git_dir == "/c/.git"
    assert places.lock("sync") == "/s/team/locks/sync"
    inside = [
        places.pin_file,
        places.trust_dir,
        places.journal_dir,
        places.cursors_dir,
        places.incidents_dir,
        places.aside_dir,
        places.seen_file,
        places.progress_file,
        places.locks_dir,
    ]
    assert len(set(inside)) == len(inside)
    assert {os.path.dirname(path) for path in inside} == {"/s/team"}


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b/c", "/etc", "A", "a b", "-a", "a-", "a" * 33, "a\n", "con", "all"]
)
def test_no_place_for_what_is_not_a_name(name: str) -> None:
    with pytest.raises(UsageError):
        WirePlaces("/s", name, "/c")
    places = WirePlaces("/s", "wire", "/c")
    with pytest.raises(UsageError):
        places.lock(name)
    for channel in (name, f"{name}/spark", f"spark/{name}/x", "spark/spark", "spark/", "/spark"):
        with pytest.raises(UsageError):
            places.journal_of(channel)
    with pytest.raises(UsageError):
        settings(HOME).default_clone(name)
