"""I3: a host that takes no file above a size, and what never gets near it."""

import json

from support import oracle
from support.sizes import size
from support.team import read, state

LIMIT = """
limit=1048576
while read old new ref; do
  case "$old" in *[1-9a-f]*) span="$old..$new";; *) span="$new";; esac
  git rev-list --objects "$span" | cut -d' ' -f1 |
    git cat-file --batch-check='%(objecttype) %(objectsize)' | {
      while read kind bytes; do
        if [ "$kind" = blob ] && [ "$bytes" -gt $limit ]; then
          echo "remote: error: GH001: Large files detected: $bytes bytes" >&2
          exit 1
        fi
      done
    } || exit 1
done
"""
"""A limit as hosts have one, only smaller: one megabyte."""


def test_i3_segments_roll_over_far_below_any_hosts_limit(team):
    """A channel of more than the limit goes through, in files that are all far below it."""
    count = size(60, 400, "lines of 20 kB against a host's limit of 1 MB")
    team.remote.install_pre_receive(LIMIT)
    batch = "".join(json.dumps({"to": "spark", "body": f"{n:04} " + "x" * 20_000}) + "\n" for n in range(count))
    team.mac.remember(team.mac.wire("send", "--batch", input=batch))
    team.sync_and_check()
    held = {path: data for path, data in oracle.at_tip(team.remote).items() if "mac/spark" in path}
    assert sum(map(len, held.values())) > 1 << 20
    assert len(held) >= 5
    assert max(map(len, held.values())) <= 262_144
    assert [body[:4] for body in read(team.spark)] == [f"{n:04}" for n in range(count)]


def everything(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and "locks" not in file.parts}


def test_i3_a_message_above_the_limit_is_refused_before_a_byte_is_written(team):
    team.mac.send("spark", "before")
    before = everything(state(team.mac)), everything(team.mac.clone())
    for args, text in (
        (("send", "spark", "-"), "x" * 70_000),
        (("send", "spark", "-"), "x" * 65_500),
        (("send", "spark", "-"), '"' * 40_000),
        (("send", "spark", "-"), "\x01" * 12_000),
        (("send", "spark", "--json", "-"), json.dumps({"text": "x" * 65_500})),
        (("send", "--batch"), '{"to":"spark","body":"fits"}\n' + json.dumps({"to": "spark", "body": "x" * 66_000})),
        (("send", "--batch"), '{"to":"all","body":"fits"}\n' + json.dumps({"to": "spark", "body": "x" * 66_000})),
    ):
        refused = team.mac.wire(*args, input=text, check=False)
        assert refused.status == 2, str(refused)
        assert "65536" in refused.stderr + refused.stdout, "it names the limit"
        assert (everything(state(team.mac)), everything(team.mac.clone())) == before
    team.sync_and_check()
    assert read(team.spark) == ["before"]


def test_i3_the_largest_message_that_fits_goes_through(team):
    """To the byte: one more is refused."""
    low, high = 64_000, 65_536
    while high - low > 1:
        middle = (low + high) // 2
        done = team.mac.wire("send", "spark", "-", input="x" * middle, check=False)
        if done.status == 0:
            team.mac.remember(done)
            low = middle
        else:
            assert done.status == 2
            high = middle
    team.sync_and_check()
    assert max(map(len, read(team.spark))) == low
    longest = max(len(line) + 1 for data in oracle.at_tip(team.remote).values() for line in data.split(b"\n"))
    assert 65_530 < longest <= 65_536
