# SPDX-License-Identifier: Apache-2.0
"""The progress line: on standard error, when that is a terminal, and only where it would not stand among the results."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from fdd.report import Summary

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

REFRESH_SECONDS = 0.1


class Progress:
    """Counts files as they are done. Shows nothing before the second one: a single file needs no progress.

    It is drawn from this thread only, between files: processes are forked from it, and a second thread would be copied
    in an unknown state.
    """

    def __init__(self, *, wanted: bool, total: int | None) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._total = total
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._drawn = 0.0

    def update(self, summary: Summary) -> None:
        """Show where the run is."""
        if not self._wanted or summary.files < 2:
            return
        now = time.monotonic()
        if now - self._drawn < REFRESH_SECONDS:
            return
        self._drawn = now
        if self._bar is None:
            self._bar, self._task = _start(self._total)
        if self._task is not None:
            self._bar.update(self._task, completed=summary.files, verdicts=_words(summary))
            self._bar.refresh()

    def close(self) -> None:
        """Take the line away; the terminal is as before."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _start(total: int | None) -> tuple[RichProgress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        MofNCompleteColumn(),
        TextColumn("files"),
        BarColumn(),
        TextColumn("{task.fields[verdicts]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = bar.add_task("", total=total, verdicts="")
    bar.start()
    return bar, task


def _words(summary: Summary) -> str:
    table = summary.verdicts or summary.kinds
    words = [f"{count} {word}" for word, count in sorted(table.items(), key=lambda item: -item[1])[:4]]
    return ", ".join(words + ([f"{summary.errors} not read"] if summary.errors else []))
