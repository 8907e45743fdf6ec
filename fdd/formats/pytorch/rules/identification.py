# SPDX-License-Identifier: Apache-2.0
"""Rules on what the file is: one kind only, finished, and under a fitting name (PT-ID)."""

from __future__ import annotations

import os
from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.identify import EXTENSIONS, NAMES
from fdd.formats.pytorch.rules.catalogue import ALL, ARCHIVES, rule


@rule(
    "PT-ID-003",
    "other-reading",
    axis="well-formed",
    level="error",
    clause="identification.one-kind",
    kinds=ALL,
    per="place",
    title="No other reader takes the file for something else.",
    message="another reader takes these {length} bytes for {what}",
    remedy="Find out how the file was made; do not load it before. Different programs open different contents.",
)
def other_reading(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a file that is two things at once shows one model to the scanner and another to the loader.

    References: format.md 3.1; contract, section 6.
    """
    for what, span in document.foreign_reading:
        yield at(span, what=what, length=span.length)


@rule(
    "PT-ID-004",
    "extension-unusual",
    axis="advice",
    level="info",
    clause="identification.names",
    kinds=ALL,
    title="The extension is one that is used for the kind.",
    message="the name ends in {extension}; usual for this kind ({kind}) are {usual}",
    remedy="Nothing has to be done: the kind is told by the bytes. Other programs may go by the name.",
)
def extension_unusual(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: people and programs choose tools by the name.

    References: format.md 3.2.
    """
    if document.identification.extension_matches is False:
        extension = os.path.splitext(document.name or "")[1]
        yield at(None, extension=extension, kind=NAMES[document.kind], usual=EXTENSIONS[document.kind].replace(" ", ", "))


@rule(
    "PT-ID-005",
    "save-incomplete",
    axis="valid",
    level="error",
    clause="identification.complete",
    kinds=ARCHIVES,
    title="The save was not interrupted.",
    message="the archive is whole but holds no object, only {present}: saving failed or was stopped before that was written",
    remedy="There is no model in this file. Ask for the file of a save that ended well; look for an error in the log of the run.",
)
def save_incomplete(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a torch.save that fails leaves a good archive behind that holds only its small records.

    References: format.md 1.2.
    """
    if document.kind == "incomplete-save":
        present = ", ".join(record.name for record in document.records)
        yield at(Span(0, document.size), present=present or "no records")


@rule(
    "PT-ID-007",
    "preview-release",
    axis="valid",
    level="error",
    clause="identification.one-kind",
    kinds=ALL,
    title="A released torch wrote the file.",
    message="the file begins with PYTORCH1: a preview release wrote it, and no released torch reads it",
    remedy="Read it with the preview release that wrote it, if that can still be had, and save it again.",
)
def preview_release(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: this form was given up before the first release; nothing describes or reads it.

    References: format.md 3.2.
    """
    if document.kind == "torch-preview":
        yield at(Span(0, 8))


@rule(
    "PT-ID-008",
    "part-of-distributed-checkpoint",
    axis="advice",
    level="info",
    clause="identification.complete",
    kinds=ARCHIVES,
    title="The file is complete by itself.",
    message="one data file of a distributed checkpoint ({archives} archives): only with .metadata and its siblings is it whole",
    remedy="Keep the whole folder together: the file `.metadata` tells which tensor lies where.",
)
def part_of_distributed_checkpoint(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a data file alone does not say which tensors its archives hold.

    References: format.md 3.2.
    """
    if document.kind == "distcp":
        yield at(Span(0, document.size), archives=max(1, len(document.nested)))
