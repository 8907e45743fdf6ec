# SPDX-License-Identifier: Apache-2.0
"""Content digests: as the papers define them, and the same whatever the container, the strides and the byte order."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import fdd
from corpus.build.kit import Global, Storage, Tensor, archive, eager, eager_records, rezip, state_dict
from corpus.build.tensors_quantized_sparse import packed_pass, quantized_pass, sparse_pass
from fdd import fixity
from fdd.core.source import BytesSource
from fdd.core.span import Span
from fdd.formats.content import TOO_MUCH, Content, ContentReader
from fdd.formats.opening import open_by_kind
from fdd.formats.probe import make_probe
from fdd.limits import Limits
from fdd.tensors import gather
from fdd.tensors import model as tensors
from fdd.tensors.content import (
    COMPONENTS,
    NO_DATA,
    NOT_THERE,
    content_cost,
    content_digest,
    digest_elements,
    missing_content,
    tensor_digest,
)
from fdd.tensors.dtypes import DTYPES
from tests.values.twins import CLASS_OF, SAFETENSORS_NAMES, TWINS, Data, every_dtype, kit_tensor, swapped, zip_little

TOY_SHA256 = "0a0f8d66b1279906549e14ca104285b8288c46d103cf886e7d3eb86836d639b1"
TOY_TENSORS = {
    "fc.bias": "9f0d8b86a87f3817e844dc0683b968401a405c41dc99f0ec9b913f0f29e58fcf",
    "fc.weight": "cd15baad84967644e77a4c40274e13816d7430ad9e9b27bd9a47d95e1296b636",
    "head": "1ad43766db4b987212345c5adb8f70d350b990e6472a835d995e000a083e50c1",
    "tied": "b259792e67e15d4ee2cd769eb66650807f0d16992bc3369d34db23d10d94c01a",
}
TOY_CONTENT = "d659e89b79eea0c47afd7634a2d18f6f55b195d8e25c1220b963a8efbfe901e6"
"""Of the sample file of the reference papers and its manifest, computed there by other code."""


def toy() -> bytes:
    """That file, written by torch 2.13; `tied` is the transposed `fc.weight`."""
    weight = "5c3fc53f503c96be49710bc0b684113fa1d18abf2d05b3bf7a83ce3ee588563f442138bf0b83cebe18bd18bfc6673a3e"
    shared = Storage(Global("torch", "FloatStorage"), bytes.fromhex(weight), 12)
    head = Storage(Global("torch", "BFloat16Storage"), bytes.fromhex("0000803f004040408040a040"), 6)
    return eager(
        {
            "fc.weight": Tensor(shared, (4, 3), (3, 1)),
            "fc.bias": Tensor(Storage(Global("torch", "FloatStorage"), bytes(16), 4), (4,), (1,)),
            "head": Tensor(head, (6,), (1,)),
            "tied": Tensor(shared, (3, 4), (1, 3)),
        },
        "toy",
    )


def contents(data: bytes) -> Content:
    probe = make_probe(BytesSource(data), name="x.pt", path=None, limits=Limits(), depth="structure")
    _, fmt, document = open_by_kind(probe)
    assert fmt is not None
    return ContentReader(fmt, document, probe.limits).all()


def digests(data: bytes) -> dict[str, str | None]:
    return {entry.name: entry.digest for entry in contents(data).tensors}


def reasons(data: bytes) -> dict[str, str | None]:
    return {entry.name: entry.reason for entry in contents(data).tensors}


def expected(dtype: str, shape: tuple[int, ...], data: bytes) -> str:
    """By the definition (premis.md, section 8)."""
    header = f'["{dtype}",[{",".join(str(size) for size in shape)}]]'
    return hashlib.sha256(b"fdd-tensor-1\0" + header.encode() + b"\0" + data).hexdigest()


def test_the_digests_of_the_reference_papers() -> None:
    assert hashlib.sha256(toy()).hexdigest() == TOY_SHA256
    assert digests(toy()) == TOY_TENSORS
    assert contents(toy()).digest == TOY_CONTENT
    manifest = fixity.create(toy(), name="toy.pt", content=True)
    assert {entry.name: entry.content for entry in manifest.tensors} == TOY_TENSORS
    assert manifest.content_digest == TOY_CONTENT
    assert manifest.format["byte_order"] == "little"
    again = fixity.Manifest.from_json(manifest.to_json())
    assert again == manifest


def test_without_content_the_manifest_is_as_before() -> None:
    manifest = fixity.create(toy(), name="toy.pt")
    assert manifest.content_digest is None
    assert [entry.content for entry in manifest.tensors] == [None] * 4
    assert "byte_order" not in manifest.format


@pytest.mark.parametrize("twin", TWINS)
def test_twins_have_equal_digests(twin: str) -> None:
    """All types that both forms have: zip and legacy have all, the tar only those with storage classes."""
    names = {name: 0 for name in SAFETENSORS_NAMES if twin != "tar" or name in CLASS_OF}
    model = every_dtype(names)
    ours, theirs = contents(zip_little(model)), contents(TWINS[twin](model))
    assert len(model) > 10
    assert {entry.name: entry.digest for entry in ours.tensors} == {
        name: expected(data.dtype, data.shape, data.data) for name, data in model.items()
    }
    assert {entry.name: entry.digest for entry in theirs.tensors} == {entry.name: entry.digest for entry in ours.tensors}
    assert theirs.digest == ours.digest is not None


def test_the_byte_order_is_told() -> None:
    model = every_dtype()
    orders = {twin: contents(TWINS[twin](model)).byte_order for twin in ("big-endian", "byte order not stated", "legacy")}
    assert orders == {"big-endian": "big", "byte order not stated": "unknown", "legacy": "little"}


OTHER_DTYPES = sorted(name for name in DTYPES if name not in SAFETENSORS_NAMES and DTYPES[name].values_per_byte == 1)


@pytest.mark.parametrize("dtype", OTHER_DTYPES)
def test_types_that_only_torch_has(dtype: str) -> None:
    model = {"x": Data(dtype, (3, 2), bytes(range(6 * DTYPES[dtype].size)))}
    wanted = expected(dtype, (3, 2), model["x"].data)
    assert digests(zip_little(model)) == digests(TWINS["big-endian"](model)) == {"x": wanted}


def test_file_digest_is_of_sorted_lines() -> None:
    pairs = [("é", "1"), ('a"\\\n', "2"), ("Z", "3")]
    lines = '["Z","3"]\n["a\\"\\\\\\n","2"]\n["é","1"]\n'.encode()
    assert content_digest(pairs) == content_digest(reversed(pairs)) == hashlib.sha256(lines).hexdigest()
    assert content_digest([]) == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("order", ["little", "big"])
def test_lazy_conjugation_and_negation_flip_sign_bits(order: Any) -> None:
    """torch shows such views so; only sign bits differ from what is stored."""
    values = np.array([[1 - 2j, 3 + 0j], [complex("nan"), -0.0 + 5j]], "<c8")
    stored = swapped(values.tobytes(), "complex64") if order == "big" else values.tobytes()

    def digest(**flags: bool) -> str:
        return digest_elements(_tensor("complex64", (2, 2), (1, 2), len(stored), **flags), BytesSource(stored), order)

    def shown(array: Any) -> str:
        return expected("complex64", (2, 2), np.ascontiguousarray(array.T).tobytes())

    assert digest() == shown(values)
    assert digest(conjugate=True) == shown(np.conj(values))
    assert digest(negative=True) == shown(-values)
    assert digest(conjugate=True, negative=True) == shown(-np.conj(values))


def test_conjugation_of_real_numbers_does_nothing() -> None:
    data = bytes(range(8))
    assert digest_elements(_tensor("float32", (2,), (1,), 8, conjugate=True), BytesSource(data), "little") == expected(
        "float32", (2,), data
    )


def _tensor(
    dtype: str, shape: tuple[int, ...], stride: tuple[int, ...], stored: int, offset: int = 0, **flags: Any
) -> tensors.Tensor:
    kind = DTYPES[dtype]
    storage = tensors.Storage("0", kind, "", "cpu", stored // kind.size, span=Span(0, stored), stored_size=stored)
    return tensors.Tensor("x", kind, shape, stride, offset, storage, **flags)


@st.composite
def views(draw: st.DrawFn) -> tuple[str, tuple[int, ...], tuple[int, ...], int]:
    """Views as torch makes them: permuted, stepped, expanded, sliced, empty, without dimensions."""
    dtype = draw(st.sampled_from(["uint8", "int16", "float32", "int64", "complex64", "complex128"]))
    shape = draw(st.lists(st.integers(0, 7), max_size=5).map(tuple))
    base = [1]
    for size in shape:
        base.append(base[-1] * max(size, 1) * draw(st.sampled_from([1, 1, 1, 2])))
    stride = draw(st.permutations(base[:-1]))
    stride = [0 if draw(st.integers(0, 9)) == 0 else step for step in stride]
    return dtype, shape, tuple(stride), draw(st.integers(0, 3))


def _check(view: tuple[str, tuple[int, ...], tuple[int, ...], int], order: Any) -> None:
    dtype, shape, stride, offset = view
    kind = DTYPES[dtype]
    end = tensors.view_end(shape, stride, offset, kind)
    little = np.arange(1, end + 1, dtype=np.uint32).astype(np.uint8).tobytes()
    elements = np.frombuffer(little, f"V{kind.size}")
    wanted = b""
    if prod(shape):
        wanted = as_strided(elements[offset:], shape, [step * kind.size for step in stride]).tobytes()
    stored = swapped(little, dtype) if order == "big" else little
    tensor = _tensor(dtype, shape, stride, end, offset)
    assert tensor_digest(tensor, BytesSource(stored), order) == expected(dtype, shape, wanted)


@given(views(), st.sampled_from(["little", "big"]))
def test_any_view_is_read_in_row_major_order(view: tuple[str, tuple[int, ...], tuple[int, ...], int], order: str) -> None:
    _check(view, order)


@given(views(), st.sampled_from([(64, 16, 16, 8), (128, 1 << 20, 64, 1), (1 << 20, 32, 1 << 20, 1 << 20)]))
def test_any_view_is_read_in_blocks(view: tuple[str, tuple[int, ...], tuple[int, ...], int], sizes: tuple[int, ...]) -> None:
    """The same with blocks, reads and streams so small that everything is cut."""
    names = ("BLOCK_BYTES", "READ_BYTES", "STREAM_BYTES", "SEEK_BYTES")
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(names, sizes, strict=True):
            patch.setattr(gather, name, size)
        _check(view, "little")


class _Endless:
    """A payload of any size whose bytes are made when they are read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.bytes_read = self.reads = 0

    def read_at(self, offset: int, length: int) -> bytes:
        self.reads += 1
        self.bytes_read += length
        return bytes(min(length, self.size - offset))

    def stream(self, span: Span, chunk: int = 1 << 20) -> Iterator[bytes]:
        for at in range(span.offset, span.end, chunk):
            yield self.read_at(at, min(chunk, span.end - at))

    def will_read(self, spans: object) -> None:
        """Nothing to do."""


