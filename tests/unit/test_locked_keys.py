"""Keys under a passphrase: what a file may ask for, where a passphrase comes from, and that nothing shows it."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nacl.pwhash
import nacl.secret
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.errors import IDENTITY, DiskFull, IdentityError, UsageError
from wire.keys import keychange, keyfile, locked, passphrases
from wire.keys.locked import LockedSigner
from wire.protocol.encoding import LINE_TYPE, Signer, b64, unb64, verify

WIRE = "0123456789abcdef" * 2
SEED = bytes(range(32))
WORD = "correct horse"
CHEAP = {"ops": 1, "memory": locked.MEMORY_LEAST}


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no key stay open from one test to the next, and let trying cost little."""
    monkeypatch.setattr(locked, "_OPENED", {})
    monkeypatch.setattr(locked, "_FAILED", set())
    close = locked.close
    monkeypatch.setattr(locked, "close", lambda seed, word: close(seed, word, **CHEAP))


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = keyfile.key_path(str(tmp_path / "keys"), wire=WIRE, kind="agent", name="mac")
    keyfile.create(path, name="mac", kind="agent", wire=WIRE, seed=SEED, passphrase=WORD.encode())
    return path


@pytest.fixture
def word_file(tmp_path: Path) -> Path:
    file = tmp_path / "word"
    file.write_text(f"{WORD}\nwhat stands below does not count\n")
    file.chmod(0o600)
    return file


def load(path: str, **environ: str) -> LockedSigner:
    signer = keyfile.load_for(path, name="mac", kind="agent", wire=WIRE, environ=environ)
    assert isinstance(signer, LockedSigner)
    return signer


def refused(signer: Signer) -> IdentityError:
    with pytest.raises(IdentityError) as caught:
        signer.sign(LINE_TYPE, b"x")
    assert caught.value.exit_status == IDENTITY
    return caught.value


# The file


def test_who_it_belongs_to_is_known_without_the_passphrase(path: str) -> None:
    signer = load(path)
    assert (signer.public, signer.key_id, signer.locked) == (Signer(SEED).public, Signer(SEED).key_id, True)
    assert refused(signer).reason == "key-locked"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_it_signs_with_the_passphrase(path: str, word_file: Path) -> None:
    signature = load(path, WIRE_PASSPHRASE_FILE=str(word_file)).sign(LINE_TYPE, b"x")
    assert verify(Signer(SEED).public, signature, LINE_TYPE, b"x")


def test_the_file_is_what_the_protocol_says(path: str) -> None:
    """Opened by hand, with the library's own names for what is done."""
    members = json.loads(Path(path).read_bytes())
    assert list(members) == ["v", "kind", "name", "wire", "public", "kdf", "salt", "ops", "memory", "sealed"]
    key = nacl.pwhash.argon2id.kdf(
        32, WORD.encode(), unb64(members["salt"], 16), opslimit=members["ops"], memlimit=members["memory"]
    )
    assert nacl.secret.SecretBox(key).decrypt(unb64(members["sealed"], 24 + 48)) == SEED


def test_a_new_file_costs_what_it_should() -> None:
    assert (locked.OPS, locked.MEMORY) == (3, 64 << 20)


