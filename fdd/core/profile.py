# SPDX-License-Identifier: Apache-2.0
"""What an institution demands, as a value, and how a report measures up to it. Loading is done elsewhere.

A profile changes nothing in a report but adds its own entry: rules run as always, and the verdict on the format stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from fdd.core.finding import Axis, Finding, Level, State
from fdd.core.report import Report


class Treatment(StrEnum):
    """What a profile does with a rule: its finding fails the profile, counts for nothing, or weighs otherwise."""

    DEMAND = "demand"
    IGNORE = "ignore"
    WEIGH = "weigh"


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """How rules of that id, name or glob pattern are treated, and why. ``level`` is for `weigh`."""

    pattern: str
    treatment: Treatment
    reason: str
    level: Level | None = None

    def takes(self, finding_rule: str, name: str) -> bool:
        """Whether it speaks of that rule."""
        return fnmatchcase(finding_rule, self.pattern) or fnmatchcase(name, self.pattern)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A demand on a property of the report. ``path`` is a property of the vocabulary, parts joined by dots."""

    id: str
    path: str
    operator: str
    value: Any
    message: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is allowed of one sort of thing: only names that fit one of the glob patterns, and why."""

    subject: str
    patterns: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of demands. ``sha256`` is the digest of the file it was read from."""

    name: str
    version: str
    title: str
    sha256: str = ""
    verdicts: tuple[str, ...] = ("valid",)
    safety: tuple[str, ...] = ()
    rules: tuple[RuleChoice, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    allowed: tuple[Allowed, ...] = ()
    digests: tuple[str, ...] = ()
    untestable: tuple[tuple[str, str], ...] = field(default=())
    """Statements that no test of a file can decide, and why."""


ABSENT = object()

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": lambda found, wanted: found is not ABSENT and found == wanted,
    "not-equals": lambda found, wanted: found is not ABSENT and found != wanted,
    "one-of": lambda found, wanted: found is not ABSENT and found in wanted,
    "none-of": lambda found, wanted: found is ABSENT or found not in wanted,
    "at-least": lambda found, wanted: _is_number(found) and found >= wanted,
    "at-most": lambda found, wanted: _is_number(found) and found <= wanted,
    "like": lambda found, wanted: isinstance(found, str) and fnmatchcase(found, wanted),
    "present": lambda found, wanted: (found is not ABSENT and found is not None) is wanted,
    "keys-within": lambda found, wanted: found is ABSENT or all(_fits(key, wanted) for key in found),
    "each-within": lambda found, wanted: found is ABSENT or all(_fits(str(item), wanted) for item in found),
    "empty": lambda found, wanted: (found is ABSENT or not found) is wanted,
}
"""Operator -> test. No regular expressions: patterns are globs, because a curator must be able to read them."""
OPERAND_TYPES: dict[str, tuple[type, ...]] = {
    "equals": (str, int, float, bool),
    "not-equals": (str, int, float, bool),
    "one-of": (list,),
    "none-of": (list,),
    "at-least": (int, float),
    "at-most": (int, float),
    "like": (str,),
    "present": (bool,),
    "keys-within": (list,),
    "each-within": (list,),
    "empty": (bool,),
}
"""Operator -> types of its value in a profile."""

