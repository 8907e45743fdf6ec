# SPDX-License-Identifier: Apache-2.0
"""Damage diagnosis: what happened to a file, and what is left of it, as far as its bytes tell.

States facts (:class:`~fdd.formats.pytorch.damage_facts.DamageFacts`, in ``document.facts["damage"]``) where the container
shows something odd; a sound file costs a look at what was read anyhow. Suspected bytes are read once more at most.
"""

from __future__ import annotations

from collections.abc import Iterable

from fdd.container.zip import read_directory
from fdd.container.zip.structs import CENTRAL_HEADER_SIGNATURE, ZipFacts
from fdd.core.source import SliceSource
from fdd.core.span import Span
from fdd.core.text import decode_name
from fdd.formats.probe import Probe
from fdd.formats.pytorch.damage_checksums import (
    altered_records,
    describe_altered,
    find_holes,
    mark_explained,
    payload_fits,
    suspicious_spans,
    whole_records,
)
from fdd.formats.pytorch.damage_facts import CutOff, DamageFacts, ExtraBytes, SavedPart, Saves, damage_of
from fdd.formats.pytorch.damage_losses import Losses
from fdd.formats.pytorch.damage_older import find_stream_cut, find_stream_shift, find_tar_cut
from fdd.formats.pytorch.damage_packing import find_encrypted, find_leftovers, find_packers, is_flattened
from fdd.formats.pytorch.damage_scan import ByteScan, scan_bytes
from fdd.formats.pytorch.damage_shifts import find_displacements
from fdd.formats.pytorch.damage_text import (
    conversion_of_payloads,
    describe_bytes,
    find_conversion,
    find_mangling,
    find_stream_start,
)
from fdd.formats.pytorch.damage_zip import find_cut, find_directory_damage, find_lost_headers, find_missing_head
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.nested import verdict_on
from fdd.formats.pytorch.shards import split_archives

_FEW_EMPTY = 3
"""Fewer tensors without elements are common in whole models."""
_MOST_CHECKED = 16
"""Payloads without a local header whose checksum is computed."""


def diagnose(document: TorchDocument, probe: Probe, *, by_python: bool) -> None:
    """State what the structure shows. Files inside others are not diagnosed: their container is.

    ``by_python``: kinds that Python's zipfile makes by design are not told to be packed again. Raises SourceError where
    reading fails.
    """
    if probe.level:
        return
    damage = DamageFacts()
    if document.zip is not None and document.kind != "distcp":
        _diagnose_zip(document, probe, document.zip, damage, by_python)
    elif document.legacy is not None or document.tar is not None:
        _diagnose_older(document, probe, damage)
    _count_tensors(document, damage)
    if damage != DamageFacts():
        document.facts["damage"] = damage


def _diagnose_zip(document: TorchDocument, probe: Probe, facts: ZipFacts, damage: DamageFacts, by_python: bool) -> None:
    if not by_python:
        damage.packers = find_packers(facts)
        damage.flattened = is_flattened(document)
        damage.leftovers = find_leftovers(document)
    damage.encrypted = find_encrypted(document)
    _find_extra(document, probe, facts, damage)
    converted = any(text.strip(b"0123456789") == b"\r" for text in document.texts.values())
    if not is_odd(facts) and not converted:
        _tally_missing(document, damage)
        return
    losses = Losses(document)
    seen = scan_bytes(document.source, [Span(0, document.size)])
    document.facts["damage-scan"] = seen
    damage.displacements = find_displacements(document, losses)
    shortened = any(place.count < 0 for place in damage.displacements)
    damage.conversion = find_conversion(document, probe, seen, shortened)
    damage.mangled = find_mangling(document, probe) if damage.conversion is None else []
    if damage.conversion is not None or damage.mangled:
        # Bytes changed everywhere: no place of its own tells more.
        damage.displacements, damage.extra, damage.saves = [], [], None
        return
    damage.cut = find_cut(document, losses)
    if damage.cut is not None and _nothing_missing(damage.cut):
        damage.cut, damage.directory = None, damage.cut
    find_missing_head(document, damage)
    moved = bool(damage.displacements) or damage.head_missing > 0
    if damage.head_missing:
        damage.extra = [extra for extra in damage.extra if not extra.front]
    if damage.cut is None and damage.directory is None and not moved:
        damage.directory = find_directory_damage(document, losses)
    damage.lost_headers = find_lost_headers(document, losses) if not moved else []
    if damage.cut is None and not moved:
        damage.holes = find_holes(document, seen, [], losses)


