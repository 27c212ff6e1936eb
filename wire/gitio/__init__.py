"""Everything that wire asks of git: hardened children, classified failures, typed plumbing.

Only this package imports GitPython, and only when the first child starts. Rules that it keeps:

- No child prompts, signs, runs hooks, follows another repository's variables, outlives its time, or leaves processes,
  locks or half-written files behind.
- What git says is parsed from formats made for programs; paths and contents are bytes, object ids are validated.
- A failure is a `GitFailed` whose `kind` says what to do about it, in git's own words and without credentials.
- Nothing here judges content: a fetched object is only as good as the verifier says.

    git = Git("/w/.git", environ=os.environ, runtime_dir="/run/user/1000/wire")
    git.fetch(remote, ["+refs/heads/main:refs/wire/incoming"], max_bytes=64 << 20)
    history = git.history(verified, git.resolve("refs/wire/incoming"), max_count=1000)
    commit = git.write_commit("refs/wire/outgoing", base=tip, parents=[tip], message="mac: 1 line", changes=[…])
    result = git.push(remote, f"{commit}:refs/heads/main")
"""

from wire.gitio.blobs import blob_id
from wire.gitio.classify import REMOTE_KINDS, GitFailed, Kind, printable, redact_url
from wire.gitio.core import Result
from wire.gitio.credentials import told_url, without_credentials
from wire.gitio.discover import Bare, Repository, discover, discover_bare, work_trees
from wire.gitio.environment import quarantine
from wire.gitio.fastimport import Drop, Put
from wire.gitio.git import OLDEST_GIT, Git
from wire.gitio.packing import Counts
from wire.gitio.parse import Change, Commit, Entry, History, PushResult
from wire.gitio.refs import RefUpdate
from wire.gitio.remote import REPLACEABLE, leave_connections
from wire.gitio.tips import file_in, refs_below

__all__ = [
    "OLDEST_GIT",
    "REMOTE_KINDS",
    "REPLACEABLE",
    "Bare",
    "Change",
    "Commit",
    "Counts",
    "Drop",
    "Entry",
    "Git",
    "GitFailed",
    "History",
    "Kind",
    "PushResult",
    "Put",
    "RefUpdate",
    "Repository",
    "Result",
    "blob_id",
    "discover",
    "discover_bare",
    "file_in",
    "leave_connections",
    "printable",
    "quarantine",
    "redact_url",
    "refs_below",
    "told_url",
    "without_credentials",
    "work_trees",
]
