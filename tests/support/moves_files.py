"""What is done to the files, the history and the presences of a repository: one move each, by what it is called.

No honest machine takes part in these. The moves on lines concern the channel `mac/spark`, unless they squat where
nothing was said yet (`mac/lee`).
"""

import json
from collections.abc import Callable
from itertools import chain as joined

from support import gitcmd
from support import hostile_host as hostile
from support.besieged import Siege, pin, signer, site
from support.hostile_host import ROOT, TS, Author, File, HostileHost, document, presence_ref, segment
from wire.keys.trust import enroll, found, prove, sign_document, successor
from wire.protocol.encoding import Signer, b64
from wire.protocol.line import head

CHANNEL = "mac/spark"
"""The channel that most moves are about."""
SQUATTED = "mac/lee"
"""A channel in which nothing was said yet."""
SEGMENT = segment(CHANNEL)
NOWHERE = b"1234567890123456789012345678901234567890"

Move = Callable[[Siege], object]


def newest(siege: Siege) -> bytes:
    """Return the newest line of the channel."""
    return siege.host.lines(CHANNEL)[-1]


def by_mac(siege: Siege) -> Author:
    """Return a thief who holds mac's key."""
    return siege.host.author(CHANNEL, signer(siege.mac))


def _signed_by_mac(siege: Siege) -> bytes:
    return hostile.signed_part(by_mac(siege).only())


def append(siege: Siege, *lines: bytes, channel: str = CHANNEL, number: int = 1) -> None:
    """Add lines, given without newline, behind what a segment has."""
    siege.host.append(channel, *(line + b"\n" for line in lines), number=number)


# Lines


def _with_carriage_returns(siege: Siege) -> None:
    # What a clone with autocrlf and an editor make of a file.
    siege.host.commit({SEGMENT: (siege.host.read(SEGMENT) or b"").replace(b"\n", b"\r\n")})


def _signatures_of_other_lengths(siege: Siege) -> None:
    # And bytes of the body moved into the signature.
    signed, last = _signed_by_mac(siege), newest(siege)
    texts = [b64((b"\x01" * 128)[:length]) for length in (0, 63, 65, 128)]
    moved = hostile.with_signature(hostile.signed_part(last), hostile.signature_text(last) + "AAAA")
    siege.host.append(CHANNEL, *(hostile.with_signature(signed, text) for text in texts), moved)


def _other_spellings(siege: Siege) -> None:
    # Fifteen other texts decode to the same 64 bytes; each would give the line another head.
    *before, last = siege.host.lines(CHANNEL)
    spelled = [
        hostile.with_signature(hostile.signed_part(last), text)
        for text in hostile.spellings(hostile.signature_text(last))
    ]
    assert (spelled[0], len(set(spelled))) == (last + b"\n", 16)
    siege.host.replace_segment(CHANNEL, b"".join([*(line + b"\n" for line in before), *spelled[1:]]))


def _signature_of_another_line(siege: Siege) -> None:
    stolen = hostile.signature_text(siege.host.lines(CHANNEL)[0])
    siege.host.append(CHANNEL, hostile.with_signature(_signed_by_mac(siege), stolen))


def _of_another_wire(siege: Siege) -> None:
    mac = by_mac(siege)
    other = Author(mac.signer, "00112233445566778899aabbccddeeff", CHANNEL, mac.trust, [newest(siege)])
    siege.host.append(CHANNEL, other.only("pay the bill of the other wire"))


