# SPDX-License-Identifier: Apache-2.0
"""Holds the layout of a mobile module against the one that torch's writer gives the same content.

The FlatBuffers builder writes from the end to the front and leaves no choice: children lie behind their parents, values in
falling order, tables end where the part behind them begins, fields that have their default are left out, and the filling
between two parts is shorter than the alignment asks for.
"""

from __future__ import annotations

from fdd.core.span import Span, gaps
from fdd.formats.pytorch.flatbuffers import Table, Walk
from fdd.formats.pytorch.mobile_facts import MobileFacts

DEFAULTS = {("Operator", "argument_count"): -1}
"""Defaults other than 0."""
ORDERED = ("ivalues", "storage_data", "object_types", "jit_sources", "extra_files")
"""Vectors of the module whose items were written in the order of their numbers."""
LONGEST_FILLING, LONGEST_BY_STORAGE = 7, 31
"""Bytes between parts; beside a storage, which begins at a multiple of 16, and behind the head."""
KNOWN_OPERATORS = range(11)
"""Versions of the operators that torch has had (format.md 1.15)."""


def check_layout(facts: MobileFacts, found: Walk, module: Table) -> None:
    """State where the layout is another one than torch's."""
    odd = facts.odd_layout
    starts = {span.offset for span, _ in found.parts} | {len(found.data)}
    for table in found.tables:
        for name in table.numbers:
            size, _ = table.numbers[name]
            if found.scalar(table, name) == DEFAULTS.get((table.type, name), 0):
                odd.append((f"{table.type}.{name} states its default", Span(table.places[name], size)))
        if table.end not in starts:
            odd.append((f"a {table.type} of {table.size} bytes ends where nothing begins", Span(table.vtable.offset + 2, 2)))
        if table.vtable.length > 4 and found.data[table.vtable.end - 2 : table.vtable.end] == b"\0\0":
            odd.append((f"the last field of the vtable of a {table.type} is absent", Span(table.vtable.end - 2, 2)))
    for name in ORDERED:
        targets = found.targets(module, name)
        first = found.vector(module, name)[0]
        for index in range(1, len(targets)):
            if targets[index] >= targets[index - 1]:
                odd.append((f"item {index} of {name} lies behind the one before it", Span(first + 4 * index, 4)))
    _check_fillings(facts, found)
    version = found.scalar(module, "operator_version")
    if version not in KNOWN_OPERATORS:
        odd.append(
            (f"operator version {version} is none that torch has had", module.span_of("operator_version", 4) or Span(0, 4))
        )


def _check_fillings(facts: MobileFacts, found: Walk) -> None:
    before = {span.end: what for span, what in found.parts}
    for gap in gaps(found.owned(), Span(0, len(found.data))):
        roomy = gap.offset == 8 or before.get(gap.offset) == "a vector of u8"
        if gap.length > (LONGEST_BY_STORAGE if roomy else LONGEST_FILLING):
            facts.odd_layout.append((f"{gap.length} bytes between two parts belong to none", gap))
