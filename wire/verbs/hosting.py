"""What the remote is known to enforce. Nothing is tried: a rule that is missing shows only when somebody breaks it.

What is known comes from three places: the settings and hooks of a repository on this machine; what the remote did
before, as incidents tell; and what its kind of host can do at all. Everything else is "unknown", and no machine relies
on any of it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from wire.daemon import transport
from wire.errors import WireError
from wire.gitio import Bare, Git, GitFailed, discover_bare, redact_url
from wire.setup import hosthook
from wire.store import incidents
from wire.store.incidents import Incident
from wire.verbs.here import Here

YES, NO, UNKNOWN = "yes", "no", "unknown"
TITLES = {
    "bare": "a bare repository",
    "github": "GitHub",
    "gitlab": "GitLab",
    "gitea": "Gitea or Forgejo",
    "other": "a host of no kind that is known here; --kind names it",
}
FORCED, DELETED, OBJECTS, CONTENT = "forced-pushes", "deletion", "objects", "content"
REFUSES = {
    FORCED: "refuses forced pushes of the branch",
    DELETED: "refuses to delete the branch",
    OBJECTS: "checks the objects of a push",
    CONTENT: "judges what a push does to the wire before it is taken",
}
"""The rules, and what they say of the remote."""

_HOOK = "wire hooks install pre-receive"
_SWITCH: dict[str, dict[str, str]] = {
    "bare": {
        FORCED: "git config receive.denyNonFastForwards true",
        DELETED: "git config receive.denyDeletes true",
        OBJECTS: "git config receive.fsckObjects true",
        CONTENT: f"`{_HOOK} --repo DIR` on the host",
    },
    "github": {
        FORCED: "Settings, Rules, Rulesets: a branch ruleset with `Block force pushes`",
        DELETED: "Settings, Rules, Rulesets: a branch ruleset with `Restrict deletions`",
        CONTENT: "only GitHub Enterprise Server has pre-receive hooks, by the site's administrator",
    },
    "gitlab": {
        FORCED: "Settings, Repository, Protected branches: the branch, with `Allowed to force push` off",
        DELETED: "Settings, Repository, Protected branches: the branch",
        CONTENT: f"self-managed: `{_HOOK} --script` as a server hook of the project, by the administrator",
    },
    "gitea": {
        FORCED: "Settings, Branches: protect the branch, without force pushes",
        DELETED: "Settings, Branches: protect the branch",
        CONTENT: f"`{_HOOK} --repo DIR` on the host, or its `--script` as a git hook in the settings",
    },
    "other": {},
}
"""How each rule is switched on, by kind of host."""

_KNOWN_HOSTS = {"github.com": "github", "ssh.github.com": "github", "gitlab.com": "gitlab", "codeberg.org": "gitea"}
_CLOSED = ("github.com", "ssh.github.com", "gitlab.com")
"""Hosts that run no hooks of their users."""
_SAID_BY_HOOK = "refused by the host's hook"


class Rule(NamedTuple):
    """One thing that a remote may enforce.

    Attributes:
        name: `forced-pushes`, `deletion`, `objects` or `content`.
        enforced: `yes`, `no` or `unknown`.
        how: how that is known.
        switch: how it is switched on; None where it is on, or where nothing is known of the host.
    """

    name: str
    enforced: str
    how: str
    switch: str | None


class Checked(NamedTuple):
    """What the remote is known to enforce.

    Attributes:
        remote: its URL without credentials.
        kind: a key of `TITLES`.
        rules: every rule.
        failure: why the remote could not be reached just now.
    """

    remote: str
    kind: str
    rules: tuple[Rule, ...]
    failure: WireError | None


def check(here: Here, kind: str | None = None) -> Checked:
    """Return what the remote of a wire is known to enforce; it is read from, and nothing is pushed.

    Args:
        kind: what host it is, where its name does not tell.
    """
    remote, branch = here.config.remote, here.config.branch
    git = Git(here.places.git_dir, environ=here.settings.environ, runtime_dir=here.settings.runtime_dir)
    failure: WireError | None = None
    default: str | None = None
    try:
        default = git.default_branch(remote)
    except GitFailed as error:
        failure = error
    host = host_of(remote)
    kind = kind or kind_of(remote)
    found: dict[str, tuple[str, str]] = {}
    local = transport.of(remote).path
    if local is not None and failure is None:
        found = _here(discover_bare(here.settings.environ, local), is_default=default == f"refs/heads/{branch}")
    elif host in _CLOSED:
        found[CONTENT] = (NO, f"{host} runs no hooks of its users")
        if default == f"refs/heads/{branch}":
            found[DELETED] = (YES, f"it is the default branch, which {host} does not let anybody delete")
    # What it did weighs more than what it could do, unless its settings are there to be read.
    before = _before(incidents.list_(here.places.incidents_dir))
    found = {**found, **before} if local is None else {**before, **found}
    rules = []
    for name in REFUSES:
        enforced, how = found.get(name, (UNKNOWN, "a remote does not tell; it would have to be tried"))
        rules.append(Rule(name, enforced, how, None if enforced == YES else _SWITCH[kind].get(name)))
    return Checked(redact_url(remote), kind, tuple(rules), failure)


def host_of(remote: str) -> str:
    """Return the name of the host in a remote's URL, empty for a path."""
    if transport.of(remote).kind == "local":
        return ""
    if "://" not in remote:
        return remote.partition(":")[0].rpartition("@")[2].lower()
    try:
        return (urlsplit(remote).hostname or "").lower()
    except ValueError:
        return ""


