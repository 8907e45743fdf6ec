# SPDX-License-Identifier: Apache-2.0
"""Rules on torch files inside a file (PT-NST)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.rules.catalogue import EAGER, SCRIPT, rule

if TYPE_CHECKING:
    from fdd.formats.pytorch.export_facts import ProgramFacts

HOLDERS = frozenset({"pt2", "mar", "distcp"})
"""Kinds that torch files are a part of."""
CARRIERS = HOLDERS | SCRIPT | EAGER | {"torch-package"}
"""Kinds that torch files may travel in."""


@rule(
    "PT-NST-001",
    "nested-not-well-formed",
    axis="well-formed",
    level="error",
    clause="nested.files",
    kinds=frozenset({"distcp"}),
    needs=("nested",),
    per="place",
    title="Every archive of a shard is well-formed.",
    message="{label} is not well-formed ({rules})",
    remedy="Get the file again from its source.",
)
def nested_not_well_formed(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a shard is made of complete archives, one behind the other; damage in one is damage of the file.

    References: format.md 3.2, row 15.
    """
    for nested in document.nested:
        if nested.verdict == "not-well-formed":
            yield at(nested.span, label=nested.label, rules=", ".join(nested.failed))


@rule(
    "PT-NST-002",
    "nested-not-valid",
    axis="valid",
    level="error",
    clause="nested.files",
    kinds=HOLDERS,
    needs=("nested",),
    per="place",
    title="Every torch file inside is valid.",
    message="{label} ({kind}) is {verdict} ({rules})",
    remedy="Get the file again from its source; `fdd validate` on the record taken out tells more.",
)
def nested_not_valid(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the file inside holds weights or inputs that the whole needs.

    References: format.md 3.5.
    """
    facts = cast("ProgramFacts | None", document.facts.get("program"))
    opaque = facts.opaque if facts is not None else frozenset()
    for nested in document.nested:
        broken = nested.verdict == "not-well-formed" and document.kind != "distcp"
        # Model archives hold models of any kind, and some objects of programs are bare pickles.
        foreign = nested.verdict == "not-this-format" and document.kind != "mar" and nested.label not in opaque
        if nested.required and (broken or foreign or nested.verdict == "well-formed-not-valid"):
            yield at(
                nested.span,
                record=nested.label if document.kind != "distcp" else None,
                label=nested.label,
                kind=nested.kind,
                verdict=nested.verdict,
                rules=", ".join(nested.failed) or "no format judges it",
            )


@rule(
    "PT-SEC-030",
    "nested-file-dangerous",
    axis="safety",
    level="error",
    clause="nested.files",
    kinds=CARRIERS,
    needs=("nested",),
    per="place",
    title="No torch file inside is dangerous.",
    message="{label} is dangerous to load",
    remedy="Do not load the file. `fdd validate` on the record taken out tells more.",
)
def nested_file_dangerous(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: loading the whole loads what is inside.

    References: contract, section 1, safety.
    """
    for nested in document.nested:
        if nested.safety == "dangerous":
            yield at(nested.span, record=nested.label if document.zip is not None else None, label=nested.label)


@rule(
    "PT-SEC-031",
    "nested-file-unlisted",
    axis="safety",
    level="warning",
    clause="nested.files",
    kinds=CARRIERS,
    needs=("nested",),
    per="place",
    title="Torch files inside name only listed globals.",
    message="{label} names globals outside the allow-list",
    remedy="See what the file inside needs before it is loaded.",
)
def nested_file_unlisted(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: loading the whole loads what is inside.

    References: contract, section 1, safety.
    """
    for nested in document.nested:
        if nested.safety == "unlisted":
            yield at(nested.span, record=nested.label if document.zip is not None else None, label=nested.label)
