# SPDX-License-Identifier: Apache-2.0
"""Rules on torch.package archives and TorchServe archives (PT-PKG, PT-MAR).

PT-PKG-002 of format.md 6.8 (pickles valid, storages there) is asked by the rules on pickles and by PT-REC-016.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import MAR_MANIFEST
from fdd.formats.pytorch.rules.catalogue import rule

if TYPE_CHECKING:
    from fdd.formats.pytorch.package import ModelArchiveFacts, PackageFacts

PACKAGE = frozenset({"torch-package"})
MODEL_ARCHIVE = frozenset({"mar"})


def _package(document: TorchDocument) -> PackageFacts:
    return cast("PackageFacts", document.facts["package"])


def _archive(document: TorchDocument) -> ModelArchiveFacts:
    return cast("ModelArchiveFacts", document.facts["model-archive"])


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
    "PT-PKG-005",
    "package-module-unprovided",
    axis="valid",
    level="error",
    clause="package.modules",
    kinds=PACKAGE,
    needs=("pickle", "inventory"),
    per="place",
    title="Every module that a pickle names is in the package or on its list of outside modules.",
    message="the module {module} is neither in the package nor in .data/extern_modules",
    remedy="Get the file again from its source: the importer ends with ModuleNotFoundError.",
)
def package_module_unprovided(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the importer takes modules from nowhere else, whatever is installed beside it.

    References: format.md 3.5; torch/package/package_importer.py.
    """
    for module, span, record in _package(document).unprovided:
        yield at(span, record=record, module=module)


@rule(
    "PT-PKG-006",
    "package-id-malformed",
    axis="valid",
    level="error",
    clause="package.modules",
    kinds=PACKAGE,
    needs=("objects", "inventory"),
    per="place",
    title="Ids of reduced objects name a function and its arguments, and scripts that are there.",
    message="the id of a reduced object cannot be used: {what}",
    remedy="Get the file again from its source: the object cannot be loaded.",
)
def package_id_malformed(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: scripts and graph modules stand in a package as a call of their function; without it they are lost.

    References: format.md 3.5; torch/package/package_importer.py.
    """
    for what, span, record in _package(document).bad_ids:
        yield at(span, record=record, what=what)


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
    index = next((number for number, record in enumerate(document.records) if record.name == MAR_MANIFEST), None)
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
    span = next((record.span for record in document.records if record.name == MAR_MANIFEST), None)
    for key, name in _archive(document).missing:
        yield at(span, record=MAR_MANIFEST, key=key, name=name)


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
