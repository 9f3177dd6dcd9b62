"""Measures ``logstore``'s audits against queries written by hand, and against what people do without it.

Every contender is a whole process (``tools.benchmarks.peers``), all run in turn on the same fleet, several times, and
the median counts. All must give the same answer. A second means nothing on another machine, so the targets are ratios.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from tools.benchmarks import data as bench_data
from tools.benchmarks.answer import Answer, load_answer
from tools.benchmarks.process import ProcessRun, report_target, run_process
from tools.machine import why_no_java

INVENTORY_PEERS = ("embedded", "duckdb", "polars", "spark", "spark-by-hand", "floor")
SKEW_PEERS = ("embedded", "duckdb", "spark", "floor")
FLOOR = "floor"
"""The one contender that makes no audit, and so has another answer and no target."""
TREE_PEERS = ("scan", "spark-trees", "wholetext", "pathlib")
BROKERS, DIRECTORIES = 100, 5000
LOGSTORE = os.path.join(os.path.dirname(sys.executable), "logstore")
MOST_TIME, MOST_TIME_OF_FEW = 1.0, 1.15
"""Times the query by hand that the embedded audit may take: from :data:`MANY_ROWS` on, and below."""
MOST_MEMORY = 1.3
MOST_SPARK_TIME = 1.0
MOST_SPARK_OVERHEAD = 5.0
"""Times the audit on one machine that Spark's may take on the same cores, from :data:`MANY_ROWS` on."""
MANY_ROWS = 10_000_000
MOST_TREE_TIME = 1.2
MOST_GROWTH = 1.25
"""Times the growth of the fleet by which an audit may slow down."""
MOST_SKEW = 1.3
"""Times the time of an even fleet that one of another shape may take."""

_UNITS = {"K": 1000, "M": 1_000_000}


@dataclass(frozen=True, slots=True)
class ContenderResult:
    """One contender on one fleet, over all its runs."""

    wall: float
    """Seconds of the whole process, median."""
    job: float
    """Seconds without the start of a Spark session, median."""
    session: float
    peak: int
    """Resident bytes of the largest process."""
    answer: Answer | None
    """None: a contender that answers nothing, as a scan alone."""


def main(argv: Sequence[str] | None = None) -> int:
    """Make the fleets, measure, print. Exit code 1 when a target is missed or answers differ."""
    options = _options(argv)
    met = True
    with tempfile.TemporaryDirectory(prefix="logstore-bench-", dir=options.folder) as scratch:
        keep = options.folder or scratch
        sizes: dict[int, dict[str, ContenderResult]] = {}
        for rows in options.rows:
            fleet = _fleet(keep, rows)
            peers = [peer for peer in INVENTORY_PEERS if peer in options.peers]
            sizes[rows] = _measure(peers, fleet, scratch, options.runs or (3 if rows < 10_000_000 else 2))
            met &= _report(f"{rows:,} replicas in {bench_data.BROKERS} inventories", sizes[rows])
            met &= _targets(sizes[rows], rows)
            if options.skew:
                met &= _skew(keep, scratch, rows, sizes[rows], options)
        met &= _growth(sizes)
        if options.trees:
            fleet = _trees(scratch)
            found = _measure([peer for peer in TREE_PEERS if peer in options.peers], fleet, scratch, options.runs or 3)
            met &= _report(f"{BROKERS} brokers with {DIRECTORIES:,} partition dirs each", found)
            met &= _tree_targets(found)
    return 0 if met else 1


