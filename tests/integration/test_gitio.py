"""wire's way to git with real git: commits, refs, and surroundings that would change what git does."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import gitcmd
from support.clones import INCOMING, MAIN, MB, OUT, commit, script, seed
from wire.gitio import Drop, Git, GitFailed, Kind, Put, RefUpdate

# Trees and commits


HOSTILE_PATHS = [
    b"_coordination/mac/spark/000001.jsonl",
    b'quote"back\\slash',
    b"new\nline",
    b"tab\tand space ",
    b" leading",
    b"\xff\xfe not utf-8",
    "ümlaut/файл".encode(),
    b":(top)magic",
    b"-dash",
    b"*?[glob]",
    b"\x01\x7f",
    b"100644 blob x",
]


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_commits_hold_exactly_what_was_put(new_git, object_format):
    git = new_git("mac", object_format)
    data = bytes(range(256)) * 3 + b"\r\n\n"
    first = commit(git, None, *(Put(path, data + path) for path in HOSTILE_PATHS), Put(b"empty", b""))
    assert len(first) == (64 if object_format == "sha256" else 40)
    assert git.object_format() == object_format
    listed = {entry.path: entry.oid for entry in git.entries(first)}
    assert set(listed) == {*HOSTILE_PATHS, b"empty"}
    contents = git.blobs(listed.values(), max_size=MB)
    assert all(contents[listed[path]] == data + path for path in HOSTILE_PATHS)
    assert contents[listed[b"empty"]] == b""
    assert {change.path for change in git.diff(None, first)} == set(listed)

    second = commit(git, first, *(Drop(path) for path in HOSTILE_PATHS), Drop(b"never there"))
    assert [entry.path for entry in git.entries(second)] == [b"empty"]
    assert {change.path for change in git.diff(first, second)} == set(HOSTILE_PATHS)
    assert git.resolve(OUT) == second
    gitcmd.git(Path(git.git_dir), "fsck", "--strict")


def test_a_commit_takes_its_tree_from_any_commit(git):
    """Healing: two parents, the tree of the second, and what it lacks."""
    old = commit(git, None, Put(b"a", b"1"), Put(b"b", b"2"))
    forced = commit(git, None, Put(b"c", b"3"), ref="refs/wire/forced")
    kept = git.entries(old)[0].oid
    made = git.write_commit(OUT, base=forced, parents=[old, forced], message="heal", changes=[Put(b"a", oid=kept)])
    assert [entry.path for entry in git.entries(made)] == [b"a", b"c"]
    assert git.history(forced, made, max_count=9).commits[-1].parents == (old, forced)

    alone = git.write_commit(OUT, base=forced, parents=[], message="alone", changes=[])
    assert [entry.path for entry in git.entries(alone)] == [b"c"]
    bare = git.write_commit(OUT, base=old, parents=[old], message="bare", changes=[Put(b"n", b"")], reset_tree=True)
    assert [entry.path for entry in git.entries(bare)] == [b"n"]
    nothing = git.write_commit(OUT, base=None, parents=[old], message="nothing", changes=[])
    assert git.entries(nothing) == []


def test_a_whole_tree_is_put_by_its_id(git):
    first = commit(git, None, Put(b"_coordination/mac/a", b"1"), Put(b"_coordination/mac/b", b"2"))
    tree = git.resolve(f"{first}:_coordination/mac")
    moved = commit(git, None, Put(b"_coordination/mac", oid=tree, mode="040000"))
    assert git.resolve(f"{moved}^{{tree}}") == git.resolve(f"{first}^{{tree}}")


def test_who_and_when_of_a_commit(git):
    made = git.write_commit(
        OUT,
        base=None,
        parents=[],
        message=b"\xff\n\nbody",
        changes=[],
        author=("Vera <x>\n", "vera@x"),
        when=1234567890,
    )
    told = git.run("cat-file", "commit", made).stdout
    assert b"author Vera x <vera@x> 1234567890 +0000\n" in told
    assert b"committer mac <mac@wire.invalid> 1234567890 +0000\n" in told
    assert told.endswith(b"\n\n\xff\n\nbody")


def test_a_commit_on_a_missing_base_leaves_nothing(git):
    with pytest.raises(GitFailed) as failed:
        commit(git, "1" * 40, Put(b"a", b"1"))
    assert failed.value.kind in (Kind.CORRUPT, Kind.UNKNOWN)
    with pytest.raises(GitFailed):
        git.write_commit(OUT, base="1" * 40, parents=[], message="", changes=[])
    assert git.resolve(OUT) is None
    left = [name for name in os.listdir(git.git_dir) if "crash" in name] + os.listdir(f"{git.git_dir}/objects/pack")
    assert not left


def test_blobs_that_are_too_large_are_not_read(git):
    made = commit(git, None, Put(b"small", b"1"), Put(b"large", os.urandom(3 * MB)), Put(b"edge", b"x" * 1000))
    oids = {entry.path: entry.oid for entry in git.entries(made)}
    got = git.blobs([*oids.values(), made], max_size=1000)
    assert got == {oids[b"small"]: b"1", oids[b"large"]: None, oids[b"edge"]: b"x" * 1000, made: None}
    assert git.blobs([oids[b"large"]], max_size=10) == {oids[b"large"]: None}
    assert git.blobs([], max_size=10) == {}


def test_many_blobs_pass_through_one_child(git):
    made = commit(git, None, *(Put(b"%d" % n, b"%d" % n * 50) for n in range(3000)))
    oids = [entry.oid for entry in git.entries(made)]
    assert sorted(git.blobs(oids, max_size=MB).values()) == sorted(b"%d" % n * 50 for n in range(3000))


@pytest.mark.parametrize("damage", ["missing", "empty", "garbage"])
def test_a_damaged_object_is_named(git, damage):
    """Power was lost before the object's bytes were on the disk."""
    oid = git.run("hash-object", "-w", "--stdin", input=b"a line\n").stdout.decode().strip()
    file = Path(git.git_dir, "objects", oid[:2], oid[2:])
    file.chmod(0o644)
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(b"" if damage == "empty" else b"\x78\x01 no zlib")
    with pytest.raises(GitFailed) as failed:
        git.blobs([oid], max_size=100)
    assert (failed.value.kind, failed.value.object_id) == (Kind.CORRUPT, oid)


