"""A bare repository on disk, as its host sees it, and the clones of people who can push to it.

    remote = BareRemote(tmp_path / "hub.git")
    vera = remote.clone_as_vandal(tmp_path / "vera")
    vera.append("_coordination/mac/spark/000001.jsonl", b"junk\\n")
    vera.commit("tidy up")
    vera.push()

Nothing here knows the product: a vandal has git, an editor, and the right to push.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from support import gitcmd


class BareRemote:
    """A remote on a local path.

    Args:
        path: where to create it.
        branch: its default branch, which need not exist.
        object_format: `sha1` or `sha256`.
    """

    def __init__(self, path: Path, *, branch: str = "main", object_format: str = "sha1") -> None:
        self.path = path
        self.url = str(path)
        """How machines reach it; a test that puts a host in front sets that one's."""
        path.mkdir(parents=True)
        gitcmd.git(path, "init", "--quiet", "--bare", "--template=", f"--object-format={object_format}", "-b", branch)
        (path / "hooks").mkdir()
        with (path / "config").open("a", encoding="utf-8") as config:
            # A receiving git tidies up in the background, which would outlive the test.
            config.write("[receive]\n\tautogc = false\n[gc]\n\tauto = 0\n")

    @property
    def branch(self) -> str:
        """The default branch."""
        return (self.path / "HEAD").read_text("utf-8").removeprefix("ref: refs/heads/").strip()

    def set_default_branch(self, name: str) -> None:
        self.git("symbolic-ref", "HEAD", f"refs/heads/{name}")

    def git(self, *args: str | Path, input: bytes | None = None) -> bytes:
        """Run git in the bare repository and return its output."""
        return gitcmd.git(self.path, *args, input=input)

    def compress_nothing(self) -> None:
        """Keep and send objects as they are: for random bytes, at which git's compression tries in vain for seconds."""
        self.git("config", "core.compression", "0")

    def install_pre_receive(self, script: str) -> None:
        """Judge every push by a shell script: what it prints is shown to who pushes, non-zero refuses."""
        hook = self.path / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n", "utf-8")
        hook.chmod(0o755)

    def reject_pushes(self, message: str) -> None:
        """Refuse every push with a message."""
        self.install_pre_receive(f"cat >/dev/null; cat >&2 <<'END'\n{message}\nEND\nexit 1")

    def remove_pre_receive(self) -> None:
        (self.path / "hooks" / "pre-receive").unlink()

    def tip(self, branch: str | None = None) -> str | None:
        """Return the commit at a branch's tip, or None where there is none yet."""
        ref = f"refs/heads/{branch or self.branch}"
        with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            # Asked so often that a git for each would take minutes. What is not loose may be packed.
            if not (loose := (self.path / ref).read_text("ascii").strip()).startswith("ref:"):
                return loose
        return gitcmd.line(self.path, "for-each-ref", "--format=%(objectname)", ref) or None

    def commits(self, branch: str | None = None) -> list[str]:
        """Return the commits of a branch, every one after its parents."""
        tip = self.tip(branch)
        return gitcmd.line(self.path, "rev-list", "--reverse", "--topo-order", tip).split() if tip else []

    def files(self, commit: str | None = None) -> list[str]:
        """Return the paths in a commit (the tip's unless given), sorted."""
        at = commit or self.tip()
        if at is None:
            return []
        listed = self.git("ls-tree", "-r", "-z", "--name-only", "--full-tree", at)
        return sorted(path.decode("utf-8", "surrogateescape") for path in listed.split(b"\0") if path)

    def show(self, path: str, commit: str | None = None) -> bytes:
        """Return a file's bytes in a commit (the tip's unless given)."""
        at = commit or self.tip()
        assert at is not None, f"{self.path} has no commit on {self.branch}"
        return self.git("cat-file", "blob", f"{at}:{path}")

    def clone_as_vandal(self, path: Path) -> "VandalClone":
        """Clone it, as anybody may who can push."""
        # Not `git clone`, which gives an empty repository's clone the wrong object format and its own idea of a branch.
        object_format = gitcmd.line(self.path, "rev-parse", "--show-object-format")
        path.mkdir(parents=True, exist_ok=True)
        gitcmd.git(path, "init", "--quiet", f"--object-format={object_format}", "-b", self.branch)
        clone = VandalClone(path, self)
        clone.git("remote", "add", "origin", self.path)
        if self.tip():
            clone.sync()
        return clone


class VandalClone:
    """A plain clone with a work tree, in which a test does by hand what it likes."""

    def __init__(self, path: Path, remote: BareRemote) -> None:
        self.path = path
        self.remote = remote

    def git(self, *args: str | Path, input: bytes | None = None) -> bytes:
        """Run git in the clone and return its output."""
        return gitcmd.git(self.path, *args, input=input)

    @property
    def head(self) -> str:
        return gitcmd.line(self.path, "rev-parse", "HEAD")

    def read(self, path: str) -> bytes:
        return (self.path / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        """Put a file, with the folders above it."""
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def append(self, path: str, data: bytes) -> None:
        self.write(path, (self.read(path) if (self.path / path).exists() else b"") + data)

    def remove(self, path: str) -> None:
        (self.path / path).unlink()

    def commit(self, message: str = "a change", *, amend: bool = False) -> str:
        """Commit all that stands in the work tree, without any hook, and return the commit."""
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--no-verify", "--allow-empty", "-m", message, *(["--amend"] if amend else []))
        return self.head

    def sync(self) -> str:
        """Throw away what was not pushed, stand on the remote's tip, and return it."""
        self.git("fetch", "--quiet", "origin")
        self.git("checkout", "--quiet", "--force", "-B", self.remote.branch, f"origin/{self.remote.branch}")
        self.git("clean", "--quiet", "-ffdx")
        return self.head

    def push(self, *, force: bool = False, options: Sequence[str] = ()) -> str:
        """Push HEAD to the remote's default branch, and return the commit."""
        self.git("push", "--quiet", *(["--force"] if force else []), *options, "origin", f"HEAD:{self.remote.branch}")
        return self.head
