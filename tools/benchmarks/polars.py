"""The audit of ``by_hand`` in Polars, lazily, on its streaming engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import polars as pl

from tools.benchmarks import data as bench_data
from tools.benchmarks.answer import FINDINGS_FILE, LIMIT, Answer, complete_answer
from tools.benchmarks.data import CLUSTER, NOW_MS

_KEY = ["node_id", "topic", "partition"]
_SEEN = [
    "host", "node_id", "directory_id", "log_dir", "name", "kind", "namespace", "topic", "partition", "topic_id",
    "metadata_state", "problem", "bytes", "disk_bytes", "files", "modified_ms", "due_ms", "end_offset", "leader_epoch",
    "scanned_ms",
]  # fmt: skip
_BESIDE = {"leftover": "LEFTOVER", "checkpoint_entry": "CHECKPOINT_ENTRY", "foreign": "FOREIGN"}
_SENTENCES = {
    "STALE_ID": ("the disk holds topic ID {}; it was re-created as {}", ["topic_id", "name_id"]),
    "RENAMED": ("topic ID {} belongs to topic {}", ["topic_id", "id_topic"]),
    "NO_ID": ("no topic ID on the disk; wanted here under {}", ["wanted_id"]),
    "MISSING": ("wanted here under topic ID {}, and no log dir has it", ["wanted_id"]),
    "NOT_ASSIGNED": ("topic {} exists, but this broker has no replica of it", ["topic"]),
    "UNKNOWN_TOPIC": ("neither topic {} nor topic ID {} is known", ["topic", "topic_id"]),
    "STRAY": ("a broker moved it aside; topic ID {} is not known", ["topic_id"]),
    "DUPLICATE": ("live in {} directories of this broker; wanted {}", ["copies", "wanted_id"]),
}


_BROKER = pl.format("broker {}", "node_id").alias("broker")
_AT_RISK = ["STALE_ID", "NOT_ASSIGNED", "UNKNOWN_TOPIC", "STRAY", "STAGED_DUE", "MARKED_DELETE", "RENAMED"]
_CONDEMNED = ["STALE_ID", "NOT_ASSIGNED", "UNKNOWN_TOPIC", "STRAY", "FUTURE_ABANDONED"]


def polars_by_hand(fleet: str, out: str) -> Answer:
    """Audit a fleet, and leave the findings in the folder ``out``."""
    path = os.path.join(out, FINDINGS_FILE)
    seen = pl.scan_parquet(bench_data.inventories(fleet)).select(_SEEN)
    desired = {
        name: pl.scan_parquet(f"{bench_data.desired(fleet)}/{name}.parquet")
        for name in ("replicas", "topics", "brokers")
    }
    dirs = seen.filter(pl.col("kind") == "log_dir").collect(engine="streaming")
    joined = _joined(seen, desired["replicas"], desired["topics"])
    listed = joined.with_columns(verdict=_verdict()).filter(pl.col("verdict") != "OK")
    _as_findings(listed, dirs.select(pl.col("scanned_ms").min()).item()).sink_parquet(path)
    findings = pl.scan_parquet(path)
    figures = [pl.len(), pl.col("bytes").sum(), pl.col("disk_bytes").sum()]
    found = findings.group_by("verdict", "broker", "log_dir").agg(*figures, entries=(pl.col("kind") != "log_dir").sum())
    observed = seen.filter(pl.col("kind") != "log_dir").group_by("node_id", "log_dir").agg(*figures)
    fleet_findings = _fleet(seen, findings, dirs.lazy(), desired)
    totals, on_disk, *told = pl.collect_all([found, observed, *fleet_findings.values()], engine="streaming")
    subjects = zip(fleet_findings, (table.to_series().cast(pl.String).to_list() for table in told), strict=True)
    return complete_answer(totals.iter_rows(), on_disk.iter_rows(), dict(subjects))


def _fleet(
    seen: pl.LazyFrame, findings: pl.LazyFrame, dirs: pl.LazyFrame, desired: Mapping[str, pl.LazyFrame]
) -> dict[str, pl.LazyFrame]:
    """What only several rows together show, by kind; the first column is what each finding is about."""
    col = pl.col
    extent = [col("partition").n_unique(), col("broker").min().alias("first"), col("broker").max().alias("last")]
    named = findings.filter(col("kind").is_in(["live", "future"]), col("disk_topic_id").is_not_null())
    ids = named.group_by("topic").agg(
        one=col("disk_topic_id").min(), other=col("disk_topic_id").max(), known=col("metadata_topic_id").min()
    )
    suspects = ids.filter((col("one") != col("other")) | (col("one") != col("known")))
    several = (
        seen.filter(col("kind").is_in(["live", "future"]), col("metadata_state") == "ok")
        .join(suspects, on="topic", how="semi")
        .group_by("topic", "topic_id")
        .agg(pl.len(), col("node_id").min().alias("first"), col("node_id").max().alias("last"))
        .filter(pl.len().over("topic") > 1)
    )
    at_risk = findings.filter(
        col("verdict").is_in(_AT_RISK), col("disk_topic_id").is_not_null(), col("bytes").fill_null(1) > 0
    ).with_columns(topic_id=col("disk_topic_id"), doubt=col("doubt").fill_null(""))
    copies = seen.join(at_risk, on=["topic_id", "partition"], how="semi").group_by("topic_id", "partition").len()
    alone = at_risk.join(copies.filter(col("len") == 1), on=["topic_id", "partition"], how="semi")
    by = ["topic", "verdict", "topic_id", "doubt"]
    in_sync = findings.filter("only_in_sync", col("verdict").is_in(["MISSING", "ABSENT", "DAMAGED", "STALE_ID"]))
    registered = desired["brokers"].select("node_id", directory_id="directory_ids").explode("directory_id")
    identified = dirs.filter(col("directory_id").is_not_null())
    homes = identified.filter(col("metadata_state") == "ok")
    place = ["node_id", "directory_id"]
    gap = (col("scanned_ms") - NOW_MS).abs().max()
    return {
        "TOPIC_UNDER_SEVERAL_IDS": several,
        "DUPLICATE_DIRECTORY_ID": identified.group_by("directory_id").len().filter(col("len") > 1),
        "DUPLICATE_NODE_ID": dirs.group_by(_BROKER).agg(col("host").n_unique()).filter(col("host") > 1),
        "LOG_DIR_NOT_REGISTERED": identified.join(registered, on=place, how="anti").select("log_dir", *place),
        "LOG_DIR_NOT_SEEN": registered.join(homes, on=place, how="anti").select("directory_id", "node_id"),
        "ONLY_KNOWN_COPY": alone.group_by(by).agg(extent).sort(by).head(LIMIT),
        "ONLY_IN_SYNC_COPY": in_sync.group_by("topic", "verdict", "doubt").agg(extent).sort("topic").head(LIMIT),
        "INVENTORY_AGE": dirs.group_by(_BROKER).agg(gap).filter(col("scanned_ms") > 24 * 3_600_000),
        "BROKER_NOT_REPORTED": desired["replicas"].join(dirs, on="node_id", how="anti").group_by(_BROKER).len(),
    }


def _joined(seen: pl.LazyFrame, replicas: pl.LazyFrame, topics: pl.LazyFrame) -> pl.LazyFrame:
    col = pl.col
    wanted = replicas.select(
        *_KEY,
        wanted_id="topic_id",
        wanted_directory="directory_id",
        moving=col("adding") | col("removing"),
        only_in_sync=col("in_sync") & (col("isr_size") == 1),
        wanted=pl.lit(True),
    )
    copies = (
        seen.filter(col("kind").is_in(["live", "future"]))
        .group_by(_KEY)
        .agg(entries=pl.len(), copies=(col("kind") == "live").sum())
        .filter(col("entries") > 1)
        .drop("entries")
    )
    homes = seen.filter(col("kind") == "log_dir", col("metadata_state") == "ok").select(
        wanted_directory="directory_id", home_seen=pl.lit(True)
    )
    live = seen.filter(col("kind") == "live").join(wanted, on=_KEY, how="full", coalesce=True)
    by_id = wanted.rename({"wanted_id": "topic_id"}).with_columns(wanted_id="topic_id").drop("topic")
    rest = seen.filter(col("kind") != "live").join(by_id, on=["node_id", "topic_id", "partition"], how="left")
    names = topics.select("topic", name_id="topic_id", name_known=pl.lit(True))
    owners = topics.select("topic_id", id_topic="topic")
    return (
        pl.concat([live, rest.select(live.collect_schema().names())])
        .join(copies, on=_KEY, how="left")
        .join(names, on="topic", how="left")
        .join(owners, on="topic_id", how="left")
        .join(homes, on="wanted_directory", how="left")
    )


def _verdict() -> pl.Expr:
    col, kind = pl.col, pl.col("kind")
    live, wanted, copies = kind == "live", col("wanted").is_not_null(), col("copies").fill_null(0)
    no_id, same = col("topic_id").is_null(), col("topic_id") == col("wanted_id")
    damaged = col("metadata_state").is_in(["empty", "malformed", "zero_id", "contradicts", "unreadable"])
    choices: list[tuple[pl.Expr, str]] = [
        ((kind == "log_dir") & (col("metadata_state") != "ok"), "ABSENT"),
        (kind.is_in(["log_dir", "internal"]), "OK"),
        (damaged, "DAMAGED"),
        *((kind == name, verdict) for name, verdict in _BESIDE.items()),
        ((kind == "staged") & (col("due_ms") <= NOW_MS), "STAGED_DUE"),
        (kind == "staged", "STAGED"),
        (kind == "delete", "MARKED_DELETE"),
        (kind == "stray", "STRAY"),
        ((kind == "future") & (copies > 0) & wanted, "FUTURE"),
        (kind == "future", "FUTURE_ABANDONED"),
        (live & (copies > 1), "DUPLICATE"),
        (live & (col("id_topic") != col("topic")), "RENAMED"),
        (col("moving") & (kind.is_null() | no_id | same), "IN_FLIGHT"),
        (live & wanted & no_id, "NO_ID"),
        (live & same, "OK"),
        (live & (col("topic_id") != col("name_id")), "STALE_ID"),
        (live & col("name_known").is_not_null(), "NOT_ASSIGNED"),
        (live, "UNKNOWN_TOPIC"),
        (col("home_seen").is_null(), "ABSENT"),
    ]
    return _choose(choices, pl.lit("MISSING"))


def _choose(choices: list[tuple[pl.Expr, Any]], otherwise: pl.Expr) -> pl.Expr:
    (condition, value), *rest = choices
    chain: Any = pl.when(condition).then(pl.lit(value) if isinstance(value, str) else value)
    for condition, value in rest:
        chain = chain.when(condition).then(pl.lit(value) if isinstance(value, str) else value)
    expression: pl.Expr = chain.otherwise(otherwise)
    return expression


def _as_findings(findings: pl.LazyFrame, scanned_ms: int) -> pl.LazyFrame:
    """The columns of a finding; the metadata of the fleet speaks as of the audit."""
    col = pl.col
    better = [
        col("topic_id") != col("wanted_id"), -col("leader_epoch").fill_null(-1), -col("end_offset").fill_null(-1),
        col("directory_id") != col("wanted_directory"), col("log_dir"),
    ]  # fmt: skip
    rank = pl.int_range(1, pl.len() + 1).over("node_id", "topic", "partition", "verdict", order_by=pl.struct(*better))
    sentences: list[tuple[pl.Expr, Any]] = [
        (col("verdict") == verdict, pl.format(text, *columns)) for verdict, (text, columns) in _SENTENCES.items()
    ]
    doubts: list[tuple[pl.Expr, Any]] = [
        (
            col("kind").is_null() & col("verdict").is_in(["MISSING", "ABSENT"]) & (scanned_ms < NOW_MS),
            "SCANNED_BEFORE_METADATA",
        ),
        (col("verdict").is_in(_CONDEMNED) & (col("modified_ms") > NOW_MS), "CHANGED_SINCE_METADATA"),
    ]
    return findings.select(
        "verdict", pl.lit(CLUSTER).alias("cluster_id"), col("node_id").alias("broker"), "host", "log_dir",
        "directory_id", "name", "kind", "namespace", "topic", "partition", col("topic_id").alias("disk_topic_id"),
        pl.coalesce("wanted_id", "name_id").alias("metadata_topic_id"), "bytes", "disk_bytes", "files", "modified_ms",
        "due_ms", pl.when(col("verdict") == "DUPLICATE").then(rank).alias("copy_rank"),
        col("only_in_sync").fill_null(value=False),
        _choose(sentences, col("problem").fill_null("see the verdict")).alias("evidence"),
        _choose(doubts, pl.lit(None)).cast(pl.String).alias("doubt"),
    )  # fmt: skip