def test_history_tells_ancestry_and_what_came(git):
    first = commit(git, None, Put(b"a", b"1"))
    second = commit(git, first, Put(b"a", b"12"))
    third = commit(git, second, Put(b"a", b"123"), Put(b"b", b""))
    side = commit(git, first, Put(b"c", b""), ref="refs/wire/side")
    merge = git.write_commit(OUT, base=third, parents=[third, side], message="", changes=[Put(b"c", b"")])

    came = git.history(first, third, max_count=10)
    assert (came.descends, came.lost, came.truncated) == (True, (), False)
    assert [one.oid for one in came.commits] == [second, third]
    assert [change.path for change in came.commits[1].changes] == [b"a", b"b"]

    merged = git.history(first, merge, max_count=10).commits[-1]
    assert merged.parents == (third, side)
    assert [change.path for change in merged.changes] == [b"c", b"a", b"b"]

    forced = git.history(third, side, max_count=10)
    assert (forced.descends, set(forced.lost)) == (False, {second, third})
    assert [one.oid for one in forced.commits] == [side]
    assert git.history(merge, merge, max_count=10).commits == ()
    assert len(git.history(None, merge, max_count=10).commits) == 5

    for old, new, descends in [(first, merge, True), (merge, side, False)]:
        cut = git.history(old, new, max_count=1)
        assert (cut.descends, cut.truncated, len(cut.commits) <= 1) == (descends, True, True)
    assert git.is_ancestor(first, merge)
    assert not git.is_ancestor(merge, first)


