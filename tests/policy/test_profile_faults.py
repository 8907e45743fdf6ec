# SPDX-License-Identifier: Apache-2.0
"""Broken profiles: each fault is told with its line, all at once, and the command ends with exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from fdd.cli.exits import Exit
from fdd.cli.main import main
from fdd.core.errors import UsageError
from fdd.policy.faults import MOST_BYTES, DemandError
from fdd.policy.lines import line_of
from fdd.policy.load import load

HEAD = 'name = "broken"\nversion = "1"\ntitle = "Broken on purpose"\n'

BROKEN: dict[str, tuple[str, int, str]] = {
    "wrong-type": ('name = "x"\nversion = 1\ntitle = "t"\n', 2, "version: must be a text, not the number 1"),
    "version-in-words": ('name = "x"\nversion = "one"\ntitle = "t"\n', 2, "numbers with dots between them, not 'one'"),
    "no-title": ('name = "x"\nversion = "1"\n', 1, "title missing"),
    "name-with-spaces": ('name = "My Profile"\nversion = "1"\ntitle = "t"\n', 1, "dashes between them, not 'My Profile'"),
    "unknown-key": (HEAD + "verdict = ['valid']\n", 4, "unknown key 'verdict'; known here: name, version"),
    "unknown-verdict": (HEAD + "verdicts = ['fine']\n", 4, "'fine' is not one of valid, structure-valid"),
    "unknown-digest": (HEAD + "digests = ['crc32']\n", 4, "'crc32' is not one of md5"),
    "list-expected": (HEAD + "safety = 'listed'\n", 4, "safety: must be a list, not the text 'listed'"),
    "unknown-rule": (HEAD + "[[rule]]\nid = 'PT-ZIP-999'\ndo = 'demand'\nreason = 'r'\n", 5, "no rule is called 'PT-ZIP-999'"),
    "unknown-treatment": (HEAD + "[[rule]]\nid = 'PT-ZIP-001'\ndo = 'skip'\nreason = 'r'\n", 6, "do: 'skip' is not one of"),
    "no-reason": (HEAD + "[[rule]]\nid = 'PT-ZIP-001'\ndo = 'ignore'\n", 4, "reason missing"),
    "blank-reason": (HEAD + "[[rule]]\nid = 'PT-ZIP-001'\ndo = 'ignore'\nreason = ' '\n", 7, "must not be empty, not ' '"),
    "weigh-without-level": (HEAD + "[[rule]]\nid = 'PT-ZIP-001'\ndo = 'weigh'\nreason = 'r'\n", 4, "level missing"),
    "level-without-weigh": (
        HEAD + "[[rule]]\nid = 'PT-ZIP-001'\ndo = 'ignore'\nlevel = 'info'\nreason = 'r'\n",
        7,
        "a level is for do = 'weigh' only",
    ),
    "unknown-property": (
        HEAD + "[[constraint]]\nid = 'a'\nproperty = 'tensor_cuont'\noperator = 'at-least'\nvalue = 1\nmessage = 'm'\n",
        6,
        "no property is called 'tensor_cuont'",
    ),
    "unknown-part-of-property": (
        HEAD + "[[constraint]]\nid = 'a'\nproperty = 'torch_releases.mean'\noperator = 'present'\nvalue = true\nmessage = 'm'\n",
        6,
        "no property is called 'torch_releases.mean'",
    ),
    "bad-operator": (
        HEAD + "[[constraint]]\nid = 'a'\nproperty = 'content'\noperator = 'matches'\nvalue = '.*'\nmessage = 'm'\n",
        7,
        "operator: 'matches' is not one of equals",
    ),
    "operator-does-not-fit": (
        HEAD + "[[constraint]]\nid = 'a'\nproperty = 'content'\noperator = 'at-least'\nvalue = 1\nmessage = 'm'\n",
        7,
        "at-least cannot test content",
    ),
    "value-does-not-fit": (
        HEAD + "[[constraint]]\nid = 'a'\nproperty = 'tensor_count'\noperator = 'at-least'\nvalue = 'one'\nmessage = 'm'\n",
        8,
        "at-least of tensor_count takes numbers, not 'one'",
    ),
    "truth-is-no-number": (
        HEAD + "[[constraint]]\nid = 'a'\nproperty = 'tensor_count'\noperator = 'equals'\nvalue = true\nmessage = 'm'\n",
        8,
        "equals of tensor_count takes numbers, not True",
    ),
    "word-that-cannot-be": (
        HEAD + "[[constraint]]\nid = 'a'\nproperty = 'content'\noperator = 'one-of'\nvalue = ['weights']\nmessage = 'm'\n",
        8,
        "takes a list of texts out of state_dict",
    ),
    "constraint-twice": (
        HEAD + 2 * "[[constraint]]\nid = 'a'\nproperty = 'content'\noperator = 'present'\nvalue = true\nmessage = 'm'\n",
        11,
        "the constraint a is there twice",
    ),
    "unknown-content": (HEAD + "[[allow]]\nwhat = 'contents'\nnames = ['weights']\nreason = 'r'\n", 6, "is called 'weights'"),
    "unknown-subject": (HEAD + "[[allow]]\nwhat = 'colours'\nnames = ['red']\nreason = 'r'\n", 5, "'colours' is not one of"),
    "limit-below-zero": (HEAD + "[[limit]]\nwhat = 'warnings'\nmost = -1\nreason = 'r'\n", 6, "most: -1 is less than"),
    "limit-not-whole": (HEAD + "[[limit]]\nwhat = 'warnings'\nmost = 1.5\nreason = 'r'\n", 6, "most: must be a whole number"),
    "unknown-parent": (HEAD + "extends = ['nowhere']\n", 4, "no profile 'nowhere'; shipped with fdd: archive-strict"),
    "parent-twice": (HEAD + "extends = ['ingest', 'ingest']\n", 4, "extends: ['ingest', 'ingest'] has non-unique elements"),
    "extends-itself": (HEAD + "extends = ['broken']\n", 4, "extends itself: broken -> broken"),
    "not-toml": (HEAD + "extends = [\n", 5, "not TOML"),
    "key-twice": (HEAD + "name = 'y'\n", 4, "not TOML: Cannot overwrite a value"),
}  # fmt: skip


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", BROKEN)
def test_fault_is_told_with_its_line(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, line, message = BROKEN[name]
    path = write(tmp_path, "broken", text)
    with pytest.raises(DemandError) as caught:
        load(str(path))
    assert [(fault.path, fault.line) for fault in caught.value.faults] == [(str(path), line)], caught.value
    assert message in caught.value.faults[0].message
    assert main(["profiles", "check", str(path)]) == Exit.USAGE
    assert f"broken.toml:{line}: " in capsys.readouterr().err


def test_all_faults_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write(
        tmp_path,
        "one",
        HEAD + "verdicts = ['fine']\nextends = ['two', 'gone']\n[[rule]]\nid = 'XX'\ndo = 'demand'\nreason = 'r'\n",
    )
    two = write(tmp_path, "two", HEAD + "colour = 'red'\nsize = 3\n")
    three = write(tmp_path, "three", "name = ]\n")
    assert main(["profiles", "check", str(one), str(three)]) == Exit.USAGE
    said = capsys.readouterr().err
    places = [line.removeprefix("fdd profiles: ").rsplit(": ")[0] for line in said.splitlines()]
    assert {place.split(": ")[0] for place in places} == {
        f"{one}:4", f"{one}:5", f"{one}:7", f"{two}:4", f"{two}:5", f"{three}:1",
    }  # fmt: skip


def test_circle_over_several_files(tmp_path: Path) -> None:
    for name, parent in (("a", "b"), ("b", "c"), ("c", "a")):
        path = write(tmp_path, name, HEAD + f"extends = ['{parent}']\n")
    with pytest.raises(DemandError, match=r"b.toml:4: extends itself: c -> a -> b -> c") as caught:
        load(str(path))
    assert len(caught.value.faults) == 1


def test_many_ways_to_the_same_ancestor_are_read_once(tmp_path: Path) -> None:
    write(tmp_path, "p0", HEAD + "[[allow]]\nwhat = 'kinds'\nnames = ['torch-zip']\nreason = 'r'\n")
    for number in range(1, 15):
        write(tmp_path, f"p{number}", HEAD + f"extends = ['p{number - 1}', './p{number - 1}.toml']\n")
    assert [allowed.patterns for allowed in load(str(tmp_path / "p14.toml")).allowed] == [("torch-zip",)]


def test_too_long_a_line_of_ancestors(tmp_path: Path) -> None:
    write(tmp_path, "p0", HEAD)
    for number in range(1, 30):
        write(tmp_path, f"p{number}", HEAD + f"extends = ['p{number - 1}']\n")
    with pytest.raises(DemandError, match="more than 16 profiles extend each other"):
        load(str(tmp_path / "p29.toml"))


def test_what_is_no_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder.toml").mkdir()
    for name in ("nowhere", str(tmp_path / "nowhere.toml"), str(tmp_path / "folder.toml"), "../../etc/passwd"):
        with pytest.raises(UsageError, match="no profile"):
            load(name)
        assert main(["validate", "--profile", name, "x.pt"]) == Exit.USAGE
        assert "no profile" in capsys.readouterr().err
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(DemandError, match="larger than"):
        load(str(large))
    (tmp_path / "latin.toml").write_bytes(b'name = "x"\ntitle = "\xe4"\n')
    with pytest.raises(DemandError, match=r"latin.toml:2: not UTF-8"):
        load(str(tmp_path / "latin.toml"))


def test_profiles_are_loaded_before_any_file_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "broken", BROKEN["unknown-rule"][0])
    assert main(["validate", "--profile", str(path), str(tmp_path / "there-is-no-such-file.pt")]) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == "" and "PT-ZIP-999" in said.err


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\n[[rule]]\nid = 'x'\n[[rule]]\n\nid = 'y'\n", ("rule", 1, "id"), 6),
        ("a = 1\n[[rule]]\nid = 'x'\n", ("rule", 0, "missing"), 2),
        ('a = """\n[[rule]]\nb = 1\n"""\n[[rule]]\nb = 2\n', ("rule", 0, "b"), 6),
        ("a = [\n  'b = 1',\n  # c = ']'\n]\nc = 2\n", ("c",), 5),
        ("a = '''\nb = '''\nb = 1 # \"\"\"\nc = 2\n", ("c",), 4),
        ('"a" = 1\n\'b\' = 2\n', ("b",), 2),
        ("a = { b = 1 }\nc = 1\n", ("a", "b"), 1),
        ("", ("a",), 1),
    ],
)  # fmt: skip
def test_lines(text: str, path: tuple[str | int, ...], line: int) -> None:
    assert line_of(text, path) == line
