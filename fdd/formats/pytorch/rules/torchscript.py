# SPDX-License-Identifier: Apache-2.0
"""Rules on TorchScript archives (PT-TS). PT-TS-003, storages in the folder of their pickle, is asked by PT-REC-016."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import BYTECODE_VERSIONS
from fdd.formats.pytorch.rules.catalogue import EAGER, SCRIPT, rule
from fdd.pickles.faults import ARGUMENTS_NOT_TUPLE
from fdd.pickles.nodes import Global

if TYPE_CHECKING:
    from fdd.formats.pytorch.torchscript import ScriptFacts

CURRENT = SCRIPT - {"torchscript-json"}
JSON = frozenset({"torchscript-json"})
MOBILE = frozenset({"torchscript-mobile"})
LAST_PICKLED_BYTECODE = 8
"""Bytecode version 9 is written as FlatBuffers only."""


def _script(document: TorchDocument) -> ScriptFacts:
    return cast("ScriptFacts", document.facts["script"])


@rule(
    "PT-TS-001",
    "script-record-missing",
    axis="valid",
    level="error",
    clause="script.records",
    kinds=CURRENT,
    needs=("inventory",),
    title="data.pkl, constants.pkl and code are all there.",
    message="there is no {missing} beside the other records of a TorchScript archive",
    remedy="Get the file again from its source: torch.jit.load refuses it.",
)
def script_record_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch.jit.load needs all three; an archive without one of them was damaged or edited.

    References: format.md 3.4.
    """
    for name in ("data.pkl", "constants.pkl"):
        if document.find(name) is None:
            yield at(missing=name)
    if not any(record.role == "code" for record in document.records):
        yield at(missing="code/")


