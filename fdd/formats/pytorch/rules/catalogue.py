# SPDX-License-Identifier: Apache-2.0
"""The catalogue that the rule modules fill, and the groups of kinds that rules apply to."""

from __future__ import annotations

from fdd.core.rule import Catalogue
from fdd.formats.pytorch.identify import NAMES, ZIP_KINDS
from fdd.formats.pytorch.names import EAGER_KINDS, SCRIPT_KINDS

CATALOGUE = Catalogue("fdd000644/1")
rule = CATALOGUE.rule

ALL = frozenset(NAMES)
"""Every kind of fdd000644."""
ARCHIVES = frozenset(ZIP_KINDS)
"""Kinds that are ZIP archives."""
NATIVE = ARCHIVES - {"mar"}
"""Kinds that torch's own ZIP writer makes (for .pt2 since 2.8)."""
EAGER = EAGER_KINDS
"""What torch.save writes as a ZIP."""
SCRIPT = SCRIPT_KINDS
"""The TorchScript family in ZIP form."""
PICKLED = frozenset({*EAGER, *SCRIPT, "torch-legacy", "torch-tar", "torch-package"})
"""Kinds whose objects are pickles."""
LEGACY = frozenset({"torch-legacy"})
TAR = frozenset({"torch-tar"})
OLDER = LEGACY | TAR
"""What torch.save wrote before the ZIP."""
CODE = frozenset({*ALL, "pickle"})
"""Kinds that are looked at for what loading could run."""
