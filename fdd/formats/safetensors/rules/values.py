# SPDX-License-Identifier: Apache-2.0
"""Rules on the data: that the tensors lie one behind the other from the first byte to the last, and how."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.safetensors.document import SafetensorsDocument
from fdd.formats.safetensors.header import ALIGNMENT, TensorEntry
from fdd.formats.safetensors.layout import Layout
from fdd.formats.safetensors.rules.catalogue import ALL, rule
from fdd.formats.safetensors.rules.tensors import on


def layout_of(document: SafetensorsDocument) -> Layout:
    """The layout, which is there where the evidence `layout` is."""
    assert document.layout is not None
    return document.layout


@rule(
    "ST-TEN-010",
    "data-hole",
    axis="valid",
    level="error",
    clause="tensors.data",
    kinds=ALL,
    needs=("layout",),
    per="place",
    title="Every byte between the tensors belongs to one.",
    message="{count} bytes in front of the tensor belong to no tensor",
    remedy="Keep the file as it is and find out where the bytes come from; no reader shows them.",
)
def data_hole(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: the format forbids holes, so that nothing can be hidden in a file. The library refuses it.

    References: documentation of the safetensors library, notes to the section "Format".
    """
    for entry, hole in layout_of(document).holes:
        yield on(entry, hole, count=hole.length)


@rule(
    "ST-TEN-011",
    "data-overlap",
    axis="well-formed",
    level="error",
    clause="tensors.data",
    kinds=ALL,
    needs=("layout",),
    per="place",
    title="No byte belongs to two tensors.",
    message='{count} bytes of the tensor are also bytes of "{other}"',
    remedy="Compare with another copy: the offsets of one of the two are wrong.",
)
def data_overlap(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: at most one of the two can have the values that were meant. The format knows no shared values; the
    library refuses the file.

    References: documentation of the safetensors library, notes to the section "Format".
    """
    for entry, other, shared in layout_of(document).overlaps:
        yield on(entry, shared, count=shared.length, other=other.key)


@rule(
    "ST-TEN-012",
    "empty-tensor-misplaced",
    axis="valid",
    level="error",
    clause="tensors.data",
    kinds=ALL,
    needs=("layout",),
    per="place",
    title="An empty tensor lies where the one before it ends.",
    message="the empty tensor lies at offset {begin} of the data, the tensor before it ends at {expected}",
    remedy="Write the file anew with the safetensors library; no value is lost by it.",
)
def empty_tensor_misplaced(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: nothing can be misread, as there are no values, but the library refuses the whole file.

    References: safetensors library 0.8.0, measured.
    """
    for entry, expected in layout_of(document).misplaced:
        yield on(entry, entry.places.get("data_offsets"), begin=entry.begin, expected=expected)


@rule(
    "ST-TEN-013",
    "data-cut",
    axis="well-formed",
    level="error",
    clause="tensors.data",
    kinds=ALL,
    needs=("layout",),
    title="All values are there.",
    message="the file ends inside its data: {present} of {wanted} bytes are there",
    remedy="Get the file again from its source; tensors in front of the end are intact.",
)
def data_cut(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: values are missing. The library refuses the file, other readers may take what follows in memory.

    References: documentation of the safetensors library, section "Format".
    """
    layout, start = layout_of(document), document.header.data_start
    for entry, present in layout.cut:
        assert start is not None
        place = Span(start + (entry.begin or 0), present) if _trusted(layout, entry) else entry.span
        yield on(entry, place, present=max(0, document.size - start), wanted=layout.data_end)


def _trusted(layout: Layout, entry: TensorEntry) -> bool:
    """Whether type, shape and neighbours agree with the offsets: then the file is short, not an offset wrong."""
    alone = all(entry is not other for other, *_ in (*layout.holes, *layout.overlaps))
    return alone and entry.bit_count is not None and entry.bit_count == 8 * (entry.byte_count or 0)


@rule(
    "ST-TEN-014",
    "bytes-after-data",
    axis="valid",
    level="error",
    clause="tensors.data",
    kinds=ALL,
    needs=("layout",),
    title="Nothing follows the last tensor.",
    message="{count} bytes follow the last tensor, which ends at {end}",
    remedy="Find out where the bytes come from. A copy cut to where the last tensor ends is the file alone.",
)
def bytes_after_data(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: the format has every byte belong to a tensor, so that nothing can be hidden in a file. The library
    refuses it.

    References: documentation of the safetensors library, notes to the section "Format".
    """
    trailing = layout_of(document).trailing
    if trailing.length:
        yield at(trailing, count=trailing.length, end=trailing.offset)


@rule(
    "ST-TEN-015",
    "tensor-unaligned",
    axis="advice",
    level="warning",
    clause="writer.order",
    kinds=ALL,
    needs=("layout",),
    title="Every tensor begins at a multiple of the width of its values.",
    message="the tensor begins at offset {offset}, which is no multiple of the {width} bytes of one value",
    remedy="To use the file mapped into memory, write it anew with the safetensors library; its contents are complete.",
)
def tensor_unaligned(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: programs that map the file read values in place. Unaligned ones are slow, and on some machines an
    error.

    References: safetensors library, writer: it sorts tensors by width for this.
    """
    start = document.header.data_start or 0
    if start % ALIGNMENT:
        return  # then the header is the cause, and has a rule of its own
    for entry in layout_of(document).order:
        kind, offset = entry.element_type, start + (entry.begin or 0)
        if kind is not None and kind.bits > 8 and offset % (kind.bits // 8) and entry.byte_count:
            yield on(entry, Span(offset, entry.byte_count), offset=offset, width=kind.bits // 8)


@rule(
    "ST-TEN-016",
    "order-of-another-writer",
    axis="advice",
    level="info",
    clause="writer.order",
    kinds=ALL,
    needs=("layout",),
    title="The tensors lie in the order in which the safetensors library writes them.",
    message='the tensor lies behind "{before}", the safetensors library would have put it in front',
    remedy="Nothing to do: another program, or an early release of the library, wrote the file.",
)
def order_of_another_writer(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: it tells something of where a file comes from. The library puts wide types first, and tensors of
    one type in the order of their names.

    References: safetensors library, writer.
    """
    for before, entry in pairwise(layout_of(document).order):
        first, second = before.element_type, entry.element_type
        if first is None or second is None:
            continue
        if (-first.rank, before.key) > (-second.rank, entry.key):
            yield on(entry, entry.key_span, before=before.key)


@rule(
    "ST-TEN-019",
    "bool-neither-true-nor-false",
    axis="valid",
    level="warning",
    clause="tensors.dtype",
    kinds=ALL,
    needs=("payload", "layout"),
    per="record",
    title="Bool tensors hold only the bytes 0 and 1.",
    message="{count} bool values are neither 0 nor 1",
    remedy="Compare with another copy; readers take such a byte for true, or for something undefined.",
)
def bool_neither_true_nor_false(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: a bool with another value behaves differently from one operation to the next.

    References: safetensors library, list of types; C11, section 6.2.6.1.
    """
    for found in document.odd_bools:
        yield on(found.entry, found.span, count=found.odd)
