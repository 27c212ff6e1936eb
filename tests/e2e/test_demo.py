"""`wire demo` shows what happens, not what it hopes for: it fails when the product lies, and leaves nothing behind."""

import importlib
import os
import re
import shutil
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

from support import procs
from support.machine import installed
from support.terminals import watch
from wire.demo import stage

LIMIT_SECONDS = 30.0
"""What the demo may take on a machine that does nothing else."""

SWALLOW = """#!/bin/sh
# git, except that it drops pushes, once they are to be dropped, and reports each as done.
for word; do
  [ "$word" = push ] && pushing=yes
  last=$word
done
if [ -n "$pushing" ]; then
  echo push >>"$DEMO_TEST/pushes"
  if [ $(wc -l <"$DEMO_TEST/pushes") -gt "$DEMO_TEST_KEEPS" ]; then
    printf 'To the drain\\n*\\t%s\\t[new branch]\\nDone\\n' "$last"
    exit 0
  fi
fi
exec GIT "$@"
"""

PATCHES = {
    "every-step": (
        "wire.protocol.chain",
        "step",
        """
def planted(position, raw, *, wire, channel, keys):
    from wire.protocol.line import head, parse

    line = parse(raw)
    return module.Step(None, "", line, position.after(len(raw) + 1, head(raw)))
""",
    ),
    "every-signature": ("wire.protocol.encoding", "verify", "planted = lambda *args: True"),
    "every-claim": ("wire.verbs.states", "state_of", "planted = lambda *args: 'pushed'"),
}
"""What is replaced in every process of the demo, by what accepts or claims anything."""


def plant(folder: Path, patch: str = "") -> str:
    """Write a `sitecustomize` that makes a patch, and return the folder for PYTHONPATH.

    The demo itself waits for less long than it would: what is waited for here never happens.
    """
    body = "if 'demo' in sys.orig_argv:\n    import wire.demo.stage as stage\n    stage.WAIT_SECONDS = 8.0\n"
    assert stage.WAIT_SECONDS > 8
    if patch:
        module, name, code = PATCHES[patch]
        assert callable(getattr(importlib.import_module(module), name))
        body += f"import {module} as module\n{code}\nmodule.{name} = planted"
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import importlib.util, sys\nif importlib.util.find_spec('wire'):\n" + textwrap.indent(body, "    ") + "\n"
    )
    return str(site)


class Stand:
    """Where a demo runs: a temporary folder and a home of its own, and a mark on everything that it starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.mark = f"DEMO_TEST={folder}"
        for name in ("tmp", "home"):
            (folder / name).mkdir()
        self.env = {
            "PATH": f"{installed().parent}:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            "DEMO_TEST": str(folder),
        }

    def start(self, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(installed()), "demo"],
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, **env: str) -> subprocess.CompletedProcess[str]:
        process = self.start(**env)
        out, err = process.communicate(timeout=150)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def left(self) -> list[str]:
        """Return what a demo left behind: processes, and files in the temporary folder or the home."""
        processes = [process.command for process in procs.marked(self.mark)]
        files = [str(path) for name in ("tmp", "home") for path in (self.folder / name).iterdir()]
        return processes + files


@pytest.fixture
def stand(tmp_path):
    made = Stand(tmp_path)
    yield made
    left = made.left()
    procs.kill_marked(made.mark)
    assert not left


@pytest.mark.exclusive
def test_the_demo_passes(stand):
    begin = time.monotonic()
    done = stand.run()
    took = time.monotonic() - begin
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    checks = done.stdout.count("\n  ok  ")
    assert f"All of it happened: {checks} checks in " in done.stdout
    assert checks >= 20
    for act in "12345":
        assert re.search(rf"^{act}\. ", done.stdout, re.M)
    for state in ("stored: ", "committed: ", "pushed: "):
        assert f"  ok     {state}" in done.stdout
    assert "\x1b" not in done.stdout
    assert took < LIMIT_SECONDS


@pytest.mark.parametrize("keeps", [0, 3], ids=["all", "after-approval"])
def test_it_fails_when_pushes_are_swallowed(stand, keeps):
    """A remote, or a git, that says "done" and keeps nothing: the demo reads the hub's own bytes and believes those."""
    bin_ = stand.folder / "bin"
    bin_.mkdir()
    fake = bin_ / "git"
    fake.write_text(SWALLOW.replace("GIT", shutil.which("git") or ""))
    fake.chmod(0o755)
    done = stand.run(PATH=f"{bin_}:{stand.env['PATH']}", DEMO_TEST_KEEPS=str(keeps), PYTHONPATH=plant(stand.folder))
    assert (stand.folder / "pushes").read_text().count("\n") > keeps
    assert done.returncode == 1, done.stdout
    assert "All of it happened" not in done.stdout
    assert re.match(r"wire: .{20,}", done.stderr), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("patch", PATCHES)
