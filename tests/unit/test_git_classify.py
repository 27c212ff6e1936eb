"""What git printed, and what it is taken for: a table of real texts."""

from typing import NamedTuple

import pytest

from wire.errors import FAILED, REMOTE
from wire.gitio import classify
from wire.gitio.classify import Kind

OID = "5d18d4721ed1d63cd682c12350eeb5579c2f39ee"
RIGHTS = "\nPlease make sure you have the correct access rights\nand the repository exists.\n"
UNREADABLE = "fatal: Could not read from remote repository.\n" + RIGHTS
CHANGED = (
    "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\n"
    "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
    "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\n"
    "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\r\n"
    "Someone could be eavesdropping on you right now (man-in-the-middle attack)!\r\n"
    "It is also possible that a host key has just been changed.\r\n"
    "The fingerprint for the ED25519 key sent by the remote host is\n"
    "SHA256:0123456789abcdefghijklmnopqrstuvwxyzABCDEFG.\r\n"
    "Please contact your system administrator.\r\n"
    "Add correct host key in /home/mac/.ssh/known_hosts to get rid of this message.\r\n"
    "Offending ED25519 key in /home/mac/.ssh/known_hosts:1\r\n"
    "  remove with:\r\n"
    "  ssh-keygen -f '/home/mac/.ssh/known_hosts' -R '[127.0.0.1]:22922'\r\n"
    "Host key for [127.0.0.1]:22922 has changed and you have requested strict checking.\r\n"
    "Host key verification failed.\r\n" + UNREADABLE
)


class Sample(NamedTuple):
    """One text, and what it has to be taken for."""

    name: str
    kind: Kind
    label: str
    stderr: str
    status: int = 128


def http(error: str) -> str:
    return f"fatal: unable to access 'https://example.org/wire.git/': {error}\n"


