# SPDX-License-Identifier: Apache-2.0
"""Rules on the memo, and on pickles that ask for far more memory or time than their bytes."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import PickleRecord, TorchDocument
from fdd.formats.pytorch.rules.catalogue import CODE, PICKLED, rule
from fdd.formats.pytorch.rules.pickle.facts import fault_place, faults, named
from fdd.pickles import faults as codes

MEMO_SLACK = 1_024
EXPANDED = 1_000_000
EXPANDED_FACTOR = 1_000
NESTING = 10_000
DO_NOT_LOAD = "Do not load the file. Take its storages out with fdd; the object itself was made to exhaust its reader."


@rule(
    "PT-PKL-010",
    "memo-unwritten",
    axis="well-formed",
    level="error",
    clause="pickle.memo",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="A memo entry is written before it is read.",
    message="{what}",
    remedy="Get the file again from its source; what stands in front of this place can still be read.",
)
def memo_unwritten(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: every reader stops here.

    References: Python source, pickletools; format.md 1.16.
    """
    for pickle, fault in faults(document, codes.MEMO_UNWRITTEN):
        yield at(fault_place(pickle, fault), record=pickle.record, what=named(fault))


@rule(
    "PT-PKL-011",
    "memo-rewritten",
    axis="valid",
    level="warning",
    clause="pickle.memo",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="A memo entry keeps its value.",
    message="a memo entry is written again with another value",
    remedy="Look at the globals of the file: this is a way to hide a name from tools that do not follow the memo.",
)
def memo_rewritten(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: no pickler does so. Tools that guess names from the opcodes in front are led astray.

    References: pickle-analysis.md, section 2.
    """
    for pickle in document.judged_pickles():
        for event in pickle.facts.events:
            if event.what == "memo-overwrite":
                yield at(pickle.place(event.offset), record=pickle.record)


@rule(
    "PT-PKL-021",
    "memo-index-bomb",
    axis="safety",
    level="error",
    clause="safety.resources",
    kinds=CODE,
    needs=("safety",),
    per="place",
    title="Memo indexes go up with the number of writes.",
    message="the memo index {index} is far above the number of writes ({writes})",
    remedy=DO_NOT_LOAD,
)
def memo_index_bomb(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: Python's unpickler makes room for twice the index, so that a few bytes take gigabytes.

    References: contract, section 1; pickle-analysis.md, section 4.
    """
    for pickle in document.pickles:
        facts = pickle.facts
        if facts.memo_highest > facts.memo_writes + MEMO_SLACK:
            yield at(_index_place(pickle), record=pickle.record, index=facts.memo_highest, writes=facts.memo_writes)


def _index_place(pickle: PickleRecord) -> Span:
    """LONG_BINPUT has four bytes; the text of PUT ends with a newline."""
    length = 5 if "LONG_BINPUT" in pickle.facts.opcodes else 2 + len(str(pickle.facts.memo_highest))
    return pickle.place(pickle.facts.memo_highest_offset, length)


@rule(
    "PT-PKL-018",
    "sharing-bomb",
    axis="safety",
    level="error",
    clause="safety.resources",
    kinds=CODE,
    needs=("safety",),
    per="place",
    title="Sharing does not multiply the object.",
    message="{present} values stand for {expanded} or more once every shared one is counted at every place",
    remedy=DO_NOT_LOAD,
)
def sharing_bomb(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: whoever hashes, prints, compares or copies such an object never ends; used as a dict key, loading it
    does not end either.

    References: contract, section 1; pickle-analysis.md, section 2.
    """
    for pickle in document.pickles:
        survey = pickle.survey
        if survey.expanded > EXPANDED and survey.expanded >= EXPANDED_FACTOR * survey.present:
            place = pickle.place(pickle.facts.start, pickle.facts.end - pickle.facts.start)
            yield at(place, record=pickle.record, present=survey.present, expanded=survey.expanded)


@rule(
    "PT-PKL-017",
    "nesting-bomb",
    axis="safety",
    level="error",
    clause="safety.resources",
    kinds=CODE,
    needs=("safety",),
    per="place",
    title="Containers are not nested beyond what readers bear.",
    message="values are nested {depth} deep",
    remedy=DO_NOT_LOAD,
)
def nesting_bomb(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers that descend into the object, and Python when it frees or compares it, run out of stack.

    References: contract, section 1.
    """
    for pickle in document.pickles:
        if pickle.facts.deepest > NESTING:
            yield at(pickle.place(pickle.facts.deepest_offset), record=pickle.record, depth=pickle.facts.deepest)
