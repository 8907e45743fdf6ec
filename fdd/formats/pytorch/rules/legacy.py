# SPDX-License-Identifier: Apache-2.0
"""Rules on the legacy stream: its head, its form, and what stands behind it (PT-LEG)."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.contents import dict_of
from fdd.formats.pytorch.document import PickleRecord, TorchDocument
from fdd.formats.pytorch.older_facts import MAGIC_NUMBER, STREAM_VERSION, LegacyFacts
from fdd.formats.pytorch.persistent_ids import int64_of
from fdd.formats.pytorch.rules.catalogue import LEGACY, OLDER, rule
from fdd.pickles.nodes import Value

PART_NAMES = {
    "magic": "magic number",
    "protocol": "version number",
    "sys-info": "system information",
    "object": "object",
    "keys": "key list",
    "storages": "storages",
}
TYPE_SIZES = {"short": (2,), "int": (4,), "long": (4, 8)}
"""Sizes of C types on machines that torch ran on."""
MEMO_SLACK = 1024
"""How far above the number of memo writes an index is still no resource bomb (contract, section 1)."""
AGAIN = "Get the file again from its source."


def stream_of(document: TorchDocument) -> LegacyFacts:
    """The facts of the stream."""
    assert document.legacy is not None
    return document.legacy


# The head


@rule(
    "PT-LEG-001",
    "legacy-magic-wrong",
    axis="well-formed",
    level="error",
    clause="legacy.head",
    kinds=LEGACY,
    needs=("stream",),
    title="The first pickle is the magic number, written out.",
    message="the first pickle is not the magic number of the legacy stream: {what}",
    remedy=f"{AGAIN} torch refuses it; the parts behind the head may be intact.",
)
def legacy_magic_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: by this number torch tells its own file from any other pickle. A number that a call makes runs code
    before anything is checked.

    References: format.md 4.1; contract, section 6.
    """
    stream = stream_of(document)
    pickle = stream.part("magic")
    if pickle is None or (stream.stopped == "magic" and stream.cut):
        return
    if not pickle.facts.stopped:
        yield at(Span(pickle.span.offset, pickle.facts.end + 1), record=pickle.record, what="it cannot be read")
    elif pickle.facts.events:
        yield at(pickle.span, record=pickle.record, what="it names or calls something")
    elif pickle.facts.root != MAGIC_NUMBER:
        number = int64_of(pickle.facts.root) is not None or isinstance(pickle.facts.root, int)
        yield at(pickle.span, record=pickle.record, what="it is another number" if number else "it is no number")


@rule(
    "PT-LEG-002",
    "legacy-version-wrong",
    axis="valid",
    level="error",
    clause="legacy.head",
    kinds=LEGACY,
    needs=("stream",),
    title="The second pickle is the version 1001.",
    message="the version of the stream is {found} instead of 1001",
    remedy=f"{AGAIN} torch refuses any other version.",
)
def legacy_version_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: 1001 is the only version there ever was; torch.load stops at any other.

    References: format.md 4.1.
    """
    pickle = stream_of(document).part("protocol")
    if pickle is not None and pickle.facts.stopped and pickle.facts.root != STREAM_VERSION:
        yield at(pickle.span, record=pickle.record, found=_shown(pickle.facts.root))


def _shown(value: Value) -> str:
    number = int64_of(value)
    return str(number) if number is not None else f"a {type(value).__name__}"


@rule(
    "PT-LEG-003",
    "system-information-wrong",
    axis="valid",
    level="error",
    clause="legacy.system",
    kinds=LEGACY,
    needs=("stream",),
    title="The third pickle describes the system that wrote the file.",
    message="the system information is damaged: {what}",
    remedy="Compare with another copy. torch does not look at this part, so that the file can still be loaded.",
)
def system_information_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: every writer states the version and its byte order here; a stream that does not was made or changed
    by something else.

    References: format.md 4.1.
    """
    pickle = stream_of(document).part("sys-info")
    if pickle is None or not pickle.facts.stopped:
        return
    system = dict_of(pickle.facts.root)
    if system is None:
        yield at(pickle.span, record=pickle.record, what="it is no dict")
    elif not isinstance(system.get("little_endian"), bool):
        yield at(pickle.span, record=pickle.record, what="little_endian is not true or false")
    elif int64_of(system.get("protocol_version")) is None:
        yield at(pickle.span, record=pickle.record, what="protocol_version is no whole number")
    elif system["protocol_version"] != STREAM_VERSION:
        found = _shown(system["protocol_version"])
        yield at(pickle.span, record=pickle.record, what=f"protocol_version is {found} instead of 1001")


