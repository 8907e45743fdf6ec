# SPDX-License-Identifier: Apache-2.0
"""Notes on layouts of their time, and which readers still open them (PT-REC-025, PT-REC-026)."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.releases import POINTER_DIGITS
from fdd.formats.pytorch.rules.catalogue import EAGER, rule


@rule(
    "PT-REC-025",
    "storages-in-tensors-folder",
    axis="advice",
    level="info",
    clause="records.storages",
    kinds=EAGER,
    needs=("directory",),
    title="Storages lie in the folder data/, where every current torch looks.",
    message="the storages lie in tensors/, as torch 1.4 wrote them on request: only torch 1.4 itself reads this file",
    remedy="Keep the file, and make a copy in the current form: its records can be read without torch.",
)
def storages_in_tensors_folder(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the file follows the format of its time and is whole, but torch 2.13 answers that data/ is missing.

    References: history.md, table 1 and surprise 5; contract, section 6, layouts of their time.
    """
    for record in document.records:
        if record.role == "storage" and document.local_name(record.name).startswith("tensors/"):
            yield at(record.span, record=record.name)


@rule(
    "PT-REC-026",
    "storages-named-by-addresses",
    axis="advice",
    level="info",
    clause="records.storages",
    kinds=EAGER,
    needs=("directory",),
    title="Storages are numbered, as torch has done since 1.9.",
    message="storages are named by memory addresses, as torch 1.5 to 1.8 did; every torch since 1.6 reads them",
    remedy="Nothing is to be done: two saves of one object differ in these names, and in nothing else.",
)
def storages_named_by_addresses(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the names tell the age of the file, and why two copies of one model are not equal byte by byte.

    References: history.md, table 1; contract, section 6, layouts of their time.
    """
    for record in document.records:
        folder, _, number = document.local_name(record.name).rpartition("/")
        if record.role == "storage" and folder == "data" and number.isdigit() and len(number) >= POINTER_DIGITS:
            yield at(record.span, record=record.name)
