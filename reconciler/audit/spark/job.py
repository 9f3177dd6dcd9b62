r"""The audit as a job for spark-submit, with the session that spark-submit gives it.

    spark-submit --master spark://… --py-files kafka_logstore-….whl job.py \
        --metadata kraft:/data/__cluster_metadata-0 --out /shared/audit --inventories /shared/inventories/*.parquet

    python -m reconciler.audit.spark.job --metadata … --out …        the same on this machine

The dependencies of the package, DuckDB and Arrow above all, must be installed wherever an executor runs; ``--py-files``
brings only the package itself. The job writes ``findings.parquet``, ``topics.parquet`` and ``summary.json`` to the
output folder, which the driver and all executors must see, and nothing but the path of the summary to standard output.
Its exit codes are those of the command line (DESIGN §9).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from logstore import InvalidSettingError, InventoryError, parse_duration
from logstore.rows import check_inventory
from reconciler.audit import report_json
from reconciler.audit.result import Accepted, AuditResult
from reconciler.audit.spark.session import open_session
from reconciler.errors import ReconcilerError, RefusedError, UsageError
from reconciler.sources import load

SUMMARY_FILE = "summary.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the audit and return its exit code; an error is one sentence on standard error."""
    options = _parser().parse_args(arguments)
    try:
        result = run(options)
    except ReconcilerError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(os.path.join(options.out, SUMMARY_FILE) + "\n")
    return 0 if result.is_clean else 1


def run(options: argparse.Namespace) -> AuditResult:
    """Audit the trees and inventories of the options, and write the summary.

    Raises:
        UsageError: nothing to audit, or no folder to write to.
        RefusedError: an inventory cannot be read, or the metadata does not fit the log dirs.
        EngineUnavailableError: there is no Spark here.
    """
    if not options.trees and not options.inventories:
        raise UsageError("there is nothing to audit: name --trees or --inventories")
    if not os.path.isdir(options.out):
        raise UsageError(f"{options.out} is no folder: make the output folder first, where all executors see it")
    try:
        gap_ms = parse_duration(options.inventory_gap)
    except InvalidSettingError as error:
        raise UsageError(f"--inventory-gap: {error}") from error
    try:
        for path in options.inventories:
            check_inventory(path)
    except InventoryError as error:
        raise RefusedError(str(error)) from error
    states = [state for spec in options.metadata for state in load(spec)]
    spark = open_session(options.master)
    try:
        from reconciler.audit.spark.engine import audit

        result = audit(
            spark,
            options.trees,
            options.inventories,
            states,
            options.out,
            now_ms=time.time_ns() // 1_000_000,
            sizes=not options.no_sizes,
            all_rows=options.all,
            previous=options.previous,
            gap_ms=gap_ms,
        )
    finally:
        spark.stop()
    result = replace(result, accepted=tuple(map(Accepted, dict.fromkeys(options.accept))))
    with open(os.path.join(options.out, SUMMARY_FILE), "wb") as out:
        report_json.write_summary(result, out)
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Audit log dirs with Spark.")
    parser.add_argument("--metadata", action="append", default=[], help="a metadata source; may be repeated")
    parser.add_argument("--out", required=True, help="an existing folder for what is found")
    parser.add_argument("--trees", nargs="+", default=[], help="log dirs, or folders of them")
    parser.add_argument("--inventories", nargs="+", default=[], help="Parquet files that `logstore scan` wrote")
    parser.add_argument("--previous", help="topics.parquet of an earlier audit")
    parser.add_argument("--no-sizes", action="store_true", help="do not add up the files in trees")
    parser.add_argument("--all", action="store_true", help="list the OK rows as well")
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        choices=list(map(str, Accepted)),
        help="no reason to act; may be repeated",
    )
    parser.add_argument(
        "--inventory-gap", default="24h", help="an inventory further from the metadata is a finding; default: 24h"
    )
    parser.add_argument("--master", help="as Spark writes it; default: what spark-submit set")
    return parser


if __name__ == "__main__":
    sys.exit(main())
