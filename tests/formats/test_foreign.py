# SPDX-License-Identifier: Apache-2.0
"""What else carries these names. Inputs are written byte by byte; gzip, bz2, lzma, tarfile, zipfile, numpy are oracles."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import random
import struct
import tarfile
import zipfile
from struct import pack
from zlib import crc32

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdd.core.source import BytesSource
from fdd.formats.foreign.facts import ForeignFacts
from fdd.formats.foreign.identify import identify_foreign, mangling_of
from fdd.formats.neighbours import known_format
from fdd.limits import Limits

KINDS = frozenset(
    """safetensors zip tar gzip xz bzip2 zstd 7z rar hdf5 onnx gguf numpy npz tensorflow torch7 git-lfs-pointer html xml json
    python-path text empty zeros unknown torch-zip torch-legacy torch-tar torchscript torchscript-mobile torchscript-json
    torch-package pt2 mobile-flatbuffer executorch mar torch-preview""".split()
)


def identify(data: bytes, name: str | None = None, **limits: int) -> ForeignFacts:
    """Identify, and hold what must be true of every answer."""
    bounds = Limits(**limits)
    facts = identify_foreign(BytesSource(data), name=name, limits=bounds, known=known_format(bounds))
    assert facts.kind in KINDS
    assert facts.name
    assert facts.note.endswith(".")
    assert json.loads(json.dumps(facts.details)) == facts.details
    for what, offset, length in facts.basis:
        assert what
        assert 0 <= offset <= offset + length <= len(data)
    assert facts.basis or not data
    return facts


def noise(length: int, seed: int = 7) -> bytes:
    return random.Random(seed).randbytes(length)


def torch_like_zip(**contents: bytes) -> bytes:
    """A ZIP with the record names of torch.save, written by zipfile."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model/data.pkl", b"\x80\x02}q\x00.")
        archive.writestr("model/version", b"3\n")
        for key, value in contents.items():
            archive.writestr(f"model/data/{key.removeprefix('d')}", value)
    return buffer.getvalue()


LEGACY_HEAD = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e80024de9032e") + b"\x80\x02}q\x00(X\x10\x00\x00\x00"


def tar_of(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name.replace("_dot_", "."))
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


# --- nothing, zeros, noise


def test_empty_and_zeros() -> None:
    assert identify(b"").kind == "empty"
    for size in (1, 511, 4096, 200_000, 3 << 20):
        facts = identify(bytes(size))
        assert facts.kind == "zeros"
        assert str(size) in facts.note
    assert identify(bytes(2 << 20) + b"\1").kind == "unknown"


def test_zeros_at_the_beginning_only() -> None:
    facts = identify(bytes(150_000) + noise(1000))
    assert facts.details["mangled"] == [{"code": "zero-head", "was": None, "zero_bytes": 150_000}]
    assert "The first 150000 bytes are zeros" in facts.note


@pytest.mark.parametrize("size", [300, 2048, 100_000, 400_001])
def test_random_bytes_look_encrypted(size: int) -> None:
    facts = identify(b"\xc3" + noise(size))
    assert facts.kind == "unknown"
    assert facts.details["random_looking"] is True
    assert "entropy near 8 bits per byte" in facts.note


def test_entropy_of_few_values() -> None:
    facts = identify(bytes([0x90, 0, 0x91, 0]) * 1000)
    assert facts.details["entropy_bits_per_byte"] == 1.5
    assert "encrypted" not in facts.note
    assert "every byte looked at is FF" in identify(b"\xff" * 5000).note


@pytest.mark.parametrize(("dtype", "width"), [("<f4", 4), ("<f2", 2)])
@pytest.mark.parametrize("count", [3000, 500_000])
def test_raw_numbers(dtype: str, width: int, count: int) -> None:
    values = numpy.random.default_rng(3).standard_normal(count) * 0.02
    assert identify(b"\xa7" * width + values.astype(dtype).tobytes()).details["number_bytes"] == width


# --- safetensors, as something that lies inside others


def safetensors(header: object, data: bytes = b"", pad: int = 0) -> bytes:
    text = json.dumps(header).encode() + b" " * pad
    return pack("<Q", len(text)) + text + data


TENSORS = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"format": "pt"}}


# --- compressed


