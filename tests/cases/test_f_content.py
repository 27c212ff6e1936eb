"""F1, F4, F5, F9, F10, F12, F13, F14, F17: bytes that something on the way would change, and lines of any kind."""

import json
import os
import re
from hashlib import sha256
from pathlib import Path

import pytest

import wire
from support import gitcmd, oracle
from support.sizes import size
from support.team import bodies, end, forge, incidents, path, read, state, write

CHANNEL = "mac/spark"
CRLF = {
    "autocrlf true": "[core]\n\tautocrlf = true\n",
    "autocrlf input": "[core]\n\tautocrlf = input\n",
    "eol crlf": "[core]\n\teol = crlf\n\tautocrlf = false\n\tsafecrlf = true\n",
    "attributes": "[core]\n\tattributesFile = ~/.attributes\n",
}
ATTRIBUTES = "* text=auto eol=crlf ident filter=rot working-tree-encoding=UTF-16 merge=union export-subst\n"


@pytest.mark.parametrize("setting", CRLF)
def test_f1_no_setting_of_git_changes_a_byte(team, setting):
    for machine in team.machines:
        (machine.home / ".gitconfig").write_text(
            CRLF[setting] + '[filter "rot"]\n\tclean = tr a-z n-za-m\n\tsmudge = tr a-z n-za-m\n\trequired = true\n'
        )
        (machine.home / ".attributes").write_text(ATTRIBUTES)
    team.mac.send("spark", "one\r\ntwo\n\rthree $Id$ $Format:%H$")
    team.spark.send("mac", "and back\r")
    team.sync_and_check()
    # Everything that git itself could check out or convert, once more by somebody's own hand.
    clone = team.spark.clone()
    home = {"GIT_CONFIG_GLOBAL": str(team.spark.home / ".gitconfig"), "HOME": str(team.spark.home)}
    gitcmd.git(clone, "add", "--all", "--renormalize", env=home)
    gitcmd.git(clone, "checkout", "--quiet", "--force", "HEAD", "--", ".", env=home)
    team.mac.send("spark", "after")
    team.sync_and_check()
    assert read(team.spark) == ["one\r\ntwo\n\rthree $Id$ $Format:%H$", "after"]
    assert read(team.mac) == ["and back\r"]
    for machine in team.machines:
        assert machine.json("verify", "--full")["problems"] == []
    for data in oracle.at_tip(team.remote).values():
        assert b"\r" not in data
    assert gitcmd.git(clone, "status", "--porcelain", env=home) == b""


def test_f1_attributes_that_are_missing_are_told_and_put_back(team):
    vera = team.vandal()
    vera.write("_coordination/.gitattributes", b"*.jsonl text eol=crlf\n")
    vera.commit("normalise line endings")
    vera.push()
    assert team.spark.wire("sync", check=False).status == 4
    (incident,) = incidents(team.spark, "SHAPE")
    assert ".gitattributes" in incident["message"]
    assert team.remote.show("_coordination/.gitattributes").startswith(b"* -text ")
    team.mac.send("spark", "hello")
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert read(team.spark, status=4) == ["hello"]
    team.check(attacked=True)


INVALID = b"good \xb2\xff bad"
WAYS = {
    "argument": (("spark", INVALID), None),
    "standard input": (("spark", "-"), INVALID),
    "json argument": (("spark", b'{"a":"' + INVALID + b'"}', "--json"), None),
    "json on standard input": (("spark", "-", "--json"), b'{"a":"' + INVALID + b'"}'),
    "file": (("spark", "--file", "body"), None),
    "batch": (("--batch",), b'{"to":"spark","body":"' + INVALID + b'"}\n'),
    "subject": (("spark", "hi", "--subject", INVALID), None),
    "reference": (("spark", "hi", "--ref", INVALID), None),
    "idem": (("spark", "hi", "--idem", INVALID), None),
    "recipient": ((INVALID, "hi"), None),
}


