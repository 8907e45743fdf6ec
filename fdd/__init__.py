# SPDX-License-Identifier: Apache-2.0
"""fdd validates, describes and safeguards PyTorch serialized files, without torch and without running a pickle.

The names below are the public API; they are loaded when first used, so that ``import fdd`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fdd._version import __version__

if TYPE_CHECKING:
    from fdd import fixity
    from fdd.api import extract, identify, validate, validate_many
    from fdd.core.errors import FddError, SourceError, UsageError
    from fdd.core.report import Report
    from fdd.limits import Limits

_HOMES = {
    "extract": "fdd.api",
    "identify": "fdd.api",
    "validate": "fdd.api",
    "validate_many": "fdd.api",
    "FddError": "fdd.core.errors",
    "SourceError": "fdd.core.errors",
    "UsageError": "fdd.core.errors",
    "Report": "fdd.core.report",
    "Limits": "fdd.limits",
}

__all__ = [
    "FddError",
    "Limits",
    "Report",
    "SourceError",
    "UsageError",
    "__version__",
    "extract",
    "fixity",
    "identify",
    "validate",
    "validate_many",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "fixity":
        return import_module("fdd.fixity")
    if name not in _HOMES:
        raise AttributeError(f"module 'fdd' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
