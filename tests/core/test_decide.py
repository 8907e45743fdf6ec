# SPDX-License-Identifier: Apache-2.0
"""The verdict table of the contract, section 1: each row, and which row holds where several could."""

from __future__ import annotations

import itertools

import pytest

from fdd.core.finding import VERDICT_TEXT, Axis, Finding, Level, Outcome, Reason, Safety, State, Status, Verdict, decide

FORM, VALID, SAFETY, ADVICE = Axis.WELL_FORMED, Axis.VALID, Axis.SAFETY, Axis.ADVICE
OPEN_REASONS = [Reason.LIMIT, Reason.TIMEOUT, Reason.IO, Reason.CRASH]


def failed(axis: Axis, level: Level = Level.ERROR, count: int = 1) -> Outcome:
    findings = tuple(Finding("R-001", "r", axis, level, "", "m", "") for _ in range(count))
    return Outcome("R-001", axis, level, State.FAILED, findings=findings)


def left_open(axis: Axis, reason: Reason, level: Level = Level.ERROR) -> Outcome:
    return Outcome("R-002", axis, level, State.NOT_EVALUATED, reason, by="R-001" if reason is Reason.BLOCKED else None)


def settled(state: State, axis: Axis = FORM) -> Outcome:
    return Outcome("R-003", axis, Level.ERROR, state)


def decided(*outcomes: Outcome, depth: str = "full", judged: bool = True, has_code: bool = True, followed: bool = True) -> Status:
    return decide(outcomes, depth=depth, judged=judged, has_code=has_code, followed=followed, safety_basis="a list")


BLOCKED = Reason.BLOCKED
TABLE = [
    # outcomes, verdict, well_formed, valid
    ([], Verdict.VALID, True, True),
    ([settled(State.PASSED), settled(State.NOT_APPLICABLE), settled(State.NOT_REQUESTED)], Verdict.VALID, True, True),
    ([failed(FORM)], Verdict.NOT_WELL_FORMED, False, False),
    ([failed(VALID)], Verdict.WELL_FORMED_NOT_VALID, True, False),
    ([failed(FORM), failed(VALID)], Verdict.NOT_WELL_FORMED, False, False),
    # A failed rule of the form outweighs everything that stayed open.
    *(([failed(FORM), left_open(FORM, reason)], Verdict.NOT_WELL_FORMED, False, False) for reason in Reason),
    *(([failed(FORM), left_open(VALID, reason)], Verdict.NOT_WELL_FORMED, False, False) for reason in Reason),
    # Without one, an open rule of the form leaves the verdict open, whatever is wrong with validity.
    *(([left_open(FORM, reason)], Verdict.UNDETERMINED, None, None) for reason in OPEN_REASONS),
    *(([left_open(FORM, reason), failed(VALID)], Verdict.UNDETERMINED, None, False) for reason in OPEN_REASONS),
    # Validity: a failed rule outweighs an open one.
    *(([left_open(VALID, reason), failed(VALID)], Verdict.WELL_FORMED_NOT_VALID, True, False) for reason in OPEN_REASONS),
    *(([left_open(VALID, reason)], Verdict.UNDETERMINED, True, None) for reason in OPEN_REASONS),
    # Merely blocked: the rule that blocks has failed itself and decides.
    ([failed(VALID), left_open(FORM, BLOCKED), left_open(VALID, BLOCKED)], Verdict.WELL_FORMED_NOT_VALID, True, False),
    ([failed(FORM), left_open(VALID, BLOCKED)], Verdict.NOT_WELL_FORMED, False, False),
    # Warnings, notes, safety and advice break nothing, and what stays open of them keeps nothing open.
    ([failed(FORM, Level.WARNING), failed(VALID, Level.INFO)], Verdict.VALID, True, True),
    ([failed(SAFETY), failed(ADVICE, Level.WARNING)], Verdict.VALID, True, True),
    ([left_open(SAFETY, Reason.LIMIT), left_open(ADVICE, Reason.CRASH, Level.INFO)], Verdict.VALID, True, True),
    ([left_open(FORM, Reason.LIMIT, Level.WARNING), left_open(VALID, Reason.IO, Level.INFO)], Verdict.VALID, True, True),
]


@pytest.mark.parametrize(("outcomes", "verdict", "well_formed", "valid"), TABLE)
def test_verdict(outcomes: list[Outcome], verdict: Verdict, well_formed: bool | None, valid: bool | None) -> None:
    for order in itertools.permutations(outcomes):
        status = decided(*order)
        assert (status.verdict, status.well_formed, status.valid) == (verdict, well_formed, valid)


