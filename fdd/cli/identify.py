# SPDX-License-Identifier: Apache-2.0
"""`fdd identify`."""

from __future__ import annotations

from collections.abc import Sequence

from fdd import api
from fdd.cli.exits import Exit
from fdd.cli.options import add_output, add_paths, new_parser
from fdd.cli.reporting import run_reports
from fdd.core.report import Report


def run(argv: Sequence[str]) -> Exit:
    """Tell the kind of each path."""
    parser = new_parser("identify", "Tell which kind of file each path is, and by which evidence.")
    add_paths(parser)
    add_output(parser)
    return run_reports(parser.parse_args(argv), "identify", _identify)


def _identify(source: api.Source, name: str | None) -> Report:
    return api.identify_report(source, name=name)
