"""Log dirs that real brokers wrote: hardly anything is to be repaired, and what is lost comes back as it was."""

from __future__ import annotations

import shlex
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from layout import partition_metadata
from layout.directory_name import split_live
from logstore.log_dir import discover
from logstore.scan import scan_all
from reconciler.cli import logstore
from reconciler.plan import PlanOrigin, RepairChoice, RepairView, encode_plan, parse_plan, propose_repair

pytestmark = pytest.mark.corpus

WITH_KRAFT = "DeusVaulte__ChatProject"


def test_of_all_the_log_dirs_one_leftover_is_all_that_is_surely_broken(corpus: Path) -> None:
    actions: Counter[str] = Counter()
    for folder in sorted(corpus.iterdir()):
        view = RepairView.of(list(scan_all(discover(str(folder)), sizes=False)), {}, frozenset(), 0)
        plan, _ = propose_repair(view, RepairChoice(), PlanOrigin(0, "a-host", "a user"))
        assert parse_plan(encode_plan(plan)) == replace(plan, left_alone=())
        actions.update(each.kind.value for each in plan.actions)
    assert actions == {"remove_leftover": 1}


def test_after_the_zookeeper_cure_every_file_comes_back_byte_for_byte(corpus: Path, tmp_path: Path) -> None:
    """What runbooks recommend, ``find -name partition.metadata -delete``, and the way back from it."""
    shutil.copytree(corpus / WITH_KRAFT, tmp_path / "broker")
    files = {path: path.read_bytes() for path in (tmp_path / "broker").rglob("*") if path.is_file()}
    lost = [path for path in files if path.name == partition_metadata.FILE_NAME and split_live(path.parent.name)]
    for path in lost:
        path.unlink()
    run = CliRunner()
    asked = ["repair", str(tmp_path / "broker"), "-o", str(tmp_path / "plan.json")]
    refused = run.invoke(logstore, asked)
    # Nothing on the disk says an ID any more, and the metadata log was not uploaded after its snapshot.
    assert (refused.exit_code, "(override: --allow incomplete)" in refused.stderr) == (3, True), refused.output
    (opened,) = (line for line in refused.stderr.splitlines() if line.strip().startswith("logstore repair"))
    made = run.invoke(logstore, shlex.split(opened)[1:])
    assert made.exit_code == 1, made.output
    applied = run.invoke(logstore, ["repair", "--apply", str(tmp_path / "plan.json")])
    assert applied.exit_code == 0, applied.output
    assert len(lost) > 50
    assert {path: path.read_bytes() for path in files} == files
