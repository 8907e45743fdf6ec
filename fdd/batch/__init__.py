# SPDX-License-Identifier: Apache-2.0
"""Work over many files: what they are together."""