def test_refs_change_together_or_not_at_all(git):
    first, second = commit(git, None, Put(b"a", b"1")), commit(git, None, Put(b"a", b"2"))
    git.update_refs([RefUpdate("refs/wire/a", first, ""), RefUpdate("refs/wire/b", first)])
    assert git.refs("refs/wire/a", "refs/wire/b") == {"refs/wire/a": first, "refs/wire/b": first}
    with pytest.raises(GitFailed) as failed:
        git.update_refs([RefUpdate("refs/wire/a", second, first), RefUpdate("refs/wire/b", second, second)])
    assert failed.value.kind is Kind.RACE
    assert git.resolve("refs/wire/a") == first
    with pytest.raises(GitFailed) as failed:
        git.update_ref("refs/wire/a", second, "")
    assert failed.value.kind is Kind.RACE
    git.update_ref("refs/wire/a", second, first)
    git.delete_ref("refs/wire/a", second)
    assert git.resolve("refs/wire/a") is None
    assert git.symbolic_ref("HEAD") == MAIN
    git.symbolic_ref("HEAD", "refs/heads/wire")
    assert git.symbolic_ref("HEAD") == "refs/heads/wire"
    git.run("update-ref", "--no-deref", "HEAD", second)
    assert git.symbolic_ref("HEAD") is None


def _without_children(git: Git) -> Git:
    """Return an object on the same repository that finds no git at all."""
    return Git(git.git_dir, environ={"PATH": "/nonexistent"})


def test_a_ref_in_a_file_of_its_own_needs_no_child(git):
    first = commit(git, None, Put(b"a", b"1"))
    git.update_ref("refs/heads/wire", first)
    git.symbolic_ref("HEAD", "refs/heads/wire")
    alone = _without_children(git)
    assert alone.resolve(OUT) == alone.resolve("HEAD") == first
    assert alone.symbolic_ref("HEAD") == "refs/heads/wire"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("refs/wire/packed", id="packed"),
        pytest.param("refs/heads/not there", id="a name that no ref has"),
        pytest.param("refs/wire/out^{tree}", id="more than a ref"),
        pytest.param("refs/wire/../wire/out", id="a way around"),
        pytest.param("refs/wire/broken", id="torn"),
        pytest.param("refs/wire/loop", id="a loop"),
        pytest.param("refs/wire/link", id="a link"),
    ],
)
def test_what_a_ref_file_does_not_tell_is_asked_of_git(git, name):
    made = commit(git, None, Put(b"a", b"1"))
    git.update_ref("refs/wire/packed", made)
    git.run("pack-refs", "--all")
    folder = Path(git.git_dir) / "refs" / "wire"
    folder.mkdir(exist_ok=True)
    (folder / "broken").write_text(made[:20])
    (folder / "loop").write_text("ref: refs/wire/loop\n")
    (folder / "link").symlink_to("../../packed-refs")
    with pytest.raises(GitFailed) as failed:
        _without_children(git).resolve(name)
    assert failed.value.kind is Kind.GIT_MISSING
    if name == "refs/wire/packed":
        assert git.resolve(name) == made


@pytest.mark.parametrize("name", ["--all", "", "a..b", "a\nb"])
def test_options_never_come_in_as_names(git, name):
    for call in (git.entries, lambda name: git.diff(None, name), lambda name: git.history(None, name, max_count=1)):
        with pytest.raises(ValueError, match="no revision"):
            call(name)
    for call in (git.default_branch, lambda remote: git.push(remote, f"HEAD:{MAIN}")):
        with pytest.raises(ValueError, match="no remote"):
            call("--upload-pack=touch /tmp/x")
    assert git.resolve("--all") is None


# Whose configuration, whose repository


