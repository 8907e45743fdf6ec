# SPDX-License-Identifier: Apache-2.0
"""Rules on exported programs (PT-PT2).

PT-PT2-003 of format.md 6.8 (files inside valid, depth bounded) is asked by PT-NST-002.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.rules.catalogue import rule

if TYPE_CHECKING:
    from fdd.formats.pytorch.export_facts import ProgramFacts

PROGRAM = frozenset({"pt2"})
OTHER_CONTENTS = ("data/aotinductor/", "data/executorch/", "data/mtia", "extra/")
"""What a .pt2 may hold in place of a program."""


def _program(document: TorchDocument) -> ProgramFacts:
    return cast("ProgramFacts", document.facts["program"])


@rule(
    "PT-PT2-001",
    "archive-format-unknown",
    axis="valid",
    level="error",
    clause="program.records",
    kinds=PROGRAM,
    needs=("texts",),
    title="archive_format is pt2 and archive_version a known number.",
    message="the record {name} says `{text}`",
    remedy="The file is damaged, or was written by a release newer than this tool knows.",
)
def archive_format_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the reader refuses other values.

    References: format.md 3.2, row 7.
    """
    for name, known in (("archive_format", (b"pt2",)), ("archive_version", (b"0",))):
        index = document.find(name)
        if index is not None and name in document.texts and document.texts[name] not in known:
            record = document.records[index]
            yield at(record.span, record=record.name, name=name, text=document.texts[name])


@rule(
    "PT-PT2-004",
    "archive-format-missing",
    axis="valid",
    level="error",
    clause="program.records",
    kinds=PROGRAM,
    needs=("inventory",),
    per="place",
    title="archive_format, a model, its weights, constants and inputs are there.",
    message="there is no {name} in the archive",
    remedy="Get the file again from its source: torch.export.load refuses it.",
)
def archive_format_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the reader asks for these records by their names and ends where there is none.

    References: format.md 3.5; history.md, table 2; torch/export/pt2_archive/_package.py.
    """
    if not document.root:
        expected = ["serialized_exported_program.json", "version"]
    else:
        expected = ["archive_format"]
        locals_of = [document.local_name(record.name) for record in document.records]
        models = [local for local in locals_of if local.startswith("models/") and local.endswith(".json")]
        if not models and not any(local.startswith(OTHER_CONTENTS) for local in locals_of):
            yield at(name="models/*.json")
        for local in models:
            yield from _parts_missing(document, local.removeprefix("models/").removesuffix(".json"))
    for name in expected:
        if document.find(name) is None:
            yield at(name=name)


def _parts_missing(document: TorchDocument, model: str) -> Iterator[Violation]:
    """A model comes with weights and constants, described by a configuration or, in 2.8, in one file; and with inputs."""
    for folder in ("weights", "constants"):
        config = f"data/{folder}/{model}_{folder}_config.json"
        if document.find(config) is None and document.find(f"data/{folder}/{model}.pt") is None:
            yield at(name=config)
    if document.find(f"data/sample_inputs/{model}.pt") is None:
        yield at(name=f"data/sample_inputs/{model}.pt")


@rule(
    "PT-PT2-005",
    "archive-version-missing",
    axis="valid",
    level="warning",
    clause="program.records",
    kinds=PROGRAM,
    needs=("inventory",),
    title="archive_version is there.",
    message="there is no record archive_version; torch takes it for 0",
    remedy="Nothing is lost. Find out what wrote the file: torch itself writes the record.",
)
def archive_version_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the number tells which rules the archive follows.

    References: format.md 3.5; torch/export/pt2_archive/_package.py.
    """
    if document.root and document.find("archive_version") is None:
        yield at()


@rule(
    "PT-PT2-006",
    "program-unreadable",
    axis="valid",
    level="error",
    clause="program.programs",
    kinds=PROGRAM,
    needs=("program",),
    per="place",
    title="Every program is JSON with a graph.",
    message="the program cannot be used: {why}",
    remedy="Get the file again from its source: the model is lost in this copy.",
)
def program_unreadable(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the program is the model; weights alone do not bring it back.

    References: format.md 3.2, rows 7a and 7d; torch/_export/serde/schema.py.
    """
    for fault in _program(document).program_faults:
        yield at(fault.span, record=fault.record, why=fault.detail)


@rule(
    "PT-PT2-007",
    "program-tensor-missing",
    axis="valid",
    level="error",
    clause="program.programs",
    kinds=PROGRAM,
    needs=("program", "inventory"),
    per="place",
    title="The archive holds every parameter, buffer and constant that its programs take.",
    message="the {sort} {name} of the program is in neither weights nor constants",
    remedy="Get the file again from its source: these numbers are not in it.",
)
def program_tensor_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the program cannot run without them.

    References: format.md 3.5; torch/_export/serde/schema.py.
    """
    facts = _program(document)
    for program in facts.programs:
        there = facts.names_for(program.model)
        for sort, name in program.wanted if there is not None else ():
            if there is not None and name not in there:
                yield at(program.span, record=program.record, tensor=name, sort=sort.replace("_", " "), name=name)


@rule(
    "PT-PT2-008",
    "weight-without-values",
    axis="valid",
    level="warning",
    clause="program.weights",
    kinds=PROGRAM,
    needs=("inventory",),
    title="Weights have values.",
    message="the weight {name} has a shape, but its record is empty: torch fills it with zeros",
    remedy="Get the values from where the model was trained; this file holds none.",
)
def weight_without_values(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: programs can be exported with fake tensors. They load, and compute with zeros.

    References: torch/export/pt2_archive/_package.py.
    """
    for tensor in document.tensors:
        storage = tensor.storage
        if storage is not None and storage.stored_size == 0 and tensor.element_count:
            yield at(storage.span, record=storage.record, tensor=tensor.name, name=tensor.name)


@rule(
    "PT-PT2-002",
    "weights-config-wrong",
    axis="valid",
    level="error",
    clause="program.weights",
    kinds=PROGRAM,
    needs=("inventory", "program"),
    per="place",
    title="The weights configuration fits the weights.",
    message="{what}",
    remedy="Get the file again from its source: these weights cannot be read as described.",
)
def weights_config_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the raw weights mean nothing without type, size and strides from this record.

    References: format.md 3.5.
    """
    facts = _program(document)
    for fault in facts.faults:
        yield at(fault.span, record=fault.record, what=f"the configuration cannot be used: {fault.detail}")
    for config, span, name, full in facts.missing:
        yield at(span, record=config, tensor=name, what=f"the weight {name} has no record {full}")
    for tensor in document.tensors:
        storage, need = tensor.storage, tensor.view_byte_count
        span, record = (storage.span, storage.record) if storage is not None else (None, None)
        size = storage.stored_size if storage is not None else None
        what = None
        if tensor.shape is None or tensor.stride is None or len(tensor.shape) != len(tensor.stride):
            what = "sizes and strides do not fit each other"
        elif min((*tensor.shape, *tensor.stride, tensor.storage_offset or 0)) < 0:
            what = "a negative size, stride or offset"
        elif size and need is not None and need > size:
            what = f"the tensor needs {need} bytes, its record holds {size}"
        elif size and tensor.dtype is not None and size % tensor.dtype.size:
            what = f"the record of {size} bytes is no whole number of elements of {tensor.dtype.name}"
        if what is not None:
            yield at(span, record=record, tensor=tensor.name, what=what)
