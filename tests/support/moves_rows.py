"""Which moves play which row of docs/threats.md; `tests/cases/test_threats.py` holds both against each other."""

from support import moves_files as files
from support import moves_many as many

_COPIES = (
    "a copy of an old line",
    "a copy of the last line",
    "an extra segment with a copy",
    "squatted with lines of another channel",
    "a line of another wire",
)
_TAKEN = (
    "a line is deleted",
    "the last lines are cut",
    "a channel is deleted",
    "a channel is emptied",
    "two lines change places",
    "two new lines change places",
    "a new line is shown to nobody",
)
_OTHERS_KEYS = ("a line of another agent's key in mac's name", "a line of another agent where mac speaks")
_STRANGERS = ("a folder of an unknown name", "a folder of an unknown name, signed by a peer")
_JUNK = tuple(
    title
    for title in files.LINES
    if title.startswith(("junk", "a junk", "empty lines", "a megabyte", "the beginning", "an extra segment"))
    or title in ("squatted with junk", "squatted without a newline", "squatted in the second segment")
)

PLAYED: dict[str, tuple[str, ...]] = {
    # A host, or whoever may push to it
    "writes or changes a line in somebody's name": (
        *(title for title in files.LINES if title not in {*_COPIES, *_TAKEN, *_OTHERS_KEYS, *_JUNK}),
        "a new line is spelled otherwise",
    ),
    "moves or repeats a genuine line: another channel, wire or place": _COPIES,
    "takes lines away, or reorders them": _TAKEN,
    "holds a line back and shows a later one": ("a new line is held back, and the next one shown",),
    "fills a channel with foreign bytes": _JUNK,
    "undoes a rewrite before anybody looks": tuple(files.FLASHES),
    "replaces, rolls back or deletes the history": (*files.HARMLESS, *files.LOSSES),
    "makes the remote lose everything, in ten ways": tuple(files.LOSSES),
    "shows two people different lines of one channel": (
        "another line for some",
        "a presence that says to have another line",
    ),
    "swaps, changes or takes away the trust": tuple(
        title for title in files.TRUST if not title.startswith("a next trust version signed by an agent")
    ),
    "holds a new trust version back": ("a new trust version is held back",),
    "leads a newcomer to another wire or an old copy": (
        "a newcomer is shown another wire",
        "a newcomer is shown an older trust",
        "history with another wire's trust",
    ),
    "shows a newcomer channels that are cut short": (
        "a newcomer is shown channels that are cut short",
        "lines are cut that somebody acknowledged",
    ),
    "shows somebody less than others have, or one channel of yesterday among today's": (
        "one is shown yesterday, with the presences of today",
        "one is shown one channel of yesterday",
    ),
    "shows somebody yesterday for ever, with the presences of then": ("one is shown yesterday for ever",),
    "helps a machine that lost its state to sign two lines for one place": ("what a machine forgot is held back",),
    "puts an old presence back, or one of nobody": (*files.PRESENCES, "an old presence is put back"),
    "plants links, modes, names or attributes": tuple(title for title in files.SHAPES if title not in _STRANGERS),
    "floods: huge files, many names, commits, requests, refs": tuple(many.FLOODS),
    "pushes objects that git refuses": ("objects that are none",),
    "pushes more than a fetch may bring": ("huge files",),
    "does harm deep in a long channel": tuple(many.DEEP),
    "pushes past a host that runs `wire hooks install pre-receive`": (
        "an old line is rewritten",
        "squatted with junk",
        "the next line in a later segment",
        "a line that is too long",
        "names that no wire has",
        "junk among the requests",
        "trust swapped",
        "a line is deleted, for a second",
        "an older state is pushed by force",
    ),
    "answers nobody, or takes the repository away": ("nobody is answered",),
    "holds back the newest lines of a channel from everybody": ("one is shown yesterday for ever",),
    "fills the history for ever": ("huge files",),
    "reads what is sent": ("everything is read",),
    "learns who talks with whom, when, how much, and from where": ("everything is read",),
    "denies what it did": ("a junk line", "a copy of an old line", "an older mirror is restored"),
    # A peer
    "speaks for another agent": _OTHERS_KEYS,
    "says one thing to some and another to others": (*files.FORKS, "another line for some"),
    "closes a letter that says one thing to some and another to others, or opens as another's": (
        "letters that are closed wrongly",
    ),
    "lets somebody read along, or leaves a recipient out": ("letters that are closed wrongly",),
    "signs what two parsers read differently, or none": ("lines that nobody can read", "a line that is too long"),
    "back-dates, or goes back to an older trust": ("lines of other times", "a line of an older trust"),
    "enrolls itself again, or somebody else": ("a next trust version signed by an agent",),
    "puts escapes, marks or commands in a text": ("texts that mean harm",),
    "says to have lines that never were": ("an ack of lines that never were",),
    # A thief of a key
    "writes beside the owner": (*files.FORKS, "another line for some", "a second machine under one key"),
    "writes alone, before anybody knows": ("a thief goes on alone",),
    "uses a key that was retired or revoked, back-dated": ("lines of a retired key",),
    "has a root's key and signs another trust": ("two trust documents with one number",),
    "has the key of a root that was removed, and signs another document of its time, or thousands": (
        "a removed root goes on",
    ),
    "has as many roots' keys as must sign": ("two trust documents with one number",),
    "writes as the owner and stays unnoticed": ("a thief goes on alone",),
    # A newcomer who was not invited
    "sends before he is approved": _STRANGERS,
    "asks thousands of times": ("requests without end",),
    "asks for a name that is taken, or looks like another": (
        "a genuine request of a taken name",
        "a request of a name like another",
    ),
    "changes another's request on its way": ("requests that somebody changed", "junk among the requests"),
}
"""The moves by the row; each is played by one of the tests that the row names."""

UNPLAYED: dict[str, str] = {
    "answers without end or never, sends a machine elsewhere, or shows another host's key": "is the server's doing, "
    "which a bare repository does not have; `support.sshd` and `support.http_git` play it",
    "makes up evidence against another": "hands a file to a person, and touches no repository",
    "lies": "a lie is a lawful message",
    "reads a key through loose rights, or takes it from the clone": "happens on the owner's machine",
    "tries the passphrases that a key may be under": "happens on the thief's machine",
    "has one root's key of several, and hides something in what the others are to sign": "what counts is what people "
    "are shown before they sign; that needs several roots, which a siege does not have",
    "has one root's key of several, and is in the way of what the others want": "needs several roots, and their people",
    "opens letters that were sealed for the key": "happens on the thief's machine, with what was sent long ago",
    "uses somebody else's code": "a code is between two people; what is pushed then is a lawful request",
    "gives somebody a code or a checkpoint of his own wire": "happens between two people",
}
"""Rows that no move at a repository can play, and why."""

AT_THE_MACHINE = {
    "Another user of the machine, and accidents on it": "happens on a machine; a host does not see it",
    "An agent that was talked into something": "happens in a session; what leaves it is lawful",
}
"""Adversaries who play nothing at a repository, and why."""
