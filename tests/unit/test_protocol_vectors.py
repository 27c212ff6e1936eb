"""The golden vectors: they are what their generator makes, and product and second implementation agree on each."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from support import second, second_forms, second_presence, second_sealed
from vectors import generate
from vectors.forge import expand
from wire.errors import TrustError, WireError
from wire.keys import exhibits, proposals, requests, roots, rotations, weighing
from wire.keys.fingerprints import words
from wire.keys.trust import Chain
from wire.protocol import chain, encoding, line, names, presence, sealed, strictjson

FOLDER = Path(generate.__file__).parent
FILES = {path.name: json.loads(path.read_bytes()) for path in FOLDER.glob("*.json")}


def vectors(file: str, member: str = "vectors") -> pytest.MarkDecorator:
    """Run a test with each vector of a file."""
    listed = FILES[file][member]
    ids = [vector.get("name") or "-".join(map(str, vector.values())) for vector in listed]
    assert len(set(ids)) == len(ids), "names of vectors are unique"
    return pytest.mark.parametrize(
        "vector", [pytest.param(vector, id=ascii(i)) for vector, i in zip(listed, ids, strict=True)]
    )


def test_the_files_are_what_the_generator_makes() -> None:
    made = generate.files()
    assert set(made) == set(FILES)
    for name, text in made.items():
        assert (FOLDER / name).read_bytes() == text.encode("ascii"), (
            f"run: cd tests && python -m vectors.generate ({name})"
        )


def refusal(judge: Callable[[], object]) -> str:
    """Return `ok`, or the reason for which something is refused."""
    try:
        judge()
    except TrustError as error:
        return error.reason if error.message else "no message"
    except line.LineError as error:
        return error.code.value if error.why else "no reason"
    except ValueError as error:
        return str(error)
    return "ok"


class Key:
    """A key as the vectors list it."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.public = encoding.unb64(entry["public"], 32)
        self.status = entry["status"]
        self.positions = {channel: (seq, head) for channel, (seq, head) in entry["positions"].items()}


class Ring:
    """The keys in force in a vector's situation."""

    def __init__(self, ring: Mapping[str, Any]) -> None:
        self._keys = {key_id: (entry["name"], Key(entry)) for key_id, entry in ring.items()}

    def owner(self, key_id: str) -> tuple[str, Key] | None:
        return self._keys.get(key_id)


@vectors("names.json")
def test_names(vector: dict[str, Any]) -> None:
    judge = {
        "name": names.valid_name,
        "recipient": names.valid_recipient,
        "channel": lambda text: names.valid_channel(*text.split("/")) if text.count("/") == 1 else False,
        "id": names.valid_id,
        "segment": lambda text: names.parse_segment_name(text) is not None,
    }
    assert judge[vector["kind"]](vector["text"]) is vector["valid"]


@vectors("names.json")
def test_names_second(vector: dict[str, Any]) -> None:
    judge = {
        "name": second_forms.is_name,
        "recipient": lambda text: text == "all" or second_forms.is_name(text),
        "channel": second_forms.is_channel,
        "id": second_forms.is_id,
        "segment": lambda text: second_forms.numbered(text, ".jsonl") > 0,
    }
    assert judge[vector["kind"]](vector["text"]) is vector["valid"]


@vectors("encodings.json", "base64")
@pytest.mark.parametrize("decode", [encoding.unb64, second_forms.unb64], ids=["product", "second"])
def test_base64(vector: dict[str, Any], decode: Any) -> None:
    if vector["bytes"] is None:
        with pytest.raises(ValueError):
            decode(vector["text"], vector["length"])
    else:
        assert decode(vector["text"], vector["length"]).hex() == vector["bytes"]


@vectors("encodings.json", "keys")
def test_keys(vector: dict[str, Any]) -> None:
    public = bytes.fromhex(vector["public"])
    assert encoding.valid_public(public) is vector["usable"] is second_forms.usable(public)
    if vector["usable"]:
        assert encoding.key_id(public) == vector["id"] == second_forms.key_id(public)
        assert encoding.fingerprint(public) == vector["fingerprint"]
        assert words(vector["fingerprint"]) == vector["words"] == second_forms.spoken(public)


@vectors("encodings.json", "payloads")
def test_payloads(vector: dict[str, Any]) -> None:
    encoded = encoding.pae(vector["type"].encode(), bytes.fromhex(vector["payload"]))
    assert encoded.hex() == vector["encoded"]
    assert second_forms.pae(vector["type"], bytes.fromhex(vector["payload"])) == encoded