SAMPLES = [
    Sample("https, no such name", Kind.NETWORK, "dns", http("Could not resolve host: example.org")),
    Sample(
        "ssh, no such name",
        Kind.NETWORK,
        "dns",
        "ssh: Could not resolve hostname example.org: Name or service not known\r\n" + UNREADABLE,
    ),
    Sample(
        "ssh, resolver down",
        Kind.NETWORK,
        "dns",
        "ssh: Could not resolve hostname example.org: Temporary failure in name resolution\r\n" + UNREADABLE,
    ),
    Sample(
        "https, refused",
        Kind.NETWORK,
        "refused",
        http("Failed to connect to example.org port 443 after 0 ms: Couldn't connect to server"),
    ),
    Sample(
        "ssh, refused",
        Kind.NETWORK,
        "refused",
        "ssh: connect to host example.org port 22: Connection refused\r\n" + UNREADABLE,
    ),
    Sample(
        "ssh, no answer",
        Kind.NETWORK,
        "timed-out",
        "ssh: connect to host example.org port 22: Connection timed out\r\n" + UNREADABLE,
    ),
    Sample(
        "ssh, silent in the middle",
        Kind.NETWORK,
        "timed-out",
        "Timeout, server example.org not responding.\r\n" + UNREADABLE,
    ),
    Sample(
        "https, silent",
        Kind.NETWORK,
        "timed-out",
        http("Operation too slow. Less than 1 bytes/sec transferred the last 45 seconds"),
    ),
    Sample(
        "no route",
        Kind.NETWORK,
        "unreachable",
        "ssh: connect to host example.org port 22: No route to host\r\n" + UNREADABLE,
    ),
    Sample(
        "certificate",
        Kind.NETWORK,
        "tls",
        http("server certificate verification failed. CAfile: /etc/ssl/certs/ca-certificates.crt CRLfile: none"),
    ),
    Sample(
        "certificate, OpenSSL",
        Kind.NETWORK,
        "tls",
        http("SSL certificate problem: certificate has expired"),
    ),
    Sample(
        "TLS handshake",
        Kind.NETWORK,
        "tls",
        http("gnutls_handshake() failed: The TLS connection was non-properly terminated."),
    ),
    Sample(
        "ssh, closed before the key exchange",
        Kind.NETWORK,
        "cut",
        "kex_exchange_identification: Connection closed by remote host\r\n" + UNREADABLE,
    ),
    Sample("ssh, no word", Kind.NETWORK, "cut", UNREADABLE),
    Sample(
        "transfer cut",
        Kind.NETWORK,
        "cut",
        "error: RPC failed; curl 18 transfer closed with 100 bytes remaining to read\n"
        "fetch-pack: unexpected disconnect while reading sideband packet\nfatal: early EOF\n"
        "fatal: fetch-pack: invalid index-pack output\n",
    ),
    Sample("host's own trouble", Kind.NETWORK, "http-5xx", http("The requested URL returned error: 503")),
    Sample(
        "no credentials",
        Kind.AUTH,
        "http-401",
        "fatal: could not read Username for 'https://example.org': terminal prompts disabled\n",
    ),
    Sample(
        "wrong credentials",
        Kind.AUTH,
        "http-401",
        "remote: Invalid username or password.\nfatal: Authentication failed for 'https://example.org/wire.git/'\n",
    ),
    Sample("not asked for any", Kind.AUTH, "http-401", "fatal: unable to get password from user\n"),
    Sample("401 without a challenge", Kind.AUTH, "http-401", http("The requested URL returned error: 401")),
    Sample("403", Kind.AUTH, "http-403", http("The requested URL returned error: 403")),
    Sample(
        "403 with the host's words",
        Kind.AUTH,
        "no-access",
        "remote: Permission to vera/wire.git denied to mac.\n" + http("The requested URL returned error: 403"),
    ),
    Sample(
        "403 that is a rate limit",
        Kind.RATE_LIMIT,
        "rate-limit",
        "remote: You have exceeded a secondary rate limit. Please wait.\n"
        + http("The requested URL returned error: 403"),
    ),
    Sample("429", Kind.RATE_LIMIT, "http-429", http("The requested URL returned error: 429")),
    Sample(
        "ssh, key not known",
        Kind.AUTH,
        "publickey",
        "git@example.org: Permission denied (publickey).\r\n" + UNREADABLE,
    ),
    Sample(
        "ssh, several methods",
        Kind.AUTH,
        "publickey",
        "git@example.org: Permission denied (publickey,gssapi-keyex,gssapi-with-mic,password).\r\n" + UNREADABLE,
    ),
    Sample(
        "ssh, too many keys",
        Kind.AUTH,
        "publickey",
        "Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures\r\n" + UNREADABLE,
    ),
    Sample(
        "ssh, deploy key that may not write",
        Kind.AUTH,
        "publickey",
        "ERROR: The key you are authenticating with has been marked as read only.\n" + UNREADABLE,
    ),
    Sample(
        "ssh, not allowed, said by the host",
        Kind.AUTH,
        "no-access",
        "remote: \nremote: ERROR: You are not allowed to push code to this project.\nremote: \n" + UNREADABLE,
    ),
    Sample(
        "a page instead of git",
        Kind.AUTH,
        "not-git",
        "fatal: https://example.org/wire.git/info/refs not valid: is this a git repository?\n",
    ),
    Sample(
        "local remote of somebody else",
        Kind.AUTH,
        "ownership",
        "fatal: detected dubious ownership in repository at '/srv/hub.git'\n"
        "To add an exception for this directory, call:\n\n"
        "\tgit config --global --add safe.directory /srv/hub.git\n" + UNREADABLE,
    ),
    Sample("host key unknown", Kind.HOST_KEY, "unknown-host", "Host key verification failed.\r\n" + UNREADABLE),
    Sample(
        "host key unknown, asked strictly",
        Kind.HOST_KEY,
        "unknown-host",
        "No ED25519 host key is known for example.org and you have requested strict checking.\r\n"
        "Host key verification failed.\r\n" + UNREADABLE,
    ),
    Sample("host key changed", Kind.HOST_KEY, "changed-host", CHANGED),
    Sample(
        "404",
        Kind.NOT_FOUND,
        "no-repository",
        "remote: Repository not found.\nfatal: repository 'https://example.org/wire.git/' not found\n",
    ),
    Sample("ssh, not found", Kind.NOT_FOUND, "no-repository", "ERROR: Repository not found.\n" + UNREADABLE),
    Sample(
        "local path, not found",
        Kind.NOT_FOUND,
        "no-repository",
        "fatal: '/srv/hub.git' does not appear to be a git repository\n" + UNREADABLE,
    ),
    Sample(
        "a host without git",
        Kind.NOT_FOUND,
        "no-git-there",
        "bash: line 1: git-upload-pack: command not found\n" + UNREADABLE,
        127,
    ),
    Sample("no such branch", Kind.NO_REF, "no-ref", "fatal: couldn't find remote ref refs/heads/wire\n"),
    Sample("forbidden transport", Kind.UNKNOWN, "transport", "fatal: transport 'ext' not allowed\n"),
    Sample("upload too large", Kind.REJECTED, "http-413", "error: RPC failed; HTTP 413 curl 22\n", 1),
    Sample(
        "push to a repository of another object format",
        Kind.REJECTED,
        "object-format",
        "fatal: the receiving end does not support this repository's hash algorithm\n"
        "fatal: the remote end hung up unexpectedly\n",
    ),
    Sample(
        "fetch from a repository of another object format",
        Kind.REJECTED,
        "object-format",
        "fatal: mismatched algorithms: client sha1; server sha256\n",
    ),
    Sample(
        "size cap, kept as a pack",
        Kind.TOO_LARGE,
        "size-cap",
        "error: index-pack died of signal 25\nfatal: fetch-pack: invalid index-pack output\n",
    ),
    Sample("size cap, without a word", Kind.TOO_LARGE, "size-cap", "", -25),
    Sample(
        "disk full",
        Kind.DISK_FULL,
        "disk-full",
        "fatal: write error: No space left on device\nfatal: early EOF\nfatal: fetch-pack: invalid index-pack output\n",
    ),
    Sample(
        "the host's disk is full",
        Kind.UNKNOWN,
        "",
        "remote: fatal: write error: No space left on device\nerror: remote unpack failed: index-pack failed\n"
        "error: failed to push some refs to '/srv/hub.git'\n",
        1,
    ),
    Sample(
        "objects that git refuses",
        Kind.MALFORMED,
        "fsck",
        f"error: object {OID}: hasDotgit: contains '.git'\nfatal: fsck error in packed object\n"
        "fatal: fetch-pack: invalid index-pack output\n",
    ),
    Sample(
        "an incomplete answer",
        Kind.MALFORMED,
        "bad-pack",
        "fatal: remote did not send all necessary objects\n",
    ),
    Sample(
        "empty object",
        Kind.CORRUPT,
        "object",
        f"error: object file .git/objects/{OID[:2]}/{OID[2:]} is empty\nfatal: loose object {OID} (stored in x) is"
        " corrupt\n",
    ),
    Sample("unreadable object", Kind.CORRUPT, "object", f"fatal: unable to read tree {OID}\n"),
    Sample("bad object", Kind.CORRUPT, "object", f"fatal: bad object {OID}\n"),
    Sample("missing blob", Kind.CORRUPT, "object", f"error: unable to find {OID}\nfatal: git cat-file: bad file\n"),
    Sample(
        "damaged pack",
        Kind.CORRUPT,
        "pack",
        "error: packfile .git/objects/pack/pack-1.pack does not match index\n",
    ),
    Sample("a lock is held", Kind.LOCKED, "lock-file", "fatal: Unable to create '/w/.git/index.lock': File exists.\n"),
    Sample(
        "ref moved",
        Kind.RACE,
        "ref-moved",
        f"fatal: cannot lock ref 'refs/wire/accepted': is at {OID} but expected {OID[::-1]}\n",
    ),
    Sample("ref already there", Kind.RACE, "ref-moved", "fatal: cannot lock ref 'x': reference already exists\n"),
    Sample("no clone", Kind.CLONE, "not-a-clone", "fatal: not a git repository: '/w/.git'\n"),
    Sample(
        "not our folder",
        Kind.CLONE,
        "permission",
        "error: insufficient permission for adding an object to repository database .git/objects\n",
    ),
    Sample("unknown", Kind.UNKNOWN, "", "fatal: something new\n"),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_texts(sample):
    verdict = classify.classify(sample.stderr, sample.status)
    assert (verdict.kind, verdict.label) == (sample.kind, sample.label)


def test_different_causes_have_different_labels():
    """One word for all of them sends people to look for a broken network when a token has expired."""
    names = ["https, no such name", "https, refused", "ssh, no answer", "certificate", "no credentials", "403", "404"]
    names += ["host key unknown", "host key changed", "ssh, key not known", "429"]
    told = {(sample.kind, sample.label) for sample in SAMPLES if sample.name in names}
    assert len(told) == len(names)


@pytest.mark.parametrize("said", ["Permission denied (publickey).", "fatal: repository 'x' not found", "429"])
def test_what_a_hook_prints_decides_nothing(said):
    stderr = f"remote: {said}\nfatal: unable to access 'https://example.org/': Could not resolve host: example.org\n"
    assert classify.classify(stderr, 128).label == "dns"


@pytest.mark.parametrize(
    ("reason", "forced", "expected"),
    [
        ("failed to update ref", False, "race"),
        ("cannot lock ref 'refs/heads/main': Unable to create '/srv/hub.git/x.lock': File exists.", False, "race"),
        ("incorrect old value provided", False, "race"),
        ("fetch first", False, "race"),
        ("non-fast-forward", False, "race"),
        ("non-fast-forward", True, "rejected"),
        ("pre-receive hook declined", False, "rejected"),
        ("protected branch hook declined", False, "rejected"),
        ("deny updating a hidden ref", True, "rejected"),
        ("branch is currently checked out", False, "rejected"),
        ("unpacker error", False, "rejected"),
        ("Internal Server Error", False, "passing"),
    ],
)
def test_rejections(reason, forced, expected):
    assert classify.judge_rejection(reason, forced=forced) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("remote: Retry-After: 30\n", 30.0),
        ("remote: rate limit: please retry after 120 seconds\n", 120.0),
        ("remote: too many requests, try again in 5s\n", 5.0),
        ("", None),
    ],
)
def test_waiting_times_in_the_text(text, seconds):
    verdict = classify.classify(text + http("The requested URL returned error: 429"), 128)
    assert verdict.retry_after == seconds


