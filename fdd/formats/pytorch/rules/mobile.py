# SPDX-License-Identifier: Apache-2.0
"""Rules on mobile modules in FlatBuffers form (PT-MOB) and ExecuTorch programs (PT-ETE)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import BYTECODE_VERSIONS
from fdd.formats.pytorch.rules.catalogue import rule

if TYPE_CHECKING:
    from fdd.formats.pytorch.executorch import ExecuTorchFacts
    from fdd.formats.pytorch.mobile_facts import MobileFacts

MOBILE = frozenset({"mobile-flatbuffer"})
EXECUTORCH = frozenset({"executorch"})


def _mobile(document: TorchDocument) -> MobileFacts:
    return cast("MobileFacts", document.facts["mobile"])


@rule(
    "PT-MOB-001",
    "flatbuffer-layout-broken",
    axis="well-formed",
    level="error",
    clause="mobile.layout",
    kinds=MOBILE,
    needs=("mobile",),
    title="Every offset, vector, text and table lies inside the file.",
    message="{what}",
    remedy="The file is cut off or damaged. Get it again from its source.",
)
def flatbuffer_layout_broken(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the reader follows offsets without a checksum; what leaves the file is read as something else.

    References: format.md 3.6; FlatBuffers, internals.
    """
    walk = _mobile(document).walk
    for fault in walk.faults if walk is not None else ():
        yield at(fault.span, what=fault.detail)


@rule(
    "PT-MOB-002",
    "flatbuffer-stray-bytes",
    axis="well-formed",
    level="error",
    clause="mobile.layout",
    kinds=MOBILE,
    needs=("mobile",),
    title="Bytes that belong to no part are zero.",
    message="{length} bytes that no part of the module owns are not zero",
    remedy="The file is damaged, or something was hidden in it. Get it again from its source.",
)
def flatbuffer_stray_bytes(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: an offset that leads elsewhere leaves its old target behind; so damage and hidden bytes show.

    References: format.md 3.6.
    """
    facts = _mobile(document)
    if facts.walk is not None and not facts.walk.faults:
        for span in facts.stray:
            yield at(span, length=span.length)


@rule(
    "PT-MOB-003",
    "mobile-index-wrong",
    axis="valid",
    level="error",
    clause="mobile.references",
    kinds=MOBILE,
    needs=("mobile",),
    title="References to values, types and storages are in range.",
    message="{what}",
    remedy="Get the file again from its source: the mobile interpreter ends or reads wrong values.",
)
def mobile_index_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the interpreter uses these numbers without a check.

    References: format.md 3.6.
    """
    for what, span in _mobile(document).wrong:
        yield at(span, what=what)


@rule(
    "PT-MOB-004",
    "mobile-tensor-outside-storage",
    axis="valid",
    level="error",
    clause="mobile.references",
    kinds=MOBILE,
    needs=("mobile",),
    per="place",
    title="Tensors lie inside their storages.",
    message="{name} needs {need} bytes, its storage holds {there}",
    remedy="Get the file again from its source.",
)
def mobile_tensor_outside_storage(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the reader would show memory that is not the file's.

    References: format.md 2.5, 3.6.
    """
    for name, span, need, there in _mobile(document).outside_tensors:
        yield at(span, tensor=name, name=name, need=need, there=there)


@rule(
    "PT-MOB-005",
    "mobile-bytecode-version",
    axis="valid",
    level="error",
    clause="mobile.references",
    kinds=MOBILE,
    needs=("mobile",),
    title="The bytecode version is one that readers know.",
    message="bytecode version {version} is outside 4 to 9",
    remedy="The file is damaged, or was written by a release newer than this tool knows.",
)
def mobile_bytecode_version(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the mobile reader refuses versions it does not know.

    References: format.md 1.15, 3.6.
    """
    facts = _mobile(document)
    if facts.bytecode_version is not None and facts.bytecode_version not in BYTECODE_VERSIONS:
        module = facts.walk.tables[0] if facts.walk is not None else None
        place = module.span_of("bytecode_version", 4) if module is not None else None
        yield at(place, version=facts.bytecode_version)


@rule(
    "PT-MOB-006",
    "mobile-instruction-wrong",
    axis="valid",
    level="error",
    clause="mobile.code",
    kinds=MOBILE,
    needs=("mobile",),
    per="place",
    title="Every instruction can run.",
    message="{what}",
    remedy="Get the file again from its source: the mobile interpreter ends or reads memory that is not its own.",
)
def mobile_instruction_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the interpreter takes registers, jumps and operators as they stand, without a check.

    References: torch/csrc/jit/runtime/instruction.h; torch/csrc/jit/mobile/interpreter.cpp.
    """
    for what, span in _mobile(document).wrong_code:
        yield at(span, what=what)


@rule(
    "PT-MOB-007",
    "flatbuffer-layout-unusual",
    axis="valid",
    level="warning",
    clause="mobile.writer",
    kinds=MOBILE,
    needs=("mobile",),
    title="The layout is the one that torch gives the content.",
    message="{what}; torch lays it out in another way",
    remedy="Hold the file against another copy: the place may be damaged, or another tool wrote it.",
)
def flatbuffer_layout_unusual(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a mobile module has no checksum. Its writer leaves little choice, so that many a flipped bit shows as
    a layout that torch does not write.

    References: format.md 3.6; FlatBuffers, internals; torch/csrc/jit/serialization/flatbuffer_serializer.cpp.
    """
    facts = _mobile(document)
    if facts.walk is not None and not facts.walk.faults:
        for what, span in facts.odd_layout:
            yield at(span, what=what)


@rule(
    "PT-MOB-008",
    "mobile-name-unusual",
    axis="valid",
    level="warning",
    clause="mobile.writer",
    kinds=MOBILE,
    needs=("mobile",),
    per="place",
    title="Names are such as torch writes, and the sources know them.",
    message="{what}",
    remedy="Hold the file against another copy: the name may be damaged, or another tool wrote the file.",
)
def mobile_name_unusual(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the names of types, attributes and methods stand in the module and in the source that travels with it;
    where they differ, one of the two was changed.

    References: format.md 3.6; torch/csrc/jit/serialization/flatbuffer_serializer.cpp.
    """
    for what, span in _mobile(document).odd_names:
        yield at(span, what=what)


@rule(
    "PT-MOB-009",
    "mobile-part-unused",
    axis="valid",
    level="warning",
    clause="mobile.writer",
    kinds=MOBILE,
    needs=("mobile",),
    per="place",
    title="Everything that is stored is used.",
    message="{what}",
    remedy="Hold the file against another copy: a reference to it may be damaged, or it was put in by another tool.",
)
def mobile_part_unused(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch stores a value where something asks for it. One that nothing asks for tells of a reference
    that was changed, or of something that was put in.

    References: torch/csrc/jit/serialization/flatbuffer_serializer.cpp.
    """
    for what, span in _mobile(document).unused:
        yield at(span, what=what)


@rule(
    "PT-ETE-001",
    "executorch-header-wrong",
    axis="well-formed",
    level="error",
    clause="executorch.header",
    kinds=EXECUTORCH,
    needs=("executorch",),
    title="The header of an ExecuTorch program fits the file.",
    message="{what}",
    remedy="The file is cut off or damaged. Get it again from its source.",
)
def executorch_header_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the header says how long the program is and where its segments begin. More of the layout is not read
    here: a good header leaves the verdict undetermined.

    References: format.md 3.2, row 2.
    """
    facts = cast("ExecuTorchFacts", document.facts["executorch"])
    for what, span in facts.faults:
        yield at(span, what=what)
