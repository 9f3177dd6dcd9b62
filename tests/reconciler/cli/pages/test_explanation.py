"""The log dir of a path, and the verdict of the case table on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from reconciler.cli.frame import PathInLogDir, log_dir_of_path
from reconciler.cli.pages import judge_name, scan_rows
from reconciler.errors import RefusedError
from reconciler.next_steps import Call
from reconciler.sources import load
from tests.reconciler.cli.conftest import OLD_ORDERS, ORDERS


def test_a_path_belongs_to_the_nearest_log_dir_above(cluster) -> None:
    log_dir = str(cluster.log_dir(1))
    assert log_dir_of_path(log_dir) == PathInLogDir(log_dir, ".")
    assert log_dir_of_path(f"{log_dir}/orders-0/") == PathInLogDir(log_dir, "orders-0")
    assert log_dir_of_path(f"{log_dir}/org/apache/orders-0") == PathInLogDir(log_dir, "org/apache/orders-0")


def test_what_is_staged_beside_a_log_dir_belongs_to_it(cluster) -> None:
    log_dir = str(cluster.log_dir(1))
    staged = f"{log_dir}.deleting/AAECAwQFBgcICQoLDA0ODw_0"
    assert log_dir_of_path(staged) == PathInLogDir(log_dir, "../broker-1.deleting/AAECAwQFBgcICQoLDA0ODw_0")


def test_a_path_outside_any_log_dir_has_no_home(cluster) -> None:
    assert log_dir_of_path(cluster.metadata) is None
    assert log_dir_of_path("/") is None


def call(home: PathInLogDir) -> Call:
    return Call((home.log_dir,), (str(Path(home.log_dir).parents[1] / "metadata"),))


def test_the_verdict_is_that_of_the_case_table_and_the_next_command_is_filled_in(cluster) -> None:
    home = PathInLogDir(str(cluster.log_dir(2)), "orders-1")
    (judged,) = judge_name(home, scan_rows(home.log_dir), load(cluster.metadata), call(home), 0)
    assert judged.verdict == "STALE_ID"
    assert judged.next == f"logstore plan {home.log_dir} --metadata {cluster.metadata} -o plan.json"


@pytest.mark.parametrize(
    ("topic_id", "verdict", "evidence"),
    [
        (ORDERS, "FUTURE", "its live copy lies in another log dir"),
        (OLD_ORDERS, "FUTURE_ABANDONED", "nobody will finish"),
    ],
)
def test_a_copy_on_its_way_is_not_called_abandoned_for_want_of_the_other_disk(
    cluster, topic_id: TopicId, verdict: str, evidence: str
) -> None:
    name = f"orders-1.{'a' * 32}-future"
    os.rename(cluster.log_dir(1) / "orders-1", cluster.log_dir(1) / name)
    (cluster.log_dir(1) / name / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(topic_id))
    home = PathInLogDir(str(cluster.log_dir(1)), name)
    (judged,) = judge_name(home, scan_rows(home.log_dir), load(cluster.metadata), call(home), 0)
    assert judged.verdict == verdict
    assert evidence in judged.evidence


def test_metadata_of_another_cluster_is_refused(cluster) -> None:
    home = PathInLogDir(str(cluster.log_dir(2)), "orders-1")
    rows = [row | {"cluster_id": "another"} for row in scan_rows(home.log_dir)]
    with pytest.raises(RefusedError):
        judge_name(home, rows, load(cluster.metadata), call(home), 0)


def test_what_no_row_tells_of_has_no_verdict(cluster) -> None:
    home = PathInLogDir(str(cluster.log_dir(2)), "meta.properties")
    assert judge_name(home, scan_rows(home.log_dir), [], call(home), 0) == ()
