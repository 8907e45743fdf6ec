# SPDX-License-Identifier: Apache-2.0
"""Holds the names in a mobile module against the patterns torch writes and against the sources that travel with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fdd.core.span import Span
from fdd.formats.pytorch.flatbuffers import Table, Walk
from fdd.formats.pytorch.mobile_facts import MobileFacts
from fdd.formats.pytorch.script_code import CUSTOM_CLASSES

QUALIFIED = r"\w+(?:\.\w+)+"
PATTERNS = {
    ("Operator", "name"): r"\w+::\w+",
    ("Operator", "overload"): r"\w*",
    ("ObjectType", "name"): QUALIFIED,
    ("Function", "name"): QUALIFIED,
    ("Arg", "name"): r"\w*",
    ("Arg", "type"): r"[\w.\[\], ()?*]+",
    ("Device", "data"): r"[a-z]+(?::\d+)?",
    ("List", "annotation"): r"[\w.\[\], ()?*]*",
    ("Dict", "annotation"): r"[\w.\[\], ()?*]*",
    ("EnumValue", "name"): QUALIFIED,
}
"""(table, field) -> what torch writes there, in ASCII."""
_PATTERNS = {place: re.compile(pattern, re.ASCII) for place, pattern in PATTERNS.items()}
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_WORD = re.compile(r"\w+")
_CLASS_BODY = re.compile(r"^class (\w+)[^\n]*\n((?:[ \t\n][^\n]*\n?|\n)*)", re.MULTILINE)


def check_names(facts: MobileFacts, found: Walk, module: Table) -> None:
    """State names that are not as torch writes them, and types and methods that the sources do not know."""
    for table in found.tables:
        for (kind, name), pattern in _PATTERNS.items():
            text = found.text(table, name) if table.type == kind else None
            if text is not None and not pattern.fullmatch(text):
                facts.odd_names.append((f"{kind}.{name} is `{text}`", _text_span(found, table, name)))
    for name, source, span in facts.sources:
        control = _CONTROLS.search(source)
        if control is not None:
            what = f"the source {name} holds the control character {control.group()!r}"
            facts.odd_names.append((what, Span(span.offset + len(source[: control.start()].encode("utf-8")), 1)))
    _check_owners(facts, found)
    if facts.sources:
        _check_sources(facts, found, module)


def _text_span(found: Walk, table: Table, name: str) -> Span:
    first, length = found.vector(table, name)
    return Span(first, length)


def _check_owners(facts: MobileFacts, found: Walk) -> None:
    """A method belongs to a type of the module, where the module has a schema for it."""
    types = {found.text(table, "name") for table in found.tables if table.type == "ObjectType"}
    for table in found.tables:
        name = found.text(table, "name") if table.type == "Function" else None
        if name is not None and types and name.rpartition(".")[0] not in types:
            facts.odd_names.append((f"the function {name} belongs to no type of the module", _text_span(found, table, "name")))


def _check_sources(facts: MobileFacts, found: Walk, module: Table) -> None:
    """Types, their attributes and their methods stand in the source of their class."""
    bodies: dict[str, set[str]] = {}
    for name, source, _ in facts.sources:
        for class_name, body in _CLASS_BODY.findall(source):
            bodies[f"{name}.{class_name}"] = set(_WORD.findall(body))
    for table in found.tables:
        if table.type == "ObjectType":
            odd = list(_unknown_to(found, table, bodies))
        elif table.type == "Function":
            odd = list(_method_unknown_to(found, table, bodies))
        else:
            continue
        facts.odd_names += odd


def _unknown_to(found: Walk, table: Table, bodies: dict[str, set[str]]) -> Iterator[tuple[str, Span]]:
    name = found.text(table, "name") or ""
    body = bodies.get(name)
    if name.startswith(CUSTOM_CLASSES) or not name.startswith("__torch__."):
        return  # code of torch or of an extension
    if body is None:
        yield f"the type {name} is in no source", _text_span(found, table, "name")
        return
    for target in found.targets(table, "attributes"):
        length = found.u32(target) or 0
        attribute = found.data[target + 4 : target + 4 + length].decode("utf-8", "replace")
        if not set(_WORD.findall(attribute)) <= body:
            yield f"the attribute {attribute} is not in the source of {name}", Span(target + 4, length)


def _method_unknown_to(found: Walk, table: Table, bodies: dict[str, set[str]]) -> Iterator[tuple[str, Span]]:
    owner, _, method = (found.text(table, "name") or "").rpartition(".")
    if owner in bodies and method not in bodies[owner]:
        yield f"the method {method} is not in the source of {owner}", _text_span(found, table, "name")
