# SPDX-License-Identifier: Apache-2.0
"""The recipe kit: it writes what torch and CPython write, and breaks only what it is told to break."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest

from corpus.build import __main__ as command
from corpus.build.kit import (
    CORPUS,
    UNTYPED,
    Call,
    Fresh,
    Global,
    New,
    OldTensor,
    Persistent,
    Raw,
    Storage,
    Tensor,
    archive,
    build,
    by_key,
    dump,
    eager,
    eager_records,
    field_span,
    flip_bit,
    legacy_parts,
    legacy_stream,
    load_recipes,
    opcodes,
    ordered_dict,
    patch,
    recipe,
    replace_once,
    rezip,
    set_field,
    state_dict,
    storage,
    take_apart,
    tar_file,
    tar_members,
    tensor,
)


def real(name: str) -> bytes:
    return (Path(CORPUS) / "real" / f"torch-2.13.0-{name}").read_bytes()


def payload(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        return parts.read(name)


def names(data: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        assert parts.testzip() is None
        return parts.namelist()


# Files of torch, byte for byte


def test_tensor_of_torch() -> None:
    data = real("tensor.pt")
    values = struct.unpack("<6f", payload(data, "tensor/data/0"))
    assert eager(tensor(values, (2, 3)), "tensor") == data


def test_buffer_of_torch() -> None:
    data = real("from_buffer.bin")
    values = struct.unpack("<4f", payload(data, "archive/data/0"))
    assert eager({"a": tensor(values)}) == data


def test_state_dict_of_torch() -> None:
    data = real("state_dict.pth")
    shapes: dict[str, tuple[tuple[int, ...], str]] = {
        "conv.weight": ((2, 1, 3, 3), "float32"),
        "conv.bias": ((2,), "float32"),
        "bn.weight": ((2,), "float32"),
        "bn.bias": ((2,), "float32"),
        "bn.running_mean": ((2,), "float32"),
        "bn.running_var": ((2,), "float32"),
        "bn.num_batches_tracked": ((), "int64"),
        "fc.weight": ((3, 8), "float32"),
        "fc.bias": ((3,), "float32"),
    }
    tensors: dict[str, object] = {}
    for number, (name, (size, dtype)) in enumerate(shapes.items()):
        raw = payload(data, f"state_dict/data/{number}")
        code, width = ("q", 8) if dtype == "int64" else ("f", 4)
        tensors[name] = tensor(struct.unpack(f"<{len(raw) // width}{code}", raw), size, dtype)
    assert eager(state_dict(tensors, {"": 1, "conv": 1, "bn": 2, "fc": 1}), "state_dict") == data


def test_legacy_stream_of_torch() -> None:
    # The head of legacy.pth of torch 2.13.0, up to its object.
    head = bytes.fromhex(
        "80028a0a6cfc9c46f9206aa850192e80024de9032e80027d710028581000000070726f746f636f6c5f76657273696f6e71014de803"
        "580d0000006c6974746c655f656e6469616e710288580a000000747970655f73697a657371037d710428580500000073686f727471"
        "054b025803000000696e7471064b0458040000006c6f6e6771074b0475752e"
    ).replace(b"M\xe8\x03X\r", b"M\xe9\x03X\r")
    data = legacy_stream(tensor([1.0, 2.0]), keys=["5"])
    assert data.startswith(head)
    assert data.endswith(bytes.fromhex("80025d7100580100000035710161 2e 0200000000000000 0000803f 00000040"))


def test_tar_of_torch() -> None:
    members = tar_members({"w": by_key(1)}, [OldTensor(1, 7, tensor([1.0, 2.0, 3.0]))])
    # As in legacy_tar.pth, which torch 2.13.0 loads.
    assert members["pickle"] == bytes.fromhex("80027d71005801000000777101580100000031710251732e")
    assert members["tensors"] == bytes.fromhex(
        "80024b012e80024b014b0763746f7263680a466c6f617454656e736f720a71008771012e0100000000000000030000000000000001"
        "000000000000000000000000000000"
    )
    assert members["storages"] == bytes.fromhex(
        "80024b012e80024b075803000000637075710063746f7263680a466c6f617453746f726167650a71018771022e0300000000000000"
        "0000803f000000400000404080025d71002e"
    )
    with tarfile.open(fileobj=io.BytesIO(tar_file(members))) as tar:
        assert tar.getnames() == ["sys_info", "pickle", "tensors", "storages"]


# Pickles, as CPython writes them


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        [1, 255, 256, 65535, 65536, -1, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**63, 0, -128 * 2**32],
        [0.5, -1e300, "", "é" * 300, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {}],
        {"a": {"b": [["c"]]}, 1: (None, False)},
        [[0] * 999, [0] * 1000, [0] * 1001, [0] * 2000],
        [dict.fromkeys(range(count)) for count in (1, 2, 999, 1000, 1001, 2000)],
    ],
)
def test_plain_values(value: object, protocol: int) -> None:
    assert dump(value, protocol) == pickle.dumps(value, protocol)


@pytest.mark.parametrize("data", [b"", b"abc", bytes(range(256)) * 2])
@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_bytes(data: bytes, protocol: int) -> None:
    assert dump([data], protocol) == pickle.dumps([data], protocol)


@pytest.mark.parametrize("count", [0, 1, 2, 999, 1000, 1001, 2000, 2001])
def test_ordered_dicts(count: int) -> None:
    value = OrderedDict.fromkeys(range(count))
    assert dump(ordered_dict(value.items())) == pickle.dumps(value, 2)


def test_protocol_1() -> None:
    value = [True, False, 2**40, (1, 2), ()]
    assert dump(value, 1) == pickle.dumps(value, 1)


def test_identity_and_memo() -> None:
    shared = [1]
    assert dump([shared, shared]) == pickle.dumps([shared, shared], 2)
    assert dump(["x", Fresh("x")]) == b"\x80\x02]q\0(X\1\0\0\0xq\1X\1\0\0\0xq\2e."
    assert dump([Raw(b"I7\n"), Global("m", "n"), Global("m", "n")]) == b"\x80\x02]q\0(I7\ncm\nn\nq\1h\1e."
    many = [str(number) for number in range(300)]
    assert dump([many, many]) == pickle.dumps([many, many], 2)


def test_objects() -> None:
    assert dump(Call(Global("m", "f"), (1,), state={"a": 1})) == b"\x80\x02cm\nf\nq\0K\1\x85q\1Rq\2}q\3X\1\0\0\0aq\4K\1sb."
    assert dump(New(Global("m", "C"), (), {"a": 1})) == b"\x80\x02cm\nC\nq\0)\x81q\1}q\2X\1\0\0\0aq\3K\1sb."
    assert dump(Persistent("1")) == b"\x80\x02X\1\0\0\x001q\0Q."
    assert opcodes.long1(128) == b"\x8a\x02\x80\x00"
    with pytest.raises(TypeError):
        dump(object())


# Archives and streams


def test_records_of_the_eras() -> None:
    twelve = [tensor([float(number)]) for number in range(12)]
    by_text = [f"data/{key}" for key in (0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9)]
    rows = {era: [name for name, _ in eager_records(twelve, era=era)] for era in ("1.4", "1.5", "1.6", "1.9", "2.1", "2.7")}
    assert rows["1.4"][:2] == ["version", "data.pkl"]
    assert rows["1.4"][2].startswith("tensors/94")
    assert rows["1.5"][2].startswith("data/94")
    assert rows["1.6"][0] == "data.pkl"
    assert rows["1.6"][-1] == "version"
    assert rows["1.9"] == ["data.pkl", *by_text, "version"]
    assert rows["2.1"] == ["data.pkl", "byteorder", *by_text, "version"]
    assert rows["2.7"][:4] == ["data.pkl", ".format_version", ".storage_alignment", "byteorder"]
    assert rows["2.7"][4:] == [*(f"data/{key}" for key in range(12)), "version"]
    assert eager_records(twelve, era="1.5")[0] == ("version", b"2\n")
    assert names(eager(twelve))[-1] == "archive/.data/serialization_id"


def test_storages_are_shared_and_typed() -> None:
    shared = storage([1, 2, 3, 4], "int16", "big", "cuda:1")
    data = eager([Tensor(shared, (2,), (1,)), Tensor(shared, (2,), (2,), 1)], byteorder="big")
    assert payload(data, "archive/data/0") == b"\0\1\0\2\0\3\0\4"
    assert "archive/data/1" not in names(data)
    untyped = Tensor(Storage(UNTYPED, b"\1\0", 2), (1,), (1,), dtype="uint16")
    assert b"_rebuild_tensor_v3" in payload(eager(untyped), "archive/data.pkl")


def test_legacy_parts() -> None:
    parts = legacy_parts([tensor([1.0]), tensor([2, 3], dtype="int64")], keys=["2", "10"])
    # Keys are sorted as texts: the second storage comes first.
    assert parts.blocks == [struct.pack("<qqq", 2, 2, 3), struct.pack("<qf", 1, 1.0)]
    assert parts.offsets["pickle"] == 137
    assert parts.join()[parts.offsets["blocks"] :] == b"".join(parts.blocks)
    assert legacy_stream(None, protocol=4).startswith(b"\x80\x04\x95\x0d\0\0\0\0\0\0\0\x8a\x0a")
    assert legacy_stream(None, protocol=1).startswith(b"L119547037146038801333356L\n.M\xe9\3.")


# Mutators


def good() -> bytes:
    return eager(ordered_dict([("a", tensor([1.0])), ("b", tensor([]))]))


def test_taken_apart_and_built_again() -> None:
    assert take_apart(good()).build() == good()
    plain = rezip(good())
    assert take_apart(plain).build() == plain
    aligned = eager(tensor([1.0]), alignment=512)
    assert take_apart(aligned).build() == aligned


def test_members_can_be_changed() -> None:
    parts = take_apart(good())
    parts.members.append(parts.member(b"/version").copy())
    parts.members[-1].rename(b"archive/data/9")
    parts.member(b"/data/0").drop_descriptor()
    parts.prefix, parts.comment = b"??", b"hello"
    data = parts.build()
    assert names(data)[-1] == "archive/data/9"
    assert data.startswith(b"??PK\3\4")
    assert data.endswith(b"\5\0hello")
    with pytest.raises(ValueError, match="0 members"):
        parts.member(b"nothing")


def test_end_records_can_be_overridden() -> None:
    parts = take_apart(good())
    parts.end, parts.locator, parts.zip64_end = {"entries": 77}, {"signature": b"XXXX"}, {"directory size": 1 << 40}
    data = parts.build()
    assert data[field_span(data, "end record", "entries").offset] == 77
    assert b"PK\6\7" not in data
    assert len(data) == len(good())


def test_fields_in_place() -> None:
    data = set_field(good(), "directory entry", "crc-32", 0x01020304, b"archive/data/0")
    assert data.count(b"\4\3\2\1") == 1
    with pytest.raises(zipfile.BadZipFile):
        payload(data, "archive/data/0")
    span = field_span(good(), "data descriptor", "compressed size", b"archive/data/0")
    assert good()[span.offset : span.end] == b"\4\0\0\0"
    with pytest.raises(ValueError, match="no local header"):
        field_span(good(), "local header", "flags", b"archive/absent")


def test_bytes_in_place() -> None:
    assert flip_bit(b"ab", 1, 0) == b"ac"
    assert patch(b"abcd", -2, b"XY") == b"abXY"
    assert replace_once(b"abc", b"b", b"--") == b"a--c"
    with pytest.raises(ValueError, match="2 times"):
        replace_once(b"aa", b"a", b"b")


def test_rezip() -> None:
    assert names(rezip(good(), zipfile.ZIP_DEFLATED)) == names(good())
    assert names(rezip(archive([("a", b"1")]), rename=lambda name: name.removeprefix("archive/"))) == ["a"]


# Recipes


def test_corpus_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--check"]) == 0, capsys.readouterr().out


def test_recipes_are_deterministic() -> None:
    recipes = load_recipes()
    assert len(recipes) >= 17
    assert all(make() == make() for make in recipes.values())


def test_build_writes_checks_and_finds_strays(tmp_path: Path) -> None:
    recipes = {"a/b.pt": lambda: b"1", "a/c/d.pt": lambda: b"2"}
    assert not build(recipes, tmp_path, check=True).up_to_date
    assert not list(tmp_path.iterdir())
    assert build(recipes, tmp_path).written == ["a/b.pt", "a/c/d.pt"]
    assert build(recipes, tmp_path, check=True).up_to_date
    (tmp_path / "a" / "old.pt").write_bytes(b"")
    assert build(recipes, tmp_path, check=True).strays == ["a/old.pt"]
    (tmp_path / "a" / "b.pt").write_bytes(b"9")
    assert build(recipes, tmp_path, check=True).written == ["a/b.pt"]


@pytest.mark.parametrize("path", ["top.pt", "a/../b.pt", "/a.pt", "a//b.pt"])
def test_paths_of_recipes(path: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        recipe(path)(lambda: b"")


def test_two_recipes_for_one_file() -> None:
    first = next(iter(load_recipes()))
    with pytest.raises(ValueError, match="two recipes"):
        recipe(first)(lambda: b"")
