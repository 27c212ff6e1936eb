"""Make one commit through `git fast-import`: who, when and what, in one child."""

import time
from collections.abc import Sequence

from wire.gitio import environment, fastimport, parse
from wire.gitio.core import Core
from wire.gitio.fastimport import Drop, Put


def write(
    core: Core,
    refs: Sequence[str],
    *,
    parents: Sequence[str],
    tree: str | None,
    start_empty: bool,
    message: str | bytes,
    changes: Sequence[Put | Drop],
    author: tuple[str, str] | None,
    when: int | None,
) -> tuple[str, str | None]:
    """Make the commit, put the local `refs` at it, and return its id and its tree's; see `Git.write_commit`."""
    seconds = int(time.time()) if when is None else when
    who = [
        "{} <{}> {} +0000".format(*(environment.safe_identity(part) for part in person), seconds)
        for person in (author or core.identity, core.identity)
    ]
    data = fastimport.stream(
        refs[0],
        parents=parents,
        tree=tree,
        start_empty=start_empty,
        author=who[0],
        committer=who[1],
        message=message.encode("utf-8", "surrogateescape") if isinstance(message, str) else message,
        changes=changes,
        also=refs[1:],
    )
    # --force concerns the local refs alone: a wire's staging refs are replaced, not extended.
    made = core.run("fast-import", "--quiet", "--done", "--force", "--date-format=raw", input=data, max_output=4096)
    return parse.made(made.stdout)
