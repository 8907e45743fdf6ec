# SPDX-License-Identifier: Apache-2.0
"""Findings, outcomes of rules, and the one place where a verdict follows from outcomes (contract, section 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Axis(StrEnum):
    """What a rule speaks about; the axes are never mixed."""

    WELL_FORMED = "well-formed"
    VALID = "valid"
    SAFETY = "safety"
    ADVICE = "advice"


class Level(StrEnum):
    """How much a finding weighs on its own axis: an error breaks it, warning and info break none."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class State(StrEnum):
    """What became of one rule for one file."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not-applicable"
    NOT_REQUESTED = "not-requested"
    NOT_EVALUATED = "not-evaluated"


class Reason(StrEnum):
    """Why a rule was not evaluated."""

    BLOCKED = "blocked"
    LIMIT = "limit"
    TIMEOUT = "timeout"
    IO = "io"
    CRASH = "crash"


class Verdict(StrEnum):
    """The words of contract section 1, first column."""

    VALID = "valid"
    STRUCTURE_VALID = "structure-valid"
    WELL_FORMED_NOT_VALID = "well-formed-not-valid"
    NOT_WELL_FORMED = "not-well-formed"
    NOT_THIS_FORMAT = "not-this-format"
    UNDETERMINED = "undetermined"


class Safety(StrEnum):
    """What loading could run: the worst finding on the safety axis."""

    LISTED = "listed"
    UNLISTED = "unlisted"
    DANGEROUS = "dangerous"
    UNDETERMINED = "undetermined"


VERDICT_TEXT: Mapping[Verdict, str] = {
    Verdict.VALID: "Well-Formed and valid",
    Verdict.STRUCTURE_VALID: "Well-Formed",
    Verdict.WELL_FORMED_NOT_VALID: "Well-Formed, but not valid",
    Verdict.NOT_WELL_FORMED: "Not well-formed",
    Verdict.NOT_THIS_FORMAT: "Unknown",
    Verdict.UNDETERMINED: "Unknown",
}
"""The status words of JHOVE for each verdict."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause, where it first shows, and how often. Offsets and lengths are bytes, absolute in the file."""

    rule: str
    name: str
    axis: Axis
    level: Level
    clause: str
    message: str
    remedy: str
    record: str | None = None
    offset: int | None = None
    length: int | None = None
    tensor: str | None = None
    count: int = 1
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The values the message was made of, for machines."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one rule. ``by`` names the failed rule that took the input away (reason blocked)."""

    rule: str
    axis: Axis
    level: Level
    state: State
    reason: Reason | None = None
    by: str | None = None
    detail: str | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def open(self) -> bool:
        """Not evaluated for a reason other than being blocked by another finding."""
        return self.state is State.NOT_EVALUATED and self.reason is not Reason.BLOCKED


@dataclass(frozen=True, slots=True)
class Status:
    """The verdict and what it rests on."""

    verdict: Verdict
    well_formed: bool | None
    valid: bool | None
    depth: str
    complete: bool
    safety: Safety | None
    safety_basis: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    rules: Mapping[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """JHOVE's words for the verdict."""
        return VERDICT_TEXT[self.verdict]


def decide(
    outcomes: Iterable[Outcome],
    *,
    depth: str,
    judged: bool,
    has_code: bool,
    followed: bool,
    safety_basis: str | None,
) -> Status:
    """Derive the status from the outcomes of all rules.

    ``judged`` is false where no installed format judges the kind. ``has_code`` says whether there is any pickle or
    code at all; ``followed`` whether all of it could be followed to its end.
    """
    outcomes = list(outcomes)
    complete = not any(outcome.state is State.NOT_EVALUATED for outcome in outcomes)
    verdict, well_formed, valid = _verdict(outcomes, depth) if judged else (Verdict.NOT_THIS_FORMAT, None, None)
    safety = _safety(outcomes, followed) if has_code else None
    levels = Counter(finding.level for outcome in outcomes for finding in outcome.findings)
    states = Counter(outcome.state for outcome in outcomes)
    return Status(
        verdict=verdict,
        well_formed=well_formed,
        valid=valid,
        depth=depth,
        complete=complete,
        safety=safety,
        safety_basis=safety_basis if safety is not None else None,
        counts={level.value: levels[level] for level in Level},
        rules={state.value.replace("-", "_"): states[state] for state in State},
    )


def _verdict(outcomes: list[Outcome], depth: str) -> tuple[Verdict, bool | None, bool | None]:
    form = [o for o in outcomes if o.axis is Axis.WELL_FORMED and o.level is Level.ERROR]
    validity = [o for o in outcomes if o.axis is Axis.VALID and o.level is Level.ERROR]
    if any(o.state is State.FAILED for o in form):
        return Verdict.NOT_WELL_FORMED, False, False
    if any(o.open for o in form):
        return Verdict.UNDETERMINED, None, False if any(o.state is State.FAILED for o in validity) else None
    if any(o.state is State.FAILED for o in validity):
        return Verdict.WELL_FORMED_NOT_VALID, True, False
    if any(o.open for o in validity):
        return Verdict.UNDETERMINED, True, None
    if depth != "full":
        return Verdict.STRUCTURE_VALID, None, None
    return Verdict.VALID, True, True


def _safety(outcomes: list[Outcome], followed: bool) -> Safety:
    levels = {f.level for o in outcomes if o.axis is Axis.SAFETY for f in o.findings}
    if Level.ERROR in levels:
        return Safety.DANGEROUS
    if not followed or any(o.axis is Axis.SAFETY and o.state is State.NOT_EVALUATED for o in outcomes):
        return Safety.UNDETERMINED
    return Safety.UNLISTED if Level.WARNING in levels else Safety.LISTED
