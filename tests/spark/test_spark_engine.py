"""The audit by Spark, whichever way it goes: what it compares with, and how it tells that it failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from reconciler.audit.spark import engine as spark_engine
from reconciler.desired import REPLICA_SCHEMA, MetadataIdentity, SavedTable
from reconciler.errors import RefusedError
from tests.fleets import NOW_MS
from tests.spark.answers import OTHER_ID, orders

pytestmark = pytest.mark.spark


def test_a_topic_whose_id_changed_since_the_audit_before_is_found(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    spark_engine.audit(spark, two_disks, [], [orders(OTHER_ID)], str(tmp_path), now_ms=NOW_MS)
    before = str(tmp_path / "topics.parquet")
    result = spark_engine.audit(spark, two_disks, [], [orders()], str(tmp_path), now_ms=NOW_MS, previous=before)
    changed = [finding for finding in result.fleet if finding.kind == "TOPIC_ID_CHANGED"]
    assert [finding.subject for finding in changed] == ["orders"]


def test_metadata_of_another_cluster_is_refused(spark: Any, tmp_path: Path, two_disks: list[str]) -> None:
    state = replace(orders(), identity=MetadataIdentity("kraft", "/metadata", "D"))
    with pytest.raises(RefusedError, match=r"cluster D.*cluster C"):
        spark_engine.audit(spark, two_disks, [], [state], str(tmp_path), now_ms=NOW_MS)


def test_an_inventory_that_went_is_one_sentence(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"Spark did not finish the audit.*nowhere") as shown:
        spark_engine.audit(spark, [], ["/nowhere.parquet"], [], str(tmp_path), now_ms=NOW_MS)
    assert "\n" not in str(shown.value)


def test_a_task_that_failed_is_one_sentence_with_what_was_raised_in_it(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    saved = SavedTable(str(tmp_path / "went.parquet"), REPLICA_SCHEMA, 3)
    with pytest.raises(RefusedError, match=r"a task failed: .*IOException.*went\.parquet") as shown:
        spark_engine.audit(spark, two_disks, [], [replace(orders(), replicas=saved)], str(tmp_path), now_ms=NOW_MS)
    assert "\n" not in str(shown.value)
    assert {path.name for path in tmp_path.iterdir()} == {"disks", "topics.parquet"}


def test_an_output_folder_that_cannot_be_written_is_one_sentence(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    with pytest.raises(RefusedError, match=r"Spark did not finish the audit.*nowhere"):
        spark_engine.audit(spark, two_disks, [], [orders()], str(tmp_path / "nowhere"), now_ms=NOW_MS)
