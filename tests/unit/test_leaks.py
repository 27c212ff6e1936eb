"""What looks like a secret, and what only looks a little like one.

Every example is put together at run time, so that no scanner of repositories stumbles over this file.
"""

import random
import string
from pathlib import Path
from typing import Any

import pytest

from wire.errors import USAGE, UsageError
from wire.keys import invitations, keyfile
from wire.verbs import leakforms
from wire.verbs.leaks import LITERALS, LikelySecret, look
from wire.verbs.sending import Draft

WORDS = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + "234567"
URL = WORDS + "-_"
_random = random.Random(7)


def of(alphabet: str, length: int) -> str:
    """Return so many characters, all of them different from what a placeholder has."""
    distinct = _random.sample(alphabet, min(length, 8))
    return "".join([_random.choice(alphabet) for _ in range(length - len(distinct))] + distinct)


def pem(kind: str, *, line_break: str = "\n", headers: str = "") -> str:
    dashes = "-" * 5
    body = line_break.join(of(WORDS + "+/", 64) for _ in range(4))
    begin, end = f"{dashes}BEGIN {kind}{dashes}", f"{dashes}END {kind}{dashes}"
    return line_break.join([begin, *([headers, ""] if headers else []), body, end])


PRIVATE = "PRIVATE" + " KEY"
SECRETS: dict[str, tuple[str, str]] = {
    "AWS id": ("an AWS access key", "AK" + "IA" + of(UPPER, 16)),
    "AWS id of a session": ("an AWS access key", f"key={'AS' + 'IA' + of(UPPER, 16)};"),
    "AWS secret": ("an AWS secret key", "aws_secret" + "_access_key = " + of(WORDS + "/+", 40)),
    "AWS secret in capitals": ("an AWS secret key", "export AWS_SECRET" + f"_ACCESS_KEY='{of(WORDS, 40)}'"),
    "AWS secret in JSON": ("an AWS secret key", '{"SecretAccess' + f'Key": "{of(WORDS, 40)}"' + "}"),
    "Google API": ("a Google API key", "AI" + "za" + of(URL, 35)),
    "Google token": ("a Google OAuth token or client secret", "ya" + "29." + of(URL, 60)),
    "Google client": ("a Google OAuth token or client secret", "GOC" + "SPX-" + of(URL, 28)),
    "Azure storage": ("an Azure storage or bus key",
        "AccountName=x;Account" + f"Key={of(WORDS + '+/', 86)}==;Endpoint=y"),
    "Azure bus": ("an Azure storage or bus key", "SharedAccess" + f"Key={of(WORDS + '+/', 43)}="),
    "Azure client": ("an Azure client secret", of(WORDS, 3) + "8" + "Q~" + of(WORDS + "_.-", 34)),
    "Azure signature": ("an Azure shared access signature", "https://x.test/b?sv=1&se=2&si" + f"g={of(WORDS, 43)}%3D"),
    "GitHub": ("a GitHub token", "gh" + "p_" + of(WORDS, 36)),
    "GitHub of an app": ("a GitHub token", f"https://x-access-token@h/?t={'gh' + 's_' + of(WORDS, 36)}"),
    "GitHub, fine": ("a GitHub token", "github" + "_pat_" + of(WORDS, 22) + "_" + of(WORDS, 59)),
    "GitLab": ("a GitLab token", "gl" + "pat-" + of(URL, 20)),
    "GitLab runner": ("a GitLab token", "(gl" + "rt-" + of(URL, 20) + ")"),
    "npm": ("an npm token", "//registry.test/:_authToken=np" + "m_" + of(WORDS, 36)),
    "PyPI": ("a PyPI token", "py" + "pi-AgEIcHlwaS5vcmc" + of(URL, 80)),
    "Slack": ("a Slack token", "xo" + "xb-" + "123456789012-" + of(WORDS, 24)),
    "Slack of an app": ("a Slack token", "xa" + "pp-1-A" + of(UPPER, 10) + "-1234567890-" + of("0123456789abcdef", 64)),
    "Slack hook": ("a Slack webhook",
        "https://hooks.slack" + f".com/services/T{of(UPPER, 9)}/B{of(UPPER, 9)}/{of(WORDS, 24)}"),
    "OpenAI": ("an OpenAI key", "s" + "k-" + of(WORDS, 20) + "T3Blbk" + "FJ" + of(WORDS, 20)),
    "OpenAI of a project": ("an OpenAI key",
        "OPENAI_API_KEY=s" + "k-proj-" + of(URL, 74) + "T3Blbk" + "FJ" + of(URL, 74)),
    "OpenAI of a service": ("an OpenAI key", "s" + "k-svcacct-" + of(WORDS, 48)),
    "Anthropic": ("an Anthropic key", "s" + "k-ant-api03-" + of(URL, 93) + "AA"),
    "Anthropic, by login": ("an Anthropic key", "s" + "k-ant-oat01-" + of(URL, 95)),
    "Stripe": ("a Stripe key", "s" + "k_live_" + of(WORDS, 24)),
    "Hugging Face": ("a Hugging Face token", "h" + "f_" + of(string.ascii_letters, 34)),
    "JWT": ("a JSON web token", ".".join(("ey" + "J" + of(URL, 33), "ey" + "J" + of(URL, 70), of(URL, 43)))),
    "JWT in a header": ("a JSON web token",
        f"Bearer {'ey' + 'J' + of(URL, 20)}.{'ey' + 'J' + of(URL, 20)}.{of(URL, 43)}"),
    "PEM": ("a private key", pem(PRIVATE)),
    "PEM of RSA": ("a private key", pem("RSA " + PRIVATE)),
    "PEM, encrypted": ("a private key",
        pem("RSA " + PRIVATE, headers="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00")),
    "OpenSSH": ("a private key", "see:\n" + pem("OPENSSH " + PRIVATE) + "\nthanks"),
    "PGP": ("a private key", pem("PGP " + PRIVATE + " BLOCK", headers="Version: 1")),
    "PEM in JSON": ("a private key", '{"private_key": "' + pem(PRIVATE, line_break="\\n") + '"}'),
    "PEM with CR LF": ("a private key", pem("EC " + PRIVATE, line_break="\r\n")),
    "age": ("an age key", "AGE-SECRET" + "-KEY-1" + of(UPPER, 58)),
    "PuTTY": ("a PuTTY key", "PuTTY-User" + f"-Key-File-3: ssh-ed25519\nComment: x\nPrivate-Lines: 1\n{of(WORDS, 64)}"),
    "wire's, with a passphrase": ("a private key of wire", '"sea' + f'led":"{of(WORDS, 96)}","x":1'),
    "password of a URL": ("a password in a URL", "postgres://app:" + of(WORDS, 12) + "@db.test:5432/app"),
    "password for git": ("a password in a URL", "git clone https://" + "me:" + of(WORDS, 20) + "@host.test/r.git"),
    "password without a user": ("a password in a URL", "redis://:" + of(WORDS, 12) + "@cache.test"),
}  # fmt: skip