@rule(
    "PT-TS-002",
    "class-without-code",
    axis="valid",
    level="error",
    clause="script.code",
    kinds=CURRENT | {"torch-package"},
    needs=("storages",),
    per="place",
    title="Every class and function below __torch__ has its code.",
    message="{name} has no code in the archive; it should stand in {expected}",
    remedy="Get the file again from its source: torch.jit.load ends with `Unknown type name`.",
)
def class_without_code(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the code in the archive is the program; without it the model cannot be rebuilt.

    References: format.md 3.4.
    """
    for name, expected, span, record in _script(document).missing_code:
        yield at(span, record=record, name=name, expected=expected)


@rule(
    "PT-TS-004",
    "code-not-text",
    axis="valid",
    level="error",
    clause="script.code",
    kinds=SCRIPT | {"torch-package"},
    needs=("directory",),
    per="record",
    title="Code files are UTF-8 text.",
    message="the code is not UTF-8 text",
    remedy="Get the file again from its source.",
)
def code_not_text(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the reader of TorchScript takes code as UTF-8; other bytes are damage.

    References: format.md 3.4.
    """
    for record, span in _script(document).undecodable:
        yield at(span, record=record)


@rule(
    "PT-TS-005",
    "script-record-deflated",
    axis="valid",
    level="warning",
    clause="script.records",
    kinds=SCRIPT,
    needs=("directory",),
    title="Only code and debug records are deflated, since 1.3.",
    message="the record is deflated; torch deflates code and debug records only, and none before 1.3",
    remedy="Nothing is lost. The archive was written again by another tool; memory-mapped loading is not possible.",
)
def script_record_deflated(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: it tells that another tool made the archive, and storages can no longer be mapped into memory.

    References: format.md 3.4.
    """
    for record in document.records:
        if record.method == "deflated" and (record.role not in ("code", "debug") or document.kind in JSON):
            yield at(record.span, record=record.name)


@rule(
    "PT-TS-006",
    "bytecode-version-unknown",
    axis="valid",
    level="error",
    clause="script.bytecode",
    kinds=MOBILE,
    needs=("objects",),
    title="The bytecode version is one that readers know.",
    message="bytecode version {version} is outside 4 to 9",
    remedy="The file is damaged, or was written by a release newer than this tool knows.",
)
def bytecode_version_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the mobile reader refuses versions it does not know.

    References: format.md 3.2, row 9.
    """
    facts = _script(document).bytecode
    if facts.version is not None and facts.version not in BYTECODE_VERSIONS:
        yield at(facts.span, record=facts.record, version=facts.version)


@rule(
    "PT-TS-009",
    "bytecode-version-of-flatbuffers",
    axis="valid",
    level="warning",
    clause="script.bytecode",
    kinds=MOBILE,
    needs=("objects",),
    title="Bytecode in pickle form has a version up to 8.",
    message="bytecode version {version} in pickle form: torch writes it as FlatBuffers only",
    remedy="Find out what wrote the file.",
)
def bytecode_version_of_flatbuffers(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: no released torch writes this combination.

    References: format.md 3.2, row 9.
    """
    facts = _script(document).bytecode
    if facts.version is not None and facts.version in BYTECODE_VERSIONS and facts.version > LAST_PICKLED_BYTECODE:
        yield at(facts.span, record=facts.record, version=facts.version)


@rule(
    "PT-TS-010",
    "bytecode-without-version",
    axis="advice",
    level="info",
    clause="script.bytecode",
    kinds=MOBILE,
    needs=("objects",),
    title="The bytecode states its version.",
    message="the bytecode states no version: written by torch 1.5 or 1.6, which current mobile readers refuse",
    remedy="Keep the file; load it with torch.jit.load, which does not need the bytecode.",
)
def bytecode_without_version(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the mobile interpreter of today cannot run it.

    References: format.md 3.2, row 9.
    """
    facts = _script(document).bytecode
    if facts.read and facts.version is None and not facts.faults:
        yield at(facts.span, record=facts.record)


@rule(
    "PT-TS-013",
    "bytecode-malformed",
    axis="valid",
    level="error",
    clause="script.bytecode",
    kinds=MOBILE,
    needs=("objects",),
    per="place",
    title="The bytecode is made of functions whose instructions can run.",
    message="{what}",
    remedy="Get the file again from its source; torch.jit.load does not need the bytecode, the mobile interpreter does.",
)
def bytecode_malformed(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the mobile interpreter takes registers, jumps and operators as they stand, without a check.

    References: format.md 3.2, row 9; torch/csrc/jit/runtime/instruction.h.
    """
    facts = _script(document).bytecode
    for what in facts.faults:
        yield at(facts.span, record=facts.record, what=what)


@rule(
    "PT-TS-007",
    "script-global-foreign",
    axis="valid",
    level="warning",
    clause="script.pickles",
    kinds=CURRENT,
    needs=("pickle",),
    per="place",
    title="The pickles name only classes with code, and torch's own helpers.",
    message="the global {name} has no code in the archive and is no helper of torch",
    remedy="Do not load the file with torch.load; torch.jit.load ends with `Unknown type name`.",
)
def script_global_foreign(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the reader of TorchScript imports nothing and fails here; torch.load may import.

    References: format.md 3.4, 6.8.
    """
    for use in document.globals:
        if use.role in ("object", "constants", "attributes", "bytecode", "traced-inputs") and use.grade != "listed":
            yield at(use.span, record=use.record, name=use.path)


@rule(
    "PT-TS-008",
    "model-json-superseded",
    axis="advice",
    level="warning",
    clause="script.model-json",
    kinds=SCRIPT,
    needs=("ends",),
    title="The archive is not of the superseded form with model.json.",
    message="TorchScript of torch 1.0 to 1.2 (model.json): torch since 1.10 or so refuses it",
    remedy="Keep the file, and make a copy in the current form with a torch that still reads it (1.3 to 1.9).",
)
def model_json_superseded(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: current torch answers `Legacy model format is not supported`.

    References: history.md, surprise 6; format.md 3.2, row 11.
    """
    index = document.find("model.json")
    if document.kind in JSON and index is not None:
        yield at(document.records[index].span, record=document.records[index].name)


@rule(
    "PT-TS-011",
    "model-json-unreadable",
    axis="valid",
    level="error",
    clause="script.model-json",
    kinds=JSON,
    needs=("directory",),
    title="model.json is JSON with tensors and a main module.",
    message="model.json cannot be used: {why}",
    remedy="Get the file again from its source.",
)
def model_json_unreadable(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: everything in the archive is found through this record.

    References: format.md 3.2, row 11; history.md, table 2.
    """
    facts = _script(document).model_json
    index = document.find("model.json")
    if facts is not None and facts.fault is not None and index is not None:
        record = document.records[index]
        yield at(record.span, record=record.name, why=facts.fault)


@rule(
    "PT-TS-012",
    "model-json-tensor-missing",
    axis="valid",
    level="error",
    clause="script.model-json",
    kinds=JSON,
    needs=("inventory",),
    per="place",
    title="Every tensor of model.json has its record, large enough.",
    message="{what}",
    remedy="Get the file again from its source: these weights are not in it.",
)
def model_json_tensor_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the weights are not there.

    References: format.md 3.2, row 11.
    """
    facts = _script(document).model_json
    for name, record in facts.missing_tensors if facts is not None else ():
        yield at(tensor=name, record=record, what="the tensor has no record")
    for tensor in document.tensors:
        storage, need = tensor.storage, tensor.view_byte_count
        if tensor.function != "model.json":
            continue
        if need is None:
            yield at(tensor=tensor.name, what="the tensor has no usable type, size, stride or offset")
        elif storage is not None and storage.stored_size is not None and need > storage.stored_size:
            what = f"the tensor needs {need} bytes, its record holds {storage.stored_size}"
            yield at(storage.span, record=storage.record, tensor=tensor.name, what=what)


@rule(
    "PT-TS-014",
    "model-json-record-missing",
    axis="valid",
    level="error",
    clause="script.model-json",
    kinds=JSON,
    needs=("inventory",),
    per="place",
    title="Every record that model.json names is there.",
    message="{what} names the record {name}, and there is none",
    remedy="Get the file again from its source: a part of the model is not in it.",
)
def model_json_record_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the code of a module, or its attributes, are not there.

    References: format.md 3.2, row 11; history.md, table 2.
    """
    facts = _script(document).model_json
    index = document.find("model.json")
    if facts is None or index is None:
        return
    record = document.records[index]
    for what, name in facts.missing_records:
        yield at(record.span, record=record.name, what=what, name=name)


@rule(
    "PT-TS-015",
    "enumeration-without-tuple",
    axis="advice",
    level="info",
    clause="script.pickles",
    kinds=CURRENT,
    needs=("pickle",),
    per="record",
    title="Values of enumerations are calls with a tuple.",
    message="{name} is called with a bare value: torch itself writes enumerations so, and only torch.jit.load reads it",
    remedy="Load the file with torch.jit.load; what stands behind this place in the pickle is not read here.",
)
def enumeration_without_tuple(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the pickle breaks the grammar of Python's pickles, although a released torch wrote it. The file is not
    damaged.

    References: contract, section 6 (pickles that a real writer got wrong).
    """
    modules = _script(document).modules
    for pickle in document.judged_pickles():
        for fault in pickle.facts.faults:
            if fault.code != ARGUMENTS_NOT_TUPLE:
                continue
            named = [event.value for event in pickle.facts.events if event.what == "global" and event.offset < fault.offset]
            last = named[-1] if named else None
            if isinstance(last, Global) and last.module in modules:
                yield at(pickle.place(fault.offset, fault.length), record=pickle.record, name=last.path)


@rule(
    "PT-TS-016",
    "script-class-outside",
    axis="valid",
    level="error",
    clause="script.code",
    kinds=EAGER | {"torch-legacy"},
    needs=("pickle",),
    per="record",
    title="Only TorchScript archives name classes below __torch__.",
    message="{name} is a class of TorchScript, and there is no code in the file",
    remedy="Get the file again from its source: it is what is left of a TorchScript archive, or was put together from parts.",
)
def script_class_outside(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: no Python has a module __torch__; the classes below it exist in the code records of their archive only.

    References: format.md 3.4.
    """
    for pickle in document.judged_pickles():
        named = (event for event in pickle.facts.events if event.what == "global" and isinstance(event.value, Global))
        for event in named:
            if event.value.module.split(".")[0] == "__torch__":
                yield at(pickle.place(event.offset), record=pickle.record, name=event.value.path)
