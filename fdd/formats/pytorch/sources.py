# SPDX-License-Identifier: Apache-2.0
"""The source texts that a PyTorch file carries: code of TorchScript, mobile modules and packages, classes of legacy modules."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.model import EmbeddedSource
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.mobile_facts import MobileFacts
from fdd.formats.pytorch.zipped import contents
from fdd.limits import Limits

SOURCE_ROLES = frozenset({"code", "source"})


def sources_of(document: TorchDocument, limits: Limits) -> Iterator[EmbeddedSource]:
    """Yield every source text, in the order of the file. A record that cannot be read is left out: rules tell of it."""
    for index, record in enumerate(document.records):
        if record.role not in SOURCE_ROLES and not record.name.endswith(".py"):
            continue
        read = contents(document, index, limits.inflated_bytes)
        if read is not None:
            yield EmbeddedSource(record.name, record.name, read[0], record.span.offset if record.span is not None else None)
    mobile = document.facts.get("mobile")
    if isinstance(mobile, MobileFacts):
        for name, _, span in mobile.sources:
            yield EmbeddedSource(name, None, document.source.read_at(span.offset, span.length), span.offset)
    for pickle, module in document.facts.get("module-sources", ()):
        place = pickle.place(module.offset)
        yield EmbeddedSource(module.class_name, pickle.record, module.source, place.offset, module.source_file)
