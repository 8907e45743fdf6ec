# SPDX-License-Identifier: Apache-2.0
"""Rules on tensors: the arguments of the calls that rebuild them, and whether each lies inside its storage."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.objects import every_tensor
from fdd.formats.pytorch.rules.catalogue import PICKLED, rule
from fdd.formats.pytorch.rules.tensors.places import mismatches, pickle_of, shape_text, stored_storages, tensor_span
from fdd.tensors.model import INT64_MAX, Tensor


def available_bytes(tensor: Tensor) -> int | None:
    """Bytes of the storage that a view may look at: those announced, else those stored; None where there are none at all."""
    storage = tensor.storage
    if storage is None or not storage.payload_expected:
        return None
    return storage.byte_count if storage.byte_count is not None and storage.byte_count >= 0 else storage.stored_size


@rule(
    "PT-TEN-007",
    "rebuild-arguments-wrong",
    axis="valid",
    level="error",
    clause="tensors.rebuild",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="The calls that rebuild tensors have the arguments their function takes.",
    message="{function} gets {detail}",
    remedy="Compare with another copy; the storage may still hold the numbers of this tensor.",
)
def rebuild_arguments_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: shape, strides and type of a tensor are told by these arguments alone.

    References: format.md 2.4.
    """
    yield from mismatches(document, "argument-count", "argument-type")


