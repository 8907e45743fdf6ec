# SPDX-License-Identifier: Apache-2.0
"""Every way to give files, and every way in which they cannot be read: the others are still reported."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from tests.cli.running import FOREIGN, Runner, broken, fill, good, warned

COMMANDS = ("validate", "identify", "extract")


def paths(ran_reports: list[dict[str, object]], root: Path) -> list[str]:
    return [os.path.relpath(str(report["file"]["path"]), root) for report in ran_reports]  # type: ignore[index]


def make_unreadable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(name: object, *rest: object, **more: object) -> int:
        if os.fspath(name) == str(path):  # type: ignore[call-overload]
            raise PermissionError(13, "Permission denied", name)
        return opened(name, *rest, **more)  # type: ignore[arg-type]

    path.write_bytes(good())
    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_cannot_be_read(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    fill(tmp_path, first__pt=good(), last__pt=good())
    os.mkfifo(tmp_path / "fifo")
    make_unreadable(tmp_path / "secret.pt", monkeypatch)
    given = ["first.pt", "missing.pt", "fifo", "secret.pt", "last.pt"]
    ran = fdd(command, *(tmp_path / name for name in given), "/dev/null", "", "nul\0l", "--format", "jsonl", "--exit-zero")
    assert ran.code == 3
    assert [report["error"]["message"] if "error" in report else None for report in ran.reports] == [
        None,
        "No such file or directory",
        "not a regular file but a named pipe (FIFO)",
        "Permission denied",
        None,
        "not a regular file but a character device",
        "No such file or directory",
        "not a path: embedded null byte",
    ]
    assert paths(ran.reports[:5], tmp_path) == given
    text = fdd(command, *(tmp_path / name for name in given)).out
    assert [line for line in text.splitlines() if line.startswith("cannot be read")] == [
        f"cannot be read  {tmp_path}/missing.pt: No such file or directory",
        f"cannot be read  {tmp_path}/fifo: not a regular file but a named pipe (FIFO)",
        f"cannot be read  {tmp_path}/secret.pt: Permission denied",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_empty_folders(fdd: Runner, tmp_path: Path, command: str) -> None:
    for form in ("text", "jsonl"):
        code, out, err = fdd(command, tmp_path, "--format", form, "--exit-zero")
        assert (code, out, err) == (3, "", "fdd: nothing to do: no file in what was given\n")
    ran = fdd(command, tmp_path, "--format", "json")
    assert ran.json["reports"] == []


def test_nothing_but_links_is_nothing_to_do(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, x__pt=good())
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.pt").symlink_to("../x.pt")
    ran = fdd("validate", tmp_path / "in", "--format", "json")
    assert (ran.code, ran.json["summary"]["skipped"]) == (3, 1)
    assert ran.err.splitlines()[0] == f"skipped: {tmp_path}/in/link.pt: symbolic link"
    assert fdd("validate", tmp_path / "in", "--follow-links").code == 0
    assert fdd("validate", tmp_path / "in" / "link.pt").code == 0
    assert "skipped" not in fdd("validate", tmp_path / "in", "--quiet").err


def test_a_folder_that_cannot_be_read(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, **{"a/x__pt": good(), "b/y__pt": good()})
    listing = os.scandir

    def refuse(path: str) -> object:
        if os.path.basename(path) == "a":
            raise PermissionError(13, "Permission denied", path)
        return listing(path)

    monkeypatch.setattr(os, "scandir", refuse)
    ran = fdd("validate", tmp_path, "--format", "jsonl")
    assert ran.code == 3
    assert [report.get("error") for report in ran.reports] == [{"message": "Permission denied"}, None]


FOLDERS = [
    ({"x__pt": good}, 0),
    ({"x__pt": good, "notes__txt": lambda: b"notes", "data__h5": lambda: FOREIGN}, 0),
    ({"notes__txt": lambda: b"notes"}, 0),
    ({"x__pt": good, "fake__pt": lambda: FOREIGN}, 1),
    ({"x__pt": good, "fake__PTH": lambda: b"notes"}, 1),
    ({"x__pt": good, "empty__ckpt": lambda: b""}, 1),
    ({"x__bin": broken}, 1),
    ({"sub/x__dat": broken, "y__pt": good}, 1),
]


@pytest.mark.parametrize(("files", "code"), FOLDERS, ids=lambda value: " ".join(value) if isinstance(value, dict) else "")
def test_foreign_files_in_folders_count_where_their_name_claims_to_be_ours(
    fdd: Runner, tmp_path: Path, files: dict[str, object], code: int
) -> None:
    fill(tmp_path, **{name: make() for name, make in files.items()})  # type: ignore[operator]
    ran = fdd("validate", tmp_path, "--format", "jsonl")
    assert ran.code == code
    assert len(ran.reports) == len(files), "they are reported all the same"


def test_foreign_files_that_are_given_themselves_count(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, data__h5=FOREIGN)
    assert fdd("validate", tmp_path / "data.h5").code == 1
    assert fdd("validate", tmp_path).code == 0
    assert fdd("identify", tmp_path / "data.h5").code == 0


@pytest.mark.parametrize("command", ["identify", "extract"])
def test_unknown_kinds(fdd: Runner, tmp_path: Path, command: str) -> None:
    path = tmp_path / "noise.pt"
    path.write_bytes(bytes(range(256)) * 8)
    code, out, _ = fdd(command, path)
    assert out.startswith("unknown  ")
    assert code == 1


def test_order_is_the_order_given_and_folders_are_sorted(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, **{"in/b__pt": good(), "in/a__pt": good(), "in/c/d__pt": good(), "z__pt": good()})
    given = [tmp_path / "z.pt", tmp_path / "in", tmp_path / "z.pt"]
    expected = ["z.pt", "in/a.pt", "in/b.pt", "in/c/d.pt", "z.pt"]
    first, second = (fdd("validate", *given, "--format", "jsonl") for _ in range(2))
    assert paths(first.reports, tmp_path) == paths(second.reports, tmp_path) == expected


@pytest.mark.parametrize("order", ["given", "done"])
def test_several_processes_give_the_same(fdd: Runner, tmp_path: Path, order: str) -> None:
    files = [good(), broken(), warned(), FOREIGN, b""]
    fill(tmp_path, **{f"{number:02}__pt": files[number % 5] for number in range(30)})
    (tmp_path / "gone.pt").symlink_to("nowhere")
    arguments = ("validate", tmp_path, tmp_path / "missing.pt", "--format", "jsonl", "--order", order)
    one, two = fdd(*arguments), fdd(*arguments, "--jobs", "2")
    assert one.code == two.code == 3
    first, second = ([{**report, "run": None} for report in ran.reports] for ran in (one, two))
    assert len(first) == 31
    if order == "done":
        first.sort(key=str)
        second.sort(key=str)
    assert first == second


def test_lists_of_paths(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, **{"x__pt": good(), "two\nlines__pt": good(), " b__pt": good(), "-": good()})
    (tmp_path / "list").write_bytes(b"x.pt\n\n b.pt\r\n-\nmissing.pt")
    (tmp_path / "list0").write_bytes(b"x.pt\0two\nlines.pt\0")
    monkeypatch.chdir(tmp_path)
    ran = fdd("validate", "x.pt", "--files-from", "list", "--format", "jsonl")
    assert [report["file"]["path"] for report in ran.reports] == ["x.pt", "x.pt", " b.pt", "./-", "missing.pt"]
    assert [("error" in report) for report in ran.reports] == [False, False, False, False, True]
    ran = fdd("validate", "--files-from", "list0", "--null", "--format", "jsonl")
    assert ran.code == 0
    assert [report["file"]["path"] for report in ran.reports] == ["x.pt", "two\nlines.pt"]
    assert fdd("validate", "--files-from", "list0", "--null", "--format", "json").json["summary"]["files"] == 2


def test_a_list_on_standard_input(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, x__pt=good())
    (tmp_path / "list").write_text(f"{tmp_path}/x.pt\n", encoding="utf-8")
    with (tmp_path / "list").open("rb") as stream:
        kept = os.dup(0)
        try:
            os.dup2(stream.fileno(), 0)
            ran = fdd("validate", "--files-from", "-", "--format", "jsonl")
        finally:
            os.dup2(kept, 0)
            os.close(kept)
    assert (ran.code, len(ran.reports)) == (0, 1)


def test_a_list_that_is_not_there(fdd: Runner, tmp_path: Path) -> None:
    code, out, err = fdd("validate", "--files-from", tmp_path / "none", "--format", "json")
    assert (code, out) == (3, "")
    assert err == f"fdd validate: {tmp_path}/none: No such file or directory\n"


def test_an_empty_list(fdd: Runner, tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"\n\n")
    assert fdd("validate", "--files-from", tmp_path / "list").code == 3


class Stdin:
    """Standard input that holds bytes."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("command", COMMANDS)