def rows_of(text: str) -> int:
    """Read ``1M``, ``500K`` or a plain number.

    Raises:
        ValueError: it is none of these, or less than 1.
    """
    unit = _UNITS.get(text[-1:].upper())
    number = int(text[:-1]) * unit if unit else int(text)
    if number < 1:
        raise ValueError(f"{text} is no number of replicas")
    return number


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("tools/bench audit", description="Measures the audits against their peers.")
    everyone = (*INVENTORY_PEERS, *TREE_PEERS)
    parser.add_argument("--rows", default="1M,10M", metavar="N,...", help="replicas of each fleet [1M,10M]")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of each peer [3, and 2 from 10M on]")
    parser.add_argument("--folder", metavar="DIR", help="where fleets are made, and kept [a temporary folder]")
    parser.add_argument("--skew", action="store_true", help="audit fleets of other shapes as well")
    parser.add_argument("--trees", action="store_true", help="audit real log dirs as well")
    parser.add_argument("--peers", default=",".join(everyone), metavar="A,...", help="only these [%(default)s]")
    options = parser.parse_args(argv)
    options.peers = options.peers.split(",")
    unknown = sorted(set(options.peers) - set(everyone))
    if unknown:
        parser.error(f"--peers: there is no {unknown[0]!r}; there are {', '.join(everyone)}")
    try:
        options.rows = sorted(rows_of(text) for text in options.rows.split(",") if text)
    except ValueError as error:
        parser.error(f"--rows: {error}")
    if options.folder and not os.path.isdir(options.folder):
        parser.error(f"--folder: {options.folder} is no directory")
    if options.runs is not None and options.runs < 1:
        parser.error("--runs wants a number from 1 on")
    no_java = why_no_java()
    if no_java:
        print(f"{no_java}: Spark is left out")
        options.peers = [peer for peer in options.peers if "spark" not in peer and peer != "wholetext"]
    return options


def _fleet(folder: str, rows: int, shape: str = bench_data.EVEN) -> str:
    fleet = os.path.join(folder, f"fleet-{rows}" if shape == bench_data.EVEN else f"fleet-{rows}-{shape}")
    if not bench_data.is_complete(fleet):
        print(f"making {rows:,} replicas in {fleet}", flush=True)
        run_process("bench_data", [sys.executable, "-m", "tools.benchmarks.data", fleet, str(rows), shape])
    return fleet


def _skew(keep: str, scratch: str, rows: int, even: dict[str, ContenderResult], options: argparse.Namespace) -> bool:
    """Measure fleets of the other shapes, each against the even one of as many wanted replicas."""
    met = True
    peers = [peer for peer in SKEW_PEERS if peer in options.peers]
    for shape, what in bench_data.SKEWED.items():
        fleet = _fleet(keep, rows, shape)
        found = _measure(peers, fleet, scratch, options.runs or (3 if rows < 10_000_000 else 2))
        met &= _report(f"{rows:,} replicas, {what}", found)
        met &= _skew_targets(shape, even, found)
    return met


def _skew_targets(shape: str, even: dict[str, ContenderResult], found: dict[str, ContenderResult]) -> bool:
    if FLOOR in even and FLOOR in found:
        print(f"          floor, {shape} / even, time: {found[FLOOR].job / even[FLOOR].job:.2f}")
    met = True
    for peer in ("embedded", "spark"):
        if peer in even and peer in found:
            ratio = found[peer].job / even[peer].job
            met &= report_target(ratio <= MOST_SKEW, f"{peer}, {shape} / even, time: {ratio:.2f}, target {MOST_SKEW}")
    return met


def _trees(folder: str) -> str:
    fleet = os.path.join(folder, "trees")
    print(f"building {BROKERS * DIRECTORIES:,} partition dirs in {fleet}", flush=True)
    run_process("bench_fleet", [sys.executable, "-m", "tools.benchmarks.trees", fleet, str(BROKERS), str(DIRECTORIES)])
    return fleet


def _measure(peers: Sequence[str], fleet: str, scratch: str, runs: int) -> dict[str, ContenderResult]:
    """Run all the peers in turn, again and again."""
    measured: dict[str, list[tuple[ProcessRun, Answer | None]]] = {peer: [] for peer in peers}
    for _ in range(runs):
        for peer in peers:
            out = os.path.join(scratch, f"out-{peer}")
            os.makedirs(out)
            if peer == "scan":
                command = [LOGSTORE, "scan", bench_data.trees(fleet), "--jobs", "2", "--format", "parquet"]
                measured[peer].append((run_process(peer, [*command, "-o", f"{out}/rows.parquet"]), None))
            else:
                taken = run_process(peer, [sys.executable, "-m", "tools.benchmarks.peers", peer, fleet, out])
                measured[peer].append((taken, load_answer(out)))
            shutil.rmtree(out)
    return {peer: _median(found) for peer, found in measured.items()}


