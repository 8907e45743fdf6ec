# SPDX-License-Identifier: Apache-2.0
"""The register of recipes: functions without arguments that return the bytes of one corpus file, always the same ones."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Recipe = Callable[[], bytes]

CORPUS = Path(__file__).resolve().parent.parent
_RECIPES: dict[str, Recipe] = {}


def recipe(path: str) -> Callable[[Recipe], Recipe]:
    """Register a function as the recipe of the file ``path``, below ``corpus/``, with `/` and inside a folder."""

    def register(function: Recipe) -> Recipe:
        parts = path.split("/")
        if len(parts) < 2 or any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"{path!r} is not a path inside a folder of the corpus")
        if path in _RECIPES:
            raise ValueError(f"two recipes make {path}")
        _RECIPES[path] = function
        return function

    return register


def load_recipes() -> dict[str, Recipe]:
    """Import all modules of this folder and return the recipes they register, sorted by path."""
    for module in sorted(Path(__file__).parent.glob("*.py")):
        if not module.stem.startswith("__"):
            importlib.import_module(f"corpus.build.{module.stem}")
    return dict(sorted(_RECIPES.items()))


@dataclass
class Outcome:
    """What a run did, or would have to do; paths below the corpus folder."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    """Files in a folder of recipes that no recipe makes."""

    @property
    def up_to_date(self) -> bool:
        """Whether every file is as its recipe makes it, and there is no other one."""
        return not self.written and not self.strays


def build(recipes: dict[str, Recipe], target: Path = CORPUS, *, check: bool = False) -> Outcome:
    """Write the files that differ from what their recipes make; with ``check`` only find them. Deletes nothing."""
    outcome = Outcome()
    for path, make in recipes.items():
        data, place = make(), target / path
        if place.is_file() and place.read_bytes() == data:
            outcome.unchanged.append(path)
            continue
        outcome.written.append(path)
        if not check:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    for folder in sorted({path.split("/")[0] for path in recipes}):
        for place in sorted((target / folder).rglob("*")):
            path = place.relative_to(target).as_posix()
            if place.is_file() and path not in recipes:
                outcome.strays.append(path)
    return outcome
