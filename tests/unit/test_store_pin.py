"""The pin: what was saved comes back, and anything odd is refused."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.sizes import size
from support.small_disk import on_small_disk
from wire.errors import Corrupt, IdentityError, StoreError
from wire.protocol.chain import Position
from wire.protocol.encoding import format_checkpoint
from wire.store import pin as pin_module
from wire.store.pin import Frozen, Names, Pin, load, replace, save

KILLS = size(10, 200, "kills inside the pin's save")

PIN = Pin(
    wire="ab" * 16,
    wire_hash="ab" * 32,
    remote="https://user:token@example.org/wire.git",
    branch="main",
    checkpoint=format_checkpoint(2, bytes(range(32))),
    trust_version=3,
    trust_hash="cd" * 32,
    instance="ef" * 16,
    names=Names(("mac", "spark"), {"review": ("mac", "spark")}, {"mac": ("01" * 16, "02" * 16), "spark": ("03" * 16,)}),
    accepted={"mac/spark": Position(42, "aa" * 32, 1, 20_000), "spark/all": Position(0, "bb" * 32, 1, 0)},
    remote_seq={"mac/spark": 41},
    verified="12" * 20,
    tidied="34" * 32,
    frozen=Frozen("FORCED", "2026-11-29T11:20:00.123Z"),
    accepted_commit="56" * 20,
    judged_trust=3,
    restore=True,
    forks={"mac/spark": "01" * 16},
)


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "pin.json"
    fresh = Pin(PIN.wire, PIN.wire_hash, "/r", "main", PIN.checkpoint, 2, PIN.trust_hash, PIN.instance)
    for one in (PIN, fresh, replace(PIN, frozen=None, tidied=None)):
        save(str(path), one)
        assert load(str(path)) == one
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["pin.json"]


def test_a_missing_pin_is_not_a_first_contact(tmp_path: Path) -> None:
    with pytest.raises(IdentityError, match="no pin at") as caught:
        load(str(tmp_path / "pin.json"))
    assert caught.value.reason == "pin-missing"
    assert "wire trust repin --checkpoint" in (caught.value.next_step or "")
    assert os.listdir(tmp_path) == []


GOOD = pin_module.encode(PIN)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "0 bytes", id="0 bytes"),
        pytest.param(bytes(len(GOOD)), f"{len(GOOD)} NUL bytes", id="all NUL"),
        pytest.param(GOOD[: len(GOOD) // 2], "not JSON", id="half JSON"),
        pytest.param(GOOD[:-2], "not JSON", id="one brace short"),
        pytest.param(GOOD[:500] + bytes(len(GOOD) - 500), "not JSON", id="a tail of NULs"),
        pytest.param(GOOD + GOOD, "not JSON", id="twice"),
        pytest.param(b"\xff" + GOOD, "does not begin", id="a byte before"),
        pytest.param(b"[]", "does not begin", id="a list"),
        pytest.param(b"{}", "version None where 1", id="an empty object"),
        pytest.param(GOOD[:-2] + b',"v":1}\n', "duplicate key 'v'", id="a key twice"),
    ],
)
def test_damaged_files_are_refused_and_left_alone(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "pin.json"
    path.write_bytes(data)
    with pytest.raises(Corrupt) as caught:
        load(str(path))
    assert said in caught.value.message
    assert str(path) in caught.value.message
    assert "nothing was read, accepted or published" in caught.value.message
    assert caught.value.reason == "pin-corrupt"
    assert "wire trust repin --checkpoint" in (caught.value.next_step or "")
    assert path.read_bytes() == data


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(lambda p: p.update(v=2), "version 2 where 1", id="newer"),
        pytest.param(lambda p: p.pop("accepted"), "members missing: accepted", id="no accepted"),
        pytest.param(lambda p: p.update(extra=1), "unknown member 'extra'", id="unknown member"),
        pytest.param(lambda p: p.update(wire="AB" * 16), "`wire` is not 32 hex", id="upper case"),
        pytest.param(lambda p: p.update(wire="ab" * 15), "`wire` is not 32 hex", id="short wire"),
        pytest.param(lambda p: p.update(wire="cd" * 16), "not the beginning of `wire_hash`", id="another wire"),
        pytest.param(lambda p: p.update(trust_hash="cd" * 31 + "zz"), "`trust_hash` is not 64 hex", id="no hex"),
        pytest.param(lambda p: p.update(trust_hash=None), "`trust_hash` is not a text", id="null hash"),
        pytest.param(lambda p: p.update(remote=""), "`remote` is not a text", id="empty remote"),
        pytest.param(lambda p: p.update(checkpoint="2:SHA256:x"), "", id="bad checkpoint"),
        pytest.param(lambda p: p.update(trust_version=1), "older than the checkpoint 2", id="rolled back"),
        pytest.param(lambda p: p.update(trust_version=True), "trust_version: True", id="a bool"),
        pytest.param(lambda p: p.update(trust_version=3.0), "a float", id="a float"),
        pytest.param(lambda p: p.update(names=[]), "`names` is not an object", id="names"),
        pytest.param(lambda p: p["names"].pop("keys"), "`names` must hold", id="no keys"),
        pytest.param(lambda p: p["names"].update(agents=["../x"]), "`names.agents`", id="bad name"),
        pytest.param(lambda p: p["names"]["groups"].update(review="mac"), "`names.groups.review`", id="no list"),
        pytest.param(lambda p: p["names"]["groups"].update({"a/b": []}), "'a/b' is not a name", id="bad group"),
        pytest.param(lambda p: p["names"]["keys"].update(mac=["0"]), "`names.keys.mac`", id="short key id"),
        pytest.param(lambda p: p["accepted"].update({"mac": [1]}), "'mac' is not a channel", id="no channel"),
        pytest.param(lambda p: p["accepted"].update({"a/../b": [1]}), "'a/../b' is not a channel", id="upward"),
        pytest.param(lambda p: p["accepted"].update({"a/b": [1, "a"]}), "not [seq, head, segment", id="short entry"),
        pytest.param(lambda p: p["accepted"]["mac/spark"].__setitem__(0, -1), "-1 where a number", id="minus one"),
        pytest.param(lambda p: p["accepted"]["mac/spark"].__setitem__(0, "1"), "1 where a number", id="text seq"),
        pytest.param(lambda p: p["accepted"]["mac/spark"].__setitem__(1, "aa"), "head is not 64", id="short head"),
        pytest.param(lambda p: p["accepted"]["mac/spark"].__setitem__(2, 0), "0 where a number", id="segment 0"),
        pytest.param(lambda p: p["remote_seq"].update({"a/b": None}), "remote_seq a/b", id="null seq"),
        pytest.param(lambda p: p.update(verified="12" * 21), "`verified` is not a commit", id="42 digits"),
        pytest.param(lambda p: p.update(tidied=5), "`tidied` is not a commit", id="a number as commit"),
        pytest.param(lambda p: p.update(frozen="FORCED"), "`frozen` is not", id="frozen is a text"),
        pytest.param(lambda p: p.update(frozen={"code": "FORCED", "since": ""}), "`since` is not", id="no since"),
        pytest.param(lambda p: p.update(accepted_commit=""), "`accepted_commit` is not a commit", id="no commit"),
        pytest.param(lambda p: p.update(judged_trust=-1), "judged_trust: -1", id="judged with nothing"),
        pytest.param(lambda p: p.update(restore=1), "`restore` is neither", id="no bool"),
        pytest.param(lambda p: p.update(forks={"mac/spark": "01"}), "`forks` holds", id="short key id in a fork"),
        pytest.param(lambda p: p.update(forks={"mac": "01" * 16}), "'mac' is not a channel", id="fork of nothing"),
        pytest.param(lambda p: p.update(instance="ef"), "`instance` is not 32 hex", id="instance"),
    ],
)
def test_every_member_is_checked(tmp_path: Path, change: Change, said: str) -> None:
    members = json.loads(GOOD)
    change(members)
    path = tmp_path / "pin.json"
    path.write_text(json.dumps(members))
    with pytest.raises(Corrupt) as caught:
        load(str(path))
    assert said in caught.value.message


def test_a_pin_that_cannot_be_read_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "pin.json").mkdir()
    with pytest.raises(StoreError, match="cannot read"):
        load(str(tmp_path / "pin.json"))


SAVE = """
import sys
from wire.store.pin import load, replace, save
pin = load(sys.argv[1])
print("ready", flush=True)
while True:
    pin = replace(pin, trust_version=pin.trust_version + 1)
    save(sys.argv[1], pin)
