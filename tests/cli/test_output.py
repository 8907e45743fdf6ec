# SPDX-License-Identifier: Apache-2.0
"""Where results go, how much of them, and which exit code they give."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from fdd import api
from fdd.cli import output
from fdd.cli.output import FileNames, encoded_name, whole_file
from fdd.core.errors import SourceError
from tests.cli.running import FOREIGN, Runner, broken, dangerous, ended, fill, good, started, unlisted, warned


@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
def test_a_file_gets_what_standard_output_would(fdd: Runner, tmp_path: Path, form: str) -> None:
    fill(tmp_path, **{"in/x__pt": good(), "in/y__pt": broken()})
    target = tmp_path / "report"
    shown = fdd("validate", tmp_path / "in", "--format", form)
    code, out, err = fdd("validate", tmp_path / "in", "--format", form, "--output", target)
    assert (code, out, err) == (shown.code, "", "")
    assert without_run(target.read_text(encoding="utf-8"), form) == without_run(shown.out, form)


def without_run(text: str, form: str) -> Any:
    if form == "text":
        return text
    document = json.loads(text) if form == "json" else {"reports": [json.loads(line) for line in text.splitlines()]}
    for report in document["reports"]:
        del report["run"]
    return document


def test_an_existing_file_stays_until_the_new_one_is_whole(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, x__pt=good())
    target = tmp_path / "report"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o640)
    for error in (KeyboardInterrupt(), OSError(28, "No space left on device")):

        def fail(*_: object, error: BaseException = error, **__: object) -> None:
            assert target.read_text(encoding="utf-8") == "old"
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(api, "report_or_error", fail)
            code, out, _ = fdd("validate", tmp_path / "x.pt", "--output", target)
        assert (code, out) == (130 if isinstance(error, KeyboardInterrupt) else 3, "")
        assert target.read_text(encoding="utf-8") == "old"
    assert sorted(os.listdir(tmp_path)) == ["report", "x.pt"], "no temporary file is left"
    assert fdd("validate", tmp_path / "x.pt", "--output", target).code == 0
    assert target.read_text(encoding="utf-8").startswith("valid  ")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("", encoding="utf-8")
    with whole_file(str(tmp_path / "written")) as stream:
        stream.write("x")
    assert (tmp_path / "written").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_keeps_leading_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/target")
    for text in ("one", "two"):
        with whole_file(str(tmp_path / "link")) as stream:
            stream.write(text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder" / "target").read_text(encoding="utf-8") == text


def test_devices_are_written_to_and_never_replaced(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, x__pt=good())
    assert fdd("validate", tmp_path / "x.pt", "--output", "/dev/null").code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert fdd("validate", tmp_path / "x.pt", "--output", pipe).code == 0
        assert os.read(reader, 100).startswith(b"valid  ")
    finally:
        os.close(reader)


@pytest.mark.parametrize("target", ["no/such/folder/report", "", ".", "nul\0l", "x.pt/report"])
def test_places_that_cannot_be_written(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    fill(tmp_path, x__pt=good())
    monkeypatch.chdir(tmp_path)
    code, out, err = fdd("validate", "x.pt", "--output", target)
    assert (code, out) == (3, "")
    assert "cannot be written" in err and "Traceback" not in err
    assert os.listdir(tmp_path) == ["x.pt"]


@pytest.mark.parametrize("folder", ["x.pt", "x.pt/sub", "nul\0l"])
def test_folders_that_cannot_be_made(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    fill(tmp_path, x__pt=good())
    monkeypatch.chdir(tmp_path)
    code, out, err = fdd("validate", "x.pt", "--output-dir", folder)
    assert (code, out) == (3, "")
    assert "cannot be written" in err


def test_a_full_disk_behind_standard_output(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    fill(tmp_path, x__pt=good())
    with open("/dev/full", "wb") as full:
        code, _, err = ended(started("validate", tmp_path / "x.pt", stdout=full))
    assert (code, err) == (3, "fdd validate: No space left on device\n")


def test_one_file_each(fdd: Runner, tmp_path: Path) -> None:
    long = "long" * 50
    fill(
        tmp_path / "in",
        **{"x__pt": good(), "sub/x__pt": broken(), "sub%2Fx__pt": good(), "a b\x1b__pt": good(), f"{long}/{long}": good()},
    )
    ran = fdd("validate", tmp_path / "in", "--format", "json", "--output-dir", tmp_path / "made" / "out")
    assert (ran.code, ran.out) == (1, "")
    written = sorted(os.listdir(tmp_path / "made" / "out"))
    (cut,) = [name for name in written if name.startswith("long")]
    assert written == sorted(["a%20b%1B.pt.json", cut, "sub%252Fx.pt.json", "sub%2Fx.pt.json", "x.pt.json"])
    assert len(cut) < 255
    for name in written:
        report = json.loads((tmp_path / "made" / "out" / name).read_text(encoding="utf-8"))
        path = os.path.relpath(report["file"]["path"], tmp_path / "in")
        assert name == f"{encoded_name(path)}.json"
        assert report["status"]["verdict"] == ("not-well-formed" if path == "sub/x.pt" else "valid")


@pytest.mark.parametrize(("form", "suffix"), [("text", ".txt"), ("json", ".json"), ("jsonl", ".jsonl")])
def test_endings(fdd: Runner, tmp_path: Path, form: str, suffix: str) -> None:
    fill(tmp_path, x__pt=good())
    assert fdd("validate", tmp_path / "x.pt", "--format", form, "--output-dir", tmp_path / "out").code == 0
    assert os.listdir(tmp_path / "out") == [f"x.pt{suffix}"]


def test_names_that_collide_overwrite_nothing(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, **{"a/x__pt": good(), "b/x__pt": broken(), "c/x__pt": good(), "c/x__pt~2": FOREIGN})
    given = [tmp_path / "a" / "x.pt", tmp_path / "b", tmp_path / "c"]
    fdd("validate", *given, "--format", "json", "--output-dir", tmp_path / "out")
    found = {
        name: os.path.relpath(json.loads((tmp_path / "out" / name).read_text(encoding="utf-8"))["file"]["path"], tmp_path)
        for name in os.listdir(tmp_path / "out")
    }
    assert found == {
        "a%2Fx.pt.json": "a/x.pt", "b%2Fx.pt.json": "b/x.pt", "c%2Fx.pt.json": "c/x.pt", "c%2Fx.pt%7E2.json": "c/x.pt~2",
    }  # fmt: skip


def test_names_of_files() -> None:
    names = FileNames()
    assert [names.new(path) for path in ("a", "a/b", "a", "a%2Fb", "a~2", "a", "é", "caf\udce9")] == [
        "a", "a%2Fb", "a~2", "a%252Fb", "a%7E2", "a~3", "%C3%A9", "caf%E9",
    ]  # fmt: skip
    twins = ["d" * 199 + end for end in ("/x", "/y")]
    first, second = map(encoded_name, twins)
    assert first != second
    assert len(first) == len(second) == 183


def test_output_inside_the_folder_is_not_read_again(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, x__pt=good())
    fill(tmp_path, **{".fdd-left.part": b"of a run that was killed"})
    arguments = ("validate", tmp_path, "--format", "json")
    for _ in range(2):
        assert fdd(*arguments, "--output", tmp_path / "report.json").code == 0
        summary = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["summary"]
        assert summary["files"] == 1
    os.remove(tmp_path / "report.json")
    for _ in range(2):
        assert fdd(*arguments, "--output-dir", tmp_path / "out").code == 0
        assert os.listdir(tmp_path / "out") == ["x.pt.json"]


LEVELS = ["never", "dangerous", "unlisted", "warning"]


@pytest.mark.parametrize(
    ("make", "fails_on"),
    [
        (good, ()),
        (warned, ("warning",)),
        (unlisted, ("unlisted", "warning")),
        (dangerous, ("dangerous", "unlisted", "warning")),
        (broken, LEVELS),
    ],
    ids=["good", "warned", "unlisted", "dangerous", "broken"],
)
def test_what_makes_a_run_fail(fdd: Runner, tmp_path: Path, make: Any, fails_on: tuple[str, ...]) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(make())
    for level in LEVELS:
        assert fdd("validate", path, "--fail-on", level).code == int(level in fails_on)
        assert fdd("validate", path, "--fail-on", level, "--exit-zero").code == 0
    assert fdd("validate", path).code == int("dangerous" in fails_on)


def test_exit_zero_hides_nothing_worse(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, x__pt=broken())
    assert fdd("validate", tmp_path / "x.pt", tmp_path / "missing", "--exit-zero").code == 3
    assert fdd("validate", "--exit-zero").code == 2


def test_depth_and_digests(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, x__pt=good())
    ran = fdd("validate", tmp_path / "x.pt", "--depth", "structure", "--format", "json")
    assert (ran.code, ran.json["status"]["verdict"]) == (0, "structure-valid")
    assert "digests" not in ran.json
    ran = fdd("validate", tmp_path / "x.pt", "--digest", "md5, sha512,md5", "--format", "json")
    assert list(ran.json["digests"]) == ["md5", "sha512"]
    assert "digests" not in fdd("validate", tmp_path / "x.pt", "--digest", "", "--format", "json").json


def test_brief_and_verbose(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, x__pt=good())
    plain, brief, verbose = (
        fdd("validate", tmp_path / "x.pt", "--format", "json", *more).json for more in ((), ("--brief",), ("--verbose",))
    )
    assert set(plain) - set(brief) == {"records", "tensors"}
    assert set(verbose) - set(plain) == {"outcomes"}
    assert "  passed: " in fdd("validate", tmp_path / "x.pt", "--verbose").out
    assert 'tensor "a"' in fdd("extract", tmp_path / "x.pt").out
    assert 'tensor "a"' not in fdd("extract", tmp_path / "x.pt", "--brief").out


class Terminal:
    """A stream that is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