def test_standard_input(fdd: Runner, monkeypatch: pytest.MonkeyPatch, command: str, jobs: str) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(good()))
    ran = fdd(command, "-", "--name", "x.pt", "--format", "json", "--jobs", jobs)
    assert ran.code == 0
    assert ran.json["file"] == {"name": "x.pt", "size": len(good())}
    assert ran.json["identification"]["kind"] == "torch-zip"


def test_standard_input_among_files(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, x__pt=broken())
    monkeypatch.setattr(sys, "stdin", Stdin(good()))
    ran = fdd("validate", tmp_path / "x.pt", "-", tmp_path / "x.pt", "--format", "jsonl", "--jobs", "2")
    assert [report["status"]["verdict"] for report in ran.reports] == ["not-well-formed", "valid", "not-well-formed"]


def test_standard_input_has_a_limit(fdd: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    from fdd.cli import reporting
    from fdd.limits import Limits

    monkeypatch.setattr(reporting, "Limits", lambda: Limits(stdin_bytes=100))
    monkeypatch.setattr(sys, "stdin", Stdin(good()))
    code, out, _ = fdd("validate", "-")
    assert code == 3
    assert out == "cannot be read  -: standard input holds more than 100 bytes\n"


def test_the_original_name(fdd: Runner, tmp_path: Path) -> None:
    path = tmp_path / "__0_0"
    path.write_bytes(good())
    assert fdd("identify", path, "--name", "__0_0.distcp", "--format", "json").json["identification"]["kind"] == "distcp"
    assert fdd("identify", path, "--format", "json").json["identification"]["kind"] == "torch-zip"


def test_sets_follow_the_files(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, **{"model-00001-of-00002__bin": good()})
    ran = fdd("validate", tmp_path, "--format", "jsonl")
    assert ran.code == 0
    assert ran.lines[-1]["set"]["missing"] == ["model-00002-of-00002.bin"]
    assert fdd("validate", tmp_path, "--format", "json").json["sets"] == [ran.lines[-1]["set"]]
    assert "INCOMPLETE sharded-model" in fdd("validate", tmp_path).out


def test_names_that_are_not_utf8(fdd: Runner, tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\x1b.pt")
    Path(path).write_bytes(good())
    for form in ("text", "json", "jsonl"):
        code, out, _ = fdd("validate", tmp_path, path, "--format", form)
        assert code == 0
        assert out.count("caf%E9%1B.pt") >= 2
