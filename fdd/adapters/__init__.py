# SPDX-License-Identifier: Apache-2.0
"""Answers in the exact shape that other systems ask for."""
