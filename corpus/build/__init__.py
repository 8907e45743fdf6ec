# SPDX-License-Identifier: Apache-2.0
"""Recipes that make the files of the corpus, and the kit they are written with. Needs no torch."""
