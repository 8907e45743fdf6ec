# SPDX-License-Identifier: Apache-2.0
"""`fdd doctor`: does this installation work? Judges the corpus that comes with it and looks at its libraries."""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec

from fdd import api
from fdd._version import __version__
from fdd.cli.exits import Exit
from fdd.cli.options import new_parser
from fdd.core.digests import has_fast_crc32
from fdd.core.errors import FddError
from fdd.formats import installed
from fdd.resources import corpus_dir, schema_path

LIBRARIES = {
    "lxml": "XML, PREMIS and METS",
    "numpy": "value statistics and comparisons",
    "jsonschema": "profiles",
    "rich": "progress on a terminal",
}
"""Libraries of the core install, and what is missing without them."""


def run(argv: Sequence[str]) -> Exit:
    """Test the installation; exit code 1 where something does not work."""
    parser = new_parser("doctor", "Test this installation: files, libraries, and verdicts on the corpus that comes with it.")
    parser.parse_args(argv)
    print(f"fdd {__version__}, Python {platform.python_version()} on {platform.system().lower()}-{platform.machine()}")
    print(f"formats: {', '.join(f'{fmt.name} ({len(fmt.catalogue)} rules)' for fmt in installed())}")
    print(f"CRC-32: {'isal (fast)' if has_fast_crc32() else 'zlib (works; isal is faster)'}")
    problems = 0
    for check in (_libraries, _schemas, _corpus):
        for problem in _run(check):
            problems += 1
            print(f"PROBLEM: {problem}")
    print("all is well" if not problems else f"{problems} problem{'s' if problems > 1 else ''}")
    return Exit.BAD if problems else Exit.GOOD


def _run(check: Callable[[], Iterator[str]]) -> Iterator[str]:
    try:
        yield from check()
    except (FddError, OSError, ValueError, KeyError) as error:
        yield f"{check.__name__.strip('_')}: {type(error).__name__}: {error}"


def _libraries() -> Iterator[str]:
    for name, use in LIBRARIES.items():
        if find_spec(name) is None:
            yield f"the library {name} is missing ({use}): install fdd again with pip"


def _schemas() -> Iterator[str]:
    if not schema_path("report.schema.json").is_file():
        yield "schemas/report.schema.json is missing"


def _corpus() -> Iterator[str]:
    """Each file of the corpus gives the verdict its manifest says."""
    folder = corpus_dir()
    entries = tomllib.loads((folder / "manifest.toml").read_text(encoding="utf-8"))["file"]
    wrong = 0
    for entry in entries:
        report = api.validate(str(folder / entry["path"]), name=entry.get("name"), depth=entry.get("depth", "full"))
        if report.verdict is None or report.verdict.value != entry["verdict"]:
            wrong += 1
            yield f"{entry['path']}: {report.verdict}, expected {entry['verdict']}"
    print(f"corpus: {len(entries) - wrong} of {len(entries)} files give the verdict they should")