@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        pytest.param((80 << 20,), (1,), id="contiguous"),
        pytest.param((4096, 5 << 10), (1, 4096), id="transposed"),
        pytest.param((20 << 20,), (4,), id="stepped"),
        pytest.param((2, 24 << 20), (0, 1), id="expanded"),
        pytest.param((5120, 4096), (8192, 1), id="sliced"),
    ],
)
def test_memory_is_bounded(shape: tuple[int, ...], stride: tuple[int, ...]) -> None:
    end = tensors.view_end(shape, stride, 0, DTYPES["uint8"])
    payload = _Endless(end)
    tracemalloc.start()
    try:
        found = digest_elements(_tensor("uint8", shape, stride, end), payload, "little")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == expected("uint8", shape, bytes(prod(shape)))
    assert peak < 64 << 20


def test_a_few_bytes_are_not_shown_as_terabytes() -> None:
    shown = Tensor(Storage(Global("torch", "FloatStorage"), bytes(4), 1), (1 << 20, 1 << 20), (0, 0))
    small = Tensor(shown.storage, (1000, 1000), (0, 0))
    found = contents(eager({"huge": shown, "small": small}))
    assert [entry.reason for entry in found.tensors] == [TOO_MUCH, None]
    assert found.tensors[1].digest == expected("float32", (1000, 1000), bytes(4_000_000))
    assert found.digest is None


