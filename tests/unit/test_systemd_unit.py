"""The unit's text: quoted as systemd reads it, recognised again, and with what a daemon needs and no more."""

import os
import sys

import pytest

from wire.errors import UsageError, WireError
from wire.store.paths import Settings
from wire.systemd import surroundings, unit, unitfile
from wire.systemd.unit import Origin, Unit

WORDS = ["/usr/bin/python3", "-P", "-m", "wire", "daemon", "run"]
LINE = {
    "Type": "notify",
    "NotifyAccess": "main",
    "Restart": "on-failure",
    "KillMode": "mixed",
    "SyslogIdentifier": unit.IDENTIFIER,
    "UMask": "0077",
    "NoNewPrivileges": "yes",
    "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "RestrictSUIDSGID": "yes",
    "LockPersonality": "yes",
    "SystemCallFilter": "@system-service",
    "WantedBy": "default.target",
}
MOUNTING = (
    "BindPaths", "InaccessiblePaths", "PrivateDevices", "PrivateTmp", "ProtectHome", "ProtectKernelTunables",
    "ProtectSystem", "ReadWritePaths", "RootDirectory", "TemporaryFileSystem",
)  # fmt: skip


def rendered(**rest: object) -> bytes:
    return unit.render(Unit(**{"command": WORDS, **rest}), "1.2.3")  # type: ignore[arg-type]


def lines(text: bytes) -> list[str]:
    return [line for line in text.decode().splitlines() if line and not line.startswith(("#", "["))]


@pytest.mark.parametrize(("key", "value"), LINE.items())
def test_it_says(key, value):
    assert lines(rendered()).count(f"{key}={value}") == 1


def test_it_has_a_watchdog_and_ends_in_seconds():
    values = dict(line.split("=", 1) for line in lines(rendered()))
    assert 0 < int(values["WatchdogSec"]) <= 300
    assert 0 < int(values["TimeoutStopSec"]) <= 30
    assert int(values["StartLimitBurst"]) * int(values["RestartSec"]) <= int(values["StartLimitIntervalSec"])


def test_nothing_is_mounted():
    """Such settings need more rights than a user's manager has, and would hide agent sockets."""
    keys = {line.partition("=")[0] for line in lines(rendered())}
    assert not keys.intersection(MOUNTING)


def test_every_place_of_the_template_is_filled():
    text = rendered(environment={"PATH": "/usr/bin"}, unset=["WIRE_AGENT"], log_file="/s/daemon.log")
    assert [line for line in lines(text) if "@" in line.replace("@system-service", "")] == []


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(WORDS, id="plain"),
        pytest.param(["/opt/my apps/py", "-m", "wire"], id="blank"),
        pytest.param(["/opt/50%/py", "%h", "%%"], id="percent"),
        pytest.param(["/opt/p", "$HOME", "${X}", "$$"], id="dollar"),
        pytest.param(["/opt/p", 'a"b', "a'b", "a\\b", "\\"], id="quotes"),
        pytest.param(["/opt/pÿ/ö", "é"], id="unicode"),
        pytest.param(["/opt/p", "", "x"], id="empty"),
        pytest.param(["/opt/p", ";", "#x"], id="separators"),
    ],
)
def test_words_are_read_back_as_they_were(words):
    assert unit.command(rendered(command=words)) == words


@pytest.mark.parametrize("program", ['/opt/"x"/p', "/opt/it's/p", "/opt/a\\b/p", "/opt/$x/p"])
def test_a_program_that_systemd_refuses_is_run_by_another(program):
    assert unit.command(rendered(command=[program, "$y"])) == ["/usr/bin/env", program, "$y"]


@pytest.mark.parametrize("value", ["/usr/bin:/bin", "a b", "50%", '"', "back\\slash", "$x", "", "a=b"])
def test_variables_are_read_back_as_they_were(value):
    assert unit.environment(rendered(environment={"X": value, "PATH": "/usr/bin"})) == {"X": value, "PATH": "/usr/bin"}


@pytest.mark.parametrize("path", ["/s/daemon.log", "/s/a b.log", "/s/50%.log"])
def test_the_log_file_is_read_back(path):
    text = rendered(log_file=path)
    assert unit.log_file(text) == path
    assert b"\nStandardError=append:" in text


def test_without_a_log_file_the_journal_has_it():
    assert unit.log_file(rendered()) is None
    assert "StandardOutput=journal" in lines(rendered())


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param({"command": ["python3", "x"]}, id="relative"),
        pytest.param({"command": ["/opt/$x=y/python3"]}, id="dollar-and-equals-in-the-program"),
        pytest.param({"command": ["/opt/p", "a\nExecStartPre=/bin/sh"]}, id="newline-in-a-word"),
        pytest.param({"environment": {"X": "a\nb"}}, id="newline-in-a-value"),
        pytest.param({"environment": {"X": "a\udcff"}}, id="no-utf-8"),
        pytest.param({"log_file": "/s/\x07"}, id="control"),
    ],
)
def test_what_cannot_stand_in_a_unit_is_refused(rest):
    with pytest.raises(UsageError) as refused:
        rendered(**rest)
    assert refused.value.reason == "bad-path"


def test_a_unit_that_was_edited_is_noticed():
    text = rendered()
    assert unit.origin(text) is Origin.OURS
    assert unit.origin(text + b"# mine\n") is Origin.EDITED
    assert unit.origin(text.replace(b"RestartSec=5", b"RestartSec=6")) is Origin.EDITED
    assert unit.origin(text.partition(b"\n")[2]) is Origin.FOREIGN
    assert unit.origin(b"[Service]\nExecStart=/bin/true\n") is Origin.FOREIGN
    assert unit.origin(b"") is Origin.FOREIGN
    assert unit.origin(None) is Origin.MISSING