@pytest.mark.parametrize(
    ("kind", "compress", "pronom"),
    [("gzip", gzip.compress, "x-fmt/266"), ("xz", lzma.compress, "fmt/1098"), ("bzip2", bz2.compress, "x-fmt/268")],
)
class TestCompressed:
    def test_names_what_is_inside(self, kind: str, compress: object, pronom: str) -> None:
        assert callable(compress)
        for inside, inner_kind, name in (
            (torch_like_zip(d0=bytes(100)), "torch-zip", "PyTorch Serialized File Format"),
            (LEGACY_HEAD, "torch-legacy", "PyTorch legacy pickle stream (torch.save before 1.6)"),
            (b"\x80\x04\x95\x05\0\0\0\0\0\0\0]\x94.", "pickle", "Python pickle"),
            (safetensors(TENSORS, bytes(8)), "safetensors", "Safetensors"),
            (b"Not Found", "text", "plain text"),
        ):
            facts = identify(compress(inside))
            assert (facts.kind, facts.pronom) == (kind, pronom)
            assert facts.note.startswith(f"{kind}-compressed {name}")
            assert [(member.size, member.kind) for member in facts.inner] == [(len(inside), inner_kind)]
            assert facts.details["complete"] is True

    def test_tar_inside(self, kind: str, compress: object, pronom: str) -> None:
        assert callable(compress)
        facts = identify(compress(tar_of(pytorch_model_dot_bin=torch_like_zip(), config_dot_json=b"{}")))
        assert facts.kind == kind
        inner = [(member.name, member.kind) for member in facts.inner]
        assert inner == [("pytorch_model.bin", "torch-zip"), ("config.json", "json")]
        assert "with pytorch_model.bin and config.json" in facts.note

    def test_large_cut_and_damaged(self, kind: str, compress: object, pronom: str) -> None:
        assert callable(compress)
        whole = compress(torch_like_zip(d0=noise(400_000)))
        facts = identify(whole)
        assert facts.details["inflated_bytes"] == 65536
        assert facts.details["complete"] is None
        assert facts.inner[0].kind == "torch-zip"
        small = compress(torch_like_zip(d0=noise(2000)))
        cut = identify(small[:-40])
        assert (cut.kind, cut.details["complete"]) == (kind, False)
        assert "cut off" in cut.note
        wrecked = identify(small[:30] + bytes(200) + small[230:])
        assert (wrecked.kind, wrecked.details["complete"]) == (kind, False)

    def test_bomb_is_not_inflated(self, kind: str, compress: object, pronom: str) -> None:
        assert callable(compress)
        facts = identify(compress(bytes(8 << 20)))
        assert facts.details["inflated_bytes"] == 65536
        nested = b"Not Found"
        for _ in range(8):
            nested = compress(nested)
        assert identify(nested).kind == kind
        assert identify(compress(bytes(5000)), inflated_bytes=1000).details["inflated_bytes"] == 1000


def test_gzip_name_and_size() -> None:
    buffer = io.BytesIO()
    with gzip.GzipFile("weights.pt", "wb", fileobj=buffer) as stream:
        stream.write(torch_like_zip(d0=noise(100_000)))
    facts = identify(buffer.getvalue(), "other.gz")
    assert facts.details["original_name"] == "weights.pt"
    assert facts.details["stated_size"] == facts.inner[0].size == len(torch_like_zip(d0=bytes(100_000)))
    assert facts.inner[0].name == "weights.pt"


def test_zstd_frames() -> None:
    facts = identify(bytes.fromhex("28b52ffd2010810000") + b"some bytes of a frame")
    assert facts.kind == "zstd"
    assert facts.details["stated_size"] == 16
    assert identify(bytes.fromhex("28b52ffd60d204") + bytes(9)).details["stated_size"] == 0x4D2 + 256
    skippable = b"\x53\x2a\x4d\x18" + pack("<I", 3) + b"abc"
    assert identify(skippable + bytes.fromhex("28b52ffd2010810000")).kind == "zstd"
    assert identify(skippable).kind == "zstd"
    assert identify(skippable + b"\xfe\0other").kind != "zstd"


def test_bzip2_needs_more_than_three_letters() -> None:
    assert identify(b"BZh9 is no signature\0\xff").kind == "unknown"


# --- archives


def number_7z(value: int) -> bytes:
    assert value < 0x4000
    return bytes([value]) if value < 0x80 else bytes([0x80 | value >> 8, value & 0xFF])