def _median(found: Sequence[tuple[ProcessRun, Answer | None]]) -> ContenderResult:
    answers = [answer for _, answer in found]
    sessions = [answer.session if answer else 0.0 for answer in answers]
    jvm = [answer.jvm_peak if answer else 0 for answer in answers]
    wall = [taken.wall for taken, _ in found]
    job = [answer.job if answer and answer.job else taken.wall for taken, answer in found]
    peak = max([taken.peak for taken, _ in found] + jvm)
    return ContenderResult(
        statistics.median(wall), statistics.median(job), statistics.median(sessions), peak, answers[-1]
    )


def _report(title: str, found: dict[str, ContenderResult]) -> bool:
    """Print the figures; True when all answers are the same."""
    print(f"\n{title}\n{'':16}{'wall s':>9}{'session s':>11}{'job s':>9}{'peak MB':>9}")
    for peer, result in found.items():
        print(f"{peer:16}{result.wall:9.2f}{result.session:11.2f}{result.job:9.2f}{result.peak / (1 << 20):9.0f}")
    answers = {peer: result.answer for peer, result in found.items() if result.answer and peer != FLOOR}
    if not answers:
        return True
    first, *others = answers
    differing = [peer for peer in others if answers[peer].said != answers[first].said]
    for peer in (first, *differing):
        answer = answers[peer]
        counts = ", ".join(f"{verdict} {rows:,}" for verdict, (rows, _) in sorted(answer.totals.items()))
        print(f"  {peer}: {counts}; {answer.several_ids:,} topics under several IDs")
        told = ", ".join(f"{kind} {len(subjects):,}" for kind, subjects in answer.fleet.items())
        print(f"  {peer}: {len(answer.log_dirs):,} totals of log dirs and verdicts; of the fleet: {told or 'nothing'}")
    return report_target(
        not differing, f"the same answer from all: {', '.join(differing) or 'none'} differ from {first}"
    )


def _targets(found: dict[str, ContenderResult], rows: int) -> bool:
    met = True
    by_hand = MOST_TIME if rows >= MANY_ROWS else MOST_TIME_OF_FEW
    pairs = [("embedded", "duckdb", by_hand), ("spark", "spark-by-hand", MOST_SPARK_TIME)]
    if rows >= MANY_ROWS:
        pairs.append(("spark", "embedded", MOST_SPARK_OVERHEAD))
    for ours, theirs, most in pairs:
        if ours in found and theirs in found:
            ratio = found[ours].job / found[theirs].job
            met &= report_target(ratio <= most, f"{ours} / {theirs}, time: {ratio:.2f}, target {most}")
    if "embedded" in found and "duckdb" in found:
        ratio = found["embedded"].peak / found["duckdb"].peak
        met &= report_target(ratio <= MOST_MEMORY, f"embedded / duckdb, peak memory: {ratio:.2f}, target {MOST_MEMORY}")
    for peer in ("embedded", "duckdb"):
        if peer in found and FLOOR in found:
            time, peak = found[peer].job / found[FLOOR].job, found[peer].peak / found[FLOOR].peak
            print(f"          {peer} / floor, time: {time:.2f}, peak memory: {peak:.2f}; a floor is no target")
    return met


def _growth(sizes: dict[int, dict[str, ContenderResult]]) -> bool:
    """Compare each size with the one before: near linear is what grows hardly more than the fleet."""
    met = True
    for small, large in zip(list(sizes), list(sizes)[1:], strict=False):
        for peer in ("embedded", "spark"):
            if peer in sizes[small] and peer in sizes[large]:
                slower = sizes[large][peer].job / sizes[small][peer].job
                most = MOST_GROWTH * large / small
                met &= report_target(
                    slower <= most, f"{peer}, {large / small:g} x the replicas: {slower:.1f} x the time"
                )
    return met


def _tree_targets(found: dict[str, ContenderResult]) -> bool:
    if not {"scan", "spark-trees"} <= set(found):
        return True
    ratio = found["spark-trees"].job / found["scan"].wall
    return report_target(
        ratio <= MOST_TREE_TIME, f"spark-trees / scan, without the session: {ratio:.2f}, target {MOST_TREE_TIME}"
    )


if __name__ == "__main__":
    sys.exit(main())