"""


def test_a_kill_inside_save_leaves_a_whole_pin_that_never_goes_back(tmp_path: Path) -> None:
    path = tmp_path / "pin.json"
    save(str(path), PIN)
    version = PIN.trust_version
    for turn in range(KILLS):
        with subprocess.Popen([sys.executable, "-c", SAVE, path], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            process.stdout.readline()
            time.sleep(0.001 * (turn % 13))
            process.send_signal(signal.SIGKILL)
        now = load(str(path))
        assert now == replace(PIN, trust_version=now.trust_version)
        assert now.trust_version >= version
        version = now.trust_version
    assert version > PIN.trust_version


def test_a_full_disk_keeps_the_old_pin(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    save(str(saved), PIN)
    ran = on_small_disk(
        tmp_path,
        f"""
from wire.errors import DiskFull
from wire.store.pin import load, replace, save
pin = load({str(saved)!r})
path = os.path.join(DISK, "pin.json")
save(path, pin)
fill()
try:
    save(path, replace(pin, trust_version=9))
except DiskFull as error:
    assert "no space left" in error.message
else:
    sys.exit("no error")
assert load(path) == pin
assert sorted(os.listdir(DISK)) == ["filling", "pin.json"]
free()
save(path, replace(pin, trust_version=9))
assert load(path).trust_version == 9
""",
    )
    assert ran.returncode == 0, ran.stderr
