# SPDX-License-Identifier: Apache-2.0
"""What a profile demands, in sentences: for the command line, the pages, and to compare two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fdd.core.profile import Allowed, Constraint, Limit, Profile, RuleChoice, Treatment

_OPERATOR_WORDS = {
    "equals": "is {}",
    "not-equals": "is not {}",
    "one-of": "is one of {}",
    "none-of": "is none of {}",
    "at-least": "is at least {}",
    "at-most": "is at most {}",
    "like": "fits {}",
    "keys-within": "has no names but {}",
    "each-within": "has nothing but {}",
}
_COUNTED_WORDS = {"warnings": "warnings", "infos": "findings of level info", "file-bytes": "bytes in the file"}


def rule_sentence(choice: RuleChoice) -> str:
    """What is done with which rules."""
    if choice.treatment is Treatment.DEMAND:
        return f"rule {choice.pattern}: demanded"
    if choice.treatment is Treatment.IGNORE:
        return f"rule {choice.pattern}: ignored"
    return f"rule {choice.pattern}: weighs as {choice.level}"


def constraint_sentence(constraint: Constraint) -> str:
    """What must hold of which property."""
    if constraint.operator in ("present", "empty"):
        return f"property {constraint.path}: is {'' if constraint.value else 'not '}{constraint.operator}"
    return f"property {constraint.path}: {_OPERATOR_WORDS[constraint.operator].format(_value(constraint.value))}"


def allowed_sentence(allowed: Allowed) -> str:
    """What is allowed of which sort of thing."""
    return f"{allowed.subject}: only {', '.join(allowed.patterns) or 'none'}"


def limit_sentence(limit: Limit) -> str:
    """The most there may be of what."""
    return f"{_COUNTED_WORDS[limit.subject]}: at most {limit.most:,}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def demands_of(profile: Profile) -> Iterator[tuple[str, str, str, str]]:
    """Every demand as a sentence, with its reason, the statement it stands for, and its note (empty where it has none)."""
    yield f"verdict: {', '.join(profile.verdicts) or 'any'}", "", "", ""
    if profile.safety:
        yield f"safety: {', '.join(profile.safety)} (or nothing that could run)", "", "", ""
    if profile.digests:
        yield f"digests in the report: {', '.join(profile.digests)}", "", "", ""
    for allowed in profile.allowed:
        yield allowed_sentence(allowed), allowed.reason, allowed.statement, allowed.note
    for choice in profile.rules:
        yield rule_sentence(choice), choice.reason, choice.statement, choice.note
    for constraint in profile.constraints:
        yield constraint_sentence(constraint), constraint.message, constraint.statement, constraint.note
    for limit in profile.limits:
        yield limit_sentence(limit), limit.reason, limit.statement, limit.note


def explained(profile: Profile) -> list[str]:
    """A profile for people, line by line."""
    lines = [f"{profile.name} {profile.version}: {profile.title}", f"  sha256 {profile.sha256}"]
    lines += [f"  extends {name} {version} (sha256 {digest})" for name, version, digest in profile.ancestors]
    lines += [f"  {line}" if line else "" for line in profile.description.splitlines()]
    for sentence, reason, statement, note in demands_of(profile):
        lines.append(f"  {sentence}")
        lines += [f"      {text}" for text in (*([f"says: {statement}"] if statement else []), reason, note) if text]
    if profile.untestable:
        lines.append("  not testable:")
    for entry in profile.untestable:
        lines += [f"    {entry.statement}", *(f"      {text}" for text in (entry.reason, entry.note) if text)]
    return lines


def difference(first: Profile, second: Profile) -> tuple[list[str], list[str]]:
    """The demands that only the first, and only the second profile has; reasons and words do not count."""
    return _only(first, second), _only(second, first)


def _only(profile: Profile, other: Profile) -> list[str]:
    known = set(_sentences(other))
    return [sentence for sentence in _sentences(profile) if sentence not in known]


def _sentences(profile: Profile) -> Sequence[str]:
    return list(dict.fromkeys(sentence for sentence, *_ in demands_of(profile)))
