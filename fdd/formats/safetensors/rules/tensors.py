# SPDX-License-Identifier: Apache-2.0
"""Rules on what the header says of each tensor: its fields, its type, its shape, its offsets."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.safetensors.document import SafetensorsDocument
from fdd.formats.safetensors.header import TensorEntry
from fdd.formats.safetensors.rules.catalogue import ALL, rule
from fdd.tensors.names import escape_key


def on(entry: TensorEntry, span: Span | None, **fields: object) -> Violation:
    """A violation of one tensor."""
    return at(span, record=entry.key, tensor=escape_key(entry.key), **fields)


def entries(document: SafetensorsDocument) -> list[TensorEntry]:
    """All tensors that were read."""
    return document.header.text.entries


@rule(
    "ST-TEN-001",
    "entry-not-object",
    axis="valid",
    level="error",
    clause="tensors.entry",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="Every tensor is described by an object.",
    message="the tensor is not described by a JSON object",
    remedy="Write the file anew with the safetensors library. Metadata belong into __metadata__, as texts.",
)
def entry_not_object(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: without type, shape and offsets nobody can read the values.

    References: documentation of the safetensors library, section "Format".
    """
    for entry in entries(document):
        if not entry.is_object:
            yield on(entry, entry.span)


@rule(
    "ST-TEN-002",
    "entry-field-missing",
    axis="valid",
    level="error",
    clause="tensors.entry",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="Every tensor has dtype, shape and data_offsets.",
    message="the description of the tensor has no {names}",
    remedy="Get the file again from its source: a damaged key may be the cause.",
)
def entry_field_missing(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: each of the three is needed to read the values; the library refuses the whole file.

    References: documentation of the safetensors library, section "Format".
    """
    for entry in entries(document):
        if entry.missing:
            # Where nothing of a tensor is there, it may be none: the key of the metadata may be damaged.
            key = entry.key_span.offset
            place = entry.span if entry.places else Span(key, entry.span.end - key)
            yield on(entry, place, names=", ".join(entry.missing))


@rule(
    "ST-TEN-003",
    "entry-field-unknown",
    axis="valid",
    level="warning",
    clause="tensors.entry",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="The description of a tensor has no further fields.",
    message='the description of the tensor has a field "{field}", which the format does not know',
    remedy="Find out which program wrote it and what it means; the safetensors library passes over it and does not keep it.",
)
def entry_field_unknown(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: readers ignore the field, and it is lost when the file is written anew.

    References: documentation of the safetensors library, section "Format".
    """
    for entry in entries(document):
        for field, place in entry.unknown:
            yield on(entry, place, field=field)


@rule(
    "ST-TEN-004",
    "dtype-unknown",
    axis="valid",
    level="error",
    clause="tensors.dtype",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="Every tensor has a type that the format knows.",
    message="the format has no type {found}",
    remedy="Find out which program wrote the file: without the type it is unknown how to read the numbers.",
)
def dtype_unknown(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: the width of a value, and with it the shape, cannot be told; the library refuses the whole file.

    References: safetensors library 0.8.0, list of types.
    """
    for entry in entries(document):
        place = entry.places.get("dtype")
        if place is not None and entry.element_type is None:
            yield on(entry, place, found=entry.word if entry.word is not None else "that is not a text")


@rule(
    "ST-TEN-005",
    "shape-wrong",
    axis="valid",
    level="error",
    clause="tensors.shape",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="A shape is a list of whole numbers from 0 up.",
    message="the shape of the tensor is not a list of whole numbers from 0 up",
    remedy="Get the file again from its source, or compare with the code of the model.",
)
def shape_wrong(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: the values cannot be put in order; the library refuses the whole file.

    References: documentation of the safetensors library, section "Format".
    """
    for entry in entries(document):
        if "shape" in entry.places and entry.shape is None:
            yield on(entry, entry.places["shape"])


@rule(
    "ST-TEN-006",
    "offsets-wrong",
    axis="valid",
    level="error",
    clause="tensors.offsets",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="Offsets are two whole numbers, the second not below the first.",
    message="the data_offsets of the tensor are not two whole numbers from 0 up, the second not below the first",
    remedy="Get the file again from its source.",
)
def offsets_wrong(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: it is not known where the values are; the library refuses the whole file.

    References: documentation of the safetensors library, section "Format".
    """
    for entry in entries(document):
        if "data_offsets" in entry.places and entry.begin is None:
            yield on(entry, entry.places["data_offsets"])


@rule(
    "ST-TEN-007",
    "size-differs",
    axis="well-formed",
    level="error",
    clause="tensors.offsets",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="The offsets span as many bytes as type and shape ask for.",
    message="the offsets span {spanned} bytes, {word} values of this shape take {wanted}",
    remedy="Compare with another copy: one of type, shape and offsets is wrong, and with it the values that are read.",
)
def size_differs(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: a reader that goes by the offsets sees other bytes than one that goes by the shape.

    References: documentation of the safetensors library, section "Format".
    """
    for entry in entries(document):
        bits, spanned = entry.bit_count, entry.byte_count
        if bits is not None and spanned is not None and bits % 8 == 0 and bits // 8 != spanned:
            yield on(entry, entry.span, spanned=spanned, word=entry.word, wanted=bits // 8)


@rule(
    "ST-TEN-008",
    "shape-too-large",
    axis="valid",
    level="error",
    clause="tensors.shape",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="The number of values fits 64 bits.",
    message="the sizes of the shape multiply to more than 64-bit numbers hold",
    remedy="Get the file again from its source; no tensor of that size exists.",
)
def shape_too_large(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: readers that multiply without looking get a small number out of the overflow, and read beyond what
    they reserved.

    References: safetensors library, reader; limit of torch, signed 64 bits.
    """
    for entry in entries(document):
        if entry.shape is not None and entry.value_count is None:
            yield on(entry, entry.places["shape"])


@rule(
    "ST-TEN-009",
    "part-of-a-byte",
    axis="valid",
    level="error",
    clause="tensors.dtype",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="The values of a tensor fill whole bytes.",
    message="{count} values of {word} take {bits} bits, which is no whole number of bytes",
    remedy="Compare with another copy, or with the code of the model.",
)
def part_of_a_byte(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: types of 4 and 6 bits are packed without gaps. The library refuses a tensor that ends inside a byte.

    References: safetensors library, reader.
    """
    for entry in entries(document):
        bits = entry.bit_count
        if bits is not None and bits % 8:
            yield on(entry, entry.span, count=entry.value_count, word=entry.word, bits=bits)


@rule(
    "ST-TEN-017",
    "name-hard-to-handle",
    axis="advice",
    level="warning",
    clause="header.keys",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="Names of tensors are texts that programs can handle.",
    message="{what}",
    remedy="Rename the tensor when the file is next written anew.",
)
def name_hard_to_handle(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: programs written in C end a name at its first NUL, and control characters break lists and logs.

    References: documentation of the safetensors library, notes to the section "Format".
    """
    for entry in entries(document):
        if not entry.key:
            yield on(entry, entry.key_span, what="the name of the tensor is empty")
        elif not entry.key.isprintable() and any(unicodedata.category(character) == "Cc" for character in entry.key):
            yield on(entry, entry.key_span, what="the name of the tensor holds control characters")


@rule(
    "ST-TEN-018",
    "no-tensors",
    axis="advice",
    level="info",
    clause="tensors.entry",
    kinds=ALL,
    needs=("inventory",),
    title="The file holds tensors.",
    message="the file holds no tensor",
    remedy="Make sure that the file was meant to be empty.",
)
def no_tensors(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: a file without tensors follows the format, and is rarely what somebody wanted to keep.

    References: safetensors library, reader and writer.
    """
    if not entries(document):
        yield at(Span(document.header.text.object_start, len(document.header.text.text)))
