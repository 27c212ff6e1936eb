"""The forms of common secrets, for `leaks`: looked at only in texts that hold something which some of them begin with.

Each form is narrow: what documents, variables and placeholders look like must not stop a message. A value of few
different characters, or with `EXAMPLE` in it, is a placeholder.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_FEW = 8


class Form(NamedTuple):
    """What one kind looks like.

    Attributes:
        kind: with its article, for people.
        literals: a text that fits holds one of them, or all of `together`.
        pattern: its first group, or all of it, is the value.
    """

    kind: str
    literals: tuple[str, ...]
    pattern: str
    together: tuple[str, ...] = ()


_BEFORE, _AFTER = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"

FORMS: tuple[Form, ...] = (
    Form(
        "an AWS access key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])",
    ),
    Form(
        "an AWS secret key",
        ("aws_secret", "AWS_SECRET", "ecretAccessKey"),
        r"(?i:aws_secret(?:_access)?_key|secretaccesskey)[\"'\\]{0,2}\s{0,4}[:=]\s{0,4}[\"'\\]{0,2}"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    Form("a Google API key", ("AIza",), _BEFORE + r"AIza[\w-]{35}" + _AFTER),
    Form(
        "a Google OAuth token or client secret",
        ("ya29.", "GOCSPX-"),
        _BEFORE + r"(?:ya29\.[\w-]{30,}|GOCSPX-[\w-]{28}" + _AFTER + ")",
    ),
    Form(
        "an Azure storage or bus key",
        ("AccountKey=", "SharedAccessKey="),
        r"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{86}==|[A-Za-z0-9+/]{43}=)",
    ),
    Form(
        "an Azure client secret",
        ("Q~",),
        r"(?<![\w.~-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![\w.~-])",
    ),
    Form("an Azure shared access signature", ("sig=",), r"[?&]sig=([A-Za-z0-9%+/]{40,80}(?:%3[Dd]|=))"),
    Form(
        "a GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        _BEFORE + r"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})" + _AFTER,
    ),
    Form(
        "a GitLab token",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-", "glagent-"),
        _BEFORE + r"gl(?:pat|dt|rt|ptt|cbt|soat|agent)-([\w-]{20,})",
    ),
    Form("an npm token", ("npm_",), _BEFORE + r"npm_([A-Za-z0-9]{36})" + _AFTER),
    Form("a PyPI token", ("pypi-AgE",), _BEFORE + r"pypi-AgE[\w-]{60,}"),
    Form(
        "a Slack token",
        ("xox", "xapp-"),
        _BEFORE + r"(?:xox[abeoprs](?:\.xox[bp])?-[0-9][\w-]{20,}|xapp-[0-9]-[A-Z0-9]{6,}-[0-9]{6,}-[a-z0-9]{20,})",
    ),
    Form(
        "a Slack webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_]{5,}/[A-Za-z0-9_]{5,}/([A-Za-z0-9_]{16,})",
    ),
    Form(
        "an OpenAI key",
        ("T3BlbkFJ", "sk-proj-", "sk-svcacct-", "sk-admin-"),
        _BEFORE + r"sk-(?:[\w-]{16,200}T3BlbkFJ[\w-]{16,}|(?:proj|svcacct|admin)-[\w-]{40,})",
    ),
    Form("an Anthropic key", ("sk-ant-",), _BEFORE + r"sk-ant-[a-z]{1,12}[0-9]{2}-([\w-]{60,})"),
    Form("a Stripe key", ("sk_live_", "rk_live_"), _BEFORE + r"[sr]k_live_([A-Za-z0-9]{20,})" + _AFTER),
    Form("a Hugging Face token", ("hf_",), _BEFORE + r"hf_([A-Za-z]{34})" + _AFTER),
    Form("a JSON web token", ("eyJ",), _BEFORE + r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.([\w-]{20,})"),
    Form(
        "a private key",
        ("PRIVATE KEY",),
        # A text inside of JSON has its line breaks as two characters.
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|\s){1,8}"
        r"(?:[A-Za-z-]{1,30}: [^\n\\]{0,200}(?:\\[nr]|\s){1,8}){0,6}([A-Za-z0-9+/]{40})",
    ),
    Form("an age key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1([0-9A-Z]{58})"),
    Form(
        "a PuTTY key",
        ("PuTTY-User-Key-File",),
        r"PuTTY-User-Key-File-[0-9]: [\s\S]{0,4000}?Private-Lines: [0-9]{1,4}(?:\\[nr]|\s){1,4}([A-Za-z0-9+/]{40})",
    ),
    Form(
        "a private key of wire",
        ('secret"', "secret="),
        r"(?<![A-Za-z0-9_-])secret[\"'\\]{0,2}\s{0,4}[:=]\s{0,4}[\"'\\]{0,2}([A-Za-z0-9+/]{43}=)(?![A-Za-z0-9+/=])",
    ),
    Form(
        "a private key of wire",
        ('sealed":"', "sealed="),
        r"(?<![A-Za-z0-9_-])sealed(?:\":\"|=)([A-Za-z0-9+/]{96})(?![A-Za-z0-9+/=])",
    ),
    Form("a join code of wire", ("wire-join-1.",), r"wire-join-1\.([A-Za-z0-9_-]{100,})\.[0-9a-f]{8}"),
    Form(
        "a password in a URL",
        (),
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://(?P<user>[^\s/?#@:'\"<>`]{0,100}):"
        r"(?P<password>[^\s/?#@'\"<>`]{3,200})@[A-Za-z0-9\[]",
        ("://", "@"),
    ),
)

_NO_PASSWORD = re.compile(
    r"\$.*|%.*%|\{.*|\W+|(.)\1*|(?i:your|my|the|some)?[-_ ]?"
    r"(?i:pass|passwd|password|passphrase|pw|pwd|secret|token|key|user|changeme|example|redacted|hidden|removed)"
)
"""What stands in the place of a password: a variable, stars, a word for it."""


def find(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and place (`, line 3` of a longer text) of each likely secret in a text."""
    for form in FORMS:
        if not any(one in text for one in form.literals) and not (
            form.together and all(one in text for one in form.together)
        ):
            continue
        for match in re.finditer(form.pattern, text):
            if _is_value(match):
                line = text.count("\n", 0, match.start()) + 1
                yield form.kind, f", line {line}" if "\n" in text else ""


def _is_value(match: re.Match[str]) -> bool:
    groups = match.groupdict()
    if groups:
        password = groups["password"]
        return password != groups["user"] and _NO_PASSWORD.fullmatch(password) is None
    value = match[1] if match.re.groups else match[0]
    return len(set(value)) >= _FEW and "EXAMPLE" not in value.upper()
