# SPDX-License-Identifier: Apache-2.0
"""Settings for all tests. Hypothesis draws the same examples in CI on every run, and new ones elsewhere."""

import os
import signal

from hypothesis import settings

# No deadline: two workers share two cores, so the time of one example says nothing.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# A shell starts background jobs with interrupts ignored, and programs hand that on: tests of Ctrl-C would wait for nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
