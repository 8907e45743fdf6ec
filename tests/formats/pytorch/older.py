# SPDX-License-Identifier: Apache-2.0
"""What the tests of the two older forms share."""

from __future__ import annotations

from fdd.core.source import BytesSource
from fdd.formats import by_name
from fdd.formats.probe import make_probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.limits import Limits


def opened(data: bytes) -> TorchDocument:
    """The facts of a file."""
    probe = make_probe(BytesSource(data), name=None, path=None, limits=Limits(), depth="full")
    plugin = by_name("fdd000644")
    identification = plugin.identify(probe)
    assert identification is not None
    document = plugin.open(probe, identification)
    assert isinstance(document, TorchDocument)
    return document


def spread(size: int, count: int = 500) -> list[int]:
    """That many lengths from 0 to ``size``, as even as they can be."""
    return sorted({round(index * size / count) for index in range(count + 1)})
