# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas of fdd, ready to validate."""

from __future__ import annotations

import json
from functools import cache

import jsonschema

from fdd.resources import schema_path


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Of ``schemas/NAME.schema.json``; the schema itself is checked first."""
    schema = json.loads(schema_path(f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)
