# SPDX-License-Identifier: Apache-2.0
"""Rules on the protocol that a pickle states (PT-PKL)."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import PickleRecord, TorchDocument
from fdd.formats.pytorch.rules.catalogue import PICKLED, rule
from fdd.pickles.opcodes import HIGHEST_PROTOCOL

FROM_SOURCE = "Get the file again from its source; what stands in front of this place can still be read."
USUAL_PROTOCOL = 2
PACKAGE_PROTOCOL = 3
"""torch.package writes all its pickles so, and has a reader of its own."""


@rule(
    "PT-PKL-001",
    "protocol-not-stated",
    axis="valid",
    level="warning",
    clause="pickle.protocol",
    kinds=PICKLED,
    needs=("pickle",),
    title="A pickle begins with its protocol number.",
    message="the pickle does not begin with PROTO: it is of protocol 0 or 1",
    remedy="Keep the file; for use, load it with a torch of its time and save it again with the default protocol.",
)
def protocol_not_stated(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: without this opcode nothing at the start tells a pickle from other bytes, and torch.load refuses the
    texts of protocol 0 for storages.

    References: PEP 307; format.md 2.1.
    """
    for pickle in document.judged_pickles():
        protocols = pickle.facts.protocols
        if pickle.facts.opcode_count and (not protocols or protocols[0][0] != pickle.facts.start):
            yield at(pickle.place(pickle.facts.start), record=pickle.record)


@rule(
    "PT-PKL-002",
    "protocol-unknown",
    axis="well-formed",
    level="error",
    clause="pickle.protocol",
    kinds=PICKLED,
    needs=("pickle",),
    title="The protocol number is one that exists.",
    message="PROTO says {protocol}; the highest protocol is {highest}",
    remedy=FROM_SOURCE,
)
def protocol_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: Python stops here. torch's restricted loader only warns, so readers differ.

    References: Python documentation, pickle, data stream format; format.md 1.16.
    """
    for pickle in document.judged_pickles():
        for offset, protocol in pickle.facts.protocols:
            if protocol > HIGHEST_PROTOCOL:
                yield at(pickle.place(offset, 2), record=pickle.record, protocol=protocol, highest=HIGHEST_PROTOCOL)


@rule(
    "PT-PKL-003",
    "protocol-unusual",
    axis="valid",
    level="warning",
    clause="pickle.protocol",
    kinds=PICKLED,
    needs=("pickle",),
    title="The protocol is 2.",
    message="the pickle is of protocol {protocol}; torch.save writes 2 unless it is told otherwise",
    remedy="Keep the file; to load it, torch needs weights_only=False (protocols 4 and 5: FRAME is refused otherwise).",
)
def protocol_unusual(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the safe way to load a file, torch.load with weights_only, stops at opcodes of protocols 4 and 5.

    References: PEP 3154, 574; format.md 2.1.
    """
    for pickle, place, protocol in _protocols(document):
        if protocol not in (USUAL_PROTOCOL, 3) and protocol <= HIGHEST_PROTOCOL:
            yield at(place, record=pickle.record, protocol=protocol)


@rule(
    "PT-PKL-031",
    "protocol-3",
    axis="advice",
    level="info",
    clause="pickle.protocol",
    kinds=PICKLED - {"torch-package"},
    needs=("pickle",),
    title="The protocol is 2 (3 is read as well).",
    message="the pickle is of protocol 3; torch.save writes 2 unless it is told otherwise",
    remedy="Nothing to do: torch reads it, except bytes objects with weights_only.",
)
def protocol_3(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: it tells that the writer was told to use another protocol than the default.

    References: format.md 2.1.
    """
    for pickle, place, protocol in _protocols(document):
        if protocol == PACKAGE_PROTOCOL:
            yield at(place, record=pickle.record)


def _protocols(document: TorchDocument) -> Iterator[tuple[PickleRecord, Span, int]]:
    for pickle in document.judged_pickles():
        for offset, protocol in pickle.facts.protocols[:1]:
            yield pickle, pickle.place(offset, 2), protocol


@rule(
    "PT-PKL-027",
    "second-protocol",
    axis="valid",
    level="error",
    clause="pickle.protocol",
    kinds=PICKLED,
    needs=("pickle",),
    per="record",
    title="The protocol is stated once.",
    message="another PROTO, {protocol}, stands inside the pickle",
    remedy="Find out how the file was made: no pickler changes the protocol on the way.",
)
def second_protocol(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers map old names by the protocol they saw last, so the same names can mean different things.

    References: Python source, pickle; pickle-analysis.md, section 4.
    """
    for pickle in document.judged_pickles():
        for offset, protocol in pickle.facts.protocols[1:]:
            yield at(pickle.place(offset, 2), record=pickle.record, protocol=protocol)