@pytest.mark.parametrize(
    ("more", "environment", "coloured"),
    [((), {}, True), ((), {"NO_COLOR": "1"}, False), (("--format", "json"), {}, False), (("--output", "report"), {}, False)],
)
def test_colours_on_terminals_only(
    fdd: Runner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[str, ...],
    environment: dict[str, str],
    coloured: bool,
) -> None:
    fill(tmp_path, x__pt=good())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in fdd("validate", "x.pt").out
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    from fdd.cli.main import main

    assert main(["validate", "x.pt", *more]) == 0
    assert ("\x1b[32mvalid\x1b[0m" in terminal.text) is coloured
    assert ("\x1b" in terminal.text) is coloured


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    fill(tmp_path, **{f"{number}__pt": good() for number in range(20)})
    with started("validate", tmp_path, "--format", "json", "--verbose") as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (3, b"")


class Gone(io.StringIO):
    """Standard output whose reader has gone: it shows when what was held back is written."""

    def flush(self) -> None:
        raise BrokenPipeError


@pytest.mark.parametrize("arguments", [("rules", "list"), ("formats", "list"), ("rules", "list", "--format", "json")])
def test_a_reader_that_has_gone_before_the_end(fdd: Runner, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    code, _, err = fdd(*arguments)
    assert (code, err) == (3, "")


def test_errors_in_writing_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(output.os, "fsync", fail)  # type: ignore[attr-defined]
    with pytest.raises(SourceError, match="report: cannot be written: Input/output error"), whole_file(str(tmp_path / "report")):
        pass
    assert os.listdir(tmp_path) == []


def test_a_disk_that_becomes_full_is_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"x\.json: cannot be written: No space left"), whole_file(str(tmp_path / "x.json")):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert os.listdir(tmp_path) == []
