# SPDX-License-Identifier: Apache-2.0
"""Where the files beside the code lie: ``profiles/``, ``schemas/`` and ``corpus/``.

In a checkout they are at its top; in an installed wheel, below ``fdd/_data``. Both are plain folders: fdd is not run
from inside a ZIP, so a path is all it takes.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str, package: Path = _PACKAGE) -> Path:
    """The folder of that name for the package in ``package``. Raises :class:`FileNotFoundError` where there is none."""
    for top in (package / "_data", package.parent):
        if (top / name).is_dir():
            return top / name
    raise FileNotFoundError(f"this installation of fdd has no folder {name}: install it again")


def profiles_dir() -> Path:
    """The folder of the profiles that fdd brings: ``*.toml``, with ``policies/*.sch``."""
    return _folder("profiles")


def corpus_dir() -> Path:
    """The folder of the test corpus: ``manifest.toml`` and the files it names."""
    return _folder("corpus")


def schema_path(name: str) -> Path:
    """The path of a schema by its file name, such as ``report.schema.json``.

    Raises :class:`ValueError` for a name with a folder in it, :class:`FileNotFoundError` where fdd has no such schema.
    """
    if Path(name).name != name or name in ("", ".."):
        raise ValueError(f"not the plain file name of a schema: {name!r}")
    path = _folder("schemas") / name
    if not path.is_file():
        raise FileNotFoundError(f"fdd has no schema {name}")
    return path
