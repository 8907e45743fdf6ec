# SPDX-License-Identifier: Apache-2.0
"""What else carries the names of PyTorch files: recognised by bytes, never judged, never unpacked to disk."""

from fdd.formats.foreign.facts import ForeignFacts, InnerMember
from fdd.formats.foreign.identify import identify_foreign, mangling_of
from fdd.formats.foreign.opaque import Mangling

__all__ = ["ForeignFacts", "InnerMember", "Mangling", "identify_foreign", "mangling_of"]
