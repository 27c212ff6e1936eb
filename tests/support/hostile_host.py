"""A hostile host: whoever owns the disk of the bare repository, or may push to it, and what he can do with that.

    host = HostileHost(remote)
    host.rewrite("mac/spark", 2)                      # another body in an old line
    host.append("mac/spark", b"junk\\n")               # one more line, which nobody signed
    host.squash()                                     # the same files, and no history
    with_key = host.author("mac/spark", stolen)       # lines as the holder of a key would sign them
    host.append("mac/spark", with_key.line())

Each method is one move. It takes effect at once and asks nobody: no hook, no fast-forward rule, no identity. Moves on
files are ordinary commits on top of the tip, as any vandal with the right to push can make them; moves on history
replace the branch, which takes the host, or somebody whom it allows to push by force. A move returns the new tip.

The host knows what anybody knows who can read the repository: the accepted bytes. It has keys of its own (`key`), and
those that a test hands to it. It works with plain git, and lines are built here by hand, so that it can say what no
honest writer can say. Of the product it uses nothing but Ed25519.
"""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from support import gitcmd
from support.remote import BareRemote
from wire.protocol.encoding import LINE_TYPE, Signer, b64

ROOT = "_coordination"
TS = "2026-11-29T11:20:00.123Z"
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


@dataclass(frozen=True, slots=True)
class File:
    """Something at a path of a tree: `mode` is git's, and for a submodule the data are a commit's id."""

    data: bytes
    mode: str = "100644"


Changes = Mapping[str | bytes, "bytes | File | None"]
"""What a commit changes: bytes are a plain file, None takes a path away."""


def segment(channel: str, number: int = 1) -> str:
    """Return the path of a segment in the repository."""
    return f"{ROOT}/{channel}/{number:06}.jsonl"


def document(version: int) -> str:
    """Return the path of a trust version."""
    return f"{ROOT}/trust/{version:06}.json"


def presence_ref(agent: str) -> str:
    """Return the ref of an agent's presence."""
    return f"refs/wire/presence/{agent}"