def header_7z(sizes: dict[str, int], coder: bytes = b"\x01\x00", empty: tuple[str, ...] = (), packed: int | None = None) -> bytes:
    """A plain header: one folder that holds all members."""
    names = "".join(name + "\0" for name in (*sizes, *empty)).encode("utf-16-le")
    total = sum(sizes.values())
    streams = b"\x06\x00\x01\x09" + number_7z(packed or total) + b"\x00"
    streams += b"\x07\x0b\x01\x00\x01" + coder + b"\x0c" + number_7z(total) + b"\x00"
    substreams = b"\x08\x0d" + number_7z(len(sizes)) + b"\x09" + b"".join(map(number_7z, list(sizes.values())[:-1]))
    substreams += b"\x0a\x01" + bytes(4 * len(sizes)) + b"\x00"
    count = len(sizes) + len(empty)
    bits = int("0" * len(sizes) + "1" * len(empty) + "0" * (-count % 8), 2).to_bytes(-(-count // 8), "big")
    files = b"\x05" + number_7z(count) + (b"\x0e" + number_7z(len(bits)) + bits if empty else b"")
    files += b"\x19\x02\x00\x00" + b"\x11" + number_7z(len(names) + 1) + b"\x00" + names + b"\x00"
    return b"\x01\x04" + streams + substreams + b"\x00" + files + b"\x00"


def archive_7z(packed: bytes, header: bytes) -> bytes:
    start = pack("<QQI", len(packed), len(header), crc32(header))
    return b"7z\xbc\xaf\x27\x1c\x00\x04" + pack("<I", crc32(start)) + start + packed + header


def test_7z_lists_its_members() -> None:
    inside = torch_like_zip()
    header = header_7z({"model.pt": len(inside), "config.json": 2}, empty=("folder",))
    facts = identify(archive_7z(inside + b"{}", header))
    assert (facts.kind, facts.version, facts.pronom) == ("7z", "0.4", "fmt/484")
    assert [(member.name, member.size, member.kind) for member in facts.inner] == [
        ("model.pt", len(inside), "torch-zip"),
        ("config.json", 2, None),
        ("folder", 0, None),
    ]
    assert "with model.pt, config.json and folder" in facts.note
    assert facts.details["complete"] is True
    cut = identify(archive_7z(inside + b"{}", header)[:-5])
    assert (cut.kind, cut.details["complete"], cut.inner) == ("7z", False, [])


@pytest.mark.parametrize("second", [False, True])
def test_7z_with_a_packed_header(second: bool) -> None:
    identifier = lzma.FILTER_LZMA2 if second else lzma.FILTER_LZMA1
    filters = [{"id": identifier, "dict_size": 1 << 16, "lc": 3, "lp": 0, "pb": 2}]
    coder = b"\x21\x21\x01\x08" if second else b"\x23\x03\x01\x01\x05\x5d\x00\x00\x01\x00"
    inside = torch_like_zip()
    packed = lzma.compress(inside, lzma.FORMAT_RAW, filters=filters)
    plain = header_7z({"a.pt": len(inside)}, coder, packed=len(packed))
    squeezed = lzma.compress(plain, lzma.FORMAT_RAW, filters=filters)
    encoded = b"\x17\x06" + number_7z(len(packed)) + b"\x01\x09" + number_7z(len(squeezed)) + b"\x00"
    encoded += b"\x07\x0b\x01\x00\x01" + coder + b"\x0c" + number_7z(len(plain))
    encoded += b"\x0a\x01" + pack("<I", crc32(plain)) + b"\x00\x00"
    data = packed + squeezed
    facts = identify(archive_7z(data, encoded))
    assert [(member.name, member.size, member.kind) for member in facts.inner] == [("a.pt", len(inside), "torch-zip")]


def test_7z_leaves_out_checksums_known_from_the_folder() -> None:
    folder = b"\x06\x00\x01\x09\x04\x00\x07\x0b\x01\x00\x01\x01\x00\x0c\x04\x0a\x01" + bytes(4) + b"\x00"
    names = "a.pt\0".encode("utf-16-le")
    header = b"\x01\x04" + folder + b"\x08\x0a\x01\x00\x00" + b"\x05\x01\x11" + bytes([len(names) + 1]) + b"\0" + names + b"\0\0"
    assert [(member.name, member.size) for member in identify(archive_7z(b"abcd", header)).inner] == [("a.pt", 4)]


def test_7z_encrypted() -> None:
    aes = b"\x24\x06\xf1\x07\x01\x02\x13\x00"
    facts = identify(archive_7z(b"x" * 16, header_7z({"m.pt": 16}, aes)))
    assert facts.details["encrypted"] is True
    encoded = b"\x17\x06\x00\x01\x09\x10\x00\x07\x0b\x01\x00\x01" + aes + b"\x0c\x10\x00\x00"
    hidden = identify(archive_7z(b"x" * 16, encoded))
    assert hidden.details["encrypted_names"] is True


@given(st.binary(max_size=200), st.booleans())
def test_7z_header_of_arbitrary_bytes(header: bytes, encoded: bool) -> None:
    assert identify(archive_7z(b"x" * 50, (b"\x17\x06\x00" if encoded else b"\x01\x04\x06") + header)).kind == "7z"


def test_rar_lists_its_members() -> None:
    name = b"weights/model.pt"
    main4 = pack("<HBHH", 0, 0x73, 0, 13) + bytes(6)
    file4 = pack("<HBHHIIBIIBBHI", 0, 0x74, 0x8000, 32 + len(name), 5, 1813, 3, 0, 0, 29, 0x30, len(name), 0) + name + b"12345"
    end4 = pack("<HBHH", 0, 0x7B, 0, 7)
    facts = identify(b"Rar!\x1a\x07\x00" + main4 + file4 + file4.replace(b"model", b"other") + end4)
    assert (facts.kind, facts.version) == ("rar", "1.5 to 4.x")
    assert [(member.name, member.size) for member in facts.inner] == [("weights/model.pt", 1813), ("weights/other.pt", 1813)]

    main5 = bytes(4) + b"\x03\x01\x00\x00"
    body5 = b"\x02\x02\x05\x04" + b"\x95\x0e\x20" + bytes(4) + b"\x80\x03\x01" + bytes([len(name)]) + name
    file5 = bytes(4) + bytes([len(body5)]) + body5 + b"12345"
    facts = identify(b"Rar!\x1a\x07\x01\x00" + main5 + file5 + bytes(4) + b"\x03\x05\x00\x00")
    assert (facts.kind, facts.version, facts.pronom) == ("rar", "5.0", "fmt/613")
    assert [(member.name, member.size) for member in facts.inner] == [("weights/model.pt", 1813)]
    assert identify(b"Rar!\x1a\x07\x01\x00" + bytes(4) + b"\x04\x04\x00\x00\x00" + bytes(20)).details["encrypted_names"] is True


def test_members_of_containers_are_named_by_the_installed_formats() -> None:
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("best.pth", torch_like_zip())
        archive.writestr("README.txt", "text")
    facts = identify(outer.getvalue())
    assert (facts.kind, [member.name for member in facts.inner]) == ("zip", ["best.pth", "README.txt"])
    arrays = io.BytesIO()
    numpy.savez(arrays, a=numpy.zeros(3), b=numpy.ones(2))
    assert identify(arrays.getvalue()).kind == "npz"
    tar = identify(tar_of(model_dot_pth=torch_like_zip(), readme=b"hello there"))
    assert (tar.kind, [(m.name, m.kind) for m in tar.inner]) == ("tar", [("model.pth", "torch-zip"), ("readme", "text")])


# --- signatures


@pytest.mark.parametrize("offset", [0, 512, 1024, 4096, 1 << 17])
def test_hdf5_behind_a_user_block(offset: int) -> None:
    superblock = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00" + pack("<QQQQ", 0, 2**64 - 1, 2048, 48)
    facts = identify(bytes(offset) + superblock.ljust(2048, b"\0"))
    assert (facts.kind, facts.version, facts.pronom) == ("hdf5", "2", "fmt/287")
    assert facts.details["complete"] is True
    cut = identify(bytes(offset) + superblock + bytes(100))
    assert cut.details["complete"] is (offset >= 2048)


def test_hdf5_elsewhere_and_keras() -> None:
    for offset in (700, 1536):
        assert identify(bytes(offset) + b"\x89HDF\r\n\x1a\n\0" + bytes(2000)).kind == "unknown"
    superblock = b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0\4\0\x10\0" + bytes(4) + pack("<QQQQ", 0, 2**64 - 1, 400, 2**64 - 1)
    facts = identify(superblock.ljust(300, b"\0") + b"keras_version".ljust(100, b"\0"))
    assert (facts.details["written_by"], facts.pronom, facts.details["complete"]) == ("Keras", "fmt/807", True)


def test_gguf() -> None:
    facts = identify(b"GGUF" + pack("<IQQ", 3, 291, 19))
    assert (facts.kind, facts.version) == ("gguf", "3")
    assert facts.details == {"byte_order": "little", "tensor_count": 291, "metadata_count": 19}
    assert identify(b"GGUF" + pack(">IQQ", 3, 1, 2)).details["byte_order"] == "big"
    assert identify(b"GGUF" + pack("<III", 1, 5, 6)).details["tensor_count"] == 5
    assert identify(b"GGUF\3\0\0\0").kind == "gguf"


@pytest.mark.parametrize(
    ("array", "descr"),
    [
        (numpy.zeros((2, 3), "<f4"), "<f4"),
        (numpy.asfortranarray(numpy.zeros((4, 5), ">i8")), ">i8"),
        (numpy.array(["ab", "c"]), "<U2"),
        (numpy.array(5.0), "<f8"),
        (numpy.zeros(0, "|b1"), "|b1"),
    ],
)
def test_numpy_arrays(array: numpy.ndarray, descr: str) -> None:
    buffer = io.BytesIO()
    numpy.save(buffer, array)
    data = buffer.getvalue()
    facts = identify(data)
    assert (facts.kind, facts.version) == ("numpy", "1.0")
    assert (facts.details["descr"], facts.details["shape"]) == (descr, list(array.shape))
    assert facts.details["fortran_order"] is (array.ndim > 1 and array.flags.f_contiguous)
    assert facts.details["data_bytes"] == array.nbytes
    assert facts.details["complete"] is True
    if array.nbytes:
        assert identify(data[:-1]).details["complete"] is False


def test_numpy_with_objects_inside() -> None:
    plain = io.BytesIO()
    numpy.save(plain, numpy.array([{}], dtype=object), allow_pickle=True)
    facts = identify(plain.getvalue())
    assert facts.details["object_dtype"] is True
    assert "pickle" in facts.note
    assert plain.getvalue()[facts.details["pickle_offset"]] == 0x80
    fields = io.BytesIO()
    numpy.save(fields, numpy.zeros(1, [("a", "<f4"), ("b", "O")]), allow_pickle=True)
    assert identify(fields.getvalue()).details["object_dtype"] is True
    without = io.BytesIO()
    numpy.save(without, numpy.zeros(1, [("O", "<f4"), ("b", "<i2", (3,))]))
    assert identify(without.getvalue()).details["object_dtype"] is False


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"1" * 3000 + b"), }",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"9, " * 3000 + b"), }",
        b"(" * 9000,
        b"{'descr': ",
        b"__import__('os').system('true')",
    ],
)
def test_numpy_header_is_never_evaluated(header: bytes) -> None:
    facts = identify(b"\x93NUMPY\x01\x00" + pack("<H", len(header)) + header + bytes(100))
    assert (facts.kind, facts.details) == ("numpy", {})


