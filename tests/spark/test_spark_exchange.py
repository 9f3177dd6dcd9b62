"""Files go to executors and back through a store where a cluster and its driver see no folder in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from logstore import InventoryStoreError
from logstore.rows import LogDirOnHost, list_uri, put
from reconciler.audit import embedded
from reconciler.audit.spark import check_store, left_exchanges
from reconciler.audit.spark import engine as spark_engine
from reconciler.audit.spark import output as spark_output
from reconciler.audit.spark.exchange import Exchange, clear_folder, escape_glob, open_exchange
from reconciler.errors import RefusedError, UsageError
from tests.fleets import NOW_MS, random_fleet
from tests.object_store import BUCKET, ObjectStore
from tests.spark.answers import assert_same, orders

STORE = f"s3://{BUCKET}/audits"


def names(uri: str) -> list[str]:
    return [each.name for each in list_uri(uri) or ()]


def written(path: Path, data: bytes = b"rows") -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return str(path)


def test_a_path_that_looks_like_a_glob_is_escaped_for_spark() -> None:
    assert escape_glob("/a[1]/{b}*?\\c") == "/a\\[1\\]/\\{b\\}\\*\\?\\\\c"
    assert escape_glob("/plain/node=5") == "/plain/node=5"


def test_a_folder_is_made_in_the_place_of_a_file_a_link_and_a_full_folder(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    written(other / "kept")
    (tmp_path / "link").symlink_to(other)
    written(tmp_path / "full" / "x")
    for name in ("link", "full", written(tmp_path / "file")):
        clear_folder(str(tmp_path / name))
        assert (list((tmp_path / name).iterdir()), (tmp_path / name).is_symlink()) == ([], False)
    assert (other / "kept").exists()


def test_a_folder_that_executors_see_has_each_file_once(tmp_path: Path) -> None:
    with open_exchange(str(tmp_path), None, None) as shared:
        assert shared.give("/a[1].parquet") == "/a\\[1\\].parquet"
        assert shared.target("/left.parquet") == "/left.parquet"
        shared.take("/left.parquet")
    assert list(tmp_path.iterdir()) == []


def test_what_the_driver_has_lies_in_the_store_once_and_only_for_the_audit(tmp_path: Path, s3: ObjectStore) -> None:
    file, folder = written(tmp_path / "a b[1].parquet"), str(tmp_path / "findings.parquet")
    for name in ("one", "two"):
        written(tmp_path / "findings.parquet" / name)
    put(file, f"{STORE}/report/other")
    with open_exchange(str(tmp_path), f"{STORE}/report/", {"/here.parquet": f"{STORE}/x%253D/y.parquet"}) as through:
        given = through.give(file)
        assert given.startswith(f"{STORE}/report/_exchange-")
        assert given.endswith("-a b\\[1\\].parquet")  # as Hadoop takes it: not quoted
        assert through.give(file) == given
        assert through.give("/here.parquet") == f"{STORE}/x%3D/y.parquet"
        through.give(folder)
        assert {name.rpartition("-")[2] for name in names(STORE)} == {
            "report/other",
            "a b[1].parquet",
            "findings.parquet/one",
            "findings.parquet/two",
        }
    assert names(STORE) == ["report/other"]


def test_the_exchanges_that_lie_in_a_report_are_known_by_their_names(tmp_path: Path, s3: ObjectStore) -> None:
    put(written(tmp_path / "summary.json"), f"{STORE}/summary.json")
    with open_exchange(str(tmp_path), STORE, None) as through:
        for name in ("one", "two"):
            through.give(written(tmp_path / name))
        (left,) = left_exchanges(names(STORE))
        assert through.give(str(tmp_path / "one")).startswith(f"{STORE}/{left}/")
    assert left_exchanges([*names(STORE), "x/_exchange-1/y"]) == []


def test_what_spark_wrote_is_taken_without_its_marks_and_given_anew_with_what_was_added(
    tmp_path: Path, s3: ObjectStore
) -> None:
    findings = tmp_path / "findings.parquet"
    written(findings / "of an earlier audit")
    through = Exchange(str(tmp_path), f"{STORE}/x")
    target = through.target(str(findings))
    for name in ("_SUCCESS", "part-0.parquet"):
        put(written(tmp_path / "source"), f"{target}/{name}")
    assert through.give(str(findings)) == target
    through.take(str(findings))
    assert [path.name for path in findings.iterdir()] == ["part-0.parquet"]
    written(findings / "part-kept.parquet")
    again = through.give(str(findings))
    assert again != target
    assert names(again) == ["part-0.parquet", "part-kept.parquet"]


def test_a_store_that_refuses_is_told_and_costs_no_answer_at_the_end(
    tmp_path: Path, s3: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    s3.refusing = lambda method, path: True
    with pytest.raises(InventoryStoreError, match="access is denied"):
        Exchange(str(tmp_path), STORE).give(written(tmp_path / "x"))
    with open_exchange(str(tmp_path), STORE, None):
        pass
    assert f"{STORE}/_exchange-" in caplog.text
    assert "was not removed" in caplog.text


@pytest.mark.parametrize(
    ("store", "trees", "said"),
    [
        ("s3a://b/x", ["/disks/1"], "list log dirs, such as /disks/1, write into a folder that they and this machine"),
        ("s3a://b/x?endpoint_override=h", [], "has a query, of which Spark knows nothing: leave it out"),
    ],
)
def test_what_cannot_go_through_a_store_is_refused_with_what_to_do(store: str, trees: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check_store(store, trees)


@pytest.mark.spark
@pytest.mark.parametrize("few_rows", [5_000_000, 0])
def test_an_audit_through_a_store_gives_the_answer_of_one_in_a_folder_and_spark_sees_the_store_alone(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_rows: int
) -> None:
    from pyspark.sql.classic.dataframe import DataFrame
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

    monkeypatch.setattr(spark_output, "FEW_ROWS", few_rows)
    seen: list[str] = []
    for kind in (DataFrameReader, DataFrameWriter):
        real = kind.parquet

        def noted(self: Any, *paths: str, _real: Any = real) -> DataFrame:
            seen.extend(paths)
            return _real(self, *paths)

        monkeypatch.setattr(kind, "parquet", noted)
    rows, states = random_fleet(12)
    for name in ("duck", "spark", "store"):
        (tmp_path / name).mkdir()
    paths = [str(tmp_path / name) for name in ("first.parquet", "second.parquet")]
    pq.write_table(rows, paths[0])
    pq.write_table(rows.slice(5), paths[1])
    hosts = {(row["host"], row["log_dir"]) for row in rows.slice(5).to_pylist()}
    ignored = {paths[0]: {LogDirOnHost(host or "", log_dir) for host, log_dir in hosts}}
    how: dict[str, Any] = {"now_ms": NOW_MS, "superseded": ignored}
    duck = embedded.audit([], paths, states, str(tmp_path / "duck"), **how)
    store = (tmp_path / "store").as_uri()
    there = f"{store}/kept%20there.parquet"
    put(paths[1], there)
    found = spark_engine.audit(
        spark, [], paths, states, str(tmp_path / "spark"), store=store, stored={paths[1]: there}, **how
    )
    assert_same(found, duck)
    assert {each.partition("/_exchange-")[0] for each in seen} == {store, f"{store}/kept there.parquet"}
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["kept there.parquet"]
    assert {path.name for path in (tmp_path / "spark").iterdir()} == {"findings.parquet", "topics.parquet"}


@pytest.mark.spark
def test_a_spark_without_the_connector_of_the_store_is_one_sentence_and_leaves_nothing(
    spark: Any, tmp_path: Path, s3: ObjectStore
) -> None:
    path = str(tmp_path / "x.parquet")
    pq.write_table(random_fleet(7)[0], path)
    for scheme, said in (("s3a", "S3AFileSystem not found"), ("s3", 'No FileSystem for scheme "s3"')):
        with pytest.raises(RefusedError, match=f"{said}.*: give Spark the connector of the store") as refused:
            spark_engine.audit(
                spark, [], [path], [orders()], str(tmp_path), now_ms=NOW_MS, store=f"{scheme}://{BUCKET}/report"
            )
        assert str(refused.value).startswith("Spark did not finish the audit: ")
        assert list_uri(f"s3://{BUCKET}/report") in (None, [])
