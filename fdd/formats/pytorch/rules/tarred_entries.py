# SPDX-License-Identifier: Apache-2.0
"""Rules on what the members of a torch tar hold: entries, keys, views (PT-TAR)."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.persistent_ids import SHAPE_CODES
from fdd.formats.pytorch.rules.catalogue import TAR, rule
from fdd.formats.pytorch.rules.tarred import AGAIN, facts_of, own_faults


@rule(
    "PT-TAR-004",
    "tar-entries-wrong",
    axis="valid",
    level="error",
    clause="tar.entries",
    kinds=TAR,
    needs=("tar",),
    per="place",
    title="The members hold exactly the entries they announce.",
    message="{detail}",
    remedy=f"{AGAIN} torch stops, or does not see what is left over.",
)
def tar_entries_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: entries follow each other without a gap; one too many or too few moves all that come behind.

    References: format.md 4.2.
    """
    yield from own_faults(document, "count", "fewer", "rest", "entry", "views")


@rule(
    "PT-TAR-009",
    "tar-entry-cut",
    axis="well-formed",
    level="error",
    clause="tar.entries",
    kinds=TAR,
    needs=("tar",),
    per="place",
    title="Every entry lies inside its member.",
    message="{detail}",
    remedy=f"{AGAIN} The member is cut off, or a number in it is damaged.",
)
def tar_entry_cut(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers differ in what they do with it, from an error to memory taken without bound.

    References: format.md 4.2; contract, section 6.
    """
    yield from own_faults(document, "cut")


@rule(
    "PT-TAR-005",
    "tar-key-unknown",
    axis="valid",
    level="error",
    clause="tar.keys",
    kinds=TAR,
    needs=("objects", "keys"),
    per="place",
    title="Every key that is referred to is there.",
    message="{detail}",
    remedy=f"{AGAIN} torch stops at the first such key.",
)
def tar_key_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the keys are the only link from the object to its numbers.

    References: format.md 4.2.
    """
    for span, key in facts_of(document)[1].unresolved:
        yield at(span, record="pickle", detail=f"the object refers to {key}, which is no key of a tensor or storage")
    yield from own_faults(document, "storage-unknown")
    for mismatch in document.mismatches:
        if mismatch.code in SHAPE_CODES:
            yield at(mismatch.span, record=mismatch.record, detail=f"an id of a class has the wrong items: {mismatch.detail}")


@rule(
    "PT-TAR-016",
    "tar-key-twice",
    axis="valid",
    level="error",
    clause="tar.keys",
    kinds=TAR,
    needs=("tar",),
    per="place",
    title="Every key is given once.",
    message="{detail}",
    remedy=f"{AGAIN} torch takes the last one without a word.",
)
def tar_key_twice(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: which numbers a tensor gets depends on the reader.

    References: format.md 4.2.
    """
    yield from own_faults(document, "key-twice")


@rule(
    "PT-TAR-007",
    "tar-view-outside",
    axis="valid",
    level="error",
    clause="tar.entries",
    kinds=TAR,
    needs=("tar",),
    per="place",
    title="Views of storages lie inside them, and tensors inside the views.",
    message="{detail}",
    remedy="Do not load the file with software that does not check this: torch hands out memory that does not belong to it.",
)
def tar_view_outside(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch does not check it and returns whatever lies in memory there.

    References: format.md 4.2.
    """
    yield from own_faults(document, "view-outside", "outside-view")