LINES: dict[str, Move] = {
    "an old line is rewritten": lambda siege: siege.host.rewrite(CHANNEL, 2),
    "the first line is rewritten": lambda siege: siege.host.rewrite(CHANNEL, 1),
    "the last line is rewritten": lambda siege: siege.host.rewrite(CHANNEL, 4),
    "a line gets a blank": lambda siege: siege.host.rewrite(
        CHANNEL, 2, lambda raw: raw.replace(b'"type":', b'"type": ', 1)
    ),
    "a line is deleted": lambda siege: siege.host.delete(CHANNEL, 2),
    "the last lines are cut": lambda siege: siege.host.truncate(CHANNEL, 1),
    "a channel is deleted": lambda siege: siege.host.replace_segment(CHANNEL, None),
    "a channel is emptied": lambda siege: siege.host.replace_segment(CHANNEL, b""),
    "two lines change places": lambda siege: siege.host.reorder(CHANNEL, 2),
    "a line of his own is put between": lambda siege: siege.host.insert(
        CHANNEL, 3, siege.host.author(CHANNEL).only()[:-1]
    ),
    "carriage returns": _with_carriage_returns,
    "a junk line": lambda siege: append(siege, b"junk"),
    "junk without a newline": lambda siege: siege.host.append(CHANNEL, b"junk"),
    "empty lines": lambda siege: append(siege, b"", b"", b""),
    "a megabyte without a newline": lambda siege: siege.host.append(CHANNEL, b"x" * (1 << 20)),
    "the beginning of a line": lambda siege: siege.host.append(CHANNEL, siege.host.lines(CHANNEL)[0][:200]),
    "a copy of an old line": lambda siege: append(siege, siege.host.lines(CHANNEL)[1]),
    "a copy of the last line": lambda siege: append(siege, newest(siege)),
    "a line that he signed himself": lambda siege: siege.host.append(CHANNEL, siege.host.author(CHANNEL).line()),
    "junk in front of the first line": lambda siege: siege.host.insert(CHANNEL, 1, b"junk"),
    "junk between two lines": lambda siege: siege.host.insert(CHANNEL, 3, b"junk"),
    "an extra segment": lambda siege: append(siege, b"junk", number=2),
    "an extra segment far away": lambda siege: append(siege, b"junk", number=999),
    "an extra segment with a copy": lambda siege: append(siege, newest(siege), number=2),
    "squatted with junk": lambda siege: append(siege, b"junk", channel=SQUATTED),
    "squatted without a newline": lambda siege: siege.host.append(SQUATTED, b"junk"),
    "squatted with lines of another channel": lambda siege: append(
        siege, *siege.host.lines(CHANNEL), channel=SQUATTED
    ),
    "squatted in the second segment": lambda siege: append(siege, b"junk", channel=SQUATTED, number=2),
    "an unsigned line": lambda siege: append(siege, _signed_by_mac(siege)),
    "signatures that are none": lambda siege: siege.host.append(
        CHANNEL, *(hostile.with_signature(_signed_by_mac(siege), text) for text in ("", "null", "AAAA"))
    ),
    "signatures of other lengths": _signatures_of_other_lengths,
    "the signature of another line": _signature_of_another_line,
    "the other spellings of a signature": _other_spellings,
    "a line of another agent's key in mac's name": lambda siege: siege.host.append(
        CHANNEL, siege.host.author(CHANNEL, signer(siege.lee)).only("this is mac speaking")
    ),
    "a line of another agent where mac speaks": lambda siege: siege.host.append(
        CHANNEL, siege.host.author(CHANNEL, signer(siege.lee)).only(sender="lee")
    ),
    "a line of the root's key": lambda siege: siege.host.append(
        CHANNEL, siege.host.author(CHANNEL, signer(siege.mac, "root")).only("by the root")
    ),
    "a line of another wire": _of_another_wire,
    "a line of another version of the format": lambda siege: siege.host.append(CHANNEL, by_mac(siege).only(v=2)),
    "a line from the far future of its channel": lambda siege: siege.host.append(
        CHANNEL, by_mac(siege).only(seq=9)
    ),
}  # fmt: skip

FORKS: dict[str, Move] = {
    "a line that names another predecessor": lambda siege: siege.host.append(
        CHANNEL, by_mac(siege).only(prev="ab" * 32)
    ),
    "another line with an old number": lambda siege: siege.host.append(
        CHANNEL, by_mac(siege).only("as said before", seq=3, prev=head(siege.host.lines(CHANNEL)[1]))
    ),
}  # fmt: skip
"""What a thief of mac's key does: the channel stands still until a person decides."""


# Shapes


def _tree(siege: Siege, files: dict[bytes, bytes]) -> bytes:
    """Return a tree of files; `mktree` checks no names."""
    made = b""
    for name, data in files.items():
        blob = gitcmd.git(siege.remote.path, "hash-object", "-w", "--stdin", input=data).strip()
        made += b"100644 blob " + blob + b"\t" + name + b"\0"
    return gitcmd.git(siege.remote.path, "mktree", "-z", input=made).strip()


def _with_subtrees(siege: Siege, subtrees: dict[bytes, bytes]) -> str:
    """Return a commit like the tip's, with a tree called `sub` in some of its folders; the deeper folders first."""
    put: dict[bytes, bytes] = {}
    tree = b""
    for folder, sub in subtrees.items():
        at = f"{siege.host.tip}:{folder.decode()}"
        listed = gitcmd.git(siege.remote.path, "ls-tree", "-z", at).split(b"\0")[:-1]
        entries = [entry for entry in listed if entry.partition(b"\t")[2] not in put]
        entries += [b"040000 tree %s\t%s" % (oid, name) for name, oid in put.items()] + [b"040000 tree %s\tsub" % sub]
        tree = gitcmd.git(siege.remote.path, "mktree", "-z", input=b"\0".join(entries) + b"\0").strip()
        put = {folder.rpartition(b"/")[2]: tree}
    return gitcmd.line(siege.remote.path, "commit-tree", tree.decode(), "-p", siege.host.tip, "-m", "names")


