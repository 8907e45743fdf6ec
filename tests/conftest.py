# SPDX-License-Identifier: Apache-2.0
"""Settings for all tests. Hypothesis draws the same examples in CI on every run, and new ones elsewhere."""

import os

from hypothesis import settings

# No deadline: two workers share two cores, so the time of one example says nothing.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
