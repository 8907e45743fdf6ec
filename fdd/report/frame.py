# SPDX-License-Identifier: Apache-2.0
"""The shape of a whole report, for forms that are written and read part by part (XML). The JSON Schema has its own frame
by hand; a test holds both against every report of the corpus."""

from __future__ import annotations

from fdd.core.finding import Axis, Level, Reason, Safety, Verdict
from fdd.core.shapes import Anything, Counts, Field, Flag, Integer, ListOf, Number, Shape, Struct, Text, Texts
from fdd.formats.vocabulary import PROPERTIES


def _field(shape: Shape, *, nullable: bool = False) -> Field:
    return Field(shape, "", nullable=nullable)


def _struct(**shapes: Shape | Field) -> Struct:
    return Struct({name: shape if isinstance(shape, Field) else _field(shape) for name, shape in shapes.items()})


def _nullable(shape: Shape) -> Field:
    return _field(shape, nullable=True)


_PLACE = {"offset": Integer(), "length": Integer()}
_FINDING = _struct(
    rule=Text(),
    name=Text(),
    axis=Text(tuple(Axis)),
    level=Text(tuple(Level)),
    clause=Text(),
    message=Text(),
    remedy=Text(),
    record=Text(),
    **_PLACE,
    tensor=Text(),
    count=Integer(1),
)
FINDINGS = ListOf(_FINDING, "finding")
_NOT_EVALUATED = _struct(rule=Text(), reason=Text(tuple(Reason)), by=Text(), detail=Text())
RECORD = _struct(name=Text(), role=Text(), **_PLACE, size=Integer(None), method=Text(), crc32=Text(), digests=Texts())
SEGMENTS = ListOf(
    _struct(
        kind=Text(),
        **_PLACE,
        record=Text(),
        tensors=ListOf(Text(), "name"),
        first_bad_block=_struct(**_PLACE),
        last_bad_block=_struct(**_PLACE),
        found_at=Integer(),
    ),
    "segment",
)
"""Parts of a file that are not as a fixity manifest recorded them. No report has them; the event of a check does."""
_TENSOR_FIELDS: dict[str, Field] = {
    "name": _field(Text()),
    "dtype": _nullable(Text()),
    "shape": _nullable(ListOf(Integer(None), "size")),
    "stride": _nullable(ListOf(Integer(None), "step")),
    "storage_offset": _nullable(Integer(None)),
    "layout": _field(Text()),
    "record": _nullable(Text()),
    "offset": _field(Integer()),
    "length": _field(Integer()),
    "location": _nullable(Text()),
    "parameter": _field(Flag()),
    "requires_grad": _field(Flag()),
    "conjugate": _field(Flag()),
    "negative": _field(Flag()),
    "class": _field(Text()),
    "quantization": _field(Text()),
}
TENSOR = Struct(_TENSOR_FIELDS)
_TENSOR_FIELDS["components"] = _field(ListOf(TENSOR, "tensor"))
"""A tensor is made of tensors: the shape refers to itself."""

REPORT = _struct(
    report_version=Text(),
    tool=_struct(name=Text(), version=Text(), catalogue=Text(), catalogue_sha256=Text()),
    run=_struct(started=Text(), seconds=Number(), bytes_read=Integer(), python=Text(), platform=Text()),
    options=Anything(),
    file=_struct(path=Text(), name=Text(), size=Integer(), modified=Text()),
    error=_struct(message=Text(), internal=Flag()),
    identification=_struct(
        kind=Text(),
        format=_nullable(Text()),
        name=Text(),
        version=_nullable(Text()),
        confidence=Text(("signature", "container", "structure", "name")),
        registries=ListOf(_struct(registry=Text(), id=Text(), note=Text()), "entry"),
        mime=_nullable(Text()),
        extension_matches=_nullable(Flag()),
        basis=ListOf(_struct(what=Text(), **_PLACE), "evidence"),
        note=Text(),
        details=Anything(),
    ),
    status=_struct(
        verdict=Text(tuple(Verdict)),
        text=Text(),
        well_formed=_nullable(Flag()),
        valid=_nullable(Flag()),
        depth=Text(),
        complete=Flag(),
        safety=_nullable(Text(tuple(Safety))),
        safety_basis=_nullable(Text()),
        counts=Counts(),
        rules=Counts(),
        profiles=ListOf(Anything(), "profile"),
    ),
    findings=FINDINGS,
    not_evaluated=ListOf(_NOT_EVALUATED, "rule"),
    not_requested=ListOf(Text(), "rule"),
    outcomes=Texts(),
    properties=PROPERTIES,
    records=ListOf(RECORD, "record"),
    tensors=ListOf(TENSOR, "tensor"),
    statistics=ListOf(Anything(), "entry"),
    fixity=Anything(),
    digests=Texts(),
)
"""The parts of a report in their order. Words of `outcomes` are those of :class:`fdd.core.finding.State`."""
