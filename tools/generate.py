# SPDX-License-Identifier: Apache-2.0
"""Writes the files that are made from the code, so that each fact keeps one home.

``python tools/generate.py`` brings them up to date; ``--check`` changes nothing and exits 1 with the names of stale files.
A generator is one function that returns texts, and one line in ``GENERATORS``.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from fdd import limits

ROOT = Path(__file__).resolve().parent.parent
NOTICE = "<!-- Written by tools/generate.py: change the source, not this file. -->"


@dataclass(frozen=True, slots=True)
class Generator:
    """``render`` gives the text of each file by its path below the root, written with slashes.

    ``owns`` are glob patterns below the root: a file that matches and is not rendered is left over from before, and stale.
    """

    owns: tuple[str, ...]
    render: Callable[[], Mapping[str, str]]


def limits_page() -> Mapping[str, str]:
    """A table of every limit of ``fdd.limits.Limits``: its name, its default, the docstring below it."""
    definition = ast.parse(inspect.getsource(limits.Limits)).body[0]
    assert isinstance(definition, ast.ClassDef)
    meanings: dict[str, str] = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            meanings[field.target.id] = inspect.cleandoc(ast.literal_eval(text.value))
    rows = (f"| `{field.name}` | {field.default:,} | {meanings[field.name]} |" for field in fields(limits.Limits))
    introduction = inspect.cleandoc(limits.Limits.__doc__ or "")
    page = ["# Limits", "", NOTICE, "", introduction, "", "| limit | default | meaning |", "|---|---|---|", *rows]
    return {"docs/limits.md": "\n".join(page) + "\n"}


GENERATORS: tuple[Generator, ...] = (Generator(("docs/limits.md",), limits_page),)


def wanted(generators: Iterable[Generator], root: Path) -> dict[Path, str | None]:
    """The text of every generated file, None for one that should no longer exist."""
    files: dict[Path, str | None] = {}
    for generator in generators:
        files |= {path: None for pattern in generator.owns for path in root.glob(pattern)}
        files |= {root / name: text for name, text in generator.render().items()}
    return files


def stale(files: Mapping[Path, str | None]) -> list[Path]:
    """The files whose text on disk is not the wanted one, sorted."""
    return sorted(path for path, text in files.items() if (path.read_text(encoding="utf-8") if path.is_file() else None) != text)


def write(path: Path, text: str | None) -> None:
    """Write a generated file with line feeds on every system, or remove it where ``text`` is None."""
    if text is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: list[str] | None = None) -> int:
    """Run as a command; returns the exit code."""
    parser = argparse.ArgumentParser(description="Write the files that are made from the code.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 and name the stale files, if any")
    check: bool = parser.parse_args(arguments).check
    files = wanted(GENERATORS, ROOT)
    names = stale(files)
    for path in names:
        print(f"{'stale' if check else 'written'}: {path.relative_to(ROOT).as_posix()}")
        if not check:
            write(path, files[path])
    print(f"{len(files)} generated files, {len(names)} {'stale' if check else 'brought up to date'}")
    return 1 if check and names else 0


if __name__ == "__main__":
    sys.exit(main())