NEAR: dict[str, str] = {
    "AWS id of the documents": "AK" + "IA" + "IOSFODNN7" + "EXAMPLE",
    "AWS id too short": "AK" + "IA" + of(UPPER, 15),
    "AWS id too long": "AK" + "IA" + of(UPPER, 17),
    "AWS in words": "ASIA is a continent; AKIAS are not",
    "AWS secret of the documents": "aws_secret" + "_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
    "AWS secret from the environment": "aws_secret_access_key = $AWS_SECRET_ACCESS_KEY",
    "Google too short": "AI" + "za" + of(URL, 20),
    "Azure without a key": "AccountName=x;AccountKey=<your key>",
    "GitHub placeholder": "gh" + "p_" + "x" * 36,
    "GitHub in a sentence": "tokens begin with ghp_ or github_pat_ and go on for 36 characters",
    "GitHub too short": "gh" + "p_" + of(WORDS, 20),
    "GitLab placeholder": "gl" + "pat-" + "x" * 20,
    "npm variable": "npm_config_registry npm_package_version",
    "PyPI in a sentence": "a token that begins with pypi-AgEIcHlwaS5vcmc",
    "Slack in a sentence": "xoxb- tokens are for bots",
    "Slack hook without a secret": "https://hooks.slack.com/services/",
    "OpenAI placeholder": "s" + "k-proj-" + "." * 40,
    "a word with sk-": "task-based risk-free disk-proj-x",
    "Anthropic placeholder": "s" + "k-ant-api03-…",
    "Stripe of tests": "s" + "k_test_" + of(WORDS, 24),
    "Hugging Face in code": "hf_hub_download(repo_id)",
    "JWT without a signature": "ey" + "J" + of(URL, 20) + ".ey" + "J" + of(URL, 20) + ".",
    "base64 of an object": "ey" + "J" + of(WORDS, 400),
    "PEM of a public key": pem("PUBLIC KEY"),
    "PEM of a certificate": pem("CERTIFICATE"),
    "PEM's first line": "-" * 5 + "BEGIN " + PRIVATE + "-" * 5 + " is how such a file begins",
    "PEM shortened": "-" * 5 + "BEGIN " + PRIVATE + "-" * 5 + "\n…\n" + "-" * 5 + "END " + PRIVATE + "-" * 5,
    "age's public key": "age1" + of(string.ascii_lowercase + string.digits, 58),
    "a URL": "https://example.test:8080/a@b/c:d@e",
    "a user in a URL": "ssh://git@host.test/x.git and git@host.test:x.git and mailto:a@b.test",
    "a URL with a variable": "postgres://app:${PASSWORD}@db.test/app and postgres://app:$PW@db.test",
    "a URL with a placeholder": "https://user:password@host.test https://u:<password>@h.test https://u:***@h.test",
    "a URL with the user's name": "postgres://postgres:postgres@localhost/test",
    "a scoped package": "https://cdn.test/npm/@scope/x@1.2.3 and npm:@scope/y@2",
    "a commit": "git show " + of("0123456789abcdef", 40),
    "a fingerprint": "SHA256:" + of(WORDS + "+/", 43),
    "the word": '{"secret": true, "client_secret": null}; secret=… keep it secret',
    "a join code in a sentence": "wire-join-1.… is how a code begins",
    "a long text":
        "\n".join(f"{number}: https://host.test/{number}?a=b&sig=short AND eyJ, hf_, xox" for number in range(300)),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), SECRETS.values(), ids=SECRETS)
