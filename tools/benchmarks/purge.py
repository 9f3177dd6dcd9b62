"""Measures ``logstore purge`` against ``rm -rf`` of the same staged directories: whole processes, in turn, on a disk.

Before each run the same tree is built anew and staged through the engine, and the disk is synced, so that no run pays
for earlier writes. The purge reads the ledger, writes to it, weighs every file, syncs, and reports; ``rm`` does none of
that. Both are whole processes, start included. A second means nothing on another machine, so the targets are ratios;
two ``rm`` at once, each over its share, tell what a second worker can win on this disk at all.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from layout.ids import TopicId
from layout.scheme import LEDGER_FILE, sibling_staging_root
from layout.topic import TopicPartition
from logstore.log_dir import LogDir
from logstore.staging import Candidate, stage
from tools.benchmarks import trees as bench_trees
from tools.benchmarks.process import ProcessRun, report_target, run_process

LOGSTORE = str(Path(sys.executable).with_name("logstore"))
RM, TWO_RM, ONE, TWO = "rm -rf", "rm -rf, 2 at once", "logstore purge, 1 worker", "logstore purge, 2 workers"
_SHARED_OUT = 'cd "$1" && ls -U | xargs -P 2 -n 1000 rm -rf --'
ON_DISK, IN_MEMORY = {ONE: 1.05, TWO: 0.65}, {ONE: 1.10, TWO: 0.65}
MOST_PROCESSOR = 1.3
LONG_AGO_MS = 1_700_000_000_000

_BATCH = 1000


def main(argv: Sequence[str] | None = None) -> int:
    """Build, purge, print, again and again. Exit code 1 when a target is missed."""
    options = _options(argv)
    logging.disable(logging.WARNING)  # staging warns of each replica
    results: dict[str, list[ProcessRun]] = {RM: [], TWO_RM: [], ONE: [], TWO: []}
    with tempfile.TemporaryDirectory(prefix="logstore-bench-", dir=options.folder) as folder:
        log_dir = os.path.join(folder, "log-dir")
        commands = {
            RM: ["rm", "-rf", sibling_staging_root(log_dir)],
            TWO_RM: ["sh", "-c", _SHARED_OUT, "sh", sibling_staging_root(log_dir)],
            ONE: [LOGSTORE, "purge", log_dir, "--quiet", "--workers", "1"],
            TWO: [LOGSTORE, "purge", log_dir, "--quiet", "--workers", "2"],
        }
        print(f"{options.runs} runs of {options.dirs:,} staged directories of {bench_trees.FILES} files in {folder}")
        for _ in range(options.runs):
            for name, command in commands.items():
                build(log_dir, options.dirs)
                subprocess.run(["sync", "--file-system", folder], check=True)
                results[name].append(run_process(name, command))
                _check_gone(log_dir)
                shutil.rmtree(log_dir)
        targets = IN_MEMORY if _is_memory(folder) else ON_DISK
    return 0 if _report(results, options.dirs, targets) else 1


def build(path: str, directories: int) -> None:
    """Make a real broker's log dir, and stage every replica of it beside it, due long ago."""
    bench_trees.build_log_dir(Path(path), directories)
    with LogDir.open(path) as log_dir:
        for start in range(0, directories, _BATCH):
            numbers = range(start, min(start + _BATCH, directories))
            outcome = stage(log_dir, [_candidate(number) for number in numbers], LONG_AGO_MS)
            assert not outcome.refused, outcome.refused[0].reason


def _candidate(number: int) -> Candidate:
    topic, partition = divmod(number, bench_trees.PARTITIONS)
    name, topic_id = f"topic-{topic:05}", TopicId((topic + 1).to_bytes(16, "big"))
    return Candidate(f"{name}-{partition}", TopicPartition(name, partition), topic_id, "STALE_ID", "a benchmark", 0)


def _check_gone(log_dir: str) -> None:
    root = sibling_staging_root(log_dir)
    left = set(os.listdir(root)) - {LEDGER_FILE} if os.path.isdir(root) else set()
    if left:
        raise SystemExit(f"{len(left)} directories were left in {root}, so nothing was measured")


def _is_memory(folder: str) -> bool:
    command = ["stat", "--file-system", "--format=%T", folder]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == "tmpfs"


def _report(results: dict[str, list[ProcessRun]], directories: int, targets: Mapping[str, float]) -> bool:
    """Print the figures and the targets; True when all are met."""
    print(f"\n{'':28}{'wall s':>8}{'cpu s':>8}{'µs/dir':>8}{'peak MB':>9}   median of {len(results[RM])}")
    for name, runs in results.items():
        wall, processor = (statistics.median(getattr(run, what) for run in runs) for what in ("wall", "processor"))
        peak = max(run.peak for run in runs) / (1 << 20)
        print(f"{name:28}{wall:8.2f}{processor:8.2f}{1e6 * wall / directories:8.1f}{peak:9.0f}")
    met = True
    for name, most in targets.items():
        ratio, text = _against_rm(results, name)
        met &= report_target(ratio <= most, f"{text}, target {most}")
        used = [ours.processor / theirs.processor for ours, theirs in zip(results[name], results[RM], strict=True)]
        text = f"{name} / {RM}, processor time: {statistics.median(used):.2f}, target {MOST_PROCESSOR}"
        met &= report_target(statistics.median(used) <= MOST_PROCESSOR, text)
    print(f"          {_against_rm(results, TWO_RM)[1]}")
    return met


def _against_rm(results: dict[str, list[ProcessRun]], name: str) -> tuple[float, str]:
    """The median ratio of a contender and ``rm``, and a text with its spread.

    Each run is compared with the run of ``rm`` beside it, because other load on the disk changes every minute.
    """
    ratios = [ours.wall / theirs.wall for ours, theirs in zip(results[name], results[RM], strict=True)]
    ratio = statistics.median(ratios)
    return ratio, f"{name} / {RM}: {ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("tools/bench purge", description="Measures logstore purge against rm -rf.")
    parser.add_argument("--dirs", type=int, default=100_000, metavar="N", help="staged directories [100000]")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each [3]")
    parser.add_argument("--folder", metavar="DIR", help="where to build, on the disk to measure [a temporary folder]")
    options = parser.parse_args(argv)
    if options.folder and not os.path.isdir(options.folder):
        parser.error(f"--folder: {options.folder} is no directory")
    if min(options.runs, options.dirs) < 1:
        parser.error("--dirs and --runs want numbers from 1 on")
    return options


if __name__ == "__main__":
    sys.exit(main())
