"""Say what a failed git child failed of, in one word and in git's own first lines.

Pure: text and an exit status in, a `Failure` out; nothing is run, read or timed here. Rules that it keeps:

- git runs with `LC_ALL=C`, so its messages have one language. What the *server* printed (lines that start with
  `remote:`) is the host's word: it decides nothing where git or ssh said something themselves, so that a hook which
  prints "Permission denied (publickey)" is not an authentication failure.
- The first rule that matches wins; the table's order is part of its meaning (a full disk also ends with "early EOF").
- A text that leaves this module holds no credentials and no control characters, and is bounded.

    >>> classify("fatal: unable to access 'https://h/': Could not resolve host: h\\n", 128).kind
    <Kind.NETWORK: 'network'>

It does not decide what to do about a failure: that is the cadence's job.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from wire.errors import FAILED, REMOTE, WireError


class Kind(StrEnum):
    """Name a class of failures that a caller treats alike; a plain string to programs."""

    AUTH = "auth"
    HOST_KEY = "host-key"
    NETWORK = "network"
    TIMEOUT = "timeout"
    NOT_FOUND = "not-found"
    NO_REF = "no-ref"
    REJECTED = "rejected"
    RACE = "race"
    RATE_LIMIT = "rate-limit"
    TOO_LARGE = "too-large"
    MALFORMED = "malformed"
    DISK_FULL = "disk-full"
    CORRUPT = "corrupt"
    LOCKED = "locked"
    CLONE = "clone"
    GIT_MISSING = "git-missing"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


REMOTE_KINDS = frozenset(
    {
        Kind.AUTH,
        Kind.HOST_KEY,
        Kind.NETWORK,
        Kind.TIMEOUT,
        Kind.NOT_FOUND,
        Kind.NO_REF,
        Kind.REJECTED,
        Kind.RACE,
        Kind.RATE_LIMIT,
        Kind.TOO_LARGE,
        Kind.MALFORMED,
    }
)
"""The kinds that speak about the remote; the others speak about this machine."""

_MEANING = {
    Kind.AUTH: "authentication",
    Kind.HOST_KEY: "host key",
    Kind.NOT_FOUND: "not found",
    Kind.NO_REF: "no such branch",
    Kind.RATE_LIMIT: "rate limit",
    Kind.TOO_LARGE: "too large",
    Kind.MALFORMED: "objects that git refuses",
    Kind.DISK_FULL: "disk full",
    Kind.CORRUPT: "damaged repository",
    Kind.CLONE: "clone cannot be used",
}

_NEXT_STEP = {
    "publickey": "check that this user's ssh key (or ssh-agent) is known to the host: ssh -T <the remote's user@host>",
    "http-401": "give git credentials for this remote: a credential helper, or a renewed token",
    "http-403": "the account is known but may not do this: ask for write access, or renew the token",
    "not-git": "what answered is a web page, not git: a login page or a captive portal stands before the remote",
    "ownership": "trust the folder for git: git config --global --add safe.directory <the remote's path>",
    "unknown-host": "connect once by hand and compare the fingerprint: ssh <the remote's user@host>",
    "changed-host": "compare the new fingerprint with the host's owner, then: ssh-keygen -R <the remote's host>",
    "object-format": "the clone was made for objects of another format than the remote has; it must be made anew",
    "transport": "use a remote over ssh, https, http or a local path",
}


class Failure(NamedTuple):
    """Hold a verdict: kind, a finer label, git's own first reason lines, and what the text named."""

    kind: Kind
    label: str
    reasons: tuple[str, ...]
    retry_after: float | None = None
    object_id: str | None = None


