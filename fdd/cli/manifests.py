# SPDX-License-Identifier: Apache-2.0
"""Fixity manifests as files: what they are called, how one is read."""

from __future__ import annotations

from fdd.core.errors import SourceError, UsageError
from fdd.core.source import FileSource
from fdd.fixity.manifest import Manifest

MANIFEST_SUFFIX = ".fixity.json"


def now() -> str:
    """The time as documents have it."""
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def load_manifest(path: str) -> Manifest:
    """Read one manifest. Raises SourceError where it cannot be read, or is none."""
    try:
        with FileSource(path) as source:
            return Manifest.from_json(source.read_at(0, source.size).decode("utf-8"))
    except (SourceError, UsageError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: {error}") from error
