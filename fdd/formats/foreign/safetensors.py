# SPDX-License-Identifier: Apache-2.0
"""Safetensors under another name: a little-endian u64 header length, a JSON header, then the values."""

from __future__ import annotations

import json
from typing import Any

from fdd.core.model import Basis
from fdd.formats.foreign.facts import STRUCTURE_BYTES, ForeignFacts, Subject, counted

MAX_HEADER = 100_000_000
"""The safetensors library refuses longer headers."""
_MARKS = (b'"data_offsets"', b'"__metadata__"')


def recognise_safetensors(subject: Subject) -> ForeignFacts | None:
    """Tell safetensors by its structure. The first byte may be any character: it is the low byte of the length.

    A file that is cut inside its header, or whose header is damaged, is still known by the length and a JSON beginning
    with the format's own words.
    """
    head = subject.head
    length = int.from_bytes(head[:8], "little")
    if len(head) < 10 or head[8:9] != b"{" or not 2 <= length <= MAX_HEADER:
        return None
    header = _header(subject, length)
    if header is None and not any(mark in head for mark in _MARKS):
        return None
    if header is not None and not all(_is_entry(key, value) for key, value in header.items()):
        return None
    basis = [Basis("header length", 0, 8), Basis("JSON header", 8, min(length, subject.size - 8))]
    facts = ForeignFacts("safetensors", "Safetensors", "", basis, details={"header_bytes": length})
    if header is None:
        cut = not subject.partial and length > subject.size - 8
        state = "cut off inside its header" if cut else "too long or too damaged for its header to be read here"
        facts.note = f"A safetensors file with another extension, {state}; open it with the safetensors library."
        facts.details["complete"] = False if cut else None
        return facts
    tensors = {key: value for key, value in header.items() if key != "__metadata__"}
    data = max((value["data_offsets"][1] for value in tensors.values()), default=0)
    dtypes: dict[str, int] = {}
    for value in tensors.values():
        dtypes[str(value["dtype"])[:40]] = dtypes.get(str(value["dtype"])[:40], 0) + 1
    facts.details |= {"tensor_count": len(tensors), "dtypes": dtypes, "data_bytes": data}
    metadata = header.get("__metadata__")
    if isinstance(metadata, dict):
        facts.details["metadata"] = {str(k)[:200]: str(v)[:500] for k, v in list(metadata.items())[:50]}
    facts.note = (
        f"A safetensors file ({counted(len(tensors), 'tensor')}) with another extension. It holds no code; name it"
        " .safetensors and open it with the safetensors library."
    )
    if not subject.partial:
        facts.details["complete"] = 8 + length + data <= subject.size
        if not facts.details["complete"]:
            facts.note += f" It is cut off: {max(0, subject.size - 8 - length)} of {data} bytes of values are here."
    return facts


def _header(subject: Subject, length: int) -> dict[str, Any] | None:
    if length > min(subject.size - 8, STRUCTURE_BYTES, subject.limits.inflated_bytes):
        return None
    try:
        header = json.loads(subject.source.read_at(8, length))
    except (ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) else None


def _is_entry(key: str, value: object) -> bool:
    if key == "__metadata__":
        return value is None or isinstance(value, dict)
    if not isinstance(value, dict) or "dtype" not in value:
        return False
    offsets = value.get("data_offsets")
    return isinstance(offsets, list) and len(offsets) == 2 and all(isinstance(n, int) for n in offsets)