def test_many_tiny_copies_cost_too() -> None:
    tensor = _tensor("uint8", (2,) * 40, tuple(1 << (39 - bit ^ 1) for bit in range(40)), 1 << 40)
    assert content_cost(tensor) >= 128 << 40


def test_missing_bytes_are_told() -> None:
    whole = zip_little({"x": Data("float32", (4,), bytes(range(16)))})
    assert reasons(whole) == {"x": None}
    short = Tensor(Storage(Global("torch", "FloatStorage"), bytes(12), 4), (4,), (1,))
    outside = Tensor(Storage(Global("torch", "FloatStorage"), bytes(16), 4), (4,), (1,), offset=1)
    empty = Tensor(short.storage, (0, 4), (4, 1))
    assert reasons(eager({"short": short, "outside": outside, "empty": empty})) == {
        "short": NOT_THERE, "outside": NOT_THERE, "empty": None,
    }  # fmt: skip


def test_tensors_without_data() -> None:
    meta = Tensor(Storage(Global("torch", "FloatStorage"), b"", 4, location="meta"), (4,), (1,))
    assert reasons(eager({"x": meta})) == {"x": NO_DATA}
    assert missing_content(_tensor("float32", (4,), (1,), 16, location="meta")) == NO_DATA


def test_an_unknown_type_or_negative_stride_has_no_digest() -> None:
    data = BytesSource(bytes(64))
    unknown = _tensor("float32", (4,), (1,), 16)
    unknown.dtype = None
    assert tensor_digest(unknown, data, "little") is None
    assert tensor_digest(_tensor("float32", (4,), (-1,), 16, 3), data, "little") is None
    assert tensor_digest(_tensor("int32", (4,), (1,), 16, negative=True), data, "little") is None
    assert tensor_digest(_tensor("float32", (4,), (1,), 16), data, "little") == expected("float32", (4,), bytes(16))


