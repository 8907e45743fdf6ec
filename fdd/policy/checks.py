# SPDX-License-Identifier: Apache-2.0
"""Checks a profile as it was read: against its schema, and for what a schema cannot know."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from fdd.core.shapes import Anything, Counts, Flag, Integer, ListOf, Number, Shape, Struct, Text, Texts
from fdd.formats import installed
from fdd.formats.probe import DEPTHS
from fdd.formats.vocabulary import CONTENTS, PROPERTIES
from fdd.resources import schema_path
from fdd.tensors.dtypes import DTYPES

Place = tuple[str | int, ...]
Problem = tuple[Place, str]
"""Where in the profile, and what is wrong there."""

OTHER_FACTS: dict[str, Shape] = {
    "file.name": Text(),
    "file.size": Integer(),
    "identification.kind": Text(),
    "identification.format": Text(),
    "identification.version": Text(),
    "identification.confidence": Text(("signature", "container", "structure", "name")),
    "identification.mime": Text(),
    "identification.extension_matches": Flag(),
    "status.depth": Text(DEPTHS),
    "status.complete": Flag(),
}
"""What a constraint can test beside the properties of the vocabulary, by its path in the report."""
FITTING: dict[str, tuple[type, ...]] = {
    "at-least": (Integer, Number),
    "at-most": (Integer, Number),
    "like": (Text,),
    "keys-within": (Counts, Texts, Struct),
    "each-within": (ListOf,),
    "equals": (Text, Integer, Number, Flag),
    "not-equals": (Text, Integer, Number, Flag),
    "one-of": (Text, Integer, Number),
    "none-of": (Text, Integer, Number),
}
"""Operator -> shapes of properties it can test; those not named here test any."""
LISTS = ("one-of", "none-of", "keys-within", "each-within")
TRUTHS = ("present", "empty")


def problems_of(document: Mapping[str, Any]) -> Iterator[Problem]:
    """All that is wrong in a profile. Entries that break the schema are not asked for their meaning too."""
    broken: set[Place] = set()
    for place, message in _schema_problems(document):
        broken.add(place[:2])
        yield place, message
    for place, message in _meaning_problems(document, broken):
        if place[:2] not in broken:
            yield place, message


def _schema_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    import jsonschema

    schema = json.loads(schema_path("profile.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    for error in validator.iter_errors(document):
        yield from _schema_problem(error)


def _schema_problem(error: Any) -> Iterator[Problem]:
    place: Place = tuple(error.absolute_path)
    key = f"{place[-1]}: " if place and isinstance(place[-1], str) else ""
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        for name in sorted(set(error.instance) - set(known)):
            yield (*place, name), f"unknown key {name!r}; known here: {', '.join(known)}"
    elif error.validator == "type":
        yield place, f"{key}must be {_WORDS[error.validator_value]}, not {_word_of(error.instance)}"
    elif error.validator == "enum":
        yield place, f"{key}{error.instance!r} is not one of {', '.join(map(str, error.validator_value))}"
    elif error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        yield place, f"{' and '.join(missing)} missing"
    elif error.validator in ("pattern", "minLength"):
        yield place, f"{key}{_FORMS.get(str(error.validator_value), 'must not be empty')}, not {error.instance!r}"
    else:
        yield place, f"{key}{error.message}"


_FORMS = {
    "^[a-z0-9]+(-[a-z0-9]+)*$": "must be small letters and digits with single dashes between them",
    "^[A-Za-z0-9][A-Za-z0-9-]*$": "must be letters, digits and dashes",
    "^[0-9]+(\\.[0-9]+)*$": "must be numbers with dots between them",
}
"""Patterns of the schema in words; the others ask for something that is not blank."""
_WORDS = {"string": "a text", "array": "a list", "object": "a table", "integer": "a whole number", "boolean": "true or false"}


def _word_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value!r:.80}"
    return "a list" if isinstance(value, list) else "a table" if isinstance(value, dict) else f"a {type(value).__name__}"


def _meaning_problems(document: Mapping[str, Any], broken: set[Place]) -> Iterator[Problem]:
    for index, choice in _entries(document, "rule", broken):
        if not rules_matching(choice["id"]):
            yield ("rule", index, "id"), f"no rule is called {choice['id']!r}; `fdd rules list` names them"
        if choice["do"] != "weigh" and "level" in choice:
            yield ("rule", index, "level"), "a level is for do = 'weigh' only"
    for index, constraint in _entries(document, "constraint", broken):
        yield from _constraint_problems(("constraint", index), constraint)
    for index, allowed in _entries(document, "allow", broken):
        known = _known_names(allowed["what"])
        for pattern in allowed["names"] if known is not None else ():
            if not any(fnmatchcase(name, pattern) for name in known or ()):
                yield ("allow", index, "names"), f"none of the {allowed['what']} is called {pattern!r}"
    for table, key in (("constraint", "id"), ("allow", "what"), ("limit", "what")):
        seen: set[str] = set()
        for index, entry in _entries(document, table, broken):
            if entry[key] in seen:
                yield (table, index, key), f"the {table} {entry[key]} is there twice"
            seen.add(entry[key])


def _entries(document: Mapping[str, Any], table: str, broken: set[Place]) -> Iterator[tuple[int, Any]]:
    """The entries of a table of tables that follow the schema."""
    if (table,) in broken:
        return
    for index, entry in enumerate(document.get(table, ())):
        if (table, index) not in broken:
            yield index, entry


@cache
def _rules() -> tuple[tuple[str, str], ...]:
    return tuple((rule.id, rule.name) for fmt in installed() for rule in fmt.catalogue)


def rules_matching(pattern: str) -> frozenset[str]:
    """The ids of the rules whose id or name fits a glob pattern."""
    return frozenset(id for id, name in _rules() if fnmatchcase(id, pattern) or fnmatchcase(name, pattern))


def _known_names(subject: str) -> Iterable[str] | None:
    """What can be allowed of a subject; None where any word can come from a file, or any format may bring its own."""
    if subject == "contents":
        return CONTENTS
    return DTYPES if subject == "dtypes" else None


def _constraint_problems(place: Place, constraint: Mapping[str, Any]) -> Iterator[Problem]:
    operator, value = constraint["operator"], constraint["value"]
    shape = shape_of(constraint["property"])
    if shape is None:
        yield (*place, "property"), f"no property is called {constraint['property']!r}; docs/properties.md lists them"
        return
    fitting = FITTING.get(operator)
    if fitting is not None and not isinstance(shape, (*fitting, Anything)):
        yield (*place, "operator"), f"{operator} cannot test {constraint['property']}"
        return
    if operator in TRUTHS:
        wanted = None if isinstance(value, bool) else "true or false"
    elif operator in LISTS:
        wanted = None if isinstance(value, list) and value and all(_fits(item, shape, operator) for item in value) else "a list"
        if wanted and isinstance(value, list):
            wanted = f"a list of {_kind(shape, operator)}"
    else:
        wanted = None if _fits(value, shape, operator) else _kind(shape, operator)
    if wanted is not None:
        yield (*place, "value"), f"{operator} of {constraint['property']} takes {wanted}, not {value!r:.80}"


def _kind(shape: Shape, operator: str) -> str:
    if operator in ("keys-within", "each-within", "like"):
        return "patterns"
    if isinstance(shape, Text):
        return f"texts out of {', '.join(shape.words)}" if shape.words else "texts"
    if isinstance(shape, (Integer, Number)):
        return "numbers"
    return "true or false" if isinstance(shape, Flag) else "plain values"


def _fits(value: Any, shape: Shape, operator: str) -> bool:
    """Whether a property of that shape can ever have the value, or a pattern is a text."""
    if operator in ("keys-within", "each-within", "like"):
        return isinstance(value, str)
    if isinstance(shape, Text):
        return isinstance(value, str) and (not shape.words or value in shape.words)
    if isinstance(shape, Flag):
        return isinstance(value, bool)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number if isinstance(shape, (Integer, Number)) else number or isinstance(value, (str, bool))


def shape_of(path: str) -> Shape | None:
    """The shape of the property at a path (:func:`fdd.core.profile.property_at`); None where there is no such property.

    Below counts and plain values any word may stand: they are the file's own.
    """
    if path in OTHER_FACTS:
        return OTHER_FACTS[path]
    shape: Shape = PROPERTIES
    in_list = False
    for name in path.split("."):
        if isinstance(shape, ListOf):
            shape, in_list = shape.shape, True
        if isinstance(shape, (Counts, Texts)):
            return Integer() if isinstance(shape, Counts) else Text()
        if isinstance(shape, Anything):
            return shape
        if not isinstance(shape, Struct) or name not in shape.fields:
            return None
        shape = shape.fields[name].shape
    return ListOf(shape, "item") if in_list else shape