@vectors("encodings.json", "signatures")
def test_signatures(vector: dict[str, Any]) -> None:
    public, signature, payload = (bytes.fromhex(vector[name]) for name in ("public", "signature", "payload"))
    assert encoding.verify(public, signature, vector["type"].encode(), payload) is vector["holds"]
    assert vector["type"] == "application/vnd.git-wire.line+json;v=1"
    assert second_forms.signed_by(public, signature, "line", payload) is vector["holds"]


@vectors("encodings.json", "beginnings")
def test_beginnings(vector: dict[str, Any]) -> None:
    assert line.genesis(vector["wire"], vector["channel"]) == vector["head"]
    assert second_forms.beginning(vector["wire"], vector["channel"]) == vector["head"]


@vectors("encodings.json", "checkpoints")
def test_checkpoints(vector: dict[str, Any]) -> None:
    if vector["version"] is None:
        for parse in (encoding.parse_checkpoint, second_forms.checkpoint):
            with pytest.raises(ValueError):
                parse(vector["text"])
    else:
        digest = bytes.fromhex(vector["hash"])
        assert encoding.parse_checkpoint(vector["text"]) == (vector["version"], digest)
        assert encoding.format_checkpoint(vector["version"], digest) == vector["text"]
        assert second_forms.checkpoint(vector["text"]) == (vector["version"], vector["hash"])


@vectors("json.json")
def test_strict_json(vector: dict[str, Any]) -> None:
    data = expand(vector["bytes"])
    for floats_below, expected in (("body", vector["strict"]), (None, vector["strict_without_floats"])):
        if expected:
            value = strictjson.loads(data, floats_below=floats_below)
            assert json.dumps(value) == json.dumps(second_forms.strict(data, floats_below))
        else:
            with pytest.raises(strictjson.StrictError):
                strictjson.loads(data, floats_below=floats_below)
            with pytest.raises(ValueError):
                second_forms.strict(data, floats_below)


LINES = FILES["lines.json"]
LINE_RINGS = {name: Ring(ring) for name, ring in LINES["rings"].items()}


@vectors("lines.json")
def test_lines(vector: dict[str, Any]) -> None:
    raw = expand(vector["line"])
    end = chain.Position(**vector.get("end", LINES["end"]))
    verdict = chain.step(
        end,
        raw,
        wire=LINES["wire"],
        channel=vector.get("channel", LINES["channel"]),
        keys=LINE_RINGS[vector.get("ring", "active")],
    )
    assert (verdict.code or "ok") == vector["verdict"], verdict.why
    if verdict.line is None or verdict.code is not None:
        assert verdict.code is not None
        assert verdict.why
        assert verdict.after == end
        return
    assert verdict.after._asdict() == vector["after"]
    read = verdict.line
    assert refusal(lambda: line.content(read)) == {"readable": "ok"}.get(vector["content"], vector["content"])
    if vector["content"] == "readable":
        members = line.content(read)
        assert json.dumps(members) == json.dumps(json.loads(raw))
        if "members" in vector:
            optional = {name: value for name, value in members.items() if name in line.OPTIONAL}
            assert json.dumps(optional) == json.dumps(vector["members"])


@vectors("lines.json")
def test_lines_second(vector: dict[str, Any]) -> None:
    raw = expand(vector["line"])
    end = second.End(**vector.get("end", LINES["end"]))
    channel, ring = vector.get("channel", LINES["channel"]), LINES["rings"][vector.get("ring", "active")]
    code, after = second.judge(end, raw, LINES["wire"], channel, ring)
    assert code == vector["verdict"]
    assert after._asdict() == vector.get("after", end._asdict())
    if code == "ok":
        assert second_forms.content(raw) == vector["content"]


SEEDS = {entry["id"]: bytes.fromhex(entry["seed"]) for entry in FILES["world.json"]["keys"].values()}


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(v, id=ascii(v["name"]))
        for v in LINES["vectors"]
        if "members" in v and not v["name"].startswith("whitespace")
    ],
)
def test_a_writer_makes_lines_that_readers_read_alike(vector: dict[str, Any]) -> None:
    """Seal what a vector says at its place; where it was written without needless escapes, to the same bytes."""
    raw = expand(vector["line"])
    read = line.parse(raw)
    signer = encoding.Signer(SEEDS[read.key_id])
    made = line.seal(
        signer,
        wire=read.wire,
        sender=read.sender,
        recipient=read.recipient,
        seq=read.seq,
        prev=read.prev,
        ts=read.ts,
        trust=read.trust,
        type=read.type,
        **vector["members"],
    )
    compact = json.dumps(json.loads(raw), ensure_ascii=False, separators=(",", ":")).encode()
    if compact == raw:
        assert made == raw + b"\n"
    again = line.content(line.parse(made[:-1]))
    assert {name: again[name] for name in vector["members"]} == vector["members"]


