# SPDX-License-Identifier: Apache-2.0
"""Comparing two files: the same, different, or not to be told; and how values differ, held against numpy."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.build.kit import (
    Call,
    Global,
    Parameter,
    Storage,
    Tensor,
    archive,
    dump,
    eager,
    eager_records,
    ordered_dict,
    state_dict,
    tensor,
)
from corpus.build.tensors_kit import in_dict, rebuild
from corpus.build.tensors_quantized_sparse import PER_CHANNEL, PER_TENSOR, coo, packed_pass, quantized, scales, sparse_pass
from fdd.core.errors import SourceError
from fdd.formats.content import ContentReader
from fdd.tensors.dtypes import DTYPES
from fdd.values import compare as comparing
from fdd.values import differences
from fdd.values.compare import Comparison, Outcome
from fdd.values.differences import Difference, measure
from tests.schemas import validator
from tests.values.test_statistics import COUNTED, NUMPY_CODES, numbers
from tests.values.twins import CLASS_OF, SAFETENSORS_NAMES, TWINS, Data, every_dtype, kit_tensor, zip_little


def compare(*sources: Any) -> Comparison:
    """As it is, with its JSON form held against the schema."""
    found = comparing.compare(*sources)
    validator("comparison").validate(found.to_dict())
    return found


def file(**tensors: object) -> bytes:
    return eager(state_dict(tensors))


def script(tensors: dict[str, object]) -> bytes:
    """A TorchScript archive that holds these tensors."""
    records = eager_records(state_dict(tensors), era="2.1")
    return archive([*records, ("constants.pkl", dump(())), ("code/__torch__.py", b"def forward(self): pass\n")])


def states(comparison: Comparison) -> dict[str, str]:
    return {beside.what: beside.state for beside in comparison.beside}


@pytest.mark.parametrize("twin", TWINS)
def test_twins_are_the_same(twin: str) -> None:
    model = every_dtype({name: 0 for name in SAFETENSORS_NAMES if twin != "tar" or name in CLASS_OF})
    found = compare(zip_little(model), TWINS[twin](model))
    assert (found.outcome, found.same, found.different, found.missing, found.extra, found.open) == (
        Outcome.SAME, len(model), (), (), (), (),
    )  # fmt: skip
    assert found.first.digest == found.second.digest is not None


def test_torchscript_holds_the_same_contents() -> None:
    values: dict[str, object] = {"w": tensor([1.0, 2.0]), "n": tensor([3, 4], dtype="int64")}
    found = compare(file(**values), script(values))
    assert found.second.kind == "torchscript"
    assert (found.outcome, found.same) == (Outcome.SAME, 2)


def test_everything_that_can_differ() -> None:
    ours = file(
        same=tensor([1.0]), values=tensor([1.0, 2.0, -0.0]), dtype=tensor([1.0]), shape=tensor([1.0, 2.0]), only=tensor([5.0])
    )
    theirs = file(
        same=tensor([1.0]),
        values=tensor([1.0, 4.5, 0.0]),
        dtype=tensor([1.0], dtype="float64"),
        shape=tensor([1.0, 2.0], (2, 1)),
        moved=tensor([5.0]),
        new=tensor([6.0]),
    )
    found = compare(ours, theirs)
    assert found.outcome is Outcome.DIFFERENT
    assert found.same == 1
    assert {entry.name: entry.what for entry in found.different} == {
        "dtype": ("dtype",), "shape": ("shape",), "values": ("values",),
    }  # fmt: skip
    values = next(entry.values for entry in found.different if entry.name == "values")
    assert values is not None
    assert (values.values, values.differing, values.largest, values.not_finite) == (3, 2, 2.5, 0)
    assert [(lone.content.name, lone.same_content) for lone in found.missing] == [("only", "moved")]
    assert [(lone.content.name, lone.same_content) for lone in found.extra] == [("moved", "only"), ("new", None)]
    plain = found.to_dict()
    assert plain["outcome"] == "different"
    assert plain["different"][2] == {
        "name": "values",
        "what": ["values"],
        "a": {"dtype": "float32", "shape": [3], "digest": found.different[2].first.digest},
        "b": {"dtype": "float32", "shape": [3], "digest": found.different[2].second.digest},
        "values": 3,
        "differing_values": 2,
        "largest_difference": 2.5,
        "not_finite": 0,
    }


def test_views_are_compared_as_they_are_seen() -> None:
    storage = Storage(Global("torch", "FloatStorage"), struct.pack("<6f", *range(6)), 6)
    turned = Tensor(storage, (2, 3), (1, 2))
    dense = tensor([0.0, 2.0, 4.0, 1.0, 3.0, 5.0], (2, 3))
    found = compare(file(x=turned), file(x=dense))
    assert found.outcome is Outcome.SAME
    assert states(found)["strides"] == "differs"
    other = compare(file(x=turned), file(x=tensor([0.0, 2.0, 4.5, 1.0, 3.0, 5.0], (2, 3))))
    assert other.different[0].values == differences.Difference(6, 1, 0.5, 0)


def reference(dtype: str, first: bytes, second: bytes) -> tuple[int, float | None, int]:
    """Number of differing values, largest finite difference, pairs that are not finite; a value at a time."""
    size = DTYPES[dtype].size
    count, largest, others = 0, None, 0
    for at in range(0, len(first), size):
        a, b = first[at : at + size], second[at : at + size]
        if a == b:
            continue
        count += 1
        x, y = numbers(dtype, a), numbers(dtype, b)
        if all(math.isfinite(value) for value in (*x, *y)):
            steps = [abs(left - right) for left, right in zip(x, y, strict=True)]
            distance: float = steps[0] if len(steps) == 1 else math.hypot(*steps)
            largest = distance if largest is None else max(largest, distance)
        else:
            others += 1
    return count, largest, others


@given(st.sampled_from(COUNTED), st.integers(0, 60), st.integers(0, 2**32), st.integers(1, 9))
def test_differences_are_those_of_a_plain_loop(dtype: str, count: int, seed: int, every: int) -> None:
    rng = np.random.default_rng(seed)
    size = DTYPES[dtype].size
    first = rng.integers(0, 256, count * size, np.uint8).tobytes()
    changed = bytearray(first)
    for at in range(0, count * size, every * size):
        changed[at : at + size] = rng.integers(0, 256, size, np.uint8).tobytes()
    cut = int(rng.integers(0, count + 1)) * size
    pieces: Iterator[bytes] = (piece for piece in (first[:cut], first[cut:]) if piece)
    found = measure(pieces, iter([bytes(changed)] if changed else []), DTYPES[dtype])
    differing, largest, others = reference(dtype, first, bytes(changed))
    assert (found.values, found.differing, found.not_finite) == (count, differing, others)
    if largest is None or dtype not in ("complex64", "complex128", "float64"):
        assert found.largest == largest
    else:
        assert found.largest == pytest.approx(min(largest, 1.7976931348623157e308), rel=1e-15)


def test_integers_differ_by_more_than_they_can_hold() -> None:
    low, high = struct.pack("<q", -(2**63)), struct.pack("<q", 2**63 - 1)
    assert measure(iter([low]), iter([high]), DTYPES["int64"]).largest == 2**64 - 1
    assert measure(iter([high]), iter([low]), DTYPES["int64"]).largest == 2**64 - 1
    assert measure(iter([b"\0"]), iter([b"\xff"]), DTYPES["uint8"]).largest == 255
    assert measure(iter([b"\0"]), iter([b"\xff"]), DTYPES["int8"]).largest == 1


def test_raw_and_packed_types_are_counted_only() -> None:
    found = compare(packed_pass(), packed_pass().replace(bytes(9), bytes(8) + b"\1"))
    assert found.different[0].values == differences.Difference(9, 1, None, 0)
    assert measure(iter([b"\0\1"]), iter([b"\0\2"]), DTYPES["bits16"]) == differences.Difference(1, 1, None, 0)


def test_pieces_are_held_in_bounded_memory() -> None:
    """The largest difference stands in the last piece, the first of another length on each side."""
    data = bytes(3 * differences.PIECE_BYTES)
    other = data[:-4] + struct.pack("<f", -7)
    found = measure(iter([data[:400], data[400:]]), iter([other[:800], other[800:]]), DTYPES["float32"])
    assert found == differences.Difference(len(data) // 4, 1, 7.0, 0)


def test_what_the_digest_does_not_cover() -> None:
    shared = Storage(Global("torch", "FloatStorage"), bytes(8), 2)
    plain = file(a=tensor([0.0, 0.0]), b=tensor([0.0, 0.0]), c=tensor([1.0]))
    tied = eager(state_dict({"a": Tensor(shared, (2,), (1,)), "b": Parameter(Tensor(shared, (2,), (1,))), "c": tensor([1.0])}))
    found = compare(plain, tied)
    assert found.outcome is Outcome.SAME
    assert states(found) == {
        "sharing of storages": "differs",
        "strides": "equal",
        "requires_grad": "differs",
        "parameters": "differs",
        "devices": "equal",
        "classes": "equal",
        "quantization parameters": "equal",
        "objects that are no tensors": "unknown",
    }
    assert found.beside[0].names == ("a", "b")
    assert found.beside[2].names == ("b",)


def test_objects_beside_the_tensors() -> None:
    found = compare(eager({"w": tensor([1.0]), "epoch": 3}), eager({"w": tensor([1.0]), "epoch": 4}))
    assert found.outcome is Outcome.SAME
    assert states(found)["objects that are no tensors"] == "differs"
    model = {"w": Data("float32", (1,), bytes(4))}
    assert states(compare(zip_little(model), TWINS["safetensors"](model)))["objects that are no tensors"] == "unknown"


def test_quantization_parameters() -> None:
    ours, theirs = in_dict(quantized((PER_TENSOR, 0.5, 3))), in_dict(quantized((PER_TENSOR, 0.25, 3)))
    assert compare(ours, ours).outcome is Outcome.SAME
    assert states(compare(ours, ours))["quantization parameters"] == "equal"
    assert compare(ours, theirs).outcome is Outcome.SAME
    assert states(compare(ours, theirs))["quantization parameters"] == "differs"
    by_channel = in_dict(quantized((PER_CHANNEL, *scales(0.5, 0.25), 0)))
    assert states(compare(by_channel, by_channel))["quantization parameters"] == "unknown"


def test_sparse_tensors_by_their_components() -> None:
    assert compare(sparse_pass(), sparse_pass()).outcome is Outcome.SAME
    wide = in_dict(coo([0, 1], [2, 0]))
    narrow = in_dict(coo([0, 1], [2, 0], size=(2, 4)))
    assert [entry.what for entry in compare(wide, narrow).different] == [("shape",)]
    moved = in_dict(coo([0, 1], [1, 0]))
    assert [(entry.name, entry.what) for entry in compare(wide, moved).different] == [("a/indices", ("values",))]
    assert [entry.what for entry in compare(wide, file(a=tensor([0.0] * 6, (2, 3)))).different] == [("layout",)]


def meta(shape: tuple[int, ...] = (2,)) -> Call:
    return rebuild("_rebuild_meta_tensor_no_storage", Global("torch", "float32"), shape, (1,), False)


def test_tensors_without_data() -> None:
    found = compare(in_dict(meta()), in_dict(meta()))
    assert (found.outcome, found.same, found.without_data) == (Outcome.SAME, 1, 1)
    assert compare(in_dict(meta()), in_dict(tensor([1.0, 2.0]))).different[0].what == ("data",)
    assert compare(in_dict(meta()), in_dict(meta((3,)))).different[0].what == ("shape",)


def test_what_cannot_be_told() -> None:
    short = file(x=Tensor(Storage(Global("torch", "FloatStorage"), bytes(12), 4), (4,), (1,)), y=tensor([1.0]))
    whole = file(x=tensor([0.0] * 4), y=tensor([1.0]))
    found = compare(short, whole)
    assert (found.outcome, [name for name, _ in found.open]) == (Outcome.UNDETERMINED, ["x"])
    assert compare(short, file(x=tensor([0.0] * 4), y=tensor([2.0]))).outcome is Outcome.DIFFERENT
    assert compare(short, short).outcome is Outcome.UNDETERMINED
    assert found.first.digest is None


def test_a_broken_file_is_missing_nothing_for_certain() -> None:
    whole = file(a=tensor([1.0]), b=tensor([2.0]))
    torn = bytearray(whole)
    at = torn.index(b"X\x01\x00\x00\x00b")
    torn[at : at + 6] = b"\xff" * 6
    found = compare(whole, bytes(torn))
    assert (found.second.whole, len(found.missing)) == (False, 2)
    assert found.outcome is Outcome.UNDETERMINED


@pytest.mark.parametrize("data", [b"", b"only text\n", dump({"x": 1}), dump(ordered_dict())])
def test_other_kinds_are_undetermined(data: bytes) -> None:
    found = compare(data, data)
    assert (found.outcome, found.first.digest) == (Outcome.UNDETERMINED, None)


def test_two_files_without_tensors_are_the_same() -> None:
    found = compare(eager({"a": 1}), eager({"a": 1}))
    assert (found.outcome, found.same) == (Outcome.SAME, 0)


def test_equal_names_are_taken_in_order() -> None:
    def doubled(*values: float) -> bytes:
        return eager({1: tensor([values[0]]), "1": tensor([values[1]])})

    assert compare(doubled(1, 2), doubled(1, 2)).same == 2
    assert len(compare(doubled(1, 2), doubled(2, 1)).different) == 2
    assert len(compare(doubled(1, 2), eager({1: tensor([1.0])})).missing) == 1


def test_paths_are_named_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(file(x=tensor([1.0])))
    found = compare(str(path), path)
    assert (found.outcome, found.first.name) == (Outcome.SAME, str(path))
    with pytest.raises(SourceError, match=r"b\.pt: No such file"):
        compare(path, tmp_path / "b.pt")


def test_a_file_that_changes_meanwhile_is_no_basis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(file(x=tensor([1.0])))
    read_all = ContentReader.all

    def touching(reader: ContentReader) -> Any:
        path.write_bytes(file(x=tensor([1.0, 2.0])))
        return read_all(reader)

    monkeypatch.setattr(ContentReader, "all", touching)
    with pytest.raises(SourceError):
        compare(path, file(x=tensor([1.0])))


def test_a_dense_tensor_and_its_numpy_codes() -> None:
    """The reference above knows every type that is measured."""
    assert {name for name in COUNTED if not name.startswith(("float8", "bfloat"))} == set(NUMPY_CODES)
    assert kit_tensor(Data("uint8", (1,), b"\1")).size == (1,)


def test_a_partner_that_only_one_file_has_is_sharing_too() -> None:
    alone = tensor([1.0, 2.0])
    found = compare(file(x=alone, y=tensor([3.0])), file(x=alone, y=tensor([3.0]), z=alone))
    assert states(found)["sharing of storages"] == "differs"
    assert next(row for row in found.beside if row.what == "sharing of storages").names == ("x",)


def test_where_no_tensor_is_in_both_nothing_is_known_of_the_rest() -> None:
    for other in (file(z=tensor([1.0])), b"only text\n"):
        assert set(states(compare(file(x=tensor([1.0])), other)).values()) == {"unknown"}


def test_of_equal_tensors_the_likest_name_is_told() -> None:
    zeros = [("bias", tensor([0.0] * 4)), ("running_mean", tensor([0.0] * 4)), ("other", tensor([1.0]))]
    first, second = ({f"{prefix}bn.{name}": value for name, value in zeros} for prefix in ("", "module."))
    found = compare(file(**first), file(**second))
    assert {entry.content.name: entry.same_content for entry in found.missing} == {
        f"bn.{name}": f"module.bn.{name}" for name, _ in zeros
    }


def test_tied_tensors_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[object] = []

    def counted(*given: Any) -> Difference:
        measured.append(given)
        return measure(*given)

    monkeypatch.setattr("fdd.values.compare.measure", counted)
    one, other = tensor([1.0, 2.0]), tensor([1.0, 3.0])
    found = compare(file(x=one, y=one, z=one), file(x=other, y=other, z=other))
    assert [entry.values and entry.values.differing for entry in found.different] == [1, 1, 1]
    assert len(measured) == 1
