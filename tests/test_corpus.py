# SPDX-License-Identifier: Apache-2.0
"""The main test: every file of the corpus gives exactly what ``corpus/manifest.toml`` says, no more and no less."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import fdd
from fdd import api
from fdd.core.finding import Reason, State
from fdd.core.report import Report
from fdd.formats import BUILT_IN, installed
from fdd.formats.plugin import Format
from fdd.policy.load import shipped
from fdd.resources import corpus_dir

CORPUS = corpus_dir()
MANIFEST: list[dict[str, Any]] = tomllib.loads((CORPUS / "manifest.toml").read_text(encoding="utf-8"))["file"]
NO_FILE = {"manifest.toml", "README.md"}
FORMATS = installed()[: len(BUILT_IN)]
"""Those that come with fdd: others bring their own corpus."""
NEVER_PASS = {"PT-ETE-001": "executorch"}
"""Rules that cannot pass, because nothing reads their input to its end, and the input: a good file stays open."""


@cache
def report_on(path: str, name: str | None, depth: str) -> Report:
    return fdd.validate(str(CORPUS / path), name=name, depth=depth)


def report_of(entry: dict[str, Any]) -> Report:
    """The report on a file of the manifest, at full depth where it asks for no other."""
    return report_on(entry["path"], entry.get("name"), entry.get("depth", "full"))


def places(report: Report) -> Iterator[str]:
    for finding in report.findings:
        place = f" {finding.offset}+{finding.length}" if finding.offset is not None else ""
        count = f" x{finding.count}" if finding.count > 1 else ""
        yield f"{finding.rule}{place}{count}"


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: str(entry["path"]))
def test_file_gives_what_the_manifest_says(entry: dict[str, Any]) -> None:
    report = report_of(entry)
    assert report.identification is not None and report.status is not None
    crashed = [outcome for outcome in report.outcomes if outcome.open]
    assert not crashed or entry["verdict"] == "undetermined"
    found = {
        "kind": report.identification.kind,
        "verdict": report.status.verdict.value,
        "safety": report.status.safety.value if report.status.safety is not None else "none",
        "findings": sorted(places(report)),
    }
    expected = {key: entry[key] for key in ("kind", "verdict", "safety")} | {"findings": sorted(entry["findings"])}
    assert found == expected
    if "content" in entry:
        assert report.properties["content"] == entry["content"]


@pytest.mark.parametrize("entry", [entry for entry in MANIFEST if "profiles" in entry], ids=lambda entry: str(entry["path"]))
def test_file_measures_up_to_the_profiles_that_the_manifest_names(entry: dict[str, Any]) -> None:
    expected = dict.fromkeys(entry["profiles"].get("conforms", ()), True)
    expected |= dict.fromkeys(entry["profiles"].get("fails", ()), False)
    report = report_of(entry)
    judged = api.rejudged(report, expected)
    assert {profile["name"]: profile["conforms"] for profile in judged.profiles} == expected
    assert all(profile["failed"] for profile in judged.profiles if not profile["conforms"])
    # A stored report is enough to say the same, word for word.
    assert api.rejudged(Report.from_json(report.to_json(brief=True)), expected).profiles == judged.profiles


def test_each_profile_has_a_file_that_conforms_and_one_that_does_not() -> None:
    for word in ("conforms", "fails"):
        named = {name for entry in MANIFEST for name in entry.get("profiles", {}).get(word, ())}
        assert named == set(shipped()), word


def test_manifest_names_every_file_once() -> None:
    listed = [entry["path"] for entry in MANIFEST]
    present = {
        path.relative_to(CORPUS).as_posix()
        for path in CORPUS.rglob("*")
        if path.is_file() and path.name not in NO_FILE and "build" not in path.relative_to(CORPUS).parts
    }
    assert len(listed) == len(set(listed))
    assert present == set(listed)


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: str(fmt.name))
def test_every_rule_has_a_file_that_fails_it_and_one_that_passes_it(fmt: Format) -> None:
    failed: set[str] = set()
    passed: set[str] = set()
    limited: set[str] = set()
    for entry in MANIFEST:
        for outcome in report_of(entry).outcomes:
            if outcome.state is State.FAILED:
                failed.add(outcome.rule)
            elif outcome.state is State.PASSED:
                passed.add(outcome.rule)
            elif outcome.reason is Reason.LIMIT:
                limited.add(outcome.rule)
    rules = {rule.id: rule for rule in fmt.catalogue}
    assert rules.keys() - failed == set(), "rules without a failing file"
    assert rules.keys() - passed == NEVER_PASS.keys() & rules.keys(), "rules without a passing file"
    for rule in NEVER_PASS.keys() & rules.keys():
        assert rule in limited and rules[rule].needs == (NEVER_PASS[rule],)


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: str(fmt.name))
def test_every_clause_is_described_and_every_rule_documented(fmt: Format) -> None:
    clauses = fmt.description()["clauses"]
    for rule in fmt.catalogue:
        assert rule.clause in clauses, rule.id
        assert "Why it matters:" in rule.documentation and "References:" in rule.documentation, rule.id
        assert rule.remedy and rule.title.endswith("."), rule.id
