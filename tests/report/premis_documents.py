# SPDX-License-Identifier: Apache-2.0
"""PREMIS and METS documents for tests, parsed, and what is looked up in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lxml import etree

from fdd.core.report import Report
from fdd.report.premis_units import PREMIS
from fdd.resources import corpus_dir
from tests.report.samples import written

XSI = "http://www.w3.org/2001/XMLSchema-instance"
NS = {"p": PREMIS, "xsi": XSI, "f": "urn:x-fdd:report:1.0", "m": "http://www.loc.gov/METS/", "x": "http://www.w3.org/1999/xlink"}
MODEL = corpus_dir() / "real" / "torch-2.13.0-state_dict.pth"


def document(form: str, reports: Sequence[Report], sets: Iterable[dict[str, Any]] = (), **options: Any) -> etree._Element:
    """What the writer of a form makes of reports, with these options of the command line."""
    text = written(form, reports, sets, single=len(reports) == 1, options=options)
    return etree.fromstring(text.encode())


def texts(root: etree._Element, name: str) -> list[str]:
    """The texts of all elements of PREMIS of that name."""
    return [element.text or "" for element in root.iterfind(f".//p:{name}", NS)]


def objects(root: etree._Element, category: str) -> list[etree._Element]:
    """The objects of a category."""
    return root.findall(f".//p:object[@xsi:type='premis:{category}']", NS)