@pytest.mark.parametrize(
    "change",
    [
        {"ops": locked.OPS_MOST + 1},
        {"ops": 2**32},
        {"ops": 0},
        {"ops": 1.5},
        {"ops": True},
        {"memory": locked.MEMORY_MOST + 1},
        {"memory": 2**40},
        {"memory": locked.MEMORY_LEAST - 1},
        {"memory": "67108864"},
        {"kdf": "argon2i"},
        {"kdf": None},
        {"salt": b64(bytes(15))},
        {"salt": 7},
        {"sealed": b64(bytes(71))},
        {"sealed": b64(bytes(72))[:-1]},
        {"sealed": None},
        {"secret": b64(SEED)},
        {"public": b64(bytes(32))},
        {"v": 2},
        {"kind": "guest"},
    ],
)
def test_a_file_that_is_not_of_the_form_costs_nothing(
    path: str, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    def spent(*args: Any) -> bytes:
        raise AssertionError("something was spent on it")

    monkeypatch.setattr(locked, "_key", spent)
    members = json.loads(Path(path).read_bytes()) | change
    Path(path).write_text(json.dumps(members))
    with pytest.raises(IdentityError) as caught:
        keyfile.read(path)
    assert caught.value.reason == "key-corrupt"


def test_another_keys_name_on_it_is_found_when_it_is_opened(path: str, word_file: Path) -> None:
    members = json.loads(Path(path).read_bytes()) | {"public": b64(Signer(bytes(32)).public)}
    Path(path).write_text(json.dumps(members))
    assert refused(load(path, WIRE_PASSPHRASE_FILE=str(word_file))).reason == "passphrase-wrong"


@given(at=st.integers(0, 71), flip=st.integers(1, 255))
def test_a_changed_byte_opens_nothing(at: int, flip: int) -> None:
    members = _SEALED | {}
    data = bytearray(unb64(members["sealed"], 72))
    data[at] ^= flip
    sealed = locked.parse(members | {"sealed": b64(bytes(data))})
    assert sealed is not None
    assert sealed.open(b"a word") is None


_SEALED = locked.close(SEED, b"a word", **CHEAP)


@given(st.dictionaries(st.sampled_from(locked.MEMBERS), st.none() | st.integers() | st.text(max_size=90)))
def test_junk_is_nothing_sealed(members: dict[str, Any]) -> None:
    assert locked.parse(members) is None


# Another passphrase, or none


def test_it_is_changed_and_taken_away(path: str, tmp_path: Path) -> None:
    before = Path(path).read_bytes()
    keyfile.relock(path, WORD.encode(), b"another word")
    assert Path(path).read_bytes() != before
    assert not load(path).open_with(WORD.encode())
    assert load(path).open_with(b"another word")
    keyfile.relock(path, b"another word", None)
    assert keyfile.read(path).signer.sign(LINE_TYPE, b"x") == Signer(SEED).sign(LINE_TYPE, b"x")
    keyfile.relock(path, None, WORD.encode())
    assert SEED.hex() not in Path(path).read_bytes().hex()
    assert b64(SEED).encode() not in Path(path).read_bytes()
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.mark.parametrize("old", [None, b"", b"wrong"])
def test_another_passphrase_changes_nothing(path: str, old: bytes | None) -> None:
    before = Path(path).read_bytes()
    with pytest.raises(IdentityError) as caught:
        keyfile.relock(path, old, b"another word")
    assert caught.value.reason == "passphrase-wrong"
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("fails", ["fsync", "rename"])
def test_a_full_disk_leaves_the_file_as_it_was(path: str, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    def full(*args: Any, **rest: Any) -> None:
        raise OSError(28, "No space left on device")

    before = Path(path).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, fails, full)
        with pytest.raises(DiskFull):
            keyfile.relock(path, WORD.encode(), None)
    assert Path(path).read_bytes() == before
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


def test_the_next_key_has_the_passphrase_of_the_one_before(path: str, word_file: Path) -> None:
    environ = {"WIRE_PASSPHRASE_FILE": str(word_file)}
    new = keychange.change(path, name="mac", wire=WIRE, environ=environ)
    assert new.public != Signer(SEED).public
    assert load(path).open_with(WORD.encode())
    assert b"secret" not in Path(path).read_bytes()
    former = keychange.former(path, name="mac", wire=WIRE)
    assert list(former) == [Signer(SEED).key_id]
    assert keychange.beside(path) == [f"{path.removesuffix('.key')}.{Signer(SEED).key_id}.key"]


def test_the_next_key_is_not_made_without_the_passphrase(path: str) -> None:
    before = Path(path).read_bytes()
    with pytest.raises(IdentityError) as caught:
        keychange.change(path, name="mac", wire=WIRE, environ={})
    assert caught.value.reason == "key-locked"
    assert Path(path).read_bytes() == before
    assert keychange.beside(path) == []


def test_a_next_key_from_before_the_passphrase_gets_it(path: str, word_file: Path) -> None:
    waiting = f"{path.removesuffix('.key')}.next.key"
    keyfile.create(waiting, name="mac", kind="agent", wire=WIRE)
    keychange.change(path, name="mac", wire=WIRE, environ={"WIRE_PASSPHRASE_FILE": str(word_file)})
    assert load(path).open_with(WORD.encode())


# Where it comes from


def put(file: Path, text: str, mode: int = 0o600) -> str:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def test_the_places_and_their_order(tmp_path: Path) -> None:
    folder = tmp_path / "credentials"
    put(folder / "wire-passphrase", "for all of them", 0o400)
    put(folder / "wire-agent-mac", "for this one")
    environ = {"CREDENTIALS_DIRECTORY": str(folder), "WIRE_PASSPHRASE_FILE": put(tmp_path / "file", "of the shell\r\n")}
    found = [one.passphrase for one in passphrases.at_hand("agent", "mac", environ)]
    assert found == [b"for this one", b"for all of them", b"of the shell"]
    assert [one.passphrase for one in passphrases.at_hand("root", "root", environ)] == found[1:]
    assert passphrases.at_hand("agent", "mac", {}) == []


def test_a_wrong_one_does_not_hide_a_right_one(path: str, tmp_path: Path, word_file: Path) -> None:
    put(tmp_path / "credentials" / "wire-passphrase", "of another key")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path / "credentials"), "WIRE_PASSPHRASE_FILE": str(word_file)}
    load(path, **environ).ready()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda file: put(file, WORD, 0o640), "others can"),
        (lambda file: put(file, ""), "holds no passphrase"),
        (lambda file: put(file, "\n" + WORD), "holds no passphrase"),
        (lambda file: put(file, "x" * 5_000), "holds no passphrase"),
        (lambda file: file.mkdir(), "Is a directory"),
        (lambda file: os.mkfifo(file, 0o600), "no regular file"),
        (lambda file: None, "No such file"),
    ],
    ids=["others can read it", "empty", "empty line", "too long", "a folder", "a pipe", "not there"],
)
def test_a_file_that_cannot_be_used_is_told(path: str, tmp_path: Path, make: Callable[[Path], Any], said: str) -> None:
    file = tmp_path / "word"
    make(file)
    error = refused(load(path, WIRE_PASSPHRASE_FILE=str(file)))
    assert error.reason == "key-locked"
    assert said in error.message
    assert WORD not in str(error.as_json())