def test_it_fails_when_the_product_accepts_or_claims_anything(stand, patch):
    done = stand.run(PYTHONPATH=plant(stand.folder, patch))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "All of it happened" not in done.stdout
    assert done.stderr.startswith("wire: this did not happen within "), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("number", "act"),
    [
        pytest.param(signal.SIGINT, "4. ", id="SIGINT"),
        pytest.param(signal.SIGTERM, "3. ", id="SIGTERM"),
        pytest.param(signal.SIGHUP, "1. ", id="SIGHUP"),
    ],
)
def test_it_cleans_up_when_interrupted(stand, number, act):
    process = stand.start()
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(act):
            break
    time.sleep(0.3)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "All of it happened" not in out
    assert err.strip() == ""


def test_it_cleans_up_when_nobody_reads_on(stand):
    process = stand.start()
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_crash_of_the_demo_itself_leaves_at_most_a_folder_that_says_what_it_is(tmp_path):
    """Nothing can clean up after SIGKILL. What is left is recognised by its name and by its mark."""
    stand = Stand(tmp_path)
    process = stand.start()
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("4. "):
            break
    process.kill()
    process.communicate(timeout=30)
    left = procs.kill_marked(stand.mark)
    assert all("daemon run" in one.command or "git" in one.command or "wire" in one.command for one in left)
    assert {path.name.startswith("wire-demo-") for path in stand.temporary.iterdir()} == {True}


def look(stand: Stand, columns: int, *argv: str | Path, **env: str) -> tuple[int, str]:
    """Run a command at a terminal of some width, and return its exit status and what was on it."""
    env = {**stand.env, "TERM": "xterm-256color", **env}
    status, shown = watch(*argv, env=env, cwd=stand.temporary, columns=columns, seconds=150)
    return status, shown.replace("\r", "")


def test_on_a_terminal_lines_fit_and_have_colour_also_where_the_temporary_folder_lets_no_program_run(stand):
    """A hardened /tmp, mounted noexec: the hub's hook cannot run there, and all the rest can."""
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    mount = 'mount -t tmpfs -o noexec,mode=700 tmpfs "$TMPDIR" && exec "$0" demo'
    status, shown = look(stand, 60, *namespace, "sh", "-c", mount, installed())
    assert status == 0, shown
    assert "\x1b[32m" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    # A word that is longer than the terminal, such as a fingerprint, is not cut.
    assert not [line for line in plain.split("\n") if len(line) > 60 and " " in line.strip()]
    words = " ".join(plain.split())
    assert "made slow" not in words
    assert "pushed: the hub has mac's line" in words


def test_it_needs_nothing_of_the_users_own_set_up_and_obeys_a_very_narrow_terminal_and_no_color(stand):
    """A user's git configuration, wires and exported variables neither help nor hinder, and are not touched.

    Started as `git wire demo`: the program that was started plays all the parts.
    """
    home = stand.folder / "home"
    (home / ".gitconfig").write_text("[commit]\n\tgpgSign = true\n[core]\n\thooksPath = /nonexistent\n")
    status, shown = look(
        stand,
        20,
        "git",
        "wire",
        "demo",
        NO_COLOR="1",
        WIRE_HOME=str(stand.folder / "wires"),
        WIRE_AGENT="somebody",
        XDG_STATE_HOME=str(stand.folder / "state"),
        NOTIFY_SOCKET="/nonexistent/socket",
    )
    (home / ".gitconfig").unlink()
    assert status == 0, shown
    assert "\x1b" not in shown
    assert not (stand.folder / "wires").exists()
    assert not (stand.folder / "state").exists()


def test_it_says_what_is_missing(stand):
    """Without git there is one sentence, and nothing is left."""
    nowhere = stand.folder / "nowhere"
    nowhere.mkdir()
    done = stand.run(PATH=str(nowhere))
    assert done.returncode == 1
    assert done.stderr.startswith("wire: cannot start git: ")
