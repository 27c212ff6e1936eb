"""The typed way to one repository: plumbing in, records out; see the package's docstring."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from wire.gitio import blobs, commits, compare, environment, leftout, packing, parse, refs, worktree
from wire.gitio.classify import GitFailed, Kind
from wire.gitio.core import Core, Result
from wire.gitio.fastimport import Drop, Put
from wire.gitio.packing import Counts
from wire.gitio.parse import Change, Entry, History, PushResult
from wire.gitio.reader import Object
from wire.gitio.refs import RefUpdate
from wire.gitio.remote import Remotes
from wire.gitio.trees import COMMITS_MAX, Trees

OLDEST_GIT = (2, 39)
"""The oldest git that has all that is used here."""

_REFS_OUTPUT = 64 << 20


class Git:
    """Use one repository through hardened git children.

    One thread uses an object; only `cancel` may be called from any other. All methods raise `GitFailed`, with `kind`.

    Args:
        git_dir: the repository (`….git`), which need not exist before `init`.
        environ: the environment that wire was started with.
        runtime_dir: a private folder (mode 0700) for shared ssh connections; None for none.
        work_tree: folder of the files, for the commands that need it.
        identity: name and address of commits.
        timeout: seconds that a child may take unless the call says otherwise.
        extra_config: pairs of key and value on top of the hardened settings.
        quarantine: for a hook that judges a push, where its objects are; its children start in the quickest way.
    """

    def __init__(
        self,
        git_dir: str | os.PathLike[str],
        *,
        environ: Mapping[str, str],
        runtime_dir: str | None = None,
        work_tree: str | None = None,
        identity: tuple[str, str] = ("wire", "wire@wire.invalid"),
        timeout: float = 120.0,
        extra_config: Iterable[tuple[str, str]] = (),
        quarantine: Mapping[str, str] | None = None,
    ) -> None:
        self._core = Core(
            os.fspath(git_dir),
            environ=environ,
            work_tree=work_tree,
            identity=identity,
            timeout=timeout,
            extra_config=extra_config,
            quarantine=quarantine,
        )
        self._work_tree = work_tree
        self._trees = Trees(self._core)
        self.remotes = Remotes(self._core, self._trees, runtime_dir)
        self._format: str | None = None

    @property
    def git_dir(self) -> str:
        """The absolute path of the repository."""
        return self._core.git_dir

    def run(
        self,
        *args: str,
        input: bytes | None = None,
        timeout: float | None = None,
        ok: Collection[int] = (0,),
        max_output: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """Run any git command with the same care and return `Result(status, stdout, stderr)`.

        Args:
            input: its standard input, which is empty otherwise.
            timeout: seconds after which the whole process group is ended.
            ok: exit statuses that are no failure.
            max_output: bytes of standard output after which it is ended (`too-large`).
            env: variables on top of the hardened environment, such as `GIT_INDEX_FILE`.
        """
        return self._core.run(*args, input=input, timeout=timeout, ok=ok, max_output=max_output, env=env)

    def cancel(self, *, stop: bool = False) -> None:
        """End the running child, if any, gracefully: SIGTERM to its group, later SIGKILL; from any thread.

        The interrupted call raises `GitFailed` of kind `cancelled`.

        Args:
            stop: let every later call fail in the same way.
        """
        self._core.cancel(stop=stop)

    def busy_until(self) -> float | None:
        """Return the monotonic second by which the child that runs now has ended, or None; from any thread."""
        return self._core.busy_until()

    def last_ended(self) -> float:
        """Return the monotonic second at which the last child ended, 0 before the first; from any thread."""
        return self._core.last_ended()

    def linger(self, lingers: bool) -> None:
        """Say whether little things may be read through a child that stays; it goes with False.

        What is written then needs no child either, and is the same.
        """
        self._core.lingers = lingers
        self._trees.check()
        if not lingers:
            self._core.reader.end()

    def rest(self) -> float:
        """End the child that stays where nobody has asked it for a while; return in how many seconds that is due."""
        return self._core.reader.rest()

    # The repository

    def version(self) -> tuple[int, ...]:
        """Return git's version, such as `(2, 39, 5)`."""
        ended = self._core.spawn(("version",), homeless=True)
        self._core.judge(("version",), ended)
        found = re.search(rb"(\d+(?:\.\d+)+)", ended.stdout)
        return tuple(int(part) for part in found[1].split(b".")) if found else ()

    def init(self, object_format: str | None = None, *, branch: str = "main") -> None:
        """Create the repository if it is not there yet, with attributes that no tree can override.

        Args:
            object_format: `sha1` (unless given) or `sha256`; must match the remote's.
            branch: where HEAD points at first.

        Raises:
            GitFailed: git is missing or older than `OLDEST_GIT` (`git-missing`).
        """
        version = self.version()
        if version < OLDEST_GIT:
            found = ".".join(map(str, version))
            raise GitFailed(f"git {found} found, expected 2.39 or newer", kind=Kind.GIT_MISSING, label="too-old")
        os.makedirs(os.path.join(self.git_dir, "info"), exist_ok=True)
        how = ["--template=", f"--object-format={object_format or 'sha1'}", f"--initial-branch={branch}"]
        self.run("init", "--quiet", *how, *([] if self._work_tree else ["--bare"]))
        with open(os.path.join(self.git_dir, "info", "attributes"), "wb") as file:
            file.write(environment.ATTRIBUTES)
        self._format = None
        self._trees.check()

    def object_format(self) -> str:
        """Return `sha1` or `sha256`."""
        if self._format is None:
            self._format = self.run("rev-parse", "--show-object-format").stdout.decode("ascii").strip()
        return self._format

    def object_format_of(self, path: str) -> str | None:
        """Return the object format of another repository on this machine, or None where git does not tell."""
        args = ("-C", path, "rev-parse", "--show-object-format")
        ended = self._core.spawn(args, homeless=True)
        return ended.stdout.decode("ascii", "replace").strip() if ended.status == 0 else None

    # Refs

    def resolve(self, name: str) -> str | None:
        """Return the id of the object that a ref or revision names, or None."""
        if (known := refs.resolve(self.git_dir, name)) is not None:
            return known
        done = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", name, ok=(0, 1))
        return parse.object_id(done.stdout.decode("ascii").strip()) if done.status == 0 else None

    def refs(self, *prefixes: str) -> dict[str, str]:
        """Return the refs below the prefixes (`refs/wire/`), or all, with their ids, in one child."""
        listed = self.run("for-each-ref", "--format=%(objectname) %(refname)", *prefixes, max_output=_REFS_OUTPUT)
        return parse.refs(listed.stdout)

    def update_refs(self, updates: Sequence[RefUpdate]) -> None:
        """Change refs in one transaction: all or none.

        Raises:
            GitFailed: one of them was not at its `old` (`race`).
        """
        refs.update(self._core, updates)

    def update_ref(self, name: str, new: str, old: str | None = None) -> None:
        """Point a ref at an object; see `RefUpdate` for `old`, and `update_refs`."""
        self.update_refs([RefUpdate(name, new, old)])

    def delete_ref(self, name: str, old: str | None = None) -> None:
        """Delete a ref, if it is still at `old`."""
        self.update_refs([RefUpdate(name, None, old)])

    def symbolic_ref(self, name: str, target: str | None = None) -> str | None:
        """Return the full ref that a symbolic ref points to, or None (a detached HEAD); with `target` set it."""
        if target is not None:
            self.run("symbolic-ref", name, target)
            return target
        if (known := refs.target(self.git_dir, name)) is not None:
            return known
        done = self.run("symbolic-ref", "--quiet", name, ok=(0, 1))
        return done.stdout.decode("utf-8", "surrogateescape").strip() or None

    def clear_locks(self) -> list[str]:
        """Remove lock files on wire's own refs and index, left by a killed process; only under the wire's lock."""
        return [*self._core.clear_locks(), *worktree.clear_own(self._core)]

    def clear_broken(self, names: Iterable[str]) -> list[str]:
        """Remove refs that hold nothing, as a loss of power leaves them; return those of `names` that did."""
        return self._core.clear_broken(names)

    # Remotes

    def fetch(
        self,
        remote: str,
        refspecs: Sequence[str],
        *,
        max_bytes: int,
        timeout: float | None = None,
        tips_only: bool = False,
        second: bool = True,
    ) -> None:
        """Fetch exactly these refspecs (`+refs/heads/main:refs/wire/incoming`).

        A refspec with a `*` matches nothing without failing; one without fails with `no-ref` where the remote has no
        such ref.

        Args:
            max_bytes: size of the transfer beyond which the fetch is ended (`too-large`).
            tips_only: without history, and without the files' contents where the host can leave them out; only for a
                repository that is thrown away.
            second: what is too large is fetched without the huge blobs, where the host can leave them out.
        """
        how = {"tips_only": tips_only, "second": second}
        self.remotes.fetch(remote, refspecs, max_bytes=max_bytes, timeout=timeout, **how)

    def push(
        self, remote: str, refspec: str, *, replace: str | None = None, timeout: float | None = None
    ) -> PushResult:
        """Push one refspec (`<commit>:refs/heads/main`), as a fast-forward only.

        Args:
            replace: replace the ref if the remote has it at this id (empty: if it has none); presence refs only.
        """
        ref = refspec.rpartition(":")[2]
        leases = {} if replace is None else {ref: replace}
        return self.remotes.push(remote, [refspec], replace=leases, timeout=timeout)[ref]

    def push_refs(
        self, remote: str, refspecs: Sequence[str], *, replace: Mapping[str, str], timeout: float | None = None
    ) -> dict[str, PushResult]:
        """Push several refspecs in one connection; return the result of each remote ref.

        They are independent: one may be refused while the others are taken.

        Args:
            replace: expected ids of the presence refs that are to be replaced; see `push`.
        """
        return self.remotes.push(remote, refspecs, replace=replace, timeout=timeout)

    def ls_remote(self, remote: str, *patterns: str, timeout: float | None = None) -> dict[str, str]:
        """Return the remote's refs that have these full names (or match these globs) with their ids.

        Works without a repository, and is empty for an empty remote.
        """
        return self.remotes.ls_remote(remote, patterns, timeout=timeout)

    def default_branch(self, remote: str, *, timeout: float | None = None) -> str | None:
        """Return the full name of the branch that the remote's HEAD points to, or None if it has no commit."""
        return self.remotes.default_branch(remote, timeout=timeout)

    def close_connections(self) -> None:
        """End the shared ssh connections that this object opened: on stop, after a hang, after a resume."""
        self.remotes.close_connections()

    # Trees, commits, blobs

    def entries(self, treeish: str, path: str = "") -> list[Entry]:
        """Return all files of a commit or tree, or those at or below `path`.

        Raises:
            GitFailed: the listing is larger than 64 MiB (`too-large`).
        """
        where = ["--", parse.plain_path(path)] if path else []
        args = ("ls-tree", "-r", "-z", "--full-tree", parse.revision(treeish), *where)
        return parse.entries(self.run(*args, max_output=_REFS_OUTPUT).stdout)

    def diff(self, old: str | None, new: str | None, path: str = "") -> list[Change]:
        """Return what changes from one commit or tree to another; None stands for the empty tree.

        Raises:
            GitFailed: the listing is larger than 64 MiB (`too-large`).
        """
        known = self._trees.changes(old, new) if old is not None and new is not None and not path else None
        if known is not None:
            return known
        sides = [self._empty_tree() if side is None else side for side in (old, new)]
        return compare.trees(self._core, sides[0], sides[1], path)

    def staged(self, index_file: str, base: str | None) -> list[Change]:
        """Return what an index changes from a commit (None: from nothing); the index is only read.

        A path that is not merged yet has the status `U`.

        Raises:
            GitFailed: the listing is larger than 64 MiB (`too-large`).
        """
        return compare.index(self._core, index_file, self._empty_tree() if base is None else base)

    def is_ancestor(self, old: str, new: str) -> bool:
        """Tell whether `new` has `old` among its ancestors, or is it."""
        return self.run("merge-base", "--is-ancestor", parse.revision(old), parse.revision(new), ok=(0, 1)).status == 0

    def lacks(self, new: str, old: str | None) -> bool:
        """Tell whether something that `new` reaches, and `old` does not, was left out: it cannot be pushed to `old`."""
        if not leftout.some(self.git_dir):
            return False
        from wire.gitio import secondtry  # rare

        return bool(secondtry.missing(self._core, [new], old))

    def history(self, old: str | None, new: str, *, max_count: int) -> History:
        """Return the commits of `new` that `old` has not, each with its changes, in one child at most.

        Args:
            old: None for a first look: all of `new` is new.
            max_count: how many commits are read at most; more, or a listing over 64 MiB, is told as `truncated`.
        """
        known = self._trees.history(old, new) if old is not None and max_count >= COMMITS_MAX else None
        if known is not None:
            return known
        return compare.history(self._core, old, new, max_count=max_count, descends=self.is_ancestor)

    def blobs(self, oids: Iterable[str], *, max_size: int) -> dict[str, bytes | None]:
        """Return the contents of blobs, in one child as a rule.

        Args:
            max_size: bytes; a larger object, and one that is no blob, is None and is not read.

        Raises:
            GitFailed: an object is missing or damaged (`corrupt`, with its id), or all together exceed 256 MiB. One
                that a second try of a fetch left out is None, as it is too large.
        """
        return blobs.read(self._core, oids, max_size=max_size)

    def read(self, names: Sequence[str], *, max_size: int) -> list[Object] | None:
        """Read a few small objects by id or name through a child that stays; None where that does not answer."""
        return self._core.read(names, max_size=max_size)

    def sizes(self, oids: Iterable[str]) -> dict[str, int]:
        """Return the sizes of objects in bytes, without reading them, in one child.

        Raises GitFailed where one is missing (`corrupt`, with its id).
        """
        return blobs.sizes(self._core, oids)

    def write_index(self, commit: str) -> bool:
        """Make the clone's index show a commit; return False while somebody else holds the index's lock.

        The index is built beside the old one and renamed into its place, so that whoever reads it sees one or the
        other.
        """
        return worktree.write_index(self._core, commit)

    def write_commit(
        self,
        ref: str,
        *,
        base: str | None,
        parents: Sequence[str],
        message: str | bytes,
        changes: Sequence[Put | Drop],
        reset_tree: bool = False,
        author: tuple[str, str] | None = None,
        when: int | None = None,
        also: Sequence[str] = (),
    ) -> str:
        """Make a commit from a tree and changes to it, put it in the local `ref`, and return its id.

        The ref is set whatever it held before. Objects and ref are on the disk when this returns.

        Args:
            base: the commit or tree whose files it starts with; None for none.
            parents: full ids; none, one or two.
            changes: applied in this order.
            reset_tree: start with no files, whatever `base` says.
            author: name and address, where they are not the object's identity.
            when: seconds of the epoch; now unless given.
            also: further local refs that are put at the commit; a loss of power may take these back.
        """
        tree = None
        if base is not None and not reset_tree and (not parents or parents[0] != base):
            tree = self._tree(base)
            if tree is None:
                raise GitFailed(f"there is no commit {base} to build on", kind=Kind.CORRUPT, object_id=base)
        return commits.write(
            self._core,
            self._trees,
            (ref, *also),
            parents=parents,
            tree=tree,
            start_empty=(reset_tree or base is None) and bool(parents),
            message=message,
            changes=changes,
            author=author,
            when=when,
            object_format=self.object_format,
        )

    def same_tree(self, one: str, other: str) -> bool:
        """Tell whether two commits hold exactly the same files; a child is needed for those not made by this object."""
        tree = self._tree(one)
        return tree is not None and tree == self._tree(other)

    def _tree(self, commit: str) -> str | None:
        head = self._trees.head(commit)
        return head.tree if head is not None else self.resolve(f"{commit}^{{tree}}")

    def made_at(self, ref: str, parents: Sequence[str]) -> int | None:
        """Return the time of the commit in `ref`, in seconds of the epoch, if it stands on exactly these parents.

        The same commit made again at this time is the same object.
        """
        return commits.made_at(self._core, ref, parents)

    def _empty_tree(self) -> str:
        return parse.EMPTY_TREES[self.object_format()]

    # Growth

    def counts(self) -> Counts:
        """Return the numbers of loose objects and packs, from the files; each commit and fetch leaves a small pack."""
        return packing.counts(self.git_dir)

    def pack(self, *, full: bool | None = None, timeout: float = 1800.0) -> Counts:
        """Pack in the foreground and return what is left.

        Args:
            full: also drop what nothing has reached for two days; unless given, once a day.

        Raises:
            GitFailed: the counts did not come down (`unknown`, label `not-packed`), or git failed.
        """
        try:
            return packing.pack(self._core, full=full, timeout=timeout)
        finally:
            self._core.reader.end()  # it would hold files that are gone
