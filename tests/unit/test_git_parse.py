"""What goes into git and what comes out of it, byte for byte, without running it."""

import shlex

import pytest

from wire.gitio import environment, fastimport, parse, ssh
from wire.gitio.classify import GitFailed
from wire.gitio.fastimport import Drop, Put
from wire.gitio.remote import _retry_after

A, B, C = "a" * 40, "b" * 40, "c" * 64
NONE = "0" * 40


def test_entries_keep_odd_paths():
    output = f"100644 blob {A}\tplain\0".encode() + f"160000 commit {C}\t".encode() + b'q"\n\t\xff\0'
    assert parse.entries(output) == [
        parse.Entry("100644", "blob", A, b"plain"),
        parse.Entry("160000", "commit", C, b'q"\n\t\xff'),
    ]


@pytest.mark.parametrize("output", [b"100644 blob short\tx\0", b"100644 blob\tx\0", f"100644 blob {A} x\0".encode()])
def test_entries_refuse_anything_else(output):
    with pytest.raises(GitFailed):
        parse.entries(output)


def test_changes_take_a_path_that_looks_like_a_change():
    hostile = f":100644 100644 {A} {B} M".encode()
    output = f":000000 100644 {NONE} {A} A\0".encode() + hostile + b"\0"
    assert parse.changes(output) == [parse.Change("000000", "100644", NONE, A, "A", hostile)]


def test_changes_refuse_a_missing_path():
    with pytest.raises(GitFailed):
        parse.changes(f":000000 100644 {NONE} {A} A\0".encode())


def test_history_joins_the_sides_of_a_merge_and_drops_the_lost():
    change = f"\n:000000 100644 {NONE} {A} A\0".encode()
    output = (
        f"commit > {A} \0".encode()
        + change
        + b"x\0"
        + f"commit < {B} {A}\0".encode()
        + change
        + b"lost\0"
        + f"commit > {C} {A} {B}\0".encode()
        + change
        + b"commit < \n\0"
        + f"commit > {C} {A} {B}\0".encode()
        + change
        + b"x\0"
        + change
        + b"x\0"
    )
    commits, lost = parse.history(output)
    assert [(commit.oid, commit.parents, [c.path for c in commit.changes]) for commit in commits] == [
        (A, (), [b"x"]),
        (C, (A, B), [b"commit < \n", b"x"]),
    ]
    assert lost == [B]


@pytest.mark.parametrize("output", [b"nonsense\0", b"commit > short \0"])
def test_history_refuses_anything_else(output):
    with pytest.raises(GitFailed):
        parse.history(output)


def test_refs():
    listed = f"ref: refs/heads/main\tHEAD\n{A}\tHEAD\n{B} refs/heads/a b\n".encode()
    assert parse.refs(listed) == {"HEAD": A, "refs/heads/a b": B}
    with pytest.raises(GitFailed):
        parse.refs(b"<html>\n")


@pytest.mark.parametrize(
    ("line", "forced", "expected"),
    [
        (" \tx:refs/heads/main\taaa..bbb", False, parse.PushResult("ok")),
        ("*\tx:refs/heads/main\t[new branch]", False, parse.PushResult("ok")),
        ("+\tx:refs/heads/main\taaa...bbb (forced update)", True, parse.PushResult("ok")),
        ("=\tx:refs/heads/main\t[up to date]", False, parse.PushResult("up-to-date")),
        ("!\tx:refs/heads/main\t[rejected] (fetch first)", False, parse.PushResult("race", "fetch first; told")),
        (
            "!\tx:refs/heads/main\t[remote rejected] (pre-receive hook declined)",
            False,
            parse.PushResult("rejected", "pre-receive hook declined; told"),
        ),
        (
            "!\tx:refs/heads/main\t[remote rejected] (failed to update ref)",
            False,
            parse.PushResult("race", "failed to update ref; told"),
        ),
        ("!\tx:refs/heads/main\t[remote rejected] (Internal Server Error)", False, None),
        ("!\tx:refs/heads/main\t[remote failure] (remote failed to report status)", False, None),
    ],
)
def test_push_lines(line, forced, expected):
    lines = parse.porcelain(f"To /srv/hub.git\n{line}\nDone\n".encode())
    assert parse.push_result(lines["refs/heads/main"], ("told",), forced=forced) == expected


def test_a_push_without_a_line_is_no_push():
    assert parse.porcelain(b"To /srv/hub.git\nEverything up-to-date\nDone\n") == {}


@pytest.mark.parametrize("byte", range(1, 256))
def test_every_byte_of_a_path_is_quoted_to_itself(byte):
    quoted = fastimport.quote(bytes([byte]))
    assert quoted[:1] == quoted[-1:] == b'"'
    inside = quoted[1:-1]
    assert inside == (bytes([byte]) if len(inside) == 1 else b"\\%03o" % byte)
    assert not set(inside) & set(b' \n\t"') or inside.startswith(b"\\")


@pytest.mark.parametrize(
    "path", [b"", b"/a", b"a/", b"a//b", b".", b"a/../b", b".git/config", b"a/.GIT", b"a\0b"], ids=repr
)
def test_paths_that_are_never_put(path):
    with pytest.raises(ValueError, match="no path"):
        Put(path, b"x")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"data": b"x", "oid": A},
        {"oid": "short"},
        {"data": b"x", "mode": "120000"},
        {"data": b"x", "mode": "040000"},
        {"oid": A, "mode": "160000"},
    ],
    ids=repr,
)
def test_changes_that_are_never_put(arguments):
    with pytest.raises(ValueError):
        Put(b"a", **arguments)


