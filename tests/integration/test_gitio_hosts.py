"""Real hosts on the loopback: an sshd, and git over HTTP, well and failing in the ways that hosts fail."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from support import procs
from support.clones import INCOMING, MAIN, MB, commit, script, seed
from support.remote import BareRemote
from support.waiting import eventually
from wire.gitio import Git, GitFailed, Kind, Put

SECRET = "SECRETsecretSECRET"


# ssh


@pytest.fixture
def over_ssh(server, environ, git, tmp_path) -> Iterator[Git]:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    # A test's folder is longer than a socket's path may be; a person's runtime folder is not.
    short = Path(f"/tmp/wire-{os.getpid()}")
    short.symlink_to(runtime)
    reaching = Git(git.git_dir, environ=server.environ(environ), runtime_dir=str(short))
    yield reaching
    reaching.close_connections()
    short.unlink()


def test_ssh_shares_one_connection_and_ends_it(server, over_ssh, remote, tmp_path):
    url = server.url(remote.path)
    first = commit(over_ssh, None, Put(b"a", b"1"))
    assert over_ssh.push(url, f"{first}:{MAIN}").status == "ok"
    over_ssh.fetch(url, [INCOMING], max_bytes=MB)
    assert over_ssh.ls_remote(url) == {"HEAD": first, MAIN: first}
    assert over_ssh.default_branch(url) == MAIN
    assert over_ssh.resolve("refs/wire/incoming") == first
    assert server.connections == 1
    sockets = list((tmp_path / "run").iterdir())
    assert len(sockets) == 1
    over_ssh.close_connections()
    eventually(lambda: not list((tmp_path / "run").iterdir()), what="no control socket")
    assert over_ssh.ls_remote(url, MAIN) == {MAIN: first}
    assert server.connections == 2


def test_a_program_that_ends_leaves_no_connection(server, environ, git, remote, tmp_path):
    runtime = Path(f"/tmp/wire-{os.getpid()}-program")
    text = "import os, sys; from wire.gitio import Git; Git(sys.argv[1], environ=os.environ, runtime_dir=sys.argv[2])"
    text += ".ls_remote(sys.argv[3]); assert os.listdir(sys.argv[2])"
    argv = [sys.executable, "-c", text, git.git_dir, str(runtime), server.url(remote.path)]
    try:
        subprocess.run(argv, env=server.environ(environ), check=True)
        assert os.listdir(runtime) == []
        eventually(lambda: not [one for one in procs.processes() if f"ssh: {runtime}/" in one.command], what="its end")
    finally:
        shutil.rmtree(runtime)


def test_ssh_without_a_place_for_a_socket(server, environ, git, remote, tmp_path):
    deep = tmp_path / ("x" * 100)
    deep.mkdir(mode=0o700)
    url = server.url(remote.path)
    for runtime in (None, str(deep)):
        plain = Git(git.git_dir, environ=server.environ(environ), runtime_dir=runtime)
        assert plain.ls_remote(url) == {}
        assert plain.ls_remote(url) == {}
    assert server.connections == 4
    assert not list(deep.iterdir())


def test_a_dead_shared_connection_does_not_last(server, over_ssh, remote, tmp_path):
    """After a suspend the connection is half open: the next call hangs once and cures it."""
    url = server.url(remote.path)
    over_ssh.ls_remote(url)
    server.freeze_connections()
    with pytest.raises(GitFailed) as failed:
        over_ssh.ls_remote(url, timeout=1)
    assert failed.value.kind is Kind.TIMEOUT
    assert over_ssh.ls_remote(url, timeout=10) == {}


def test_ssh_key_that_is_not_let_in(server, over_ssh, remote):
    server.refuse_client()
    with pytest.raises(GitFailed) as failed:
        over_ssh.ls_remote(server.url(remote.path))
    assert (failed.value.kind, failed.value.label) == (Kind.AUTH, "publickey")
    server.allow_client()
    assert over_ssh.ls_remote(server.url(remote.path)) == {}


def test_ssh_host_keys_are_never_accepted_by_us(server, over_ssh, remote):
    url = server.url(remote.path)
    known = (server.folder / "known_hosts").read_text()
    server.forget_host_key()
    with pytest.raises(GitFailed) as failed:
        over_ssh.ls_remote(url)
    assert (failed.value.kind, failed.value.label) == (Kind.HOST_KEY, "unknown-host")
    assert (server.folder / "known_hosts").read_text() == ""

    (server.folder / "known_hosts").write_text(known)
    server.change_host_key()
    with pytest.raises(GitFailed) as failed:
        over_ssh.ls_remote(url)
    assert (failed.value.kind, failed.value.label) == (Kind.HOST_KEY, "changed-host")
    server.learn_host_key()
    assert over_ssh.ls_remote(url) == {}, "without a restart"


def test_ssh_host_that_is_down_and_comes_back(server, over_ssh, remote):
    url = server.url(remote.path)
    server.stop()
    with pytest.raises(GitFailed) as failed:
        over_ssh.ls_remote(url)
    assert (failed.value.kind, failed.value.label) == (Kind.NETWORK, "refused")
    server.start()
    assert over_ssh.ls_remote(url) == {}


def test_ssh_repository_that_is_not_there(server, over_ssh, tmp_path):
    with pytest.raises(GitFailed) as failed:
        over_ssh.ls_remote(server.url(tmp_path / "nowhere.git"))
    assert failed.value.kind is Kind.NOT_FOUND


@pytest.mark.parametrize("how", ["GIT_SSH_COMMAND", "GIT_SSH", "core.sshCommand"])
def test_the_users_own_ssh_command_is_used_as_it_is(server, environ, git, remote, tmp_path, how):
    told = tmp_path / "told"
    mine = script(tmp_path / "my ssh", f'echo "$*" >>{told}; exec {server.folder}/bin/ssh "$@"')
    runtime = tmp_path / "run"
    if how == "core.sshCommand":
        (tmp_path / "home" / ".gitconfig").write_text(f"[core]\n\tsshCommand = '{mine}'\n")
        mine_environ = environ
    else:
        mine_environ = {**environ, how: f"'{mine}'" if how == "GIT_SSH_COMMAND" else str(mine)}
    reaching = Git(git.git_dir, environ=mine_environ, runtime_dir=str(runtime))
    assert reaching.ls_remote(server.url(remote.path)) == {}
    assert "-o BatchMode" not in told.read_text()
    assert "ControlMaster" not in told.read_text()


# http


def test_fetch_and_push_over_http(host, git, new_git, remote):
    url = host.url(remote.path.name)
    first = commit(git, None, Put(b"large", os.urandom(3 * MB)))
    assert git.push(url, f"{first}:{MAIN}").status == "ok"
    spark = new_git("spark")
    spark.fetch(url, [INCOMING], max_bytes=10 * MB)
    assert spark.resolve("refs/wire/incoming") == first
    second = commit(git, first, Put(b"a", b"1"))
    other = commit(spark, first, Put(b"b", b"1"))
    assert git.push(url, f"{second}:{MAIN}").status == "ok"
    assert spark.push(url, f"{other}:{MAIN}").status == "race"
    remote.reject_pushes("closed on Fridays")
    result = git.push(url, f"{commit(git, second, Put(b'c', b''))}:{MAIN}")
    assert (result.status, result.reason) == ("rejected", "pre-receive hook declined; closed on Fridays")


def test_a_look_without_news_costs_two_requests(host, git, remote):
    seed(git, remote)
    url = host.url(remote.path.name)
    git.fetch(url, [INCOMING], max_bytes=MB)
    host.requests.clear()
    git.fetch(url, [INCOMING], max_bytes=MB)
    assert [(request.method, request.path.partition("?")[0]) for request in host.requests] == [
        ("GET", "/hub.git/info/refs"),
        ("POST", "/hub.git/git-upload-pack"),
    ]


def test_credentials_come_from_the_users_helper_on_every_attempt(host, git, remote, tmp_path):
    """A token that was renewed works without a restart."""
    host.credentials = ("mac", "new")
    token = tmp_path / "token"
    token.write_text("old")
    helper = script(tmp_path / "helper", f'[ "$1" = get ] && echo username=mac && echo password=$(cat {token}); exit 0')
    (tmp_path / "home" / ".gitconfig").write_text(f"[credential]\n\thelper = {helper}\n")
    url = host.url(remote.path.name)
    with pytest.raises(GitFailed) as failed:
        git.ls_remote(url)
    assert (failed.value.kind, failed.value.label) == (Kind.AUTH, "http-401")
    token.write_text("new")
    assert git.ls_remote(url) == {}
    assert host.requests[-1].user == "mac"


@pytest.mark.parametrize("password", ["token", "p@ss:w/o%r$d`\"'", ""])
def test_credentials_in_a_url_reach_the_host_and_no_command_line(host, git, environ, remote, tmp_path, password):
    """git would give the whole URL to its helper as an argument. The user's own helpers learn nothing of it either."""
    told = tmp_path / "told"
    helper = script(tmp_path / "helper", f"echo $1 >>{told}; cat >>{told}")
    elsewhere = f'[url "{host.url("elsewhere/")}"]\n\tinsteadOf = {host.url("")}\n'
    (tmp_path / "home" / ".gitconfig").write_text(f"[credential]\n\thelper = {helper}\n{elsewhere}")
    host.credentials = ("a b@c", password)
    url = host.url(remote.path.name, userinfo=f"a%20b%40c:{quote(password, safe='')}")
    git.push(url, f"{commit(git, None, Put(b'a', b''))}:{MAIN}")
    git.fetch(url, [INCOMING], max_bytes=MB)
    assert git.default_branch(url) == MAIN
    assert host.requests[-1].user == "a b@c"
    assert not told.exists()
    host.credentials = ("a b@c", "renewed")
    with pytest.raises(GitFailed) as failed:
        git.ls_remote(url)
    assert (failed.value.kind, failed.value.label) == (Kind.AUTH, "http-401")
    assert not told.exists()