SUBJECTS: dict[str, Callable[[Report], Sequence[str]]] = {
    "kinds": lambda report: [report.identification.kind] if report.identification is not None else [],
    "contents": lambda report: [str(report.properties["content"])] if "content" in report.properties else [],
    "globals": lambda report: [str(entry["name"]) for entry in report.properties.get("globals", ())],
    "locations": lambda report: list(report.properties.get("storage_locations", {})),
    "dtypes": lambda report: list(report.properties.get("tensor_dtypes", {})),
}
"""What can be allowed -> the names of it in a report."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def judge(report: Report, profile: Profile) -> dict[str, Any]:
    """The entry of one profile for `status.profiles`: does the file conform, what failed, what was weighed otherwise."""
    changed: list[dict[str, Any]] = []
    failed = [*_verdict(report, profile), *_findings(report, profile, changed), *_demanded(report, profile)]
    failed += [*_constraints(report, profile), *_allowed(report, profile), *_digests(report, profile)]
    return {
        "name": profile.name,
        "version": profile.version,
        "sha256": profile.sha256,
        "conforms": not failed,
        "failed": failed,
        "changed": changed,
    }


def _fault(id: str, message: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "message": message, **{key: value for key, value in more.items() if value is not None}}


def _verdict(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    """The verdict must be one of those allowed, unless everything that led to it is ignored by the profile."""
    verdict = report.verdict.value if report.verdict is not None else "none"
    if profile.verdicts and verdict not in profile.verdicts and not _excused(report, profile):
        yield _fault("verdict", f"the verdict is {verdict}; allowed: {', '.join(profile.verdicts)}")
    safety = report.safety.value if report.safety is not None else None
    if profile.safety and safety is not None and safety not in profile.safety:
        yield _fault("safety", f"the safety is {safety}; allowed: {', '.join(profile.safety)}")


def _excused(report: Report, profile: Profile) -> bool:
    errors = [f for f in report.findings if f.level is Level.ERROR and f.axis in (Axis.WELL_FORMED, Axis.VALID)]
    return bool(errors) and all(_level(finding, profile)[0] is not Level.ERROR for finding in errors)


def _choice(profile: Profile, rule: str, name: str) -> RuleChoice | None:
    """The last choice that speaks of a rule: later ones and those of the extending profile win."""
    return next((choice for choice in reversed(profile.rules) if choice.takes(rule, name)), None)


def _level(finding: Finding, profile: Profile) -> tuple[Level | None, RuleChoice | None]:
    """What a finding weighs in the profile; None where it is ignored."""
    choice = _choice(profile, finding.rule, finding.name)
    if choice is None:
        return finding.level, None
    if choice.treatment is Treatment.IGNORE:
        return None, choice
    return Level.ERROR if choice.treatment is Treatment.DEMAND else choice.level, choice


def _findings(report: Report, profile: Profile, changed: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for finding in report.findings:
        level, choice = _level(finding, profile)
        if choice is not None and level is not finding.level:
            changed.append(
                {
                    "rule": finding.rule,
                    "from": finding.level.value,
                    "to": level.value if level is not None else "ignored",
                    "reason": choice.reason,
                }
            )
        if level is Level.ERROR and (choice is not None or finding.axis is not Axis.SAFETY):
            reason = choice.reason if choice is not None else None
            yield _fault(finding.rule, finding.message, record=finding.record, offset=finding.offset, reason=reason)


def _demanded(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    """A demanded rule that could not be evaluated is not met: nothing is proven by not looking."""
    for outcome in report.outcomes:
        choice = _choice(profile, outcome.rule, outcome.rule)
        demanded = choice is not None and choice.treatment is Treatment.DEMAND
        if demanded and outcome.state in (State.NOT_EVALUATED, State.NOT_REQUESTED):
            assert choice is not None
            yield _fault(outcome.rule, f"demanded, but {outcome.state.value}", reason=choice.reason)


def _constraints(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    for constraint in profile.constraints:
        found = property_at(report, constraint.path)
        if not OPERATORS[constraint.operator](found, constraint.value):
            shown = "absent" if found is ABSENT else str(found)[:200]
            yield _fault(constraint.id, constraint.message, property=constraint.path, found=shown)


def property_at(report: Report, path: str) -> Any:
    """The value of a property, parts joined by dots; ``ABSENT`` where it is not there."""
    value: Any = report.properties
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return ABSENT
        value = value[part]
    return value


def _allowed(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    for allowed in profile.allowed:
        strange = [name for name in SUBJECTS[allowed.subject](report) if not _fits(name, allowed.patterns)]
        if strange:
            more = f" and {len(strange) - 5} more" if len(strange) > 5 else ""
            message = f"not among the allowed {allowed.subject}: {', '.join(strange[:5])}{more}"
            yield _fault(f"allowed-{allowed.subject}", message, reason=allowed.reason)


def _digests(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    for name in profile.digests:
        if name not in report.digests:
            yield _fault(f"digest-{name}", f"the report holds no {name} digest of the file")