def test_object_ids_are_found():
    stderr = f"error: object file .git/objects/{OID[:2]}/{OID[2:]} is empty\n"
    assert classify.classify(stderr, 128).object_id == OID
    assert classify.classify(f"fatal: bad object {OID}\n", 128).object_id == OID


def test_reasons_are_short_and_printable():
    flood = "".join(f"fatal: \x1b[31mline\x1b[0m {number} \u202e\x07{'x' * 1000}\n" for number in range(100))
    reasons = classify.reason_lines("hint: try this\nremote: Counting objects: 5\r\n" + flood)
    assert len(reasons) == 4
    assert all(len(line) <= 300 and line.isprintable() for line in reasons)
    assert reasons[0].startswith("fatal: line 0 x")


def test_what_the_server_said_is_bounded():
    told = classify.remote_lines("remote: \nremote: no \x1b]0;title\x07entry   \n" + "remote: again\n" * 50)
    assert told == ("no entry", "again", "again", "again")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("https://x-access-token:SECRET@example.org/a.git", "https://***@example.org/a.git"),
        ("https://SECRET@example.org/a.git", "https://***@example.org/a.git"),
        ("https://me:SEC@RET@example.org/a.git", "https://***@example.org/a.git"),
        ("ssh://git@example.org/a.git", "ssh://git@example.org/a.git"),
        ("ssh://git:SECRET@example.org/a.git", "ssh://git:***@example.org/a.git"),
        ("git@example.org:a.git", "git@example.org:a.git"),
        ("https://example.org/a.git?private_token=SECRET&b=c", "https://example.org/a.git?***"),
        ("https://example.org/a#SECRET", "https://example.org/a#***"),
        ("/srv/hub.git", "/srv/hub.git"),
        ("'https://a:SECRET@h/': and https://b:SECRET@h/", "'https://***@h/': and https://***@h/"),
        ("> Authorization: Basic SECRETSECRET==", "> Authorization: ***"),
        ("PRIVATE-TOKEN: SECRET", "PRIVATE-TOKEN: ***"),
        ("used ghp_0123456789abcdefSECRET here", "used *** here"),
        ("bearer abcdefghSECRET12", "bearer ***"),
    ],
)
def test_credentials_are_never_shown(shown, expected):
    assert classify.redact_url(shown) == expected