def trees_that_no_checkout_may_have(siege: Siege) -> None:
    """Put `.git`, `.` and `..` as names into trees, outside and below `_coordination/`."""
    evil = _tree(siege, {b".git": b"[core]\n\tfsmonitor = evil\n", b"..": b"up\n", b".": b"here\n", b"GIT~1": b"x\n"})
    siege.host.put_back(_with_subtrees(siege, {b"_coordination/mac": evil, b"_coordination": evil, b"": evil}))


ODD_NAMES = [
    b"_coordination/mac/spark/1.jsonl",
    b"_coordination/mac/spark/0000001.jsonl",
    b"_coordination/mac/spark/000001.jsonl.bak",
    b"_coordination/mac/spark/000001.JSONL",
    b"_coordination/mac/spark/\xff\xfe.jsonl",
    b"_coordination/mac/spark/new\nline.jsonl",
    b'_coordination/mac/spark/tab\tand "quote" and \\.jsonl',
    b"_coordination/mac/spark/\x1b[2J\x1b]0;owned\x07.jsonl",
    b"_coordination/MAC/spark/000001.jsonl",
    b"_coordination/mac/con/000001.jsonl",
    b"_coordination/mac/mac/000001.jsonl",
    b"_coordination/all/mac/000001.jsonl",
    b"_coordination/trust/1.json",
    b"_coordination/trust/000001.json.bak",
    b"_coordination/requests/nothing",
    b"_coordination/.gitmodules",
    b"_coordination/" + b"d/" * 60 + b"deep",
    b"_coordination/" + b"n" * 250,
    b"_Coordination/mac/spark/000001.jsonl",
    "_coordination/mac/spаrk/000001.jsonl".encode(),  # a Cyrillic letter
    b"README.md",
    b".github/workflows/evil.yml",
    b".gitmodules",
    b"\xff\n",
]
"""Odd bytes, newlines, other cases, other alphabets, other folders."""

SHAPES: dict[str, Move] = {
    # To what a careless reader would follow: a private key, say.
    "a link for a segment": lambda siege: siege.host.commit({SEGMENT: File(b"../../../../../keys/agent", "120000")}),
    "a submodule for a segment": lambda siege: siege.host.commit({SEGMENT: File(NOWHERE, "160000")}),
    "a segment made executable": lambda siege: siege.host.commit(
        {SEGMENT: File(siege.host.read(SEGMENT) or b"", "100755")}
    ),
    "a folder for a segment": lambda siege: siege.host.commit(
        {SEGMENT: None, f"{SEGMENT}/000001.jsonl": siege.host.read(SEGMENT)}
    ),
    "a link for a channel's folder": lambda siege: siege.host.commit({f"{ROOT}/{CHANNEL}": File(b"lee", "120000")}),
    "a file for an agent's folder": lambda siege: siege.host.commit({f"{ROOT}/mac": b"a file\n"}),
    "names that no wire has": lambda siege: siege.host.commit(
        dict.fromkeys(ODD_NAMES, b'[submodule "x"]\n\tpath = ../../x\n\turl = ext::sh\n')
    ),
    "trees that no checkout may have": trees_that_no_checkout_may_have,
    # Line endings and filters for whoever checks the wire out.
    "other attributes": lambda siege: siege.host.commit(
        {f"{ROOT}/{path}": b"* text eol=crlf filter=evil ident\n" for path in (".gitattributes", "mac/.gitattributes")}
    ),
    "a folder of an unknown name": lambda siege: siege.host.append(
        "mallory/mac", siege.host.author("mallory/mac").line("hello mac")
    ),
    "a folder of an unknown name, signed by a peer": lambda siege: siege.host.append(
        "mallory/mac", siege.host.author("mallory/mac", signer(siege.lee)).line("hello mac")
    ),
    "files and workflows outside": lambda siege: siege.host.commit(
        {"README.md": b"welcome\n", ".github/workflows/evil.yml": b"on: push\n"}
    ),
}  # fmt: skip


# Trust


