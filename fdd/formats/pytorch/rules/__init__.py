# SPDX-License-Identifier: Apache-2.0
"""The rules of fdd000644, by subject. Each is one decorated generator; nothing is registered anywhere else."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from fdd.core.rule import Catalogue
from fdd.formats.pytorch.rules.catalogue import CATALOGUE


def load() -> Catalogue:
    """Import every module of rules below this package, in the order of their names, and return the filled catalogue."""
    for module in sorted(found.name for found in pkgutil.walk_packages(__path__, f"{__name__}.")):
        import_module(module)
    return CATALOGUE