def test_secrets_of_a_url_in_every_spelling():
    secrets = classify.secrets_of("https://x-access-token:p%40ssSECRET@example.org/a?token=QUERYSECRET")
    assert set(secrets) == {"x-access-token", "p%40ssSECRET", "p@ssSECRET", "QUERYSECRET"}
    assert classify.redact("it was p@ssSECRET and p%40ssSECRET", secrets) == "it was *** and ***"
    assert classify.secrets_of("https://[broken") == ()
    assert classify.secrets_of("git@example.org:a.git") == ()


def test_errors_carry_kind_status_and_next_step():
    error = classify.failed("push", "git@h: Permission denied (publickey).\n" + UNREADABLE, 128)
    assert error.exit_status == REMOTE
    assert error.reason == "git-auth"
    assert error.next_step is not None
    assert "Permission denied (publickey)" in error.message
    assert classify.failed("log", "fatal: bad object x\n", 128).exit_status == FAILED
    assert "printed no reason (exit status -9)" in classify.failed("log", "", -9).message


def test_every_kind_is_a_plain_word():
    assert all(kind == str(kind) and kind.replace("-", "").isalpha() for kind in Kind)


def test_a_changed_host_key_is_told_with_host_and_fingerprint():
    """ssh says ten lines of alarm first; what a person needs to compare stands behind them."""
    told = classify.failed("fetch", CHANGED, 128).message
    assert "Host key for [127.0.0.1]:22922 has changed" in told
    assert "SHA256:0123456789abcdefghijklmnopqrstuvwxyzABCDEFG" in told
