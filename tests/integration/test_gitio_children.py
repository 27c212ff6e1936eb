"""Children of git that hang, are interrupted, print without end, or are very many."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support import procs, sizes
from support.clones import INCOMING, MAIN, MB, commit, failing_ssh, script, seed
from support.waiting import eventually
from wire.gitio import Git, GitFailed, Kind, Put

# Children that hang


@pytest.mark.parametrize(
    "then",
    ["exec sleep 600", "trap '' TERM INT HUP\nwhile :; do sleep 1; done", "sleep 600 & sleep 600 & wait"],
    ids=["hangs", "ignores signals", "has children"],
)
def test_a_hanging_transport_is_ended_with_all_it_started(tmp_path, environ, git, remote, then):
    slow = Git(git.git_dir, environ=failing_ssh(tmp_path, environ, then))
    began = time.monotonic()
    with pytest.raises(GitFailed) as failed:
        slow.fetch("ssh://wire@host.invalid/x.git", [INCOMING], max_bytes=MB, timeout=1)
    assert failed.value.kind is Kind.TIMEOUT
    assert time.monotonic() - began < 8
    assert (tmp_path / "pids").exists(), "the script ran"
    assert not procs.marked(f"WIRE_TEST_MARK={tmp_path}")
    seed(slow, remote)


def test_a_helper_in_the_background_does_not_hold_a_call(tmp_path, environ, git):
    """A connection that is shared, a cache of credentials: they outlive the call with its pipes in their hands."""
    slow = Git(
        git.git_dir, environ=failing_ssh(tmp_path, environ, "setsid sleep 8 >/dev/null &\necho gone >&2; exit 255")
    )
    began = time.monotonic()
    with pytest.raises(GitFailed) as failed:
        slow.ls_remote("ssh://wire@host.invalid/x.git")
    assert time.monotonic() - began < 5
    assert failed.value.kind is Kind.NETWORK
    assert "gone" in failed.value.message
    procs.kill_marked(f"WIRE_TEST_MARK={tmp_path}")


def test_another_thread_can_end_a_call(tmp_path, environ, git):
    slow = Git(git.git_dir, environ=failing_ssh(tmp_path, environ, "exec sleep 600"))
    threading.Timer(0.5, slow.cancel).start()
    began = time.monotonic()
    with pytest.raises(GitFailed) as failed:
        slow.ls_remote("ssh://wire@host.invalid/x.git")
    assert failed.value.kind is Kind.CANCELLED
    assert time.monotonic() - began < 5
    assert not procs.marked(f"WIRE_TEST_MARK={tmp_path}")
    slow.cancel()
    assert slow.resolve("HEAD") is None, "a later call runs"
    slow.cancel(stop=True)
    with pytest.raises(GitFailed) as failed:
        slow.resolve("HEAD")
    assert failed.value.kind is Kind.CANCELLED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_that_ends_a_process_ends_its_child_first(tmp_path, environ, git, number):
    """Somebody's `timeout 10 wire sync`: the child leads a session of its own, where nothing else would find it."""
    text = (
        "import os, sys; from wire.gitio import Git\n"
        "Git(sys.argv[1], environ=os.environ).ls_remote('ssh://wire@host.invalid/x.git')"
    )
    environment = failing_ssh(tmp_path, environ, "exec sleep 600")
    process = subprocess.Popen([sys.executable, "-c", text, git.git_dir], env=environment, stderr=subprocess.DEVNULL)
    eventually((tmp_path / "pids").exists, what="the transport that hangs")
    process.send_signal(number)
    assert process.wait(10) == -number
    assert not procs.marked(f"WIRE_TEST_MARK={tmp_path}")


def test_a_cancelled_child_that_goes_at_once_takes_its_deaf_helper_along(tmp_path, environ, git):
    deaf = failing_ssh(tmp_path, environ, f"(trap '' TERM; touch {tmp_path}/deaf; exec sleep 600) &\nexec sleep 600")
    slow = Git(git.git_dir, environ=deaf)
    failures: list[GitFailed] = []

    def wait() -> None:
        with pytest.raises(GitFailed) as failed:
            slow.ls_remote("ssh://wire@host.invalid/x.git", timeout=60)
        failures.append(failed.value)

    for _ in range(3):
        waiting = threading.Thread(target=wait)
        waiting.start()
        eventually((tmp_path / "deaf").exists, what="the helper")
        slow.cancel()
        waiting.join(20)
        assert failures.pop().kind is Kind.CANCELLED
        assert not procs.marked(f"WIRE_TEST_MARK={tmp_path}")
        (tmp_path / "deaf").unlink()


def test_who_waits_for_a_child_tells_until_when(tmp_path, environ, git):
    """So that a watchdog can tell a thread that waits for a host from one that is stuck."""
    slow = Git(git.git_dir, environ=failing_ssh(tmp_path, environ, "exec sleep 600"))
    assert slow.busy_until() is None

    def wait() -> None:
        with pytest.raises(GitFailed):
            slow.ls_remote("ssh://wire@host.invalid/x.git", timeout=30)

    waiting = threading.Thread(target=wait)
    waiting.start()
    eventually((tmp_path / "pids").exists, what="the transport that hangs")
    until = slow.busy_until()
    slow.cancel()
    waiting.join(20)
    assert until is not None
    assert 20 < until - time.monotonic() < 60
    assert slow.busy_until() is None


