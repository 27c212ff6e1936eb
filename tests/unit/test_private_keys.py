"""Private keys are found wherever they stand, and talk about them is not taken for one."""

import json
import subprocess
from pathlib import Path

import pytest

from wire.hooks.private import find
from wire.keys import keyfile
from wire.protocol.encoding import Signer, b64

LOCKED = b'"sealed":"' + b"A" * 96 + b'"'
WIRE = "00112233445566778899aabbccddeeff"


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("keys") / "k" / "agent-mac.key"
    keyfile.create(str(path), name="mac", kind="agent", wire=WIRE)
    return path.read_bytes()


def test_a_key_file_is_found(key_file: bytes) -> None:
    (found,) = find(key_file)
    assert found.what == "a private key of wire"


SHOWN = pytest.mark.parametrize(
    "shown",
    [
        pytest.param(lambda key: json.dumps(json.loads(key), indent=4).encode(), id="indented"),
        pytest.param(lambda key: json.dumps(dict(reversed(json.loads(key).items()))).encode(), id="reordered"),
        pytest.param(lambda key: json.dumps({"log": key.decode()}).encode(), id="quoted"),
        pytest.param(lambda key: json.dumps([json.dumps([key.decode()])]).encode(), id="quoted-twice"),
        pytest.param(lambda key: b"# backup\n" + key + b"# end\n", id="between-others"),
        pytest.param(lambda key: b"\xff\x00" * 1000 + key, id="in-a-binary"),
    ],
)


@SHOWN
def test_it_is_found_in_whatever_form(key_file: bytes, shown) -> None:
    data = shown(key_file)
    (found,) = find(data)
    assert b"secret" in data[found.offset : found.offset + 20]


@SHOWN
def test_one_under_a_passphrase_is_found_too(key_file: bytes, shown, tmp_path: Path) -> None:
    """Whoever has it may guess for as long as he likes."""
    path = tmp_path / "agent-mac.key"
    path.write_bytes(key_file)
    path.chmod(0o600)
    keyfile.relock(str(path), None, b"correct horse", allow_loose=True)
    (found,) = find(shown(path.read_bytes()))
    assert found.what == "a private key of wire under a passphrase"


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (["-t", "ed25519"], "an OpenSSH private key"),
        (["-t", "ed25519", "-N", "secret"], "an OpenSSH private key"),
        (["-t", "rsa", "-b", "2048", "-m", "PEM"], "a PEM private key"),
        (["-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "secret"], "a PEM private key"),
        (["-t", "ecdsa", "-m", "PKCS8"], "a PEM private key"),
    ],
)
def test_keys_of_ssh_are_found(tmp_path: Path, args: list[str], what: str) -> None:
    """Also in the body of a message, where a newline is written as two characters."""
    path = tmp_path / "id"
    passphrase = [] if "-N" in args else ["-N", ""]
    subprocess.run(["ssh-keygen", "-q", "-f", path, *args, *passphrase], check=True)
    key = path.read_bytes()
    for data in (key, json.dumps({"body": key.decode()}).encode(), key.replace(b"\n", b"\r\n"), b"x\n" + key):
        assert [found.what for found in find(data)] == [what]
    assert find((tmp_path / "id.pub").read_bytes()) == []


@pytest.mark.parametrize(
    "text",
    [
        b"-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49\n",
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiI1VNgAlJlAgICCAAw\n",
        b"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\nlQOYBGcAAAABCADIu0BVqCGNcJ1vJvW3Y0JQ\n",
        b"PuTTY-User-Key-File-2: ssh-ed25519\nEncryption: none\nComment: x\nPrivate-Lines: 1\nAAAA\n",
    ],
)
def test_other_forms_are_found(text: bytes) -> None:
    assert len(find(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"-----BEGIN PRIVATE KEY-----",
        b"it begins with -----BEGIN OPENSSH PRIVATE KEY----- and ends with -----END OPENSSH PRIVATE KEY-----",
        b"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n",
        b"-----BEGIN CERTIFICATE-----\n" + b"A" * 64,
        b'{"body":"-----BEGIN PRIVATE KEY-----","key":"0123456789abcdef0123456789abcdef"}',
        json.dumps({"secret": b64(bytes(32)), "public": b64(b"\1" * 32)}).encode(),
        json.dumps({"secret": "a secret of 44 characters, and not a key at a"}).encode(),
        json.dumps({"public": b64(Signer(bytes(32)).public)}).encode(),
        b"PuTTY-User-Key-File-2: ssh-ed25519",
    ],
)
def test_talk_is_none(text: bytes) -> None:
    assert find(text) == []


def test_many_are_told_in_their_order(key_file: bytes) -> None:
    pem = b"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n"
    found = find(pem + key_file + pem)
    assert [one.what for one in found] == ["a PEM private key", "a private key of wire", "a PEM private key"]


def test_a_flood_of_beginnings_is_looked_through_in_time() -> None:
    """What is quadratic would take minutes here."""
    for flood in (
        b"-----BEGIN PRIVATE KEY-----",
        b"PuTTY-User-Key-File-1: ",
        b'"secret":"' + b"A" * 43 + b'="',
        LOCKED,
    ):
        assert find(flood * ((1 << 20) // len(flood))) == []
