# SPDX-License-Identifier: Apache-2.0
"""What the readers of mobile modules state, for the rules to judge."""

from __future__ import annotations

from dataclasses import dataclass, field

from fdd.core.span import Span
from fdd.formats.pytorch.flatbuffers import Walk

Places = list[tuple[str, Span]]
"""What is wrong in words, and where."""


@dataclass(slots=True)
class MobileFacts:
    """What a mobile module says and where it breaks its layout."""

    walk: Walk | None = None
    bytecode_version: int | None = None
    operator_version: int | None = None
    operators: dict[str, int] = field(default_factory=dict)
    """Operator name -> offset of its first mention."""
    extra_files: Places = field(default_factory=list)
    """Name and content."""
    sources: list[tuple[str, str, Span]] = field(default_factory=list)
    """TorchScript sources: dotted name of the module, text, place."""
    stray: list[Span] = field(default_factory=list)
    """Bytes that no part owns and that are not zero."""
    wrong: Places = field(default_factory=list)
    """References that lead nowhere or to something else, counts that differ."""
    wrong_code: Places = field(default_factory=list)
    """Instructions that cannot run."""
    outside_tensors: list[tuple[str, Span, int, int]] = field(default_factory=list)
    """(name, place, bytes needed, bytes there)"""
    unused: Places = field(default_factory=list)
    """Values, storages and registers that nothing refers to."""
    odd_names: Places = field(default_factory=list)
    """Names that torch does not write, or that no source knows."""
    odd_layout: Places = field(default_factory=list)
    """Places where torch's writer would have laid out the same content in another way."""
    used_storages: set[int] = field(default_factory=set)
