# SPDX-License-Identifier: Apache-2.0
"""Runs the pickles of a file, those that hide in it too, and collects the globals they name."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.model import COMPLETE
from fdd.core.span import Span
from fdd.formats.pytorch import globals as lists
from fdd.formats.pytorch.document import GlobalUse, PickleRecord, TorchDocument
from fdd.formats.pytorch.hidden_starts import PROTO_HEAD, next_danger, next_pickle
from fdd.formats.pytorch.names import SCRIPT_KINDS
from fdd.formats.pytorch.survey import survey
from fdd.limits import Limits
from fdd.pickles import looks_like_pickle, run
from fdd.pickles.faults import ARGUMENT_PAST_END, NEGATIVE_LENGTH, NO_NEWLINE, NO_STOP
from fdd.pickles.nodes import ByteArrayNode, Call, DictNode, Global, ListNode, PickleFacts, Value
from fdd.pickles.opcodes import BY_NAME

PROBE_BYTES = 1 << 16
"""How much of an unknown record is looked at before it is read whole as a pickle."""
MOST_TRAILING = 1_000
"""Pickles behind STOP that are followed one after the other."""
SEARCHED_BYTES = 1 << 20
"""Bytes of no owner, or of an unknown record, that are searched for a pickle that begins further on."""
FIRST_PART_BYTES = 1 << 16
"""What is read of a stream at first to run one of its pickles."""
WANTS_MORE = frozenset({NO_STOP, ARGUMENT_PAST_END, NO_NEWLINE})
"""Faults of a pickle that is cut off, or that another few bytes would make whole."""
ZIP_HEAD = b"PK\x03\x04"
SCRIPT_ROLES = frozenset({"ts-code", "debug"})
"""Pickles of scripts in files of other kinds (packages)."""


def run_pickle(
    document: TorchDocument, data: bytes, *, role: str, record: str | None, span: Span, shift: int | None, limits: Limits
) -> PickleRecord:
    """Run the pickle at the start of ``data``, enter it with those behind its STOP and those in its strings."""
    pickle = _enter(document, data, 0, role, record, span, shift, limits)
    trailing = "trailing" if pickle.judged else role
    if pickle.facts.stopped:
        _enter_following(document, data, pickle, trailing, limits)
    return pickle


def run_part(document: TorchDocument, start: int, end: int, *, role: str, record: str, limits: Limits) -> PickleRecord:
    """Run the one pickle that begins at offset ``start`` of the file, and enter it: a part of a stream.

    Its length is not known before it has run: more and more is read, as long as the run ends for want of bytes and
    ``end`` is not reached. The span of what is returned ends behind STOP, or where the run stopped.
    """
    most = min(end - start, limits.pickle_bytes + 1)  # one byte above the limit lets the run see that it was reached
    length = min(most, FIRST_PART_BYTES)
    while True:
        data = document.source.read_at(start, length)
        facts = run(data, limits=limits)
        if length >= most or facts.stopped or not _wants_more(facts):
            break
        length = min(most, length * 8)
    used = facts.end if facts.stopped else length
    pickle = _entered(document, data[:used], facts, role, record, Span(start, used), start, 0)
    _enter_nested(document, pickle, limits)
    return pickle


def _wants_more(facts: PickleFacts) -> bool:
    return any(fault.fatal and fault.code in WANTS_MORE for fault in facts.faults)


def _enter_following(document: TorchDocument, data: bytes, first: PickleRecord, role: str, limits: Limits) -> None:
    position = first.facts.end
    for _ in range(MOST_TRAILING):
        start = next_pickle(document, data, position, limits)
        if start is None:
            return
        following = _enter(document, data, start, role, first.record, first.span, first.shift, limits, first.level)
        position = max(following.facts.end, start + 1)
    if next_pickle(document, data, position, limits) is not None:
        document.followed = False


def _enter(
    document: TorchDocument,
    data: bytes,
    start: int,
    role: str,
    record: str | None,
    span: Span,
    shift: int | None,
    limits: Limits,
    level: int = 0,
) -> PickleRecord:
    facts = run(data, start=start, limits=limits)
    pickle = _entered(document, data, facts, role, record, span, shift, level)
    _enter_nested(document, pickle, limits)
    return pickle


def _entered(
    document: TorchDocument,
    data: bytes,
    facts: PickleFacts,
    role: str,
    record: str | None,
    span: Span,
    shift: int | None,
    level: int,
) -> PickleRecord:
    pickle = PickleRecord(record, role, facts, span, shift, len(data), level, survey(facts), announced_length(data, facts))
    document.pickles.append(pickle)
    document.has_code = True
    if not facts.stopped:
        document.followed = False
    return pickle


def _enter_nested(document: TorchDocument, pickle: PickleRecord, limits: Limits) -> None:
    for place, inner in _nested(pickle):
        if pickle.level >= limits.nested_pickles or inner.startswith(ZIP_HEAD):
            document.followed = False
            continue
        first = _enter(document, inner, 0, "nested", pickle.record, place, None, limits, pickle.level + 1)
        if first.facts.stopped:
            _enter_following(document, inner, first, "nested", limits)


def announced_length(data: bytes, facts: PickleFacts) -> tuple[int, int] | None:
    """The length that leads past the end, where one ended the run: as it must be read, and with its bytes turned round."""
    fault = next((fault for fault in facts.faults if fault.fatal and fault.code in (ARGUMENT_PAST_END, NEGATIVE_LENGTH)), None)
    size = BY_NAME[fault.opcode].form.prefix if fault is not None and fault.opcode in BY_NAME else 0
    if fault is None or not size or fault.offset + 1 + size > len(data):
        return None
    prefix = bytes(data[fault.offset + 1 : fault.offset + 1 + size])
    signed = fault.code == NEGATIVE_LENGTH
    return int.from_bytes(prefix, "little", signed=signed), int.from_bytes(prefix, "big")


def _nested(pickle: PickleRecord) -> Iterator[tuple[Span, bytes]]:
    """Strings and bytes that a call gets and that are pickles themselves, or ZIP archives, which may hold one."""
    for event in pickle.facts.events:
        call = event.value
        if event.what != "call" or not isinstance(call, Call) or _makes_tensor(call):
            continue
        for argument in _handed_over(call):
            data = _bytes_of(argument)
            if data is not None and len(data) > 1 and (looks_like_pickle(data) or data.startswith(ZIP_HEAD)):
                yield pickle.place(event.offset), data


def _makes_tensor(call: Call) -> bool:
    """The calls that large files are full of; none of their arguments is read as a pickle."""
    function = call.function
    return isinstance(function, Global) and function.module == "torch._utils" and function.name.startswith("_rebuild_")


def _handed_over(call: Call) -> Iterator[Value]:
    """What a call gets: arguments, keyword arguments and states, and what lies directly in those that are sequences."""
    for value in (*_parts(call.args), *_parts(call.kwargs), *(call.state or ())):
        yield value
        if isinstance(value, (tuple, ListNode)):
            yield from _parts(value)


def _parts(value: Value) -> list[Value]:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, ListNode):
        return value.items
    if isinstance(value, DictNode):
        return value.pairs[1::2]
    return [] if value is None else [value]


def _bytes_of(argument: Value) -> bytes | None:
    if isinstance(argument, bytes):
        return argument
    if isinstance(argument, ByteArrayNode):
        return argument.data
    if isinstance(argument, str):
        # Protocol 2 writes bytes as _codecs.encode(text, 'latin1'); protocol 0 pickles may stand as plain text.
        try:
            return argument.encode("latin-1")
        except UnicodeEncodeError:
            return None
    return None


def probe_hidden(
    document: TorchDocument, span: Span, record: str | None, limits: Limits, data: bytes | None = None, role: str = "hidden"
) -> bool:
    """Run what looks like a pickle in bytes that should hold none; whether there was one.

    ``data`` are the contents where they are not the stored bytes of ``span`` (deflated).
    """
    head = data if data is not None else document.source.read_at(span.offset, min(span.length, PROBE_BYTES))
    if not head or not (looks_like_pickle(head) or _may_go_on(head, span, data)):
        return False
    stored = data is None
    if data is None:
        data = document.source.read_at(span.offset, min(span.length, limits.pickle_bytes))
        if not looks_like_pickle(data):
            return False
    if _only_prose(data, limits):
        return False
    shift = span.offset if stored or len(data) == span.length else None
    run_pickle(document, data, role=role, record=record, span=span, shift=shift, limits=limits)
    return True


def probe_unowned(
    document: TorchDocument,
    span: Span,
    limits: Limits,
    record: str | None = None,
    data: bytes | None = None,
    role: str = "hidden",
) -> bool:
    """Run what looks like a pickle in bytes of no use: at their begin any pickle, further on one that names danger.

    Where such bytes begin is chance, so a byte in front must not hide a pickle. Whether there was one.
    """
    if probe_hidden(document, span, record, limits, data, role):
        return True
    searched = data if data is not None else document.source.read_at(span.offset, min(span.length, SEARCHED_BYTES))
    start = next_danger(document, searched[:SEARCHED_BYTES], 1, limits)
    if start is None:
        return False
    rest = Span(span.offset + start, span.length - start) if data is None else span
    return probe_hidden(document, rest, record, limits, data[start:] if data is not None else None, role)


def _may_go_on(head: bytes, span: Span, data: bytes | None) -> bool:
    """A pickle longer than the probe, whose first opcodes are all right but which names nothing so early."""
    return data is None and span.length > len(head) and head[:1] == b"\x80" and head[1:2] <= b"\x05"


def _only_prose(data: bytes, limits: Limits) -> bool:
    """Lines of text that begin like a GLOBAL by chance (`cat`, `dog`): no PROTO, no end, nothing called, no bad name."""
    if PROTO_HEAD.match(data):
        return False
    facts = run(data, limits=limits)
    names = [event.value for event in facts.events if event.what == "global"]
    only_names = len(names) == len(facts.events)
    return not facts.stopped and only_names and all(lists.grade(name.module, name.name) == "unlisted" for name in names)


def collect_globals(document: TorchDocument, script_classes: frozenset[str] = frozenset()) -> None:
    """Fill ``document.globals`` from the event logs of all pickles, in stream order, and state the evidence `safety`.

    ``script_classes`` are modules that have a code file in the archive; those the reader of scripts found are added. In
    the pickles of the TorchScript family they,
    everything below `__torch__` and the helpers of `torch.jit._pickle` are listed: their reader imports nothing.
    """
    script = document.kind in SCRIPT_KINDS
    script_facts = document.facts.get("script")
    if script_facts is not None:
        script_classes |= script_facts.modules
    uses: dict[tuple[str, str, str], GlobalUse] = {}
    for pickle in document.pickles:
        script_pickle = (pickle.judged or pickle.role == "lost") and (script or pickle.role in SCRIPT_ROLES)
        for event in pickle.facts.events:
            if event.what == "global" and isinstance(event.value, Global):
                _count(uses, pickle, event.value, event.offset, script_pickle, script_classes)
            elif event.what == "call" and isinstance(event.value, Call) and isinstance(event.value.function, Global):
                use = uses.get(_key(pickle, event.value.function))
                if use is not None:
                    use.called = True
    document.globals = list(uses.values())
    if document.has_code:
        document.evidence["safety"] = COMPLETE


def _key(pickle: PickleRecord, node: Global) -> tuple[str, str, str]:
    role = pickle.role if not pickle.judged else "judged"
    return role, node.module, node.name


def _count(
    uses: dict[tuple[str, str, str], GlobalUse],
    pickle: PickleRecord,
    node: Global,
    offset: int,
    script_pickle: bool,
    script_classes: frozenset[str],
) -> None:
    key = _key(pickle, node)
    use = uses.get(key)
    if use is None:
        own = script_pickle and _script_class(node, script_classes)
        grade = "listed" if own else lists.grade(node.module, node.name)
        place = pickle.place(offset, global_length(pickle, node))
        uses[key] = GlobalUse(node.module, node.name, grade, pickle.record, place, role=pickle.role)
    else:
        use.count += 1


def global_length(pickle: PickleRecord, node: Global) -> int:
    """Bytes of the opcode that names a global: text opcodes carry both names and two newlines, STACK_GLOBAL is one byte."""
    if pickle.shift is None or "STACK_GLOBAL" in pickle.facts.opcodes:
        return 1
    return len(node.module.encode("utf-8", "replace")) + len(node.name.encode("utf-8", "replace")) + 3


def _script_class(node: Global, script_classes: frozenset[str]) -> bool:
    path = node.path
    return path.startswith(("__torch__.", "torch.jit._pickle.")) or path.rpartition(".")[0] in script_classes
