"""Trust documents that claim a number which another one has: how many are kept, and which give way."""

from pathlib import Path

import pytest

from support.trusts import begun, grouped, signer
from wire.keys.trust import file_name
from wire.protocol.encoding import sha256_hex
from wire.store import trustfiles, trustforks
from wire.store.paths import WirePlaces


def test_a_flood_of_documents_keeps_no_later_one_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can sign one can sign thousands; what a tip shows is kept, and so is what a person decided for."""
    monkeypatch.setattr(trustforks, "KEPT_MAX", 5)
    places = WirePlaces(str(tmp_path), "hub", str(tmp_path / "clone"))
    Path(places.root).mkdir(parents=True)
    trustforks.keep(places, 7, b"decided", b"s")
    trustforks.decide(places, 7, sha256_hex(b"decided"))
    trustforks.keep(places, 7, b"about to be followed", b"s")
    for number in range(20):
        trustforks.keep(places, 7, b"flood %d" % number, b"s", spare=sha256_hex(b"about to be followed"))
    trustforks.keep(places, 7, b"the right one", b"s", spare=sha256_hex(b"about to be followed"))
    kept = {one.raw for one in trustforks.kept(places)}
    assert kept >= {b"decided", b"about to be followed", b"the right one", b"flood 19"}
    assert len(kept) == 5
    assert trustforks.decided(places)[7].raw == b"decided"
    names = [path.name.removesuffix(".sig") for path in Path(places.root, "forks").iterdir()]
    assert len(names) == 2 * 5 + 1, "no signature stays without its document"


def test_files_of_two_documents_do_not_mix(tmp_path: Path) -> None:
    """A kill left the signatures of another document beside the one that is held, and it is the held one after all."""
    folder, root = str(tmp_path / "trust"), signer("root-a")
    base = begun([root])
    one, two = (grouped(base, name, [], by=[root]) for name in ("one", "two"))
    trustfiles.write(folder, one)
    Path(folder, f"{file_name(2)}.sig").write_bytes(two.signatures[-1])
    trustfiles.write(folder, one)
    assert trustfiles.read(folder) == one
