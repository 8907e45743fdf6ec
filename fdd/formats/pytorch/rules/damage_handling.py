# SPDX-License-Identifier: Apache-2.0
"""Findings that tell what people and tools did to a file: bytes around it, saves that failed, packing, encryption."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.damage_facts import DamageFacts, damage_of
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, EAGER, NATIVE, PICKLED, rule
from fdd.formats.pytorch.rules.damage_words import counted, listed, quoted

FILES = ARCHIVES | {"torch-legacy", "torch-tar"}
_NOTHING = DamageFacts()


def _damage(document: TorchDocument) -> DamageFacts:
    return damage_of(document) or _NOTHING


@rule(
    "PT-DMG-014",
    "appended",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=FILES,
    title="Nothing was appended to the file.",
    message="{count} behind the end of the file's own content: {what}",
    remedy="Get the file again from its source, or keep this one and work with a copy cut to the length before these bytes,"
    " once it is known where they come from.",
)
def appended(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: web forms, editors and block devices append bytes. Knowing which did tells whether the content is
    intact.

    References: format.md 1.16, 4.1.
    """
    for extra in _damage(document).extra:
        if not extra.front:
            yield at(extra.span, count=counted(extra.span.length, "byte stands", "bytes stand"), what=extra.what)


@rule(
    "PT-DMG-015",
    "prepended",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=FILES,
    title="Nothing was put in front of the file.",
    message="{count} in front of the content: {what}",
    remedy="Get the file again from its source, or keep this one and work with a copy that begins behind these bytes, once it"
    " is known where they come from.",
)
def prepended(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: headers of a web answer, a form boundary or a second file in front hide the archive from torch.

    References: format.md 1.16, 3.1.
    """
    for extra in _damage(document).extra:
        if extra.front:
            yield at(extra.span, count=counted(extra.span.length, "byte stands", "bytes stand"), what=extra.what)


@rule(
    "PT-DMG-016",
    "several-saves",
    axis="advice",
    level="warning",
    clause="damage.one-save",
    kinds=ARCHIVES,
    title="The file holds one archive.",
    message="{count} archives stand one behind the other in the file: {parts}. {reading}",
    remedy="Ask the depositor which one is meant, and cut the file into its archives at these offsets; each can then be kept"
    " as a file of its own.",
)
def several_saves(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch.save called twice on one open file makes such a file without a warning, and readers take
    different archives for the file.

    References: format.md 1.16; history.md, surprise 11.
    """
    saves = _damage(document).saves
    if saves is None:
        return
    parts = [
        f"{part.span.offset} to {part.span.end} ({part.verdict or 'its offsets count from the start of the file'})"
        for part in saves.parts
    ]
    reading = {
        "first": "ZIP tools read the last one; torch since 1.9 reads the first, because both directories have the same offset",
        "last": "torch and ZIP tools read the last one, tools that start at the front the first",
        "none": "ZIP tools read the last one; torch refuses the file, because offsets count from the start of the last archive",
    }[saves.torch_reads]
    span = Span(saves.parts[0].span.offset, saves.parts[-1].span.end - saves.parts[0].span.offset)
    yield at(span, count=len(saves.parts), parts=listed(parts, 6), reading=reading)


@rule(
    "PT-DMG-018",
    "storages-missing",
    axis="advice",
    level="warning",
    clause="damage.complete",
    kinds=PICKLED,
    needs=("storages",),
    title="No storage is missing as a whole.",
    message="of {named} that the pickles name {missing} no record: no values are there for {tensors}{order}",
    remedy="Ask for the complete file. The tensors whose storages are there can be read.",
)
def storages_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: says at a glance how much of a model is there.

    References: format.md 1.2, 2.2.
    """
    tally = _damage(document).tally
    if tally is None or not tally.missing:
        return
    order = ""
    if _damage(document).last_missing and tally.whole:
        order = "; the missing ones are the last that torch writes, as when saving breaks off"
    elif not tally.whole:
        order = "; none is there: the index of a model without its weights"
    missing = next(item for item in document.storages if item.payload_expected and item.stored_size is None)
    use = missing.uses[0].span if missing.uses else None
    names = quoted(tally.tensors) if tally.tensors else "no named tensor"
    yield at(
        use,
        record=missing.record,
        missing=counted(tally.missing, "has", "have"),
        named=counted(tally.named, "storage"),
        tensors=names,
        order=order,
    )


@rule(
    "PT-DMG-019",
    "empty-tensors",
    axis="advice",
    level="info",
    clause="damage.complete",
    kinds=PICKLED,
    needs=("objects",),
    title="Most tensors have elements.",
    message="{empty} of {count} tensors are empty ({tensors}): this looks like one rank of a sharded (ZeRO-3) model, not like a"
    " whole one",
    remedy="Ask for the files of the other ranks, or for the consolidated model.",
)
def empty_tensors(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a file of one rank is valid and loads, and yet lacks the values of the other ranks.

    References: contract, section 1, content.
    """
    damage = _damage(document)
    if damage.empty_tensors:
        names = damage.empty_tensors
        first = next(tensor for tensor in document.tensors if tensor.name == names[0])
        place = Span(first.offset, 1) if first.offset is not None else None
        yield at(place, tensor=names[0], empty=len(names), count=damage.tensor_count, tensors=quoted(names, 3))


@rule(
    "PT-DMG-020",
    "repacked-by",
    axis="advice",
    level="info",
    clause="damage.as-written",
    kinds=NATIVE,
    per="place",
    title="All records were written by torch.",
    message="{entries} of {total} records look as if written by {tool}: {reasons}",
    remedy="Nothing is lost where all other rules pass. Prefer the file as torch wrote it, if it can still be had.",
)
def repacked_by(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the tool tells the history of a file: unpacked and packed by hand, or a record added by a script.

    References: APPNOTE 4.4.2, 4.4.15, 4.5; format.md 1.8.
    """
    for packer in _damage(document).packers:
        yield at(packer.span, entries=packer.entries, total=packer.total, tool=packer.tool, reasons=packer.reasons)


@rule(
    "PT-DMG-021",
    "packing-leftovers",
    axis="advice",
    level="warning",
    clause="damage.as-written",
    kinds=NATIVE,
    per="place",
    title="The archive holds nothing that operating systems leave in folders.",
    message="{count} that {system} keeps in folders came in when this one was packed, and {verb} no part of the model: {names}",
    remedy="Ask for the file as torch.save wrote it. torch refuses an archive with records outside its one folder.",
)
def packing_leftovers(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: __MACOSX/, .DS_Store and their like show that the archive was unpacked and packed again by hand.

    References: format.md 1.3, 1.16.
    """
    for found in _damage(document).leftovers:
        yield at(
            found.span, record=found.names[0], count=counted(len(found.names), "record"), system=found.system,
            names=listed(found.names), verb="is" if len(found.names) == 1 else "are",
        )  # fmt: skip


@rule(
    "PT-DMG-022",
    "top-folder-lost",
    axis="advice",
    level="warning",
    clause="damage.as-written",
    kinds=EAGER,
    title="The records of a model lie in one folder.",
    message="all records of a model are there, but not inside one folder: the folder's contents were packed"
    " instead of the folder",
    remedy="Ask for the file as torch.save wrote it, or pack the records again inside one folder, stored and not compressed.",
)
def top_folder_lost(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch refuses records at the top of an archive, and says only that a file is not in a subdirectory.

    References: format.md 1.3, 1.16.
    """
    if _damage(document).flattened:
        index = next(index for index, record in enumerate(document.records) if record.role == "object")
        entry = document.zip_record(index).entry
        yield at(entry.span if entry is not None else document.records[index].span, record=document.records[index].name)


@rule(
    "PT-DMG-023",
    "encrypted",
    axis="advice",
    level="warning",
    clause="damage.as-written",
    kinds=ARCHIVES,
    per="place",
    title="No record is encrypted.",
    message="{count} of {total} records are encrypted ({method}): only names and sizes can be read ({names})",
    remedy="Ask the depositor for the password or, better, for the file without encryption; without either the values are lost.",
)
def encrypted(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: an archive that nobody can decrypt preserves nothing, and no checksum of plain content can be made.

    References: APPNOTE 4.4.4, 7, Appendix E; format.md 1.16.
    """
    for found in _damage(document).encrypted:
        if not found.clear:
            yield at(
                found.span, record=found.names[0], count=len(found.names), total=found.total, method=found.method,
                names=listed(found.names),
            )  # fmt: skip


@rule(
    "PT-DMG-024",
    "marked-as-encrypted-in-clear",
    axis="advice",
    level="warning",
    clause="damage.unaltered",
    kinds=ARCHIVES,
    per="place",
    title="Records marked as encrypted are encrypted.",
    message="{names} {verb} marked as encrypted ({method}), but the bytes are in clear and have the recorded checksum",
    remedy="Only the marks are wrong: a copy with the flags cleared in both headers reads well. Find out who set them.",
)
def marked_as_encrypted_in_clear(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: scanners pass over what they take for encrypted; the flag keeps readers from data that is there.

    References: APPNOTE 4.4.4; format.md 1.16.
    """
    for found in _damage(document).encrypted:
        if found.clear:
            verb = "is" if len(found.names) == 1 else "are"
            yield at(found.span, record=found.names[0], names=listed(found.names), verb=verb, method=found.method)
