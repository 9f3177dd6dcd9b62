"""Plans edited into nonsense, field by field, through ``logstore apply``: a sentence, an exit code, nothing lost."""

from __future__ import annotations

import copy
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from layout.ids import TopicId
from layout.ours import is_run_journal
from reconciler.plan import REPAIRS, ActionKind
from reconciler.plan import file as plan_file
from tests.reconciler.cli.conftest import ORDERS, long_written
from tests.reconciler.plan.plan_broker import sealed_again

Run = Callable[..., Result]
REMOVED = object()
NONSENSE = (
    REMOVED, None, True, -1, 0, 2**31, 2**63, 2**70, 1.5, 1e400, "", "x" * 100_000, "..", "../..", "../../../etc",
    "/etc", "orders-0", "a\0b", "\ud800", "\x1b[2J", [], {}, [[]], {"a": 1}, ["orders-0"],
)  # fmt: skip


@pytest.fixture
def plan(cluster, run: Run, tmp_path: Path) -> dict[str, Any]:
    """A plan with an action of every kind that these disks give cause for."""
    (cluster.log_dir(1) / "orders-7").mkdir()
    (cluster.log_dir(1) / "orders-7" / "partition.metadata").write_text(f"version: 0\ntopic_id: {ORDERS}")
    (cluster.log_dir(1) / "orders-7" / "00000000000000000000.log").write_text("seven")
    (cluster.log_dir(1) / "orders-1" / "partition.metadata").unlink()
    stray = cluster.log_dir(2) / f"clicks-0.{'ab' * 16}-stray"
    stray.mkdir()
    (stray / "partition.metadata").write_text(f"version: 0\ntopic_id: {TopicId(bytes([9]) * 16)}")
    for log_dir in cluster.log_dirs:
        long_written(Path(log_dir))
    asked = ("--max-share", "70%", "--strays", "-o", tmp_path / "whole.json")
    result = run("plan", *cluster.log_dirs, "--metadata", cluster.metadata, *asked)
    assert result.exit_code == 1, result.output
    document = json.loads((tmp_path / "whole.json").read_bytes())
    assert {each["kind"] for each in document["actions"]} == {"stage", "stage_stray", "write_topic_id"}
    (cluster.folder / "etc").mkdir()
    (cluster.folder / "etc" / "passwd").write_text("a neighbour's file")
    return document  # type: ignore[no-any-return]


def edits(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plan with one value in it replaced by one piece of nonsense, at every place."""
    places: list[tuple[Any, ...]] = [(key,) for key in document]
    places += [("log_dirs", 0, key) for key in document["log_dirs"][0]]
    places += [("actions", number, key) for number, each in enumerate(document["actions"]) for key in each]
    places += [("log_dirs", 0), ("actions", 0), ("metadata", 0)]
    for place in places:
        for value in NONSENSE:
            edited = copy.deepcopy(document)
            parent: Any = edited
            for step in place[:-1]:
                parent = parent[step]
            if value is REMOVED:
                del parent[place[-1]]
            else:
                parent[place[-1]] = value
            yield f"{place} = {value!r:.40}", edited


def files(folder: Path) -> Counter[bytes]:
    """What all the files of the disks and of their neighbours hold, wherever they lie by now."""
    found = Counter(path.read_bytes() for path in folder.rglob("*.log"))
    return found + Counter(path.read_bytes() for path in (folder / "etc").rglob("*"))


def replicas(folder: Path) -> list[str]:
    return sorted(str(path) for path in (folder / "disks").rglob("*"))


def take_back(cluster, run: Run, plan: dict[str, Any]) -> None:
    """Undo whatever a plan did, so that the next one finds what it expects, and no journals of all those before."""
    run("restore", *cluster.log_dirs, "--all")
    for each in plan["actions"]:
        if each["kind"] != "stage":
            Path(each["undo"].removeprefix("rm ")).unlink(missing_ok=True)
    for log_dir in map(Path, cluster.log_dirs):
        for journal in filter(is_run_journal, os.listdir(log_dir)):
            (log_dir / journal).unlink()


def check(result: Result, what: str) -> None:
    assert isinstance(result.exception, SystemExit | None), (what, result.exception)
    assert "bug in logstore" not in result.stderr, (what, result.stderr)
    assert "Traceback" not in result.output, what


def written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_no_edit_that_breaks_a_fingerprint_changes_anything(
    cluster, run: Run, plan: dict[str, Any], tmp_path: Path
) -> None:
    before, data, tried = replicas(cluster.folder), files(cluster.folder), 0
    of_readers = plan_file._NOT_IN_HEAD - {"fingerprint", "actions"}
    for what, edited in edits(plan):
        lines_out = edited.get("actions") == [] or what == f"('actions', 0) = {REMOVED!r:.40}"
        if what.split("'")[1] in of_readers or edited == plan or lines_out:
            continue  # whoever reads a plan may take lines of actions out
        result = run("apply", written(tmp_path / "edited.json", edited))
        check(result, what)
        tried += 1
        assert result.exit_code == 3, (what, result.output)
        assert replicas(cluster.folder) == before, what
    assert tried > 500
    assert files(cluster.folder) == data


def test_no_edit_loses_anything_even_where_the_fingerprints_were_made_to_fit(
    cluster, run: Run, plan: dict[str, Any], tmp_path: Path
) -> None:
    data, carried_out = files(cluster.folder), 0
    for what, edited in edits(plan):
        try:
            forged = sealed_again(edited)
        except UnicodeEncodeError:
            continue
        result = run(
            "apply", written(tmp_path / "edited.json", forged), "--any-host", "--any-clock", "--max-age", "5000w"
        )
        check(result, what)
        assert result.exit_code in (0, 2, 3, 4), what
        assert files(cluster.folder) == data, what
        assert (cluster.folder / "etc" / "passwd").is_file(), what
        if result.exit_code != 3:
            carried_out += " done" in result.stderr
            take_back(cluster, run, plan)
    assert carried_out > 50


@pytest.mark.parametrize(
    "name", ["../../etc", "../etc", "..", "../broker-1/orders-0", "orders-0/../orders-1", "/etc", ""]
)
@pytest.mark.parametrize("kind", list(ActionKind))
def test_a_forged_path_that_climbs_moves_nothing(
    cluster, run: Run, plan: dict[str, Any], tmp_path: Path, name: str, kind: ActionKind
) -> None:
    action = {**plan["actions"][0], "kind": kind, "name": name, "expects": "missing", "writes": "missing"}
    if kind in REPAIRS:
        action |= {"wanted_topic_id": str(ORDERS), "keeps": {"log_dir": action["log_dir"], "name": name, "inode": 1}}
    else:
        action.pop("inode", None)
    before = replicas(cluster.folder)
    forged = sealed_again({**plan, "actions": [action]})
    result = run("apply", written(tmp_path / "edited.json", forged))
    check(result, name)
    assert (result.exit_code in (3, 4), "passwd" in str(list((cluster.folder / "etc").iterdir()))) == (True, True)
    after = [each for each in replicas(cluster.folder) if ".logstore_run." not in each and not each.endswith(".lock")]
    unlocked = [each for each in before if not each.endswith(".lock")]
    assert [each for each in after if "cleanshutdown" not in each] == unlocked, result.output
