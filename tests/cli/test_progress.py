# SPDX-License-Identifier: Apache-2.0
"""The progress line: on a terminal, for more than one file, never among the results, and gone at the end."""

from __future__ import annotations

import os
import pty
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from fdd.cli import progress
from fdd.cli.progress import Progress
from fdd.report import Summary
from tests.cli.running import Runner, fill, good, started


def on_terminal(*arguments: str | Path, stdout_too: bool = False) -> tuple[int, str]:
    """Run with standard error on a terminal, and return the exit code and what the terminal got."""
    ours, theirs = pty.openpty()
    out = theirs if stdout_too else os.open(os.devnull, os.O_WRONLY)
    try:
        process = started(*arguments, stderr=theirs, stdout=out, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"})
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            pieces.append(piece)
        return process.wait(60), b"".join(pieces).decode()
    finally:
        os.close(ours)
        if out != theirs:
            os.close(out)


def test_a_line_that_is_gone_at_the_end(tmp_path: Path) -> None:
    fill(tmp_path, **{f"{number:02}__pt": good() for number in range(40)})
    code, text = on_terminal("validate", tmp_path, "--format", "json")
    assert code == 0
    assert re.search(r"\d+/\? files", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text))
    assert " valid" in text
    assert text.rstrip().endswith("\x1b[2K"), "the line is cleared"


class Screen:
    """Standard error that is, or is not, a terminal."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


@pytest.mark.parametrize(
    ("terminal", "wanted", "files", "shown"),
    [(True, True, 2, True), (True, True, 1, False), (True, False, 9, False), (False, True, 9, False)],
    ids=["shown", "one file", "not wanted", "no terminal"],
)
def test_when_it_is_shown(monkeypatch: pytest.MonkeyPatch, terminal: bool, wanted: bool, files: int, shown: bool) -> None:
    begun: list[int | None] = []
    begin = progress._start

    def start(total: int | None) -> Any:
        begun.append(total)
        return begin(total)

    monkeypatch.setattr(progress, "_start", start)
    monkeypatch.setattr(sys, "stderr", Screen(terminal))
    line = Progress(wanted=wanted, total=7)
    line.update(Summary(files=files, verdicts={"valid": files}))
    line.close()
    line.close()
    assert begun == ([7] if shown else [])


def test_results_on_the_terminal_are_progress_enough(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, **{f"{number}__pt": good() for number in range(4)})
    wanted: list[bool] = []

    class Recorded(Progress):
        def __init__(self, *, wanted: bool, total: int | None) -> None:
            record(wanted)
            super().__init__(wanted=wanted, total=total)

    record = wanted.append
    monkeypatch.setattr("fdd.cli.reporting.Progress", Recorded)
    fdd("validate", tmp_path)
    fdd("validate", tmp_path, "--quiet")
    monkeypatch.setattr(sys, "stdout", Screen(True))
    from fdd.cli.main import main

    main(["validate", str(tmp_path)])
    main(["validate", str(tmp_path), "--output", str(tmp_path / "out")])
    assert wanted == [True, False, False, True]
