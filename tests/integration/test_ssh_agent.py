"""The ssh agent is looked for at each use of a remote: one that begins later is found, a dead one is passed over."""

import socket
import subprocess
from pathlib import Path

import pytest

from support.sshd import Sshd
from support.waiting import eventually
from wire.gitio import Git, GitFailed, sshagent


def no_manager() -> bytes:
    raise AssertionError("the manager was asked")


@pytest.fixture
def start_agent(environ):
    """Return a function that starts an agent at a socket."""
    agents = []

    def start(path: Path) -> Path:
        agents.append(subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL, env=environ))
        return eventually(lambda: path if sshagent.answers(str(path)) else None, what="agent")

    yield start
    for agent in agents:
        agent.terminate()
        agent.wait(10)


def dead(path: Path) -> str:
    """Leave the socket of an agent that is gone."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    return str(path)


def test_an_agent_that_answers_is_used_as_it_is(tmp_path, start_agent):
    path = start_agent(tmp_path / "agent")
    environ = {"SSH_AUTH_SOCK": str(path), "XDG_RUNTIME_DIR": str(tmp_path)}
    assert sshagent.find(environ, no_manager) == str(path)


@pytest.mark.parametrize("name", ["openssh_agent", "ssh-agent.socket"])
def test_an_agent_of_a_unit_is_found_when_the_environment_names_a_dead_one(tmp_path, start_agent, name):
    environ = {"SSH_AUTH_SOCK": dead(tmp_path / "gone"), "XDG_RUNTIME_DIR": str(tmp_path)}
    assert sshagent.find(environ, no_manager) is None
    path = start_agent(tmp_path / name)
    assert sshagent.find(environ, no_manager) == str(path)


def test_the_user_manager_is_asked_where_there_is_one(tmp_path, start_agent):
    environ = {"XDG_RUNTIME_DIR": str(tmp_path)}
    path = start_agent(tmp_path / "a.sock")
    said = f"HOME=/x\nSSH_AUTH_SOCK={path}\n".encode()
    assert sshagent.find(environ, lambda: said) is None
    (tmp_path / "systemd").mkdir()
    (tmp_path / "systemd/private").touch()
    assert sshagent.find(environ, lambda: said) == str(path)
    assert sshagent.find(environ, lambda: b"SSH_AUTH_SOCK=/nowhere\n") is None


@pytest.mark.parametrize("what", ["missing", "file", "folder", "dead", "long"])
def test_what_is_no_agent_is_not_taken_for_one(tmp_path, what):
    path = tmp_path / what
    if what == "file":
        path.touch()
    elif what == "folder":
        path.mkdir()
    elif what == "dead":
        dead(path)
    elif what == "long":
        path = tmp_path / ("x" * 200)
    assert not sshagent.answers(str(path))


def test_a_key_added_to_an_agent_later_lets_the_next_attempt_in(tmp_path, environ, start_agent):
    """As after a login: the daemon began without SSH_AUTH_SOCK, and goes on without a restart."""
    hub = tmp_path / "hub.git"
    subprocess.run(["git", "init", "-q", "--bare", hub], check=True, env=environ)
    with Sshd(tmp_path / "sshd") as host:
        # Only an agent can offer the key: it is not where this client looks by itself.
        config = host.folder / "ssh_config"
        kept = [line for line in config.read_text().splitlines() if "Identit" not in line]
        config.write_text("\n".join([*kept, "    IdentityFile none\n"]))
        environ = {**host.environ(environ), "XDG_RUNTIME_DIR": str(tmp_path)}
        git = Git(tmp_path / "none.git", environ=environ)
        with pytest.raises(GitFailed) as refused:
            git.ls_remote(host.url(hub))
        assert refused.value.next_step == sshagent.NO_AGENT
        agent = start_agent(tmp_path / "openssh_agent")
        subprocess.run(
            ["ssh-add", "-q", host.folder / "user_key"], check=True, env={**environ, "SSH_AUTH_SOCK": str(agent)}
        )
        assert git.ls_remote(host.url(hub)) == {}
