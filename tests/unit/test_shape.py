"""What a path of a tip is."""

import pytest

from wire.daemon.shape import Kind, Shape, classify, segment_path, trust_path

PLAIN = "100644"
KEY = "0" * 32


@pytest.mark.parametrize(
    ("path", "mode", "shape"),
    [
        (b"_coordination/mac/spark/000001.jsonl", PLAIN, Shape(Kind.SEGMENT, "mac/spark", 1)),
        (b"_coordination/mac/all/123456.jsonl", PLAIN, Shape(Kind.SEGMENT, "mac/all", 123456)),
        (b"_coordination/mac/spark/000001.jsonl", "000000", Shape(Kind.SEGMENT, "mac/spark", 1)),
        (b"_coordination/trust/000001.json", PLAIN, Shape(Kind.TRUST, number=1)),
        (b"_coordination/trust/000012.json.sig", PLAIN, Shape(Kind.TRUST_SIGNATURES, number=12)),
        (b"_coordination/trust.json", PLAIN, Shape(Kind.NEWEST_TRUST)),
        (b"_coordination/.gitattributes", PLAIN, Shape(Kind.ATTRIBUTES)),
        (f"_coordination/requests/bee.{KEY}.json".encode(), PLAIN, Shape(Kind.REQUEST)),
        (f"_coordination/requests/trust.{KEY}.json".encode(), PLAIN, Shape(Kind.PROPOSAL)),
        (f"_coordination/requests/trust.{KEY}.json".encode(), "120000", Shape(Kind.ILLEGAL)),
        (f"_coordination/requests/trust.{KEY}.json.sig".encode(), PLAIN, Shape(Kind.ILLEGAL)),
        (f"_coordination/requests/trust.{KEY[1:]}.json".encode(), PLAIN, Shape(Kind.ILLEGAL)),
        (b"README", PLAIN, Shape(Kind.FOREIGN)),
        (b"_coordination", "120000", Shape(Kind.ILLEGAL)),
        (b"_coordination2/mac/spark/000001.jsonl", PLAIN, Shape(Kind.FOREIGN)),
        (b"\xff/x", PLAIN, Shape(Kind.FOREIGN)),
        (b"_coordination/\xff", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/mac/spark/000001.jsonl", "120000", Shape(Kind.ILLEGAL)),
        (b"_coordination/mac/spark/000001.jsonl", "160000", Shape(Kind.ILLEGAL)),
        (b"_coordination/mac/spark/000001.jsonl", "100755", Shape(Kind.ILLEGAL)),
        (b"_coordination/mac/spark/000000.jsonl", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/mac/spark/1.jsonl", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/mac/spark/0000001.jsonl", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/mac/spark/000001.JSONL", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/mac/spark/000001.jsonl/x", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/mac/mac/000001.jsonl", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/Mac/spark/000001.jsonl", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/all/spark/000001.jsonl", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/mac/../000001.jsonl", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/trust/1.json", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/trust/000001.json.bak", PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/requests/bee.json", PLAIN, Shape(Kind.ILLEGAL)),
        (f"_coordination/requests/all.{KEY}.json".encode(), PLAIN, Shape(Kind.ILLEGAL)),
        (f"_coordination/requests/bee.{KEY.replace('0', 'A')}.json".encode(), PLAIN, Shape(Kind.ILLEGAL)),
        (b"_coordination/mac", PLAIN, Shape(Kind.ILLEGAL)),
    ],
)
def test_paths(path: bytes, mode: str, shape: Shape) -> None:
    assert classify(path, mode) == shape


def test_paths_are_made_as_they_are_read() -> None:
    assert classify(segment_path("mac/spark", 7).encode(), PLAIN) == Shape(Kind.SEGMENT, "mac/spark", 7)
    assert classify(trust_path(7).encode(), PLAIN) == Shape(Kind.TRUST, number=7)
