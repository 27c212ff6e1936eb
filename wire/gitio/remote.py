"""Speak with a remote: fetch, push, list; believe nothing but what git reports in a form for programs.

Rules that it keeps:

- Refspecs are explicit; nothing of the user's configuration adds refs, tags, prunes or forces.
- A fetch has a size: git has no cap of its own, so the file size limit of the process (`RLIMIT_FSIZE`) is one. Fetched
  packs are kept as packs, which makes the limit of one file the limit of the transfer.
- A push counts by its porcelain lines. Without one for the ref in question there was no push.
- ssh connections are shared per remote, and ended when something hung on one.
- Credentials in a URL reach git by its environment alone: see `credentials`.
"""

import atexit
import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from wire.gitio import classify, credentials, few, leftout, parse, ssh, sshagent
from wire.gitio.child import Ended, NotStarted
from wire.gitio.classify import GitFailed, Kind
from wire.gitio.core import Core
from wire.gitio.parse import PushResult
from wire.gitio.trees import Trees

REPLACEABLE = "refs/wire/presence/"
"""Only refs below this may be replaced by a push; all others are only ever extended (PROTOCOL.md, presence)."""

WARY_BYTES = 16 << 20
"""Bytes of a first try, for a while after one that was too large: a second one follows, and what is new is small."""
WARY_SECONDS = 3600.0
"""How long after a fetch that was too large a first try is kept small, or no second one is made where it is no use."""

NO_FILTER = (
    "take the large files out of the branch's history, or let the host leave them out; "
    "in a bare repository there: git config uploadpack.allowFilter true"
)
_LACKING = frozenset({Kind.MALFORMED, Kind.CORRUPT, Kind.UNKNOWN})
"""What a fetch may fail of because a blob is left out here."""
_LISTING_MAX = 16 << 20
_TRACE_MAX = 4 << 20

_FETCH = (
    "fetch",
    "--refmap=",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--no-prune",
    "--no-prune-tags",
    "--no-write-commit-graph",
    "--no-show-forced-updates",
    "--no-progress",
)
_TIPS_ONLY = ("--depth=1", "--filter=blob:none")
_PUSH = (
    "push",
    "--porcelain",
    "--no-verify",
    "--no-follow-tags",
    "--no-signed",
    "--no-force",
    "--recurse-submodules=no",
    "--no-progress",
)


