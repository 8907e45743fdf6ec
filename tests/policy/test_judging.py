# SPDX-License-Identifier: Apache-2.0
"""What profiles make of reports; and that a stored report is enough to say the same."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fdd
from fdd import api
from fdd.core.errors import UsageError
from fdd.core.finding import Axis, Finding, Level, Outcome, Reason, State, Verdict, decide
from fdd.core.profile import ABSENT, OPERATORS, Profile, RuleChoice, Treatment, judge, property_at
from fdd.core.report import Report
from fdd.core.shapes import Struct
from fdd.formats import installed
from fdd.policy.checks import FITTING, LISTS, OTHER_FACTS, TRUTHS, shape_of
from fdd.policy.load import load, shipped
from fdd.report.frame import REPORT
from fdd.resources import corpus_dir, profiles_dir, schema_path

HEAD = 'name = "ours"\nversion = "2.1"\ntitle = "Ours"\n'
GOOD = "good/eager-2.7-state-dict.pth"


@cache
def report_on(path: str, depth: str = "full") -> Report:
    return fdd.validate(str(corpus_dir() / path), depth=depth)


def entry(tmp_path: Path, text: str, report: Report) -> dict[str, Any]:
    """The entry of a profile, which must be the same for the report as it was stored."""
    path = tmp_path / "ours.toml"
    path.write_text(HEAD + text, encoding="utf-8")
    (found,) = api.rejudged(report, [str(path)]).profiles
    for verbose in (False, True):
        stored = Report.from_json(report.to_json(verbose=verbose, brief=True))
        assert api.rejudged(stored, [str(path)]).profiles == (found,)
    return dict(found)


def failed(found: dict[str, Any]) -> list[str]:
    return [fault["id"] for fault in found["failed"]]


def rule(id: str, do: str, **more: str) -> str:
    words = "".join(f"{key} = '{value}'\n" for key, value in more.items())
    return f"[[rule]]\nid = '{id}'\ndo = '{do}'\nreason = 'Because of {id}.'\n{words}"


def constraint(path: str, operator: str, value: str) -> str:
    return (
        f"[[constraint]]\nid = 'it'\nproperty = '{path}'\noperator = '{operator}'\nvalue = {value}\nmessage = 'It must be so.'\n"
    )


def test_entry_names_profile_version_and_digest(tmp_path: Path) -> None:
    import hashlib

    found = entry(tmp_path, "", report_on(GOOD))
    digest = hashlib.sha256((tmp_path / "ours.toml").read_bytes()).hexdigest()
    assert found == {"name": "ours", "version": "2.1", "sha256": digest, "conforms": True, "failed": [], "changed": []}


def test_entry_names_what_the_profile_extends(tmp_path: Path) -> None:
    found = entry(tmp_path, "extends = ['state-dict']\n", report_on(GOOD))
    assert [parent["name"] for parent in found["extends"]] == ["state-dict", "weights-only"]
    assert found["extends"][0]["sha256"] == load("state-dict").sha256


def test_a_profile_changes_nothing_but_its_entry() -> None:
    plain = fdd.validate(str(corpus_dir() / "zip/archive-comment.pt"))
    judged = fdd.validate(str(corpus_dir() / "zip/archive-comment.pt"), profiles=shipped())
    assert len(judged.profiles) == len(shipped())
    assert replace(judged.without_run(), profiles=()) == plain.without_run()


def test_verdict_that_is_not_allowed_is_told_with_what_led_to_it(tmp_path: Path) -> None:
    found = entry(tmp_path, "", report_on("zip/bytes-after-archive.pt"))
    assert failed(found) == ["verdict", "PT-ZIP-003"]
    assert found["failed"][0]["message"] == "the verdict is well-formed-not-valid; allowed: valid"
    assert entry(tmp_path, "verdicts = ['well-formed-not-valid']\n", report_on("zip/bytes-after-archive.pt"))["conforms"]
    assert entry(tmp_path, "verdicts = []\n", report_on("zip/bytes-after-archive.pt"))["conforms"]


def test_errors_that_weigh_less_excuse_the_verdict(tmp_path: Path) -> None:
    report = report_on("zip/bytes-after-archive.pt")
    for text, to in (
        (rule("bytes-after-archive", "ignore"), "ignored"),
        (rule("PT-ZIP-003", "weigh", level="warning"), "warning"),
    ):
        found = entry(tmp_path, text, report)
        assert found["conforms"]
        assert [(change["rule"], change["from"], change["to"]) for change in found["changed"]] == [("PT-ZIP-003", "error", to)]
        assert found["changed"][0]["reason"].startswith("Because of ")


def test_nothing_is_excused_where_an_error_hid_something(tmp_path: Path) -> None:
    report = report_on("zip/record-encrypted.pt")
    assert report.not_evaluated()
    assert failed(entry(tmp_path, rule("*", "ignore"), report))[0] == "verdict"


def test_an_undetermined_verdict_is_never_excused(tmp_path: Path) -> None:
    finding = Finding("T-001", "t", Axis.VALID, Level.ERROR, "1", "wrong", "mend")
    outcomes = (
        Outcome("T-001", Axis.VALID, Level.ERROR, State.FAILED, findings=(finding,)),
        Outcome("T-002", Axis.WELL_FORMED, Level.ERROR, State.NOT_EVALUATED, Reason.LIMIT),
    )
    status = decide(outcomes, depth="full", judged=True, has_code=False, followed=True, safety_basis=None)
    assert status.verdict is Verdict.UNDETERMINED
    report = replace(report_on(GOOD), status=status, findings=(finding,), outcomes=outcomes)
    assert failed(entry(tmp_path, rule("*", "ignore"), report))[0] == "verdict"


def test_demanded_rule_fails_at_any_level(tmp_path: Path) -> None:
    report = report_on("zip/checksums-not-recorded.pt")
    found = entry(tmp_path, rule("checksums-*", "demand"), report)
    assert failed(found) == ["PT-ZIP-029"]
    assert found["failed"][0]["reason"] == "Because of checksums-*."
    assert found["failed"][0]["offset"] == 1032
    assert found["changed"] == [{"rule": "PT-ZIP-029", "from": "warning", "to": "error", "reason": "Because of checksums-*."}]


def test_the_last_word_on_a_rule_counts(tmp_path: Path) -> None:
    report = report_on("zip/checksums-not-recorded.pt")
    assert entry(tmp_path, rule("PT-ZIP-*", "demand") + rule("PT-ZIP-029", "ignore"), report)["conforms"]
    assert not entry(tmp_path, rule("PT-ZIP-029", "ignore") + rule("PT-ZIP-*", "demand"), report)["conforms"]


@pytest.mark.parametrize(("depth", "conforms"), [("full", True), ("structure", False), ("directory", False)])
def test_demanded_rule_that_was_not_asked_for_is_not_met(tmp_path: Path, depth: str, conforms: bool) -> None:
    text = "verdicts = ['valid', 'structure-valid']\n" + rule("payload-checksum-wrong", "demand")
    found = entry(tmp_path, text, report_on(GOOD, depth))
    assert found["conforms"] is conforms
    if not conforms:
        assert failed(found) == ["PT-ZIP-028"]
        assert f"not requested at depth {depth}" in found["failed"][0]["message"]
        assert "Because of payload-checksum-wrong." in found["failed"][0]["message"]


def test_demanded_rule_that_was_blocked_is_not_met(tmp_path: Path) -> None:
    found = entry(tmp_path, "verdicts = []\n" + rule("storage-missing", "demand"), report_on("zip/record-encrypted.pt"))
    assert failed(found) == ["PT-REC-016"]
    assert "not evaluated (blocked)" in found["failed"][0]["message"]


def test_safety_digests_and_kinds(tmp_path: Path) -> None:
    text = "safety = ['listed']\ndigests = ['sha256', 'sha512']\n[[allow]]\nwhat = 'kinds'\nnames = ['torch-z*']\nreason = 'r'\n"
    assert failed(entry(tmp_path, text, report_on("safety/global-dangerous.pt"))) == ["safety", "digest-sha512"]
    assert failed(entry(tmp_path, text, report_on("good/legacy-tar.pth"))) == ["allowed-kinds", "digest-sha512"]
    assert failed(entry(tmp_path, "safety = ['unlisted']\n", report_on("safetensors/good.safetensors"))) == []


def test_allowed_globals_locations_types_and_contents(tmp_path: Path) -> None:
    def allow(what: str, *names: str) -> str:
        return f"[[allow]]\nwhat = '{what}'\nnames = {list(names)}\nreason = 'r'\n"

    report = report_on(GOOD)
    assert entry(tmp_path, allow("globals", "torch.*Storage", "torch._utils.*", "collections.OrderedDict"), report)["conforms"]
    found = entry(tmp_path, allow("globals", "torch.*"), report)
    assert found["failed"][0]["message"] == "not among the allowed globals: collections.OrderedDict"
    assert failed(entry(tmp_path, allow("dtypes", "int*"), report)) == ["allowed-dtypes"]
    assert failed(entry(tmp_path, allow("locations", "cpu"), report_on("tensors/location-not-cpu.pt"))) == ["allowed-locations"]
    assert failed(entry(tmp_path, allow("contents", "script"), report)) == ["allowed-contents"]


def test_limits_count_what_the_profile_weighs(tmp_path: Path) -> None:
    limit = "[[limit]]\nwhat = 'warnings'\nmost = 0\nreason = 'r'\n"
    report = report_on("zip/checksums-not-recorded.pt")
    found = entry(tmp_path, limit, report)
    assert found["failed"][0]["message"] == "warnings: 1, at most 0: PT-ZIP-029 checksums-not-recorded"
    assert entry(tmp_path, limit + rule("PT-ZIP-029", "ignore"), report)["conforms"]
    raised = rule("PT-REC-021", "weigh", level="warning")
    assert failed(entry(tmp_path, limit + raised, report_on("records/folder-not-file-name.pt"))) == ["limit-warnings"]
    size = "[[limit]]\nwhat = 'file-bytes'\nmost = 100\nreason = 'r'\n"
    assert failed(entry(tmp_path, size, report)) == ["limit-file-bytes"]
    assert failed(entry(tmp_path, size, replace(report, file={}))) == ["limit-file-bytes"]


@pytest.mark.parametrize(
    ("path", "operator", "value", "holds"),
    [
        ("content", "equals", "'state_dict'", True),
        ("content", "not-equals", "'state_dict'", False),
        ("tensor_count", "at-least", "3", True),
        ("tensor_count", "at-least", "3.5", False),
        ("tensor_count", "at-most", "2", False),
        ("content", "one-of", "['tensor', 'state_dict']", True),
        ("content", "none-of", "['tensor']", True),
        ("top_folder", "like", "'eager-*'", True),
        ("top_folder", "like", "'[0-9]*'", False),
        ("tensor_dtypes.float32", "equals", "2", True),
        ("tensor_dtypes.float64", "present", "false", True),
        ("tensor_dtypes.float64", "at-most", "0", False),
        ("tensor_dtypes.float64", "not-equals", "1", True),
        ("tensor_dtypes", "keys-within", "['float*', 'int*']", True),
        ("tensor_dtypes", "keys-within", "['float*']", False),
        ("globals.name", "each-within", "['torch.*', 'collections.*', 'torch._utils.*']", True),
        ("globals.name", "each-within", "['torch.*']", False),
        ("torch_releases.max", "present", "false", True),
        ("torch_releases.basis", "each-within", "['.format_version']", True),
        ("dependencies", "empty", "true", True),
        ("unused_bytes", "empty", "true", True),
        ("metadata.anything.at.all", "present", "false", True),
        ("identification.extension_matches", "equals", "true", True),
        ("identification.confidence", "one-of", "['structure', 'container']", True),
        ("file.size", "at-most", "10_000", True),
        ("file.name", "like", "'*.pth'", True),
        ("status.depth", "equals", "'full'", True),
    ],
)
def test_operators(tmp_path: Path, path: str, operator: str, value: str, holds: bool) -> None:
    found = entry(tmp_path, constraint(path, operator, value), report_on(GOOD))
    assert found["conforms"] is holds, found
    if not holds:
        (fault,) = found["failed"]
        assert (fault["id"], fault["message"], fault["property"]) == ("it", "It must be so.", path)
        assert fault["found"]


def test_operators_are_the_same_everywhere() -> None:
    schema = json.loads(schema_path("profile.schema.json").read_text(encoding="utf-8"))
    assert schema["properties"]["constraint"]["items"]["properties"]["operator"]["enum"] == list(OPERATORS)
    assert set(FITTING) | set(LISTS) | set(TRUTHS) == set(OPERATORS)


def test_facts_beside_the_properties_are_parts_of_a_report() -> None:
    for path in OTHER_FACTS:
        head, _, part = path.partition(".")
        shape = REPORT.fields[head].shape
        assert isinstance(shape, Struct) and isinstance(OTHER_FACTS[path], type(shape.fields[part].shape))
        assert shape_of(path) is OTHER_FACTS[path]
        assert property_at(report_on(GOOD), path) is not ABSENT


def test_rules_are_chosen_by_name_also_where_a_report_tells_only_ids() -> None:
    choice = load("weights-only").rules[0]
    assert choice.pattern == "global-unlisted" and choice.rules == {"PT-SEC-001"} and choice.takes("PT-SEC-001")
    assert not choice.takes("PT-SEC-002")


def test_entries_of_a_profile_replace_those_it_extends(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(
        HEAD.replace("ours", "base")
        + "verdicts = ['structure-valid']\ndigests = ['md5']\n[[allow]]\nwhat = 'kinds'\nnames = ['zip']\nreason = 'r'\n"
        + constraint("tensor_count", "at-least", "1"),
        encoding="utf-8",
    )
    path = tmp_path / "ours.toml"
    path.write_text(
        HEAD
        + "extends = ['base']\ndigests = ['sha1']\n[[allow]]\nwhat = 'kinds'\nnames = ['tar']\nreason = 'r'\n"
        + constraint("tensor_count", "at-least", "5"),
        encoding="utf-8",
    )
    profile = load(str(path))
    assert profile.verdicts == ("structure-valid",) and profile.digests == ("md5", "sha1")
    assert [allowed.patterns for allowed in profile.allowed] == [("tar",)]
    assert [constraint.value for constraint in profile.constraints] == [5]


def test_many_findings_of_one_rule_change_once() -> None:
    report = report_on("zip/entry-comment.pt")
    assert sum(finding.rule == "PT-ZIP-035" for finding in report.findings) > 1
    profile = Profile("p", "1", "t", rules=(RuleChoice("PT-ZIP-035", Treatment.DEMAND, "r"),))
    found = judge(report, profile)
    assert [change["rule"] for change in found["changed"]] == ["PT-ZIP-035"]
    assert failed(found) == ["PT-ZIP-035"] * 2


def test_reports_without_judgement_get_no_entry() -> None:
    extracted = fdd.extract(str(corpus_dir() / GOOD))
    assert api.rejudged(extracted, ["ingest"]).profiles == ()
    assert api.rejudged(api.error_report("x", "gone"), ["ingest"]).profiles == ()


def test_profiles_are_given_by_name_by_file_or_loaded(tmp_path: Path) -> None:
    path = tmp_path / "ours.toml"
    path.write_text(HEAD, encoding="utf-8")
    report = fdd.validate(str(corpus_dir() / GOOD), profiles=["ingest", path, load("state-dict"), str(path)])
    assert [found["name"] for found in report.profiles] == ["ingest", "ours", "state-dict"]


def test_a_single_text_is_no_list_of_profiles() -> None:
    with pytest.raises(UsageError, match="list of names"):
        fdd.validate(b"", profiles="ingest")


def test_every_shipped_profile_speaks_of_rules_there_are() -> None:
    known = {rule.id for fmt in installed() for rule in fmt.catalogue}
    for name in shipped():
        for choice in load(name).rules:
            assert choice.rules and choice.rules <= known


def test_several_processes_judge_alike() -> None:
    paths = [str(corpus_dir() / path) for path in (GOOD, "good/legacy-tar.pth", "zip/archive-comment.pt")]
    policy = str(profiles_dir() / "policies" / "ready-to-publish.sch")
    alone = [report.profiles for report in fdd.validate_many(paths, profiles=["ingest", policy])]
    assert [report.profiles for report in fdd.validate_many(paths, jobs=2, profiles=["ingest", policy])] == alone
    assert [len(profiles) for profiles in alone] == [2, 2, 2]
