# SPDX-License-Identifier: Apache-2.0
"""Findings that tell what happened to a file: cut off, zeros, bytes lost or inserted, headers destroyed.

They judge nothing (other rules do) and explain: each is one kind of accident, what is left, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.damage_facts import CutOff, DamageFacts, damage_of
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, rule
from fdd.formats.pytorch.rules.damage_words import (
    complete_records,
    counted,
    listed,
    quoted,
    size_words,
    storages_left,
    tensors_hit,
    unit_words,
)

STREAMS = frozenset({"torch-legacy", "torch-tar"})
FILES = ARCHIVES | STREAMS
_NOTHING = DamageFacts()


def _damage(document: TorchDocument) -> DamageFacts:
    return damage_of(document) or _NOTHING


def _cut(document: TorchDocument, *, zeros: bool, directory: bool) -> CutOff | None:
    """The break of the file, where it is of that sort."""
    cut = _damage(document).cut
    return cut if cut is not None and bool(cut.zeros) is zeros and (zeros or cut.directory is directory) else None


@rule(
    "PT-DMG-001",
    "cut-off-in-records",
    axis="advice",
    level="warning",
    clause="damage.complete",
    kinds=ARCHIVES,
    title="The archive does not break off inside its records.",
    message="the file is cut off: {size} are there, it breaks off {inside}; {complete}{storages}{unit}",
    remedy="Get the file again from its source. If this is the only copy, keep it: 7-Zip unpacks the complete records of such"
    " a file; what lies behind the cut is gone.",
)
def cut_off_in_records(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: uploads that break off, full disks and quotas are the commonest damage. What lies in front of the cut
    is whole, and each record has its own checksum in a data descriptor behind it.

    References: APPNOTE 4.3.9, 4.3.16; format.md 1.7, 1.13.
    """
    cut = _cut(document, zeros=False, directory=False)
    if cut is not None and document.zip is not None:
        yield at(
            cut.place, size=size_words(cut), inside=cut.inside, complete=complete_records(cut),
            storages=storages_left(cut.tally), unit=unit_words(cut),
        )  # fmt: skip


