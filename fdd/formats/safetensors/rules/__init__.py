# SPDX-License-Identifier: Apache-2.0
"""The rules of safetensors, by subject: importing this package fills the catalogue."""

from __future__ import annotations

from fdd.formats.safetensors.rules import header, tensors, values
from fdd.formats.safetensors.rules.catalogue import CATALOGUE

__all__ = ["CATALOGUE", "header", "tensors", "values"]