WALKS = FILES["walks.json"]
WALK_RINGS = {name: Ring(ring) for name, ring in WALKS["rings"].items()}


def segments(held: Mapping[str, Any]) -> dict[int, bytes]:
    return {int(number): expand(data) for number, data in held.items()}


@vectors("walks.json")
def test_walks(vector: dict[str, Any]) -> None:
    accepted, carried = segments(vector["accepted"]), segments(vector["carried"])
    end = chain.Position(**vector["end"])
    walk = chain.walk(
        end,
        carried,
        lambda number: accepted.get(number, b""),
        wire=WALKS["wire"],
        channel=WALKS["channel"],
        keys=WALK_RINGS[vector.get("ring", "active")],
    )
    assert walk.end._asdict() == vector["after"]
    assert [new.seq for new in walk.new] == vector["new"]
    assert sorted([f.segment, f.offset, f.code.value] for f in walk.foreign) == vector["foreign"]
    assert list(walk.lacking) == vector["lacking"]
    for piece in walk.foreign:
        assert carried[piece.segment][piece.offset :].startswith(piece.raw)
        assert piece.length - len(piece.raw) in (0, 1)
        assert piece.why


@vectors("walks.json")
def test_walks_second(vector: dict[str, Any]) -> None:
    ring = WALKS["rings"][vector.get("ring", "active")]
    accepted, carried = segments(vector["accepted"]), segments(vector["carried"])
    outcome = second.walk(second.End(**vector["end"]), accepted, carried, WALKS["wire"], WALKS["channel"], ring)
    assert outcome.end._asdict() == vector["after"]
    assert outcome.new == vector["new"]
    assert sorted(map(list, outcome.foreign)) == vector["foreign"]
    assert outcome.lacking == vector["lacking"]


TRUST = FILES["trust.json"]
VERSIONS = [(expand(entry["document"]), expand(entry["signatures"])) for entry in TRUST["chain"]]
CHAIN = Chain.replay(VERSIONS)


@vectors("trust.json")
def test_trust(vector: dict[str, Any]) -> None:
    raw, signatures = expand(vector["document"]), expand(vector["signatures"])
    before = vector["after"]

    def made() -> Chain:
        return CHAIN.until(before).extend(raw, signatures) if before else Chain.genesis(raw, signatures)

    assert refusal(made) == vector["verdict"]
    if vector["verdict"] == "ok":
        assert made().newest.version == before + 1


@vectors("trust.json")
def test_trust_second(vector: dict[str, Any]) -> None:
    before = [raw for raw, _ in VERSIONS[: vector["after"]]]
    raw, signatures = expand(vector["document"]), expand(vector["signatures"])
    assert refusal(lambda: second_forms.extend(before, raw, signatures)) == vector["verdict"]


@vectors("trust.json", "checkpoints")
def test_chains_through_checkpoints(vector: dict[str, Any]) -> None:
    assert CHAIN.passes(*encoding.parse_checkpoint(vector["checkpoint"])) is vector["passes"]


@vectors("trust.json", "recipients")
def test_recipients(vector: dict[str, Any]) -> None:
    assert sorted(CHAIN.members(vector["recipient"], vector["version"])) == vector["members"]
    documents = [json.loads(raw) for raw, _ in VERSIONS]
    assert sorted(second_forms.members(documents, vector["recipient"], vector["version"])) == vector["members"]


def test_the_chain_of_the_vectors() -> None:
    assert CHAIN.wire == TRUST["wire"] == LINES["wire"] == WALKS["wire"]
    assert [document.hash for document in CHAIN.documents] == TRUST["hashes"]


@vectors("requests.json")
def test_requests(vector: dict[str, Any]) -> None:
    wire, raw, file = FILES["requests.json"]["wire"], expand(vector["request"]), vector["file"]
    assert refusal(lambda: requests.parse(raw, wire=wire, file_name=file)) == vector["verdict"]
    assert refusal(lambda: second_forms.request(raw, wire, file)) == vector["verdict"]


