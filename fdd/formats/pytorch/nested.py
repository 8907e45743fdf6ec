# SPDX-License-Identifier: Apache-2.0
"""Torch files inside a file: records that are torch files themselves, and several archives one behind the other.

Each is opened and judged as a file of its own, with bounded depth; what it holds appears under the name of its record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fdd.core.engine import run_rules
from fdd.core.finding import Axis, Level, Outcome, Reason, State, Status, decide
from fdd.core.model import ABSENT, COMPLETE, Evidence
from fdd.core.source import ByteSource, BytesSource, SliceSource
from fdd.core.span import Span
from fdd.formats.probe import Probe, make_probe
from fdd.formats.pytorch.document import NestedFile, TorchDocument
from fdd.formats.pytorch.identify import identify
from fdd.formats.pytorch.names import EAGER_KINDS
from fdd.formats.pytorch.properties import ARCHIVES, byte_order, summary_of
from fdd.formats.pytorch.readings import probe_archive
from fdd.formats.pytorch.zipped import contents
from fdd.tensors.model import Storage, Tensor

TORCH_HEADS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""How torch files begin, but for the tar and the oldest pickles."""
CARRYING_ROLES = frozenset({"extra-file", "resource", "unknown", "outside"})
"""Roles of records that may hold files of their own."""
MOST_CARRIED = 32
"""Archives that travel along and are looked into; each is opened as a file of its own."""


def judge_records(document: TorchDocument, probe: Probe, indexes: Iterable[int], *, required: bool = True) -> None:
    """Judge the records at ``indexes`` as files; those that cannot be read are left to the rules on their container.

    ``required``: the whole needs them to be valid; else only what loading them could run counts.
    """
    state = document.evidence.get("nested", COMPLETE)
    for index in indexes:
        record = document.records[index]
        if record.span is None:
            document.has_code, document.followed = True, False
            continue
        limit = "nested_files" if probe.level >= probe.limits.nested_files else _too_large(document, probe, index)
        if limit is not None:
            document.has_code, document.followed = True, False
            state = Evidence("partial", Reason.LIMIT, detail=limit) if required else state
            continue
        source = _source_of(document, probe, index)
        if source is None:
            document.has_code, document.followed = True, False
            continue
        stored = isinstance(source, SliceSource)
        _judge(document, probe, source, record.name, record.span, record.span.offset if stored else None, required)
    if document.nested or state.state == "partial":
        document.evidence["nested"] = _state_of(document, state)


def _too_large(document: TorchDocument, probe: Probe, index: int) -> str | None:
    """The limit that a deflated record exceeds: it would have to be inflated into memory."""
    record = document.records[index]
    return "inflated_bytes" if record.method == "deflated" and record.size > probe.limits.inflated_bytes else None


def judge_carried(document: TorchDocument, probe: Probe, indexes: Iterable[int] | None = None) -> None:
    """Look into the archives among the files that travel along: whether they are valid is their own business, whether
    loading them runs anything is not. Pickles among them are looked at where they lie."""
    carried = (index for index, record in enumerate(document.records) if record.role in CARRYING_ROLES)
    archives = [index for index in (carried if indexes is None else indexes) if _is_archive(document, index)]
    judge_records(document, probe, archives[:MOST_CARRIED], required=False)
    if len(archives) > MOST_CARRIED:
        document.has_code, document.followed = True, False


def judge_unclaimed(document: TorchDocument, probe: Probe) -> None:
    """Look into the archives among the records that no reader of an eager file asks for."""
    named = {storage.record for storage in document.storages}
    rows = enumerate(document.records)
    orphans = (index for index, record in rows if record.role == "storage" and record.name not in named)
    others = (index for index, record in enumerate(document.records) if record.role in CARRYING_ROLES)
    judge_carried(document, probe, (*others, *orphans))


def _is_archive(document: TorchDocument, index: int) -> bool:
    head = contents(document, index, len(TORCH_HEADS[0]))
    return head is not None and head[0] == TORCH_HEADS[0]


def judge_archives(document: TorchDocument, probe: Probe, spans: Iterable[Span]) -> None:
    """Judge the parts of a file that are archives of their own (a shard of a distributed checkpoint)."""
    for number, span in enumerate(spans):
        opened = _judge(document, probe, SliceSource(probe.source, span), f"archive {number}", span, span.offset, True)
        if opened is not None:
            document.facts.setdefault(ARCHIVES, []).append(summary_of(opened))
    document.evidence["nested"] = _state_of(document, COMPLETE)


