# SPDX-License-Identifier: Apache-2.0
"""Rules on the stream of a pickle: protocol, opcodes and their arguments, stack, marks, frames, end."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import PickleRecord, TorchDocument
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, PICKLED, rule
from fdd.formats.pytorch.rules.pickle.facts import (
    INCOMPLETE,
    LENGTHS,
    MARKS,
    OPERANDS,
    STACK,
    TEXTS,
    fault_place,
    faults,
    named,
    opcode_place,
)
from fdd.pickles import faults as codes
from fdd.pickles.nodes import Extension, PickleFault
from fdd.pickles.opcodes import BY_NAME

FROM_SOURCE = "Get the file again from its source; what stands in front of this place can still be read."
USUAL_PROTOCOL = 2
PACKAGE_PROTOCOL = 3
"""torch.package writes all its pickles so, and has a reader of its own."""


@rule(
    "PT-PKL-004",
    "opcode-unknown",
    axis="well-formed",
    level="error",
    clause="pickle.opcodes",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="Every byte belongs to a known opcode or to its argument, which is all there.",
    message="{what}",
    remedy=FROM_SOURCE,
)
def opcode_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: every reader stops here. A file that breaks off behind a call has run that call already.

    References: Python source, pickletools; format.md 2.1.
    """
    for pickle, fault in faults(document, *INCOMPLETE):
        if fault.code != codes.ARGUMENT_PAST_END or pickle.announced is None:
            yield at(fault_place(pickle, fault), record=pickle.record, what=named(fault))


