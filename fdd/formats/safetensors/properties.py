# SPDX-License-Identifier: Apache-2.0
"""Technical metadata of a safetensors file as plain data, under the names that fdd000644 uses for the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fdd.core.text import valid_text
from fdd.formats.safetensors.document import SafetensorsDocument
from fdd.limits import Limits


def properties_of(document: SafetensorsDocument) -> dict[str, Any]:
    """The properties that the file has."""
    entries = document.header.text.entries
    found: dict[str, Any] = {
        "content": "state_dict" if entries else "none",
        "byte_order": "little",
        "record_count": len(document.records),
    }
    if entries:
        types: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for tensor, entry in zip(document.tensors, entries, strict=True):
            name = tensor.dtype.name if tensor.dtype is not None else valid_text(entry.word or "unknown")
            types[name] += 1
            sizes[name] += entry.byte_count or 0
        found["tensor_count"] = len(entries)
        found["element_count"] = sum(entry.value_count or 0 for entry in entries)
        found["tensor_bytes"] = sum(entry.byte_count or 0 for entry in entries)
        found["tensor_dtypes"] = dict(sorted(types.items()))
        found["bytes_by_dtype"] = dict(sorted(sizes.items()))
    found["metadata"] = _metadata(document.header.text.metadata or {})
    return found


def _metadata(texts: dict[str, str]) -> dict[str, str]:
    """The texts of the header, in its order, as far as a report takes texts from a record."""
    found: dict[str, str] = {}
    left = Limits().text_bytes
    for key, value in texts.items():
        left -= len(key)
        if left <= 0:
            break
        found[valid_text(key)] = valid_text(value[:left])
        left -= len(value)
    return found
