"""Invitations: a code says what its maker said, a spoiled one says nothing, and a MAC binds one key to one of them."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from wire.keys import invitations, pasted
from wire.keys.invitations import CODE_MAX, PREFIX, Invitation, encode, holds, is_code, mac, make, parse
from wire.protocol import strictjson

HASH = "0123456789abcdef" * 4
CHECKPOINT = "3:SHA256:" + "A" * 43
SAYS = Invitation("git@host:team.git", HASH, CHECKPOINT, "ab" * 20, "spark", "agent", bytes(range(24)), 1_796_000_000)
TEXT = (
    b'{"remote":"git@host:team.git","wire_hash":"%s","checkpoint":"%s","tip":"%s","name":"spark","role":"agent",'
    b'"secret":"000102030405060708090a0b0c0d0e0f1011121314151617","expires":1796000000}'
) % (HASH.encode(), CHECKPOINT.encode(), b"ab" * 20)


def coded(raw: bytes, check: str | None = None) -> str:
    """Return a code around any bytes."""
    right = hashlib.sha256(raw).hexdigest()[:8]
    return f"{PREFIX}{urlsafe_b64encode(raw).decode().rstrip('=')}.{right if check is None else check}"


def changed(**changes: Any) -> str:
    """Return a whole code that says something else."""
    return coded(strictjson.dumps({**strictjson.loads(TEXT), **changes}))


def test_a_code_is_what_the_protocol_says() -> None:
    assert encode(SAYS) == coded(TEXT)
    assert parse(coded(TEXT)) == SAYS
    assert SAYS.wire == HASH[:32]
    assert is_code(f"\n  {encode(SAYS)}")
    assert not is_code(encode(SAYS)[1:])


def test_what_a_mail_does_to_a_code_does_no_harm() -> None:
    code = encode(SAYS)
    assert parse(f" {code[:50]}\r\n\t{code[50:]} \n") == SAYS


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_every_length_has_one_padding(length: int) -> None:
    said = SAYS._replace(remote="x" * (20 + length))
    assert parse(encode(said)) == said


@pytest.mark.parametrize("role", ["agent", "human"])
@pytest.mark.parametrize("tip", ["c0" * 20, "c0" * 32])
def test_both_roles_and_both_kinds_of_repositories(role: str, tip: str) -> None:
    assert parse(changed(role=role, tip=tip)) == SAYS._replace(role=role, tip=tip)


def test_each_invitation_has_a_secret_of_its_own() -> None:
    made = [make(*SAYS[:6], expires=7) for _ in range(2)]
    assert made[0][:6] == SAYS[:6]
    assert made[0].expires == 7
    assert [len(one.secret) for one in made] == [24, 24]
    assert made[0].secret != made[1].secret


WHOLE = encode(SAYS)
SPOILED = {
    "nothing": ("", "begins with"),
    "another prefix": (WHOLE.replace("join-1", "join-2"), "begins with"),
    "as long as a code may be, and none": (WHOLE + "A" * (CODE_MAX - len(WHOLE)), "checksum"),
    "longer than a code may be": (WHOLE + "A" * (CODE_MAX - len(WHOLE) + 1), "begins with"),
    "the prefix alone": (PREFIX, "checksum"),
    "no checksum": (WHOLE.rpartition(".")[0], "checksum"),
    "another checksum": (coded(TEXT, "0" * 8), "checksum"),
    "a checksum that is cut": (WHOLE[:-1], "checksum"),
    "the checksum of nothing": (coded(b""), "checksum"),
    "a character of another alphabet": (WHOLE.replace(PREFIX + "e", PREFIX + "+"), "checksum"),
    "characters that a reader may pass over": (WHOLE.replace(PREFIX, PREFIX + "!!!!"), "checksum"),
    "more padding": (WHOLE.replace(".", "=.").replace("join-1=", "join-1", 1), "checksum"),
    "another member": (coded(TEXT.replace(b'"tip"', b'"top"')), "damaged"),
    "a length that no base64 has": (f"{PREFIX}AAAAA.00000000", "checksum"),
    "a piece is missing": (WHOLE[:40] + WHOLE[44:], "checksum"),
    "no JSON": (coded(b"hello"), "damaged"),
    "a list": (coded(b"[]"), "damaged"),
    "a member is missing": (coded(TEXT.replace(b'"name":"spark",', b"")), "damaged"),
    "a member more": (coded(TEXT.replace(b"}", b',"x":1}')), "damaged"),
    "another order": (coded(strictjson.dumps(dict(reversed(strictjson.loads(TEXT).items())))), "damaged"),
    "a remote that is no text": (changed(remote=1), "damaged"),
    "a remote that is empty": (changed(remote=""), "damaged"),
    "a hash that is none": (changed(wire_hash="ab" * 31), "damaged"),
    "a hash with a newline": (changed(wire_hash=HASH + "\n"), "damaged"),
    "a checkpoint that is none": (changed(checkpoint="3"), "damaged"),
    "a tip that is none": (changed(tip="ab" * 21), "damaged"),
    "a name that is none": (changed(name="../x"), "damaged"),
    "a reserved name": (changed(name="trust"), "damaged"),
    "a role that is none": (changed(role="root"), "damaged"),
    "a secret that is no hex": (changed(secret="x" * 48), "damaged"),
    "a secret that is short": (changed(secret="00" * 23), "damaged"),
    "a secret that is a number": (changed(secret=0), "damaged"),
    "a time that is a text": (changed(expires="7"), "damaged"),
    "a time that is true": (changed(expires=True), "damaged"),
    "a time with a fraction": (coded(TEXT.replace(b"1796000000", b"1796000000.5")), "damaged"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "said"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_code_is_refused_and_not_quoted(code: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        parse(code)
    assert SAYS.secret.hex() not in str(refused.value)
    assert WHOLE[20:40] not in str(refused.value)


def test_a_mac_binds_wire_name_role_and_key() -> None:
    public = bytes(range(32))
    text = f"wire/v1/invitation\n{HASH}\nspark\nagent\n".encode() + public
    right = mac(SAYS, public)
    assert right == hmac.new(SAYS.secret, text, "sha256").digest()
    assert len(right) == invitations.MAC_BYTES
    assert holds(SAYS, public, right)
    for other in (
        SAYS._replace(secret=bytes(24)),
        SAYS._replace(wire_hash="0" * 64),
        SAYS._replace(name="sparc"),
        SAYS._replace(role="human"),
    ):
        assert not holds(other, public, right)
    assert not holds(SAYS, bytes(32), right)
    assert not holds(SAYS, public, None)
    assert not holds(SAYS, public, right[:-1])
    # What it is not bound to: where the repository is reached, and until when.
    assert holds(SAYS._replace(remote="other", expires=0, tip="0" * 40), public, right)


def test_a_line_has_its_word_in_front_and_all_of_its_bytes() -> None:
    for raw in (b"\0\0\x17", b"\0\x05\xc0", b"a", b"ab"):  # the first two end in X
        line = pasted.line("word.", raw)
        assert pasted.read("word.", line, most=100) == raw
        assert pasted.read("word.", line.removeprefix("word."), most=100) == b""
