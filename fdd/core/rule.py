# SPDX-License-Identifier: Apache-2.0
"""Rules: one decorated generator each, and the catalogue they enter.

A rule gets the Document and yields a :class:`Violation` for each place where the facts break it. It reads facts and
judges them; it parses nothing and prints nothing. Its docstring tells why the rule matters and feeds its page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from fdd.core.errors import InternalError, UsageError
from fdd.core.finding import Axis, Level
from fdd.core.span import Span

Check = Callable[[Any], Iterator["Violation"]]
CheckT = TypeVar("CheckT", bound=Check)


@dataclass(frozen=True, slots=True)
class Violation:
    """One place where a rule is broken. ``fields`` fill the message template of the rule."""

    span: Span | None
    record: str | None
    tensor: str | None
    fields: dict[str, Any]


def at(span: Span | None = None, *, record: str | None = None, tensor: str | None = None, **fields: Any) -> Violation:
    """Make a violation; a shorthand for rule bodies."""
    return Violation(span, record, tensor, fields)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as catalogued.

    ``name`` names the bad pattern. ``needs`` are keys of ``Document.evidence``; ``kinds`` the kinds it applies to.
    ``per`` says what counts as one cause: `file` (all places together), `record`, or `place` (each on its own).
    """

    id: str
    name: str
    axis: Axis
    level: Level
    clause: str
    title: str
    message: str
    remedy: str
    needs: tuple[str, ...]
    kinds: frozenset[str]
    per: str
    check: Check

    @property
    def documentation(self) -> str:
        """The docstring of the check: why it matters, references."""
        return self.check.__doc__ or ""


class Catalogue:
    """The rules of one format, by id, in order of definition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rules: dict[str, Rule] = {}
        self._sha256: str | None = None

    def rule(
        self,
        id: str,
        name: str,
        *,
        axis: str,
        level: str,
        clause: str,
        title: str,
        message: str,
        remedy: str,
        kinds: frozenset[str],
        needs: tuple[str, ...] = (),
        per: str = "file",
    ) -> Callable[[CheckT], CheckT]:
        """Enter the decorated generator as a rule. Raises :class:`InternalError` where the definition contradicts itself."""

        def enter(check: CheckT) -> CheckT:
            if id in self._rules or any(rule.name == name for rule in self._rules.values()):
                raise InternalError(f"rule {id} or name {name!r} is defined twice")
            if axis == Axis.ADVICE and level == Level.ERROR:
                raise InternalError(f"rule {id}: advice is never an error")
            if per not in ("file", "record", "place"):
                raise InternalError(f"rule {id}: per={per!r}")
            self._sha256 = None
            self._rules[id] = Rule(id, name, Axis(axis), Level(level), clause, title, message, remedy, needs, kinds, per, check)
            return check

        return enter

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    def __getitem__(self, id: str) -> Rule:
        """The rule of that id or name. Raises :class:`UsageError` with near names where there is none."""
        found = self._rules.get(id) or next((rule for rule in self._rules.values() if rule.name == id), None)
        if found is None:
            raise UsageError(f"no rule {id!r} in the catalogue of {self.name}")
        return found

    def sha256(self) -> str:
        """A digest over everything that is stated of the rules, so that a report can name the catalogue it used."""
        if self._sha256 is None:
            self._sha256 = self._digest()
        return self._sha256

    def _digest(self) -> str:
        stated = [
            [r.id, r.name, r.axis, r.level, r.clause, r.title, r.message, r.remedy, list(r.needs), sorted(r.kinds), r.per]
            for r in sorted(self, key=lambda rule: rule.id)
        ]
        return hashlib.sha256(json.dumps(stated, ensure_ascii=False).encode()).hexdigest()