@pytest.mark.parametrize("way", WAYS)
def test_f4_invalid_bytes_are_refused_with_their_place(team, way):
    args, given = WAYS[way]
    (team.mac.home / "body").write_bytes(INVALID)
    refused = team.mac.wire("send", *map(os.fsdecode, args), input=given, check=False)
    assert refused.status == 2
    assert "Traceback" not in refused.stderr
    text = refused.stderr + refused.stdout
    at = {"json argument": 11, "json on standard input": 11, "batch": 27}.get(way, 5)
    if way != "recipient":
        assert f"invalid UTF-8 at byte {at}" in text, text
    assert not (state(team.mac) / "journal/mac/spark/000001.jsonl").exists(), "not even half a line"
    team.mac.send("spark", "fine")
    team.sync_and_check()
    assert read(team.spark) == ["fine"]


SURROGATES = {
    "low": b'"body":"a \\udcb2 b",',
    "high": b'"body":"a \\ud800 b",',
    "reversed": b'"body":"\\udc00\\ud800",',
    "in a name": b'"body":{"\\udcb2":1},',
    "in the subject": b'"subject":"\\udcb2","body":"x",',
}


@pytest.mark.parametrize("where", SURROGATES)
def test_f4_a_received_surrogate_stops_nobody(team, where):
    strange = forge(team.mac, CHANNEL, SURROGATES[where])
    with (team.mac.segment(CHANNEL)).open("ab") if team.mac.segment(CHANNEL).exists() else _made(team) as file:
        file.write(strange)
    team.mac.wire("sync", check=False)
    team.mac.send("spark", "after")
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    text = team.spark.wire("tail", "--peek", check=False)
    assert "Traceback" not in text.stderr
    assert "after" in text.stdout
    shown = team.spark.wire("tail", "--json", check=False)
    assert "Traceback" not in shown.stderr
    assert bodies([one for one in shown.jsonl() if "id" in one])[-1] == "after"
    assert len([one for one in shown.jsonl() if "id" in one]) == 2
    plain = team.spark.wire("show", "mac/spark/1", env={"LC_ALL": "C", "LANG": "C"}, check=False)
    assert "Traceback" not in plain.stderr
    team.check(attacked=True)


def _made(team):
    team.mac.segment(CHANNEL).parent.mkdir(parents=True)
    return team.mac.segment(CHANNEL).open("ab")


SEPARATORS = "\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e\x1f\x7f\u200b\ufeff"


def test_f5_separators_of_lines_separate_nothing(team):
    for mark in SEPARATORS:
        team.mac.send("spark", f"before{mark}after")
        team.mac.send("spark", "-", "--json", input=json.dumps({"text": f"x{mark}y", f"k{mark}": [mark]}))
    team.mac.send("spark", "all of them: " + SEPARATORS, "--subject", "a\x85b\u2028c")
    team.sync_and_check()
    wanted = [body for mark in SEPARATORS for body in (f"before{mark}after", {"text": f"x{mark}y", f"k{mark}": [mark]})]
    shown = team.spark.wire("tail", "--json", "--peek")
    assert bodies(shown) == [*wanted, "all of them: " + SEPARATORS]
    text = team.spark.wire("tail").stdout
    assert len(re.split("[\n" + SEPARATORS + "]", text.rstrip("\n"))) == len(wanted) + 1, "one line for each"
    assert team.spark.json("verify", "--full")["lines"] == len(wanted) + 1


def test_f5_the_product_never_splits_lines_the_python_way():
    files = sorted(Path(wire.__file__).parent.rglob("*.py"))
    assert files
    for file in files:
        for number, text in enumerate(file.read_text("utf-8").split("\n"), 1):
            assert ".splitlines(" not in text, f"{file}:{number}: {text}"


def test_f9_nesting_too_deep_is_refused_by_the_writer(team):
    for deep in ('{"a":' + "[" * 60_000, '{"a":' + "[" * 30_000 + "]" * 30_000 + "}", "[" * 100_000):
        refused = team.mac.wire("send", "spark", "-", "--json", input=deep, check=False)
        assert refused.status == 2, str(refused)[:300]
        assert "deep" in refused.stdout or "bytes, the limit" in refused.stdout, refused.stdout[:300]
    assert team.mac.wire("send", "--batch", input='{"to":"spark","body":' + "[" * 60_000, check=False).status == 2


