# SPDX-License-Identifier: Apache-2.0
"""Rules on the values a pickle makes: what takes what, keys, persistent ids, names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import UNJUDGED_ROLES, TorchDocument
from fdd.formats.pytorch.persistent_ids import SHAPE_CODES
from fdd.formats.pytorch.pickle_values import call_target
from fdd.formats.pytorch.rebuilds import REBUILD_FUNCTIONS
from fdd.formats.pytorch.rules.catalogue import PICKLED, rule
from fdd.formats.pytorch.rules.pickle.facts import fault_place, faults, named
from fdd.pickles import faults as codes
from fdd.pickles.nodes import Call

BY_ID = PICKLED - {"torch-tar"}
"""Kinds whose persistent ids are tuples that describe a storage."""
IDENTIFIERS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
NOTHING: frozenset[str] = frozenset()
TAKEN: dict[tuple[str, str], frozenset[str]] = {
    ("collections", "OrderedDict"): frozenset({"pairs", "state"}),
    ("collections", "Counter"): frozenset({"pairs", "state"}),
    ("collections", "defaultdict"): frozenset({"pairs", "state"}),
    ("builtins", "dict"): frozenset({"pairs"}),
    ("builtins", "list"): frozenset({"items"}),
    ("builtins", "set"): frozenset({"items"}),
    ("builtins", "bytearray"): frozenset({"items"}),
    ("builtins", "complex"): NOTHING,
    ("_codecs", "encode"): NOTHING,
    ("torch", "Size"): NOTHING,
    ("torch", "device"): NOTHING,
    ("torch.serialization", "_get_layout"): NOTHING,
    **dict.fromkeys(REBUILD_FUNCTIONS, NOTHING),
}
"""What the results of known calls take, by the attributes of a Call; others may take anything."""
WORDS = {"items": "items (APPEND, APPENDS, ADDITEMS)", "pairs": "keys and values (SETITEM, SETITEMS)", "state": "a state (BUILD)"}
STORAGE_MODULES = ("torch", "torch.cuda", "torch.storage")


@rule(
    "PT-PKL-014",
    "global-name-odd",
    axis="valid",
    level="warning",
    clause="pickle.names",
    kinds=PICKLED,
    needs=("pickle",),
    per="place",
    title="Names to import are dotted identifiers of ASCII letters.",
    message="{path} is no name that Python code is found under",
    remedy="Look at the name: spaces and control characters lead tools astray that split the two parts by them.",
)
def global_name_odd(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: such a name can show one thing in a log and mean another. Line ends converted by a transfer leave a
    carriage return at the end of each name.

    References: format.md 6.4; pickle-analysis.md, section 2.
    """
    for use in document.globals:
        odd = not IDENTIFIERS.fullmatch(use.module) or not IDENTIFIERS.fullmatch(use.name)
        if odd and use.role not in UNJUDGED_ROLES:
            yield at(use.span, record=use.record, path=use.path)


@rule(
    "PT-PKL-015",
    "value-cannot-take",
    axis="valid",
    level="error",
    clause="pickle.objects",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="Items, keys and states are added to values that can take them.",
    message="{what}",
    remedy="Do not load the file with a torch before 2.10: adding keys to a tensor overwrites memory there.",
)
def value_cannot_take(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: Python raises an error, or changes the elements of a tensor while loading. torch before 2.10 wrote
    outside a tensor's memory in its restricted loader (CVE-2026-24747).

    References: contract, section 6; pickle-analysis.md, section 2.
    """
    for pickle, fault in faults(document, codes.CANNOT_TAKE):
        yield at(fault_place(pickle, fault), record=pickle.record, what=named(fault))
    for pickle in document.judged_pickles():
        for event in pickle.facts.events:
            if event.what == "call" and isinstance(event.value, Call):
                for what in _not_taken(event.value):
                    target = call_target(event.value) or ("", "")
                    words = f"the result of {'.'.join(target)} is given {WORDS[what]}, which it cannot take"
                    yield at(pickle.place(event.offset), record=pickle.record, what=words)


def _not_taken(call: Call) -> list[str]:
    given = [what for what in WORDS if getattr(call, what) is not None]
    if not given:
        return []
    target = call_target(call)
    taken = TAKEN.get(target) if target is not None else None
    if taken is None and target is not None and target[0] in STORAGE_MODULES and target[1].endswith("Storage"):
        taken = NOTHING
    return [what for what in given if what not in taken] if taken is not None else []


@rule(
    "PT-PKL-016",
    "key-unhashable",
    axis="valid",
    level="error",
    clause="pickle.objects",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="Keys of dicts and items of sets have a hash.",
    message="{what} is used as a key, or as an item of a set",
    remedy="Get the file again from its source: no reader can make this dict.",
)
def key_unhashable(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: Python refuses lists, dicts and sets as keys, and with them the whole file.

    References: Python documentation, hashable; format.md 6.4.
    """
    for pickle in document.judged_pickles():
        for offset, what in pickle.survey.unhashable:
            yield at(pickle.place(offset), record=pickle.record, what=what)


@rule(
    "PT-PKL-029",
    "key-repeated",
    axis="valid",
    level="warning",
    clause="pickle.objects",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="A dict gets each key once.",
    message="the key {key} is given twice; the later value replaces the earlier one",
    remedy="Compare both values: a loader shows the last one only.",
)
def key_repeated(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a tensor of the file is out of sight for every reader, although its bytes are there.

    References: format.md 6.4.
    """
    for pickle in document.judged_pickles():
        for offset, key in pickle.survey.repeated:
            yield at(pickle.place(offset), record=pickle.record, key=key)


@rule(
    "PT-PKL-019",
    "persistent-id-wrong",
    axis="valid",
    level="error",
    clause="pickle.persistent-ids",
    kinds=BY_ID,
    needs=("pickle",),
    per="record",
    title="Persistent ids describe a storage, in the items the kind has.",
    message="a persistent id is not of the form a storage has: {detail}",
    remedy="Get the file again from its source: torch cannot tell which storage is meant.",
)
def persistent_id_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the id is the only link from a tensor to its bytes; torch.load stops at any other form.

    References: format.md 2.2.
    """
    own = SHAPE_CODES if document.kind == "torch-legacy" else frozenset[str]()
    for mismatch in document.mismatches:
        if mismatch.function == "persistent id" and mismatch.code != "text-id" and mismatch.code not in own:
            yield at(mismatch.span, record=mismatch.record, tensor=mismatch.tensor, detail=mismatch.detail)


@rule(
    "PT-PKL-028",
    "persistent-id-text",
    axis="valid",
    level="error",
    clause="pickle.persistent-ids",
    kinds=BY_ID,
    needs=("pickle",),
    per="record",
    title="Persistent ids are tuples, not texts.",
    message="a persistent id is written as text (PERSID): torch cannot restore the storage",
    remedy="Save the object again with the default protocol where it still exists; the storages of this file are intact.",
)
def persistent_id_text(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: protocol 0 writes the id as the printed form of a tuple. No torch reads that back, although torch.save
    writes it without a word.

    References: format.md 2.1.
    """
    for mismatch in document.mismatches:
        if mismatch.code == "text-id":
            yield at(mismatch.span, record=mismatch.record)
