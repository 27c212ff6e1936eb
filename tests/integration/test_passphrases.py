"""Keys under a passphrase on real machines: what goes on without it, and what waits for it."""

import json
import os
import pty
import select
import subprocess
from pathlib import Path

import pytest

from support.machine import Machine
from support.team import Team, incidents, path, pin, read, state, write
from support.waiting import eventually
from wire.keys import keyfile

WORD, OTHER = "correct horse battery", "staple and more of it"


def lock(machine: Machine, word: str = WORD, *args: str) -> None:
    machine.wire("keys", "passphrase", "--stdin", *args, input=f"{word}\n")


def word_file(machine: Machine, word: str = WORD) -> dict[str, str | None]:
    """Return the environment in which a machine's shell has the passphrase in a file."""
    file = machine.root / "word"
    file.write_text(f"{word}\n")
    file.chmod(0o600)
    return {"WIRE_PASSPHRASE_FILE": str(file)}


def key_file(machine: Machine, kind: str = "agent") -> Path:
    name = machine.name if kind == "agent" else "root"
    return Path(keyfile.key_path(str(machine.wire_home / "keys"), wire=pin(machine).wire, kind=kind, name=name))


def presence(team: Team, agent: str) -> str:
    return team.remote.git("rev-parse", f"refs/wire/presence/{agent}").strip()


def test_sending_with_and_without_it(team: Team) -> None:
    lock(team.mac)
    assert b'"secret"' not in key_file(team.mac).read_bytes()
    before = list((state(team.mac) / "journal").rglob("*"))
    failed = team.mac.wire("send", "spark", "hello", "--json", check=False)
    told = json.loads(failed.stdout)
    assert (failed.status, told["reason"]) == (5, "key-locked")
    assert "WIRE_PASSPHRASE_FILE" in told["next_step"]
    assert list((state(team.mac) / "journal").rglob("*")) == before
    wrong = team.mac.wire("send", "spark", "hello", "--json", env=word_file(team.mac, "no such word"), check=False)
    assert (wrong.status, json.loads(wrong.stdout)["reason"]) == (5, "passphrase-wrong")
    assert "no such word" not in wrong.stdout + wrong.stderr
    team.mac.send("spark", "hello", env=word_file(team.mac))
    team.settle()
    assert read(team.spark) == ["hello"]
    team.check()


def test_what_a_daemon_does_without_it_and_says(team: Team) -> None:
    """It receives, verifies and publishes what was signed; it signs nothing, and says so."""
    team.settle()
    lock(team.mac)
    silent = presence(team, "mac")
    team.mac.start_daemon()
    team.mac.send("spark", "signed by hand", env=word_file(team.mac))
    team.spark.send("mac", "hello")
    team.spark.wire("sync")

    def exchanged() -> bool:
        team.spark.wire("sync", check=False)
        return read(team.mac, "--all", status=None) == ["hello"] and pin(team.spark).accepted["mac/spark"].seq == 1

    eventually(exchanged, what="lines both ways, beside a locked key")
    status = team.mac.wire("status", check=False)
    assert status.status == 1
    assert "the key of mac is locked" in status.stdout
    assert team.mac.json("status", check=False)["locked"] == ["mac"]
    doctor = team.mac.jsonl("doctor", check=False)
    found = [one for one in doctor if one["check"].endswith("key of mac")]
    assert [one["verdict"] for one in found] == ["wrong"]
    assert not incidents(team.mac)
    assert presence(team, "mac") == silent
    team.mac.stop_daemon()
    team.mac.start_daemon(env=word_file(team.mac))

    def well() -> bool:
        return team.mac.wire("status", check=False).status == 0 and presence(team, "mac") != silent

    eventually(well, what="a daemon with the passphrase is well")
    team.mac.stop_daemon()
    team.sync_and_check()


def test_a_shell_without_it_says_nothing_of_a_daemon_that_has_it(team: Team) -> None:
    lock(team.mac)
    team.mac.start_daemon(env=word_file(team.mac))
    eventually(lambda: team.mac.wire("status", check=False).status == 0, what="the daemon is well")
    synced = team.mac.json("sync")
    assert synced["locked"] == ["mac"]
    assert team.mac.wire("status", check=False).status == 0


def test_it_is_changed_and_taken_away(team: Team) -> None:
    lock(team.mac)
    shown = team.mac.json("keys", "show")
    assert shown["passphrase"] is True
    short = team.mac.wire("keys", "passphrase", "--stdin", "--json", input=f"{WORD}\nshort\n", check=False)
    assert (short.status, json.loads(short.stdout)["reason"]) == (2, "passphrase-weak")
    before = key_file(team.mac).read_bytes()
    wrong = team.mac.wire("keys", "passphrase", "--stdin", "--json", input=f"{OTHER}\n{OTHER}\n", check=False)
    assert (wrong.status, json.loads(wrong.stdout)["reason"]) == (5, "passphrase-wrong")
    unknown = team.mac.wire("keys", "passphrase", "--stdin", "--json", input=f"{OTHER}\n", check=False)
    assert (unknown.status, json.loads(unknown.stdout)["reason"]) == (5, "key-locked")
    many = team.mac.wire("keys", "passphrase", "--stdin", input="a\nb\nc\n", check=False)
    assert many.status == 2
    assert key_file(team.mac).read_bytes() == before
    team.mac.wire("keys", "passphrase", "--stdin", input=f"{WORD}\n{OTHER}\n")
    assert team.mac.wire("send", "spark", "no", env=word_file(team.mac), check=False).status == 5
    env = word_file(team.mac, OTHER)
    team.mac.send("spark", "one", env=env)
    # The current one may be at hand.
    team.mac.wire("keys", "passphrase", "--remove", env=env)
    team.mac.send("spark", "two")
    nobody = team.mac.wire("keys", "passphrase", "--json", check=False)
    assert (nobody.status, json.loads(nobody.stdout)["reason"]) == (2, "usage")
    team.settle()
    assert read(team.spark) == ["one", "two"]
    assert not [one for one in key_file(team.mac).parent.iterdir() if one.suffix != ".key"]


