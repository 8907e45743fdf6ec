# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C between reports, not in the middle of one: half a line would make everything around it unreadable."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """While entered, an interrupt that comes during :meth:`held` waits for its end; a second one does not wait.

    An interrupt in the midst of a write to a full pipe drops what was not yet written, and the next write goes on behind
    the gap: hence the care.
    """

    def __init__(self) -> None:
        self._holding = False
        self._pending = False
        self._installed = False

    def __enter__(self) -> Interrupts:
        default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._installed = default and threading.current_thread() is threading.main_thread()
        if self._installed:
            signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        if not self._holding or self._pending:
            raise KeyboardInterrupt
        self._pending = True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let what is inside come to its end."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt
