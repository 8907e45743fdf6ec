# SPDX-License-Identifier: Apache-2.0
"""What an institution demands, as a value, and how a report measures up to it. Loading is done elsewhere.

A profile changes nothing in a report but adds its own entry: rules run as always, and the verdict on the format stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from fdd.core.finding import Axis, Finding, Level, State, Verdict
from fdd.core.report import Report, identification_dict
from fdd.core.text import printable


class Treatment(StrEnum):
    """What a profile does with a rule: its finding fails the profile, counts for nothing, or weighs otherwise."""

    DEMAND = "demand"
    IGNORE = "ignore"
    WEIGH = "weigh"


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """How rules of that id, name or glob pattern are treated, and why. ``level`` is for `weigh`.

    ``rules`` are the ids that the pattern spoke of when it was read; a rule of another release is told by its id alone.
    ``statement`` is what is demanded, in words, and ``note`` what a reader should know beside it: for people only, here
    and below.
    """

    pattern: str
    treatment: Treatment
    reason: str
    level: Level | None = None
    rules: frozenset[str] = frozenset()
    statement: str = ""
    note: str = ""

    @property
    def weight(self) -> Level | None:
        """What findings of the rule weigh; None where they are ignored."""
        return {Treatment.IGNORE: None, Treatment.DEMAND: Level.ERROR, Treatment.WEIGH: self.level}[self.treatment]

    def takes(self, rule: str) -> bool:
        """Whether it speaks of the rule of that id."""
        return rule in self.rules or fnmatchcase(rule, self.pattern)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A demand on a property of the report. ``path`` has parts joined by dots (:func:`property_at`)."""

    id: str
    path: str
    operator: str
    value: Any
    message: str
    statement: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is allowed of one sort of thing: only names that fit one of the glob patterns, and why."""

    subject: str
    patterns: tuple[str, ...]
    reason: str
    statement: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that is allowed of something that is counted (:data:`COUNTED`), and why."""

    subject: str
    most: int
    reason: str
    statement: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Untestable:
    """A statement that no look at a file can decide, and why."""

    statement: str
    reason: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of demands. ``sha256`` is the digest of the file it was read from, ``ancestors`` are name, version and
    digest of the profiles it extends."""

    name: str
    version: str
    title: str
    sha256: str = ""
    description: str = ""
    ancestors: tuple[tuple[str, str, str], ...] = ()
    verdicts: tuple[str, ...] = ("valid",)
    safety: tuple[str, ...] = ()
    rules: tuple[RuleChoice, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    allowed: tuple[Allowed, ...] = ()
    limits: tuple[Limit, ...] = ()
    digests: tuple[str, ...] = ()
    untestable: tuple[Untestable, ...] = ()


ABSENT = object()

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": lambda found, wanted: found is not ABSENT and found == wanted,
    "not-equals": lambda found, wanted: found is ABSENT or found != wanted,
    "one-of": lambda found, wanted: found is not ABSENT and found in wanted,
    "none-of": lambda found, wanted: found is ABSENT or found not in wanted,
    "at-least": lambda found, wanted: _is_number(found) and found >= wanted,
    "at-most": lambda found, wanted: _is_number(found) and found <= wanted,
    "like": lambda found, wanted: isinstance(found, str) and fnmatchcase(found, wanted),
    "present": lambda found, wanted: (found is not ABSENT and found is not None) is wanted,
    "keys-within": lambda found, wanted: not isinstance(found, Mapping) or all(_fits(str(key), wanted) for key in found),
    "each-within": lambda found, wanted: found is ABSENT or all(_fits(str(item), wanted) for item in _items(found)),
    "empty": lambda found, wanted: (found is ABSENT or not found) is wanted,
}
"""Operator -> test. What asks for something fails where the property is absent, what excludes something is met then.

No regular expressions: patterns are globs, because a curator must be able to read them.
"""

SUBJECTS: dict[str, Callable[[Report], Sequence[str]]] = {
    "kinds": lambda report: [report.identification.kind if report.identification is not None else "none"],
    "contents": lambda report: [str(report.properties.get("content", "none"))],
    "globals": lambda report: [str(entry["name"]) for entry in report.properties.get("globals", ())],
    "locations": lambda report: list(report.properties.get("storage_locations", {})),
    "dtypes": lambda report: list(report.properties.get("tensor_dtypes", {})),
}
"""What can be allowed -> the names of it in a report."""
COUNTED = {"warnings": Level.WARNING, "infos": Level.INFO}
"""What a limit can count beside `file-bytes` -> findings of that level, as the profile weighs them."""
FILE_BYTES = "file-bytes"
HEADS = ("identification", "file", "status")
"""Parts of a report that a path may begin with; every other path is one of the properties."""
MOST_NAMED = 5
"""Names listed in one message."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def judge(report: Report, profile: Profile) -> dict[str, Any]:
    """The entry of one profile for `status.profiles`: does the file conform, what failed, what was weighed otherwise.

    ``report`` must hold a judgement (a status).
    """
    failed = [*_verdict(report, profile), *_safety(report, profile), *_findings(report, profile), *_demanded(report, profile)]
    failed += [*_constraints(report, profile), *_allowed(report, profile), *_limits(report, profile), *_digests(report, profile)]
    entry: dict[str, Any] = {"name": profile.name, "version": profile.version, "sha256": profile.sha256}
    if profile.ancestors:
        entry["extends"] = [{"name": name, "version": version, "sha256": sha} for name, version, sha in profile.ancestors]
    return entry | {"conforms": not failed, "failed": failed, "changed": list(_changed(report, profile))}


def _fault(id: str, message: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "message": message, **{key: value for key, value in more.items() if value is not None}}


def _verdict(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    """The verdict must be one of those allowed, unless all that led to it is excused. What led to it is told."""
    assert report.status is not None
    verdict = report.status.verdict
    if not profile.verdicts or verdict in profile.verdicts or _is_excused(report, profile):
        return
    yield _fault("verdict", f"the verdict is {verdict.value}; allowed: {', '.join(profile.verdicts)}")
    for finding in _breaking(report):
        if _choice(profile, finding.rule) is None:
            yield _fault(finding.rule, finding.message, record=finding.record, offset=finding.offset)


def _breaking(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.level is Level.ERROR and f.axis in (Axis.WELL_FORMED, Axis.VALID)]


def _is_excused(report: Report, profile: Profile) -> bool:
    """Whether the profile weighs every error as less, and the file would then have a verdict that is allowed.

    Never where anything was not evaluated: what an error hid may be worse than the error.
    """
    assert report.status is not None
    errors = _breaking(report)
    if report.status.verdict not in (Verdict.NOT_WELL_FORMED, Verdict.WELL_FORMED_NOT_VALID) or report.not_evaluated():
        return False
    otherwise = Verdict.VALID if report.status.depth == "full" else Verdict.STRUCTURE_VALID
    return bool(errors) and otherwise in profile.verdicts and all(_weight(f, profile) is not Level.ERROR for f in errors)


def _safety(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    if profile.safety and report.safety is not None and report.safety not in profile.safety:
        yield _fault("safety", f"the safety is {report.safety.value}; allowed: {', '.join(profile.safety)}")


def _choice(profile: Profile, rule: str) -> RuleChoice | None:
    """The last choice that speaks of a rule: later ones and those of the extending profile win."""
    return next((choice for choice in reversed(profile.rules) if choice.takes(rule)), None)


def _weight(finding: Finding, profile: Profile) -> Level | None:
    """What a finding weighs in the profile; None where it is ignored."""
    choice = _choice(profile, finding.rule)
    return finding.level if choice is None else choice.weight


def _changed(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    """The rules whose findings weigh otherwise, each once."""
    told: dict[str, dict[str, Any]] = {}
    for finding in report.findings:
        choice, level = _choice(profile, finding.rule), _weight(finding, profile)
        if choice is None or level is finding.level:
            continue
        to = level.value if level is not None else "ignored"
        entry = {"rule": finding.rule, "from": finding.level.value, "to": to, "reason": choice.reason}
        told.setdefault(finding.rule, entry)
    yield from told.values()


def _findings(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    """Findings that the profile itself makes errors; all others count through verdict and safety."""
    for finding in report.findings:
        choice = _choice(profile, finding.rule)
        if choice is not None and choice.weight is Level.ERROR:
            yield _fault(finding.rule, finding.message, record=finding.record, offset=finding.offset, reason=choice.reason)


def _demanded(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    """A demanded rule that could not be evaluated is not met: nothing is proven by not looking."""
    for outcome in sorted(report.outcomes, key=lambda outcome: outcome.rule):
        if outcome.state not in (State.NOT_EVALUATED, State.NOT_REQUESTED):
            continue
        choice = _choice(profile, outcome.rule)
        if choice is not None and choice.weight is Level.ERROR:
            why = outcome.reason.value if outcome.reason is not None else f"not requested at depth {report.options.get('depth')}"
            yield _fault(outcome.rule, f"demanded, but not evaluated ({why}). If it failed, it would mean: {choice.reason}")


def _constraints(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    for constraint in profile.constraints:
        found = property_at(report, constraint.path)
        if not OPERATORS[constraint.operator](found, constraint.value):
            shown = "absent" if found is ABSENT else printable(str(found), most=200)
            yield _fault(constraint.id, constraint.message, property=constraint.path, found=shown)


def property_at(report: Report, path: str) -> Any:
    """The value of a property, parts joined by dots; ``ABSENT`` where it is not there.

    A path that begins with one of :data:`HEADS` leads into that part of the report. In a list of objects, a part stands
    for its values in all of them.
    """
    head, _, rest = path.partition(".")
    value: Any = _head(report, head) if head in HEADS else report.properties
    for part in (rest if head in HEADS else path).split("."):
        if isinstance(value, (list, tuple)):
            value = [item[part] for item in value if isinstance(item, Mapping) and part in item]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            return ABSENT
    return value


def _head(report: Report, head: str) -> Mapping[str, Any]:
    if head == "file":
        return report.file
    if head == "status":
        return report.status_dict()
    return identification_dict(report.identification) if report.identification is not None else {}


def _allowed(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    for allowed in profile.allowed:
        strange = [name for name in SUBJECTS[allowed.subject](report) if not _fits(name, allowed.patterns)]
        if strange:
            message = f"not among the allowed {allowed.subject}: {_some(strange)}"
            yield _fault(f"allowed-{allowed.subject}", message, reason=allowed.reason)


def _limits(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    for limit in profile.limits:
        id = f"limit-{limit.subject}"
        if limit.subject == FILE_BYTES:
            size = report.file.get("size")
            if size is None or size > limit.most:
                yield _fault(
                    id, f"the file has {size if size is not None else '?'} bytes; at most {limit.most}", reason=limit.reason
                )
            continue
        level = COUNTED[limit.subject]
        found = [finding for finding in report.findings if _weight(finding, profile) is level]
        if len(found) > limit.most:
            names = _some([f"{rule} {name}" for rule, name in dict.fromkeys((f.rule, f.name) for f in found)])
            yield _fault(id, f"{limit.subject}: {len(found)}, at most {limit.most}: {names}", reason=limit.reason)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(printable(name) for name in names[:MOST_NAMED])}{more}"


def _digests(report: Report, profile: Profile) -> Iterator[dict[str, Any]]:
    for name in profile.digests:
        if name not in report.digests:
            yield _fault(f"digest-{name}", f"the report holds no {name} digest of the file (--digest {name}, --depth full)")
