# SPDX-License-Identifier: Apache-2.0
"""Rules on the ZIP container."""