def test_a_name_in_a_url_is_asked_for_with_the_users_helper(host, git, remote, tmp_path):
    told = tmp_path / "told"
    helper = script(tmp_path / "helper", f'[ "$1" = get ] && cat >{told} && echo password=token; exit 0')
    (tmp_path / "home" / ".gitconfig").write_text(f"[credential]\n\thelper = {helper}\n")
    host.credentials = ("mac", "token")
    assert git.ls_remote(host.url(remote.path.name, userinfo="mac")) == {}
    assert "username=mac\n" in told.read_text()


FAULTS = [
    ("401", Kind.AUTH, "http-401"),
    ("403", Kind.AUTH, "http-403"),
    ("404", Kind.NOT_FOUND, "no-repository"),
    ("413", Kind.REJECTED, "http-413"),
    ("429", Kind.RATE_LIMIT, "http-429"),
    ("500", Kind.NETWORK, "http-5xx"),
    ("login", Kind.AUTH, "not-git"),
    ("redirect", Kind.AUTH, "not-git"),
    ("silent", Kind.TIMEOUT, ""),
    ("cut", Kind.NETWORK, "cut"),
]


@pytest.mark.parametrize(("fault", "kind", "label"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
@pytest.mark.parametrize("what", ["fetch", "push", "list"])
def test_faults_of_a_host_have_their_names_and_show_no_secret(host, git, remote, fault, kind, label, what):
    first = seed(git, remote)
    host.fault = fault
    url = host.url(remote.path.name, userinfo=f"x-access-token:{SECRET}")
    calls = {
        "fetch": lambda: git.fetch(url, [INCOMING], max_bytes=MB, timeout=2),
        "push": lambda: git.push(url, f"{first}:{MAIN}", timeout=2),
        "list": lambda: git.ls_remote(url, timeout=2),
    }
    began = time.monotonic()
    with pytest.raises(GitFailed) as failed:
        calls[what]()
    assert time.monotonic() - began < 5
    error = failed.value
    assert (error.kind, error.label) == (kind, label), error.message
    assert SECRET not in f"{error!r} {error} {error.stderr} {error.as_json()} {error.__cause__!r} {error.__context__!r}"
    host.fault = None


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [("30", 30, 30), (None, None, None), ("Fri, 01 Jan 2100 00:00:00 GMT", 10**9, 10**10), ("soon", None, None)],
)
def test_a_host_that_asks_to_wait_is_understood(host, git, remote, header, low, high):
    host.fault, host.retry_after = "429", header
    with pytest.raises(GitFailed) as failed:
        git.ls_remote(host.url(remote.path.name))
    waits = failed.value.retry_after
    assert waits is None if low is None else low <= waits <= high
    assert failed.value.details.get("retry_after") == waits


@pytest.mark.parametrize(
    "remote_url",
    ["https://{}@127.0.0.1:1/x", "https://a:{}@127.0.0.1:1/x", "http://{}@h.invalid"],
)
def test_secrets_of_a_remote_that_is_not_there(git, remote_url):
    with pytest.raises(GitFailed) as failed:
        git.ls_remote(remote_url.format(SECRET))
    assert failed.value.kind is Kind.NETWORK
    assert SECRET not in f"{failed.value!r} {failed.value.stderr} {failed.value.as_json()}"


def test_a_secret_in_a_query_never_reaches_git(git):
    with pytest.raises(GitFailed, match="query") as failed:
        git.ls_remote(f"http://h.invalid/x?token={SECRET}")
    assert failed.value.kind is Kind.AUTH
    assert SECRET not in f"{failed.value!r} {failed.value.stderr} {failed.value.as_json()}"


def test_nobody_is_asked_for_credentials(host, git, environ, remote, tmp_path):
    """Neither a window nor the terminal: a daemon has nobody to ask."""
    host.credentials = ("mac", "token")
    asked = tmp_path / "asked"
    window = str(script(tmp_path / "window", f"echo asked >>{asked}; echo token"))
    (tmp_path / "home" / ".gitconfig").write_text(f"[core]\n\taskPass = {window}\n")
    asking = Git(git.git_dir, environ={**environ, "GIT_ASKPASS": window, "SSH_ASKPASS": window, "DISPLAY": ":0"})
    began = time.monotonic()
    with pytest.raises(GitFailed) as failed:
        asking.ls_remote(host.url(remote.path.name))
    assert (failed.value.kind, failed.value.label) == (Kind.AUTH, "http-401")
    assert time.monotonic() - began < 5
    assert not asked.exists()


def test_a_host_with_another_object_format(host, new_git, tmp_path):
    remote = BareRemote(tmp_path / "new.git", object_format="sha256")
    git = new_git("mac", "sha256")
    first = commit(git, None, Put(b"a", b"1"))
    assert git.push(host.url("new.git"), f"{first}:{MAIN}").status == "ok"
    assert remote.tip() == first
    old = new_git("spark")
    with pytest.raises(GitFailed):
        old.fetch(host.url("new.git"), [INCOMING], max_bytes=MB)
