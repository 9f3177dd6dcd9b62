"""The contenders of the audit benchmark: they are comparable only when they give the same answer."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.audit import FINDING_SCHEMA
from reconciler.verdicts import Verdict
from tools.benchmarks import answer as bench_answer
from tools.benchmarks import by_hand as bench_by_hand
from tools.benchmarks import data as bench_data
from tools.benchmarks import peers as bench_peers
from tools.benchmarks.answer import Answer
from tools.machine import ROOT

COMPARED = [name for name in FINDING_SCHEMA.names if name != "evidence"]
"""The words of the evidence are each contender's own."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("fleet"))
    bench_data.generate(folder, 15_000, 10)
    return folder


@pytest.fixture(scope="module")
def ours(fleet: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, Counter[str]]:
    out = tmp_path_factory.mktemp("ours")
    return bench_peers.embedded(fleet, str(out)), findings(out)


def findings(out: Path) -> Counter[str]:
    table = pq.read_table(out / bench_answer.FINDINGS_FILE)
    assert table.schema.names == FINDING_SCHEMA.names
    return Counter(map(str, table.select(COMPARED).to_pylist()))


def test_every_verdict_that_complete_metadata_allows_is_in_the_fleet(ours: tuple[Answer, Counter[str]]) -> None:
    assert set(ours[0].totals) == {verdict.value for verdict in Verdict} - {"NOT_COMPARED"}
    assert ours[0].several_ids > 0
    assert {"TOPIC_UNDER_SEVERAL_IDS", "ONLY_KNOWN_COPY", "ONLY_IN_SYNC_COPY", "LOG_DIR_NOT_SEEN"} <= set(ours[0].fleet)


@pytest.mark.parametrize("peer", ["duckdb", "polars"])
def test_a_contender_finds_what_ours_finds(
    peer: str, fleet: str, ours: tuple[Answer, Counter[str]], tmp_path: Path
) -> None:
    answer = bench_peers.contender(peer)(fleet, str(tmp_path))
    assert answer.said == ours[0].said
    assert findings(tmp_path) == ours[1]


def test_the_floor_joins_every_live_replica_with_every_wanted_one(fleet: str, tmp_path: Path) -> None:
    counts = {outcome: rows for outcome, (rows, _) in bench_peers.floor(fleet, str(tmp_path)).totals.items()}
    live = sum(pq.read_table(path)["kind"].to_pylist().count("live") for path in bench_data.inventories(fleet))
    pairs = counts[bench_by_hand.SAME] + counts[bench_by_hand.DIFFERS]
    assert pairs + counts[bench_by_hand.ONLY_ON_DISK] == live
    # A replica that lies on both disks of its broker meets its wanted one twice.
    doubled = pairs + counts[bench_by_hand.ONLY_WANTED] - 15_000
    assert 0 < doubled < 100 and counts[bench_by_hand.SAME] > 0.9 * live


@pytest.mark.spark
@pytest.mark.parametrize("peer", ["spark", "spark-by-hand"])
def test_a_contender_on_spark_finds_what_ours_finds(
    peer: str, fleet: str, ours: tuple[Answer, Counter[str]], tmp_path: Path
) -> None:
    # A process of its own, as in the benchmark: its session would get in the way of the other tests' session.
    subprocess.run([sys.executable, "-m", "tools.benchmarks.peers", peer, fleet, str(tmp_path)], check=True, cwd=ROOT)
    answer = bench_answer.load_answer(str(tmp_path))
    assert answer.said == ours[0].said
    assert answer.job > 0 and answer.session > 0 and answer.jvm_peak > 0
    assert findings(tmp_path) == ours[1]


def test_an_answer_survives_being_saved(tmp_path: Path) -> None:
    log_dirs, fleet = {"broker 1 /data OK": (3, 300, 4096)}, {"ONLY_KNOWN_COPY": ["orders"]}
    answer = Answer({"OK": (3, 300), "STALE_ID": (1, 0)}, 2, log_dirs, fleet, session=1.5, job=2.5, jvm_peak=7)
    bench_answer.save_answer(answer, str(tmp_path))
    assert bench_answer.load_answer(str(tmp_path)) == answer


def test_what_was_observed_and_not_found_is_ok() -> None:
    found = [
        ("MISSING", 1, None, 5, None, None, 0),
        ("STALE_ID", 1, "/a", 2, 20, 40, 2),
        ("STALE_ID", 1, "/b", 1, 1, 1, 1),
    ]
    observed = [(1, "/a", 10, 100, 200), (1, "/b", 1, 1, 1)]
    answer = bench_answer.complete_answer(found, observed, {"TOPIC_UNDER_SEVERAL_IDS": ["u", "t", "u"], "X": []})
    assert answer.log_dirs == {
        "broker 1 nowhere MISSING": (5, 0, 0),
        "broker 1 /a STALE_ID": (2, 20, 40),
        "broker 1 /b STALE_ID": (1, 1, 1),
        "broker 1 /a OK": (8, 80, 160),
    }
    assert answer.totals == {"MISSING": (5, 0), "STALE_ID": (3, 21), "OK": (8, 80)}
    assert (answer.several_ids, answer.fleet) == (2, {"TOPIC_UNDER_SEVERAL_IDS": ["t", "u"]})


def test_figures_of_a_run_are_not_part_of_what_was_said() -> None:
    assert Answer({}, 0, session=1.0).said == Answer({}, 0, job=9.0).said
