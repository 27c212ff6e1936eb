"""Build the environment of a git child: nothing leaks in that could redirect, prompt, sign, hook or rewrite.

Pure: mappings in, a mapping out. Rules that it keeps:

- Every inherited `GIT_*` variable is dropped, except a short list that says how *this user* reaches hosts (ssh
  command, certificates, where the config files are). `GIT_DIR` and its family would send our git elsewhere when wire is
  started from a git hook; `GIT_TRACE*` would mix into what we parse; `GIT_EXEC_PATH` would mix two versions of git.
- Nothing may ask: no terminal, no askpass, no editor, no interactive credential manager. Credential helpers stay.
- Settings go through `GIT_CONFIG_PARAMETERS`, in which git itself hands `-c` down: it wins over every config file and,
  unlike `-c`, is not in `ps`. It is one variable; for `GIT_CONFIG_COUNT` each process of git would search its whole
  environment twice a setting. git itself removes it before it starts the serving side of a remote on a local path, so
  that one's hooks do run.
- `url.*.insteadOf`, `credential.*` and `http.*` of the user are kept on purpose.

    >>> hardened({"PATH": "/usr/bin", "GIT_DIR": "/elsewhere"}, "/w/.git", ("mac", "mac@wire.invalid"))["GIT_ASKPASS"]
    ''
"""

import os
from collections.abc import Iterable, Mapping

KEPT = frozenset(
    {
        # How the user reaches hosts.
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_HTTP_PROXY_AUTHMETHOD",
        "GIT_HTTP_USER_AGENT",
        "GIT_PROXY_SSL_CAINFO",
        "GIT_PROXY_SSL_CERT",
        "GIT_PROXY_SSL_KEY",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_CERT",
        "GIT_SSL_CIPHER_LIST",
        "GIT_SSL_KEY",
        "GIT_SSL_NO_VERIFY",
        "GIT_SSL_VERSION",
        # Where the user's settings are.
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
    }
)
"""Names of `GIT_*` variables that are inherited; all others are not."""

# A sandbox hands its user's proxies and tokens down as GIT_CONFIG_KEY_<n>; of these only what concerns reaching hosts.
_KEPT_CONFIG = ("credential.", "http.", "url.", "core.sshcommand")

TOLERATED = (
    # Names and modes in trees: they would harm a checkout, and nothing is ever checked out from a tip.
    *("hasDot", "hasDotdot", "hasDotgit", "fullPathname", "emptyName", "nullSha1", "zeroPaddedFilemode", "badFilemode"),
    # Files that only a checkout would read.
    *("gitmodulesBlob", "gitmodulesLarge", "gitmodulesMissing", "gitmodulesName", "gitmodulesParse", "gitmodulesPath"),
    *("gitmodulesSymlink", "gitmodulesUpdate", "gitmodulesUrl"),
    *("gitattributesBlob", "gitattributesLarge", "gitattributesLineLength", "gitattributesMissing"),
    # Who made a commit, and when: it means nothing on a wire.
    *("badDate", "badDateOverflow", "badEmail", "badName", "badTimezone", "missingAuthor", "missingEmail"),
    *(
        "missingNameBeforeEmail",
        "missingSpaceBeforeDate",
        "missingSpaceBeforeEmail",
        "multipleAuthors",
        "zeroPaddedDate",
    ),
    "nulInCommit",
)
"""What git's check of incoming objects lets pass. History keeps such an object for ever, so that a vandal who pushed
one would stop the wire for ever; what they can harm is not used. Damage of the objects themselves is still refused."""

