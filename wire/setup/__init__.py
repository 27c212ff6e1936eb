"""Beginning a wire and joining one.

    made = init(settings, "git@host:team.git", agent="mac")
    joined = join(settings, "git@host:team.git", agent="spark", checkpoint=made.checkpoint)

Both write keys, trust and pin before anything is pushed, and the push is the last step that can fail: run again after a
crash at any point, they go on where they stopped. A refusal leaves nothing behind.
"""

from wire.setup.founding import Made, init
from wire.setup.joining import Joined, join
from wire.setup.repinning import repin

__all__ = ["Joined", "Made", "init", "join", "repin"]