def test_named_formats_outside_the_list() -> None:
    salted = b"Salted__" + noise(100)
    for data, name in ((b"%PDF-1.7\na", "PDF document"), (salted, "file encrypted by OpenSSL"), (b"lmgg" + bytes(9), "GGML")):
        facts = identify(data)
        assert facts.kind == "unknown"
        assert facts.name.startswith(name)


# --- protobuf


def message(*fields: tuple[int, int | bytes]) -> bytes:
    def varint(value: int) -> bytes:
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*out, value])

    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(varint(number << 3) + varint(value))
        else:
            parts.append(varint(number << 3 | 2) + varint(len(value)) + value)
    return b"".join(parts)


def test_onnx() -> None:
    graph = message((1, message((4, b"Conv"))), (2, b"main_graph")) + noise(9000)
    opsets = (8, message((1, b""), (2, 17))), (8, message((1, b"com.microsoft"), (2, 1)))
    model = message((1, 8), (2, b"pytorch"), (3, b"2.1.0"), (5, 0), (7, graph), *opsets, (14, message((1, b"key"))))
    facts = identify(model)
    assert (facts.kind, facts.version) == ("onnx", "8")
    assert facts.details["producer_name"] == "pytorch"
    assert facts.details["opsets"] == ["ai.onnx 17", "com.microsoft 1"]
    assert facts.details["complete"] is True
    cut = identify(model[:5000])
    assert (cut.kind, cut.details["complete"]) == ("onnx", False)
    assert identify(message((1, 7), opsets[0], (7, graph))).kind == "onnx"