@rule(
    "PT-TEN-008",
    "stride-count-differs",
    axis="valid",
    level="error",
    clause="tensors.view",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="A tensor has one stride for each dimension.",
    message="{sizes} sizes and {strides} strides",
    remedy="Compare with another copy; the storage still holds the numbers of this tensor.",
)
def stride_count_differs(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: without a stride for each dimension, nothing tells where its elements are.

    References: format.md 2.5, point 2.
    """
    for name, tensor in every_tensor(document):
        shape, stride = tensor.shape, tensor.stride
        if shape is not None and stride is not None and len(shape) != len(stride):
            yield at(tensor_span(tensor), record=pickle_of(tensor), tensor=name, sizes=len(shape), strides=len(stride))


@rule(
    "PT-TEN-009",
    "negative-number",
    axis="valid",
    level="error",
    clause="tensors.view",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Sizes, strides and offsets are not negative.",
    message="negative {what}: {number}",
    remedy="Compare with another copy; the storage still holds the numbers of this tensor.",
)
def negative_number(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a negative number would reach in front of the storage.

    References: format.md 2.5, point 2.
    """
    for name, tensor in every_tensor(document):
        for what, numbers in (("size", tensor.shape), ("stride", tensor.stride), ("offset", (tensor.storage_offset or 0,))):
            number = min(numbers or (), default=0)
            if number < 0:
                yield at(tensor_span(tensor), record=pickle_of(tensor), tensor=name, what=what, number=number)
                break


@rule(
    "PT-TEN-010",
    "view-outside-storage",
    axis="valid",
    level="error",
    clause="tensors.view",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Every tensor lies inside its storage.",
    message="shape {shape} with strides {stride} from element {offset} needs {needed} bytes, storage {key} has {available}",
    remedy="Do not load the file with software that does not check this; compare with another copy.",
)
def view_outside_storage(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a reader that trusts such a tensor reads memory that does not belong to it. torch checks most cases,
    not all of them (quantized tensors in some releases).

    References: format.md 2.5, point 3.
    """
    for name, tensor in every_tensor(document):
        needed, available = tensor.view_byte_count, available_bytes(tensor)
        packed = tensor.dtype is not None and tensor.dtype.values_per_byte > 1
        if needed is None or available is None or needed <= available or packed:
            continue
        yield at(
            tensor_span(tensor),
            record=pickle_of(tensor),
            tensor=name,
            shape=shape_text(tensor.shape),
            stride=shape_text(tensor.stride),
            offset=tensor.storage_offset,
            needed=needed if needed <= INT64_MAX else "more than 2^63",
            key=tensor.storage.key if tensor.storage is not None else "",
            available=available,
        )


@rule(
    "PT-TEN-011",
    "number-beyond-64-bits",
    axis="valid",
    level="error",
    clause="tensors.view",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Counts of elements and bytes fit 64 bits.",
    message="{detail}",
    remedy="Do not load the file with software that does not check this; compare with another copy.",
)
def number_beyond_64_bits(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers count in 64 bits. What overflows there may look small and pass their checks.

    References: format.md 2.5.
    """
    yield from mismatches(document, "overflow")
    for name, tensor in every_tensor(document):
        needed, shape = tensor.view_byte_count or 0, tensor.shape
        if shape is not None and min(shape, default=0) >= 0 and tensor.element_count is None:
            detail = f"shape {shape_text(shape)} has more than 2^63 elements"
        elif needed > INT64_MAX:
            detail = f"shape {shape_text(shape)} with strides {shape_text(tensor.stride)} reaches beyond 2^63 bytes"
        else:
            continue
        yield at(tensor_span(tensor), record=pickle_of(tensor), tensor=name, detail=detail)
    for storage, user in stored_storages(document):
        count = storage.uses[0].element_count if storage.uses else None
        size = storage.dtype.size if storage.dtype is not None else 1
        if isinstance(count, int) and count * size > INT64_MAX:
            detail = f"storage {storage.key} would have more than 2^63 bytes"
            yield at(storage.place, record=storage.source, tensor=user, detail=detail)


@rule(
    "PT-TEN-012",
    "empty-view-outside-storage",
    axis="advice",
    level="info",
    clause="tensors.view",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Empty tensors begin inside their storage.",
    message="an empty tensor begins at element {offset}, storage {key} has {available} bytes",
    remedy="Nothing has to be done: no element is read.",
)
def empty_view_outside_storage(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch accepts any place for a tensor without elements; another reader may not.

    References: format.md 2.5, point 3.
    """
    for name, tensor in every_tensor(document):
        available, offset, dtype = available_bytes(tensor), tensor.storage_offset, tensor.dtype
        if tensor.view_byte_count != 0 or available is None or offset is None or dtype is None or tensor.storage is None:
            continue
        if offset * dtype.size // dtype.values_per_byte > available:
            key = tensor.storage.key
            yield at(tensor_span(tensor), record=pickle_of(tensor), tensor=name, offset=offset, key=key, available=available)


@rule(
    "PT-TEN-013",
    "requires-grad-not-bool",
    axis="valid",
    level="error",
    clause="tensors.rebuild",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="requires_grad is true or false.",
    message="{function} gets {detail}",
    remedy="Compare with another copy; the numbers of the tensor are not concerned.",
)
def requires_grad_not_bool(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch refuses anything but a bool in this place.

    References: format.md 2.4.
    """
    yield from mismatches(document, "requires-grad")


@rule(
    "PT-TEN-025",
    "hooks-not-empty",
    axis="valid",
    level="warning",
    clause="tensors.rebuild",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="The backward hooks are an empty OrderedDict.",
    message="{function} gets {detail}",
    remedy="Look at what the hooks name: torch warns that hooks are not kept when it saves a tensor.",
)
def hooks_not_empty(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: hooks are functions. torch never writes any, and calls what it finds there when gradients are computed.

    References: format.md 2.4.
    """
    yield from mismatches(document, "hooks")


@rule(
    "PT-TEN-014",
    "metadata-not-dict",
    axis="valid",
    level="error",
    clause="tensors.rebuild",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="The metadata of a tensor is a dict.",
    message="{function} gets {detail}",
    remedy="Compare with another copy; the numbers of the tensor are not concerned, but their signs may be.",
)
def metadata_not_dict(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the metadata says whether the numbers have to be negated or conjugated.

    References: format.md 2.4.
    """
    yield from mismatches(document, "metadata-type")


@rule(
    "PT-TEN-026",
    "metadata-key-unknown",
    axis="valid",
    level="warning",
    clause="tensors.rebuild",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="The metadata of a tensor says conj and neg, true or false.",
    message="{function} gets metadata with {detail}",
    remedy="Find out which program wrote the entry; torch passes it over.",
)
def metadata_key_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch ignores other entries. What they were meant to say is lost on loading.

    References: format.md 2.4.
    """
    yield from mismatches(document, "metadata-key")


@rule(
    "PT-TEN-015",
    "rebuild-function-unusual",
    axis="valid",
    level="warning",
    clause="tensors.rebuild",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Types with a storage class use the second rebuild function, the others the third.",
    message="{function} gets {detail}",
    remedy="Nothing is lost; torch itself does not write tensors in this way.",
)
def rebuild_function_unusual(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: which function is used decides from where the type is taken and whether bytes are swapped.

    References: format.md 1.14, 2.3, 2.4.
    """
    yield from mismatches(document, "untyped-in-v2", "typed-in-v3")


@rule(
    "PT-TEN-023",
    "tensor-name-twice",
    axis="valid",
    level="warning",
    clause="tensors.names",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Every tensor has a name of its own.",
    message="two tensors of the object have the name {name}",
    remedy="Look at the keys: one and the same text, or a number and its digits, stand for two tensors.",
)
def tensor_name_twice(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: what reads the file by names gets one of the two, and cannot tell which.

    References: format.md 3.3; RFC 6901.
    """
    known: dict[str, Tensor] = {}
    for tensor in document.tensors:
        first = known.setdefault(tensor.name, tensor)
        if first is not tensor and not tensor.name.startswith("..."):
            yield at(tensor_span(tensor), record=pickle_of(tensor), tensor=tensor.name, name=tensor.name)


@rule(
    "PT-TEN-029",
    "state-dict-key-not-text",
    axis="valid",
    level="warning",
    clause="tensors.names",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="The keys of a state_dict are texts.",
    message="a state_dict has the key {key}, which is no text",
    remedy="Nothing is lost; load_state_dict refuses such a dict until the key is renamed.",
)
def state_dict_key_not_text(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the keys are the names of parameters; torch.nn.Module looks parameters up by text.

    References: format.md 3.3.
    """
    for span, record, key in document.facts.get("odd-keys", ()):
        yield at(span, record=record, key=key)
