# SPDX-License-Identifier: Apache-2.0
"""The loop that `validate`, `identify` and `extract` share: paths in, reports out, one exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

from fdd import api
from fdd.batch.sets import SetCollector
from fdd.cli.exits import Exit, exit_of
from fdd.cli.options import STDIN, entries, is_single, spool_stdin
from fdd.cli.output import FilePerReport, output_stream
from fdd.core.errors import SourceError
from fdd.core.parallel import in_order
from fdd.core.paths import Entry, safe_path
from fdd.core.report import Report
from fdd.core.text import printable
from fdd.limits import Limits
from fdd.report import Style, Summary, new_writer

Step = Callable[[api.Source, "str | None"], Report]
"""Makes a report of a source and the file's own name."""
CLAIMING_SUFFIXES = (".pt", ".pth", ".ptl", ".pt2", ".pte", ".ckpt", ".distcp", ".mar", ".th", ".pth.tar", ".torchscript")
"""Endings by which a name claims to be a PyTorch file."""


def run_reports(arguments: argparse.Namespace, command: str, step: Step) -> Exit:
    """Report on every path in order; the exit code is the highest that any report asks for."""
    style = Style(command, is_single(arguments), arguments.verbose, arguments.brief, _wants_color(arguments))
    summary = Summary()
    code = Exit.GOOD
    folder = FilePerReport(arguments.output_dir, arguments.format, style) if arguments.output_dir else None
    with output_stream(arguments.output) as stream:
        writer = new_writer(arguments.format, stream, style)
        if folder is None:
            writer.begin()
        sets = SetCollector()
        for entry, report in _reports(arguments, step, summary):
            summary.add(report)
            sets.add(entry.path, report)
            code = max(code, _exit_of(entry, report, command, arguments))
            if folder is not None:
                folder.write(report, _relative(entry))
            else:
                writer.write(report)
        if folder is None:
            for facts in sets.sets():
                writer.write_set(facts)
            writer.end(summary)
    if summary.files == 0:
        print("fdd: nothing to do: no file in what was given", file=sys.stderr)
        code = max(code, Exit.UNDECIDED)
    return Exit.GOOD if code is Exit.BAD and arguments.exit_zero else code


def _reports(arguments: argparse.Namespace, step: Step, summary: Summary) -> Iterator[tuple[Entry, Report]]:
    run = partial(_report_on, step, arguments.name)
    listed = _tell_skipped(entries(arguments), summary, quiet=arguments.quiet)
    return in_order(run, listed, arguments.jobs, as_done=arguments.order == "done")


def _tell_skipped(listed: Iterator[Entry], summary: Summary, *, quiet: bool) -> Iterator[Entry]:
    for entry in listed:
        if entry.skipped is None:
            yield entry
            continue
        summary.skipped += 1
        if not quiet:
            print(f"skipped: {printable(safe_path(entry.path), most=4096)}: {entry.skipped}", file=sys.stderr)


def _report_on(step: Step, name: str | None, entry: Entry) -> tuple[Entry, Report]:
    if entry.problem is not None:
        return entry, api.error_report(entry.path, entry.problem)
    try:
        if entry.path == STDIN:
            return entry, step(spool_stdin(Limits().stdin_bytes), name)
        return entry, step(entry.path, name)
    except SourceError as error:
        return entry, api.error_report(entry.path, str(error))


def _exit_of(entry: Entry, report: Report, command: str, arguments: argparse.Namespace) -> Exit:
    claims = entry.path.lower().endswith(CLAIMING_SUFFIXES)
    fail_on = getattr(arguments, "fail_on", "dangerous")
    return exit_of(report, command=command, fail_on=fail_on, in_folder=entry.root is not None, claims=claims)


def _relative(entry: Entry) -> str:
    return os.path.relpath(entry.path, entry.root) if entry.root is not None else os.path.basename(entry.path) or "stdin"


def _wants_color(arguments: argparse.Namespace) -> bool:
    plain = arguments.output or arguments.output_dir or "NO_COLOR" in os.environ
    return not plain and arguments.format == "text" and sys.stdout.isatty()
