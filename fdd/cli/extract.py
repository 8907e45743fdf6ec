# SPDX-License-Identifier: Apache-2.0
"""`fdd extract`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fdd import api
from fdd.cli.exits import Exit
from fdd.cli.options import add_output, add_paths, new_parser
from fdd.cli.reporting import run_reports
from fdd.core.report import Report


def run(argv: Sequence[str]) -> Exit:
    """Technical metadata of each path."""
    parser = new_parser("extract", "Technical metadata of each path, without judgement. Unpacks nothing.")
    add_paths(parser)
    add_output(parser)
    parser.add_argument("--stats", action="store_true", help="statistics of the stored numbers: NaN, Inf, zeros, min, max")
    arguments = parser.parse_args(argv)
    return run_reports(arguments, "extract", partial(_extract, arguments.as_format, arguments.stats))


def _extract(as_format: str | None, stats: bool, source: api.Source, name: str | None) -> Report:
    return api.extract(source, name=name, as_format=as_format, stats=stats)