@rule(
    "PT-LEG-017",
    "type-sizes-odd",
    axis="valid",
    level="warning",
    clause="legacy.system",
    kinds=OLDER,
    needs=("pickle",),
    title="The system information holds the sizes of C types.",
    message="the system information has {what}",
    remedy="Nothing has to be done: no reader uses these numbers. Find out how the file was made.",
)
def type_sizes_odd(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: all writers state them, and the same ones; other numbers, or none, come from damage or another tool.

    References: format.md 4.1.
    """
    pickle, system = _system(document)
    if pickle is None or system is None:
        return
    sizes = dict_of(system.get("type_sizes"))
    if sizes is None:
        yield at(pickle.span, record=pickle.record, what="no type_sizes")
        return
    for name, usual in TYPE_SIZES.items():
        if int64_of(sizes.get(name)) not in usual:
            yield at(pickle.span, record=pickle.record, what=f"{_shown(sizes.get(name))} as the size of {name}")
    others = (sizes.keys() - TYPE_SIZES.keys()) | (system.keys() - {"protocol_version", "little_endian", "type_sizes"})
    if others:
        yield at(pickle.span, record=pickle.record, what=f"the unknown entry {sorted(others)[0]}")


@rule(
    "PT-LEG-004",
    "written-on-big-endian",
    axis="advice",
    level="info",
    clause="legacy.system",
    kinds=OLDER,
    needs=("pickle",),
    title="A little-endian machine wrote the file.",
    message="a big-endian machine wrote the file; its counts and numbers are little-endian all the same",
    remedy="Nothing has to be done: torch reads it right. Do not swap bytes because of this entry.",
)
def written_on_big_endian(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the entry invites to swap bytes, which would destroy the numbers: writers turn them round themselves.

    References: history.md, surprise 3; contract, section 6.
    """
    pickle, system = _system(document)
    if pickle is not None and system is not None and system.get("little_endian") is False:
        yield at(pickle.span, record=pickle.record)


def _system(document: TorchDocument) -> tuple[PickleRecord | None, dict[str, Value] | None]:
    """The pickle of the system information and its dict; a torch tar has one too."""
    pickle = next((pickle for pickle in document.judged_pickles() if pickle.role == "sys-info"), None)
    return pickle, dict_of(pickle.facts.root) if pickle is not None and pickle.facts.stopped else None


@rule(
    "PT-LEG-012",
    "protocols-mixed",
    axis="valid",
    level="warning",
    clause="legacy.head",
    kinds=OLDER,
    needs=("pickle",),
    per="place",
    title="All pickles of the file have one protocol.",
    message="the {part} is pickled with protocol {found}, the others with {usual}",
    remedy="Compare with another copy. The part can be read; but torch.save uses one protocol for all.",
)
def protocols_mixed(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: one call of torch.save writes all of them. A part of its own protocol is damaged or was put in later.

    References: format.md 4.1.
    """
    pickles = [pickle for pickle in document.judged_pickles() if pickle.facts.opcode_count]
    # Without PROTO it is 0 or 1, and short pickles look alike in both.
    protocols = [max(1, pickle.facts.protocol) for pickle in pickles]
    usual = max(protocols, key=protocols.count, default=0)
    for pickle, protocol in zip(pickles, protocols, strict=True):
        if protocol != usual and pickle.facts.protocols:
            place = pickle.place(pickle.facts.protocols[0][0], 2)
            yield at(place, record=pickle.record, part=PART_NAMES.get(pickle.role, pickle.role), found=protocol, usual=usual)
        elif protocol != usual:
            yield at(
                pickle.span, record=pickle.record, part=PART_NAMES.get(pickle.role, pickle.role), found="0 or 1", usual=usual
            )


@rule(
    "PT-LEG-020",
    "memo-index-leaps",
    axis="valid",
    level="warning",
    clause="legacy.head",
    kinds=OLDER,
    needs=("pickle",),
    per="record",
    title="Memo indexes are given in order.",
    message="a value is memorised under {index}, although only {count} are memorised in all",
    remedy="Compare with another copy. The pickle can be read as long as nothing asks for the index that was meant.",
)
def memo_index_leaps(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: every pickler counts up. These forms have no checksums; an index out of order may be all that shows a
    damaged byte.

    References: format.md 4.1, measured on all samples; pickle-analysis.md, section 4.
    """
    for pickle in document.judged_pickles():
        facts = pickle.facts
        # Python 2 counts from 1. Far greater ones are a matter of safety.
        if facts.stopped and 0 < facts.memo_highest - facts.memo_writes <= MEMO_SLACK:
            length = 5 if facts.memo_highest > 255 else 2
            place = pickle.place(facts.memo_highest_offset, length)
            yield at(place, record=pickle.record, index=facts.memo_highest, count=facts.memo_writes)


@rule(
    "PT-LEG-013",
    "form-superseded",
    axis="advice",
    level="warning",
    clause="legacy.form",
    kinds=OLDER | {"torch-zip"},
    title="The file has the current form.",
    message="the file has a form that torch gave up in {release}: it has no checksums, and {readers}",
    remedy="Keep the file and its digest. A copy in the current form, made by torch.load and torch.save, can be added.",
)
def form_superseded(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: nothing inside the file shows damage to its numbers, and fewer and fewer readers know the form.

    References: format.md 4; history.md, table 1.
    """
    if document.kind == "torch-tar":
        yield at(release="0.1.10", readers="current releases read it only from a path and with weights_only=False")
    elif document.kind == "torch-legacy":
        yield at(release="1.6", readers="it cannot be mapped into memory")


# What stands beside the numbers


@rule(
    "PT-LEG-009",
    "bytes-after-stream",
    axis="valid",
    level="error",
    clause="legacy.end",
    kinds=LEGACY,
    needs=("stream",),
    title="Nothing follows the last storage but further whole streams.",
    message="{length} bytes follow the last storage{holds}",
    remedy="Keep the file as it is and find out where the bytes come from; a copy cut to {end} bytes is the stream alone.",
)
def bytes_after_stream(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch never looks at them. They may be what is left of a second save, or something put there later.

    References: format.md 4.1; contract, section 6.
    """
    stream = stream_of(document)
    if stream.rest is not None:
        holds = f": {stream.rest_holds}" if stream.rest_holds else ""
        yield at(stream.rest, length=stream.rest.length, end=stream.rest.offset, holds=holds)


@rule(
    "PT-LEG-019",
    "further-streams",
    axis="advice",
    level="info",
    clause="legacy.end",
    kinds=LEGACY,
    needs=("stream",),
    title="The file holds one object.",
    message="{count} further complete streams follow the first",
    remedy="Load them one after another from an open file; torch.load on the path gives the first only.",
)
def further_streams(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: several torch.save calls into one open file are allowed, but what a path gives is the first object.

    References: format.md 4.1; history.md, surprise 11.
    """
    stream = stream_of(document)
    if stream.further:
        first, last = stream.further[0], stream.further[-1]
        yield at(Span(first.start, last.end - first.start), count=len(stream.further))


@rule(
    "PT-LEG-014",
    "source-text-kept",
    axis="advice",
    level="info",
    clause="legacy.ids",
    kinds=OLDER,
    needs=("pickle",),
    title="The file carries no source text.",
    message="the file carries the source text of {count} classes, the first is {name}",
    remedy="Write the texts out with `fdd sources`: they are what is needed to load the object again.",
)
def source_text_kept(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a whole module can only be loaded with its classes. The text at the time of saving may be the last copy.

    References: format.md 4.1; history.md, surprise 12.
    """
    kept = [(pickle, module) for pickle, module in document.facts.get("module-sources", ()) if module.source]
    if kept:
        pickle, module = kept[0]
        yield at(pickle.place(module.offset), record=pickle.record, count=len(kept), name=module.class_name)
