"""Look at refs that stand for one small file each: which there are, and what the file says."""

from collections.abc import Iterable

from wire.gitio import parse, refs
from wire.gitio.git import Git


def refs_below(git: Git, folder: str) -> dict[str, str]:
    """Return the local refs below a folder (`refs/wire/heard/`) with their ids, without a child as a rule."""
    found = refs.below(git.git_dir, folder)
    return git.refs(folder) if found is None else found


def file_in(git: Git, commits: Iterable[str], path: str, *, max_size: int) -> dict[str, bytes | None]:
    """Return what a file of each commit holds, in two children at most for all of them.

    None stands for what is no such file, larger than `max_size` bytes, or not there at all; nothing of it is read.
    """
    wanted = list(dict.fromkeys(parse.object_id(commit) for commit in commits))
    if not wanted:
        return {}
    names = [f"{commit}:{parse.plain_path(path)}" for commit in wanted]
    if (told := git.read(names, max_size=max_size)) is not None:
        return {commit: one.data if one.kind == "blob" else None for commit, one in zip(wanted, told, strict=True)}
    asked = "".join(f"{name}\n" for name in names).encode()
    form = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    listed = git.run("cat-file", form, "--buffer", input=asked).stdout.decode("ascii", "replace").split("\n")
    blobs = {}
    for commit, line in zip(wanted, listed, strict=False):
        oid, _, rest = line.partition(" ")
        kind, _, size = rest.partition(" ")
        if kind == "blob" and parse.HEX.match(oid) and size.isdigit() and int(size) <= max_size:
            blobs[commit] = oid
    held = git.blobs(blobs.values(), max_size=max_size)
    return {commit: held.get(blobs.get(commit, "")) for commit in wanted}
