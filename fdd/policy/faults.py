# SPDX-License-Identifier: Apache-2.0
"""What is wrong in a profile or policy, each fault with its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fdd.core.errors import UsageError

MOST_BYTES = 1 << 20
"""Largest profile or policy that is read: they are written by hand, or nearly so."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong in a profile or policy: file, line (from 1) and what."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class DemandError(UsageError):
    """A profile or policy with faults; the message has a line for each."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(sorted(set(faults), key=lambda fault: (fault.path, fault.line, fault.message)))
        super().__init__("\n".join(str(fault) for fault in self.faults))


def read_bytes(path: Path) -> bytes:
    """The bytes of a profile or policy. Raises :class:`DemandError` where it cannot be read or is too large."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise DemandError([Fault(str(path), 1, f"cannot be read: {error.strerror or error}")]) from error
    if len(data) > MOST_BYTES:
        raise DemandError([Fault(str(path), 1, f"larger than {MOST_BYTES:,} bytes")])
    return data
