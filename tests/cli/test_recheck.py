# SPDX-License-Identifier: Apache-2.0
"""`fdd recheck` and `fdd profiles`: stored reports judged again, and what profiles say of themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fdd.cli.exits import Exit
from fdd.policy.load import load, shipped
from fdd.resources import profiles_dir
from tests.cli.running import Runner, broken, dangerous, fill, good, warned

POLICY = str(profiles_dir() / "policies" / "ready-to-publish.sch")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return fill(tmp_path / "files", a__pt=good(), b__pt=broken(), c__pt=warned(), d__pt=dangerous())


def _profiles(reports: list[dict[str, Any]]) -> list[Any]:
    return [report["status"]["profiles"] for report in reports]


@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize("options", [(), ("--verbose",), ("--depth", "structure"), ("--depth", "directory")])
def test_recheck_says_what_validate_says(fdd: Runner, files: Path, tmp_path: Path, form: str, options: tuple[str, ...]) -> None:
    stored = tmp_path / f"reports.{form}"
    fdd("validate", files, "--format", form, "--output", stored, *options)
    demands = [word for name in shipped() for word in ("--profile", name)] + ["--policy", POLICY]
    direct = fdd("validate", files, "--format", "jsonl", *demands, *options)
    for path in files.iterdir():
        path.unlink()  # the files are not needed
    again = fdd("recheck", stored, "--format", "jsonl", *demands)
    assert _profiles(again.reports) == _profiles(direct.reports)
    assert [len(profiles) for profiles in _profiles(again.reports)] == [len(shipped()) + 1] * 4
    assert (again.code, again.err) == (direct.code, "")


@pytest.mark.parametrize(("file", "code"), [("a.pt", 0), ("b.pt", 1), ("c.pt", 0), ("d.pt", 1)])
def test_exit_code_follows_from_the_profile(fdd: Runner, files: Path, tmp_path: Path, file: str, code: int) -> None:
    stored = tmp_path / "report.json"
    fdd("validate", files / file, "--format", "json", "--output", stored)
    assert fdd("recheck", stored, "--profile", "ingest").code == code
    assert fdd("recheck", stored, "--profile", "torchscript").code == 1
    assert fdd("recheck", stored, "--profile", "torchscript", "--exit-zero").code == 0


def test_text_tells_the_demands_that_are_not_met(fdd: Runner, files: Path) -> None:
    code, out, _ = fdd("validate", files / "c.pt", "--profile", "ingest", "--profile", "archive-strict")
    assert code == Exit.BAD
    assert "  profile ingest: conforms\n  profile archive-strict: does not conform\n" in out
    assert "    limit-warnings warnings: " in out
    assert "\n      A warning is something a curator would have to look into" in out
    assert fdd("validate", files / "c.pt", "--profile", "ingest").code == Exit.GOOD


def test_verbose_text_tells_what_was_weighed_otherwise(fdd: Runner, files: Path) -> None:
    (files / "e.pt").write_bytes(good() + b"\n")
    out = fdd("validate", files / "e.pt", "--profile", "ingest", "--verbose").out
    assert "  profile ingest: conforms\n    weighed otherwise PT-ZIP-003: error, here warning: Bytes were put behind" in out


def test_profiles_do_not_lift_a_verdict(fdd: Runner, files: Path) -> None:
    """A file that a profile excuses conforms, and is as invalid as it was."""
    (files / "e.pt").write_bytes(good() + b"\n")
    ran = fdd("validate", files / "e.pt", "--profile", "ingest", "--format", "json")
    assert ran.code == Exit.BAD
    assert ran.json["status"]["verdict"] == "well-formed-not-valid"
    assert ran.json["status"]["profiles"][0]["conforms"] is True


def test_recheck_replaces_what_was_judged_before(fdd: Runner, files: Path, tmp_path: Path) -> None:
    stored = tmp_path / "report.json"
    fdd("validate", files / "a.pt", "--format", "json", "--output", stored, "--profile", "torchscript")
    document = json.loads(stored.read_text(encoding="utf-8"))
    again = fdd("recheck", stored, "--profile", "ingest", "--format", "json").json
    assert [entry["name"] for entry in again["status"]["profiles"]] == ["ingest"]
    document["status"]["profiles"] = again["status"]["profiles"] = []
    assert again == document


def test_recheck_of_what_cannot_be_judged(fdd: Runner, files: Path, tmp_path: Path) -> None:
    extracted, errors, nothing = (tmp_path / name for name in ("extracted.json", "errors.jsonl", "nothing.jsonl"))
    fdd("extract", files / "a.pt", "--format", "json", "--output", extracted)
    ran = fdd("recheck", extracted, "--profile", "ingest", "--format", "json")
    assert ran.code == Exit.UNDECIDED and "holds no judgement" in ran.err and "status" not in ran.json
    fdd("validate", files / "gone.pt", "--format", "jsonl", "--output", errors)
    assert fdd("recheck", errors, "--profile", "ingest").code == Exit.UNDECIDED
    nothing.write_text("", encoding="utf-8")
    assert fdd("recheck", nothing, "--profile", "ingest").code == Exit.UNDECIDED
    nothing.write_text("{}\n", encoding="utf-8")
    ran = fdd("recheck", nothing, "--profile", "ingest")
    assert ran.code == Exit.USAGE and "not a report of fdd" in ran.err
    assert "nothing to judge by" in fdd("recheck", extracted).err


def test_sets_pass_through(fdd: Runner, tmp_path: Path) -> None:
    stored = tmp_path / "reports.jsonl"
    facts = {"kind": "k", "root": "r", "members": [], "missing": [], "extra": [], "complete": True}
    fdd("validate", fill(tmp_path / "f", a__pt=good()), "--format", "jsonl", "--output", stored)
    with stored.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"set": facts}) + "\n")
    assert {"set": facts} in fdd("recheck", stored, "--profile", "ingest", "--format", "jsonl").lines


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "xml", "csv", "premis", "mets"])
def test_every_form_of_output(fdd: Runner, files: Path, tmp_path: Path, form: str) -> None:
    stored = tmp_path / "report.json"
    fdd("validate", files / "a.pt", "--format", "json", "--output", stored)
    ran = fdd("recheck", stored, "--profile", "torchscript", "--policy", POLICY, "--format", form)
    assert (ran.code, ran.err) == (Exit.BAD, "") and ran.out
    if form in ("text", "json", "jsonl", "xml"):
        assert "torchscript" in ran.out and "ready-to-publish" in ran.out


def test_archivematica_answers_by_profiles(fdd: Runner, files: Path) -> None:
    good_answer = fdd("archivematica", "policy", files / "a.pt", "--profile", "ingest", "--policy", POLICY)
    assert good_answer.code == Exit.GOOD and good_answer.json["eventOutcomeInformation"] == "pass"
    answer = fdd("archivematica", "policy", files / "c.pt", "--profile", "ingest", "--profile", "archive-strict")
    assert answer.code == Exit.GOOD and answer.json["eventOutcomeInformation"] == "fail"
    assert 'profiles="not met: archive-strict"' in answer.json["eventOutcomeDetailNote"]
    assert "profile archive-strict: limit-warnings" in answer.json["stdout"]
    assert fdd("archivematica", "validate", files / "a.pt", "--profile", "ingest").code == Exit.USAGE
    assert fdd("archivematica", "policy", files / "a.pt", "--profile", "nowhere").code == Exit.USAGE


def test_list_of_profiles(fdd: Runner) -> None:
    code, out, err = fdd("profiles", "list")
    assert (code, err) == (0, "") and [line.split()[0] for line in out.splitlines()] == shipped()
    rows = fdd("profiles", "list", "--format", "json").json
    assert [(row["name"], row["sha256"]) for row in rows] == [(name, load(name).sha256) for name in shipped()]


@pytest.mark.parametrize("name", shipped())
def test_page_of_a_profile(fdd: Runner, name: str) -> None:
    profile = load(name)
    code, out, err = fdd("profiles", "show", name)
    assert (code, err) == (0, "") and out.startswith(f"{name} {profile.version}: {profile.title}\n")
    for choice in profile.rules:
        assert f"rule {choice.pattern}: " in out and choice.reason in out
    for entry in profile.untestable:
        assert entry.statement in out and entry.reason in out
    assert fdd("profiles", "show", name, "--format", "json").json["title"] == profile.title


def test_check_of_all_that_is_shipped(fdd: Runner) -> None:
    policies = sorted((profiles_dir() / "policies").glob("*.sch"))
    code, out, err = fdd("profiles", "check", *shipped(), *policies)
    assert (code, err) == (0, "")
    assert [line.split(":")[0] for line in out.splitlines()] == ["sound"] * (len(shipped()) + len(policies))
    rows = fdd("profiles", "check", "ingest", *policies, "--format", "json").json
    assert [row["name"] for row in rows] == ["ingest", *(path.stem for path in policies)]


def test_difference_of_two_profiles(fdd: Runner) -> None:
    code, out, _ = fdd("profiles", "diff", "weights-only", "state-dict")
    assert code == Exit.BAD
    assert "- kinds: only torch-zip, torch-legacy, distcp" in out.splitlines()
    assert "+ kinds: only torch-zip" in out.splitlines()
    assert "+ property tensor_count: is at least 1" in out.splitlines()
    assert not any("global-unlisted" in line for line in out.splitlines())
    assert fdd("profiles", "diff", "ingest", "ingest") == (Exit.GOOD, "", "")
    assert (
        fdd("profiles", "diff", "weights-only", "state-dict", "--format", "json").json["only_second"][0]
        == "kinds: only torch-zip"
    )


def test_unknown_profiles(fdd: Runner) -> None:
    for arguments in (("show", "nowhere"), ("diff", "ingest", "nowhere"), ("check", "nowhere")):
        ran = fdd("profiles", *arguments)
        assert ran.code == Exit.USAGE and "no profile 'nowhere'; shipped with fdd: archive-strict, " in ran.err
