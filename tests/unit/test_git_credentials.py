"""Credentials in a remote's URL, taken apart; that none of them is seen is for `tests/e2e/test_transports.py`."""

import pytest

from wire.gitio.credentials import access, without_credentials

PLAIN = [
    "https://example.org/team.git",
    "git@example.org:team.git",
    "ssh://git@example.org/team.git",
    "/srv/hub.git",
    "https://example.org/team@home.git",
]


@pytest.mark.parametrize("remote", PLAIN)
def test_a_remote_without_them_stays_as_it_is(remote):
    assert access(remote) == (remote, (), {})
    assert without_credentials(remote) == remote


SPELLED = [
    ("https://mac:token@example.org/team.git", "https://example.org/team.git", "mac", "token"),
    ("http://mac:token@127.0.0.1:8080/x", "http://127.0.0.1:8080/x", "mac", "token"),
    ("https://a%40b:p%2Fq%20r@[::1]:8080/x", "https://[::1]:8080/x", "a@b", "p/q r"),
    ("https://mac:to:k@n@example.org", "https://example.org", "mac", "to:k@n"),
    ("HTTPS://:token@example.org/x", "HTTPS://example.org/x", "", "token"),
    ("https://mac:@example.org/x", "https://example.org/x", "mac", ""),
]


@pytest.mark.parametrize(("remote", "url", "user", "password"), SPELLED)
def test_name_and_password_go_through_the_environment(remote, url, user, password):
    found = access(remote)
    assert found.url == without_credentials(remote) == url
    assert sorted(found.variables.values()) == sorted([user, password])
    host = "/".join(url.split("/")[:3])
    assert next(value for key, value in found.settings if key == f"credential.{host}.helper") == ""
    settings = "".join(key + value for key, value in found.settings)
    assert "token" not in settings


def test_a_name_alone_leaves_the_password_to_the_users_helpers():
    found = access("https://mac@example.org/x")
    assert found.url == "https://example.org/x"
    assert ("credential.https://example.org.username", "mac") in found.settings
    assert not [key for key, _ in found.settings if key.endswith(".helper")]
    assert found.variables == {}


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("ssh://git:word@example.org:22/x.git", "ssh://git@example.org:22/x.git"),
        ("ssh://git:w:or@d@example.org/x.git", "ssh://git@example.org/x.git"),
        ("git+ssh://git:word@example.org/a:b@c.git", "git+ssh://git@example.org/a:b@c.git"),
        ("SSH://:word@example.org/x.git", "SSH://@example.org/x.git"),
        ("ssh://git@example.org/a:b@c.git", "ssh://git@example.org/a:b@c.git"),
    ],
)
def test_a_password_that_ssh_would_not_take_is_left_out(remote, url):
    assert access(remote) == (url, (), {})
    assert without_credentials(remote) == url


@pytest.mark.parametrize(
    "remote", ["https://example.org?at=a@b", "https://mac:x@example.org/x?token=sesame", "HTTP://h.invalid/x#sesame"]
)
def test_a_query_is_refused(remote):
    with pytest.raises(ValueError, match="query") as failed:
        access(remote)
    assert "sesame" not in str(failed.value)


@pytest.mark.parametrize("password", ["a%0Ab", "a%0db", "a%00b"])
def test_a_line_break_cannot_add_a_line_to_what_the_helper_says(password):
    with pytest.raises(ValueError, match="line break") as failed:
        access(f"https://mac:{password}@example.org/x")
    assert password not in str(failed.value)
