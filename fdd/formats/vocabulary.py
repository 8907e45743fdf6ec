# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of technical metadata: name, type, unit and meaning of every property, once.

Formats state properties by these names; JSON Schema parts, XML Schema parts, CSV columns and the reference page are
generated from here (``python tools/generate.py``).
"""

from __future__ import annotations

from fdd.core.shapes import Anything, Counts, Field, Flag, Integer, ListOf, Struct, Text

CONTENTS = (
    "state_dict", "checkpoint", "optimizer", "tensor", "module", "collection", "object", "script", "program", "package", "none",
)  # fmt: skip

_GLOBAL = Struct(
    {
        "name": Field(Text(), "module and name, as the pickle writes them", required=True),
        "count": Field(Integer(1), "how often an opcode names it", required=True),
        "offset": Field(Integer(), "place of the first mention", "bytes", required=True),
        "listed": Field(Flag(), "whether it is on the allow-list that safety_basis names", required=True),
        "dangerous": Field(Flag(), "whether it can run code or reach files, processes or the network"),
    }
)
_DEPENDENCY = Struct(
    {
        "package": Field(Text(), "top-level package that must be importable", required=True),
        "origin": Field(Text(("torch", "python", "other")), "where it comes from", required=True),
        "names": Field(ListOf(Text(), "name"), "classes and functions needed of it", required=True),
    }
)
_SOURCE = Struct(
    {
        "name": Field(Text(), "class or record that the text belongs to", required=True),
        "file": Field(Text(), "path it had on the author's machine", required=True),
        "offset": Field(Integer(), "place of the reference to it", "bytes", required=True),
        "length": Field(Integer(), "length of the text", "bytes", required=True),
        "sha256": Field(Text(), "SHA-256 of the text", required=True),
    }
)
_RELEASES = Struct(
    {
        "min": Field(Text(), "oldest release of torch that can have written the file", required=True, nullable=True),
        "max": Field(Text(), "newest release, null where there is no bound", required=True, nullable=True),
        "basis": Field(ListOf(Text(), "clue"), "what the range rests on", required=True),
    }
)

PROPERTIES = Struct(
    {
        "content": Field(Text(CONTENTS), "what sort of object the file holds", required=True),
        "byte_order": Field(Text(("little", "big", "unknown")), "byte order of the stored values"),
        "archive_version": Field(Integer(None), "version number of the archive form (not of torch)", nullable=True),
        "top_folder": Field(Text(), "folder of the archive that holds all records"),
        "record_count": Field(Integer(), "records in the file"),
        "pickle_protocol": Field(Integer(), "protocol of the object's pickle"),
        "torch_releases": Field(_RELEASES, "releases of torch that can have written the file: an inference"),
        "tensor_count": Field(Integer(), "tensors, counted by name"),
        "parameter_count": Field(Integer(), "tensors that are parameters of a module"),
        "element_count": Field(Integer(), "stored values, each counted once", "elements"),
        "tensor_bytes": Field(Integer(), "stored values, each counted once", "bytes"),
        "tensor_dtypes": Field(Counts(), "number of tensors by element type"),
        "storage_count": Field(Integer(), "storages"),
        "storage_locations": Field(Counts(), "number of storages by the device they were saved from"),
        "bytes_by_dtype": Field(Counts(), "stored values by element type", "bytes"),
        "unused_bytes": Field(Integer(), "stored bytes that no tensor shows", "bytes"),
        "shared_storages": Field(Integer(), "storages that several tensors look at"),
        "tensor_layouts": Field(Counts(), "number of tensors by layout"),
        "tied_tensors": Field(ListOf(ListOf(Text(), "name"), "group"), "names that show the same values"),
        "quantization": Field(Counts(), "number of quantised tensors by scheme"),
        "tensors_without_data": Field(Integer(), "tensors on the meta device, which have a shape and no values"),
        "globals": Field(ListOf(_GLOBAL, "global"), "classes and functions that pickles name"),
        "dependencies": Field(ListOf(_DEPENDENCY, "dependency"), "what loading needs beside the file"),
        "metadata": Field(Anything(), "plain values of the saved object that matter to a curator"),
        "embedded_sources": Field(ListOf(_SOURCE, "source"), "source texts that the file carries"),
    }
)