@rule(
    "PT-PKL-020",
    "length-past-end",
    axis="well-formed",
    level="error",
    clause="pickle.opcodes",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="What an opcode announces is there.",
    message="{opcode} announces {length} bytes, and {left} are left{explanation}",
    remedy=FROM_SOURCE,
)
def length_past_end(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers that trust the length ask for memory by it, or stop. TorchScript of torch 1.13 on s390x wrote
    the lengths of its texts with the bytes in the wrong order, so that no reader on another machine can open the file.

    References: Python source, pickletools; format.md 2.1.
    """
    for pickle, fault in faults(document, *LENGTHS):
        if pickle.announced is None:
            continue
        little, big = pickle.announced
        left = _left(pickle, fault)
        explanation = (
            f"; with its bytes the other way round the length is {big} and fits: a writer on a big-endian machine"
            " (TorchScript of torch 1.13 on s390x did so) stored the lengths in its own byte order"
            if big <= left
            else ""
        )
        yield at(
            fault_place(pickle, fault),
            record=pickle.record,
            opcode=fault.opcode,
            length=little,
            left=left,
            explanation=explanation,
        )


def _left(pickle: PickleRecord, fault: PickleFault) -> int:
    """Bytes behind the length of the opcode that is at fault."""
    return pickle.data_length - fault.offset - 1 - BY_NAME[fault.opcode].form.prefix


@rule(
    "PT-PKL-005",
    "stop-missing",
    axis="well-formed",
    level="error",
    clause="pickle.stream",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="A pickle ends with STOP.",
    message="the pickle ends without STOP",
    remedy=FROM_SOURCE,
)
def stop_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: no reader returns an object. The bytes behind this place are lost, or were never written.

    References: Python source, pickletools; format.md 1.16.
    """
    for pickle, fault in faults(document, codes.NO_STOP):
        yield at(fault_place(pickle, fault), record=pickle.record)


@rule(
    "PT-PKL-006",
    "bytes-after-stop",
    axis="valid",
    level="error",
    clause="pickle.stream",
    kinds=PICKLED & ARCHIVES,
    needs=("pickle",),
    per="record",
    title="Nothing follows STOP.",
    message="{length} bytes follow the end of the pickle",
    remedy="Find out where the bytes come from; no torch writes any, and torch.load ignores them.",
)
def bytes_after_stop(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers end at STOP, so whatever follows is out of sight; scanners that read one pickle miss a second.

    References: format.md 1.16.
    """
    for pickle in document.judged_pickles():
        length = pickle.data_length - pickle.facts.end
        if pickle.facts.stopped and length > 0:
            yield at(pickle.place(pickle.facts.end, length), record=pickle.record, length=length)


@rule(
    "PT-PKL-007",
    "stack-underflow",
    axis="well-formed",
    level="error",
    clause="pickle.stack",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="Every opcode finds what it takes on the stack.",
    message="{what}",
    remedy=FROM_SOURCE,
)
def stack_underflow(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: every reader stops here; what the opcodes in front of it call has run by then.

    References: Python source, pickletools; format.md 1.16.
    """
    for pickle, fault in faults(document, *STACK):
        yield at(fault_place(pickle, fault), record=pickle.record, what=named(fault))


@rule(
    "PT-PKL-008",
    "mark-unbalanced",
    axis="well-formed",
    level="error",
    clause="pickle.stack",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="Every MARK is closed, and no opcode takes what lies below one.",
    message="{what}",
    remedy=FROM_SOURCE,
)
def mark_unbalanced(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers stop, or go on in different ways: Python leaves open marks alone, a stricter reader does not.

    References: Python source, pickletools; format.md 1.16.
    """
    for pickle, fault in faults(document, *MARKS):
        yield at(fault_place(pickle, fault), record=pickle.record, what=named(fault))


@rule(
    "PT-PKL-009",
    "items-left",
    axis="well-formed",
    level="error",
    clause="pickle.stack",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="At STOP the stack holds the result and nothing else.",
    message="below the result, {count} more on the stack at STOP",
    remedy="Find out how the file was made: no pickler leaves anything behind, and what was left was made all the same.",
)
def items_left(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers return the last item and drop the others unseen, which is a way to hide a call.

    References: Python source, pickletools; contract, section 6.
    """
    for pickle, fault in faults(document, codes.ITEMS_LEFT):
        yield at(fault_place(pickle, fault), record=pickle.record, count=pickle.facts.stack_left)


@rule(
    "PT-PKL-012",
    "text-not-utf8",
    axis="well-formed",
    level="error",
    clause="pickle.opcodes",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="Texts and names are UTF-8.",
    message="{what}",
    remedy=FROM_SOURCE,
)
def text_not_utf8(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers stop at a text they cannot decode; a single damaged byte in a parameter name is enough.

    References: Python source, pickletools.
    """
    for pickle, fault in faults(document, codes.BAD_UTF8):
        yield at(fault_place(pickle, fault), record=pickle.record, what=named(fault))


@rule(
    "PT-PKL-030",
    "text-irregular",
    axis="valid",
    level="warning",
    clause="pickle.opcodes",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="Texts hold whole characters, and byte strings of Python 2 are UTF-8.",
    message="a text holds half a surrogate pair, or a byte string of Python 2 is not UTF-8",
    remedy="Note the encoding the writer used, if it is known: it decides how such texts are read.",
)
def text_irregular(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: Python reads the former but cannot write them out again; of the latter nobody knows the encoding.

    References: PEP 383; Python documentation, pickle.load, encoding.
    """
    for pickle in document.judged_pickles():
        for offset, length in pickle.facts.undecodable_texts:
            yield at(pickle.place(offset, length), record=pickle.record)


@rule(
    "PT-PKL-013",
    "frame-wrong",
    axis="well-formed",
    level="error",
    clause="pickle.stream",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="A FRAME ends between two opcodes of the pickle, and none lies in another.",
    message="{what}",
    remedy=FROM_SOURCE,
)
def frame_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: Python's two unpicklers treat wrong frames differently; one reads on where the other stops.

    References: PEP 3154, framing.
    """
    words = {
        codes.FRAME_PAST_END: "a FRAME ends behind the end of the pickle",
        codes.FRAME_INSIDE_OPCODE: "a FRAME ends inside an opcode",
        codes.FRAME_NESTED: "a FRAME begins inside another",
    }
    for pickle, fault in faults(document, *words):
        yield at(fault_place(pickle, fault), record=pickle.record, what=words[fault.code])


@rule(
    "PT-PKL-022",
    "text-argument-wrong",
    axis="well-formed",
    level="error",
    clause="pickle.opcodes",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="Numbers and strings of the text opcodes are written plainly.",
    message="{what}",
    remedy=FROM_SOURCE,
)
def text_argument_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: how ` 1_0` or `0x10` is read depends on the function a reader happens to use, so that two readers may
    take different memo entries.

    References: Python source, pickletools; contract, section 6.
    """
    for pickle, fault in faults(document, *TEXTS):
        yield at(fault_place(pickle, fault), record=pickle.record, what=named(fault))


@rule(
    "PT-PKL-023",
    "operand-wrong",
    axis="well-formed",
    level="error",
    clause="pickle.stack",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="Opcodes find operands of the kind they take.",
    message="{what}",
    remedy=FROM_SOURCE,
)
def operand_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: arguments that are no tuple, names that are no texts or keys without values are read by no loader, or
    by some only.

    References: Python source, pickletools; contract, section 6.
    """
    for pickle, fault in faults(document, *OPERANDS):
        yield at(fault_place(pickle, fault), record=pickle.record, what=named(fault))


@rule(
    "PT-PKL-024",
    "extension-code-wrong",
    axis="well-formed",
    level="error",
    clause="pickle.opcodes",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="Codes of the extension registry are positive.",
    message="{what}",
    remedy=FROM_SOURCE,
)
def extension_code_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: no such code can be registered; every reader stops.

    References: PEP 307, extension codes.
    """
    for pickle, fault in faults(document, codes.EXTENSION_CODE):
        yield at(fault_place(pickle, fault), record=pickle.record, what=named(fault))


@rule(
    "PT-PKL-025",
    "extension-opcode",
    axis="valid",
    level="error",
    clause="pickle.opcodes",
    kinds=PICKLED,
    needs=("pickle",),
    title="No class is named through the extension registry.",
    message="a class is named by the number {code}; which one it is depends on the registry of the running program",
    remedy="Find the program that wrote the file: the number means something only there.",
)
def extension_opcode(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the file does not say which class it needs, and Python resolves the number past every check of names.

    References: PEP 307, extension codes; pickle-analysis.md, section 2.
    """
    for pickle in document.judged_pickles():
        for event in pickle.facts.events:
            if event.what == "extension" and isinstance(event.value, Extension):
                yield at(pickle.place(event.offset, 2), record=pickle.record, code=event.value.code)


@rule(
    "PT-PKL-026",
    "buffer-out-of-band",
    axis="valid",
    level="error",
    clause="pickle.opcodes",
    kinds=PICKLED,
    needs=("pickle",),
    title="No buffer is expected from outside.",
    message="{opcode}: the pickle expects a buffer that is not in the file",
    remedy="Find the program that wrote the file; without its buffers the object is incomplete.",
)
def buffer_out_of_band(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: out-of-band buffers travel beside a pickle, and a torch file has no place for them.

    References: PEP 574.
    """
    for pickle in document.judged_pickles():
        for name in ("NEXT_BUFFER", "READONLY_BUFFER"):
            if name in pickle.facts.opcodes:
                yield at(opcode_place(pickle, name), record=pickle.record, opcode=name)
