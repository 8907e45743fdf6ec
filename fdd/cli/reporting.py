# SPDX-License-Identifier: Apache-2.0
"""The loop that `validate`, `identify` and `extract` share: paths in, reports out, one exit code."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TextIO

from fdd import api
from fdd.batch.sets import SetCollector
from fdd.cli.exits import Exit, exit_of
from fdd.cli.interrupts import Interrupts
from fdd.cli.options import entries, is_single, jobs_for, spooled_stdin
from fdd.cli.output import STDIN, FilePerReport, output_stream, relative_path
from fdd.cli.progress import Progress
from fdd.core.errors import SourceError
from fdd.core.parallel import LOST, in_order
from fdd.core.paths import Entry, safe_path
from fdd.core.report import Report
from fdd.core.text import printable
from fdd.limits import Limits
from fdd.report import FILE_SUFFIX, Style, Summary, new_writer

Step = Callable[[api.Source, "str | None"], Report]
"""Makes a report of a source and the file's own name."""
CLAIMING_SUFFIXES = (".pt", ".pth", ".ptl", ".pt2", ".pte", ".ckpt", ".distcp", ".mar", ".th", ".pth.tar", ".torchscript")
"""Endings by which a name claims to be a PyTorch file."""
CLAIMING_NAMES = re.compile(
    r"(?:.*_)?(?:pytorch_model|optimizer|scheduler|training_args|adapter_model)(?:[-_.].*)?\.bin|.*\.safetensors"
)
"""Names that say so, or name another format that is judged, without such an ending."""


def run_reports(arguments: argparse.Namespace, command: str, step: Step) -> Exit:
    """Report on every path in order; the exit code is the highest that any report asks for."""
    color = _wants_color(arguments)
    style = Style(command, is_single(arguments), arguments.verbose, arguments.brief, color, vars(arguments))
    run = _Run(arguments, command, step, entries(arguments, FILE_SUFFIX[arguments.format]))
    if arguments.output_dir is not None:
        folder = FilePerReport(arguments.output_dir, arguments.format, style)
        run.each(partial(_write_one, run, folder))
    else:
        with output_stream(arguments.output) as stream:
            _write_all(run, stream, style)
    if run.summary.files == 0:
        print("fdd: nothing to do: no file in what was given", file=sys.stderr)
        run.code = max(run.code, Exit.UNDECIDED)
    return Exit.GOOD if run.code is Exit.BAD and arguments.exit_zero else run.code


def _write_one(run: _Run, folder: FilePerReport, entry: Entry, report: Report) -> None:
    """One report in a file of its own. Where that cannot be written the others still are."""
    try:
        folder.write(report, relative_path(entry))
    except SourceError as error:
        print(f"fdd: {printable(str(error), 4096)}", file=sys.stderr)
        run.code = max(run.code, Exit.UNDECIDED)


def _write_all(run: _Run, stream: TextIO, style: Style) -> None:
    """One document. It is closed properly even where the run is interrupted: what was finished can be read."""
    writer = new_writer(run.arguments.format, stream, style)
    with run.interrupts:
        with run.interrupts.held():
            writer.begin()
        try:
            run.each(lambda _, report: writer.write(report))
        except KeyboardInterrupt:
            with run.interrupts.held():
                writer.end(run.summary)
                stream.flush()
            raise
        with run.interrupts.held():
            for facts in run.sets.sets():
                writer.write_set(facts)
            writer.end(run.summary)
            stream.flush()


class _Run:
    """One run over paths, and what is known of it so far."""

    def __init__(self, arguments: argparse.Namespace, command: str, step: Step, listed: Iterator[Entry]) -> None:
        self.arguments = arguments
        self.summary = Summary()
        self.sets = SetCollector()
        self.code = Exit.GOOD
        self.interrupts = Interrupts()
        self._command = command
        self._step = step
        self._listed = listed

    def each(self, write: Callable[[Entry, Report], object]) -> None:
        """Make the reports and hand each to ``write``."""
        arguments = self.arguments
        run = partial(_report_on, self._step, arguments.name)
        progress = Progress(wanted=_wants_progress(arguments), total=_total(arguments))
        try:
            as_done = arguments.order == "done"
            for entry, report in in_order(run, self._told(), jobs_for(arguments), as_done=as_done, lost=_lost):
                self.summary.add(report)
                with self.interrupts.held():
                    write(entry, report)
                self.sets.add(entry.path, report)
                self.code = max(self.code, _exit_of(entry, report, self._command, arguments))
                progress.update(self.summary)
        finally:
            progress.close()

    def _told(self) -> Iterator[Entry]:
        """The files to read; what is skipped is told and counted."""
        for entry in self._listed:
            if entry.skipped is None:
                yield entry
                continue
            self.summary.skipped += 1
            if not self.arguments.quiet:
                print(f"skipped: {printable(safe_path(entry.path), most=4096)}: {entry.skipped}", file=sys.stderr)


def _report_on(step: Step, name: str | None, entry: Entry) -> tuple[Entry, Report]:
    if entry.problem is not None:
        return entry, api.error_report(entry.path, entry.problem)
    return entry, api.report_or_error(entry.path, lambda: _read(step, name, entry.path))


def _lost(entry: Entry) -> tuple[Entry, Report]:
    return entry, api.error_report(entry.path, LOST)


def _read(step: Step, name: str | None, path: str) -> Report:
    if path != STDIN:
        return step(path, name)
    with spooled_stdin(Limits().stdin_bytes) as spool:
        return step(spool, name)


def _exit_of(entry: Entry, report: Report, command: str, arguments: argparse.Namespace) -> Exit:
    name = os.path.basename(entry.path).lower()
    claims = name.endswith(CLAIMING_SUFFIXES) or CLAIMING_NAMES.fullmatch(name) is not None
    fail_on = getattr(arguments, "fail_on", "dangerous")
    return exit_of(report, command=command, fail_on=fail_on, in_folder=entry.root is not None, claims=claims)


def _wants_color(arguments: argparse.Namespace) -> bool:
    plain = arguments.output or arguments.output_dir or "NO_COLOR" in os.environ
    return not plain and arguments.format == "text" and sys.stdout.isatty()


def _wants_progress(arguments: argparse.Namespace) -> bool:
    """Not where the results themselves run over the terminal: they are progress enough."""
    results_on_terminal = not (arguments.output or arguments.output_dir) and sys.stdout.isatty()
    return not arguments.quiet and not results_on_terminal


def _total(arguments: argparse.Namespace) -> int | None:
    """How many files there are, where that is known before folders are walked."""
    if arguments.files_from is not None or any(os.path.isdir(path) for path in arguments.paths):
        return None
    return len(arguments.paths)
