# SPDX-License-Identifier: Apache-2.0
"""Fixity: record every byte of a file, and say later what changed and which tensor it hurts."""

from __future__ import annotations

from fdd.fixity.create import create
from fdd.fixity.manifest import Manifest
from fdd.fixity.result import Fixity, FixityResult
from fdd.fixity.verify import verify

__all__ = ["Fixity", "FixityResult", "Manifest", "create", "verify"]
