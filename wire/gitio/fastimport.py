"""Write the input of `git fast-import` that makes one commit.

Pure: changes in, bytes out. Paths and contents are bytes and may hold anything; a path that a tree of ours must never
hold (empty parts, `.`, `..`, `.git`, NUL) is refused when it is put, and may be dropped.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wire.gitio.parse import object_id

_MODES = frozenset({"100644", "100755", "040000"})


class _Put(NamedTuple):
    path: bytes
    data: bytes | None
    oid: str | None
    mode: str


class Put(_Put):
    """Put a file with this content, or an existing blob or tree, at a path of the new commit.

    Args:
        path: from the root, parts separated by `/`.
        data: the content; or
        oid: an object that is there already; mode `040000` takes a whole tree.
    """

    __slots__ = ()

    def __new__(cls, path: bytes, data: bytes | None = None, oid: str | None = None, mode: str = "100644") -> "Put":
        """Raise ValueError for what no commit of a wire holds."""
        parts = path.split(b"/")
        if b"\0" in path or any(part in (b"", b".", b"..") or part.lower() == b".git" for part in parts):
            raise ValueError(f"no path for a file of a wire: {path!r}")
        if (data is None) == (oid is None):
            raise ValueError("a change has either content or an object id")
        if mode not in _MODES or (mode == "040000" and oid is None):
            raise ValueError(f"mode {mode} is none that a wire writes")
        if oid is not None:
            object_id(oid)
        return super().__new__(cls, path, data, oid, mode)


class _Drop(NamedTuple):
    path: bytes


class Drop(_Drop):
    """Leave a file, or a folder with all below it, out of the new commit; it need not be there."""

    __slots__ = ()

    def __new__(cls, path: bytes) -> "Drop":
        """Raise ValueError for what is no path."""
        if not path or b"\0" in path:
            raise ValueError(f"nothing to drop at {path!r}")
        return super().__new__(cls, path)


def stream(
    ref: str,
    *,
    parents: Sequence[str],
    tree: str | None,
    start_empty: bool,
    author: str,
    committer: str,
    message: bytes,
    changes: Iterable[Put | Drop],
    also: Iterable[str] = (),
) -> bytes:
    """Return the input that makes a commit in `ref` and prints its id and its tree (see `parse.made`).

    Args:
        parents: full ids, the first parent first.
        tree: id of the tree to start from, where it is not the first parent's.
        start_empty: start from no files at all, whatever the parents hold.
        author: `Name <address> <seconds> +0000`; the same form for `committer`.
        also: further refs that are to stand at the commit.
    """
    out = [b"feature done\n", b"commit ", ref.encode(), b"\nmark :1\n"]
    out += [b"author ", author.encode(), b"\ncommitter ", committer.encode(), b"\n", *_data(message)]
    for word, parent in zip([b"from ", *[b"merge "] * len(parents)], parents, strict=False):
        out += [word, object_id(parent).encode(), b"\n"]
    if start_empty:
        out.append(b"deleteall\n")
    if tree is not None:
        out.append(b'M 040000 %s ""\n' % object_id(tree).encode())
    for change in changes:
        path = quote(change.path)
        if isinstance(change, Drop):
            out.append(b"D %s\n" % path)
        elif change.oid is not None:
            out.append(b"M %s %s %s\n" % (change.mode.encode(), change.oid.encode(), path))
        else:
            out.append(b"M %s inline %s\n" % (change.mode.encode(), path))
            out += _data(change.data or b"")
    # The answers come on stdout; they count only when the exit status is 0.
    out.append(b'\nget-mark :1\nls :1 ""\n')
    out += [b"reset %s\nfrom :1\n" % name.encode() for name in also]
    out.append(b"done\n")
    return b"".join(out)


def quote(path: bytes) -> bytes:
    """Return a path in git's C style, in which every byte has exactly one meaning."""
    return b'"' + b"".join(_QUOTED[byte] for byte in path) + b'"'


_QUOTED = [bytes([byte]) if 0x20 < byte < 0x7F and byte not in b'"\\' else b"\\%03o" % byte for byte in range(256)]


def _data(content: bytes) -> tuple[bytes, bytes, bytes]:
    return (b"data %d\n" % len(content), content, b"\n")