def test_a_secret_stops_a_message_and_is_never_repeated(kind: str, text: str) -> None:
    where = {
        "the body": Draft("spark", body=f"look:\n{text}\nthanks"),
        "the subject": Draft("spark", subject=text),
        "ref 2": Draft("spark", refs=["a1b2", text]),
        "the body.config.it": Draft("spark", body={"n": 1, "config": {"it": [text]}}),
    }
    for place, draft in where.items():
        with pytest.raises(LikelySecret) as caught:
            look([draft])
        error = caught.value
        assert f"{kind} in {place}" in error.message
        assert (error.reason, error.exit_status) == ("likely-secret", USAGE)
        assert "stays in the history of every clone for ever" in error.message
        told = str(error.as_json())
        for line in text.split("\n"):
            assert len(line) < 24 or line not in told
        (found,) = look([draft._replace(allow_secret="it is none")])
        assert kind in [one.kind for one in found]


@pytest.mark.parametrize("text", NEAR.values(), ids=NEAR)
def test_what_only_looks_like_one_is_sent(text: str) -> None:
    for draft in (Draft("spark", body=text), Draft("spark", body={"note": text}), Draft("spark", refs=[text])):
        assert not any(look([draft]))


def test_the_line_is_told() -> None:
    _, text = SECRETS["GitHub"]
    with pytest.raises(LikelySecret, match="a GitHub token in the body, line 3"):
        look([Draft("spark", body=f"one\ntwo\n{text}")])