@pytest.mark.parametrize(
    "data",
    [
        message((1, 8), (2, b"pytorch")),
        message((1, 0), (7, b"")),
        message((1, 8), (7, b"graph"), (9, b"?")),
        message((1, 8), (2, 5), (7, b"graph")),
        message((1, 8), (7, b"graph")) + b"\0",
        message((1, 8), (7, b"graph"), (8, b"operator set"))[:-4],
    ],
)
def test_not_onnx(data: bytes) -> None:
    assert identify(data).kind == "unknown"


NODE = message((1, b"scope/input:0".replace(b":", b"_")), (2, b"Placeholder"), (5, message((1, b"dtype"), (2, message((6, 1))))))


def test_tensorflow() -> None:
    graph = message((1, NODE), (1, message((1, b"out"), (2, b"MatMul"), (3, b"scope/input_0"))), (4, message((1, 27))))
    facts = identify(graph)
    assert (facts.kind, facts.name) == ("tensorflow", "TensorFlow GraphDef")
    assert facts.details["first_operations"] == ["Placeholder", "MatMul"]
    meta = message((1, message((5, b"2.4.0"))), (2, graph))
    assert identify(meta).name == "TensorFlow MetaGraphDef"
    assert identify(message((1, 1), (2, meta))).name == "TensorFlow SavedModel"
    assert identify(b"\0\1\2 table".ljust(100, b"\xf1") + bytes.fromhex("57fb808b247547db")).name == "TensorFlow checkpoint table"
    assert identify(b"\x1c\0\0\0TFL3" + bytes(40)).kind == "tensorflow"


def test_not_tensorflow() -> None:
    bad_name = message((1, message((1, b"a b"), (2, b"Op"))))
    for data in (message((1, b"no node")), bad_name, message((1, 2), (2, b"x")), message((1, NODE), (9, b"x"))):
        assert identify(data + b"\0").kind == "unknown"


# --- Lua


def lua_text(text: bytes) -> bytes:
    return pack("<i", len(text)) + text


def test_torch7_binary() -> None:
    storage = pack("<ii", 4, 2) + lua_text(b"V 1") + lua_text(b"torch.FloatStorage") + pack("<q", 1) + bytes(4)
    tensor = pack("<ii", 4, 1) + lua_text(b"V 1") + lua_text(b"torch.FloatTensor") + pack("<iqqq", 1, 1, 1, 1) + storage
    facts = identify(tensor)
    assert facts.kind == "torch7"
    assert facts.details == {"encoding": "binary", "classes": ["torch.FloatTensor", "torch.FloatStorage"]}
    epoch = pack("<i", 2) + lua_text(b"epoch") + pack("<id", 1, 3.0)
    table = pack("<iii", 3, 1, 2) + epoch + pack("<i", 2) + lua_text(b"model") + tensor
    assert identify(table).details["classes"][0] == "torch.FloatTensor"
    old = pack("<ii", 4, 1) + lua_text(b"nn.Sequential") + pack("<ii", 3, 2)
    assert identify(old).details["classes"] == ["nn.Sequential"]
    assert identify(pack("<ii", 4, 0) + lua_text(b"torch.FloatTensor") + bytes(9)).kind == "unknown"
    assert identify(pack("<ii", 4, 1) + lua_text(b"not a class") + bytes(9)).kind == "unknown"


def test_torch7_ascii() -> None:
    facts = identify(b"4\n1\n3\nV 1\n13\nnn.Sequential\n3\n2\n1\n2\n6\nmodule\n4\n3\n3\nV 1\n9\nnn.Linear\n")
    assert facts.kind == "torch7"
    assert facts.details == {"encoding": "ascii", "classes": ["nn.Sequential", "nn.Linear"]}
    assert identify(b"3\n1\n1\n2\n5\nmodel\n4\n2\n3\nV 1\n13\nnn.Sequential\n").kind == "torch7"
    assert identify(b"4\n1\n3\nsome numbers\n").kind == "text"


# --- texts

OID = "02e89023eaec381a0a1bf4a43e4c48dfb5582abd4a13690fc8f6e15f3cddd028"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 1813\n"


@pytest.mark.parametrize(
    "text",
    [
        POINTER,
        POINTER.replace("\n", "\r\n"),
        POINTER.replace("\n", "\r"),
        POINTER.rstrip(),
        "\n\n" + POINTER + "\n",
        "\ufeff" + POINTER,
        f"size 1813\noid sha256:{OID}\nversion https://git-lfs.github.com/spec/v1\n",
        f"version https://hawser.github.com/spec/v1\noid sha256:{OID.upper()}\nsize 1813\n",
        POINTER.replace("oid", "ext-0-foo sha256:" + OID + "\noid"),
        f"oid sha256:{OID}\nsize 1813\n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le"])
def test_git_lfs_pointers(text: str, encoding: str) -> None:
    facts = identify(text.encode(encoding))
    assert facts.kind == "git-lfs-pointer"
    assert (facts.details["sha256"], facts.details["size"]) == (OID, 1813)
    assert f"SHA-256 {OID} and 1813 bytes" in facts.note
    assert ("CR LF" in facts.note) is ("\r\n" in text)