def test_sparse_tensors_have_digests_by_component() -> None:
    found = {entry.name: entry for entry in contents(sparse_pass()).tensors}
    wholes = [name for name, entry in found.items() if entry.reason == COMPONENTS]
    parts = {name: entry for name, entry in found.items() if entry.digest is not None}
    assert len(wholes) == 3
    assert {name.rpartition("/")[0] for name in parts} == set(wholes)
    assert parts[f"{wholes[0]}/values"].digest == expected("float32", (2,), np.array([1.5, 1.5], "<f4").tobytes())
    assert contents(sparse_pass()).digest == content_digest((name, entry.digest or "") for name, entry in parts.items())
    manifest = fixity.create(sparse_pass(), content=True)
    assert manifest.content_digest == contents(sparse_pass()).digest


def test_quantized_tensors_are_their_integers() -> None:
    assert digests(quantized_pass()) == {
        "a": expected("qint8", (2, 2), bytes(range(4))), "b": expected("qint8", (2, 2), bytes(range(4))),
    }  # fmt: skip


def test_packed_tensors_are_their_bytes() -> None:
    assert digests(packed_pass()) == {"a": expected("quint4x2", (3, 5), bytes(9))}
    packed = _tensor("quint4x2", (5, 3), (1, 5), 9)
    assert missing_content(packed) == "it is packed and not contiguous"


@pytest.mark.parametrize("kept", [64, 32 << 20])
def test_deflated_storages(kept: int) -> None:
    """In memory, and above the limit by inflating on the way."""
    rng = np.random.default_rng(5)
    storage = Storage(Global("torch", "FloatStorage"), rng.standard_normal(50_000).astype("<f4").tobytes(), 50_000)
    views_: dict[str, object] = {"flat": Tensor(storage, (200, 250), (250, 1)), "turned": Tensor(storage, (250, 200), (1, 250))}
    records = eager_records(state_dict(views_))
    plain, packed = archive(records), archive(records, deflate=[name for name, _ in records])
    assert len(packed) < len(plain)
    probe = make_probe(BytesSource(packed), name="x.pt", path=None, limits=Limits(), depth="structure")
    _, fmt, document = open_by_kind(probe)
    assert fmt is not None
    found = ContentReader(fmt, document, Limits(inflated_bytes=kept)).all()
    assert {entry.name: entry.digest for entry in found.tensors} == digests(plain)


def test_a_damaged_deflate_stream_has_no_digest() -> None:
    records = eager_records({"x": kit_tensor(Data("uint8", (5000,), bytes(range(250)) * 20))})
    packed = bytearray(archive(records, deflate=["data/0"]))
    at = next(record["offset"] for record in fdd.extract(bytes(packed)).records if record["name"].endswith("data/0"))
    assert digests(bytes(packed))["x"] is not None
    packed[at : at + 8] = b"\xff" * 8
    assert digests(bytes(packed)) == {"x": None}


def test_names_with_lone_surrogates_and_equal_names() -> None:
    found = contents(
        eager(
            {
                "\ud800": kit_tensor(Data("uint8", (1,), b"\1")),
                1: kit_tensor(Data("uint8", (1,), b"\2")),
                "1": kit_tensor(Data("uint8", (1,), b"\3")),
            }
        )
    )
    assert [entry.name for entry in found.tensors] == ["%ED%A0%80", "1", "1"]
    assert found.digest == content_digest((entry.name, entry.digest or "") for entry in found.tensors)


def test_manifest_lists_tensors_that_have_no_digest() -> None:
    short = Tensor(Storage(Global("torch", "FloatStorage"), bytes(12), 4), (4,), (1,))
    document = json.loads(fixity.create(eager({"x": short}), content=True).to_json())
    assert "content_digest" not in document
    assert "content" not in document["tensors"][0]


def test_a_broken_pickle_gives_no_file_digest() -> None:
    data = bytearray(toy())
    at = data.index(b"head")
    data[at : at + 8] = b"\xff" * 8
    assert fixity.create(bytes(data), content=True).content_digest is None


def test_packing_again_changes_no_digest() -> None:
    assert digests(rezip(toy())) == TOY_TENSORS