@vectors("rotations.json")
def test_rotations(vector: dict[str, Any]) -> None:
    wire, raw, file = FILES["rotations.json"]["wire"], expand(vector["rotation"]), vector["file"]

    def judge() -> None:
        found = rotations.parse(raw, wire=wire, file_name=file)
        if not found.closed_by(encoding.unb64(vector["active"], 32)):
            raise TrustError("not closed by the active key", reason="closing-invalid")

    assert refusal(judge) == vector["verdict"]
    assert refusal(lambda: second_forms.rotation(raw, wire, file, vector["active"])) == vector["verdict"]


@vectors("proposals.json")
def test_proposals(vector: dict[str, Any]) -> None:
    wire, listed = FILES["proposals.json"]["wire"], FILES["proposals.json"]["roots"]
    raw, file = expand(vector["proposal"]), vector["file"]

    def judge() -> None:
        found = proposals.parse(raw, wire=wire, file_name=file)
        found.check_offered([encoding.unb64(root, 32) for root in listed])
        assert found.signed([found.signatures]) == raw

    assert refusal(judge) == vector["verdict"]
    assert refusal(lambda: second_forms.proposal(raw, wire, file, listed)) == vector["verdict"]


@vectors("proposals.json", "root_lines")
def test_root_lines(vector: dict[str, Any]) -> None:
    wire = FILES["proposals.json"]["wire"]
    assert refusal(lambda: roots.read(vector["line"], wire=wire, name=vector["for"])) == vector["verdict"]
    assert refusal(lambda: second_forms.root_line(vector["line"], wire, vector["for"])) == vector["verdict"]


KEYS = FILES["world.json"]["keys"]
SEALED = FILES["sealed.json"]


@vectors("sealed.json")
def test_closed_letters(vector: dict[str, Any]) -> None:
    wire, channel = vector.get("wire", SEALED["wire"]), vector.get("channel", SEALED["channel"])
    signer = encoding.Signer(bytes.fromhex(KEYS[vector["key"]]["seed"]))
    check, _ = line.OPTIONAL["enc"]
    assert check(vector["enc"]) is (vector["verdict"] != "SCHEMA")
    if vector["verdict"] == "SCHEMA":
        return
    if vector["verdict"] == "opened":
        letter = sealed.opened(vector["enc"], signer, wire=wire, channel=channel)
        assert json.dumps(letter.members) == json.dumps(vector["members"])
        assert json.loads(letter.text) == vector["members"]
    else:
        with pytest.raises(sealed.SealedError) as caught:
            sealed.opened(vector["enc"], signer, wire=wire, channel=channel)
        assert str(caught.value)
        assert isinstance(caught.value, sealed.NotForUs) is (vector["verdict"] == "other-keys")


@vectors("sealed.json")
def test_closed_letters_second(vector: dict[str, Any]) -> None:
    wire, channel = vector.get("wire", SEALED["wire"]), vector.get("channel", SEALED["channel"])
    seed = bytes.fromhex(KEYS[vector["key"]]["seed"])
    found = second_sealed.opened(vector["enc"], seed, KEYS[vector["key"]]["id"], wire, channel)
    assert found == (vector["verdict"], vector.get("members"))


@vectors("presence.json")
def test_presences(vector: dict[str, Any]) -> None:
    public, raw = encoding.unb64(FILES["presence.json"]["public"], 32), expand(vector["presence"])

    def judge() -> None:
        signed = presence.opened(raw)
        if not encoding.verify(public, signed.signature, encoding.PRESENCE_TYPE, signed.body_bytes):
            raise ValueError("SIGNATURE")
        assert presence.parse(raw).raw == raw

    assert refusal(judge) == vector["verdict"]
    assert second_presence.presence(raw, public) == vector["verdict"]


@vectors("evidence.json")
def test_evidence(vector: dict[str, Any]) -> None:
    proved: list[str] = []

    def judge() -> None:
        found = exhibits.read(expand(vector["evidence"]))
        chain = Chain.replay(found.trust)
        assert chain.passes(*encoding.parse_checkpoint(FILES["evidence.json"]["checkpoint"]))
        if chain.wire != found.wire:
            raise TrustError("another wire's", reason="wrong-wire")
        assert exhibits.write(found) == expand(vector["evidence"])
        proved.extend(one.code for one in weighing.weigh(found.exhibits, chain).proved)

    try:
        judge()
        verdict = "ok"
    except WireError as error:
        verdict = error.reason
    assert verdict == vector["verdict"]
    assert sorted(proved) == vector.get("proved", [])