def test_damaged_git_lfs_pointers() -> None:
    no_oid = identify(b"version https://git-lfs.github.com/spec/v1\noid sha256:zz\nsize x\n")
    assert (no_oid.kind, no_oid.details["sha256"], no_oid.details["size"]) == ("git-lfs-pointer", None, None)
    conflict = POINTER.replace("oid", "<<<<<<< HEAD\noid", 1) + "=======\n" + POINTER.split("\n", 1)[1] + ">>>>>>> other\n"
    assert identify(conflict.encode()).details["conflict"] is True
    assert identify(b"The pointer begins with version https://git-lfs.github.com/spec/v1\n").kind == "text"


def test_other_pointers() -> None:
    annex = identify(b"/annex/objects/SHA256E-s1813--" + OID.encode() + b".pt\n")
    assert (annex.kind, annex.name, annex.details["size"]) == ("text", "git-annex pointer", 1813)
    dvc = identify(b"outs:\n- md5: d8e8fca2dc0f896fd7cb4cb0031ba249\n  size: 5\n  path: model.pt\n")
    assert (dvc.kind, dvc.name, dvc.details["path"]) == ("text", "DVC pointer", "model.pt")


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html><html><head><title>Sign in</title></head></html>",
        "<!doctype HTML>\n<HTML><TITLE lang=en>Sign\n in</TITLE>",
        "\n\n \t<html><head><title>Sign in</title>",
        "\ufeff<html lang='en'><title>Sign in</title>",
        "<!-- saved from (0042)https://example.org/ -->\n<!-- x --><html><title>Sign in</title>",
        '<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0"><html><title>Sign in</title></html>',
        "<head><title>Sign in</title></head>",
        "<h1>Sign in</h1>",
        "<script>var title='x';</script><body><h1>Sign in</h1></body>",
        "Warning: something in line 3\n<!DOCTYPE html><html><title>Sign in</title></html>",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "windows-1252"])
def test_html(page: str, encoding: str) -> None:
    if encoding == "windows-1252":
        page = page.lstrip("\ufeff") + "<p>caf\xe9 au lait</p>"
    facts = identify(page.encode(encoding))
    assert (facts.kind, facts.pronom) == ("html", "fmt/96")
    assert facts.details["title"] == "Sign in"
    assert 'titled "Sign in"' in facts.note
    assert "login page" in facts.note


def test_html_entities_and_long_pages() -> None:
    assert identify(b"<html><title>A &amp; B &lt;404&gt;</title>").details["title"] == "A & B <404>"
    long = identify(b"<html><title>Index of /models</title>" + b"<p>line</p>\n" * 30_000)
    assert (long.kind, long.details["title"]) == ("html", "Index of /models")
    assert 'page that says "Too many requests"' in identify(b"<html><body>Too many requests</body></html>").note


def test_xml() -> None:
    answer = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
    error = identify(b'<?xml version="1.0" encoding="UTF-8"?>\n' + answer)
    assert error.kind == "xml"
    assert error.details == {"root": "Error", "code": "AccessDenied", "message": "Access Denied", "encoding": "utf-8"}
    assert error.note.startswith("An XML error message: AccessDenied: Access Denied")
    bare = identify(b"<Error><Code>NoSuchKey</Code><Key>a</Key></Error>")
    assert (bare.kind, bare.details["code"]) == ("xml", "NoSuchKey")
    assert identify(b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>").details["root"] == "a"
    assert identify(b'<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>').kind == "xml"
    assert identify(b"<not xml at all").kind == "text"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"error": "Repository not found"}, "Repository not found"),
        ({"error": {"code": 404, "message": "gone"}}, "gone"),
        ({"message": "Not Found", "documentation_url": "x"}, "Not Found"),
        ({"errors": [{"status": 403, "title": "Forbidden"}]}, "Forbidden"),
        ({"error": "invalid_grant", "error_description": "token expired"}, "token expired"),
        ({"detail": "Authentication required"}, "Authentication required"),
    ],
)
def test_json_errors(value: object, message: str) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2), "\n " + json.dumps(value) + "\n"):
        facts = identify(text.encode())
        assert (facts.kind, facts.details["message"]) == ("json", message)
        assert f"A JSON error message: {message}" in facts.note


def test_json_documents() -> None:
    weights = {f"layer.{index}.weight": f"pytorch_model-{index % 3:05}-of-00003.bin" for index in range(5000)}
    index = identify(json.dumps({"metadata": {"total_size": 99}, "weight_map": weights}, indent=1).encode())
    assert (index.kind, index.name) == ("json", "shard index")
    assert (index.details["file_count"], index.details["tensor_count"]) == (3, 5000)
    assert "names 3 files" in index.note
    assert identify(b'{"architectures": ["Bert"], "model_type": "bert"}').name == "model configuration"
    assert identify(b"[1, 2, 3]").note.startswith("A JSON document, a list of 3 items")
    assert identify(b'"Entry not found"').kind == "json"
    cut = identify(b'{"weight_map": {"a": "b"')
    assert (cut.kind, cut.details["complete"]) == ("json", False)
    assert identify(b'{"a": 1}\n{"a": 2}\n').name == "JSON lines"
    assert identify(b"[INFO] loading model\n").kind == "text"
    assert identify(b"{not json}").kind == "text"
    assert identify(b"[" * 100_000).kind == "json"


@pytest.mark.parametrize(
    "text", ["Entry not found", "404: Not Found", "error code: 1020", "bad gateway\n", "Access is restricted. You must log in."]
)
def test_short_error_texts(text: str) -> None:
    facts = identify(text.encode(), "model.pth")
    assert facts.kind == "text"
    assert text.strip(" .\n") in facts.note
    assert facts.details["error_message"] is True
    assert facts.details["first_line"] == text.strip()


