# SPDX-License-Identifier: Apache-2.0
"""Rules on the top folder, and on the records that every archive has."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import VERSION_NAMES
from fdd.formats.pytorch.opening import python_made
from fdd.formats.pytorch.rules.catalogue import EAGER, NATIVE, rule
from fdd.formats.pytorch.rules.records.places import directory_span, full_name, name_span

BYTE_ORDER_KINDS = frozenset({"torch-zip", "torchscript", "torchscript-mobile", "torch-package"})
"""Kinds whose writers have stated the byte order since 2.1, and stored that of their host before."""
COMMON_FOLDER = "archive"
"""The folder of files saved to a buffer, and of everything torch.save wrote from 1.6 to 1.12."""


@rule(
    "PT-REC-001",
    "outside-top-folder",
    axis="valid",
    level="error",
    clause="records.folder",
    kinds=NATIVE,
    needs=("directory",),
    title="All records are in one top folder.",
    message="{name} is not in the top folder {folder}",
    remedy="Find out what added the record; torch refuses an archive with records outside its one folder.",
)
def outside_top_folder(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch takes the folder of the first record for the archive and refuses every record that lies
    elsewhere.

    References: format.md 1.3, 1.16; history.md table 2 (exported programs of 2.1 to 2.7 have no folder).
    """
    if python_made(document):
        return
    folder = document.root or "that every archive has"
    for index, record in enumerate(document.records):
        if not document.root or not document.inside_root(record.name):
            yield at(name_span(document, index), record=record.name, name=record.name, folder=folder)


@rule(
    "PT-REC-002",
    "folder-in-folder",
    axis="valid",
    level="error",
    clause="records.folder",
    kinds=NATIVE,
    needs=("directory",),
    title="One folder stands in front of the fixed names, not several.",
    message="the records lie in {folder}, a folder inside another one",
    remedy="Take the inner folder as the top folder of a new archive; torch does not look deeper than one level.",
)
def folder_in_folder(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch looks for `data.pkl` directly below the first folder. A folder zipped by hand is one level
    too deep.

    References: format.md 1.3, 1.16.
    """
    if "/" in document.root:
        index = next(index for index, record in enumerate(document.records) if document.inside_root(record.name))
        yield at(name_span(document, index), record=document.records[index].name, folder=document.root)


@rule(
    "PT-REC-003",
    "data-pkl-missing",
    axis="valid",
    level="error",
    clause="records.required",
    kinds=EAGER,
    needs=("inventory",),
    title="The record data.pkl is there, under exactly this name.",
    message="there is no {name}{instead}",
    remedy="Get the file again from its source. Without this record nothing tells what the stored numbers mean.",
)
def data_pkl_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: this record holds the object; storages alone are numbers without names and shapes. A name that
    differs in case is found by torch, and by no reader that compares names as they are.

    References: format.md 1.2, 1.16; DOC.
    """
    if document.find("data.pkl") is not None:
        return
    wanted = full_name(document, "data.pkl")
    for index, record in enumerate(document.records):
        if record.name.lower() == wanted.lower():
            yield at(name_span(document, index), record=record.name, name=wanted, instead=f", only {record.name}")
            return
    yield at(directory_span(document), name=wanted, instead="")


@rule(
    "PT-REC-004",
    "version-missing",
    axis="valid",
    level="error",
    clause="records.version",
    kinds=NATIVE,
    needs=("inventory",),
    title="A version record is there.",
    message="there is neither {first} nor {second}",
    remedy="Get the file again from its source; torch refuses an archive without a version.",
)
def version_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the version of the archive tells by which rules it was written. torch does not open a file
    without it.

    References: format.md 1.15, 1.16.
    """
    if all(document.find(name) is None for name in VERSION_NAMES):
        first, second = (full_name(document, name) for name in VERSION_NAMES)
        yield at(directory_span(document), first=first, second=second)


@rule(
    "PT-REC-008",
    "version-twice",
    axis="valid",
    level="warning",
    clause="records.version",
    kinds=NATIVE,
    needs=("directory",),
    title="There is one version record, not two.",
    message="there is a record version and a record .data/version",
    remedy="Find out which tool added one of them: torch reads .data/version, other readers may take the other one.",
)
def version_twice(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a writer makes one of the two, by the number it writes. With both, readers can disagree.

    References: format.md 1.15.
    """
    places = [document.find(name) for name in VERSION_NAMES]
    if None not in places and places[1] is not None:
        yield at(name_span(document, places[1]), record=document.records[places[1]].name)


@rule(
    "PT-REC-010",
    "byteorder-missing",
    axis="valid",
    level="warning",
    clause="records.byteorder",
    kinds=BYTE_ORDER_KINDS,
    needs=("inventory",),
    title="A record states the byte order of the storages.",
    message="no record byteorder: the byte order of the numbers is unknown",
    remedy="Keep a note of the machine the file was written on: x86 and ARM are little-endian, s390x is big-endian.",
)
def byteorder_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: writers before 2.1 stored the numbers as their host had them and said nothing. torch reads such
    files as little-endian and gives wrong numbers for those of big-endian hosts, without a message.

    References: format.md 1.14; history.md, surprise 1.
    """
    if document.find("byteorder") is None:
        yield at(directory_span(document))


@rule(
    "PT-REC-021",
    "folder-not-file-name",
    axis="advice",
    level="info",
    clause="records.folder",
    kinds=NATIVE,
    needs=("directory",),
    title="The top folder is the file's stem, or `archive`.",
    message="the top folder is {folder}, the file's name would give {stem}",
    remedy="Nothing is wrong: the file was renamed after it was saved. The folder may be its first name.",
)
def folder_not_file_name(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch names the folder after the file; a difference tells the name under which the file was saved.

    References: format.md 1.3.
    """
    name, root = document.name, document.root
    if not name or not root or root == COMMON_FOLDER:
        return
    stem = name.rpartition(".")[0] or name
    index = next((index for index, record in enumerate(document.records) if document.inside_root(record.name)), None)
    if root != stem and index is not None:
        yield at(name_span(document, index), folder=root, stem=stem)