def test_a_hostile_configuration_changes_nothing(tmp_path, new_git, environ, remote):
    """The user signs everything with a program that asks, rewrites line ends, has hooks, and likes colours."""
    touched = tmp_path / "touched"
    program = script(tmp_path / "program", f'echo "$0 $*" >>{touched}; exec sleep 600')
    for hook in ("pre-commit", "commit-msg", "pre-push", "reference-transaction", "post-index-change", "pre-auto-gc"):
        # The serving side of a remote on a local path is another repository, with its own right to these hooks.
        served = f"case $PWD in {remote.path}*) exit 0;; esac"
        script(tmp_path / "hooks" / hook, f"{served}; echo {hook} >>{touched}; exit 1")
    (tmp_path / "attributes").write_text("* text eol=crlf filter=evil diff=evil merge=evil ident\n")
    (tmp_path / "home" / ".gitconfig").write_text(
        f"""
        [commit] gpgSign = true
        [tag] gpgSign = true
        [push] gpgSign = true
            followTags = true
            pushOption = x
            default = matching
            recurseSubmodules = on-demand
        [gpg] program = {program}
            format = ssh
        [gpg "ssh"] program = {program}
        [user] signingKey = x
            useConfigOnly = true
        [core] hooksPath = {tmp_path}/hooks
            autocrlf = true
            eol = crlf
            safecrlf = true
            fsmonitor = {program}
            attributesFile = {tmp_path}/attributes
            editor = {program}
            pager = {program}
            askPass = {program}
            abbrev = 4
            logAllRefUpdates = always
        [filter "evil"] clean = {program}
            smudge = {program}
            required = true
        [diff "evil"] command = {program}
            textconv = {program}
        [diff] orderFile = {tmp_path}/missing
            external = {program}
            noprefix = true
            renames = copies
            relative = true
        [log] showSignature = true
            decorate = full
            mailmap = true
            diffMerges = combined
            follow = true
            showRoot = false
        [color] ui = always
        [fetch] prune = true
            pruneTags = true
            all = true
            recurseSubmodules = true
            writeCommitGraph = true
        [gc] auto = 1
        [maintenance] auto = true
        [submodule] recurse = true
        [status] showUntrackedFiles = all
        [transfer] fsckObjects = false
        [pack] packSizeLimit = 1m
        [remote "origin"] url = {remote.url}
            fetch = +refs/heads/*:refs/remotes/origin/*
            mirror = true
            prune = true
        """
    )
    git = new_git("mac")
    data = b"a line\nanother\r\n"
    first = commit(git, None, Put(b"_coordination/mac/spark/000001.jsonl", data))
    second = commit(git, first, Put(b"_coordination/mac/spark/000001.jsonl", data * 2))
    assert git.push(remote.url, f"{second}:{MAIN}").status == "ok"
    git.update_ref("refs/wire/kept", first)
    git.fetch(remote.url, [INCOMING], max_bytes=MB)

    assert git.resolve("refs/wire/incoming") == second
    assert remote.show("_coordination/mac/spark/000001.jsonl") == data * 2
    came = git.history(None, second, max_count=10)
    assert [(one.oid, len(one.changes)) for one in came.commits] == [(first, 1), (second, 1)]
    assert b"gpgsig" not in git.run("cat-file", "commit", first).stdout
    assert git.diff(first, second)[0].new_oid == git.entries(second)[0].oid
    assert set(git.refs()) == {OUT, "refs/wire/incoming", "refs/wire/kept"}
    assert not Path(git.git_dir, "logs", "refs", "wire").exists()
    assert not Path(git.git_dir, "FETCH_HEAD").exists()
    assert not touched.exists(), touched.read_text()


def test_the_users_own_ways_to_hosts_are_kept(tmp_path, git, remote):
    """`insteadOf` is how people reach hosts through a proxy, or choose ssh over https."""
    (tmp_path / "home" / ".gitconfig").write_text(f'[url "{remote.path.parent}/"]\n\tinsteadOf = wire-host:\n')
    made = commit(git, None)
    assert git.push(f"wire-host:{remote.path.name}", f"{made}:{MAIN}").status == "ok"
    assert remote.tip() == made


def test_settings_reach_git_to_the_letter(new_git):
    """Whatever stands in a URL's helper or a proxy's name; the later of two wins, and all win over the files."""
    odd = ["", "it's", '!f() { echo "it\'s"; }; f', "a\nb\tc", "\\", "é=ü", "'\\''", "  "]
    settings = [("wire.x", "first"), *((f"wire.{chr(97 + n)}b.Odd", value) for n, value in enumerate(odd))]
    git = new_git("mac", extra_config=[*settings, ("wire.x", "last"), ("http.https://a.example/?b='c.proxy", "it's")])
    git.run("config", "wire.x", "in the file")
    for key, value in [*settings[1:], ("wire.x", "last"), ("http.https://a.example/?b='c.proxy", "it's")]:
        assert git.run("config", "--null", "--get", key).stdout.decode() == f"{value}\0"


