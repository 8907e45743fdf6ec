# SPDX-License-Identifier: Apache-2.0
"""The one tree of errors. Bad bytes of a file under test never raise any of them: they become findings.

FddError
├── UsageError      the caller asked for something that does not exist or cannot be combined (exit code 2)
├── SourceError     a path cannot be read, or changes while it is read (exit code 3)
├── LimitExceeded   a limit of ``fdd.limits`` stopped a step; parsers turn it into a fact
└── InternalError   a fault of fdd itself (exit code 70)
"""


class FddError(Exception):
    """Root of all errors raised on purpose by fdd."""


class UsageError(FddError):
    """The request itself is wrong: unknown rule, profile, option or format."""


class SourceError(FddError):
    """Bytes cannot be had: missing path, no permission, not a regular file, shrunk while read, I/O error.

    ``offset`` is the absolute byte offset at which reading failed, where one is known.
    """

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class LimitExceeded(FddError):
    """A limit was reached; ``limit`` is the name of the field of ``fdd.limits.Limits``."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit


class InternalError(FddError):
    """fdd contradicts itself. Reported, never hidden."""