def test_a_name_beside_a_value_counts() -> None:
    with pytest.raises(LikelySecret, match=r"an AWS secret key in the body\.aws_secret_access_key"):
        look([Draft("spark", body={"aws_secret" + "_access_key": of(WORDS, 40)})])


def test_what_keeps_a_message_from_being_sent_twice_goes_out_as_well() -> None:
    with pytest.raises(LikelySecret, match="a GitHub token in the idem"):
        look([Draft("spark", body="hello", idem=SECRETS["GitHub"][1])])


def test_a_secret_in_the_place_of_a_name_is_not_repeated() -> None:
    name, value = SECRETS["GitHub"][1], SECRETS["npm"][1]
    with pytest.raises(LikelySecret) as caught:
        look([Draft("spark", body={"outer": {name: {"inner": value}}})])
    told = f"{caught.value} {caught.value.details}"
    assert "an npm token in the body.outer.?.inner" in told
    assert name not in told
    assert name[:20] not in told


def test_our_own_key_files_and_join_codes(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "agent-mac.key"
    keyfile.create(str(path), name="mac", kind="agent", wire="0" * 32)
    with pytest.raises(LikelySecret, match="a private key of wire in the body"):
        look([Draft("spark", body=path.read_text())])
    checkpoint = "3:SHA256:" + "A" * 43
    code = invitations.encode(
        invitations.make("git@host.test:t.git", "0" * 64, checkpoint, "0" * 40, "spark", "agent", expires=1)
    )
    with pytest.raises(LikelySecret, match="a join code of wire in the body"):
        look([Draft("spark", body=f"paste this: {code}")])


def test_several_are_all_told() -> None:
    texts = [text for _, text in SECRETS.values()]
    with pytest.raises(LikelySecret) as caught:
        look([Draft("spark", refs=texts)])
    assert len(caught.value.details["found"]) >= len(texts)
    assert "more" in caught.value.message


REASONS: dict[str, Any] = {"empty": "", "blank": "  ", "long": "x" * 501, "a number": 7, "a flag": True}


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS)
def test_a_reason_is_a_text(reason: Any) -> None:
    with pytest.raises(UsageError) as caught:
        look([Draft("spark", body=SECRETS["GitHub"][1], allow_secret=reason)])
    assert caught.value.reason == "bad-reason"


@pytest.mark.parametrize("place", [0, 63, 64, 130])
def test_one_among_many_is_found(place: int) -> None:
    """Many are searched at once, and each is told what is its own."""
    drafts = [Draft("spark", body=f"all is well ({number})", subject="news") for number in range(131)]
    drafts[place] = Draft("spark", body="this: " + SECRETS["GitHub"][1])
    with pytest.raises(LikelySecret):
        look(drafts)
    drafts[place] = drafts[place]._replace(allow_secret="it is none")
    assert [number for number, found in enumerate(look(drafts)) if found] == [place]


def test_every_form_has_what_lets_it_be_looked_for() -> None:
    """A form whose literals the first look does not know would never be tried."""
    wanted = {one for form in leakforms.FORMS for one in form.literals}
    assert wanted == set(LITERALS)
    assert {form.kind for form in leakforms.FORMS} == {kind for kind, _ in SECRETS.values()} | {"a join code of wire"}
    assert [form.together for form in leakforms.FORMS if not form.literals] == [("://", "@")]


@pytest.mark.parametrize("form", leakforms.FORMS, ids=[form.kind for form in leakforms.FORMS])
def test_no_text_takes_a_form_long(form: leakforms.Form) -> None:
    """64 KiB of what begins like a secret over and over: a form that backtracks would take minutes."""
    import time

    starts = form.literals or ("a://b:c",)
    for start in starts:
        for filler in (start * 20_000, (start + "A" * 30) * 4_000, start + "A-_ \n" * 13_000, start + "a" * 65_000):
            begin = time.process_time()
            list(leakforms.find(filler[:65_000]))
            assert time.process_time() - begin < 2.0, (form.kind, filler[:20])