def test_texts_in_several_encodings() -> None:
    names = {"utf-8": "utf-8", "utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-16-be": "utf-16-be"}
    for encoding, name in names.items():
        facts = identify("Modèle introuvable ici".encode(encoding))
        assert (facts.kind, facts.details["encoding"]) == ("text", name)
        assert "Modèle introuvable" in facts.note
    assert identify("Modèle introuvable".encode("latin-1")).details["encoding"] == "windows-1252"


@pytest.mark.parametrize(
    "data", [b"text with \0 in it", b"text \x01\x02", b"lines\n" * 50_000 + b"\0", b"lines\n" * 50_000 + noise(90_000)]
)
def test_no_text_with_control_characters(data: bytes) -> None:
    assert identify(data).kind == "unknown"


def test_control_characters_are_shown_harmless() -> None:
    facts = identify("see \u202egp.exe \x1b[31mred".encode())
    assert facts.kind == "text"
    assert facts.note.isprintable()


def test_long_and_blank_texts() -> None:
    facts = identify(b"first line\n" * 500)
    assert facts.note == 'A text of 500 lines, not a model; it begins "first line".'
    assert "blanks" in identify(b" \n\r\n").note


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("../lib/project-src\n# editable\nimport sys; x = 1\n", [3]),
        ("/opt/project/src\n", []),
        ("C:\\Users\\x\\src\r\nimport a\r\n\r\nimport\tb\r\n", [2, 4]),
        ("./package.egg\n", []),
        ("import os", [1]),
    ],
)
def test_python_path_files(text: str, imports: list[int]) -> None:
    facts = identify(text.encode(), "Easy-Install.PTH")
    assert facts.kind == "python-path"
    assert [line["line"] for line in facts.details["import_lines"]] == imports
    assert ("executed at interpreter start" in facts.note) is bool(imports)
    assert identify(text.encode(), "model.pt").kind == "text"


@pytest.mark.parametrize(
    "text", ["Not Found", "import torch\nprint(1)\n", "connect error or disconnect/reset", "", "a/b\nsome words"]
)
def test_not_python_path_files(text: str) -> None:
    assert identify(text.encode(), "model.pth").kind in ("text", "empty")


@pytest.mark.parametrize(
    "text", ["/data/runs/nnsk.iter5000.pth\n", "../nnsk.iter5000.pth", "nnsk.iter5000.pth", "C:\\runs\\nnsk.iter5000.pth"]
)
def test_text_that_names_another_file(text: str) -> None:
    facts = identify(text.encode(), "model.pth")
    assert facts.kind == "text"
    assert "only names another file: nnsk.iter5000.pth" in facts.note


def test_binary_written_in_letters() -> None:
    packed = base64.encodebytes(torch_like_zip())
    assert identify(packed).details["packed"] == "a binary file encoded in Base64"
    assert identify(base64.b64encode(LEGACY_HEAD)).details["packed"] == "a binary file encoded in Base64"
    assert identify(torch_like_zip().hex().encode()).details["packed"] == "a binary file written in hexadecimal"


# --- mangled


def signs(data: bytes) -> dict[str, str | None]:
    return {sign.code: sign.was for sign in mangling_of(BytesSource(data), limits=Limits(), known=known_format(Limits()))}


def test_untouched_files_show_no_sign() -> None:
    for data in (torch_like_zip(d0=noise(9000)), LEGACY_HEAD + noise(5000), noise(100_000), b"plain text\r\n" * 50):
        assert signs(data) == {}


def test_line_end_conversion() -> None:
    whole = LEGACY_HEAD + noise(20_000)
    converted = whole.replace(b"\n", b"\r\n")
    facts = identify(converted)
    assert facts.kind == "unknown"
    assert facts.details["mangled"][0]["was"] == "PyTorch legacy pickle stream (torch.save before 1.6)"
    count = whole.count(b"\n")
    assert f"Every LF byte is preceded by CR ({count} of {count})" in facts.note
    assert signs(torch_like_zip(d0=noise(9000)).replace(b"\n", b"\r\n"))["crlf"] == "PyTorch Serialized File Format"


def test_utf8_mangling() -> None:
    whole = LEGACY_HEAD + bytes(50) + noise(20_000)
    replaced = whole.decode("utf-8", "replace").encode()
    facts = identify(replaced)
    assert facts.kind == "unknown"
    assert facts.details["mangled"][0]["code"] == "utf8-replacement"
    assert "lost" in facts.note
    encoded = whole.decode("latin-1").encode()
    assert signs(encoded) == {"utf8-encoded": "PyTorch legacy pickle stream (torch.save before 1.6)"}
    assert "can be undone" in identify(encoded).note
    assert "utf8-replacement" in signs(torch_like_zip(d0=noise(9000)).decode("utf-8", "replace").encode())


def test_utf16_mangling() -> None:
    data = b"\xff\xfe" + LEGACY_HEAD.decode("latin-1").encode("utf-16-le") + b"\0\0" * 40
    facts = identify(data)
    assert facts.kind == "unknown"
    assert facts.details["mangled"][0]["code"] == "utf16-encoded"


