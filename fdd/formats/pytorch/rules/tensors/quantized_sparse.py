# SPDX-License-Identifier: Apache-2.0
"""Rules on quantized, packed and sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.objects import every_tensor
from fdd.formats.pytorch.rules.catalogue import PICKLED, rule
from fdd.formats.pytorch.rules.tensors.places import mismatches, pickle_of, shape_text, tensor_span
from fdd.formats.pytorch.rules.tensors.views import available_bytes
from fdd.tensors.model import Quantizer, Tensor
from fdd.tensors.sparse import sparse_faults


@rule(
    "PT-TEN-016",
    "quantizer-wrong",
    axis="valid",
    level="error",
    clause="tensors.quantized",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="The parameters of a quantiser fit its scheme and its tensor.",
    message="{detail}",
    remedy="Compare with another copy: the stored integers cannot be turned into numbers without these parameters.",
)
def quantizer_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the numbers of a quantized tensor are (integer - zero point) x scale. Releases before 2.13 did not check
    the axis and read behind the list of scales.

    References: format.md 2.4.
    """
    yield from mismatches(document, "quantizer")
    for name, tensor in every_tensor(document):
        for detail in _quantizer_faults(tensor):
            yield at(tensor_span(tensor), record=pickle_of(tensor), tensor=name, detail=detail)


def _quantizer_faults(tensor: Tensor) -> Iterator[str]:
    quantizer, shape = tensor.quantizer, tensor.shape
    if quantizer is None or shape is None:
        return
    if tensor.dtype is not None and tensor.dtype.family != "quantized":
        yield f"numbers of type {tensor.dtype.name} are no quantized integers"
    if quantizer.scheme == "per_tensor_affine":
        if not _is_number(quantizer.scale, float, int):
            yield f"the scale is a {type(quantizer.scale).__name__}"
        if not _is_number(quantizer.zero_point, int):
            yield f"the zero point is a {type(quantizer.zero_point).__name__}"
        return
    if quantizer.axis is None or not 0 <= quantizer.axis < len(shape):
        yield f"axis {quantizer.axis if quantizer.axis is not None else 'unknown'} of a tensor of {len(shape)} dimensions"
        return
    for what, values in (("scales", quantizer.scale), ("zero points", quantizer.zero_point)):
        lengths = (len(values),) if isinstance(values, tuple) else values.shape if isinstance(values, Tensor) else None
        if lengths is None:
            yield f"the {what} are neither a list nor a tensor"
        elif lengths != (shape[quantizer.axis],):
            yield f"{what} of shape {shape_text(lengths)} for {shape[quantizer.axis]} channels"


def _is_number(value: object, *types: type) -> bool:
    return isinstance(value, types) and not isinstance(value, bool)


@rule(
    "PT-TEN-028",
    "quantizer-scale-not-positive",
    axis="valid",
    level="warning",
    clause="tensors.quantized",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Scales are positive numbers.",
    message="the scale is {scale}",
    remedy="Compare with another copy, or with the program that quantized the model: the integers stand for no useful numbers.",
)
def quantizer_scale_not_positive(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: with a scale of 0 all numbers are 0; torch saves and loads such tensors nevertheless.

    References: format.md 2.4; measured with torch 2.13.
    """
    for name, tensor in every_tensor(document):
        bad = next((scale for scale in _scales(tensor.quantizer) if not 0 < scale < math.inf), None)
        if bad is not None:
            yield at(tensor_span(tensor), record=pickle_of(tensor), tensor=name, scale=f"{bad:g}")


def _scales(quantizer: Quantizer | None) -> Iterator[float]:
    if quantizer is not None:
        values = quantizer.scale if isinstance(quantizer.scale, tuple) else (quantizer.scale,)
        yield from (value for value in values if isinstance(value, float))


@rule(
    "PT-TEN-018",
    "packed-bytes-missing",
    axis="valid",
    level="error",
    clause="tensors.packed",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Packed tensors have all their bytes.",
    message="shape {shape} of {dtype} needs {needed} bytes, storage {key} has {available}",
    remedy="Compare with another copy; the last rows of the tensor are missing.",
)
def packed_bytes_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: packed types put two or four values into a byte and round each row up. The element count of their
    storage counts bytes.

    References: format.md 2.5, point 4.
    """
    for name, tensor in every_tensor(document):
        needed, available, dtype = tensor.view_byte_count, available_bytes(tensor), tensor.dtype
        if needed is None or available is None or dtype is None or dtype.values_per_byte == 1 or needed <= available:
            continue
        yield at(
            tensor_span(tensor),
            record=pickle_of(tensor),
            tensor=name,
            shape=shape_text(tensor.shape),
            dtype=dtype.name,
            needed=needed,
            key=tensor.storage.key if tensor.storage is not None else "",
            available=available,
        )


@rule(
    "PT-TEN-017",
    "sparse-parts-wrong",
    axis="valid",
    level="error",
    clause="tensors.sparse",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="The parts of a sparse tensor fit together.",
    message="{detail}",
    remedy="Compare with another copy; torch loads some such tensors and crashes when they are used.",
)
def sparse_parts_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: positions and values are kept in separate tensors. Where their shapes do not fit, operations read
    outside of them.

    References: format.md 2.4; torch documentation on sparse tensors.
    """
    yield from mismatches(document, "sparse-layout")
    for name, tensor in every_tensor(document):
        for detail in sparse_faults(tensor):
            yield at(tensor_span(tensor), record=pickle_of(tensor), tensor=name, detail=f"{tensor.layout}: {detail}")


@rule(
    "PT-TEN-027",
    "sparse-position-outside",
    axis="valid",
    level="error",
    clause="tensors.sparse",
    kinds=PICKLED,
    needs=("index-values",),
    per="place",
    title="The positions of a sparse or nested tensor lie inside it.",
    message="{detail}",
    remedy="Compare with another copy; torch loads such a tensor and crashes, or reads foreign memory, when it is used.",
)
def sparse_position_outside(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch does not look at these numbers on loading, and uses them as addresses later.

    References: format.md 2.4; torch documentation on sparse tensors.
    """
    for fault in document.facts.get("index-values", ()):
        yield at(fault.span, record=fault.record, tensor=fault.tensor, detail=fault.detail)