@rule(
    "PT-DMG-002",
    "cut-off-behind-records",
    axis="advice",
    level="warning",
    clause="damage.complete",
    kinds=ARCHIVES,
    title="The archive does not break off inside its directory.",
    message="the file is cut off {inside}: {size} are there; all {complete}{storages}{unit}",
    remedy="Get the file again from its source. If this is the only copy, no values are lost: 7-Zip unpacks the records of"
    " such a file, and a new archive can be made of them.",
)
def cut_off_behind_records(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: no reader opens such a file, and yet all its values are there.

    References: APPNOTE 4.3.12, 4.3.16; format.md 1.8, 1.9.
    """
    cut = _cut(document, zeros=False, directory=True)
    if cut is not None:
        yield at(
            cut.place, size=size_words(cut), inside=cut.inside, complete=complete_records(cut),
            storages=storages_left(cut.tally), unit=unit_words(cut),
        )  # fmt: skip


@rule(
    "PT-DMG-003",
    "stream-cut-off",
    axis="advice",
    level="warning",
    clause="damage.complete",
    kinds=STREAMS,
    title="The legacy stream or torch tar does not break off.",
    message="the file is cut off: {size} are there, it breaks off {inside}{storages}{unit}",
    remedy="Get the file again from its source. If this is the only copy, keep it: what lies in front of the cut is there, but"
    " this form has no checksums that prove it.",
)
def stream_cut_off(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the stream names its storages in front of them, so that it is known what a cut took away.

    References: format.md 4.1, 4.2.
    """
    cut = _cut(document, zeros=False, directory=False)
    if cut is not None:
        yield at(cut.place, size=size_words(cut), inside=cut.inside, storages=storages_left(cut.tally), unit=unit_words(cut))


@rule(
    "PT-DMG-004",
    "zero-tail",
    axis="advice",
    level="warning",
    clause="damage.complete",
    kinds=FILES,
    title="The end of the file is not zeros.",
    message="the last {zeros} of {size} bytes are zeros: the file was not completely written to disk, or its end was wiped;"
    " the content breaks off {inside}; {complete}{storages}",
    remedy="Get the file again from its source. A size that is right proves nothing here; compare checksums after copying.",
)
def zero_tail(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a crash, a lost network drive or a download tool that reserves room first leaves a file of the right
    size whose end never arrived.

    References: format.md 1.9.
    """
    cut = _cut(document, zeros=True, directory=False)
    if cut is not None:
        yield at(
            cut.place, zeros=cut.zeros, size=document.size, inside=cut.inside, complete=complete_records(cut),
            storages=storages_left(cut.tally),
        )  # fmt: skip


@rule(
    "PT-DMG-005",
    "head-missing",
    axis="advice",
    level="warning",
    clause="damage.complete",
    kinds=ARCHIVES,
    title="The beginning of the archive is there.",
    message="the first {count} bytes of the archive are missing, by its own offsets{records}: the last part of a file that was"
    " split, or a download that was resumed wrongly",
    remedy="Look for the other parts and join them in order, or get the file again from its source.",
)
def head_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: directory and end records are whole and tell exactly how much is missing in front of them.

    References: APPNOTE 4.4.16; format.md 1.9.
    """
    damage = _damage(document)
    if damage.head_missing:
        names = damage.head_records
        lost = f", and with them {counted(len(names), 'record')} ({listed(names)})" if names else ""
        yield at(Span(0, 4), count=damage.head_missing, records=lost)


@rule(
    "PT-DMG-006",
    "zero-hole",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=ARCHIVES,
    per="place",
    title="No sectors of zeros stand where other bytes were.",
    message="{length} bytes from {start} to {end} are zeros where other bytes were{over}: a part of the file was never written,"
    " or was lost on the medium{tensors}",
    remedy="Get the file again from its source. Records outside these bytes are not concerned where their checksums fit.",
)
def zero_hole(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: lost sectors and holes of sparse copies read as zeros without any error, and the file keeps its size.

    References: format.md 1.11.
    """
    for hole in _damage(document).holes:
        covered = [f"record {name}" for name in hole.records] + hole.structures
        over = f" ({listed(covered)})" if covered else ""
        record = hole.records[0] if hole.records else None
        span = hole.span
        yield at(
            span, record=record, length=span.length, start=span.offset, end=span.end, over=over, tensors=tensors_hit(hole.tensors)
        )


@rule(
    "PT-DMG-007",
    "bytes-lost",
    axis="advice",
    level="warning",
    clause="damage.complete",
    kinds=FILES,
    per="place",
    title="Records stand in their places; no bytes are missing in front of them.",
    message="{count} lost {place}: everything from {behind} on stands that much earlier than it should{lost}{tensors}",
    remedy="Get the file again from its source: what is missing cannot be restored. The other records are whole where their"
    " checksums fit.",
)
def bytes_lost(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: one lost block makes every record behind it unreadable for torch, although their bytes are all there.

    References: APPNOTE 4.4.16; format.md 1.13.
    """
    for found in _damage(document).displacements:
        if found.count < 0:
            where = f"inside record {found.before}" if found.inside else f"behind the start of record {found.before}"
            gone = f"; not found at all: {listed(found.lost)}" if found.lost else ""
            yield at(
                found.span, record=found.before, count=counted(-found.count, "byte was", "bytes were"), place=where,
                behind=found.behind, lost=gone,
                tensors=tensors_hit(found.tensors),
            )  # fmt: skip


@rule(
    "PT-DMG-008",
    "bytes-inserted",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=FILES,
    per="place",
    title="Records stand in their places; nothing was put in front of them.",
    message="{count} too many {place}: everything from {behind} on stands that much later than it should{repeated}{tensors}",
    remedy="Get the file again from its source. Keep this copy as it is: no value is gone, and a program can take out the"
    " bytes that are too many.",
)
def bytes_inserted(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a block that was written twice, or foreign bytes, move everything behind them, and torch finds nothing
    any more.

    References: APPNOTE 4.4.16; format.md 1.13.
    """
    for found in _damage(document).displacements:
        if found.count > 0:
            where = f"inside record {found.before}" if found.inside else f"behind the start of record {found.before}"
            repeated = ""
            if found.repeated is not None:
                repeated = f"; the {found.count} bytes at {found.repeated.offset} repeat those in front of them"
                repeated += ", and without them the record has its checksum" if found.restores else ""
            yield at(
                found.repeated or found.span, record=found.before, count=counted(found.count, "byte is", "bytes are"),
                place=where, behind=found.behind,
                repeated=repeated, tensors=tensors_hit(found.tensors),
            )  # fmt: skip


@rule(
    "PT-DMG-009",
    "header-lost",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=ARCHIVES,
    per="record",
    title="Each record that the directory lists has its local header.",
    message="the local header of the record is destroyed: at {offset}, where the directory places it, stand other bytes; {state}",
    remedy="Get the file again from its source. If this is the only copy, keep it: records with their headers are read as"
    " before, and bytes found by their data descriptor can be cut out.",
)
def header_lost(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: without the header torch does not find the values, but the data descriptor behind them often still
    tells where they lie and what checksum they have.

    References: APPNOTE 4.3.7, 4.3.9; format.md 1.5, 1.7.
    """
    damage = _damage(document)
    holes = [hole.span for hole in damage.holes]
    for lost in damage.lost_headers:
        if any(hole.overlaps(lost.place) for hole in holes):
            continue
        names = f" of {quoted(lost.tensors)}" if lost.tensors else ""
        state = f"its {counted(lost.size, 'byte')}{names} were not found"
        if lost.payload is not None:
            proof = {True: ", and have the recorded checksum", False: ", but without the recorded checksum", None: ""}[lost.fits]
            state = (
                f"its {counted(lost.size, 'byte')}{names} are at {lost.payload.offset}, by the data descriptor behind them{proof}"
            )
        yield at(lost.place, record=lost.record, offset=lost.place.offset, state=state)


@rule(
    "PT-DMG-025",
    "directory-damaged",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=ARCHIVES,
    title="The directory lists all records.",
    message="the directory at the end of the archive is damaged, the records in front of it are found without it: {complete}"
    "{storages}",
    remedy="Get the file again from its source. If this is the only copy, no values are lost where the records are complete: a"
    " new archive can be made of them.",
)
def directory_damaged(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers need the directory, but every record has a header and a data descriptor of its own.

    References: APPNOTE 4.3.9, 4.3.12; format.md 1.7, 1.8.
    """
    left = _damage(document).directory
    if left is not None:
        yield at(left.place, complete=complete_records(left), storages=storages_left(left.tally))
