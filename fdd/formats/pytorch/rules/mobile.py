# SPDX-License-Identifier: Apache-2.0
"""Rules on mobile modules in FlatBuffers form (PT-MOB) and ExecuTorch programs (PT-ETE)."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.executorch import ExecuTorchFacts
from fdd.formats.pytorch.mobile import KNOWN_BYTECODE, MobileFacts
from fdd.formats.pytorch.rules.catalogue import rule

MOBILE = frozenset({"mobile-flatbuffer"})
EXECUTORCH = frozenset({"executorch"})


def _mobile(document: TorchDocument) -> MobileFacts:
    facts = document.facts["mobile"]
    assert isinstance(facts, MobileFacts)
    return facts


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
    facts = _mobile(document)
    for what, span in facts.bad_indexes:
        yield at(span, what=what)
    if facts.stated_storages is not None and facts.stated_storages != facts.storage_count:
        yield at(what=f"the module states {facts.stated_storages} storages and holds {facts.storage_count}")


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
    if facts.bytecode_version is not None and facts.bytecode_version not in KNOWN_BYTECODE:
        module = facts.walk.tables[0] if facts.walk is not None else None
        place = module.span_of("bytecode_version", 4) if module is not None else None
        yield at(place, version=facts.bytecode_version)


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
    facts = document.facts["executorch"]
    assert isinstance(facts, ExecuTorchFacts)
    for what, span in facts.faults:
        yield at(span, what=what)
