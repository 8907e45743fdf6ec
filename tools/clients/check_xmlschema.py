# SPDX-License-Identifier: Apache-2.0
"""A second opinion on a PREMIS document: the pure-Python validator xmlschema, with the official schema.

``python tools/clients/check_xmlschema.py premis.xsd FILE...`` in an environment that has xmlschema (4.3.2 was tried);
``--fdd-python`` names the Python of fdd where that is another one. Exits 1 where the document is not valid.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import xmlschema

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run as a command."""
    parser = argparse.ArgumentParser(description="Validate our PREMIS by xmlschema.")
    parser.add_argument("schema", type=Path, help="premis.xsd")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--fdd-python", default=sys.executable, help="the Python that has fdd")
    arguments = parser.parse_args()
    schema = xmlschema.XMLSchema(str(arguments.schema))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "premis.xml"
        files = [str(path.resolve()) for path in arguments.files]
        options = ["--quiet", "--format", "premis", "--premis-bitstreams", "all", "--output", str(target)]
        subprocess.run([arguments.fdd_python, "-m", "fdd", "validate", *options, *files], check=False, cwd=ROOT)
        errors = list(schema.iter_errors(str(target)))
    for error in errors[:10]:
        print(error.reason, error.path)
    print(f"xmlschema: {len(errors)} errors in the document on {len(files)} files")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