def test_f9_nesting_too_deep_is_a_placeholder_for_the_reader(team):
    team.mac.send("spark", "before")
    team.mac.wire("sync")
    deep = forge(team.mac, CHANNEL, b'"body":' + b"[" * 60_000 + b",")
    with team.mac.segment(CHANNEL).open("ab") as file:
        file.write(deep)
    team.mac.wire("sync", check=False)
    team.mac.send("spark", "after")
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert read(team.spark, "--peek", status=4) == ["before", None, "after"]
    (incident,) = incidents(team.spark, "SCHEMA")
    assert "deep" in incident["message"]
    assert "deep" in team.spark.wire("tail", check=False).stdout


ACCEPTED = ["9007199254740991", "-0", "1.0", "1", "0.00001", "1e2", "-0.0", "1E-7", "123456789012345678901234567890.5"]
REFUSED = ["9007199254740992", "9007199254740993", "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "01", "1.", ".5"]


def test_f10_numbers_are_shown_as_they_were_sent(team):
    for number in ACCEPTED:
        team.mac.send("spark", "-", "--json", input=f'{{"n":{number}}}')
    team.sync_and_check()
    printed = team.spark.wire("tail", "--json", "--peek").stdout.split("\n")[:-1]
    assert [re.search(r'"body":\{"n":([^}]*)\}', one)[1] for one in printed] == ACCEPTED


def test_f10_what_the_writer_refuses_the_reader_does_not_show(team):
    for number in REFUSED:
        refused = team.mac.wire("send", "spark", "-", "--json", input=f'{{"n":{number}}}', check=False)
        assert refused.status == 2, number
    assert not (state(team.mac) / "journal/mac/spark/000001.jsonl").exists()
    position = end(team.mac, CHANNEL)
    made = []
    for number in REFUSED:
        line = forge(team.mac, CHANNEL, b'"body":{"n":%s},' % number.encode(), after=position)
        position = position.after(len(line), sha256(line[:-1]).hexdigest())
        made.append(line)
    vera = team.vandal()
    vera.write(path(CHANNEL), b"".join(made))
    vera.commit()
    vera.push()
    assert team.spark.wire("sync", check=False).status == 4
    assert read(team.spark, status=4) == [None] * len(REFUSED)
    (incident,) = incidents(team.spark, "SCHEMA")
    assert f"{len(REFUSED)} line(s)" in incident["message"]


def test_f12_a_key_that_is_there_twice(team):
    """No component takes the first one and another the last."""
    twice = '{"a":1,"a":2}'
    assert team.mac.wire("send", "spark", twice, "--json", check=False).status == 2
    line = forge(team.mac, CHANNEL, b'"body":' + twice.encode() + b",")
    second_from = forge(team.mac, CHANNEL, b'"from":"review","body":"x",')
    vera = team.vandal()
    for odd in (second_from, line):
        vera.write(path(CHANNEL), odd)
        vera.commit()
    vera.push()
    assert team.spark.wire("sync", check=False).status == 4
    assert read(team.spark, "--peek", status=4) == [None]
    assert "duplicate key" in team.spark.wire("tail", check=False).stdout
    # What its own author's machine thinks of it is the same.
    team.mac.wire("sync", check=False)
    assert incidents(team.mac, "SCHEMA")[0]["message"] == incidents(team.spark, "SCHEMA")[0]["message"]


@pytest.mark.parametrize("kind", ["unreadable", "junk"])
def test_f13_a_bad_line_stops_no_good_one(team, kind):
    """At the beginning, in the middle and at the end: the others arrive, and it is said once."""
    count = size(60, 1000, "lines around a bad one")
    places = (0, count // 2, count - 1)
    position = end(team.mac, CHANNEL)
    lines, good = [], 0
    for n in range(count):
        if n in places and kind == "junk":
            lines.append(b'{"v":1,"from":"mac","body":"junk %d"}\n' % n)
            continue
        if n in places:
            line = forge(team.mac, CHANNEL, b'"body":NaN,', after=position)
        else:
            (line,) = write(team.mac, CHANNEL, f"line {n}", after=position)
            good += 1
        position = position.after(len(line), sha256(line[:-1]).hexdigest())
        lines.append(line)
    vera = team.vandal()
    data = b"".join(lines)
    assert len(data) < 262_144 or count == 1000
    cut = data.rfind(b"\n", 0, 262_144) + 1 if len(data) > 262_144 else len(data)
    vera.write(path(CHANNEL), data[:cut])
    if cut < len(data):
        vera.write(path(CHANNEL, 2), data[cut:])
    vera.commit()
    vera.push()
    for _ in range(4):
        team.spark.wire("sync", check=False)
    shown = read(team.spark, status=None)
    assert [body for body in shown if body is not None] == [f"line {n}" for n in range(count) if n not in places]
    assert shown.count(None) == (3 if kind == "unreadable" else 0)
    told = [one for one in incidents(team.spark) if one["code"] in ("SCHEMA", "SIGNATURE")]
    assert [(one["count"], one["scope"]) for one in told] == [(1, CHANNEL)], "once, not at each look"
    assert "3 line(s)" in told[0]["message"]
    assert any("3 line(s)" in trouble for trouble in team.spark.json("status", check=False)["troubles"])


TAILS = {
    "a whole line without newline": lambda line: line[:-1],
    "half a line": lambda line: line[: len(line) // 2],
    "half a line and a newline": lambda line: line[: len(line) // 2] + b"\n",
    "half a line and two newlines": lambda line: line[: len(line) // 2] + b"\n\n",
}


@pytest.mark.parametrize("tail", TAILS)
def test_f14_ends_of_a_file_at_the_remote(team, tail):
    """Nothing unterminated is delivered, nothing whole is lost, and the next lines arrive."""
    team.mac.send("spark", "one")
    team.settle()
    (line,) = write(team.mac, CHANNEL, "two")
    vera = team.vandal()
    vera.append(path(CHANNEL), TAILS[tail](line))
    vera.commit()
    vera.push()
    team.spark.wire("sync", check=False)
    assert read(team.spark, status=None) == ["one"]
    vera.sync()
    vera.append(path(CHANNEL), b"\n")
    vera.commit()
    vera.push()
    team.spark.wire("sync", check=False)
    assert read(team.spark, status=None) == (["two"] if tail.startswith("a whole") else [])
    team.mac.wire("sync", check=False)  # the owner learns what its key signed
    team.mac.send("spark", "three")
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert read(team.spark, status=None) == ["three"]
    team.check(attacked=True)
    assert len(incidents(team.spark, "SIGNATURE")) == 1, "no honest commit ends without a newline"


@pytest.mark.parametrize("tail", TAILS)
def test_f14_ends_of_our_own_file(team, tail):
    """An agent that appends by itself, and is interrupted."""
    team.mac.send("spark", "one")
    team.settle()
    (line,) = write(team.mac, CHANNEL, "two")
    part = TAILS[tail](line)
    with team.mac.segment(CHANNEL).open("ab") as file:
        file.write(part)
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert read(team.spark) == ["one"]
    if not part.endswith(b"\n"):
        assert team.mac.segment(CHANNEL).read_bytes().endswith(part), "somebody may be writing it"
        with team.mac.segment(CHANNEL).open("ab") as file:
            file.write(line[len(part) :])
    team.mac.wire("sync", check=False)
    team.sync_and_check()
    assert read(team.spark) == ([] if part.endswith(b"\n") else ["two"])
    assert len(incidents(team.mac, "ADOPT_REFUSED")) == (1 if part.endswith(b"\n") else 0)


def test_f17_a_send_beyond_the_limit_is_refused_before_a_byte_is_written(team):
    for args, given in (
        (("spark", "-"), b"x" * 200_000),
        (("spark", "-", "--json"), b'{"a":"' + b"x" * 70_000 + b'"}'),
        (("--batch",), b'{"to":"spark","body":"' + b"x" * 70_000 + b'"}\n'),
        (("spark", "-"), b'"' * 40_000),
    ):
        refused = team.mac.wire("send", *args, input=given, check=False)
        assert refused.status == 2, str(refused)[:300]
        assert re.search(r"65,?536", refused.stderr + refused.stdout), "the limit is named"
    assert not (state(team.mac) / "journal/mac/spark/000001.jsonl").exists()
