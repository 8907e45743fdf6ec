# SPDX-License-Identifier: Apache-2.0
"""Plain data to XML and back, by its shape.

Objects become elements with a child for each field, lists a wrapper with one element an entry. Null is `xsi:nil`. Texts
that XML 1.0 cannot carry (control characters, lone surrogates) are percent-encoded, and the element says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote_to_bytes

from lxml import etree

from fdd.core.errors import UsageError
from fdd.core.shapes import Anything, Counts, Flag, Integer, ListOf, Number, Shape, Struct, Text, Texts, camel
from fdd.core.text import percent_encode

NAMESPACE = "urn:x-fdd:report:1.0"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
NIL = f"{{{XSI}}}nil"
OWN_NAMESPACE: Any = {None: NAMESPACE}
"""Ours as the default namespace: for elements of ours inside documents of others."""
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters outside production 2 of XML 1.0."""
ENCODING = "encoding"
PERCENT = "percent"
Element = etree._Element


def is_xml_text(text: str) -> bool:
    """Whether XML 1.0 can carry every character of a text."""
    return _FORBIDDEN.search(text) is None


@cache
def tag(name: str) -> str:
    """The qualified name of a field's element."""
    return f"{{{NAMESPACE}}}{camel(name)}"


def set_text(element: Element, text: str) -> None:
    """Give an element its text, percent-encoded where XML cannot carry it."""
    if not is_xml_text(text):
        element.set(ENCODING, PERCENT)
        text = percent_encode(text.encode("utf-8", "surrogatepass"))
    element.text = text


def get_text(element: Element) -> str:
    """The text of an element as it was given."""
    text = element.text or ""
    if element.get(ENCODING) == PERCENT:
        return unquote_to_bytes(text).decode("utf-8", "surrogatepass")
    return text


def write(element: Element, value: Any, shape: Shape) -> None:
    """Fill an element with a value of that shape."""
    if value is None:
        element.set(NIL, "true")
        return
    match shape:
        case Text():
            set_text(element, str(value))
        case Integer() | Number():
            element.text = repr(value)
        case Flag():
            element.text = "true" if value else "false"
        case Counts() | Texts():
            _write_mapping(element, value)
        case ListOf(inner, item):
            for entry in value:
                write(etree.SubElement(element, tag(item)), entry, inner)
        case Struct(fields):
            for name, field in fields.items():
                if name in value:
                    write(etree.SubElement(element, tag(name)), value[name], field.shape)
        case Anything():
            _write_any(element, value)


def _write_mapping(element: Element, value: Mapping[str, Any]) -> None:
    for key, entry in value.items():
        row = etree.SubElement(element, tag("entry"))
        set_text(etree.SubElement(row, tag("key")), key)
        set_text(etree.SubElement(row, tag("value")), str(entry))


def _write_any(element: Element, value: Any) -> None:
    kind = _kind(value)
    element.set("type", kind)
    if kind == "object":
        for key, entry in value.items():
            row = etree.SubElement(element, tag("entry"))
            set_text(etree.SubElement(row, tag("key")), str(key))
            _write_any(etree.SubElement(row, tag("value")), entry)
    elif kind == "array":
        for entry in value:
            _write_any(etree.SubElement(element, tag("item")), entry)
    elif kind == "string":
        set_text(element, value)
    elif kind == "boolean":
        element.text = "true" if value else "false"
    elif kind != "null":
        element.text = repr(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if isinstance(value, int) else "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def read(element: Element, shape: Shape) -> Any:
    """The value of an element. Raises :class:`UsageError` where it is not of the shape."""
    if element.get(NIL) == "true":
        return None
    try:
        return _read(element, shape)
    except (ValueError, KeyError) as error:
        raise UsageError(f"{etree.QName(element).localname}: {error}") from error


def _read(element: Element, shape: Shape) -> Any:
    match shape:
        case Text():
            return get_text(element)
        case Integer():
            return int(element.text or "")
        case Number():
            return float(element.text or "")
        case Flag():
            return {"true": True, "false": False}[element.text or ""]
        case Counts():
            return {key: int(value) for key, value in _read_mapping(element)}
        case Texts():
            return dict(_read_mapping(element))
        case ListOf(inner, _):
            return [read(child, inner) for child in element]
        case Struct(fields):
            by_tag = {tag(name): (name, field.shape) for name, field in fields.items()}
            return {by_tag[child.tag][0]: read(child, by_tag[child.tag][1]) for child in element}
        case Anything():
            return _read_any(element)


def _read_mapping(element: Element) -> list[tuple[str, str]]:
    return [(get_text(row[0]), get_text(row[1])) for row in element]


def _read_any(element: Element) -> Any:
    kind = element.get("type")
    if kind == "object":
        return {get_text(row[0]): _read_any(row[1]) for row in element}
    if kind == "array":
        return [_read_any(child) for child in element]
    if kind == "string":
        return get_text(element)
    if kind == "null":
        return None
    text = element.text or ""
    if kind == "boolean":
        return text == "true"
    return int(text) if kind == "integer" else float(text)