def test_an_interrupt_takes_the_child_along(tmp_path, environ, git):
    program = (
        "import os, sys; from wire.gitio import Git\n"
        f"Git({git.git_dir!r}, environ=os.environ).ls_remote('ssh://wire@host.invalid/x.git')\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**failing_ssh(tmp_path, environ, "exec sleep 600"), "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
    )
    eventually((tmp_path / "pids").exists, what="the transport that hangs")
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=10)
    assert b"KeyboardInterrupt" in err
    assert not procs.marked(f"WIRE_TEST_MARK={tmp_path}")


def test_a_push_that_is_ended_leaves_no_lock_on_the_remote(git, remote):
    """The serving side of a local path runs in our process group, and needs a moment to take its locks away."""
    first = seed(git, remote)
    script(remote.path / "hooks" / "reference-transaction", "sleep 600")
    second = commit(git, first, Put(b"a", b""))
    with pytest.raises(GitFailed) as failed:
        git.push(remote.url, f"{second}:{MAIN}", timeout=1)
    assert failed.value.kind is Kind.TIMEOUT
    (remote.path / "hooks" / "reference-transaction").unlink()
    assert not list(remote.path.rglob("*.lock"))
    assert git.push(remote.url, f"{second}:{MAIN}").status == "ok"


def test_a_call_can_be_ended_before_its_child_runs(tmp_path, environ, git, monkeypatch):
    """The service stops in the moment in which a child is being started."""
    slow = Git(git.git_dir, environ=failing_ssh(tmp_path, environ, "exec sleep 600"))
    assert slow.resolve("HEAD") is None
    runner = slow._core._runner
    start = runner._start
    monkeypatch.setattr(runner, "_start", lambda *args: (slow.cancel(), start(*args))[1])
    began = time.monotonic()
    with pytest.raises(GitFailed) as failed:
        slow.fetch("ssh://wire@host.invalid/x.git", [INCOMING], max_bytes=MB)
    assert failed.value.kind is Kind.CANCELLED
    assert time.monotonic() - began < 5


def test_a_system_that_tells_of_no_exit(tmp_path, environ, git, remote, monkeypatch):
    """macOS has no descriptor for a process, no `/proc`, no leases and no files in memory."""
    for name in ("pidfd_open", "memfd_create"):
        monkeypatch.delattr(os, name)
    seed(git, remote)
    git.fetch(remote.url, [INCOMING], max_bytes=MB)
    then = "setsid sleep 8 >/dev/null &\necho gone >&2; exit 255"
    began = time.monotonic()
    with pytest.raises(GitFailed, match="gone"):
        Git(git.git_dir, environ=failing_ssh(tmp_path, environ, then)).ls_remote("ssh://wire@host.invalid/x.git")
    slow = Git(git.git_dir, environ=failing_ssh(tmp_path, environ, "exec sleep 600"))
    with pytest.raises(GitFailed) as failed:
        slow.ls_remote("ssh://wire@host.invalid/x.git", timeout=1)
    assert failed.value.kind is Kind.TIMEOUT
    assert time.monotonic() - began < 6
    procs.kill_marked(f"WIRE_TEST_MARK={tmp_path}")


def test_output_without_end_is_cut(git):
    made = commit(git, None, Put(b"large", os.urandom(4 * MB)))
    with pytest.raises(GitFailed) as failed:
        git.run("cat-file", "blob", f"{made}:large", max_output=MB)
    assert failed.value.kind is Kind.TOO_LARGE


def test_locks_that_a_killed_process_left_on_our_own_refs(git):
    made = commit(git, None)
    ours = Path(git.git_dir, "refs", "wire", "incoming.lock")
    theirs = Path(git.git_dir, "index.lock")
    for lock in (ours, theirs):
        lock.touch()
    with pytest.raises(GitFailed) as failed:
        git.update_ref("refs/wire/incoming", made)
    assert failed.value.kind is Kind.LOCKED
    assert git.clear_locks() == [str(ours)]
    assert theirs.exists()
    git.update_ref("refs/wire/incoming", made)


CALLS = sizes.size(40, 500, "rounds of git calls with 128 descriptors")


def test_thousands_of_calls_leave_descriptors_and_children_flat(tmp_path, environ, git, remote):
    program = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
from wire.gitio import Git, GitFailed, Put
git = Git({git.git_dir!r}, environ=os.environ)
slow = Git({git.git_dir!r}, environ={{**os.environ, "PATH": {str(tmp_path / "bin")!r} + ":" + os.environ["PATH"]}})
def around(tip):
    parents = [tip] if tip else []
    tip = git.write_commit("refs/wire/out", base=tip, parents=parents, message="x", changes=[Put(b"a", b"1")])
    git.push({remote.url!r}, f"{{tip}}:{MAIN}")
    git.fetch({remote.url!r}, [{INCOMING!r}], max_bytes=1 << 20)
    git.blobs([entry.oid for entry in git.entries(tip)], max_size=10)
    try:
        slow.ls_remote("ssh://wire@host.invalid/x")
    except GitFailed:
        pass
    return tip
def held():
    return len(os.listdir("/proc/self/fd")), open(f"/proc/self/task/{{os.getpid()}}/children").read().split()
tip = around(None)
before = held()
for number in range({CALLS}):
    tip = around(tip)
    if number % 100 == 99:
        git.pack()
assert held() == before, (before, held())
print(len(git.history(None, tip, max_count=10**6).commits))
"""
    failing_ssh(tmp_path, environ, "exit 255")
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == CALLS + 1