def test_the_root_key_too(team: Team) -> None:
    lock(team.mac, WORD, "--root")
    team.mac.send("spark", "the agent's key is another one")
    late = team.new_machine("late")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    joined = late.json("join", team.remote.url, "--as", "late", "--trust", checkpoint)
    team.mac.wire("sync")
    before = team.remote.tip()
    failed = team.mac.wire("trust", "approve", "late", joined["fingerprint"], "--json", check=False)
    assert (failed.status, json.loads(failed.stdout)["reason"]) == (5, "key-locked")
    assert team.remote.tip() == before
    done = team.mac.json("trust", "approve", "late", joined["fingerprint"], env=word_file(team.mac))
    assert done["name"] == "late"
    kinds = {one["kind"]: one["passphrase"] for one in team.mac.jsonl("keys", "list")}
    assert kinds == {"agent": False, "root": True}


def test_a_rotation_keeps_it(team: Team) -> None:
    lock(team.mac)
    env = word_file(team.mac)
    team.mac.send("spark", "with the old key", env=env)
    failed = team.mac.wire("keys", "rotate", "--json", check=False)
    assert (failed.status, json.loads(failed.stdout)["reason"]) == (5, "key-locked")
    assert [one["kind"] for one in team.mac.jsonl("keys", "list")] == ["agent", "root"]
    team.mac.wire("keys", "rotate", env=env)
    assert team.mac.wire("send", "spark", "no", check=False).status == 5
    team.mac.send("spark", "with the new key", env=env)
    team.settle()
    assert read(team.spark) == ["with the old key", "with the new key"]
    assert {one["kind"]: one["passphrase"] for one in team.mac.jsonl("keys", "list")} == {
        "agent": True,
        "former": True,
        "root": False,
    }
    # Keys that were replaced go with the one that is.
    done = team.mac.json("keys", "passphrase", "--stdin", input=f"{WORD}\n{OTHER}\n")
    assert len(done["files"]) == 2
    team.mac.json("keys", "passphrase", "--stdin", "--remove", input=f"{OTHER}\n")
    assert not any(one["passphrase"] for one in team.mac.jsonl("keys", "list"))
    team.check()


def test_lines_that_have_to_be_signed_again_wait_for_it(team: Team) -> None:
    """Somebody with a copy of the key took our number: nothing of ours is given up while the key is locked."""
    team.settle()
    (theirs,) = write(team.mac, "mac/spark", "of a copy of this machine")
    team.mac.send("spark", "ours")
    lock(team.mac)
    copy = team.vandal("copy")
    copy.write(path("mac/spark"), theirs)
    copy.commit()
    copy.push()
    locked = team.mac.wire("sync", "--json", check=False)
    assert (locked.status, json.loads(locked.stdout)["reason"]) == (5, "key-locked")
    assert incidents(team.mac, "KEY")
    journal = (state(team.mac) / "journal" / "mac" / "spark").rglob("*.jsonl")
    assert any(b"ours" in file.read_bytes() for file in journal)
    assert not incidents(team.mac, "CLONED")
    team.mac.wire("sync", env=word_file(team.mac), check=False)
    assert incidents(team.mac, "CLONED")
    assert not incidents(team.mac, "KEY")
    team.spark.wire("sync")
    assert read(team.spark) == ["of a copy of this machine", "ours"]


def at_a_terminal(machine: Machine, args: list[str], answers: list[str]) -> tuple[int, str]:
    """Run a command at a terminal of its own and type an answer whenever it asks; return its status and the screen."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [str(machine.program), *args],
        stdin=side,
        stdout=side,
        stderr=side,
        env=machine.environ(),
        cwd=machine.home,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(side)
    screen, asked = "", 0
    try:
        while True:
            ready, _, _ = select.select([main], [], [], 30)
            assert ready, f"it neither ends nor asks:\n{screen}"
            try:
                data = os.read(main, 4096)
            except OSError:
                break
            if not data:
                break
            screen += data.decode()
            if screen.count(": ") > asked and screen.endswith(": ") and asked < len(answers):
                os.write(main, answers[asked].encode() + b"\n")
                asked = screen.count(": ")
    finally:
        status = process.wait(30)
        os.close(main)
    return status, screen


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize("right", [True, False])
def test_a_person_types_it_and_it_is_not_shown(team: Team, right: bool) -> None:
    status, screen = at_a_terminal(team.mac, ["keys", "passphrase"], [WORD, WORD if right else OTHER])
    assert WORD not in screen
    if not right:
        assert status == 2
        assert team.mac.json("keys", "show")["passphrase"] is False
        return
    assert status == 0, screen
    status, screen = at_a_terminal(team.mac, ["send", "spark", "typed"], [WORD])
    assert status == 0, screen
    assert WORD not in screen
    team.mac.sent.append("mac/spark/1")
    team.settle()
    assert read(team.spark) == ["typed"]
    status, screen = at_a_terminal(team.mac, ["keys", "passphrase", "--remove"], [WORD])
    assert status == 0, screen
    assert team.mac.json("keys", "show")["passphrase"] is False
