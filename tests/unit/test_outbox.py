"""What may wait to be sent, seen from the files alone."""

import os

import pytest

from support.lines import WIRE, Author
from wire.daemon import outbox
from wire.daemon.outbox import Outbox
from wire.store import journal
from wire.store.paths import WirePlaces

CHANNEL = "mac/spark"


@pytest.fixture
def places(tmp_path):
    (tmp_path / "clone/_coordination").mkdir(parents=True)
    return WirePlaces(str(tmp_path / "state"), "team", str(tmp_path / "clone"))


def say(places, *bodies, channel=CHANNEL, copy=True):
    """Send, as `wire send` does, and return the channel's new end."""
    author = Author(channel)
    copy_to = places.coordination if copy else None
    return journal.append(places, WIRE, channel, author.saying(*bodies), copy_to=copy_to)[-1]


def test_nothing_is_there_at_first(places):
    look = Outbox.look(places, ["mac"])
    assert look == Outbox({}, {})
    assert not look.waits({})
    assert look.written() == 0


def test_a_send_is_seen_and_waits_until_it_is_accepted(places):
    before = Outbox.look(places, ["mac"])
    end = say(places, "one", "two")
    after = Outbox.look(places, ["mac"])
    assert after != before
    assert after.lines_since(before, places) == 2
    assert after.waits({})
    assert not after.waits({CHANNEL: end})
    say(places, "three")
    again = Outbox.look(places, ["mac"])
    assert again.waits({CHANNEL: end})
    assert again.lines_since(after, places) == 1
    assert again.written() >= after.written() > 0


def test_only_local_agents_count(places):
    say(places, "one")
    say(places, "one", channel="spark/mac")
    assert Outbox.look(places, ["spark"]).journal.keys() == {"spark/mac/000001.jsonl"}


@pytest.mark.parametrize("how", ["appended by hand", "missing", "shorter", "a segment beyond", "only in the clone"])
def test_a_file_of_the_clone_that_is_not_the_journals_waits(places, how):
    end = say(places, "one")
    file = f"{places.coordination}/{CHANNEL}/000001.jsonl"
    assert not Outbox.look(places, ["mac"]).waits({CHANNEL: end})
    if how == "appended by hand":
        with open(file, "ab") as appending:
            appending.write(b"half a line")
    elif how == "missing":
        os.unlink(file)
    elif how == "shorter":
        os.truncate(file, 10)
    elif how == "a segment beyond":
        with open(file.replace("1.jsonl", "2.jsonl"), "wb") as made:
            made.write(b"x\n")
    else:
        os.makedirs(f"{places.coordination}/mac/all")
        with open(f"{places.coordination}/mac/all/000001.jsonl", "wb") as made:
            made.write(b"x\n")
    assert Outbox.look(places, ["mac"]).waits({CHANNEL: end})


def test_a_replaced_file_of_the_same_size_is_a_change(places):
    say(places, "one")
    file = f"{places.coordination}/{CHANNEL}/000001.jsonl"
    before = Outbox.look(places, ["mac"])
    with open(file, "rb") as reading, open(f"{file}.new", "wb") as writing:
        writing.write(reading.read())
    os.rename(f"{file}.new", file)
    assert Outbox.look(places, ["mac"]) != before


def test_a_new_segment_waits(places):
    end = say(places, "one")
    long = "x" * 60_000
    for _ in range(5):
        end = say(places, long)
    assert end.segment == 2
    look = Outbox.look(places, ["mac"])
    assert not look.waits({CHANNEL: end})
    assert look.waits({CHANNEL: end._replace(segment=1)})


def test_folders_lead_to_every_channel(places):
    say(places, "one")
    wanted = outbox.folders(places, ["mac"])
    assert wanted == {
        places.root: frozenset({"journal"}),
        places.clone: frozenset({"_coordination"}),
        places.journal_dir: frozenset({"mac"}),
        places.coordination: frozenset({"mac"}),
        f"{places.journal_dir}/mac": None,
        f"{places.coordination}/mac": None,
        f"{places.journal_dir}/{CHANNEL}": None,
        f"{places.coordination}/{CHANNEL}": None,
    }


def test_what_cannot_be_read_counts_as_not_there(places):
    os.makedirs(places.journal_dir)
    os.symlink("/nonexistent", f"{places.journal_dir}/mac")
    with open(f"{places.coordination}/mac", "wb"):
        pass
    assert Outbox.look(places, ["mac"]) == Outbox({}, {})
    assert f"{places.journal_dir}/mac" in outbox.folders(places, ["mac"])