def _swapped(siege: Siege) -> None:
    # The newest version in the host's own words, signed with a root of its own.
    version, raw, _ = siege.host.trust
    fields = json.loads(raw)
    fields["roots"] = [b64(siege.host.key.public)]
    mine = json.dumps(fields).encode()
    siege.host.put_trust(version, mine, sign_document(mine, siege.host.key))


def _swapped_under_the_old_signature(siege: Siege) -> None:
    version, raw, signatures = siege.host.trust
    siege.host.put_trust(version, raw.replace(b'"human"', b'"agent"').replace(b'"agent"', b'"human"', 1), signatures)


def _reformatted(siege: Siege) -> None:
    # To a JSON parser it is the same document.
    version, raw, signatures = siege.host.trust
    siege.host.put_trust(version, json.dumps(json.loads(raw)).encode(), signatures)


def rolled_back(host: HostileHost) -> None:
    """Take the newest version away, and show the one before as the newest: whoever joined last never joined."""
    version, _, _ = host.trust
    path = document(version)
    host.commit({path: None, f"{path}.sig": None, f"{ROOT}/trust.json": host.read(document(version - 1))})


def _all_trust_deleted(siege: Siege) -> None:
    paths = [path for path in siege.host.remote.files() if path.startswith(f"{ROOT}/trust")]
    siege.host.commit(dict.fromkeys(paths))


def _enrols_himself(siege: Siege, by: Signer | None) -> None:
    """Put a version into the next place which enrols a name of the host's, and a line of that name."""
    trust, host = site(siege.mac).trust(pin(siege.mac)), siege.host
    proof = prove(host.key, wire=trust.wire, name="mallory", role="agent")
    raw = enroll(
        trust.newest, trust.wire, name="mallory", role="agent", public=host.key.public, proof=proof, created=TS
    )
    host.put_trust(trust.newest.version + 1, raw, sign_document(raw, by) if by else None)
    host.append("mallory/mac", host.author("mallory/mac").line("let me in"))


def _forgets_somebody(siege: Siege) -> None:
    # Signed by the real root, and unlawful: nothing that was ever trusted may be absent.
    trust = site(siege.mac).trust(pin(siege.mac))
    fields = json.loads(successor(trust.newest, trust.wire, TS))
    del fields["agents"]["lee"]
    raw = json.dumps(fields, indent=1).encode() + b"\n"
    siege.host.put_trust(trust.newest.version + 1, raw, sign_document(raw, signer(siege.mac, "root")))


def _of_the_far_future(siege: Siege) -> None:
    raw = siege.host.trust[1]
    siege.host.commit({document(number): raw for number in range(100, 1100)})


TRUST: dict[str, Move] = {
    "trust swapped": _swapped,
    "trust swapped under the old signature": _swapped_under_the_old_signature,
    "trust reformatted": _reformatted,
    "trust rolled back": lambda siege: rolled_back(siege.host),
    "trust deleted": _all_trust_deleted,
    "trust unsigned": lambda siege: siege.host.commit({f"{document(siege.host.trust[0])}.sig": None}),
    "trust signatures emptied": lambda siege: siege.host.commit({f"{document(1)}.sig": b""}),
    "trust signatures broken": lambda siege: siege.host.commit({f"{document(2)}.sig": b"not a signature\n"}),
    "trust.json alone": lambda siege: siege.host.commit({f"{ROOT}/trust.json": b"{}\n"}),
    "trust.json deleted": lambda siege: siege.host.commit({f"{ROOT}/trust.json": None}),
    "a link for a trust version": lambda siege: siege.host.commit({document(2): File(b"000001.json", "120000")}),
    "a next trust version signed by nobody": lambda siege: _enrols_himself(siege, None),
    "a next trust version signed by a stranger": lambda siege: _enrols_himself(siege, siege.host.key),
    "a next trust version signed by an agent": lambda siege: _enrols_himself(siege, signer(siege.lee)),
    "a next trust version that forgets somebody": _forgets_somebody,
    "a thousand trust versions of the far future": _of_the_far_future,
}


# What happened between two looks

FLASHES: dict[str, Move] = {
    f"{title}, for a second": lambda siege, move=move: siege.host.flash(lambda: move(siege))  # type: ignore[misc]
    for title, move in {
        "an old line is rewritten": LINES["an old line is rewritten"],
        "a line is deleted": LINES["a line is deleted"],
        "a junk line": LINES["a junk line"],
        "a link for a segment": SHAPES["a link for a segment"],
        "a trust version is removed": lambda siege: siege.host.commit({document(2): None}),
        "a trust version is unsigned": lambda siege: siege.host.commit({f"{document(2)}.sig": None}),
    }.items()
}


# History