def test_the_stream_of_a_commit():
    made = fastimport.stream(
        "refs/wire/out",
        parents=[A, B],
        tree=B,
        start_empty=False,
        author="mac <mac@wire.invalid> 1 +0000",
        committer="mac <mac@wire.invalid> 1 +0000",
        message=b"two\nlines",
        changes=[Drop(b"a\nb"), Put(b"c", b"1\0"), Put(b"d", oid=A, mode="040000")],
    )
    assert made == (
        b"feature done\ncommit refs/wire/out\nmark :1\nauthor mac <mac@wire.invalid> 1 +0000\n"
        b"committer mac <mac@wire.invalid> 1 +0000\ndata 9\ntwo\nlines\n"
        + f"from {A}\nmerge {B}\n".encode()
        + f'M 040000 {B} ""\n'.encode()
        + b'D "a\\012b"\nM 100644 inline "c"\ndata 2\n1\0\n'
        + f'M 040000 {A} "d"\n'.encode()
        + b'\nget-mark :1\nls :1 ""\ndone\n'
    )


def test_the_environment_is_ours_but_for_a_short_list():
    inherited = {
        "PATH": "/usr/bin",
        "HOME": "/home/mac",
        "GIT_DIR": "/elsewhere",
        "GIT_INDEX_FILE": "/elsewhere/index",
        "GIT_EXEC_PATH": "/other/git",
        "GIT_TRACE": "1",
        "GIT_ASKPASS": "/usr/bin/window",
        "SSH_ASKPASS": "/usr/bin/window",
        "GIT_SSH_COMMAND": "ssh -i key",
        "GIT_SSL_CAINFO": "/ca.pem",
        "GIT_CONFIG_PARAMETERS": "'core.hooksPath=/x'",
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "credential.helper",
        "GIT_CONFIG_VALUE_0": "cache",
        "GIT_CONFIG_KEY_1": "core.hooksPath",
        "GIT_CONFIG_VALUE_1": "/evil",
        "GIT_CONFIG_KEY_2": "url.ssh://a/.insteadOf",
        "GIT_CONFIG_VALUE_2": "https://a/",
    }
    made = environment.hardened(inherited, "/w/.git", ("Mac <x>\n", " mac@wire.invalid"), [("core.x", "y")])
    gone = {"GIT_DIR", "GIT_INDEX_FILE", "GIT_EXEC_PATH", "GIT_TRACE", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0"}
    assert not gone & set(made)
    assert (made["GIT_ASKPASS"], made["SSH_ASKPASS"], made["GIT_SSH_COMMAND"]) == ("", "", "ssh -i key")
    assert (made["GIT_AUTHOR_NAME"], made["GIT_COMMITTER_EMAIL"]) == ("Mac x", "mac@wire.invalid")
    settings = _settings(made)
    assert settings[:2] == [("credential.helper", "cache"), ("url.ssh://a/.insteadOf", "https://a/")]
    assert settings[-1] == ("core.x", "y")
    assert not {("core.hooksPath", "/evil"), ("core.hooksPath", "/x")} & {*settings}
    assert ("core.hooksPath", "/dev/null") in settings


@pytest.mark.parametrize("count", ["", "-1", "x", "²", "3"])
def test_a_broken_inherited_configuration_is_left_behind(count):
    made = environment.hardened({"GIT_CONFIG_COUNT": count}, "/w/.git", ("a", "b"))
    assert _settings(made) == [*environment.SETTINGS]


def _settings(made: dict[str, str]) -> list[tuple[str, str]]:
    """Return the settings as a shell would read them, which is how git does."""
    return [tuple(one.split("=", 1)) for one in shlex.split(made["GIT_CONFIG_PARAMETERS"])]


def test_control_sockets_are_short_or_not_there():
    path = ssh.control_path("/run/user/1000/wire", "ssh://git@example.org/a.git")
    assert path is not None
    assert len(path) < 50
    assert path != ssh.control_path("/run/user/1000/wire", "ssh://git@example.org/b.git")
    assert f"ControlPath={path}" in ssh.ssh_command(path)
    for folder in (None, "/" + "x" * 80, "/run/with space", "/run/100%"):
        assert ssh.control_path(folder, "a") is None
    assert "Control" not in ssh.ssh_command(None)
    assert "StrictHostKeyChecking" not in ssh.ssh_command(path)


@pytest.mark.parametrize(
    ("trace", "seconds"),
    [
        (b"12:00:00.1 http.c:1 <= Recv header: Retry-After: 30\r\n", 30.0),
        (b"<= Recv header: retry-after: 5\n<= Recv header: retry-after: 7\n", 7.0),
        (b"<= Recv header: Retry-After: Thu, 01 Jan 1970 00:02:00 GMT\n", 20.0),
        (b"<= Recv header: Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\n", 0.0),
        (b"<= Recv header: Retry-After: soon\n", None),
        (b"", None),
    ],
)
def test_retry_after_of_the_answer(trace, seconds):
    assert _retry_after(trace, 100.0) == seconds