class Remotes:
    """Reach remotes on behalf of one repository.

    Args:
        trees: of the same repository.
        runtime_dir: a private folder (mode 0700) for control sockets of ssh; None for no shared connections.
    """

    def __init__(self, core: Core, trees: Trees, runtime_dir: str | None) -> None:
        self._core = core
        self._trees = trees
        self._runtime_dir = runtime_dir
        self._sockets: set[str] = set()
        self._opened: set[str] = set()
        self._user_ssh: bool | None = None
        self._straight: dict[str, bool] = {}
        self._wary: dict[str, float] = {}
        self._unfiltered: dict[str, float] = {}

    def fetch(
        self,
        remote: str,
        refspecs: Sequence[str],
        *,
        max_bytes: int,
        timeout: float | None,
        tips_only: bool,
        second: bool,
    ) -> None:
        """See `Git.fetch`."""
        for refspec in refspecs:
            if ":" not in refspec:
                raise ValueError(f"a refspec without its destination: {refspec!r}")
        if tips_only:
            self._fetch_tips(remote, refspecs, max_bytes, timeout)
            return
        now = time.monotonic()
        second = second and now >= self._unfiltered.get(remote, 0.0)
        first_max = min(max_bytes, WARY_BYTES) if second and now < self._wary.get(remote, 0.0) else max_bytes
        tries: list[Callable[[], None]] = [
            lambda: self._fetch_plainly(remote, refspecs, first_max, timeout),
            lambda: self._fetch_beside(remote, refspecs, first_max, timeout, filtered=False),
            lambda: self._fetch_beside(remote, refspecs, max_bytes, timeout, filtered=True),
        ]
        while True:
            try:
                tries.pop(0)()
                return
            except GitFailed as error:
                lacks = error.kind in _LACKING and leftout.some(self._core.git_dir)
                if error.kind is Kind.TOO_LARGE:
                    self._wary[remote] = now + WARY_SECONDS
                    error.next_step = error.next_step or NO_FILTER
                    del tries[:-1]
                if not tries or not (lacks or error.kind is Kind.TOO_LARGE) or (len(tries) == 1 and not second):
                    raise

    def _fetch_plainly(self, remote: str, refspecs: Sequence[str], max_bytes: int, timeout: float | None) -> None:
        with self._reaching(remote, self._core.fetching) as link:
            args = [*_FETCH, "--", link.url, *refspecs]
            ended = self._core.spawn(args, timeout=timeout, max_file=max_bytes, env=link.env, pass_fds=link.fds)
            link.judge(args, ended)

    def _fetch_tips(self, remote: str, refspecs: Sequence[str], max_bytes: int, timeout: float | None) -> None:
        from wire.gitio import secondtry  # rare

        # Named, as git takes no path for the name of a remote that may leave something out.
        with self._reaching(remote, [*self._core.fetching, *secondtry.SETTINGS]) as link:
            env = {**link.env, **secondtry.naming(link.env, link.url)}
            args = [*_FETCH, *_TIPS_ONLY, "--", secondtry.REMOTE, *refspecs]
            ended = self._core.spawn(args, timeout=timeout, max_file=max_bytes, env=env, pass_fds=link.fds)
            link.judge(args, ended)

    def _fetch_beside(
        self, remote: str, refspecs: Sequence[str], max_bytes: int, timeout: float | None, *, filtered: bool
    ) -> None:
        """Fetch where something is left out or, filtered, is to be; see `secondtry`."""
        from wire.gitio import secondtry  # rare

        with secondtry.SecondTry(self._core, filtered=filtered) as beside:
            if filtered:
                beside.keep_whole(refspecs[0].rpartition(":")[2])
            with self._reaching(remote, [*self._core.fetching, *beside.settings]) as link:
                env = {**link.env, **secondtry.naming(link.env, link.url)} if filtered else link.env
                args = [*_FETCH, "--", secondtry.REMOTE if filtered else link.url, *refspecs]
                ended = beside.core.spawn(args, timeout=timeout, max_file=max_bytes, env=env, pass_fds=link.fds)
                if filtered and ended.status != 0 and secondtry.without_filter(ended.stderr):
                    self._unfiltered[remote] = time.monotonic() + WARY_SECONDS
                link.judge(args, ended)
            beside.take_over(beside.check())

    def fetch_few(self, remote: str, refspecs: Sequence[str], *, base: str, max_bytes: int) -> bool:
        """Fetch what little is new since `base` in a shorter way (see `few`), where children stay.

        Returns False where the ordinary way is to be taken; no ref was changed then.

        Args:
            refspecs: each of one ref, which may be replaced here.
            base: a commit that is here with all that it reaches.
            max_bytes: as for `Git.fetch`.

        Raises:
            GitFailed: it took too long, or was cancelled.
        """
        places = few.wanted(refspecs)
        if not places or not self._core.lingers or leftout.some(self._core.git_dir):
            return False
        with self._reaching(remote, [*self._core.fetching, *few.SETTINGS]) as link:
            if not self._is_straight(link):
                return False
            args = [*few.COMMAND, link.url, *places]
            ended = self._core.spawn(args, max_file=max_bytes, env=link.env, pass_fds=link.fds)
            if ended.cut in ("timeout", "cancelled"):
                link.judge(args, ended)
        plain = ended.status == 0 and ended.cut is None
        return plain and few.take(self._core, self._trees, places, ended.stdout, base)

    def push(
        self, remote: str, refspecs: Sequence[str], *, replace: Mapping[str, str], timeout: float | None
    ) -> dict[str, PushResult]:
        """See `Git.push_refs`."""
        wanted = []
        for refspec in refspecs:
            source, _, ref = refspec.rpartition(":")
            if not source or source.startswith("+") or not ref.startswith("refs/"):
                raise ValueError(f"no refspec that wire pushes: {refspec!r}")
            wanted.append(ref)
        for ref in replace:
            if not ref.startswith(REPLACEABLE) or ref not in wanted:
                raise ValueError(f"{ref} is never replaced")
        leases = [f"--force-with-lease={ref}:{old}" for ref, old in replace.items()]
        with self._reaching(remote) as link:
            args = [*_PUSH, *leases, "--", link.url, *refspecs]
            ended = self._core.spawn(args, timeout=timeout, max_output=_LISTING_MAX, env=link.env, pass_fds=link.fds)
            told = classify.remote_lines(ended.stderr.decode("utf-8", "replace"))
            lines = parse.porcelain(ended.stdout) if ended.cut is None else {}
            results = {}
            for ref in wanted:
                shown = tuple(classify.redact(line, self._core.secrets) for line in told)
                result = parse.push_result(lines[ref], shown, forced=ref in replace) if ref in lines else None
                if result is None:
                    raise link.push_failure(args, ended, lines.get(ref))
                results[ref] = result
            if ended.status != 0 and all(result.status in ("ok", "up-to-date") for result in results.values()):
                # The lines say yes, the exit status says no: it counts as not pushed until the remote shows it.
                link.judge(args, ended)
        return results

    def ls_remote(self, remote: str, patterns: Sequence[str], *, timeout: float | None) -> dict[str, str]:
        """See `Git.ls_remote`."""
        listed = parse.refs(self._list(remote, (), patterns, timeout))
        # git matches the tail of a name; an exact one is meant exactly.
        exact = {pattern for pattern in patterns if not re.search(r"[*?\[]", pattern)}
        globs = len(exact) < len(patterns)
        return {name: oid for name, oid in listed.items() if not patterns or name in exact or globs}

    def default_branch(self, remote: str, *, timeout: float | None) -> str | None:
        """See `Git.default_branch`."""
        listed = self._list(remote, ("--symref",), ("HEAD",), timeout)
        found = re.search(rb"^ref: (refs/heads/[^\t\n]+)\tHEAD$", listed, re.MULTILINE)
        return found[1].decode("utf-8", "surrogateescape") if found else None

    def close_connections(self) -> None:
        """See `Git.close_connections`."""
        for socket in sorted(self._sockets):
            self._close(socket)
        self._opened.clear()
        _OPENED.discard(self)
        # What the user configured may have been the reason for closing.
        self._user_ssh = None
        self._straight.clear()

    def leave(self) -> None:
        """End the shared connections that began here, once nobody uses them; others found them and keep them."""
        for socket in sorted(self._opened):
            self._close(socket, at_once=False)
        self._opened.clear()

    def _list(self, remote: str, how: Sequence[str], patterns: Sequence[str], timeout: float | None) -> bytes:
        homeless = not os.path.isdir(self._core.git_dir)
        with self._reaching(remote) as link:
            args = ["ls-remote", "--quiet", *how, "--", link.url, *patterns]
            ended = self._core.spawn(
                args,
                timeout=timeout,
                max_output=_LISTING_MAX,
                env=link.env,
                pass_fds=link.fds,
                homeless=homeless,
            )
            link.judge(args, ended)
        return ended.stdout

    @contextlib.contextmanager
    def _reaching(self, remote: str, settings: Sequence[tuple[str, str]] = ()) -> Iterator["_Link"]:
        if not remote or remote.startswith("-"):
            raise ValueError("no remote")
        self._core.secrets.update(classify.secrets_of(remote))
        try:
            access = credentials.access(remote)
        except ValueError as e:
            raise GitFailed(str(e), kind=Kind.AUTH, next_step="write the remote's URL without them") from e
        socket = None
        env = {**access.variables, **self._core.settings((*access.settings, *settings))}
        agent = self._agent(remote)
        if agent is not None:
            env[sshagent.NAME] = agent
        if not self._user_chose_ssh():
            socket = self._control_path(remote)
            env["GIT_SSH_COMMAND"] = ssh.ssh_command(socket)
        if socket is not None:
            self._sockets.add(socket)
            if not os.path.exists(socket):
                self._opened.add(socket)
                if not _OPENED:
                    atexit.register(leave_connections)
                _OPENED.add(self)
        trace = _trace_file() if remote.lower().startswith(("http:", "https:")) else None
        if trace is not None:
            env |= {"GIT_TRACE_CURL": f"/proc/self/fd/{trace}", "GIT_TRACE_CURL_NO_DATA": "1"}
        try:
            yield _Link(self._core, access.url, env, trace)
        except GitFailed as e:
            if socket is not None and e.kind in (Kind.TIMEOUT, Kind.NETWORK):
                self._close(socket)
            if e.kind in (Kind.AUTH, Kind.HOST_KEY, Kind.NETWORK):
                self._user_ssh = None
            if e.kind is Kind.AUTH and e.label == "publickey" and agent is None:
                e.next_step = sshagent.NO_AGENT
            if e.next_step is not None:
                e.next_step = ssh.addressed(e.next_step, remote)
            raise
        finally:
            if trace is not None:
                os.close(trace)

    def _agent(self, remote: str) -> str | None:
        """Return the socket of an ssh agent for a remote that may be reached by ssh."""
        if os.path.isabs(remote) or remote.lower().startswith(("http:", "https:", "file:")):
            return None

        def ask_manager() -> bytes:
            with contextlib.suppress(GitFailed, NotStarted):
                return self._core.run_other([*sshagent.ASK_MANAGER], timeout=5.0).stdout
            return b""

        return sshagent.find(self._core.environ, ask_manager)

    def _control_path(self, remote: str) -> str | None:
        path = None if os.path.isabs(remote) else ssh.control_path(self._runtime_dir, remote)
        return path if path is not None and ssh.private(os.path.dirname(path)) else None

    def _close(self, socket: str, *, at_once: bool = True) -> None:
        if not os.path.exists(socket):
            return
        with contextlib.suppress(GitFailed, NotStarted):
            self._core.run_other(ssh.exit_command(socket, at_once=at_once), timeout=5.0)
        # One that nobody listens at would only delay the next connection.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket)

    def _is_straight(self, link: "_Link") -> bool:
        """Tell whether no rule of the user's (`insteadOf`) sends git elsewhere: not each of its commands heeds them."""
        if link.url not in self._straight:
            ended = self._core.spawn(("ls-remote", "--get-url", "--", link.url), env=link.env)
            if ended.status != 0:
                return False
            self._straight[link.url] = ended.stdout == os.fsencode(f"{link.url}\n")
        return self._straight[link.url]

    def _user_chose_ssh(self) -> bool:
        if self._user_ssh is None:
            args = ("config", "--get", "core.sshCommand")
            homeless = not os.path.isdir(self._core.git_dir)
            self._user_ssh = ssh.user_chose_ssh(self._core.environ) or (
                bool(self._core.spawn(args, homeless=homeless).stdout.strip())
            )
        return self._user_ssh


