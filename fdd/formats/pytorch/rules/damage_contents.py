# SPDX-License-Identifier: Apache-2.0
"""Findings that tell why contents changed: text-mode transfers, mangling as text, flipped bits, and which tensors suffer."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.damage_facts import DamageFacts, TextConversion, damage_of
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, rule
from fdd.formats.pytorch.rules.damage_words import counted, quoted, tensors_hit, verdict_words

FILES = ARCHIVES | {"torch-legacy", "torch-tar"}
_NOTHING = DamageFacts()


def _damage(document: TorchDocument) -> DamageFacts:
    return damage_of(document) or _NOTHING


def _line_ends(found: TextConversion) -> str:
    """What is to be seen of the line ends."""
    feeds, returns = found.line_feeds, found.returns
    if found.code == "crlf-added":
        return f"{'every' if found.pairs == feeds else 'nearly every'} LF byte is preceded by CR ({found.pairs} of {feeds})"
    return {
        "cr-removed": f"no CR byte is left beside {feeds} LF bytes, and bytes are missing",
        "crlf-shortened": f"no CR LF pair is left among {feeds} LF and {returns} CR bytes, and bytes are missing",
        "lf-to-cr": f"no LF byte is left beside {returns} CR bytes",
        "cr-to-lf": f"no CR byte is left beside {feeds} LF bytes",
    }[found.code]


@rule(
    "PT-DMG-010",
    "line-ends-converted",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=FILES,
    title="The file did not pass a text-mode transfer.",
    message="{what}: the file passed through a text-mode transfer, which changes line ends{trial}",
    remedy="Transfer the file again in binary mode (FTP `binary`, Git attribute `-text`, no text conversion on upload).",
)
def line_ends_converted(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: FTP in ASCII mode and line-end settings of version control still change binary files; what it does to
    them is regular, and where CR was added it can be undone.

    References: RFC 959, 3.1.1.1.
    """
    found = _damage(document).conversion
    if found is None:
        return
    trial = verdict_words(found.restored, "taking each CR in front of an LF out")
    if found.code == "lf-to-cr":
        trial = verdict_words(found.restored, "turning each CR into LF")
        if found.restored not in ("valid", "structure-valid"):
            trial = "; turning each CR back does not restore it, because it had CR bytes of its own"
    span = Span(found.first, 2) if found.code == "crlf-added" else Span(0, document.size)
    yield at(span, what=_line_ends(found), trial=trial)


@rule(
    "PT-DMG-011",
    "mangled-as-text",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=FILES,
    title="The file was not read and written as text.",
    message="{what}{trial}",
    remedy="Get the file again from its source, in binary mode; a form or program that treats uploads as text damages them all.",
)
def mangled_as_text(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: programs that take uploads for text replace or expand every byte above 127, which no torch file
    survives.

    References: Unicode Standard, 3.9 (U+FFFD); RFC 3629.
    """
    for found in _damage(document).mangled:
        text = found.text.rstrip(".")
        yield at(Span(0, document.size), what=text, trial=verdict_words(found.restored, "decoding once"))


@rule(
    "PT-DMG-012",
    "record-bit-flipped",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=ARCHIVES,
    needs=("payload",),
    per="record",
    title="No single flipped bit explains a wrong checksum.",
    message="one flipped bit explains the wrong checksum: bit {bit} of the byte at {offset} ({found:02x}, was {was:02x})"
    "{where}{doubt}",
    remedy="Get the file again from its source and check memory and disk of the machines it passed. If this is the only copy,"
    " keep it and set the byte right in a second one: the checksum then fits.",
)
def record_bit_flipped(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: faulty memory and old media turn single bits. CRC-32 is linear, so checksum and length tell which one
    it was.

    References: APPNOTE 4.4.7; format.md 1.11.
    """
    for row in _damage(document).altered:
        bit = row.flipped
        if bit is None or row.explained:
            continue
        where = f", in element {bit.element} of the storage" if bit.element is not None else ""
        where += f", seen by {quoted(bit.tensors)}" if bit.tensors else ""
        if bit.element is not None and not bit.tensors:
            where += ", which no tensor shows" if not row.tensors else ""
        doubt = (
            f" (by chance some bit does so in {bit.chance:.0%} of other damage to records of this size)"
            if bit.chance >= 0.01
            else ""
        )
        was = bit.found ^ 1 << bit.bit
        yield at(
            Span(bit.offset, 1), record=row.record, tensor=bit.tensors[0] if bit.tensors else None, bit=bit.bit,
            offset=bit.offset, found=bit.found, was=was, where=where, doubt=doubt,
        )  # fmt: skip


@rule(
    "PT-DMG-013",
    "record-altered",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=ARCHIVES,
    needs=("payload",),
    per="record",
    title="Wrong checksums are explained.",
    message="{size} bytes do not have their recorded checksum, and more than one bit differs: {role}{tensors}; {whole}",
    remedy="Get the file again from its source. Nothing in the file tells which of these bytes are wrong.",
)
def record_altered(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: says what the damage costs: which tensors cannot be trusted, and that the others can.

    References: APPNOTE 4.4.7; format.md 1.11.
    """
    damage = _damage(document)
    for row in damage.altered:
        if row.flipped is None and not row.explained:
            role = {"storage": "values of tensors", "object": "the index of the object itself"}.get(
                row.role, f"a record of role {row.role}"
            )
            whole = counted(damage.whole_records, "other record has its own", "other records have theirs")
            yield at(row.span, record=row.record, size=row.size, role=role, tensors=tensors_hit(row.tensors), whole=whole)