def test_variables_of_another_repository_do_not_redirect(tmp_path, environ, git, remote, monkeypatch):
    """wire is started from a hook of a project's own repository."""
    outer = tmp_path / "outer"
    outer.mkdir()
    gitcmd.git(outer, "init", "-q")
    gitcmd.git(outer, "commit", "-q", "--allow-empty", "-m", "outer")
    before = _snapshot(outer)
    redirect = {
        "GIT_DIR": str(outer / ".git"),
        "GIT_WORK_TREE": str(outer),
        "GIT_INDEX_FILE": str(outer / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(outer / ".git" / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(outer / ".git" / "objects"),
        "GIT_NAMESPACE": "evil",
        "GIT_PREFIX": "x/",
        "GIT_TRACE": "2",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_CONFIG_PARAMETERS": "'core.bare=true'",
    }
    for name, value in redirect.items():
        monkeypatch.setenv(name, value)
    leaky = Git(git.git_dir, environ={**environ, **redirect})
    made = commit(leaky, None, Put(b"a", b"1"))
    assert leaky.push(remote.url, f"{made}:{MAIN}").status == "ok"
    assert git.resolve(OUT) == made
    assert remote.tip() == made
    assert leaky.run("version").stderr.strip() == ""
    assert _snapshot(outer) == before


def _snapshot(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("how", ["removed", "emptied", "a file"])
def test_a_clone_that_lost_its_repository_is_refused(tmp_path, environ, remote, how):
    """git would walk up and commit into the repository around it."""
    outer = tmp_path / "outer"
    (outer / "inner").mkdir(parents=True)
    gitcmd.git(outer, "init", "-q")
    gitcmd.git(outer, "commit", "-q", "--allow-empty", "-m", "outer")
    git = Git(outer / "inner" / ".git", environ=environ, work_tree=str(outer / "inner"))
    git.init()
    first = seed(git, remote)
    gitcmd.git(outer / "inner", "config", "--list")
    subprocess.run(["rm", "-rf", git.git_dir], check=True)
    if how == "emptied":
        os.mkdir(git.git_dir)
    elif how == "a file":
        Path(git.git_dir).write_text(f"gitdir: {outer}/.git-elsewhere\n")
    before = _snapshot(outer)
    calls: list[Callable[[], object]] = [
        lambda: commit(git, None, Put(b"a", b"1")),
        lambda: git.fetch(remote.url, [INCOMING], max_bytes=MB),
        lambda: git.push(remote.url, f"{first}:{MAIN}"),
        lambda: git.update_ref("refs/heads/main", first),
        lambda: git.resolve("HEAD"),
        lambda: git.run("status"),
    ]
    for call in calls:
        with pytest.raises(GitFailed) as failed:
            call()
        assert failed.value.kind is Kind.CLONE, failed.value
    assert _snapshot(outer) == before
    assert git.ls_remote(remote.url, MAIN) == {MAIN: first}, "a remote can be asked without a clone"


def test_git_is_missing(tmp_path, environ):
    empty = tmp_path / "empty"
    empty.mkdir()
    git = Git(tmp_path / "x" / ".git", environ={**environ, "PATH": f"{empty}:relative"})
    with pytest.raises(GitFailed) as failed:
        git.init()
    assert failed.value.kind is Kind.GIT_MISSING
    assert failed.value.message == f"git not found in PATH={empty}:relative"


def test_gitpython_can_be_imported_where_git_is_missing(tmp_path):
    """GitPython refuses to be imported then; wire has to say it itself."""
    program = "from wire.gitio.child import _command_class; import os; _command_class(); print(sorted(os.environ))"
    environ = {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr
    assert "GIT_PYTHON_REFRESH" not in done.stdout
    assert done.stderr == ""


def test_an_old_git_is_refused_before_it_fails_oddly(tmp_path, environ):
    script(tmp_path / "bin" / "git", "echo git version 2.30.2")
    git = Git(tmp_path / "x" / ".git", environ={**environ, "PATH": f"{tmp_path}/bin:{environ['PATH']}"})
    with pytest.raises(GitFailed, match=r"git 2\.30\.2 found, expected 2\.39"):
        git.init()
