# SPDX-License-Identifier: Apache-2.0
"""The engine: what becomes of a rule in every state of its inputs, and how violations become findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from fdd.core.engine import not_applicable, run_rules
from fdd.core.errors import InternalError, LimitExceeded, SourceError, UsageError
from fdd.core.finding import Finding, Outcome, Reason, State
from fdd.core.model import ABSENT, COMPLETE, NOT_REQUESTED, Document, Evidence, Identification
from fdd.core.rule import Catalogue, Violation, at
from fdd.core.source import BytesSource
from fdd.core.span import Span

Check = Callable[[Document], Iterator[Violation]]


def document(kind: str = "thing", **evidence: Evidence) -> Document:
    return Document(BytesSource(b""), None, Identification(kind, "A thing"), evidence=evidence)


def one_rule(check: Check, *, needs: tuple[str, ...] = (), per: str = "file", message: str = "wrong") -> Catalogue:
    catalogue = Catalogue("test")
    enter(catalogue, "T-001", check, needs=needs, per=per, message=message)
    return catalogue


def enter(
    catalogue: Catalogue, id: str, check: Check, *, needs: tuple[str, ...] = (), per: str = "file", message: str = "wrong"
) -> None:
    catalogue.rule(
        id,
        id.lower(),
        axis="valid",
        level="error",
        clause="1",
        title="T.",
        message=message,
        remedy="mend it",
        kinds=frozenset({"thing"}),
        needs=needs,
        per=per,
    )(check)


def fine(_: Document) -> Iterator[Violation]:
    yield from ()


def broken(_: Document) -> Iterator[Violation]:
    yield at(Span(4, 2))


def outcome_of(catalogue: Catalogue, subject: Document, most: int = 100) -> Outcome:
    (outcome,) = run_rules(catalogue, subject, findings_per_rule=most)
    return outcome


@pytest.mark.parametrize(
    ("evidence", "state", "reason"),
    [
        (COMPLETE, State.PASSED, None),
        (ABSENT, State.NOT_APPLICABLE, None),
        (NOT_REQUESTED, State.NOT_REQUESTED, None),
        (Evidence("withheld", Reason.IO, detail="no"), State.NOT_EVALUATED, Reason.IO),
        (Evidence("partial", Reason.LIMIT, detail="no"), State.NOT_EVALUATED, Reason.LIMIT),
        (Evidence("partial", Reason.TIMEOUT), State.NOT_EVALUATED, Reason.TIMEOUT),
    ],
    ids=lambda value: value.state if isinstance(value, Evidence) else "",
)
def test_state_follows_from_the_input(evidence: Evidence, state: State, reason: Reason | None) -> None:
    outcome = outcome_of(one_rule(fine, needs=("input",)), document(input=evidence))
    assert (outcome.state, outcome.reason, outcome.detail) == (state, reason, evidence.detail)


WITHHELD = Evidence("withheld", Reason.IO)
PARTIAL = Evidence("partial", Reason.LIMIT)


@pytest.mark.parametrize(
    ("first", "second", "state", "reason"),
    [
        (WITHHELD, ABSENT, State.NOT_APPLICABLE, None),
        (NOT_REQUESTED, ABSENT, State.NOT_APPLICABLE, None),
        (WITHHELD, NOT_REQUESTED, State.NOT_REQUESTED, None),
        (PARTIAL, WITHHELD, State.NOT_EVALUATED, Reason.IO),
        (COMPLETE, PARTIAL, State.NOT_EVALUATED, Reason.LIMIT),
        (COMPLETE, COMPLETE, State.PASSED, None),
        (Evidence("withheld", Reason.LIMIT), WITHHELD, State.NOT_EVALUATED, Reason.LIMIT),
        (WITHHELD, Evidence("withheld", Reason.LIMIT), State.NOT_EVALUATED, Reason.IO),
    ],
)
def test_of_several_inputs_the_worst_counts_and_of_equals_the_first(
    first: Evidence, second: Evidence, state: State, reason: Reason | None
) -> None:
    outcome = outcome_of(one_rule(fine, needs=("first", "second")), document(first=first, second=second))
    assert (outcome.state, outcome.reason) == (state, reason)


@pytest.mark.parametrize("state", ["complete", "partial"])
def test_what_is_there_shows_violations(state: str) -> None:
    outcome = outcome_of(one_rule(broken, needs=("input",)), document(input=Evidence(state, Reason.LIMIT)))
    assert outcome.state is State.FAILED
    assert [finding.offset for finding in outcome.findings] == [4]


def test_withheld_input_is_not_judged() -> None:
    outcome = outcome_of(one_rule(broken, needs=("input",)), document(input=Evidence("withheld", Reason.IO)))
    assert outcome.state is State.NOT_EVALUATED


def test_input_that_nobody_named_is_absent() -> None:
    assert outcome_of(one_rule(broken, needs=("input",)), document()).state is State.NOT_APPLICABLE


def test_other_kinds_are_none_of_its_business() -> None:
    assert outcome_of(one_rule(broken), document("other")).state is State.NOT_APPLICABLE
    assert [outcome.state for outcome in not_applicable(one_rule(broken))] == [State.NOT_APPLICABLE]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ZeroDivisionError("division by zero"), Reason.CRASH),
        (RecursionError("too deep"), Reason.CRASH),
        (LimitExceeded("pickle_nodes", "too many"), Reason.LIMIT),
        (SourceError("gone", offset=3), Reason.IO),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_rule_that_fails_is_not_evaluated_and_the_others_are(error: Exception, reason: Reason) -> None:
    def fail(_: Document) -> Iterator[Violation]:
        yield from ()
        raise error

    catalogue = Catalogue("test")
    enter(catalogue, "T-001", broken)
    enter(catalogue, "T-002", fail)
    enter(catalogue, "T-003", fine)
    outcomes = run_rules(catalogue, document(), findings_per_rule=10)
    assert [outcome.state for outcome in outcomes] == [State.FAILED, State.NOT_EVALUATED, State.PASSED]
    assert outcomes[1].reason is reason
    assert str(error) in (outcomes[1].detail or "")
    assert outcomes[1].open


def test_what_was_found_before_a_crash_stands() -> None:
    def both(_: Document) -> Iterator[Violation]:
        yield at(Span(1, 1))
        raise ValueError("then it fell")

    outcome = outcome_of(one_rule(both), document())
    assert outcome.state is State.FAILED
    assert len(outcome.findings) == 1


def test_a_message_that_cannot_be_made_is_a_crash_not_the_end() -> None:
    outcome = outcome_of(one_rule(broken, message="{nobody} gave this"), document())
    assert (outcome.state, outcome.reason) == (State.NOT_EVALUATED, Reason.CRASH)
    assert "nobody" in (outcome.detail or "")


@pytest.mark.parametrize(
    ("by", "state", "reason", "named"),
    [
        (("T-002",), State.NOT_EVALUATED, Reason.BLOCKED, "T-002"),
        (("T-003", "T-002"), State.NOT_EVALUATED, Reason.BLOCKED, "T-002"),
        (("T-003",), State.NOT_EVALUATED, Reason.CRASH, None),
        ((), State.NOT_EVALUATED, Reason.CRASH, None),
    ],
    ids=["failed", "second failed", "passed", "nobody"],
)
def test_the_rule_that_blocks_is_named(by: tuple[str, ...], state: State, reason: Reason, named: str | None) -> None:
    catalogue = Catalogue("test")
    enter(catalogue, "T-001", fine, needs=("input",))
    enter(catalogue, "T-002", broken)
    enter(catalogue, "T-003", fine)
    subject = document(input=Evidence("withheld", Reason.BLOCKED, by))
    outcome = run_rules(catalogue, subject, findings_per_rule=10)[0]
    assert (outcome.state, outcome.reason, outcome.by) == (state, reason, named)
    assert outcome.open is (reason is Reason.CRASH)


VIOLATIONS = (
    at(Span(0, 1), record="a", size=1),
    at(Span(5, 1), record="b", size=2),
    at(Span(9, 1), record="a", size=3),
)


def several(_: Document) -> Iterator[Violation]:
    yield from VIOLATIONS


@pytest.mark.parametrize(
    ("per", "expected"),
    [
        ("file", [("a", 0, 3, "size 1")]),
        ("record", [("a", 0, 2, "size 1"), ("b", 5, 1, "size 2")]),
        ("place", [("a", 0, 1, "size 1"), ("b", 5, 1, "size 2"), ("a", 9, 1, "size 3")]),
    ],
)
def test_violations_of_one_cause_are_one_finding(per: str, expected: list[tuple[str, int, int, str]]) -> None:
    outcome = outcome_of(one_rule(several, per=per, message="size {size}"), document())
    assert [(f.record, f.offset, f.count, f.message) for f in outcome.findings] == expected


@pytest.mark.parametrize(("most", "counts"), [(0, [10]), (1, [10]), (4, [1, 1, 1, 7]), (10, [1] * 10), (11, [1] * 10)])
def test_what_exceeds_the_limit_is_counted_into_the_last(most: int, counts: list[int]) -> None:
    def many(_: Document) -> Iterator[Violation]:
        for number in range(10):
            yield at(Span(number, 1))

    outcome = outcome_of(one_rule(many, per="place"), document(), most)
    assert [finding.count for finding in outcome.findings] == counts


def test_names_in_findings_are_made_safe() -> None:
    def named(_: Document) -> Iterator[Violation]:
        yield at(None, record="a\ud800", tensor="b\udfff", name="\x1b[31m\u202e", raw=b"\xff\n")

    (finding,) = outcome_of(one_rule(named, message="{name} and {raw}"), document()).findings
    assert finding.message == "\\x1b[31m\\u202e and %FF%0A"
    assert (finding.record, finding.tensor) == ("a%ED%A0%80", "b%ED%BF%BF")
    assert (finding.offset, finding.length) == (None, None)


def test_a_finding_has_what_the_rule_states() -> None:
    (finding,) = outcome_of(one_rule(broken), document()).findings
    assert finding == Finding("T-001", "t-001", finding.axis, finding.level, "1", "wrong", "mend it", offset=4, length=2, count=1)
    assert (finding.axis.value, finding.level.value) == ("valid", "error")


def test_a_catalogue_refuses_contradictions() -> None:
    catalogue = one_rule(fine)
    with pytest.raises(InternalError, match="defined twice"):
        enter(catalogue, "T-001", fine)
    with pytest.raises(InternalError, match="per="):
        enter(catalogue, "T-002", fine, per="planet")
    with pytest.raises(InternalError, match="advice is never an error"):
        catalogue.rule("T-003", "x", axis="advice", level="error", clause="", title="", message="", remedy="", kinds=frozenset())(
            fine
        )
    assert catalogue["t-001"] is catalogue["T-001"]
    with pytest.raises(UsageError, match="no rule"):
        catalogue["T-404"]


def test_the_digest_of_a_catalogue_changes_with_its_rules() -> None:
    catalogue = one_rule(fine)
    before = catalogue.sha256()
    assert before == one_rule(broken).sha256() == catalogue.sha256(), "it speaks of what is stated, not of code"
    assert before != one_rule(fine, message="other").sha256()
    enter(catalogue, "T-002", fine)
    assert catalogue.sha256() != before
