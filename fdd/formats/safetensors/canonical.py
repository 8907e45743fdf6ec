# SPDX-License-Identifier: Apache-2.0
"""The header as the writer of the safetensors library would have written it: what differs, another program wrote."""

from __future__ import annotations

import json

from fdd.core.span import Span
from fdd.formats.safetensors.header import ALIGNMENT, LENGTH_BYTES, METADATA, HeaderFacts, HeaderText, TensorEntry


def first_difference(header: HeaderFacts, order: list[TensorEntry]) -> Span | None:
    """From the first byte that differs to the end of the header; None where all are the same.

    ``order`` are the entries in the order of their data, in which the writer lists them. How far the header is padded is
    not compared, only that no more than an alignment needs is there.
    """
    text, behind = header.text, header.behind_object
    if text.object_end is None:
        return None
    written = text.text[: text.object_end - LENGTH_BYTES]
    expected = canonical_text(text, order)
    if written != expected:
        start = next((i for i, pair in enumerate(zip(written, expected, strict=False)) if pair[0] != pair[1]), len(expected))
        return Span(LENGTH_BYTES + start, max(0, len(written) - start))
    return behind if behind is not None and behind.length >= ALIGNMENT else None


def canonical_text(text: HeaderText, order: list[TensorEntry]) -> bytes:
    """Compact JSON, metadata first, fields in their order, only those characters escaped that have to be."""
    members = [f"{_json(METADATA)}:{_json(text.metadata)}"] if text.metadata is not None else []
    members += [
        f'{_json(entry.key)}:{{"dtype":{_json(entry.word)},"shape":{_json(entry.shape)},'
        f'"data_offsets":[{entry.begin},{entry.end}]}}'
        for entry in order
    ]
    return ("{" + ",".join(members) + "}").encode("utf-8", "surrogatepass")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
