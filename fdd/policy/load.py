# SPDX-License-Identifier: Apache-2.0
"""Reads profiles from TOML. All faults of a profile and of those it extends are told at once, each with its line."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fdd.core.errors import UsageError
from fdd.core.finding import Level
from fdd.core.profile import Allowed, Constraint, Limit, Profile, RuleChoice, Treatment, Untestable
from fdd.policy.checks import problems_of, rules_matching
from fdd.policy.faults import DemandError, Fault, read_bytes
from fdd.policy.lines import line_of
from fdd.resources import profiles_dir

SUFFIX = ".toml"
DEEPEST_EXTENDS = 16
_SEPARATORS = tuple(separator for separator in (os.sep, os.altsep, "/") if separator)


def is_path(name: str) -> bool:
    """Whether a profile is named by its file rather than by its name."""
    return name.endswith(SUFFIX) or any(separator in name for separator in _SEPARATORS)


def find(name: str) -> Path:
    """The file of a profile: a path (it has a slash or ends in .toml), else one of those that come with fdd."""
    path = Path(name) if is_path(name) else profiles_dir() / f"{name}{SUFFIX}"
    if path.suffix != SUFFIX:
        raise UsageError(f"no profile {name!r}: the file of a profile ends in {SUFFIX}")
    if not path.is_file():
        raise UsageError(f"no profile {name!r}; shipped with fdd: {', '.join(shipped())}")
    return path


def shipped() -> list[str]:
    """The names of the profiles that come with fdd."""
    return sorted(path.stem for path in profiles_dir().glob(f"*{SUFFIX}"))


def load(name: str) -> Profile:
    """Read a profile and those it extends. Raises :class:`UsageError`: where there is none, or a
    :class:`fdd.policy.faults.DemandError` with all faults."""
    return _Loader().load(find(name))


class _Loader:
    """Reads one profile with its ancestors, each file once."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._texts: dict[Path, str] = {}
        self._read: dict[Path, Profile | None] = {}

    def load(self, path: Path) -> Profile:
        profile = self._profile(path, ())
        if self._faults or profile is None:
            raise DemandError(self._faults)
        return profile

    def _fault(self, path: Path, where: Sequence[str | int], message: str) -> None:
        self._faults.append(Fault(str(path), line_of(self._texts.get(path, ""), where), message))

    def _profile(self, path: Path, way: tuple[Path, ...]) -> Profile | None:
        known = path.resolve()
        if known not in self._read:
            self._read[known] = self._fresh(path, (*way, path))
        return self._read[known]

    def _fresh(self, path: Path, way: tuple[Path, ...]) -> Profile | None:
        document, digest = self._parse(path)
        if document is None:
            return None
        before = len(self._faults)
        for where, message in problems_of(document):
            self._fault(path, where, message)
        parents = [self._parent(name, index, way) for index, name in enumerate(_texts(document.get("extends")))]
        if len(self._faults) > before:
            return None
        return _profile(document, [parent for parent in parents if parent is not None], digest)

    def _parent(self, name: str, index: int, way: tuple[Path, ...]) -> Profile | None:
        """One that the last profile of the way extends: beside it, or shipped with fdd."""
        child = way[-1]
        beside = child.parent / (name if is_path(name) else f"{name}{SUFFIX}")
        try:
            if is_path(name) and not beside.is_file():
                raise UsageError(f"no profile {name!r} beside this one")
            path = beside if beside.is_file() else find(name)
        except UsageError as error:
            self._fault(child, ("extends", index), str(error))
            return None
        if any(path.resolve() == step.resolve() for step in way):
            circle = " -> ".join(step.stem for step in (*way, path))
            self._fault(child, ("extends", index), f"extends itself: {circle}")
            return None
        if len(way) >= DEEPEST_EXTENDS:
            self._fault(child, ("extends", index), f"more than {DEEPEST_EXTENDS} profiles extend each other")
            return None
        return self._profile(path, way)

    def _parse(self, path: Path) -> tuple[dict[str, Any] | None, str]:
        try:
            data = read_bytes(path)
            # Line ends as TOML and the search for lines count them.
            self._texts[path] = data.decode("utf-8").replace("\r\n", "\n")
            return tomllib.loads(self._texts[path]), hashlib.sha256(data).hexdigest()
        except DemandError as error:
            self._faults += error.faults
        except UnicodeDecodeError as error:
            self._faults.append(Fault(str(path), data[: error.start].count(b"\n") + 1, "not UTF-8"))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            self._faults.append(Fault(str(path), _line_in(str(error), self._texts[path]), f"not TOML: {error}"))
        return None, ""


