# SPDX-License-Identifier: Apache-2.0
"""Profiles and policies: read, checked, and applied to reports."""
