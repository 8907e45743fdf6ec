# SPDX-License-Identifier: Apache-2.0
"""The fixture that runs commands."""

from __future__ import annotations

import pytest

from tests.cli.running import Runner, runner


@pytest.fixture
def fdd(capsys: pytest.CaptureFixture[str]) -> Runner:
    """Runs the command line in this process and returns how it ended."""
    return runner(capsys)
