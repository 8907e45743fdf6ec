# SPDX-License-Identifier: Apache-2.0
"""Reads profiles from TOML. All faults of a profile are told at once, each with its line."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fdd.core.errors import UsageError
from fdd.core.finding import Level
from fdd.core.profile import OPERAND_TYPES, Allowed, Constraint, Profile, RuleChoice, Treatment
from fdd.formats import installed
from fdd.policy.lines import line_of
from fdd.report.shapes import Anything, Counts, Field, Struct
from fdd.report.vocabulary import PROPERTIES
from fdd.resources import profiles_dir, schema_path

SUFFIX = ".toml"
DEEPEST_EXTENDS = 16


@dataclass(frozen=True, slots=True)
class ProfileFault:
    """Something wrong in a profile: file, line (from 1) and what."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class ProfileError(UsageError):
    """A profile with faults; the message has a line for each."""

    def __init__(self, faults: Sequence[ProfileFault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


def find(name: str) -> Path:
    """The file of a profile: a path (it has a slash or ends in .toml), else one of those that come with fdd."""
    path = Path(name)
    if path.suffix != SUFFIX and "/" not in name:
        path = profiles_dir() / f"{name}{SUFFIX}"
    if not path.is_file():
        known = ", ".join(sorted(shipped()))
        raise UsageError(f"no profile {name!r}; shipped with fdd: {known}")
    return path


def shipped() -> list[str]:
    """The names of the profiles that come with fdd."""
    return sorted(path.stem for path in profiles_dir().glob(f"*{SUFFIX}"))


def load(name: str) -> Profile:
    """Read a profile and those it extends. Raises :class:`ProfileError` with all faults."""
    return _Loader().load(find(name))


class _Loader:
    """Reads one profile with its ancestors."""

    def __init__(self) -> None:
        self._faults: list[ProfileFault] = []

    def load(self, path: Path) -> Profile:
        profile = self._read(path, ())
        if self._faults or profile is None:
            raise ProfileError(self._faults)
        return profile

    def _read(self, path: Path, way: tuple[Path, ...]) -> Profile | None:
        if path.resolve() in way or len(way) >= DEEPEST_EXTENDS:
            circle = " -> ".join(step.stem for step in (*way, path))
            self._faults.append(ProfileFault(str(way[-1]), self._line(way[-1], ("extends",)), f"extends itself: {circle}"))
            return None
        document, data = self._parse(path)
        if document is None:
            return None
        own = [*_schema_faults(document)]
        if not own:
            own = [*_meaning_faults(document)]
        self._faults += [ProfileFault(str(path), self._line(path, where), message) for where, message in own]
        parents = [self._parent(name, index, path, way) for index, name in enumerate(_names(document.get("extends")))]
        if own or any(parent is None for parent in parents):
            return None
        return _profile(document, [parent for parent in parents if parent is not None], hashlib.sha256(data).hexdigest())

    def _parent(self, name: str, index: int, path: Path, way: tuple[Path, ...]) -> Profile | None:
        beside = path.parent / f"{name}{SUFFIX}"
        try:
            parent = beside if beside.is_file() else find(name)
        except UsageError as error:
            self._faults.append(ProfileFault(str(path), self._line(path, ("extends", index)), str(error)))
            return None
        return self._read(parent, (*way, path.resolve()))

    def _parse(self, path: Path) -> tuple[dict[str, Any] | None, bytes]:
        try:
            data = path.read_bytes()
            return tomllib.loads(data.decode("utf-8")), data
        except OSError as error:
            self._faults.append(ProfileFault(str(path), 1, error.strerror or str(error)))
        except UnicodeDecodeError as error:
            self._faults.append(ProfileFault(str(path), 1, f"not UTF-8: {error.reason}"))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            line = str(error).rpartition("at line ")[2].partition(",")[0]
            self._faults.append(ProfileFault(str(path), int(line) if line.isdigit() else 1, f"not TOML: {error}"))
        return None, b""

    def _line(self, path: Path, where: Sequence[str | int]) -> int:
        try:
            return line_of(path.read_text(encoding="utf-8"), where)
        except (OSError, UnicodeDecodeError):
            return 1


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _schema_faults(document: Mapping[str, Any]) -> Iterator[tuple[Sequence[str | int], str]]:
    import jsonschema

    schema = json.loads(schema_path("profile.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    for error in sorted(validator.iter_errors(document), key=lambda error: [str(part) for part in error.absolute_path]):
        where = list(error.absolute_path)
        yield where, f"{'.'.join(map(str, where)) or 'the profile'}: {error.message}"


def _meaning_faults(document: Mapping[str, Any]) -> Iterator[tuple[Sequence[str | int], str]]:
    """What a schema cannot know: are there such rules and properties, does the value fit the operator?"""
    rules = [(rule.id, rule.name) for fmt in installed() for rule in fmt.catalogue]
    for index, choice in enumerate(document.get("rule", ())):
        pattern = choice["id"]
        if not any(fnmatchcase(id, pattern) or fnmatchcase(name, pattern) for id, name in rules):
            yield ("rule", index, "id"), f"no rule is called {pattern!r}"
    seen: set[str] = set()
    for index, constraint in enumerate(document.get("constraint", ())):
        if constraint["id"] in seen:
            yield ("constraint", index, "id"), f"the constraint {constraint['id']} is there twice"
        seen.add(constraint["id"])
        if not _known_property(constraint["property"]):
            yield ("constraint", index, "property"), f"no property is called {constraint['property']!r}"
        types = OPERAND_TYPES[constraint["operator"]]
        if not isinstance(constraint["value"], types) or (isinstance(constraint["value"], bool) and bool not in types):
            wanted = " or ".join(kind.__name__ for kind in types)
            yield ("constraint", index, "value"), f"the operator {constraint['operator']} takes {wanted}"


def _known_property(path: str) -> bool:
    """Whether the vocabulary has it. Below counts and plain values any word may stand: they are the file's own."""
    fields: Mapping[str, Field] = PROPERTIES.fields
    parts = path.split(".")
    for index, part in enumerate(parts):
        field = fields.get(part)
        if field is None:
            return False
        if isinstance(field.shape, (Counts, Anything)):
            return True
        if not isinstance(field.shape, Struct):
            return index == len(parts) - 1
        fields = field.shape.fields
    return True


def _profile(document: Mapping[str, Any], parents: Sequence[Profile], digest: str) -> Profile:
    """Join what a profile says with what it extends: lists are added up, single words are replaced."""

    def inherited(name: str) -> tuple[Any, ...]:
        return tuple(entry for parent in parents for entry in getattr(parent, name))

    def words(name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        if name in document:
            return tuple(document[name])
        return next((getattr(parent, name) for parent in reversed(parents)), default)

    constraints = {constraint.id: constraint for constraint in inherited("constraints")}
    for entry in document.get("constraint", ()):
        constraints[entry["id"]] = Constraint(entry["id"], entry["property"], entry["operator"], entry["value"], entry["message"])
    allowed = {entry.subject: entry for entry in inherited("allowed")}
    for entry in document.get("allow", ()):
        allowed[entry["what"]] = Allowed(entry["what"], tuple(entry["names"]), entry["reason"])
    return Profile(
        name=document["name"],
        version=document["version"],
        title=document["title"],
        sha256=digest,
        verdicts=words("verdicts", ("valid",)),
        safety=words("safety", ()),
        rules=inherited("rules") + tuple(_choice(entry) for entry in document.get("rule", ())),
        constraints=tuple(constraints.values()),
        allowed=tuple(allowed.values()),
        digests=tuple(dict.fromkeys((*inherited("digests"), *document.get("digests", ())))),
        untestable=inherited("untestable")
        + tuple((entry["statement"], entry["reason"]) for entry in document.get("untestable", ())),
    )


def _choice(entry: Mapping[str, Any]) -> RuleChoice:
    level = Level(entry["level"]) if "level" in entry else None
    return RuleChoice(entry["id"], Treatment(entry["do"]), entry["reason"], level)
