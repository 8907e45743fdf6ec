# SPDX-License-Identifier: Apache-2.0
"""Rules on the serialization id: both halves are computed again from the records (format.md 1.12)."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.rules.catalogue import NATIVE, rule
from fdd.formats.pytorch.rules.records.places import small_record

HALF = 20
"""Digits of each half."""


@rule(
    "PT-FIX-004",
    "serialization-id-content-differs",
    axis="valid",
    level="warning",
    clause="records.serialization-id",
    kinds=NATIVE,
    needs=("id", "inventory"),
    title="The second half of the serialization id follows from the checksums of the records.",
    message="the serialization id says {stated} for the contents, the records give {computed:020d}",
    remedy="Compare with another copy: records were exchanged, added, dropped or put in another order after saving.",
)
def serialization_id_content_differs(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: whoever exchanges a record and mends its checksum leaves this number behind. It is no cryptographic
    proof, and tools that strip records make it stale too.

    References: format.md 1.12.
    """
    found, facts = small_record(document, ".data/serialization_id"), document.id_facts
    if found is not None and facts is not None and facts.content_matches is False:
        place = Span(found[0].span.offset + HALF, HALF) if found[0].span is not None else None
        yield at(place, record=found[0].name, stated=facts.text[HALF:].decode("latin-1"), computed=facts.content)


@rule(
    "PT-FIX-005",
    "serialization-id-platform-unknown",
    axis="advice",
    level="info",
    clause="records.serialization-id",
    kinds=NATIVE,
    needs=("id", "inventory"),
    title="The first half of the serialization id follows from the names of the records, on a known platform.",
    message="no known platform gives {stated} for these record names",
    remedy="Nothing has to be done where the file was written on Windows; else records were renamed, added or dropped.",
)
def serialization_id_platform_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the half that fits tells on which platform the file was written. Windows is not described yet.

    References: format.md 1.12.
    """
    found, facts = small_record(document, ".data/serialization_id"), document.id_facts
    if found is not None and facts is not None and facts.well_formed and facts.names_platform is None:
        place = Span(found[0].span.offset, HALF) if found[0].span is not None else None
        yield at(place, record=found[0].name, stated=facts.text[:HALF].decode("latin-1"))