SETTINGS: tuple[tuple[str, str], ...] = (
    # No program of the user or of the clone runs inside our git.
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("push.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("credential.interactive", "false"),
    # Bytes stay bytes.
    ("core.autocrlf", "false"),
    ("core.eol", "lf"),
    ("core.safecrlf", "false"),
    ("core.symlinks", "false"),
    ("core.attributesFile", "/dev/null"),
    # What lies on the disk: durable before a ref names it, readable by any git, no clever extras that can go stale.
    ("core.fsync", "loose-object,pack,pack-metadata,reference"),
    ("core.fsyncMethod", "fsync"),
    ("core.logAllRefUpdates", "true"),
    ("core.commitGraph", "false"),
    ("core.splitIndex", "false"),
    ("core.untrackedCache", "false"),
    ("core.sparseCheckout", "false"),
    # Nothing on a wire is larger than a segment; larger blobs are streamed, never held in memory.
    ("core.bigFileThreshold", "1m"),
    ("core.filesRefLockTimeout", "1000"),
    ("core.packedRefsTimeout", "2000"),
    # Packing happens in `pack()` and nowhere else.
    ("gc.auto", "0"),
    ("gc.autoDetach", "false"),
    ("maintenance.auto", "false"),
    ("pack.packSizeLimit", "0"),
    ("pack.writeReverseIndex", "false"),
    ("repack.packKeptObjects", "false"),
    ("repack.updateServerInfo", "false"),
    ("repack.useDeltaIslands", "false"),
    ("repack.writeBitmaps", "false"),
    # Small packs instead of loose objects: fewer fsyncs per commit.
    ("fastimport.unpackLimit", "0"),
    ("transfer.fsckObjects", "true"),
    ("transfer.bundleURI", "false"),
    ("submodule.recurse", "false"),
    ("push.default", "nothing"),
    ("push.followTags", "false"),
    ("push.negotiate", "false"),
    ("push.pushOption", ""),
    ("push.recurseSubmodules", "no"),
    ("push.useForceIfIncludes", "false"),
    ("protocol.version", "2"),
    # A server that accepted and went silent; keep-alives of slow hooks are above one byte per second.
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "45"),
    ("http.followRedirects", "initial"),
    # What we parse must not depend on taste.
    ("color.ui", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
    ("diff.ignoreSubmodules", "none"),
    ("diff.orderFile", "/dev/null"),
    ("diff.relative", "false"),
    ("diff.renames", "false"),
    ("log.follow", "false"),
    ("log.mailmap", "false"),
    ("log.showRoot", "true"),
    ("feature.experimental", "false"),
    ("feature.manyFiles", "false"),
    ("init.defaultRefFormat", "files"),
)
"""Settings that every child gets, in the order of their reasons."""

FETCHING: tuple[tuple[str, str], ...] = (
    # Refs in quarantine need not outlive a loss of power: the next fetch sets them again. Objects are another matter.
    ("core.fsync", "loose-object,pack,pack-metadata"),
    # A pack, so that the size cap holds for the whole of a fetch.
    ("fetch.unpackLimit", "1"),
    ("fetch.fsckObjects", "true"),
    *((f"fetch.fsck.{problem}", "ignore") for problem in TOLERATED),
    ("fetch.negotiationAlgorithm", "default"),
    ("fetch.prune", "false"),
    ("fetch.pruneTags", "false"),
    ("fetch.recurseSubmodules", "no"),
    ("fetch.showForcedUpdates", "false"),
    ("fetch.writeCommitGraph", "false"),
)
"""Settings that a fetch gets on top. git looks each one up among all, and again in whatever it starts: who does not
fetch is better off without them."""

_FIXED = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    # An empty askpass stops git from falling back to SSH_ASKPASS, which may be a window that nobody sees.
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_PAGER": "cat",
    # Stronger than protocol.*.allow of a config file. `git://` has no authentication at all, and `ext::` runs commands.
    "GIT_ALLOW_PROTOCOL": "file:ssh:http:https",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
}

_PARAMETERS = "GIT_CONFIG_PARAMETERS"

ATTRIBUTES = b"* -text -filter -ident -merge -working-tree-encoding -export-subst !eol !diff\n"
"""What `.git/info/attributes` of a clone holds: no attribute of a tree can change bytes (PROTOCOL.md, layout)."""


def hardened(
    environ: Mapping[str, str],
    git_dir: str,
    identity: tuple[str, str],
    extra_config: Iterable[tuple[str, str]] = (),
) -> dict[str, str]:
    """Return the whole environment of a child.

    Args:
        environ: the environment that wire was started with.
        git_dir: absolute path of the repository; discovery never leaves its folder.
        identity: name and address, for reflogs and commits.
        extra_config: settings on top of `SETTINGS`, such as `("core.worktree", …)`.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith("GIT_") or name in KEPT}
    name, email = (safe_identity(part) for part in identity)
    settings = [*_inherited_config(environ), *SETTINGS, *extra_config]
    kept.update(_FIXED)
    kept["GIT_CEILING_DIRECTORIES"] = os.path.dirname(git_dir)
    for role in ("AUTHOR", "COMMITTER"):
        kept[f"GIT_{role}_NAME"] = name
        kept[f"GIT_{role}_EMAIL"] = email
    return kept | further_config(kept, settings)


def quarantine(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which git shows its hooks the objects of a push that is not taken yet."""
    names = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH")
    return {name: environ[name] for name in names if name in environ}


def further_config(environment: Mapping[str, str], settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the variable that puts settings behind those that an environment has already."""
    said = [f"{_quoted(key)}={_quoted(value)}" for key, value in settings]
    return {_PARAMETERS: " ".join([*filter(None, [environment.get(_PARAMETERS)]), *said])}


def _quoted(text: str) -> str:
    """Quote a text as git reads it in its parameters."""
    return "'" + text.replace("'", "'\\''").replace("!", "'\\!'") + "'"


def safe_identity(text: str) -> str:
    """Return a name or address without the characters that would end it in a commit header."""
    safe = "".join(char for char in text if char.isprintable() and char not in "<>").strip(" .,:;\"\\'")
    return safe or "wire"


def _inherited_config(environ: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    count = environ.get("GIT_CONFIG_COUNT", "")
    for number in range(min(int(count), 1000) if count.isascii() and count.isdigit() else 0):
        key, value = environ.get(f"GIT_CONFIG_KEY_{number}"), environ.get(f"GIT_CONFIG_VALUE_{number}")
        if key is not None and value is not None and key.lower().startswith(_KEPT_CONFIG):
            yield key, value
