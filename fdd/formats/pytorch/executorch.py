# SPDX-License-Identifier: Apache-2.0
"""Reads the header of an ExecuTorch program: what is safe to state without its schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from fdd.core.finding import Reason
from fdd.core.model import Evidence
from fdd.core.span import Span
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument

EXTENDED_MAGIC = b"eh00"
EXTENDED_OFFSET = 8
_EXTENDED = Struct("<4sIQQ")
"""Magic, length of this header, size of the program, offset of the first segment; bytes."""


@dataclass(slots=True)
class ExecuTorchFacts:
    """The header: schema version of the identifier, and sizes where the extended header states them (bytes)."""

    version: str = ""
    root_offset: int = 0
    program_size: int | None = None
    segment_base: int | None = None
    faults: list[tuple[str, Span]] = field(default_factory=list)


def open_executorch(probe: Probe, document: TorchDocument) -> None:
    """State the header. The layout behind it is not judged: the evidence stays partial."""
    facts = ExecuTorchFacts()
    document.facts["executorch"] = facts
    document.has_code = True
    document.followed = False
    document.evidence["executorch"] = Evidence("partial", Reason.LIMIT, detail="only the header of ExecuTorch programs is read")
    head, size = probe.head, document.size
    facts.version = head[4:8].decode("ascii", "replace")
    facts.root_offset = int.from_bytes(head[:4], "little")
    if facts.root_offset + 4 > size or facts.root_offset % 2:
        facts.faults.append((f"the root offset {facts.root_offset} leaves the file of {size} bytes", Span(0, 4)))
    if head[EXTENDED_OFFSET : EXTENDED_OFFSET + 4] != EXTENDED_MAGIC or len(head) < EXTENDED_OFFSET + _EXTENDED.size:
        return
    _, length, facts.program_size, facts.segment_base = _EXTENDED.unpack_from(head, EXTENDED_OFFSET)
    if length < _EXTENDED.size:
        facts.faults.append((f"the extended header states a length of {length} bytes", Span(EXTENDED_OFFSET + 4, 4)))
    if facts.program_size > size:
        facts.faults.append((f"the program is {facts.program_size} bytes long, the file {size}", Span(EXTENDED_OFFSET + 8, 8)))
    if facts.segment_base > size or 0 < facts.segment_base < facts.program_size:
        facts.faults.append(
            (f"segments begin at {facts.segment_base}, inside the program or behind the file", Span(EXTENDED_OFFSET + 16, 8))
        )