def test_a_persons_own_unit_can_be_read():
    text = b"[Service]\nExecStart=-/opt/x \\\n  'a b' \"c\" d\\ e\nEnvironment=A=1 'B=2 3'\n"
    assert unit.command(text) == ["/opt/x", "a b", "c", "d e"]
    assert unit.environment(text) == {"A": "1", "B": "2 3"}
    assert unit.command(b"[Service]\n") == []


def test_a_masked_unit_is_told(tmp_path):
    path = tmp_path / "wire.service"
    path.symlink_to("/dev/null")
    with pytest.raises(WireError) as refused:
        unitfile.read(str(path))
    assert refused.value.reason == "unit-masked"


def test_the_unit_stands_where_the_manager_looks():
    assert unitfile.path_of({"HOME": "/home/me"}) == "/home/me/.config/systemd/user/wire.service"
    assert unitfile.path_of({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}) == "/c/systemd/user/wire.service"
    with pytest.raises(WireError):
        unitfile.path_of({})


# What the daemon gets to see


def settings(**environ: str) -> Settings:
    return Settings.from_environ({"HOME": os.path.expanduser("~"), "PATH": "/usr/bin", **environ}, "/")


def chosen(manager: dict[str, str] | None = None, **environ: str) -> dict[str, str]:
    known = {"HOME": os.path.expanduser("~")} if manager is None else manager
    return surroundings.environment(settings(**environ), known)[0]


def test_the_places_of_the_installing_shell_are_kept():
    assert chosen(WIRE_HOME="/w")["WIRE_HOME"] == "/w"
    assert chosen(WIRE_HOME="w")["WIRE_HOME"] == "/w"  # relative to the folder it was installed from
    assert chosen(XDG_STATE_HOME="/st")["XDG_STATE_HOME"] == "/st"
    assert set(chosen()) == {"PATH"}


def test_a_manager_with_other_places_is_overruled():
    home = os.path.expanduser("~")
    assert chosen({"HOME": home, "XDG_CONFIG_HOME": "/c"})["XDG_CONFIG_HOME"] == f"{home}/.config"
    assert chosen({"HOME": "/elsewhere"})["HOME"] == home
    assert "WIRE_HOME" in surroundings.unset(settings())
    assert "WIRE_HOME" not in surroundings.unset(settings(WIRE_HOME="/w"))


@pytest.mark.parametrize("name", ["GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "SSL_CERT_FILE", "https_proxy"])
def test_how_hosts_are_reached_is_kept(name):
    assert chosen(**{name: "value"})[name] == "value"


@pytest.mark.parametrize(
    "name", ["GITHUB_TOKEN", "GIT_ASKPASS", "GIT_DIR", "GIT_CONFIG_COUNT", "SSH_AUTH_SOCK", "WIRE_AGENT", "WIRE_NAME"]
)
def test_secrets_and_what_belongs_to_the_shell_are_not(name):
    assert name not in chosen(**{name: "value"})


def test_a_proxy_with_a_password_is_withheld_and_told():
    variables, withheld = surroundings.environment(settings(https_proxy="http://me:secret@proxy:3128"), {})
    assert withheld == ["https_proxy"]
    assert "secret" not in str(variables)


def test_the_search_path_keeps_helpers_and_drops_what_is_unsafe(tmp_path):
    helpers, shared = tmp_path / "helpers", tmp_path / "shared"
    helpers.mkdir(mode=0o755)
    shared.mkdir()
    shared.chmod(0o777)
    given = f"{helpers}:bin::.:{shared}:{tmp_path / 'gone'}:/usr/bin:{helpers}"
    assert surroundings.search_path({"PATH": given}) == f"{helpers}:/usr/bin:/usr/local/bin:/bin"
    assert surroundings.search_path({}) == "/usr/local/bin:/usr/bin:/bin"


@pytest.mark.parametrize(
    ("config", "shared"),
    [
        ("[core]\n\tsharedRepository = 1\n", True),
        ("[core]\n\tsharedrepository = group\n", True),
        ("[core]\n\tsharedRepository = 0\n", False),
        ("[core]\n\tbare = true\n", False),
    ],
)
def test_a_shared_repository_on_this_machine_is_recognised(tmp_path, config, shared):
    (tmp_path / "config").write_text(config)
    assert surroundings.is_shared(str(tmp_path)) is shared
    assert surroundings.is_shared(f"file://{tmp_path}") is shared
    text = rendered(shared=shared).decode()
    assert f"RestrictSUIDSGID={'no' if shared else 'yes'}" in text


@pytest.mark.parametrize("remote", ["git@host:x.git", "https://host/x.git", "/nowhere"])
def test_a_remote_elsewhere_is_not_shared(remote):
    assert not surroundings.is_shared(remote)


def test_the_entry_point_is_run_before_it_is_believed(tmp_path):
    command = surroundings.entry_point()
    assert os.path.isabs(command[0])
    assert surroundings.probe(command, {"PATH": "/usr/bin"}).startswith("wire ")
    impostor = tmp_path / "wire"
    impostor.write_text("#!/bin/sh\necho something else\n")
    impostor.chmod(0o755)
    for words in ([str(impostor)], [str(tmp_path / "missing")], [sys.executable, "-P", "-m", "no_such_module"]):
        with pytest.raises(WireError) as refused:
            surroundings.probe(words, {})
        assert refused.value.reason == "entry-point"


def test_the_entry_point_is_not_led_astray_by_the_folder_it_starts_in(tmp_path, monkeypatch):
    (tmp_path / "wire.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    assert surroundings.probe(surroundings.entry_point(), {}).startswith("wire ")
