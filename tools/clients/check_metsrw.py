# SPDX-License-Identifier: Apache-2.0
"""Reads our METS and PREMIS with metsrw, the library of Archivematica, and builds a METS of our PREMIS with it.

``python tools/clients/check_metsrw.py FILE...`` in an environment that has metsrw (0.7.0 was tried);
``--fdd-python`` names the Python of fdd where that is another one. Prints what was read and exits 1 at the first thing that
is not as it should be.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import metsrw
from lxml import etree
from metsrw.plugins import premisrw

ROOT = Path(__file__).resolve().parents[2]
PREMIS = "http://www.loc.gov/premis/v3"


def expect(condition: bool, what: str) -> None:
    """End with the sentence that is not true."""
    if not condition:
        raise SystemExit(f"not as it should be: {what}")


def written(python: str, form: str, files: list[Path], target: Path, *options: str) -> Path:
    """What fdd writes on the files."""
    command = [python, "-m", "fdd", "validate", "--quiet", "--format", form, "--output", str(target), *options, *map(str, files)]
    subprocess.run(command, check=False, cwd=ROOT)  # exit code 1: a file is not valid, which is as good here
    expect(target.is_file(), f"fdd writes {target.name}")
    return target


def read_premis(path: Path) -> tuple[list[Any], list[Any], list[Any]]:
    """Objects, events and agents of a document, as metsrw knows them."""
    tree = etree.parse(str(path))
    found: list[list[Any]] = [[], [], []]
    kinds = (("object", premisrw.PREMISObject), ("event", premisrw.PREMISEvent), ("agent", premisrw.PREMISAgent))
    for place, (name, kind) in enumerate(kinds):
        for element in tree.iterfind(f"{{{PREMIS}}}{name}"):
            found[place].append(kind(data=premisrw.premis_to_data(element)))
    return found[0], found[1], found[2]


def check_premis(path: Path, files: int) -> None:
    """Every unit that readers ask for has its value."""
    objects, events, agents = read_premis(path)
    whole = [thing for thing in objects if thing.xsi_type == "premis:file"]
    expect(len(whole) == files, f"{files} file objects, found {len(whole)}")
    for thing in objects:
        expect(thing.premis_version == "3.0", "objects are of PREMIS 3.0")
        expect(isinstance(thing.identifier_value, str), "an object has an identifier")
        expect(isinstance(thing.format_name, str), "an object has a format")
    for thing in whole:
        expect(thing.message_digest_algorithm == "SHA-256", "the first digest of a file is its SHA-256")
        expect(thing.size.isdigit(), "a file has a size")
    for event in events:
        detail = event.parsed_event_detail
        expect(
            detail["program"] == "fdd" and bool(detail["version"]), f"the detail of an event can be split: {event.event_detail}"
        )
        expect(isinstance(event.linking_agent_identifier_value, str), "an event names its agent")
        print(f"  event {event.event_type}: {event.event_outcome}  {detail}")
    expect([agent.name for agent in agents] == ["fdd"], "one agent, fdd")
    print(f"read {path.name}: {len(objects)} objects, {len(events)} events, {len(agents)} agents")


def check_mets(path: Path, files: int) -> None:
    """metsrw finds the files of our METS and the PREMIS of each."""
    time.sleep(1.1)  # metsrw takes a time of this second without fractions for one to come
    document = metsrw.METSDocument.fromfile(str(path))
    entries = [entry for entry in document.all_files() if entry.type == "Item"]
    expect(len(entries) == files, f"{files} files in the METS, found {len(entries)}")
    for entry in entries:
        objects, events = entry.get_premis_objects(), entry.get_premis_events()
        expect(bool(objects) and objects[0].premis_version == "3.0", "a file has its PREMIS object")
        print(f"  file {entry.path}: {len(objects)} objects, {len(events)} events, checksum {entry.checksumtype}")
    print(f"read {path.name}: {len(entries)} files")


def check_building(path: Path, target: Path) -> None:
    """A METS that metsrw builds of our PREMIS, and reads again."""
    tree = etree.parse(str(path))
    entry = metsrw.FSEntry(path="objects/model.pt", type="Item", file_uuid="0a1b2c3d-0000-4000-8000-000000000001")
    for element in tree.iterfind(f"{{{PREMIS}}}object"):
        if element.get("{http://www.w3.org/2001/XMLSchema-instance}type") == "premis:file":
            entry.add_premis_object(element)
    for element in tree.iterfind(f"{{{PREMIS}}}event"):
        entry.add_premis_event(element)
    for element in tree.iterfind(f"{{{PREMIS}}}agent"):
        entry.add_premis_agent(element)
    document = metsrw.METSDocument()
    document.append_file(metsrw.FSEntry(path="objects", type="Directory", children=[entry]))
    document.write(str(target))
    again = metsrw.METSDocument.fromfile(str(target))
    back = again.get_file(type="Item")
    expect(len(back.get_premis_objects()) == 1, "the object is there again")
    first, second = entry.get_premis_events(), back.get_premis_events()
    expect([event.identifier_value for event in first] == [event.identifier_value for event in second], "and every event")
    print(f"built {target.name} with metsrw and read it again: 1 object, {len(second)} events")


def main() -> int:
    """Run as a command."""
    parser = argparse.ArgumentParser(description="Read our METS and PREMIS with metsrw.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--fdd-python", default=sys.executable, help="the Python that has fdd")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [path.resolve() for path in arguments.files]
        check_premis(written(arguments.fdd_python, "premis", files, folder / "premis.xml"), len(files))
        check_mets(written(arguments.fdd_python, "mets", files, folder / "mets.xml"), len(files))
        one = written(arguments.fdd_python, "premis", files[:1], folder / "one.xml")
        check_building(one, folder / "built.xml")
    print("metsrw: all as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