class HostileHost:
    """The owner of the disk below a `BareRemote`.

    Attributes:
        key: a key of its own, which no trust version lists.
        views: by reader, what refs point to for that one alone (None: not there); the other refs are everybody's.
    """

    def __init__(self, remote: BareRemote, branch: str | None = None) -> None:
        self.remote = remote
        self.branch = branch or remote.branch
        self.key = Signer(sha256(b"a vandal's key").digest())
        self.views: dict[str, dict[str, str | None]] = {}

    # What it sees

    @property
    def tip(self) -> str:
        """The commit at the branch's tip."""
        tip = self.remote.tip(self.branch)
        assert tip is not None, f"{self.remote.path} has no branch {self.branch}"
        return tip

    def read(self, path: str, commit: str | None = None) -> bytes | None:
        """Return a file's bytes in a commit (the tip's unless given), or None."""
        return self.read_all([path], commit)[0]

    def read_all(self, paths: Sequence[str], commit: str | None = None) -> list[bytes | None]:
        """Return the bytes of several files in a commit, with None for each that is none."""
        at = commit or self.tip
        rest = self.remote.git("cat-file", "--batch", input="".join(f"{at}:{path}\n" for path in paths).encode())
        found: list[bytes | None] = []
        for _ in paths:
            about, _, rest = rest.partition(b"\n")
            if about.endswith(b" missing"):
                found.append(None)
                continue
            _, kind, size = about.split()
            found.append(rest[: int(size)] if kind == b"blob" else None)
            rest = rest[int(size) + 1 :]
        return found

    def lines(self, channel: str, number: int = 1) -> list[bytes]:
        """Return the complete lines of a segment at the tip, without newlines."""
        return (self.read(segment(channel, number)) or b"").split(b"\n")[:-1]

    def channel_lines(self, channel: str) -> list[bytes]:
        """Return the lines of all segments of a channel at the tip."""
        found: list[bytes] = []
        number = 1
        while (data := self.read(segment(channel, number))) is not None:
            found += data.split(b"\n")[:-1]
            number += 1
        return found

    @property
    def wire(self) -> str:
        """The wire's id."""
        return sha256(self.read(document(1)) or b"").hexdigest()[:32]

    @property
    def trust(self) -> tuple[int, bytes, bytes]:
        """Number, document and signatures of the newest version in `trust/`."""
        newest = max(
            int(found[1]) for path in self.remote.files(self.tip) if (found := re.search(r"/trust/(\d+)\.json$", path))
        )
        return newest, self.read(document(newest)) or b"", self.read(f"{document(newest)}.sig") or b""

    def refs(self) -> dict[str, str | None]:
        """Return what all refs point to."""
        listed = self.remote.git("for-each-ref", "--format=%(refname) %(objectname)").decode().split("\n")[:-1]
        return {ref: commit for ref, _, commit in (line.partition(" ") for line in listed)}

    def everything(self) -> bytes:
        """Return all bytes that were ever pushed, as whoever owns the disk can read them."""
        return self.remote.git("cat-file", "--batch-all-objects", "--batch")

    # What it shows to whom

    @contextmanager
    def asked_by(self, reader: str) -> Iterator[None]:
        """Show a reader what `views` has for it; what it pushes to refs of its view stays in that view."""
        view = self.views.get(reader)
        if view is None:
            yield
            return
        real = self.refs()
        self.set_refs(view)
        try:
            yield
        finally:
            after = self.refs()
            self.views[reader] = {ref: after.get(ref) for ref in view}
            self.set_refs({ref: real.get(ref) for ref in view})

    def set_refs(self, refs: Mapping[str, str | None]) -> None:
        """Let refs point to something else, or to nothing."""
        wanted = (f"update {ref} {commit}\n" if commit else f"delete {ref}\n" for ref, commit in refs.items())
        self.remote.git("update-ref", "--stdin", input="".join(wanted).encode())

    def at(self, commit: str) -> dict[str, str | None]:
        """Return a view in which the branch is at a commit, and everything else as it is for all."""
        return {f"refs/heads/{self.branch}": commit}

    def take_away(self) -> None:
        """Answer nobody any more."""
        self.remote.path.rename(self.remote.path.with_suffix(".away"))

    def bring_back(self) -> None:
        """Answer again."""
        self.remote.path.with_suffix(".away").rename(self.remote.path)

    # Commits

    def commit(
        self,
        changes: Changes,
        *,
        parents: Sequence[str] | None = None,
        base: str | None = None,
        message: str = "tidy up",
    ) -> str:
        """Make a commit and put the branch there, and return it.

        Args:
            parents: the tip unless given; none makes a commit without history.
            base: the commit whose files it starts with; the first parent's unless given.
        """
        above = [self.tip] if parents is None else list(parents)
        out = [b"feature done\ncommit refs/heads/%s\nmark :1\n" % self.branch.encode()]
        out.append(b"committer Vera <vera@example.invalid> %d +0000\n" % time.time())
        out.append(b"data %d\n%s\n" % (len(message.encode()), message.encode()))
        for word, parent in zip(["from", *["merge"] * len(above)], above, strict=False):
            out.append(f"{word} {parent}\n".encode())
        if base is not None:
            tree = gitcmd.line(self.remote.path, "rev-parse", f"{base}^{{tree}}")
            out.append(b'M 040000 %s ""\n' % tree.encode())
        for path, entry in changes.items():
            name = _quoted(path.encode() if isinstance(path, str) else path)
            file = File(entry) if isinstance(entry, bytes) else entry
            if file is None:
                out.append(b"D %s\n" % name)
            elif file.mode == "160000":
                out.append(b"M 160000 %s %s\n" % (file.data, name))
            else:
                out.append(b"M %s inline %s\ndata %d\n%s\n" % (file.mode.encode(), name, len(file.data), file.data))
        out.append(b"\nget-mark :1\ndone\n")
        made = self.remote.git("fast-import", "--quiet", "--force", "--done", input=b"".join(out))
        return made.decode().strip()

    def put_back(self, commit: str) -> str:
        """Set the branch to any commit, as a push by force does."""
        self.remote.git("update-ref", f"refs/heads/{self.branch}", commit)
        return commit

    def flash(self, *moves: Callable[[], object]) -> str:
        """Make moves, and a second later an ordinary commit that makes them undone."""
        before = self.tip
        for move in moves:
            move()
        return self.commit({}, base=before, message="as it was")

    # Moves on the lines of a channel

    def rewrite(self, channel: str, seq: int, change: Callable[[bytes], bytes] | None = None) -> str:
        """Change an old line; its body unless another change is given."""

        def other_body(raw: bytes) -> bytes:
            changed = re.sub(rb'"body":"', rb'"body":"not ', raw, count=1)
            assert changed != raw
            return changed

        return self._edit(
            channel, seq, lambda lines, at: [*lines[:at], (change or other_body)(lines[at]), *lines[at + 1 :]]
        )

    def delete(self, channel: str, seq: int) -> str:
        """Take a line out of the middle."""
        return self._edit(channel, seq, lambda lines, at: [*lines[:at], *lines[at + 1 :]])

    def truncate(self, channel: str, keep: int) -> str:
        """Keep only the first lines."""
        return self._edit(channel, keep, lambda lines, at: lines[: at + 1])

    def reorder(self, channel: str, seq: int) -> str:
        """Swap a line with the one behind it."""
        return self._edit(channel, seq, lambda lines, at: [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]])

    def insert(self, channel: str, seq: int, raw: bytes) -> str:
        """Put a line in front of line `seq`."""
        return self._edit(channel, seq, lambda lines, at: [*lines[:at], raw, *lines[at:]])

    def append(self, channel: str, *pieces: bytes, number: int = 1) -> str:
        """Add bytes behind what a segment has; lines need their newline."""
        path = segment(channel, number)
        return self.commit({path: (self.read(path) or b"") + b"".join(pieces)})

    def replace_segment(self, channel: str, data: bytes | File | None, number: int = 1) -> str:
        """Put other bytes, something that is no file, or nothing in a segment's place."""
        return self.commit({segment(channel, number): data})

    def _edit(self, channel: str, seq: int, edit: Callable[[list[bytes], int], list[bytes]]) -> str:
        """Edit the segment that holds line `seq`; the position of the line in it is given."""
        number = first = 1
        while len(lines := self.lines(channel, number)) + first <= seq:
            first += len(lines)
            number += 1
        edited = edit(lines, seq - first)
        return self.commit({segment(channel, number): b"".join(line + b"\n" for line in edited)})

    def author(self, channel: str, signer: Signer | None = None) -> "Author":
        """Return somebody who writes into a channel behind its last line at the tip, with a key or the host's own."""
        number, raw, _ = self.trust
        return Author(
            signer or self.key,
            self.wire,
            channel,
            f"{number}:{sha256(raw).hexdigest()[:16]}",
            self.channel_lines(channel)[-1:] or None,
        )

    # Moves on history

    def squash(self) -> str:
        """Replace the history by one commit with the same files."""
        return self.commit({}, parents=[], base=self.tip, message="the same, but smaller")

    def roll_back(self, commits: int = 1) -> str:
        """Show an older state, as a mirror that was behind does."""
        return self.put_back(gitcmd.line(self.remote.path, "rev-parse", f"{self.tip}~{commits}"))

    def unrelated(self, changes: Changes) -> str:
        """Replace the history by a commit that has nothing to do with it."""
        return self.commit(changes, parents=[], message="a new beginning")

    def delete_branch(self) -> str:
        """Delete the branch, and return what it pointed to."""
        tip = self.tip
        self.remote.git("update-ref", "-d", f"refs/heads/{self.branch}")
        return tip

    def recreate(self) -> None:
        """Delete the repository and create it again, empty."""
        path, branch = self.remote.path, self.remote.branch
        shutil.rmtree(path)  # (its hooks and settings go with it)
        self.remote = BareRemote(path, branch=branch)

    def evil_merge(self, changes: Changes) -> str:
        """Merge an old state into the tip, with a result that neither side has."""
        tip = self.tip
        old = gitcmd.line(self.remote.path, "rev-parse", f"{tip}~1")
        side = self.commit({"README.md": b"on the side\n"}, parents=[old])
        return self.commit(changes, parents=[tip, side], base=tip, message="Merge branch 'main'")

    def replace_object(self, commit: str, by: str) -> None:
        """Leave a `git replace` behind, which shows another commit in the place of one."""
        self.remote.git("update-ref", f"refs/replace/{commit}", by)

    # Moves on presences

    def presence(self, agent: str) -> str:
        """Return the commit of an agent's presence."""
        return gitcmd.line(self.remote.path, "rev-parse", presence_ref(agent))

    def put_presence(self, agent: str, data: bytes) -> str:
        """Put other bytes in the place of an agent's presence, and return their commit."""
        oid = self.remote.git("hash-object", "-w", "--stdin", input=data).strip()
        tree = self.remote.git("mktree", "-z", input=b"100644 blob " + oid + b"\tpresence.json\0").decode().strip()
        made = gitcmd.line(self.remote.path, "commit-tree", tree, "-m", "presence")
        self.set_refs({presence_ref(agent): made})
        return made

    # Moves on the trust

    def put_trust(
        self, version: int, raw: bytes | File | None, signatures: bytes | None, *, newest: bool = True
    ) -> str:
        """Put a document and its signatures in a version's place, and by default a copy as `trust.json`."""
        changes: dict[str | bytes, bytes | File | None] = {
            document(version): raw,
            f"{document(version)}.sig": signatures,
        }
        if newest:
            changes[f"{ROOT}/trust.json"] = raw
        return self.commit(changes)


