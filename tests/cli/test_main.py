# SPDX-License-Identifier: Apache-2.0
"""The program as a whole: help, wrong requests, faults of the machine and of fdd itself; never a traceback."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fdd import api
from fdd._version import __version__
from fdd.cli import validate
from fdd.cli.main import COMMANDS
from fdd.core.errors import InternalError
from tests.cli.running import Runner, ended, fill, good, started


def test_version(fdd: Runner) -> None:
    assert fdd("--version") == fdd("-V") == (0, f"fdd {__version__}\n", "")


def test_help(fdd: Runner) -> None:
    code, out, err = fdd("--help")
    assert (code, err) == (0, "")
    assert [command for command in COMMANDS if f"\n  {command} " not in out] == []
    assert fdd("-h") == (code, out, err)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(fdd: Runner, command: str) -> None:
    code, out, err = fdd(command, "--help")
    assert (code, err) == (0, "")
    assert f"usage: fdd {command}" in out


WRONG: list[tuple[str, ...]] = [
    (),
    ("frobnicate",),
    ("validate",),
    ("identify",),
    ("extract",),
    ("validate", "--nonsense", "x"),
    ("validate", "--format", "yaml", "x"),
    ("validate", "--depth", "abyss", "x"),
    ("validate", "--digest", "crc7", "x"),
    ("validate", "--as", "fdd000000", "x"),
    ("validate", "--fail-on", "mondays", "x"),
    ("validate", "--jobs", "-1", "x"),
    ("validate", "--jobs", "many", "x"),
    ("validate", "--order", "random", "x"),
    ("validate", "--output", "a", "--output-dir", "b", "x"),
    ("validate", "--name", "a.pt", "x", "y"),
    ("validate", "--form", "json", "x"),
    ("validate", "-", "-"),
    ("validate", "-", "--files-from", "-"),
    ("sources", "x"),
    ("rules",),
    ("rules", "show"),
    ("rules", "show", "PT-XXX-999"),
    ("formats", "show", "fdd000000"),
    ("fixity",),
    ("fixity", "create"),
    ("fixity", "create", "x", "y"),
    ("fixity", "create", "x", "--digest", ","),
    ("fixity", "export", "x", "--to", "floppy"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_requests(fdd: Runner, arguments: tuple[str, ...]) -> None:
    code, out, err = fdd(*arguments)
    assert code == 2
    assert "Traceback" not in err
    if arguments:
        assert err.startswith(f"fdd {arguments[0]}: " if arguments[0] in COMMANDS else "fdd: no command")
        assert out == "", "a wrong request leaves nothing on standard output"


def test_complaints_show_no_raw_control_characters(fdd: Runner) -> None:
    for arguments in (("\x1b[2J\u202e",), ("rules", "show", "\x1b[2J\u202e"), ("validate", "--files-from", "\x1b[2J\u202e\n")):
        code, _, err = fdd(*arguments)
        assert code in (2, 3)
        assert err.replace("\n", "").isprintable()
        assert "\\x1b[2J" in err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 3, "fdd validate: No space left on device"),
        (OSError(errno.EAGAIN, "Try again", "some/file"), 3, "fdd validate: some/file: Try again"),
        (InternalError("two rules of one name"), 70, "fdd validate: internal error: InternalError: two rules of one name"),
        (RecursionError("deep"), 70, "fdd validate: internal error: RecursionError: deep"),
        (MemoryError(), 70, "fdd validate: internal error: MemoryError: "),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(), 3, ""),
        (SystemExit(0), 0, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_how_faults_end(fdd: Runner, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str) -> None:
    def fail(_: Sequence[str]) -> None:
        raise error

    monkeypatch.setattr(validate, "run", fail)
    ended_with, out, err = fdd("validate", "x")
    assert (ended_with, out) == (code, "")
    assert err.startswith(message) and err.count("\n") == (1 if message else 0)
    if code == 70:
        assert "tests.cli.test_main:" in err, "where it happened"


def test_a_fault_on_one_file_is_told_and_the_others_go_on(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, a__pt=good(), b__pt=good(), c__pt=good())
    judge = api.validate

    def fail(source: object, **options: object) -> object:
        if str(source).endswith("b.pt"):
            raise ZeroDivisionError("oh")
        return judge(source, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(api, "validate", fail)
    ran = fdd("validate", tmp_path, "--format", "jsonl")
    assert ran.code == 70
    assert [report.get("status", {}).get("verdict") for report in ran.reports] == ["valid", None, "valid"]
    error = ran.reports[1]["error"]
    assert error["internal"] is True
    assert "ZeroDivisionError: oh (tests.cli.test_main:" in error["message"]
    assert fdd("validate", tmp_path, "--exit-zero").code == 70


def test_the_program_as_installed() -> None:
    assert ended(started("--version")) == (0, f"fdd {__version__}\n", "")
    code, out, err = ended(started("validate", "no/such\x1bfile.pt"))
    assert (code, err) == (3, "")
    assert out == "cannot be read  no/such\\x1bfile.pt: No such file or directory\n"
