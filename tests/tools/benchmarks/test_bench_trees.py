"""The trees of the audit benchmark: log dirs that a scan accepts, with the planted share of old and missing ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.log_dir import discover
from logstore.rows import MetadataState
from logstore.scan import scan_all
from reconciler.audit import audit
from reconciler.sources import load
from tools.benchmarks import answer as bench_answer
from tools.benchmarks import data as bench_data
from tools.benchmarks import peers as bench_peers
from tools.benchmarks import trees as bench_trees

BROKERS, DIRECTORIES = 5, 240


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("fleet"))
    bench_trees.build_fleet(folder, BROKERS, DIRECTORIES)
    return folder


def test_every_broker_has_one_log_dir_with_its_identity(fleet: str) -> None:
    seen = list(scan_all(discover(bench_data.trees(fleet))))
    assert [observation.state for observation in seen] == [MetadataState.OK] * BROKERS
    assert {observation.identity.node_id for observation in seen if observation.identity} == {1, 2, 3, 4, 5}


def test_the_naive_way_finds_what_the_audit_finds(fleet: str, tmp_path: Path) -> None:
    tables = [observation.rows for observation in scan_all(discover(bench_data.trees(fleet)))]
    states = load(f"parquet:{bench_data.desired(fleet)}")
    ours = bench_answer.answer_of_result(audit(tables, [], states, str(tmp_path), now_ms=bench_data.NOW_MS))
    naive = bench_peers.pathlib_naive(fleet, str(tmp_path))
    # 1,200 replicas: the 1,000th is missing; the 1st, the 501st and the 1,001st are old.
    assert naive.totals == {"OK": (1196, 0), "STALE_ID": (3, 0), "MISSING": (1, 0)}
    assert {verdict: (rows, 0) for verdict, (rows, _) in ours.totals.items()} == naive.totals
    assert ours.several_ids == naive.several_ids