class Author:
    """Somebody who writes lines into one channel, and need not be honest.

    Attributes:
        signer: what signs.
        last: the line (without newline) that the next one follows.
    """

    def __init__(
        self, signer: Signer, wire: str, channel: str, trust: str, after: Sequence[bytes] | None = None
    ) -> None:
        self.signer, self.wire, self.channel, self.trust = signer, wire, channel, trust
        self.last = after[-1] if after else None

    def line(self, body: str = "said by somebody else", *, middle: bytes | None = None, **front: Any) -> bytes:
        """Return the next line with its newline, and move behind it.

        Args:
            middle: what stands between prefix and trailer instead of a body, its last comma included.
            front: other values of the prefix's members; `sender` and `recipient` for `from` and `to`.
        """
        raw = self.only(body, middle=middle, **front)
        self.last = raw[:-1]
        return raw

    def only(self, body: str = "said by somebody else", *, middle: bytes | None = None, **front: Any) -> bytes:
        """Return the next line with its newline, without moving."""
        sender, _, recipient = self.channel.partition("/")
        members: dict[str, Any] = {
            "v": 1,
            "wire": self.wire,
            "from": front.pop("sender", sender),
            "to": front.pop("recipient", recipient),
            "seq": seq_of(self.last) + 1 if self.last else 1,
            "prev": sha256(self.last or f"wire/v1/genesis\n{self.wire}\n{self.channel}".encode()).hexdigest(),
            "ts": TS,
            "trust": self.trust,
            "type": "message",
            **front,
        }
        begin = json.dumps(members, separators=(",", ":"))[:-1].encode() + b","
        between = middle if middle is not None else b'"body":%s,' % json.dumps(body).encode()
        signed = begin + between + b'"key":"%s"}' % self.signer.key_id.encode()
        return with_signature(signed, b64(self.signer.sign(LINE_TYPE, signed)))