def _nothing_missing(cut: CutOff) -> bool:
    """Whether the file is as long as it was: then other bytes stand where the directory was."""
    return not cut.zeros and cut.whole_size is not None and cut.whole_size <= cut.content


def is_odd(facts: ZipFacts) -> bool:
    """Whether the structure of an archive hints at damage; bytes in front or behind alone do not."""
    if facts.salvaged or facts.ends.faults or facts.overlaps:
        return True
    directory = facts.directory
    if directory is not None and (directory.faults or directory.base < 0):
        return True
    prefix = next((region.span.end for region in facts.regions if region.what == "prefix"), 0)
    stray = any(record.local is not None and record.local.span.offset >= prefix for record in facts.unlisted)
    faults = any(record.local_fault or record.descriptor_fault for record in facts.records)
    return stray or faults or any(region.what == "gap" for region in facts.regions)


def _find_extra(document: TorchDocument, probe: Probe, facts: ZipFacts, damage: DamageFacts) -> None:
    """Bytes around the archive: other archives, or what they look like."""
    front = next((region.span for region in facts.regions if region.what == "prefix" and region.span.length), None)
    if front is not None:
        damage.saves = _saves(document, probe, facts, front)
        own = any(record.local is not None and record.local.span.offset < front.end for record in facts.unlisted)
        if damage.saves is None and not own:  # records in front of the others that only the directory forgot are not foreign
            damage.extra.append(ExtraBytes(front, True, describe_bytes(document.source, front)))
    behind = facts.ends.trailing
    if behind.length and facts.ends.end is not None:
        damage.extra.append(ExtraBytes(behind, False, describe_bytes(document.source, behind)))


def _saves(document: TorchDocument, probe: Probe, facts: ZipFacts, front: Span) -> Saves | None:
    """Whole archives in front of the last one; None where those bytes are something else."""
    source = document.source
    spans = split_archives(SliceSource(source, front), probe.limits)
    if not spans or facts.directory is None or facts.ends.end is None:
        return None
    if len(spans) == 1 and read_directory(SliceSource(source, front), probe.limits).directory is None:
        return None
    parts = [SavedPart(span, verdict_on(SliceSource(source, span), probe.name or "", probe)) for span in spans]
    last = Span(front.end, facts.ends.end.span.end - front.end)
    relative = facts.directory.base == front.length
    alone = verdict_on(SliceSource(source, last), probe.name or "", probe) if relative else None
    parts.append(SavedPart(last, alone))
    # torch goes by the end record, but takes its offsets from the start of the file: measured with torch 1.13 to 2.13.
    stated = source.read_at(facts.directory.stated_offset, 4)
    reads = "last" if not relative else "first" if stated == CENTRAL_HEADER_SIGNATURE else "none"
    return Saves(parts, reads)


def _tally_missing(document: TorchDocument, damage: DamageFacts) -> None:
    """Storages without a record, in an archive whose directory is whole."""
    missing = [item for item in document.storages if item.payload_expected and item.stored_size is None]
    if not missing or document.kind == "incomplete-save":
        return
    losses = Losses(document)
    present = {record.name for record in document.records}
    if document.zip is not None:  # a name that is damaged in the directory stands in the local header still
        present.update(decode_name(record.local.name) for record in document.zip.records if record.local is not None)
    damage.tally = losses.tally(present, ())
    named = list(losses.storages())
    gone = [name for name in named if name not in present]
    damage.last_missing = 1 < len(gone) < len(named) and named[-len(gone) :] == gone


def _diagnose_older(document: TorchDocument, probe: Probe, damage: DamageFacts) -> None:
    stream, tar = document.legacy, document.tar
    odd = stream.stopped is not None if stream is not None else bool(tar is not None and tar.faults)
    if odd:
        seen = scan_bytes(document.source, [Span(0, document.size)])
        damage.conversion = find_conversion(document, probe, seen, shortened=False)
        damage.mangled = find_mangling(document, probe) if damage.conversion is None else []
        if damage.conversion is not None or damage.mangled:
            return
    losses = Losses(document)
    if stream is not None:
        shift = find_stream_shift(document, losses)
        damage.displacements = [shift] if shift is not None else []
        zeroed = any(entry.count == 0 and entry.expected for entry in stream.storages)
        damage.cut = find_stream_cut(document, losses) if not shift and (odd or zeroed) else None
    elif odd:
        damage.cut = find_tar_cut(document)
    if damage.cut is None and not damage.displacements:
        _find_extra_older(document, probe, damage)


