# SPDX-License-Identifier: Apache-2.0
"""Text for people: the verdict first, places and remedies, no escape sequence that fdd has not made itself."""

from __future__ import annotations

import re
import string
import unicodedata
from dataclasses import replace

import pytest

import fdd
from fdd import api
from fdd.core.finding import Axis, Finding, Level, Outcome, Reason, Safety, State, Verdict, decide
from fdd.core.report import Report
from tests.report.samples import good_file, hostile_reports, some_reports, written

COMMANDS = ("validate", "identify", "extract")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def harmful(text: str) -> set[str]:
    """The characters of other kinds than a line end that a terminal obeys or does not show."""
    suspects = set(text) - set(string.printable[:-5])
    return {character for character in suspects if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} - {"\n"}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("verbose", [False, True])
def test_names_never_reach_the_terminal_raw(command: str, verbose: bool) -> None:
    facts = [{"kind": "k\x1b"[:1], "root": "\x1b[2J", "members": [], "missing": ["\u202e"], "extra": ["\n"], "complete": False}]
    text = written("text", hostile_reports(), facts, command=command, verbose=verbose)
    assert not harmful(text)
    assert "\\x1b[2J" in text
    assert "\\u202e" in text
    # A line end in a name makes no line of its own, which could pose as a verdict.
    assert not [line for line in text.splitlines() if line.startswith(("\r", "evil", "owned"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_reports_of_the_corpus_are_plain_text(command: str) -> None:
    text = written("text", some_reports(), command=command, verbose=True)
    assert not harmful(text)


def test_colours_only_when_asked_for() -> None:
    reports = some_reports()
    plain, coloured = written("text", reports), written("text", reports, color=True)
    assert "\x1b" not in plain
    assert ESCAPE.sub("", coloured) == plain
    assert len(ESCAPE.findall(coloured)) >= 2 * len(reports)
    assert not harmful(ESCAPE.sub("", coloured))


def check_head(report: Report, head: str) -> None:
    assert report.status is not None
    words, _, shown = head.partition("  ")
    assert shown == str(report.file["path"])
    verdict, _, safety = words.partition(", ")
    assert verdict == report.status.verdict.value
    if report.safety in (None, Safety.LISTED):
        assert safety == ""
    else:
        assert safety == ("DANGEROUS" if report.safety is Safety.DANGEROUS else f"safety {report.safety.value}")


def check_finding(finding: Finding, lines: list[str]) -> None:
    place = f"at {finding.offset}" if finding.offset is not None else ""
    times = f"({finding.count} times)" if finding.count > 1 else ""
    parts = (f" {finding.rule} ", finding.message, place, times)
    assert any(line.strip().startswith(finding.level.value) and all(part in line for part in parts) for line in lines), finding


def check_remedy(report: Report, remedy: str, lines: list[str]) -> None:
    given = [line.strip() for line in lines].count(remedy)
    assert given <= 1
    if remedy and all(finding.level is not Level.INFO for finding in report.findings if finding.remedy == remedy):
        assert given == 1


def test_reports_of_the_corpus_say_verdict_safety_places_and_remedies() -> None:
    for report in some_reports():
        lines = written("text", [report]).splitlines()
        check_head(report, lines[0])
        for finding in report.findings:
            check_finding(finding, lines)
            check_remedy(report, finding.remedy, lines)


def finding(rule: str, level: Level, remedy: str) -> Finding:
    return Finding(rule, rule.lower(), Axis.VALID, level, "1", f"{rule} is broken", remedy)


def report_with(*findings: Finding, outcomes: tuple[Outcome, ...] = ()) -> Report:
    return replace(fdd.validate(good_file(), name="x.pt"), findings=findings, outcomes=outcomes)


def test_the_gravest_comes_first_and_a_note_takes_no_remedy_away() -> None:
    report = report_with(
        finding("I-001", Level.INFO, "mend it"), finding("W-001", Level.WARNING, "mend it"), finding("E-001", Level.ERROR, "")
    )
    lines = written("text", [report]).splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["error", "warning", "mend", "info"]


def test_what_stayed_open_is_told_with_its_reason() -> None:
    report = report_with(
        outcomes=(
            Outcome("R-001", Axis.VALID, Level.ERROR, State.NOT_EVALUATED, Reason.LIMIT, detail="too \x1b deep"),
            Outcome("R-002", Axis.VALID, Level.ERROR, State.NOT_EVALUATED, Reason.BLOCKED, by="R-009"),
            Outcome("R-003", Axis.VALID, Level.ERROR, State.PASSED),
        )
    )
    assert written("text", [report]).splitlines()[1:] == ["  not evaluated R-001: limit (too \\x1b deep)"]
    assert written("text", [report], verbose=True).splitlines()[1:] == [
        "  not evaluated R-001: limit (too \\x1b deep)",
        "  not evaluated R-002: blocked by R-009",
        "  passed: R-003",
    ]


def test_a_foreign_file_says_what_it_is() -> None:
    lines = written("text", [fdd.validate(b"\x89HDF\r\n\x1a\n" + bytes(100), name="x.h5")]).splitlines()
    assert lines[0] == "not-this-format  x.h5"
    assert lines[1].startswith("  hdf5: ")


def test_files_that_could_not_be_read() -> None:
    assert written("text", [api.error_report("a/b.pt", "gone")]) == "cannot be read  a/b.pt: gone\n"
    assert written("text", [api.error_report("a/b.pt", "oh", internal=True)]) == "not judged  a/b.pt: oh\n"


def test_the_last_line_counts() -> None:
    reports = [fdd.validate(good_file(), name="x.pt"), fdd.validate(b"", name="y.pt"), api.error_report("z.pt", "gone")]
    assert written("text", reports).splitlines()[-1] == "3 files: 1 not-this-format, 1 valid; 1 could not be read"
    assert "files:" not in written("text", reports[:1])


def test_identify_gives_the_evidence() -> None:
    text = written("text", [api.identify_report(good_file(), name="x.pt")], command="identify")
    assert text.splitlines()[0] == "torch-zip  x.pt"
    assert "  by ZIP " in text


def test_extract_lists_tensors_and_cuts_long_lists() -> None:
    report = fdd.extract(good_file(), name="x.pt")
    assert '  tensor "a" float32 2 archive/data/0' in written("text", [report], command="extract").splitlines()
    assert 'tensor "a"' not in written("text", [report], command="extract", brief=True)
    many = replace(report, tensors=report.tensors * 30)
    assert written("text", [many], command="extract").splitlines()[-1] == "  ... and 10 more tensors (--verbose lists all)"
    assert written("text", [many], command="extract", verbose=True).count('tensor "a"') == 30


@pytest.mark.parametrize("complete", [False, True])
def test_sets(complete: bool) -> None:
    facts = {
        "kind": "sharded-model", "root": "a/m.bin", "members": ["1", "2"], "missing": [] if complete else ["3"], "extra": ["4"],
        "complete": complete,
    }  # fmt: skip
    lines = written("text", [], [facts]).splitlines()
    assert lines[0] == f"{'complete' if complete else 'INCOMPLETE'} sharded-model  a/m.bin: 2 members"
    assert lines[1:] == [*([] if complete else ["  missing: 3"]), "  extra: 4"]


def test_verdicts_have_a_colour_that_fits() -> None:
    for verdict in Verdict:
        status = decide([], depth="full", judged=True, has_code=False, followed=True, safety_basis=None)
        report = replace(report_with(), status=replace(status, verdict=verdict))
        good = verdict in (Verdict.VALID, Verdict.STRUCTURE_VALID)
        assert written("text", [report], color=True).startswith(f"\x1b[{32 if good else 31}m{verdict.value}\x1b[0m")
