# SPDX-License-Identifier: Apache-2.0
"""Generated files: what is stale, what is left over, and that writing settles both."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from fdd.limits import Limits
from tools import generate


def _pages() -> dict[str, str]:
    return {"docs/rules/a.md": "A\n", "docs/rules/b.md": "B\n"}


RULES = generate.Generator(("docs/rules/*.md",), _pages)


def test_no_generators_no_files(tmp_path: Path) -> None:
    assert generate.wanted((), tmp_path) == {}
    assert generate.stale({}) == []


def test_missing_changed_and_left_over_files_are_stale_until_written(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "rules"
    folder.mkdir(parents=True)
    (folder / "b.md").write_text("old\n", encoding="utf-8")
    (folder / "gone.md").write_text("of a rule that is no more\n", encoding="utf-8")
    files = generate.wanted([RULES], tmp_path)
    assert generate.stale(files) == [folder / name for name in ("a.md", "b.md", "gone.md")]
    for path in generate.stale(files):
        generate.write(path, files[path])
    assert generate.stale(generate.wanted([RULES], tmp_path)) == []
    assert sorted(path.name for path in folder.iterdir()) == ["a.md", "b.md"]


def test_check_names_stale_files_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "GENERATORS", (RULES,))
    assert generate.main(["--check"]) == 1
    assert "stale: docs/rules/a.md" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_page_of_limits_explains_each_limit() -> None:
    (page,) = generate.limits_page().values()
    assert [field.name for field in fields(Limits) if f"| `{field.name}` | {field.default:,} | " not in page] == []
