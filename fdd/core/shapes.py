# SPDX-License-Identifier: Apache-2.0
"""Shapes of plain data: from one description follow the JSON Schema, the XML Schema, the XML form and the reference page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """A text; ``words`` are the only ones allowed, if there are any."""

    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number, at least ``least`` where that is not None."""

    least: int | None = 0


@dataclass(frozen=True, slots=True)
class Number:
    """A number with a fraction."""


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Anything:
    """Plain data of any shape: texts, numbers, flags, null, lists and objects of them."""


@dataclass(frozen=True, slots=True)
class Counts:
    """An object from words of the file's own to whole numbers."""


@dataclass(frozen=True, slots=True)
class Texts:
    """An object from words to texts."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; ``item`` names the XML element of one entry."""

    shape: Shape
    item: str


@dataclass(frozen=True, slots=True)
class Field:
    """A named part of an object. ``unit`` is bytes, elements, or empty; null is allowed where ``nullable`` says so."""

    shape: Shape
    meaning: str
    unit: str = ""
    required: bool = False
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with known fields, in the order of the XML form."""

    fields: Mapping[str, Field]


Shape: TypeAlias = Text | Integer | Number | Flag | Anything | Counts | Texts | ListOf | Struct


def json_schema(shape: Shape, *, nullable: bool = False) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a shape."""
    schema = _json_schema(shape)
    if nullable and "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*kinds, "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    return schema


def _json_schema(shape: Shape) -> dict[str, Any]:
    match shape:
        case Text(words):
            return {"type": "string", **({"enum": list(words)} if words else {})}
        case Integer(least):
            return {"type": "integer", **({"minimum": least} if least is not None else {})}
        case Number():
            return {"type": "number"}
        case Flag():
            return {"type": "boolean"}
        case Counts():
            return {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}
        case Texts():
            return {"type": "object", "additionalProperties": {"type": "string"}}
        case ListOf(inner, _):
            return {"type": "array", "items": json_schema(inner)}
        case Struct(fields):
            required = [name for name, field in fields.items() if field.required]
            schema: dict[str, Any] = {"type": "object", "additionalProperties": False}
            if required:
                schema["required"] = required
            schema["properties"] = {
                name: json_schema(field.shape, nullable=field.nullable) | {"description": field.meaning}
                for name, field in fields.items()
            }
            return schema
        case Anything():
            return {}


def camel(name: str) -> str:
    """The XML name of a field: `byte_order` -> `byteOrder`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