def with_signature(signed: bytes, text: str) -> bytes:
    """Return the line of signed bytes and whatever stands there as a signature."""
    return signed[:-1] + b',"sig":"%s"}\n' % text.encode()


def signed_part(raw: bytes) -> bytes:
    """Return the signed bytes of a line, given with or without its newline."""
    return raw.rstrip(b"\n")[:-98] + b"}"


def signature_text(raw: bytes) -> str:
    """Return the text of a line's signature."""
    return raw.rstrip(b"\n")[-90:-2].decode()


def spellings(text: str) -> list[str]:
    """Return the sixteen base64 texts that a lenient decoder reads as the same 64 bytes; the canonical one first."""
    stem, last = text[:85], _BASE64.index(text[85])
    return [f"{stem}{_BASE64[(last & 48) | spare]}==" for spare in range(16)]


def seq_of(raw: bytes) -> int:
    """Return the number that a line gives itself."""
    found = re.search(rb'"seq":([0-9]+),', raw)
    assert found is not None, raw[:80]
    return int(found[1])


def trust_of(raw: bytes) -> int:
    """Return the trust version that a line names."""
    found = re.search(rb'"trust":"([0-9]+):', raw)
    assert found is not None, raw[:80]
    return int(found[1])


def _quoted(path: bytes) -> bytes:
    return b'"' + b"".join(bytes([b]) if 32 < b < 127 and b not in b'"\\' else b"\\%03o" % b for b in path) + b'"'