def test_high_bit_stripped() -> None:
    stripped = bytes(byte & 0x7F for byte in LEGACY_HEAD + bytes(300) + noise(5000))
    facts = identify(stripped)
    assert facts.kind == "unknown"
    assert "highest bit" in facts.note
    assert "high-bit-stripped" in signs(bytes(byte & 0x7F for byte in torch_like_zip(d0=noise(5000))))


def test_parts_of_a_split_file() -> None:
    whole = torch_like_zip(d0=noise(5000), d1=noise(5000), d2=bytes(100))
    last = identify(whole[len(whole) // 2 :])
    assert last.kind == "unknown"
    assert last.details["mangled"][0]["code"] == "split"
    assert "the last part" in last.note
    assert [member.name for member in last.inner] == ["model/data/2"]
    middle = identify(whole[3000:7000])
    assert middle.details["mangled"][0]["local_record"] == "model/data/1"
    assert "a later part" in middle.note
    assert last.details["mangled"][0]["missing_bytes"] == len(whole) // 2
    big = torch_like_zip(d0=noise(400_000), d1=noise(400_000))
    assert identify(big[200_000:]).details["mangled"][0]["missing_bytes"] == 200_000
    assert identify(big[200_000:600_000]).details["mangled"][0]["local_record"] == "model/data/1"
    assert "split" not in signs(b"junk" + whole)


@pytest.mark.parametrize(
    "front",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n",
        b"------WebKitFormBoundaryAbC123\r\nContent-Disposition: form-data; name=f\r\n\r\n",
    ],
)
def test_headers_in_front(front: bytes) -> None:
    facts = identify(front + LEGACY_HEAD + noise(3000))
    assert facts.kind == "unknown"
    assert facts.details["mangled"][0] | {"header": ""} == {
        "code": "wrapped", "was": "PyTorch legacy pickle stream (torch.save before 1.6)", "content_offset": len(front),
        "header": "",
    }  # fmt: skip


# --- everything


_STARTS = st.sampled_from(
    [
        b"", b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"BZh91AY&SY", b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18",
        b"7z\xbc\xaf\x27\x1c\0\4", b"Rar!\x1a\x07\0", b"Rar!\x1a\x07\1\0", b"\x89HDF\r\n\x1a\n", b"GGUF",
        b"\x93NUMPY\1\0", b"\x08\x08", b"\x0a\x14\x0a\x05input", b"\4\0\0\0\1\0\0\0\3\0\0\0V 1", b"3\n1\n",
        b"version https://git-lfs.github.com/spec/v1\n", b"<html><title>", b"<?xml ", b"<!--", b'{"error": ',
        b'{"weight_map": {', b"[", b"PK\x03\x04\x14\0\0\0\0\0", b"\xff\xfe", b"\xef\xbb\xbf", b"import ",
        b"HTTP/1.1 200 \r\n\r\n", b"\x10\0\0\0\0\0\0\0{", bytes(600), b"\x80\2", b"PK\1\2", bytes(257) + b"ustar",
    ]
)  # fmt: skip


@given(_STARTS, st.binary(max_size=1500), st.sampled_from([None, "a.pth", "b.gz"]))
def test_arbitrary_bytes(start: bytes, data: bytes, name: str | None) -> None:
    identify(start + data, name)
    signs(start + data)


@given(st.text(max_size=300), st.sampled_from(["", "<html>", "<?xml version='1.0'?>", "{", "import ", "/"]))
def test_arbitrary_texts(text: str, start: str) -> None:
    facts = identify((start + text).encode(), "x.pth")
    assert facts.note.isprintable()


@pytest.mark.parametrize(
    "output",
    [
        b"- md5: 33333333333333333333333333333333\n  path: a b.pt\n",
        b"- path: \"a b.pt\"\n  md5: '33333333333333333333333333333333'\n",
    ],
)
def test_a_dvc_file_names_its_output_and_not_itself(output: bytes) -> None:
    head = b"md5: 11111111111111111111111111111111\ndeps:\n- path: data.csv\n  md5: 22222222222222222222222222222222\nouts:\n"
    found = identify(head + output)
    assert (found.name, found.details) == ("DVC pointer", {"md5": "3" * 32, "path": "a b.pt"})


TITLES = {
    "gb2312": "\u767e\u5ea6",
    "shift_jis": "\u30a8\u30e9\u30fc",
    "windows-1251": "\u041e\u0448\u0438",
    "euc-kr": "\uc624\ub958",
}


@pytest.mark.parametrize("charset", TITLES)
def test_titles_are_read_as_the_page_says(charset: str) -> None:
    page = f'<html><head><meta charset="{charset}"><title>{TITLES[charset]}</title></head></html>'
    assert TITLES[charset] in identify(page.encode(charset)).note


def test_odds_and_ends_of_texts() -> None:
    packed = base64.b64encode(b"PK\x03\x04" + bytes(range(256)) * 4)
    assert "Base64" in identify(packed).note
    assert identify(b"<html><title>404</title></html>\0\0").kind == "html"
    assert "git annex get" in identify(b"..\\.git\\annex\\objects\\aa\\bb\\SHA256E-s12--" + b"4d" * 32 + b".pt\r\n").note
    assert "no such thing" in identify(b'[{"error": "no such thing"}]').note
    assert identify(bytes(32769) + b"CD001" + bytes(9)).name == "ISO 9660 disk image"
    split = identify(
        b"PK\x07\x08" + struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, 3, 3, 5, 0) + b"a.bin" + b"abc"
    )
    assert (split.kind, split.name) == ("zip", "first part of a split ZIP archive")
    assert "a.bin" in split.note
