# SPDX-License-Identifier: Apache-2.0
"""What a repository wants of its PREMIS documents: the options of the command line, read and checked."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from fdd.core.errors import UsageError

EVENT_TYPES = ("format identification", "validation", "message digest calculation", "metadata extraction")
_DATE = re.compile(r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?[?~%]?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class PremisOptions:
    """``bitstreams``: none, storages or all records, or auto (storages up to a number). ``events``: which types are written.
    ``links``: whether events name the file only, or its bitstreams too. ``outcomes``: `loc` or `archivematica` words.
    ``identifiers``: uuid5 (of the digests, so that runs repeat) or uuid4. ``created``: date of making the file, if the
    caller knows it. ``puid``: add a format for the ZIP container (importers may unpack it). Original names are the paths
    below ``root``, with ``prefix`` in front. ``brief``: no lists of records and tensors in the extension.
    """

    bitstreams: str = "auto"
    events: tuple[str, ...] = EVENT_TYPES
    links: str = "file"
    outcomes: str = "loc"
    identifiers: str = "uuid5"
    created: str | None = None
    puid: bool = False
    prefix: str = ""
    root: str = ""
    brief: bool = False

    @staticmethod
    def of(options: Mapping[str, Any], *, brief: bool = False) -> PremisOptions:
        """Read them from the options of a run. Raises :class:`UsageError` for unknown event types and dates that are none."""
        words = options.get("premis_events")
        events = tuple(word.strip() for word in words.split(",")) if words else EVENT_TYPES
        unknown = [word for word in events if word not in EVENT_TYPES]
        if unknown:
            raise UsageError(f"unknown event type {unknown[0]!r}; known: {', '.join(EVENT_TYPES)}")
        created = options.get("created")
        if created is not None and not is_date(created):
            raise UsageError(f"--created takes a date such as 2024, 2024-05~ or 2024-05-31T12:00:00Z, not {created!r}")
        return PremisOptions(
            bitstreams=options.get("premis_bitstreams") or "auto",
            events=events,
            links=options.get("premis_links") or "file",
            outcomes=options.get("premis_outcomes") or "loc",
            identifiers=options.get("premis_identifiers") or "uuid5",
            created=created,
            puid=bool(options.get("premis_puid")),
            prefix=options.get("premis_prefix") or "",
            root=options.get("premis_root") or "",
            brief=brief,
        )

    def original_name(self, file: Mapping[str, Any]) -> str | None:
        """The name that a file of a report has in the transfer; None where none is known (standard input)."""
        path = file.get("path") or file.get("name")
        if path is None or not (self.root or self.prefix):
            return path
        name = posixpath.normpath(str(path))
        if self.root:
            name = name.removeprefix(f"{posixpath.normpath(self.root).rstrip('/')}/")
        return self.prefix + name.lstrip("/") if self.prefix else name


def is_date(text: str) -> bool:
    """Whether a text is a date or moment of EDTF, level 0, or one marked as uncertain or approximate."""
    found = _DATE.fullmatch(text)
    try:
        if found is None:
            return _MOMENT.fullmatch(text) is not None and datetime.fromisoformat(text) is not None
        date(int(found["year"]), int(found["month"] or 1), int(found["day"] or 1))
    except ValueError:
        return False
    return True