class GitFailed(WireError):
    """Report that a git child did not do what it was asked to.

    Args:
        message: what was tried and git's own reason; already redacted.
        kind: the class of failure, see `Kind`.
        label: the finer cause (`dns`, `refused`, `tls`, `http-401`, `publickey`, …).
        stderr: everything git printed, redacted and bounded.
        retry_after: seconds that the host asked to wait, where it said so.
        object_id: the object that is missing or damaged, where git named one.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Kind,
        label: str = "",
        stderr: str = "",
        retry_after: float | None = None,
        object_id: str | None = None,
        next_step: str | None = None,
    ) -> None:
        details: dict[str, object] = {"kind": str(kind)}
        if label:
            details["label"] = label
        if retry_after is not None:
            details["retry_after"] = retry_after
        if object_id is not None:
            details["object"] = object_id
        super().__init__(message, reason=f"git-{kind}", next_step=next_step or _NEXT_STEP.get(label), details=details)
        self.kind = kind
        self.label = label
        self.stderr = stderr
        self.retry_after = retry_after
        self.object_id = object_id
        self.exit_status = REMOTE if kind in REMOTE_KINDS else FAILED


# Each row: kind, label, pattern; compiled when something failed, since all of them take milliseconds. `(?m)` and
# anchors keep a server's banner from matching by accident.
_RULES: tuple[tuple[Kind, str, str], ...] = (
    (Kind.HOST_KEY, "changed-host", r"REMOTE HOST IDENTIFICATION HAS CHANGED|^Host key for .* has changed"),
    (Kind.HOST_KEY, "unknown-host", r"^Host key verification failed|^No \S+ host key is known for"),
    (Kind.RATE_LIMIT, "http-429", r"returned error: 429|RPC failed; HTTP 429|\btoo many requests\b"),
    (Kind.DISK_FULL, "disk-full", r"No space left on device|Disk quota exceeded|Out of diskspace"),
    (Kind.TOO_LARGE, "size-cap", r"died of signal 25\b|: File too large|Filesize limit exceeded"),
    (Kind.AUTH, "publickey", r"Permission denied \([\w,.@ -]+\)|Too many authentication failures"),
    (Kind.AUTH, "publickey", r"^(ERROR: )?Permission to \S+ denied to|marked as read[ -]only"),
    (Kind.AUTH, "http-401", r"could not read (Username|Password) for|Authentication failed for"),
    (Kind.AUTH, "http-401", r"returned error: 401|HTTP 401|unable to get password|told us to quit"),
    (Kind.AUTH, "http-403", r"returned error: 403|HTTP 403"),
    (Kind.AUTH, "proxy", r"returned error: 407|HTTP 407|CONNECT tunnel failed, response 407"),
    (Kind.AUTH, "not-git", r"not valid: is this a git repository|url base from redirection|redirects followed"),
    (Kind.AUTH, "ownership", r"detected dubious ownership"),
    (Kind.NO_REF, "no-ref", r"couldn't find remote ref|Remote branch .* not found|no such remote ref"),
    (Kind.NOT_FOUND, "no-repository", r"^(ERROR: )?Repository not found|^fatal: repository '.*' not found"),
    (Kind.NOT_FOUND, "no-repository", r"does not appear to be a git repository"),
    (Kind.NOT_FOUND, "http-404", r"returned error: (404|410)|HTTP (404|410)"),
    (Kind.NOT_FOUND, "no-git-there", r"git-(upload|receive)-pack: (command )?not found"),
    (Kind.UNKNOWN, "transport", r"transport '.*' not allowed|Unable to find remote helper for"),
    (Kind.REJECTED, "object-format", r"support this repository's hash algorithm|^fatal: mismatched algorithms"),
    (Kind.REJECTED, "http-413", r"returned error: 413|HTTP 413"),
    (Kind.NETWORK, "dns", r"Could not resolve (host|proxy)|Name or service not known|nodename nor servname"),
    (Kind.NETWORK, "dns", r"Temporary failure in name resolution|No address associated with hostname"),
    (Kind.NETWORK, "refused", r"Connection refused|Couldn't connect to server"),
    (Kind.NETWORK, "unreachable", r"No route to host|Network is unreachable|Network is down|Host is down"),
    (Kind.NETWORK, "tls", r"SSL certificate|certificate verif|gnutls_|SSL_|error setting certificate|TLS connect"),
    (Kind.NETWORK, "timed-out", r"timed out|Timeout was reached|Operation too slow|server \S+ not responding"),
    (Kind.NETWORK, "http-5xx", r"returned error: 5\d\d|HTTP 5\d\d"),
    (Kind.MALFORMED, "fsck", r"fsck error in pack|^error: object [0-9a-f]{40,64}: \w+:"),
    (Kind.MALFORMED, "bad-pack", r"did not send all necessary objects|did not receive expected object"),
    (Kind.MALFORMED, "bad-pack", r"pack has (bad object|\d+ unresolved)"),
    (Kind.LOCKED, "lock-file", r"Unable to create '.*\.lock': File exists|Another git process seems to be"),
    (Kind.RACE, "ref-moved", r"cannot lock ref '.*': (is at .* but expected|reference already exists)"),
    (Kind.CORRUPT, "ref", r"cannot lock ref '.*': .*: reference broken"),
    (Kind.RACE, "ref-moved", r"cannot lock ref '.*': (unable to resolve|reference is missing)"),
    (Kind.RACE, "ref-moved", r"\((non-fast-forward|fetch first|stale info)\)|does not contain [0-9a-f]{40,64}\)"),
    (Kind.CORRUPT, "object", r"object file .* is empty|loose object [0-9a-f]+ .* is corrupt"),
    (Kind.CORRUPT, "object", r"unable to (unpack|parse|read) .*[0-9a-f]{40}|inflate: data stream error"),
    (Kind.CORRUPT, "object", r"(bad|missing) (object|tree|blob|commit)|bad tree object|could not parse commit"),
    (Kind.CORRUPT, "object", r"(Could not read|failed to read|unable to find|hash mismatch) [0-9a-f]{40}"),
    (Kind.CORRUPT, "object", r"Failed to traverse parents|revision walk setup failed|^fatal: not a tree object"),
    (Kind.CORRUPT, "pack", r"packfile .* (cannot|does not|is|claims|far)|index file .* is (too small|corrupt)"),
    (Kind.CORRUPT, "ref", r"ignoring broken ref|bad ref for|invalid (sha1|object) pointer|bad signature"),
    (Kind.CLONE, "not-a-clone", r"not a git repository"),
    (Kind.CLONE, "config", r"bad config|bad (numeric|boolean) config value|unknown repository extension"),
    (Kind.CLONE, "permission", r"insufficient permission for|: Permission denied$|Read-only file system"),
    (Kind.NETWORK, "cut", r"Connection (reset|closed) by|kex_exchange_identification|Broken pipe|RPC failed"),
    (Kind.NETWORK, "cut", r"hung up unexpectedly|early EOF|unexpected disconnect|Empty reply from server"),
    (Kind.NETWORK, "cut", r"Recv failure|transfer closed|expected flush after|invalid server response"),
    (Kind.NETWORK, "cut", r"unable to access '|Could not read from remote repository|invalid index-pack output"),
)

# Only read where neither git nor ssh gave a reason of their own; the host's word.
_REMOTE_RULES: tuple[tuple[Kind, str, str], ...] = (
    (Kind.RATE_LIMIT, "rate-limit", r"\brate[ -]?limit|too many requests|abuse detection"),
    (Kind.NOT_FOUND, "no-repository", r"repository (was )?not found|project you were looking for could not be"),
    (Kind.NOT_FOUND, "no-repository", r"repository .* does not exist"),
    (Kind.AUTH, "no-access", r"not allowed to (push|pull|access|download)|access denied|permission to .* denied"),
    (Kind.AUTH, "no-access", r"invalid username or (password|token)|authentication failed|unauthorized"),
)

# A verdict by these may still be sharpened by what the host printed: over ssh it comes with nothing else.
_VAGUE = frozenset({"cut", "http-403", "http-5xx", ""})

_RACES = (
    r"(?i)failed to update ref|failed to lock|cannot lock ref|incorrect old value|fetch first|stale info"
    r"|reference already exists|is at [0-9a-f]+ but expected"
)
_PASSING = r"(?i)internal (server )?error|unavailable|timed? ?out|try again|temporar"

_WAIT = r"(?i)retry[ -]after:? *(\d{1,6})|(?:retry|try again) (?:after|in) (\d{1,6}) ?s"
_OBJECT = r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b|objects/([0-9a-f]{2})/([0-9a-f]{38,62})\b"
_NOISE = (
    r"^(@+$|hint:|warning:|From \S|To \S|Please make sure you have the correct access|and the repository exists\."
    r"|@ +WARNING: |IT IS POSSIBLE THAT SOMEONE|Someone could be eavesdropping|It is also possible that a host key"
    r"|Please contact your system admin|Add correct host key in|Offending \S+ key in|  remove with:|  ssh-keygen "
    r"|fast-import: dumping crash report|remote: *(Enumerating|Counting|Compressing|Resolving|Total|Processing)\b)"
)

_REASON_LINES = 4
_REASON_LENGTH = 300


def classify(stderr: str, status: int) -> Failure:
    """Return what a child that printed `stderr` and ended with `status` failed of.

    Args:
        stderr: as printed under `LC_ALL=C`; need not be redacted yet.
        status: exit status; negative for a signal, as `subprocess` gives it.
    """
    lines = _lines(stderr)
    own = "\n".join(line for line in lines if not line.startswith("remote:") and "remote unpack failed" not in line)
    kind, label = _match(_RULES, own) or (Kind.UNKNOWN, "")
    if label in _VAGUE:
        kind, label = _match(_REMOTE_RULES, stderr) or (kind, label)
    if kind is Kind.UNKNOWN and not label and status in (-25, 128 + 25):
        kind, label = Kind.TOO_LARGE, "size-cap"
    wait = re.search(_WAIT, stderr) if kind is Kind.RATE_LIMIT else None
    named = re.search(_OBJECT, own) if kind in (Kind.CORRUPT, Kind.MALFORMED) else None
    return Failure(
        kind,
        label,
        reason_lines(stderr),
        float(wait[1] or wait[2]) if wait else None,
        (named[1] + named[2] if named[1] else named[0]) if named else None,
    )


def failed(command: str, stderr: str, status: int, *, secrets: Iterable[str] = ()) -> GitFailed:
    """Return the error for a child that ended badly by itself.

    Args:
        command: the name of git's subcommand, never its arguments.
        secrets: strings that must not appear in any text, such as the password of a remote's URL.
    """
    verdict = classify(stderr, status)
    hidden = tuple(secrets)
    reasons = [redact(line, hidden) for line in verdict.reasons]
    said = "; ".join(reasons) if reasons else f"it printed no reason (exit status {status})"
    what = _MEANING.get(verdict.kind, verdict.kind.value)
    told = what if not verdict.label or verdict.label == verdict.kind else f"{what}, {verdict.label}"
    return GitFailed(
        f"git {command} failed ({told}): {said}",
        kind=verdict.kind,
        label=verdict.label,
        stderr=redact(printable(stderr, keep_lines=True), hidden),
        retry_after=verdict.retry_after,
        object_id=verdict.object_id,
    )


def judge_rejection(reason: str, *, forced: bool = False) -> str:
    """Return `race`, `passing` or `rejected` for the bracketed reason of a `[remote rejected]` line.

    A server that lost the race for its own lock says so with the same words "remote rejected" as a policy does.

    Args:
        forced: the push replaced a ref on purpose, so "non-fast-forward" is the host's policy and no race.
    """
    if re.search(_RACES, reason) or ("non-fast-forward" in reason and not forced):
        return "race"
    return "passing" if re.search(_PASSING, reason) else "rejected"


def reason_lines(stderr: str) -> tuple[str, ...]:
    """Return the first few lines that give a reason: without hints, progress and control characters."""
    told = [line for line in _lines(stderr) if not re.match(_NOISE, line)]
    return tuple(line[:_REASON_LENGTH] for line in told[:_REASON_LINES])


def remote_lines(stderr: str) -> tuple[str, ...]:
    """Return the first few lines that the server printed (`remote: …`), without that prefix."""
    told = [line for line in _lines(stderr) if line.startswith("remote:") and not re.match(_NOISE, line)]
    said = (line.removeprefix("remote:").strip() for line in told)
    return tuple(line[:_REASON_LENGTH] for line in said if line)[:_REASON_LINES]


def _lines(text: str) -> list[str]:
    # git rewrites progress lines with \r and pads the server's lines with blanks.
    return [line for line in (printable(part).rstrip() for part in re.split(r"[\r\n]+", text)) if line.strip()]


def _match(rules: Iterable[tuple[Kind, str, str]], text: str) -> tuple[Kind, str] | None:
    flags = re.MULTILINE | re.IGNORECASE
    return next(((kind, label) for kind, label, pattern in rules if re.search(pattern, text, flags)), None)


_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
_CONTROLS = "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"


def printable(text: str, *, keep_lines: bool = False) -> str:
    """Return `text` without terminal escapes, control characters and direction marks."""
    bare = re.sub(_ESCAPES, "", text)
    if keep_lines:
        return "\n".join(re.sub(_CONTROLS, "", line) for line in re.split(r"[\r\n]+", bare))
    return re.sub(_CONTROLS, "", bare.replace("\t", " "))


_URL = r"(?i)\b([a-z][a-z0-9+.-]{1,20})://([^\s'\"<>]+)"
_HEADER = (
    r"(?i)\b((?:proxy-)?authorization|private-token|job-token|x-[\w-]*token|(?:set-)?cookie)(\"?\s*[:=]\s*)[^\r\n'\"]+"
)
_CREDENTIALS = (
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{16})"
)
_BEARER = r"(?i)\b(bearer|basic|token)\s+[A-Za-z0-9+/_.=~-]{12,}"
HIDDEN = "***"


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` without the given secrets and without anything that looks like a credential."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    text = re.sub(_URL, _redact_match, text)
    text = re.sub(_HEADER, rf"\1\2{HIDDEN}", text)
    return re.sub(_BEARER, rf"\1 {HIDDEN}", re.sub(_CREDENTIALS, HIDDEN, text))


def redact_url(text: str) -> str:
    """Return a remote's URL, or a text that holds URLs, in a form that may be shown.

    User information of http(s) goes altogether, because a token often stands in the place of the name; with other
    schemes only the password goes. A query or fragment is replaced as a whole.
    """
    return redact(text)


def _redact_match(match: re.Match[str]) -> str:
    scheme, rest = match[1], match[2]
    authority, slash, path = rest.partition("/")
    userinfo, at, host = authority.rpartition("@")
    if at:
        name, colon, _ = userinfo.partition(":")
        if scheme.lower().startswith(("http", "ftp")):
            userinfo = HIDDEN
        elif colon:
            userinfo = f"{name}:{HIDDEN}"
    shown = f"{scheme}://{userinfo}{at}{host}{slash}{path}"
    return re.sub(r"([?#])[^\s]+", rf"\1{HIDDEN}", shown)


def secrets_of(remote: str) -> tuple[str, ...]:
    """Return the strings in a remote's URL that must never be printed, longest first."""
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(remote)
    except ValueError:
        return ()
    found = [parts.password or ""]
    if parts.scheme in ("http", "https"):
        found.append(parts.username or "")
    found.extend(value for value in re.findall(r"=([^&#]+)", f"{parts.query}#{parts.fragment}"))
    # Shorter ones would blank out half of an innocent text, and are no secrets.
    spelled = {form for secret in found for form in (secret, unquote(secret)) if len(form) >= 4}
    return tuple(sorted(spelled, key=lambda secret: (-len(secret), secret)))