def _line_in(message: str, text: str) -> int:
    """The line that a message of the TOML reader names: `(at line 3, column 7)` or `(at end of document)`."""
    line = message.rpartition("at line ")[2].partition(",")[0]
    return int(line) if line.isdigit() else text.count("\n") + 1 if "end of document" in message else 1


def _texts(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str) and name] if isinstance(value, list) else []


def _profile(document: Mapping[str, Any], parents: Sequence[Profile], digest: str) -> Profile:
    """Join what a profile says with what it extends: entries are added or replace those of their name, single words are
    replaced, and the last of several parents counts."""

    def inherited(name: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(entry for parent in parents for entry in getattr(parent, name)))

    def words(name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        if name in document:
            return tuple(document[name])
        return next((getattr(parent, name) for parent in reversed(parents)), default)

    constraints = {entry.id: entry for entry in inherited("constraints")}
    constraints |= {entry["id"]: _constraint(entry) for entry in document.get("constraint", ())}
    allowed = {entry.subject: entry for entry in inherited("allowed")}
    allowed |= {entry["what"]: _allowed(entry) for entry in document.get("allow", ())}
    limits = {entry.subject: entry for entry in inherited("limits")}
    limits |= {entry["what"]: _limit(entry) for entry in document.get("limit", ())}
    lineage = [(parent.name, parent.version, parent.sha256) for parent in parents]
    return Profile(
        name=document["name"],
        version=document["version"],
        title=document["title"],
        sha256=digest,
        description=document.get("description", "").strip(),
        ancestors=tuple(dict.fromkeys((*lineage, *inherited("ancestors")))),
        verdicts=words("verdicts", ("valid",)),
        safety=words("safety", ()),
        rules=inherited("rules") + tuple(_choice(entry) for entry in document.get("rule", ())),
        constraints=tuple(constraints.values()),
        allowed=tuple(allowed.values()),
        limits=tuple(limits.values()),
        digests=tuple(dict.fromkeys((*inherited("digests"), *document.get("digests", ())))),
        untestable=inherited("untestable") + tuple(_untestable(entry) for entry in document.get("untestable", ())),
    )


def _words(entry: Mapping[str, Any]) -> dict[str, str]:
    return {key: entry[key].strip() for key in ("statement", "note") if key in entry}


def _choice(entry: Mapping[str, Any]) -> RuleChoice:
    level = Level(entry["level"]) if "level" in entry else None
    pattern = entry["id"]
    return RuleChoice(pattern, Treatment(entry["do"]), entry["reason"].strip(), level, rules_matching(pattern), **_words(entry))


def _constraint(entry: Mapping[str, Any]) -> Constraint:
    value = tuple(entry["value"]) if isinstance(entry["value"], list) else entry["value"]
    return Constraint(entry["id"], entry["property"], entry["operator"], value, entry["message"].strip(), **_words(entry))


def _allowed(entry: Mapping[str, Any]) -> Allowed:
    return Allowed(entry["what"], tuple(entry["names"]), entry["reason"].strip(), **_words(entry))


def _limit(entry: Mapping[str, Any]) -> Limit:
    return Limit(entry["what"], entry["most"], entry["reason"].strip(), **_words(entry))


def _untestable(entry: Mapping[str, Any]) -> Untestable:
    return Untestable(entry["statement"].strip(), entry["reason"].strip(), entry.get("note", "").strip())
