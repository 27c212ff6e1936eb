"""Keep a remote's credentials out of every command line: from its URL into the environment of git's children.

Pure: a URL in, a URL and an environment out. git hands a remote's URL to its helper (`git-remote-https`) as an
argument, where every user of the machine can read it. So git gets the URL without them, and asks a credential helper,
set for this host through `GIT_CONFIG_PARAMETERS`, that prints them from variables.

    >>> access("https://mac:token@example.org/team.git").url
    'https://example.org/team.git'

A name without a password stays the user's helpers' affair: they are asked for that name's. ssh takes no password from
a URL, so that one written there is left out; the name of its user is no secret. A query, which nothing can keep off the
command line, is refused.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from wire.gitio.classify import redact_url

_USER, _PASSWORD = "WIRE_REMOTE_USER", "WIRE_REMOTE_PASSWORD"
_PRINT = f'!f() {{ test "$1" = get && printf "username=%s\\npassword=%s\\n" "${_USER}" "${_PASSWORD}"; }}; f'
_HTTP = r"(?i)(https?://)([^/?#]*)@([^/?#@]*)"
_QUERY = r"(?i)https?://[^?#]*[?#]"
_SSH = r"(?i)((?:git\+ssh|ssh\+git|ssh)://[^/?#:@]*):[^/?#]*@"


class Access(NamedTuple):
    """How to reach a remote without naming its credentials.

    Attributes:
        url: what git is given.
        settings: pairs of key and value, to stand behind all others.
        variables: for the environment of git's children.
    """

    url: str
    settings: tuple[tuple[str, str], ...] = ()
    variables: Mapping[str, str] = {}


def access(remote: str) -> Access:
    """Return how to reach a remote.

    Raises:
        ValueError: its credentials hold a line break or a NUL, or stand in a query.
    """
    if re.match(_QUERY, remote):
        raise ValueError(
            "the remote's URL has a query or a fragment, which would stand on git's command line for all users of this "
            "machine; expected a name and password before the host, or a credential helper"
        )
    found = re.match(_HTTP, remote)
    if found is None:
        return Access(re.sub(_SSH, r"\1@", remote))
    host = found[1] + found[3]
    url = host + remote[found.end() :]
    name, colon, password = found[2].partition(":")
    from urllib.parse import unquote

    user, secret = unquote(name), unquote(password)
    if any(char in user + secret for char in "\n\r\0"):
        raise ValueError("the credentials in the remote's URL hold a line break or a NUL")
    # A rule of the user's for such URLs (insteadOf) never meant one with credentials in it, and shall not do so now.
    settings = [(f"url.{url}.insteadOf", url), (f"url.{url}.pushInsteadOf", url)]
    if not colon:
        return Access(url, (*settings, (f"credential.{host}.username", user)))
    helper = f"credential.{host}.helper"
    return Access(url, (*settings, (helper, ""), (helper, _PRINT)), {_USER: user, _PASSWORD: secret})


def told_url(remote: str) -> str:
    """Return a remote's URL for a command that somebody else is told to run, with credentials of their own."""
    return redact_url(without_credentials(remote))


def without_credentials(remote: str) -> str:
    """Return a remote's URL without user information."""
    found = re.match(_HTTP, remote)
    return re.sub(_SSH, r"\1@", remote) if found is None else found[1] + found[3] + remote[found.end() :]
