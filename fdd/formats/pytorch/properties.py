# SPDX-License-Identifier: Apache-2.0
"""Technical metadata of a PyTorch file as plain data (contract, section 4, `properties`)."""

from __future__ import annotations

from typing import Any

from fdd.formats.pytorch.document import TorchDocument


def properties_of(document: TorchDocument) -> dict[str, Any]:
    """The properties that the file has; those that do not apply to its kind are left out."""
    return {"content": document.content}
