# SPDX-License-Identifier: Apache-2.0
"""`fdd sources`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

from fdd import api
from fdd.cli.exits import Exit
from fdd.cli.options import new_parser
from fdd.cli.output import make_folder, whole_file
from fdd.core.errors import SourceError
from fdd.core.model import EmbeddedSource
from fdd.core.paths import safe_path
from fdd.core.text import json_text, printable, valid_text

LIST_NAME = "sources.json"


def run(argv: Sequence[str]) -> Exit:
    """Write the source texts of a file into a folder, under neutral names, with a list."""
    parser = new_parser("sources", "Write the source texts inside a file into a folder, under neutral names, with a list.")
    parser.add_argument("path", metavar="PATH")
    parser.add_argument("--output-dir", metavar="DIR", required=True, help="where to write (made if it is not there)")
    parser.add_argument("--name", metavar="ORIGINAL", help="the file's own name, where the path has lost it")
    arguments = parser.parse_args(argv)
    try:
        found = api.sources(arguments.path, name=arguments.name)
    except SourceError as error:
        raise SourceError(f"{arguments.path}: {error}") from error
    make_folder(arguments.output_dir)
    rows = [_write(arguments.output_dir, number, source) for number, source in enumerate(found, 1)]
    with whole_file(os.path.join(arguments.output_dir, LIST_NAME)) as stream:
        stream.write(json_text({"path": safe_path(arguments.path), "sources": rows}, indent=2) + "\n")
    for row in rows:
        print(f"{row['file']}  {printable(row['name'])}")
    print(f"{len(rows)} source texts written" if rows else "the file carries no source text")
    return Exit.GOOD


def _write(folder: str, number: int, source: EmbeddedSource) -> dict[str, Any]:
    """Write one text and return its row of the list. The name in the file never becomes a path."""
    file = f"{number:04}.txt"
    path = os.path.join(folder, file)
    try:
        with open(path, "wb") as stream:
            stream.write(source.data)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error
    row = {
        "file": file,
        "name": valid_text(source.name),
        "record": valid_text(source.record) if source.record is not None else None,
        "offset": source.offset,
        "original_path": valid_text(source.original) if source.original is not None else None,
        "size": len(source.data),
        "sha256": hashlib.sha256(source.data).hexdigest(),
    }
    return {key: value for key, value in row.items() if value is not None}
