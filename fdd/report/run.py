# SPDX-License-Identifier: Apache-2.0
"""What a report says of the run and of the file as the file system knows it: nothing of it comes from the bytes."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import Any

from fdd.core.paths import safe_path
from fdd.core.source import ByteSource, FileSource


def run_dict(started: datetime, seconds: float, bytes_read: int) -> dict[str, Any]:
    """What concerns the run and not the bytes."""
    return {
        "started": _utc(started),
        "seconds": round(seconds, 6),
        "bytes_read": bytes_read,
        "python": sys.version.partition(" ")[0],
        "platform": _platform(),
    }


def file_dict(source: ByteSource, path: str | None, name: str | None) -> dict[str, Any]:
    """Size, name and, of a file on disk, path and time of change."""
    file: dict[str, Any] = {"size": source.size}
    if path is not None:
        file = {"path": safe_path(path), "name": safe_path(name or ""), **file}
    elif name is not None:
        file = {"name": safe_path(name), **file}
    if isinstance(source, FileSource) and path is not None:
        file["modified"] = _utc(datetime.fromtimestamp(source.modified, UTC))
    return file


def _utc(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _platform() -> str:
    """System and processor, as in `linux-x86_64`."""
    if hasattr(os, "uname"):
        return f"{os.uname().sysname.lower()}-{os.uname().machine}"
    import platform  # dear to load

    return f"{platform.system().lower()}-{platform.machine()}"
