# SPDX-License-Identifier: Apache-2.0
"""Runs the pickles of a file, those that hide in it too, and collects the globals they name."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.span import Span
from fdd.formats.pytorch import globals as lists
from fdd.formats.pytorch.document import GlobalUse, PickleRecord, TorchDocument
from fdd.formats.pytorch.names import SCRIPT_KINDS
from fdd.limits import Limits
from fdd.pickles import looks_like_pickle, run
from fdd.pickles.nodes import ByteArrayNode, Call, Global, Value

PROBE_BYTES = 1 << 16
"""How much of an unknown record is looked at before it is read whole as a pickle."""
MOST_TRAILING = 64
"""Pickles behind STOP that are followed one after the other."""


def run_pickle(
    document: TorchDocument, data: bytes, *, role: str, record: str | None, span: Span, shift: int | None, limits: Limits
) -> PickleRecord:
    """Run the pickle at the start of ``data``, enter it with those behind its STOP and those in its strings."""
    pickle = _enter(document, data, 0, role, record, span, shift, limits)
    trailing = "trailing" if pickle.judged else role
    position = pickle.facts.end
    for _ in range(MOST_TRAILING):
        if not pickle.facts.stopped or position >= len(data) or not looks_like_pickle(data, position):
            break
        following = _enter(document, data, position, trailing, record, span, shift, limits)
        if not following.facts.stopped:
            break
        position = following.facts.end
    return pickle


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
    pickle = PickleRecord(record, role, facts, span, shift, len(data), level)
    document.pickles.append(pickle)
    document.has_code = True
    if not facts.stopped:
        document.followed = False
    if level >= limits.nested_pickles:
        return pickle
    for place, inner in _nested(pickle):
        _enter(document, inner, 0, "nested", record, place, None, limits, level + 1)
    return pickle


def _nested(pickle: PickleRecord) -> Iterator[tuple[Span, bytes]]:
    """Strings and bytes that a call gets and that are pickles themselves, or torch files around one."""
    for event in pickle.facts.events:
        call = event.value
        if event.what != "call" or not isinstance(call, Call) or not isinstance(call.args, tuple):
            continue
        for argument in call.args:
            data = _bytes_of(argument, call)
            if data is not None and len(data) > 1 and looks_like_pickle(data):
                yield pickle.place(event.offset), data


def _bytes_of(argument: Value, call: Call) -> bytes | None:
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
    if data is None:
        data = document.source.read_at(span.offset, min(span.length, limits.pickle_bytes))
        if not looks_like_pickle(data):
            return False
    run_pickle(document, data, role=role, record=record, span=span, shift=span.offset if len(data) <= span.length else None, limits=limits)
    return True


def _may_go_on(head: bytes, span: Span, data: bytes | None) -> bool:
    """A pickle longer than the probe, whose first opcodes are all right but which names nothing so early."""
    return data is None and span.length > len(head) and head[:1] == b"\x80" and head[1:2] <= b"\x05"


def collect_globals(document: TorchDocument, script_classes: frozenset[str] = frozenset()) -> None:
    """Fill ``document.globals`` from the event logs of all pickles, in stream order.

    ``script_classes`` are modules that have a code file in the archive. In the pickles of the TorchScript family they,
    everything below `__torch__` and the helpers of `torch.jit._pickle` are listed: their reader imports nothing.
    """
    script = document.kind in SCRIPT_KINDS
    uses: dict[tuple[str, str, str], GlobalUse] = {}
    for pickle in document.pickles:
        script_pickle = script and pickle.judged
        for event in pickle.facts.events:
            if event.what == "global" and isinstance(event.value, Global):
                _count(uses, pickle, event.value, event.offset, script_pickle, script_classes)
            elif event.what == "call" and isinstance(event.value, Call) and isinstance(event.value.function, Global):
                use = uses.get(_key(pickle, event.value.function))
                if use is not None:
                    use.called = True
    document.globals = list(uses.values())


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
        own = script_pickle and _script_class(node.path, script_classes)
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


def _script_class(path: str, script_classes: frozenset[str]) -> bool:
    if path.startswith(("__torch__.", "torch.jit._pickle.")):
        return True
    module, _, _ = path.rpartition(".")
    return module in script_classes
