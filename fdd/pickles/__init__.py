# SPDX-License-Identifier: Apache-2.0
"""Pickles, read without pickle: an opcode table, a symbolic machine that runs nothing, walks over what it leaves."""

from fdd.pickles.machine import goes_on, looks_like_pickle, probe, run
from fdd.pickles.texts import goes_beyond, texts_of_first
from fdd.pickles.walk import children, expanded_size, largest_expansion, present_size, walk

__all__ = [
    "children", "expanded_size", "goes_beyond", "goes_on", "largest_expansion", "looks_like_pickle", "present_size", "probe",
    "run", "texts_of_first", "walk",
]  # fmt: skip
