"""The patches of small mistakes, which must apply to the code of today, and what the tool says of who notices them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools import mutate_run

GIT = pytest.mark.skipif(shutil.which("git") is None, reason="no git, which applies the patches")

RIGHT = "LIMIT = 3\n\n\ndef is_due(now):\n    return now >= LIMIT\n"
SOAK = "from layout.due import is_due\nif is_due(2):\n    print('seed 7, a bad day: it went too early', flush=True)\n"
TEST = "from layout.due import is_due\n\n\ndef test_it_is_due_at_its_time():\n    assert is_due(3)\n"


def patch(words: str, old: str, new: str) -> str:
    return f"{words}\n--- a/layout/due.py\n+++ b/layout/due.py\n@@ -5,1 +5,1 @@\n-{old}\n+{new}\n"


def all_patches() -> list[mutate_run.Mutation]:
    found = mutate_run.read_mutations([])
    assert len(found) >= 100
    return found


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of one module with its test and a soak, and three mistakes, one of which nobody can notice."""
    root, line = tmp_path / "tree", "    return now >= LIMIT"
    mistakes = {
        "too-late": patch("It is due too late.", line, "    return now > LIMIT"),
        "too-early": patch("It is due too early.", line, "    return now >= LIMIT - 1"),
        "unseen": patch(
            "It is written otherwise.\nChanges nothing: both are the same.", line, "    return not now < LIMIT"
        ),
    }
    files = {
        "layout/__init__.py": "",
        "layout/due.py": RIGHT,
        "tests/layout/test_due.py": TEST,
        "soak.py": SOAK,
        **{f"tools/mutations/layout/{name}.patch": text for name, text in mistakes.items()},
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    monkeypatch.setattr(mutate_run, "ROOT", root)
    monkeypatch.setattr(mutate_run, "PATCHES", root / "tools" / "mutations")
    monkeypatch.setattr(mutate_run, "SOAK", ("soak.py",))
    monkeypatch.setattr(mutate_run, "FURTHER_TESTS", {})
    return root


@GIT
def test_every_patch_applies_to_the_code_of_today() -> None:
    assert mutate_run.apply_patches((each.patch for each in all_patches()), mutate_run.ROOT, check=True) == ""


def test_every_patch_says_what_is_wrong_and_lies_with_its_package() -> None:
    for each in all_patches():
        assert each.words.endswith("."), each.name
        package = each.name.rpartition("/")[0]
        assert any(file.startswith(package) for file in each.files), each.name


def test_every_mistake_has_tests_that_may_notice_it() -> None:
    for each in all_patches():
        assert each.tests, each.name
        paths = [path for chosen in each.tests for path in chosen]
        assert [path for path in paths if not (mutate_run.ROOT / path).exists()] == [], each.name


@GIT
def test_who_notices_and_who_does_not_is_said_of_each_mistake(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mutate_run.main(["--jobs", "1", "--soak-at-least", "50", "--tests-at-least", "50"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "layout/too-early: soak: seed 7, tests: SURVIVED",
        "layout/too-late: soak: SURVIVED, tests: tests/layout/test_due.py::test_it_is_due_at_its_time",
        "layout/unseen: soak: SURVIVED, tests: SURVIVED (changes nothing: both are the same.)",
        "3 mutations, of which 1 change nothing",
        "soak: 1 of 2 noticed, 50.0 % (50 % are wanted)",
        "tests: 1 of 2 noticed, 50.0 % (50 % are wanted)",
    ]
    assert (tree / "layout" / "due.py").read_text() == RIGHT, "only copies are changed"


@GIT
def test_a_survivor_too_many_is_a_failure(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mutate_run.main(["layout/too-late", "--only", "soak"]) == 1
    assert "0 of 1 noticed" in capsys.readouterr().out


@GIT
def test_what_hangs_or_breaks_down_is_noticed(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "soak.py").write_text(
        "import time, layout.due\nif layout.due.is_due(2):\n    time.sleep(600)\nraise KeyError(1)\n"
    )
    assert mutate_run.main(["layout/too-*", "--only", "soak", "--soak-minutes", "0.02"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "layout/too-early: soak: no end after 0.02 minutes",
        "layout/too-late: soak: exit code 1: KeyError: 1",
    ]


@GIT
def test_a_patch_for_other_code_is_refused_before_anything_runs(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "layout" / "due.py").write_text("LIMIT = 4\n")
    assert mutate_run.main(["layout/too-late"]) == 2
    said = capsys.readouterr()
    assert (said.out, "layout/due.py" in said.err, "for the code of today" in said.err) == ("", True, True)


@pytest.mark.parametrize("arguments", [["--jobs", "0"], ["--seeds", "-1"], ["--only", "luck"]])
def test_what_makes_no_sense_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        mutate_run.main(arguments)
    assert stopped.value.code == 2


def test_a_name_that_no_patch_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutate_run.main(["layout/no-such-mistake"]) == 2
    assert "layout/no-such-mistake" in capsys.readouterr().err
