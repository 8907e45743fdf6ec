# SPDX-License-Identifier: Apache-2.0
"""What the readers of .pt2 archives state, for the rules to judge."""

from __future__ import annotations

from dataclasses import dataclass, field

from fdd.core.span import Span


@dataclass(slots=True)
class ProgramFault:
    """Something in a record that is not as the schema has it. ``code``: not-json, not-object, entry, dtype, layout."""

    code: str
    record: str
    span: Span | None
    detail: str


@dataclass(slots=True)
class Program:
    """A program of the archive: what its graph says it needs. ``wanted``: (sort, name) of parameters, buffers, constants."""

    model: str
    record: str
    span: Span | None
    schema_version: tuple[int, ...] = ()
    torch_version: str | None = None
    wanted: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class ProgramFacts:
    """What the records of a .pt2 say of each other. ``missing`` are (configuration, place, name, record it should be in)."""

    faults: list[ProgramFault] = field(default_factory=list)
    """Of configurations."""
    program_faults: list[ProgramFault] = field(default_factory=list)
    """Of programs."""
    missing: list[tuple[str, Span | None, str, str]] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    names: dict[str, set[str]] = field(default_factory=dict)
    """Model -> names that its configurations describe."""
    unknown_names: set[str] = field(default_factory=set)
    """Models some of whose tensors could not be listed."""
    described: set[str] = field(default_factory=set)
    """Records that a configuration names."""
    pickled: set[str] = field(default_factory=set)
    """Those of them that are torch files."""
    opaque: set[str] = field(default_factory=set)
    """Those of them that are bare pickles."""
    limited: bool = False
    """Whether a record was too large to be read."""

    def names_for(self, model: str) -> set[str] | None:
        """The names of all tensors that belong to a model; None where not all of them are known."""
        return None if model in self.unknown_names else self.names.get(model)