def _anew(siege: Siege, changes: hostile.Changes) -> None:
    """Replace the history by one commit of the same files, but for some changes."""
    siege.host.commit(changes, parents=[], base=siege.host.tip)


def _segments(host: HostileHost) -> dict[str, bytes]:
    return {path: host.read(path) or b"" for path in host.remote.files(host.tip) if path.endswith(".jsonl")}


def _older_mirror_that_goes_on(siege: Siege) -> None:
    siege.host.roll_back(2)
    siege.host.commit({"README.md": b"we are back\n"})


def a_wire_of_his_own(siege: Siege) -> None:
    """Replace the history by one of another wire, with the same lines."""
    # Another wire's trust, with a root of the host's, stands where this one's was.
    raw = found(created=TS, nonce="01" * 16, roots=[siege.host.key.public], threshold=1)
    others = (document(number) for number in range(2, siege.host.trust[0] + 1))
    _anew(
        siege,
        {
            document(1): raw,
            f"{document(1)}.sig": sign_document(raw, siege.host.key),
            **dict.fromkeys(joined.from_iterable((path, f"{path}.sig") for path in others)),
            f"{ROOT}/trust.json": raw,
        },
    )


def _last_line_of_every_channel(siege: Siege) -> None:
    cut = {p: b"".join(line + b"\n" for line in d.split(b"\n")[:-2]) for p, d in _segments(siege.host).items()}
    _anew(siege, {path: data or None for path, data in cut.items()})


def _merge_that_neither_side_has(siege: Siege) -> None:
    siege.host.evil_merge({SEGMENT: b"".join(line + b"\n" for line in siege.host.lines(CHANNEL)[:2])})


def _replaced_commit(siege: Siege) -> None:
    # `git replace` shows another commit in the place of one, to those who honour it.
    tip = siege.host.tip
    siege.host.rewrite(CHANNEL, 2)
    evil = siege.host.tip
    siege.host.put_back(tip)
    siege.host.replace_object(tip, evil)


HARMLESS: dict[str, Move] = {
    "the history is squashed": lambda siege: siege.host.squash(),
    "a merge that neither side has": _merge_that_neither_side_has,
    "a replaced commit": _replaced_commit,
}
"""Moves on history after which nothing accepted is missing at the tip for good."""

LOSSES: dict[str, Move] = {
    "an older state is pushed by force": lambda siege: siege.host.roll_back(3),
    "an older mirror is restored": lambda siege: siege.host.roll_back(),
    "an older mirror goes on": _older_mirror_that_goes_on,
    "an unrelated root": lambda siege: siege.host.unrelated({"README.md": b"a fresh start\n"}),
    "history without a channel": lambda siege: _anew(siege, {SEGMENT: None}),
    "history without a line": lambda siege: _anew(
        siege, {segment("lee/spark"): siege.host.lines("lee/spark")[0] + b"\n"}
    ),
    "history with a line rewritten": lambda siege: _anew(
        siege, {SEGMENT: (siege.host.read(SEGMENT) or b"").replace(b"number 2", b"number 3")}
    ),
    "history with every line rewritten": lambda siege: _anew(
        siege, {p: d.replace(b'"body":"', b'"body":"not ') for p, d in _segments(siege.host).items()}
    ),
    "history without the last line of every channel": _last_line_of_every_channel,
    "history without a trust version": lambda siege: _anew(siege, {document(1): None, f"{document(1)}.sig": None}),
    "history with another wire's trust": a_wire_of_his_own,
    "history with a link for a channel": lambda siege: _anew(siege, {SEGMENT: File(b"../../trust.json", "120000")}),
    "history without anything": lambda siege: _anew(siege, {ROOT: None}),
    "the branch is deleted": lambda siege: siege.host.delete_branch(),
    "the repository is created again, empty": lambda siege: siege.host.recreate(),
}  # fmt: skip
"""Moves after which accepted lines or trust are missing, until somebody heals."""


# Presences


def _presence_of_another(siege: Siege) -> None:
    siege.host.set_refs({presence_ref("mac"): siege.host.presence("lee")})


PRESENCES: dict[str, Move] = {
    "junk for a presence": lambda siege: siege.host.put_presence("mac", b"junk\n"),
    "a line for a presence": lambda siege: siege.host.put_presence("mac", newest(siege) + b"\n"),
    "the presence of another": _presence_of_another,
    "a presence of nobody": lambda siege: siege.host.put_presence("mallory", b"junk\n"),
    "all presences deleted": lambda siege: siege.host.set_refs(
        dict.fromkeys(presence_ref(name) for name in siege.machines)
    ),
}
