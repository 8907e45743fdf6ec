# SPDX-License-Identifier: Apache-2.0
"""Reports as values: what is written can be read back, and what is no report is refused."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fdd
from fdd.core.errors import UsageError
from fdd.core.finding import Axis, Finding, Level, Outcome, Reason, State, Verdict, decide
from fdd.core.model import Basis, Identification, Registry
from fdd.core.report import Report
from fdd.resources import corpus_dir

TOOL = {"name": "fdd", "version": "0", "catalogue": "c/1", "catalogue_sha256": "0" * 64}
FINDING = Finding("T-001", "t", Axis.VALID, Level.ERROR, "1", "wrong", "mend", "a\u202eb", 5, 0, "t\x1b", 3, {"n": 1})
OUTCOMES = (
    Outcome("T-001", Axis.VALID, Level.ERROR, State.FAILED, findings=(FINDING,)),
    Outcome("T-002", Axis.VALID, Level.ERROR, State.NOT_EVALUATED, Reason.BLOCKED, by="T-001"),
    Outcome("T-003", Axis.SAFETY, Level.WARNING, State.NOT_EVALUATED, Reason.LIMIT, detail="too much"),
    Outcome("T-004", Axis.VALID, Level.ERROR, State.PASSED),
)
IDENTIFICATION = Identification(
    "thing", "A thing", "fdd1", "3", "structure", [Registry("R", "1"), Registry("R", "2", "note")], "a/b", None,
    [Basis("magic", 0, 4)], "A note.", {"inside": [1]},
)  # fmt: skip


def full_report() -> Report:
    return Report(
        tool=TOOL,
        options={"depth": "full"},
        file={"path": "ü.pt", "size": 7},
        run={"seconds": 0.5},
        identification=IDENTIFICATION,
        status=decide(OUTCOMES, depth="full", judged=True, has_code=True, followed=True, safety_basis="list"),
        findings=(FINDING,),
        outcomes=OUTCOMES,
        properties={"loss": float("nan"), "content": "tensor"},
        records=({"name": "r"},),
        tensors=({"name": ""},),
        digests={"sha256": "0" * 64},
        profiles=({"name": "p", "conforms": False},),
    )


def test_the_document_has_the_order_of_the_contract() -> None:
    assert list(full_report().to_dict(verbose=True)) == [
        "report_version", "tool", "run", "options", "file", "identification", "status", "findings", "not_evaluated",
        "outcomes", "properties", "records", "tensors", "digests",
    ]  # fmt: skip


def test_brief_and_verbose() -> None:
    report = full_report()
    assert set(report.to_dict()) - set(report.to_dict(brief=True)) == {"records", "tensors"}
    assert set(report.to_dict(verbose=True)) - set(report.to_dict()) == {"outcomes"}
    assert report.to_dict(verbose=True)["outcomes"]["T-004"] == "passed"


@pytest.mark.parametrize("verbose", [False, True])
def test_what_is_written_can_be_read_back(verbose: bool) -> None:
    text = full_report().to_json(verbose=verbose)
    again = Report.from_json(text)
    assert again.to_json(verbose=verbose) == text
    assert again.verdict is Verdict.UNDETERMINED or again.verdict is Verdict.WELL_FORMED_NOT_VALID
    assert again.identification == IDENTIFICATION
    assert again.findings == (replace(FINDING, fields={}),)
    assert [outcome.rule for outcome in again.not_evaluated()] == ["T-002", "T-003"]


def test_the_properties_of_a_report() -> None:
    report = full_report()
    assert report.status is not None
    assert (report.verdict, report.valid, report.safety) == (report.status.verdict, report.status.valid, report.status.safety)
    without = Report(tool=TOOL, options={}, file={})
    assert (without.verdict, without.valid, without.safety) == (None, None, None)


def test_json_holds_no_raw_control_or_bidirectional_character() -> None:
    text = full_report().to_json(indent=None)
    assert text.isprintable()
    document = json.loads(text)
    assert document["findings"][0]["record"] == "a\u202eb"
    assert document["properties"]["loss"] == "NaN"


@pytest.mark.parametrize("internal", [False, True])
def test_errors(internal: bool) -> None:
    report = Report(tool=TOOL, options={}, file={"path": "x"}, error="gone", internal=internal)
    document = report.to_dict()
    assert document["error"] == {"message": "gone"} | ({"internal": True} if internal else {})
    assert "identification" not in document
    assert Report.from_json(report.to_json()) == report


def test_reports_travel_between_processes() -> None:
    report = full_report()
    again = pickle.loads(pickle.dumps(report))  # noqa: S301  (our own value)
    assert again.to_json(verbose=True) == report.to_json(verbose=True)


def test_equal_bytes_give_equal_reports() -> None:
    data = (corpus_dir() / "good" / "eager-2.7-state-dict.pth").read_bytes()
    first, second = (fdd.validate(data, name="eager-2.7-state-dict.pth").without_run().to_json(verbose=True) for _ in range(2))
    assert first == second


GARBAGE: list[str] = [
    "", "{", "null", "[]", "7", '"text"', "{}", '{"report_version": 1}', '{"report_version": "2.0"}',
    '{"report_version": "1.0"}x', "[" * 100_000, "1" * 5000, '{"report_version": "1.0", "tool": 5}', "\x00", "NaN",
]  # fmt: skip


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a report of fdd"):
        Report.from_json(text)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything inside a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*path, key), *places(item, (*path, key)))]


DOCUMENT: dict[str, Any] = json.loads(full_report().to_json(verbose=True))
OTHER: st.SearchStrategy[Any] = st.sampled_from([None, True, 0, -1.5, "", "text", [], [1], {}, {"a": 1}, [[]], [{}]])


@given(st.sampled_from(places(DOCUMENT)), OTHER)
@settings(max_examples=60)
def test_a_document_with_one_thing_changed_is_read_or_refused(place: tuple[Any, ...], other: object) -> None:
    document = json.loads(json.dumps(DOCUMENT))
    target = document
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = other
    try:
        report = Report.from_dict(document)
    except UsageError:
        return
    report.to_json(verbose=True)


@given(st.sampled_from(places(DOCUMENT)))
@settings(max_examples=30)
def test_a_document_with_one_thing_missing_is_read_or_refused(place: tuple[Any, ...]) -> None:
    document = json.loads(json.dumps(DOCUMENT))
    target = document
    for key in place[:-1]:
        target = target[key]
    del target[place[-1]]
    try:
        report = Report.from_dict(document)
    except UsageError:
        return
    report.to_json(verbose=True)
