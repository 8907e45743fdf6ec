# SPDX-License-Identifier: Apache-2.0
"""Rules on torch.package archives, TorchServe archives and exported programs (PT-PKG, PT-MAR, PT-PT2)."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.export import ProgramFacts
from fdd.formats.pytorch.package import ModelArchiveFacts, PackageFacts
from fdd.formats.pytorch.rules.catalogue import rule

PACKAGE = frozenset({"torch-package"})
MODEL_ARCHIVE = frozenset({"mar"})
PROGRAM = frozenset({"pt2"})


def _package(document: TorchDocument) -> PackageFacts:
    facts = document.facts["package"]
    assert isinstance(facts, PackageFacts)
    return facts


def _archive(document: TorchDocument) -> ModelArchiveFacts:
    facts = document.facts["model-archive"]
    assert isinstance(facts, ModelArchiveFacts)
    return facts


def _program(document: TorchDocument) -> ProgramFacts:
    facts = document.facts["program"]
    assert isinstance(facts, ProgramFacts)
    return facts


@rule(
    "PT-PKG-001",
    "extern-modules-missing",
    axis="valid",
    level="error",
    clause="package.records",
    kinds=PACKAGE,
    needs=("inventory",),
    title="The package lists the modules it expects from outside.",
    message="there is no record .data/extern_modules",
    remedy="Get the file again from its source: the importer refuses it.",
)
def extern_modules_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: without the list the importer cannot tell its own modules from those of the host.

    References: format.md 3.5.
    """
    if document.find(".data/extern_modules") is None:
        yield at()


@rule(
    "PT-PKG-004",
    "extern-module-malformed",
    axis="valid",
    level="error",
    clause="package.records",
    kinds=PACKAGE,
    needs=("texts",),
    title="Each line of .data/extern_modules is a dotted module name.",
    message="the line `{line}` is no module name",
    remedy="Get the file again from its source.",
)
def extern_module_malformed(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the importer reads one module a line.

    References: format.md 3.5.
    """
    for line, span in _package(document).bad_lines:
        yield at(span, record=f"{document.root}/.data/extern_modules", line=line)


@rule(
    "PT-PKG-003",
    "package-sources",
    axis="advice",
    level="info",
    clause="package.records",
    kinds=PACKAGE,
    needs=("directory",),
    title="Python sources in the package are told.",
    message="the package brings Python source that runs when it is imported, first {name}",
    remedy="`fdd sources` writes the sources out for reading.",
)
def package_sources(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: loading an object of the package runs this code.

    References: format.md 3.5.
    """
    for name, span in _package(document).sources:
        yield at(span, record=name, name=name)


@rule(
    "PT-MAR-001",
    "manifest-unusable",
    axis="valid",
    level="error",
    clause="package.model-archive",
    kinds=MODEL_ARCHIVE,
    needs=("directory",),
    title="The manifest is JSON that names the model.",
    message="MAR-INF/MANIFEST.json cannot be used: {why}",
    remedy="Get the file again from its source: TorchServe cannot serve it.",
)
def manifest_unusable(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: TorchServe finds model, handler and versions through the manifest.

    References: format.md 3.2, row 12.
    """
    facts = _archive(document)
    index = next((number for number, record in enumerate(document.records) if record.name == "MAR-INF/MANIFEST.json"), None)
    if index is not None and facts.fault is not None:
        yield at(document.records[index].span, record=document.records[index].name, why=facts.fault)


@rule(
    "PT-MAR-002",
    "manifest-names-missing-file",
    axis="valid",
    level="error",
    clause="package.model-archive",
    kinds=MODEL_ARCHIVE,
    needs=("inventory",),
    per="place",
    title="Every file that the manifest names is in the archive.",
    message="the manifest names {name} as {key}, and no such record is there",
    remedy="Get the file again from its source: TorchServe cannot serve it.",
)
def manifest_names_missing_file(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the model or its code is not in the archive.

    References: format.md 3.2, row 12.
    """
    for key, name in _archive(document).missing:
        yield at(record="MAR-INF/MANIFEST.json", key=key, name=name)


@rule(
    "PT-MAR-003",
    "handler-code",
    axis="safety",
    level="warning",
    clause="package.model-archive",
    kinds=MODEL_ARCHIVE,
    needs=("directory",),
    title="Python code in the archive is told.",
    message="the archive brings Python code that serving runs, first {name}",
    remedy="Read the code before the model is served.",
)
def handler_code(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: TorchServe imports the handler and model files.

    References: format.md 3.2, row 12.
    """
    for name, span in _archive(document).sources:
        yield at(span, record=name, name=name)


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
    title="archive_format, archive_version and a model are there.",
    message="there is no {name} in the archive",
    remedy="Get the file again from its source: torch.export.load refuses it.",
)
def archive_format_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the reader looks for these records first.

    References: format.md 3.5; history.md, table 2.
    """
    if not document.root:
        expected = ("serialized_exported_program.json", "version")
    else:
        expected = ("archive_format", "archive_version")
    for name in expected:
        if document.find(name) is None:
            yield at(name=name)
    if document.root and not any(record.role in ("program", "native") for record in document.records):
        yield at(name="models/*.json")


@rule(
    "PT-PT2-002",
    "weights-config-wrong",
    axis="valid",
    level="error",
    clause="program.weights",
    kinds=PROGRAM,
    needs=("inventory",),
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
        if tensor.shape is None or tensor.stride is None or len(tensor.shape) != len(tensor.stride):
            yield at(storage.span if storage else None, tensor=tensor.name, what="sizes and strides do not fit each other")
        elif min((*tensor.shape, *tensor.stride, tensor.storage_offset or 0)) < 0:
            yield at(storage.span if storage else None, tensor=tensor.name, what="a negative size, stride or offset")
        elif storage is not None and storage.stored_size is not None and need is not None and need > storage.stored_size:
            what = f"the tensor needs {need} bytes, its record holds {storage.stored_size}"
            yield at(storage.span, record=storage.record, tensor=tensor.name, what=what)