def kind_of(remote: str) -> str:
    """Return what kind of host a remote is on, as far as its name tells."""
    host = host_of(remote)
    if not host:
        return "bare"
    known = _KNOWN_HOSTS.get(host)
    labels = re.split(r"[.-]", host)
    named = next((kind for kind in ("github", "gitlab", "gitea") if kind in labels), None)
    return known or named or ("gitea" if "forgejo" in labels else "other")


def _here(found: Bare, *, is_default: bool) -> dict[str, tuple[str, str]]:
    """Return what a repository on this machine enforces, by its own settings."""
    rules: dict[str, tuple[str, str]] = {}
    for name, setting in zip((FORCED, DELETED, OBJECTS), hosthook.SWITCHES, strict=True):
        on = hosthook.is_on(found.settings, setting)
        rules[name] = (YES if on else NO, f"{setting} is {'on' if on else 'off'} in {found.git_dir}")
    if hosthook.judges(found):
        by_hook = (YES, f"wire's hook is in {hosthook.place(found)}")
        rules |= {FORCED: by_hook, DELETED: by_hook, CONTENT: by_hook}
    else:
        rules[CONTENT] = (NO, f"no hook of wire's is in {hosthook.place(found)}")
    kept = found.settings.get("receive.denydeletecurrent", "refuse").lower() in ("refuse", "true", "yes", "on", "1")
    if rules[DELETED][0] == NO and is_default and kept:
        rules[DELETED] = (YES, "it is the branch of HEAD, which git does not delete (receive.denyDeleteCurrent)")
    return rules


def _before(told: Sequence[Incident]) -> dict[str, tuple[str, str]]:
    """Return what the remote did before, as this machine saw it."""
    rules: dict[str, tuple[str, str]] = {}
    for one in told:
        if one.code == "FORCED":
            gone = "new_tip" in one.evidence and one.evidence["new_tip"] is None
            did = "the branch was deleted" if gone else "its history was replaced"
            rules[DELETED if gone else FORCED] = (NO, f"{did} at {one.last} (incident {one.id})")
        elif one.code == "REJECTED" and _SAID_BY_HOOK in one.message:
            rules[CONTENT] = (YES, f"wire's hook refused a push at {one.last} (incident {one.id})")
    return rules
