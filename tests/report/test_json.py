# SPDX-License-Identifier: Apache-2.0
"""JSON reports: every one follows the schema, and a document has the shape that the number of files asks for."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import fdd
from fdd import api
from fdd.core.report import Report
from tests.report.samples import (
    PATHS,
    SCHEMA,
    good_file,
    hostile_reports,
    report_on,
    written,
)
from tests.test_corpus import CORPUS, MANIFEST

SET = {"kind": "sharded-model", "root": "a", "members": ["b"], "missing": ["c"], "extra": [], "complete": False}


def check_schema(report: Report) -> None:
    """All but the outcomes of passed rules, a long list of one kind: some reports have them below."""
    SCHEMA.validate(json.loads(report.to_json()))


def check_round_trip(report: Report) -> None:
    text = report.to_json(verbose=True)
    document = json.loads(text)
    assert json.dumps(document, allow_nan=False)
    assert Report.from_json(text).to_json(verbose=True) == text
    levels = [finding["level"] for finding in document["findings"]]
    assert document["status"]["counts"] == {level: levels.count(level) for level in ("error", "warning", "info")}
    assert sum(document["status"]["rules"].values()) == len(document["outcomes"])


def test_reports_follow_the_schema_and_can_be_read_back() -> None:
    for number, path in enumerate(PATHS):
        try:
            check_schema(report_on(path))
            if number % 5 == 0:
                check_round_trip(report_on(path))
        except (AssertionError, jsonschema.ValidationError) as error:
            raise AssertionError(f"{path}: {error}") from error


@pytest.mark.parametrize("entry", MANIFEST[::25], ids=lambda entry: str(entry["path"]))
def test_other_commands_and_depths_follow_the_schema(entry: dict[str, Any]) -> None:
    path, name = str(CORPUS / entry["path"]), entry.get("name")
    reports = [fdd.extract(path, name=name), api.identify_report(path, name=name)]
    reports += [fdd.validate(path, name=name, depth=depth) for depth in ("directory", "structure")]
    for report in reports:
        SCHEMA.validate(json.loads(report.to_json(verbose=True)))
        SCHEMA.validate(json.loads(report.to_json(brief=True)))
    assert all("status" not in report.to_dict() for report in reports[:2])


def test_reports_on_hostile_names_follow_the_schema() -> None:
    for report in hostile_reports():
        text = report.to_json(verbose=True)
        SCHEMA.validate(json.loads(text))
        assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("internal", [False, True])
def test_errors_follow_the_schema(internal: bool) -> None:
    SCHEMA.validate(api.error_report("dir/caf\udce9.pt", "no\udce9", internal=internal).to_dict())


def test_the_schema_refuses_what_is_not_in_it() -> None:
    document = report_on(PATHS[0]).to_dict()
    changes: tuple[dict[str, Any], ...] = (
        {"surprise": 1}, {"report_version": "1.1"}, {"status": {}}, {"findings": [{}]}, {"file": 7},
    )  # fmt: skip
    for change in changes:
        with pytest.raises(jsonschema.ValidationError):
            SCHEMA.validate(document | change)
    for key in ("tool", "identification", "not_evaluated"):
        with pytest.raises(jsonschema.ValidationError):
            SCHEMA.validate({name: value for name, value in document.items() if name != key})


def test_one_file_gives_the_report_itself() -> None:
    report = fdd.validate(good_file())
    document = json.loads(written("json", [report], [SET], single=True))
    assert document == report.to_dict()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_more_give_a_document_around_them(count: int) -> None:
    reports = [report_on(path) for path in PATHS[:count]]
    document = json.loads(written("json", reports))
    assert document["reports"] == [report.to_dict() for report in reports]
    assert (document["summary"]["files"], document["summary"]["errors"]) == (count, 0)
    assert sum(document["summary"].get("verdicts", {}).values()) == count
    assert set(document) == {"reports", "summary"}


def test_sets_come_behind_the_reports() -> None:
    document = json.loads(written("json", [report_on(path) for path in PATHS[:2]], [SET]))
    assert document["sets"] == [SET]


def test_json_lines() -> None:
    reports = [*(report_on(path) for path in PATHS[:3]), *hostile_reports()]
    text = written("jsonl", reports, [SET], single=True)
    lines = text.splitlines()
    assert text.endswith("\n")
    assert [json.loads(line) for line in lines] == [*(report.to_dict() for report in reports), {"set": SET}]


def test_documents_are_written_as_reports_come() -> None:
    """What is written before an end is the beginning of the whole: nothing is held back but sets and summary."""
    reports = [report_on(path) for path in PATHS[:4]]
    whole = written("json", reports)
    position = -1
    for report in reports:
        position = whole.index(report.to_json(), position + 1)
    assert whole.index('"summary"', position) > position
