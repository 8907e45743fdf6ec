# SPDX-License-Identifier: Apache-2.0
"""Profiles and policies together: what was named is loaded once, and reports are judged by all of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from fdd.core.profile import Profile, judge
from fdd.core.report import Report
from fdd.limits import Limits
from fdd.policy.faults import DemandError, Fault
from fdd.policy.load import load

if TYPE_CHECKING:
    from fdd.policy.schematron import Policy

Demand: TypeAlias = "Profile | Policy"
Named: TypeAlias = "str | os.PathLike[str] | Demand"
"""A name or file, or what was loaded from one."""
POLICY_SUFFIX = ".sch"


def load_demand(name: str, limits: Limits | None = None) -> Demand:
    """Load a profile by name or file, or a policy by its file, which ends in .sch.

    Raises :class:`fdd.core.errors.UsageError` where there is none, :class:`DemandError` with all its faults.
    """
    if not name.endswith(POLICY_SUFFIX):
        return load(name)
    from fdd.policy.running import prepare
    from fdd.policy.schematron import read_policy

    policy = read_policy(name)
    prepare(policy, name, limits or Limits())
    return policy


def load_demands(names: Iterable[Named], limits: Limits | None = None) -> tuple[Demand, ...]:
    """Load all that is named; what is loaded already is passed on. Raises one error with the faults of all of them."""
    demands: dict[Demand, None] = {}
    faults: list[Fault] = []
    for name in names:
        try:
            demand = load_demand(os.fspath(name), limits) if isinstance(name, (str, os.PathLike)) else name
            demands[demand] = None
        except DemandError as error:
            faults += error.faults
    if faults:
        raise DemandError(faults)
    return tuple(demands)


def judged(report: Report, demands: Sequence[Demand], as_xml: Callable[[Report], bytes], limits: Limits | None = None) -> Report:
    """The report with an entry for each profile and policy, in their order, and no others. One without a judgement of
    its own (a file that could not be read, `extract`, `identify`) gets none. ``as_xml`` gives policies what they look at."""
    bare = replace(report, profiles=())
    if report.status is None or not demands:
        return bare
    xml = as_xml(bare) if any(not isinstance(demand, Profile) for demand in demands) else b""
    return replace(bare, profiles=tuple(_entry(bare, xml, demand, limits or Limits()) for demand in demands))


def _entry(report: Report, xml: bytes, demand: Demand, limits: Limits) -> dict[str, Any]:
    if isinstance(demand, Profile):
        return judge(report, demand)
    from fdd.policy.running import judge as judge_by_policy

    return judge_by_policy(report, xml, demand, limits)
