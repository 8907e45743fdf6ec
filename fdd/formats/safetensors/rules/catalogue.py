# SPDX-License-Identifier: Apache-2.0
"""The catalogue that the rule modules fill."""

from __future__ import annotations

from fdd.core.rule import Catalogue
from fdd.formats.safetensors.identify import FORMAT

CATALOGUE = Catalogue("safetensors/1")
rule = CATALOGUE.rule

ALL = frozenset({FORMAT})
"""The one kind there is."""
