# SPDX-License-Identifier: Apache-2.0
"""What the numbers in a file are: statistics of them, and the comparison of two files."""