def test_the_same_letters_are_the_same_bytes() -> None:
    assert passphrases.encoded("caf\u00e9 caf\u00e9") == passphrases.encoded("cafe\u0301 cafe\u0301")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "passphrase-weak"),
        ("seven77", "passphrase-weak"),
        ("two\nlines of it", "passphrase-form"),
        ("a bell \a rings", "passphrase-form"),
        ("\u00e9" * 600, "passphrase-form"),
    ],
)
def test_what_is_no_passphrase(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        passphrases.new(text)
    assert caught.value.reason == reason
    assert not text or text not in caught.value.message


class _Terminal:
    def isatty(self) -> bool:
        return True


def test_a_person_is_asked_three_times_and_only_where_it_is_meant(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answers = iter(["wrong", "wrong too", WORD])

    def getpass(prompt: str) -> str:
        asked.append(prompt)
        return next(answers)

    monkeypatch.setattr("getpass.getpass", getpass)
    monkeypatch.setattr(passphrases, "_asking", True)
    monkeypatch.setattr(sys, "stdin", _Terminal())
    monkeypatch.setattr(sys, "stderr", _Terminal())
    assert refused(load(path)).reason == "key-locked"
    assert asked == []
    load(path).ready(ask=True)
    assert asked == ["passphrase of the agent key mac: "] * 3
    # What was typed once is good for every key that it opens.
    other = f"{path.removesuffix('mac.key')}spark.key"
    keyfile.create(other, name="spark", kind="agent", wire=WIRE, passphrase=WORD.encode())
    keyfile.read(other).signer.ready()
    passphrases.never_ask()
    assert not passphrases.can_ask()


def test_three_wrong_answers_are_enough(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: "wrong")
    monkeypatch.setattr(passphrases, "can_ask", lambda: True)
    with pytest.raises(IdentityError) as caught:
        load(path).ready(ask=True)
    assert caught.value.reason == "passphrase-wrong"
    assert "the terminal" in caught.value.message


def test_a_key_is_opened_once(path: str, word_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bytes] = []
    derive = locked._key
    monkeypatch.setattr(locked, "_key", lambda word, *rest: tried.append(word) or derive(word, *rest))
    wrong = put(word_file.parent / "wrong", "another")
    for _ in range(3):
        assert refused(load(path, WIRE_PASSPHRASE_FILE=wrong)).reason == "passphrase-wrong"
    assert tried == [b"another"]
    for _ in range(3):
        load(path, WIRE_PASSPHRASE_FILE=str(word_file)).sign(LINE_TYPE, b"x")
    assert tried == [b"another", WORD.encode()]


def test_nothing_that_is_printed_shows_it(path: str, word_file: Path, tmp_path: Path) -> None:
    environ = {"WIRE_PASSPHRASE_FILE": str(word_file)}
    signer = load(path, **environ)
    signer.ready()
    wrong = refused(load(f"{_other(path)}", WIRE_PASSPHRASE_FILE=str(word_file)))
    sources = passphrases.at_hand("agent", "mac", environ)
    sealed = locked.parse(json.loads(Path(path).read_bytes()))
    said = [repr(signer), repr(sources), repr(sealed), str(wrong.as_json()), repr(wrong), repr(wrong.__context__)]
    shown = " ".join(said)
    for secret in (WORD, b64(SEED)[:12], SEED.hex()[:12], repr(SEED)[:12]):
        assert secret not in shown


def _other(path: str) -> str:
    other = f"{path.removesuffix('mac.key')}spark.key"
    keyfile.create(other, name="mac", kind="agent", wire=WIRE, passphrase=b"another word")
    return other