@pytest.mark.parametrize("depth", ["directory", "structure"])
@pytest.mark.parametrize(("outcomes", "verdict", "well_formed", "valid"), TABLE)
def test_less_than_full_depth_never_says_valid(
    depth: str, outcomes: list[Outcome], verdict: Verdict, well_formed: bool | None, valid: bool | None
) -> None:
    status = decided(*outcomes, depth=depth)
    if verdict is Verdict.VALID:
        assert (status.verdict, status.well_formed, status.valid) == (Verdict.STRUCTURE_VALID, None, None)
        assert status.text == "Well-Formed"
    else:
        assert (status.verdict, status.well_formed, status.valid) == (verdict, well_formed, valid)
    assert status.depth == depth


@pytest.mark.parametrize("outcomes", [[], [failed(FORM)], [left_open(VALID, Reason.CRASH)]])
@pytest.mark.parametrize("depth", ["directory", "full"])
def test_kinds_that_nobody_judges(outcomes: list[Outcome], depth: str) -> None:
    status = decided(*outcomes, judged=False, depth=depth)
    assert (status.verdict, status.well_formed, status.valid) == (Verdict.NOT_THIS_FORMAT, None, None)


SAFETIES = [
    ([], True, Safety.LISTED),
    ([failed(SAFETY, Level.INFO)], True, Safety.LISTED),
    ([failed(SAFETY, Level.WARNING)], True, Safety.UNLISTED),
    ([failed(SAFETY)], True, Safety.DANGEROUS),
    ([failed(SAFETY), failed(SAFETY, Level.WARNING)], True, Safety.DANGEROUS),
    ([], False, Safety.UNDETERMINED),
    ([failed(SAFETY, Level.WARNING)], False, Safety.UNDETERMINED),
    ([failed(SAFETY)], False, Safety.DANGEROUS),
    ([failed(SAFETY), left_open(SAFETY, Reason.LIMIT)], True, Safety.DANGEROUS),
    *(([left_open(SAFETY, reason)], True, Safety.UNDETERMINED) for reason in Reason),
    ([failed(FORM), failed(VALID), failed(ADVICE, Level.WARNING)], True, Safety.LISTED),
]


@pytest.mark.parametrize(("outcomes", "followed", "safety"), SAFETIES)
def test_safety(outcomes: list[Outcome], followed: bool, safety: Safety) -> None:
    status = decided(*outcomes, followed=followed)
    assert (status.safety, status.safety_basis) == (safety, "a list")
    foreign = decided(*outcomes, followed=followed, judged=False)
    assert foreign.safety is safety, "safety is given for foreign pickles too"


@pytest.mark.parametrize(("outcomes", "followed", "safety"), SAFETIES)
def test_no_safety_without_code(outcomes: list[Outcome], followed: bool, safety: Safety) -> None:
    status = decided(*outcomes, followed=followed, has_code=False)
    assert (status.safety, status.safety_basis) == (None, None)


def test_counts() -> None:
    status = decided(
        failed(FORM, count=2),
        failed(SAFETY, Level.WARNING),
        failed(ADVICE, Level.INFO, count=3),
        left_open(VALID, BLOCKED),
        settled(State.PASSED),
        settled(State.PASSED),
        settled(State.NOT_APPLICABLE),
        settled(State.NOT_REQUESTED),
    )
    assert status.counts == {"error": 2, "warning": 1, "info": 3}
    assert status.rules == {"passed": 2, "failed": 3, "not_applicable": 1, "not_requested": 1, "not_evaluated": 1}


@pytest.mark.parametrize(
    ("outcome", "complete"), [(settled(State.PASSED), True), *((left_open(ADVICE, r), False) for r in Reason)]
)
def test_complete_means_that_every_rule_was_evaluated(outcome: Outcome, complete: bool) -> None:
    assert decided(outcome).complete is complete


def test_words() -> None:
    assert {verdict.value: text for verdict, text in VERDICT_TEXT.items()} == {
        "valid": "Well-Formed and valid",
        "structure-valid": "Well-Formed",
        "well-formed-not-valid": "Well-Formed, but not valid",
        "not-well-formed": "Not well-formed",
        "not-this-format": "Unknown",
        "undetermined": "Unknown",
    }