def _state_of(document: TorchDocument, state: Evidence) -> Evidence:
    if any(nested.verdict == "undetermined" and nested.required for nested in document.nested):
        return Evidence("partial", Reason.LIMIT, detail="a file inside could not be decided")
    return state if document.nested or state.state == "partial" else ABSENT


def _source_of(document: TorchDocument, probe: Probe, index: int) -> ByteSource | None:
    record = document.records[index]
    if record.method == "stored" and record.span is not None:
        return SliceSource(probe.source, record.span)
    read = contents(document, index, probe.limits.inflated_bytes)
    return BytesSource(read[0]) if read is not None and len(read[0]) == record.size else None


def verdict_on(source: ByteSource, name: str, probe: Probe) -> str:
    """The verdict on bytes taken as a file of their own, as deep as ``probe`` looks; `not-this-format` for other kinds."""
    judged = _judged(source, name, probe)
    return judged[1].verdict.value if judged is not None else "not-this-format"


def _judged(source: ByteSource, name: str, probe: Probe) -> tuple[TorchDocument, Status, list[Outcome]] | None:
    """Open a file inside ``probe``'s and run the rules over it; None where it is of another kind."""
    from fdd.formats.pytorch.format import FORMAT  # the plug-in opens documents, and documents hold files

    inner = make_probe(source, name=name, path=None, limits=probe.limits, depth=probe.depth, level=probe.level + 1)
    found = identify(inner)
    if found is None:
        return None
    opened = FORMAT.open(inner, found)
    assert isinstance(opened, TorchDocument)
    if probe.depth == "full":
        FORMAT.read_payload(opened, ())
    outcomes = run_rules(FORMAT.catalogue, opened, findings_per_rule=1)
    status = decide(
        outcomes,
        depth=probe.depth,
        judged=found.format is not None,
        has_code=opened.has_code,
        followed=opened.followed,
        safety_basis=FORMAT.safety_basis,
    )
    return opened, status, outcomes


def _judge(
    document: TorchDocument, probe: Probe, source: ByteSource, label: str, span: Span, shift: int | None, required: bool
) -> TorchDocument | None:
    """Judge a file inside, and enter it into the document; what was opened, None where it is of another kind."""
    judged = _judged(source, label, probe)
    if judged is None:
        document.nested.append(NestedFile(label, span, "unknown", "not-this-format", None, (), required))
        if not required:
            role = "hidden" if document.kind in EAGER_KINDS else "carried"
            probe_archive(document, source, span, probe.limits, role, inflated=shift is None)
        return None
    opened, status, outcomes = judged
    failed = tuple(
        outcome.rule
        for outcome in outcomes
        if outcome.state is State.FAILED and outcome.level is Level.ERROR and outcome.axis is not Axis.SAFETY
    )
    document.nested.append(NestedFile(label, span, opened.kind, status.verdict.value, _safety(status), failed, required))
    _take_over(document, opened, label, shift, required)
    return opened


def _safety(status: Status) -> str | None:
    return status.safety.value if status.safety is not None else None


def _take_over(document: TorchDocument, opened: TorchDocument, label: str, shift: int | None, required: bool) -> None:
    """Let the outer file show what the inner one holds: code, storages and tensors, placed in the outer file."""
    document.has_code = document.has_code or opened.has_code
    document.followed = document.followed and opened.followed
    if not required:
        return
    prefix = document.local_name(label)
    order = byte_order(opened)
    moved: dict[int, Storage] = {}
    for storage in opened.storages:
        span = Span(storage.span.offset + shift, storage.span.length) if storage.span is not None and shift is not None else None
        moved[id(storage)] = replace(storage, span=span, source=label, byte_order=storage.byte_order or order)
    document.nested_storages.extend(moved.values())
    document.nested_tensors.extend(
        _moved(tensor, moved, f"{prefix}/{tensor.name}" if tensor.name else prefix) for tensor in opened.tensors
    )


def _moved(tensor: Tensor, storages: dict[int, Storage], name: str) -> Tensor:
    storage = storages.get(id(tensor.storage)) if tensor.storage is not None else None
    components = {key: _moved(part, storages, part.name) for key, part in tensor.components.items()}
    return replace(tensor, name=name, storage=storage, components=components, offset=None)