def _find_extra_older(document: TorchDocument, probe: Probe, damage: DamageFacts) -> None:
    """Bytes around a legacy stream, and behind a tar."""
    stream, tar = document.legacy, document.tar
    rest = stream.rest if stream is not None else tar.trailing if tar is not None and not tar.faults else None
    doubtful = stream is not None and any(entry.count != entry.expected for entry in stream.storages)
    if rest is not None and rest.length and not doubtful:
        what = describe_bytes(document.source, rest)
        if stream is not None and stream.storages and what.startswith("binary"):
            # Only the end of the stream tells where the last storage ends.
            what += ", or values that bytes put into the last storage pushed out"
        damage.extra.append(ExtraBytes(rest, False, what))
    front = find_stream_start(probe.head) if stream is not None and stream.stopped == "magic" else None
    if front is not None:
        damage.extra.append(ExtraBytes(front, True, describe_bytes(document.source, front)))


def _count_tensors(document: TorchDocument, damage: DamageFacts) -> None:
    """Many tensors without elements: a rank of a sharded model leaves those of the other ranks empty."""
    own = [tensor for tensor in document.tensors if not tensor.alias and tensor.layout == "strided"]
    empty = [tensor.name for tensor in own if tensor.shape and 0 in tensor.shape]
    if len(empty) >= _FEW_EMPTY and 2 * len(empty) >= len(own):
        damage.empty_tensors, damage.tensor_count = empty, len(own)


def diagnose_payload(document: TorchDocument) -> None:
    """Add what the checksums show, once payloads were read. Raises SourceError where reading fails."""
    if document.zip is None or (document.nested and document.kind == "distcp"):
        return
    damage = damage_of(document)
    indexes = altered_records(document)
    if damage is None and not indexes:
        return
    damage = damage if damage is not None else DamageFacts()
    document.facts["damage"] = damage
    _check_whole(document, damage)
    if not indexes:
        return
    losses = Losses(document)
    damage.altered = describe_altered(document, indexes, losses)
    damage.whole_records = whole_records(document)
    seen = _scan(document, damage)
    if damage.conversion is None and not damage.mangled and not damage.displacements:
        damage.conversion = conversion_of_payloads(seen)
    mark_explained(document, damage)
    if damage.conversion is None and not damage.mangled and damage.cut is None:
        damage.holes = find_holes(document, seen, damage.altered, losses)


def _scan(document: TorchDocument, damage: DamageFacts) -> ByteScan:
    """The scan of the whole file where there was one, else one of the altered payloads."""
    known = document.facts.get("damage-scan")
    if isinstance(known, ByteScan):
        return known
    return scan_bytes(document.source, suspicious_spans(damage.altered))


def _check_whole(document: TorchDocument, damage: DamageFacts) -> None:
    """Compare what is left with the checksums beside it."""
    for left in (damage.cut, damage.directory):
        if left is not None:
            _check_complete(document, left)
    entries = dict(_recorded(document))
    for lost in damage.lost_headers[:_MOST_CHECKED]:
        if lost.payload is not None and lost.record in entries:
            lost.fits = payload_fits(document, lost.payload, entries[lost.record])


def _check_complete(document: TorchDocument, cut: CutOff) -> None:
    """Compare the complete records of a cut archive with the checksums in their directory entries or data descriptors."""
    fits = {row.name: row.computed_crc32 == row.crc32 for row in document.records if row.computed_crc32 is not None}
    for stray in document.zip.unlisted[:_MOST_CHECKED] if document.zip is not None else ():
        if stray.payload is not None and stray.descriptor is not None and stray.local is not None and not stray.local.method:
            fits[decode_name(stray.name)] = payload_fits(document, stray.payload, stray.descriptor.crc32)
    known = [fits[name] for name in cut.complete if name in fits]
    cut.checked, cut.unchecked = sum(known), len(cut.complete) - len(known)


def _recorded(document: TorchDocument) -> Iterable[tuple[str, int]]:
    for index, record in document.zip_records():
        if record.entry is not None and record.local is None:
            yield document.records[index].name, record.entry.crc32