_OPENED: set[Remotes] = set()
"""Who opened a shared connection in this process and has not closed it."""


def leave_connections() -> None:
    """End the shared ssh connections that this process opened, for a command that is done; by itself at exit.

    Where a daemon or another command had opened one before, it stays; what goes over one at this moment goes on.
    """
    while _OPENED:
        _OPENED.pop().leave()


class _Link:
    """One conversation with a remote: what its child gets, and how its end is judged."""

    def __init__(self, core: Core, url: str, env: dict[str, str], trace: int | None) -> None:
        self.url = url
        self.env = env
        self.fds = () if trace is None else (trace,)
        self._core = core

    def judge(self, args: Sequence[str], ended: Ended) -> None:
        if ended.cut is not None or ended.status != 0:
            raise self._with_wait(self._core.failure(args, ended))

    def push_failure(self, args: Sequence[str], ended: Ended, line: parse.PushLine | None) -> GitFailed:
        error = self._with_wait(self._core.failure(args, ended))
        if line is None or error.kind is not Kind.UNKNOWN:
            return error
        said = "; ".join(filter(None, (line.summary, line.reason, *classify.remote_lines(error.stderr))))
        return GitFailed(
            f"git push failed, and the host says that this will pass: {classify.redact(said)}",
            kind=Kind.NETWORK,
            label="host",
            stderr=error.stderr,
        )

    def _with_wait(self, error: GitFailed) -> GitFailed:
        """Add the `Retry-After` that git itself reads past and does not tell."""
        if error.kind is Kind.RATE_LIMIT and error.retry_after is None and self.fds:
            error.retry_after = _retry_after(os.pread(self.fds[0], _TRACE_MAX, 0), time.time())
            if error.retry_after is not None:
                error.details["retry_after"] = error.retry_after
        return error


def _trace_file() -> int | None:
    # In memory only: git redacts the user's credentials in its trace, but not the headers that a user configured.
    if not hasattr(os, "memfd_create"):
        return None
    return os.memfd_create("git-trace", os.MFD_CLOEXEC)


_RETRY_AFTER = rb"(?i)header: *retry-after: *([^\r\n]{1,100})"


def _retry_after(trace: bytes, now: float) -> float | None:
    found = re.findall(_RETRY_AFTER, trace)
    if not found:
        return None
    value = found[-1].decode("ascii", "replace").strip()
    if value.isdigit():
        return float(value)
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return None
