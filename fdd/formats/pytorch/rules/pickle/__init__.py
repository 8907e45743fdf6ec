# SPDX-License-Identifier: Apache-2.0
"""Rules on the pickles that the format asks for: grammar, memo, objects."""
