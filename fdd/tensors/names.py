# SPDX-License-Identifier: Apache-2.0
"""Names of tensors (contract, section 4): keys joined by `/`, each with the escapes of a JSON Pointer."""

from __future__ import annotations


def escape_key(key: str) -> str:
    """A key as one part of a tensor name (RFC 6901, section 3)."""
    return key.replace("~", "~0").replace("/", "~1")
