# SPDX-License-Identifier: Apache-2.0
"""Runs rules over a document. A crash in a rule is "not evaluated", never a pass and never the end of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from fdd.core.errors import LimitExceeded, SourceError
from fdd.core.finding import Finding, Outcome, Reason, State
from fdd.core.model import ABSENT, Document, Evidence
from fdd.core.rule import Rule, Violation
from fdd.core.text import printable, valid_text


def run_rules(rules: Iterable[Rule], document: Document, *, findings_per_rule: int) -> list[Outcome]:
    """Run every rule once and name, for the blocked ones, the failed rule that blocks them."""
    outcomes = [_outcome(rule, document, findings_per_rule) for rule in rules]
    states = {outcome.rule: outcome.state for outcome in outcomes}
    return [_name_blocker(outcome, states) for outcome in outcomes]


def not_applicable(rules: Iterable[Rule]) -> list[Outcome]:
    """Outcomes for a file whose kind no rule applies to."""
    return [Outcome(rule.id, rule.axis, rule.level, State.NOT_APPLICABLE) for rule in rules]


def _outcome(rule: Rule, document: Document, findings_per_rule: int) -> Outcome:
    """Every rule passes here for every file: what is settled without running it comes first, and costs next to nothing."""
    if document.kind not in rule.kinds:
        return Outcome(rule.id, rule.axis, rule.level, State.NOT_APPLICABLE)
    wanting = {
        given.state: given for need in reversed(rule.needs) if (given := document.evidence.get(need, ABSENT)).state != "complete"
    }
    if "absent" in wanting:
        return Outcome(rule.id, rule.axis, rule.level, State.NOT_APPLICABLE)
    if "not-requested" in wanting:
        return Outcome(rule.id, rule.axis, rule.level, State.NOT_REQUESTED)
    if "withheld" in wanting:
        return _not_evaluated(rule, wanting["withheld"])
    return _run(rule, document, findings_per_rule, wanting.get("partial"))


def _run(rule: Rule, document: Document, findings_per_rule: int, stopped: Evidence | None) -> Outcome:
    """Run a rule; ``stopped`` says why its input ends early, None where it does not."""
    violations: list[Violation] = []
    findings: tuple[Finding, ...] = ()
    try:
        try:
            violations.extend(rule.check(document))
        finally:
            # A violation found before a fault stands; so does the fault if telling of the violation is what fails.
            findings = tuple(_findings(rule, violations, findings_per_rule)) if violations else ()
    except LimitExceeded as error:
        stopped = Evidence("partial", Reason.LIMIT, detail=str(error))
    except SourceError as error:
        stopped = Evidence("partial", Reason.IO, detail=str(error))
    except Exception as error:  # noqa: BLE001  (a fault of one rule must not hide what the others find)
        stopped = Evidence("partial", Reason.CRASH, detail=f"{type(error).__name__}: {error}")
    if findings:
        return Outcome(rule.id, rule.axis, rule.level, State.FAILED, findings=findings)
    if stopped is not None:
        return _not_evaluated(rule, stopped)
    return Outcome(rule.id, rule.axis, rule.level, State.PASSED)


def _not_evaluated(rule: Rule, why: Evidence) -> Outcome:
    by = "|".join(why.by) or None
    return Outcome(rule.id, rule.axis, rule.level, State.NOT_EVALUATED, why.reason, by, why.detail)


def _findings(rule: Rule, violations: list[Violation], most: int) -> Iterator[Finding]:
    """Group violations by cause; what exceeds ``most`` causes is counted into the last one."""
    groups: dict[object, list[Violation]] = {}
    for index, violation in enumerate(violations):
        key = _cause(rule.per, violation, index)
        if groups and key not in groups and len(groups) >= most:
            key = next(reversed(groups))
        groups.setdefault(key, []).append(violation)
    for group in groups.values():
        yield _finding(rule, group[0], len(group))


def _cause(per: str, violation: Violation, index: int) -> object:
    if per == "file":
        return None
    return violation.record if per == "record" else index


def _finding(rule: Rule, first: Violation, count: int) -> Finding:
    shown = {key: printable(value) if isinstance(value, (str, bytes)) else value for key, value in first.fields.items()}
    return Finding(
        rule=rule.id,
        name=rule.name,
        axis=rule.axis,
        level=rule.level,
        clause=rule.clause,
        message=rule.message.format(**shown),
        remedy=rule.remedy.format(**shown),
        record=valid_text(first.record) if first.record is not None else None,
        offset=first.span.offset if first.span is not None else None,
        length=first.span.length if first.span is not None else None,
        tensor=valid_text(first.tensor) if first.tensor is not None else None,
        count=count,
        fields=shown,
    )


def _name_blocker(outcome: Outcome, states: Mapping[str, State]) -> Outcome:
    """Of the rules that can have blocked this one, name the first that failed.

    Where none failed, but one was not asked for at this depth, more depth is what is missing. A rule blocked by nothing at
    all would be a silent hole in the verdict: it becomes a crash, which shows.
    """
    if outcome.reason is not Reason.BLOCKED:
        return outcome
    candidates = (outcome.by or "").split("|")
    by = next((rule for rule in candidates if states.get(rule) is State.FAILED), None)
    if by is not None:
        return replace(outcome, by=by)
    deeper = next((rule for rule in candidates if states.get(rule) is State.NOT_REQUESTED), None)
    if deeper is not None:
        return replace(outcome, reason=Reason.LIMIT, by=None, detail=f"needs a deeper look: {deeper} was not asked for")
    return replace(outcome, reason=Reason.CRASH, by=None, detail="blocked by no failed rule")
