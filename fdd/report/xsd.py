# SPDX-License-Identifier: Apache-2.0
"""The XML Schema of reports, made from their shape; ``tools/generate.py`` writes it to ``schemas/``."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from fdd.core.shapes import Anything, Counts, Field, Flag, Integer, ListOf, Number, Shape, Struct, Text, Texts, camel
from fdd.report.frame import FINDINGS, RECORD, REPORT, SEGMENTS, TENSOR
from fdd.report.xml_codec import NAMESPACE

_HEAD = f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- Written by tools/generate.py from fdd/report/frame.py and fdd/formats/vocabulary.py: change those, not this file. -->
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="{NAMESPACE}" targetNamespace="{NAMESPACE}"
           elementFormDefault="qualified" version="1.0">
  <xs:complexType name="text">
    <xs:annotation><xs:documentation>A text. With encoding="percent" it is percent-encoded UTF-8: it holds characters that
    XML cannot carry.</xs:documentation></xs:annotation>
    <xs:simpleContent>
      <xs:extension base="xs:string"><xs:attribute name="encoding" type="encoding"/></xs:extension>
    </xs:simpleContent>
  </xs:complexType>
  <xs:simpleType name="encoding">
    <xs:restriction base="xs:string"><xs:enumeration value="percent"/></xs:restriction>
  </xs:simpleType>
  <xs:complexType name="mapping">
    <xs:sequence><xs:element name="entry" minOccurs="0" maxOccurs="unbounded"><xs:complexType><xs:sequence>
      <xs:element name="key" type="text"/><xs:element name="value" type="text"/>
    </xs:sequence></xs:complexType></xs:element></xs:sequence>
  </xs:complexType>
  <xs:complexType name="data" mixed="true">
    <xs:annotation><xs:documentation>Plain data of any shape, as JSON has it; type tells which.</xs:documentation></xs:annotation>
    <xs:choice minOccurs="0" maxOccurs="unbounded">
      <xs:element name="entry"><xs:complexType><xs:sequence>
        <xs:element name="key" type="text"/><xs:element name="value" type="data"/>
      </xs:sequence></xs:complexType></xs:element>
      <xs:element name="item" type="data"/>
    </xs:choice>
    <xs:attribute name="type" use="required"><xs:simpleType><xs:restriction base="xs:string">
      <xs:enumeration value="object"/><xs:enumeration value="array"/><xs:enumeration value="string"/>
      <xs:enumeration value="number"/><xs:enumeration value="integer"/><xs:enumeration value="boolean"/>
      <xs:enumeration value="null"/>
    </xs:restriction></xs:simpleType></xs:attribute>
    <xs:attribute name="encoding" type="encoding"/>
  </xs:complexType>
"""
_TAIL = """  <xs:element name="report" type="report"/>
  <xs:element name="reports"><xs:complexType><xs:sequence>
    <xs:element ref="report" minOccurs="0" maxOccurs="unbounded"/>
    <xs:element name="set" type="data" minOccurs="0" maxOccurs="unbounded"/>
    <xs:element name="summary" type="data"/>
  </xs:sequence><xs:attribute name="version" use="required" fixed="1.0"/></xs:complexType></xs:element>
</xs:schema>
"""
PARTS: dict[str, Shape] = {"findings": FINDINGS, "profile": Anything(), "record": RECORD, "segments": SEGMENTS}
"""Parts of a report that stand alone in the extensions of PREMIS documents: name of the element -> shape."""


def report_xsd() -> str:
    """The whole schema."""
    parts = [_HEAD, '  <xs:complexType name="tensor">\n', *_struct(TENSOR, 2), "  </xs:complexType>\n"]
    for name, shape in PARTS.items():
        parts += _typed(f'name="{name}"', shape, 1, "")
    parts += ['  <xs:complexType name="report">\n', *_struct(REPORT, 2), "  </xs:complexType>\n", _TAIL]
    return "".join(parts)


def _struct(shape: Struct, depth: int) -> list[str]:
    indent = "  " * depth
    lines = [f"{indent}<xs:sequence>\n"]
    for name, field in shape.fields.items():
        lines += _element(camel(name), field, depth + 1)
    return [*lines, f"{indent}</xs:sequence>\n"]


def _element(name: str, field: Field, depth: int) -> list[str]:
    indent = "  " * depth
    # What may be null may be left out too: inside documents of others it is.
    required = field.required and not field.nullable
    attributes = f'name="{name}"' + ("" if required else ' minOccurs="0"') + (' nillable="true"' if field.nullable else "")
    return _typed(attributes, field.shape, depth, _documentation(field, indent))


def _documentation(field: Field, indent: str) -> str:
    if not field.meaning:
        return ""
    unit = f" ({field.unit})" if field.unit else ""
    return f"{indent}  <xs:annotation><xs:documentation>{escape(field.meaning + unit)}</xs:documentation></xs:annotation>\n"


def _typed(attributes: str, shape: Shape, depth: int, documentation: str) -> list[str]:
    """An element whose type follows from a shape."""
    indent = "  " * depth
    if shape is TENSOR:
        return [f'{indent}<xs:element {attributes} type="tensor"/>\n']
    simple = _simple(shape)
    if simple is not None:
        if not documentation:
            return [f'{indent}<xs:element {attributes} type="{simple}"/>\n']
        return [f'{indent}<xs:element {attributes} type="{simple}">\n', documentation, f"{indent}</xs:element>\n"]
    lines = [f"{indent}<xs:element {attributes}>\n", documentation]
    if isinstance(shape, Text):
        values = "".join(f"<xs:enumeration value={quoteattr(word)}/>" for word in shape.words)
        lines.append(f'{indent}  <xs:simpleType><xs:restriction base="xs:string">{values}</xs:restriction></xs:simpleType>\n')
    elif isinstance(shape, ListOf):
        lines.append(f"{indent}  <xs:complexType><xs:sequence>\n")
        lines += _typed(f'name="{camel(shape.item)}" minOccurs="0" maxOccurs="unbounded"', shape.shape, depth + 2, "")
        lines.append(f"{indent}  </xs:sequence></xs:complexType>\n")
    elif isinstance(shape, Struct):
        lines += [f"{indent}  <xs:complexType>\n", *_struct(shape, depth + 2), f"{indent}  </xs:complexType>\n"]
    return [*lines, f"{indent}</xs:element>\n"]


def _simple(shape: Shape) -> str | None:
    """The name of a type that needs no definition of its own."""
    match shape:
        case Text(()):
            return "text"
        case Integer(least):
            return {None: "xs:integer", 0: "xs:nonNegativeInteger"}.get(least, "xs:positiveInteger")
        case Number():
            return "xs:double"
        case Flag():
            return "xs:boolean"
        case Counts() | Texts():
            return "mapping"
        case Anything():
            return "data"
    return None
