"""Measures staging against bare renames in C, listing what is staged, opening a store, and a simulation on its disks.

Staging is timed inside the process, from the first look at a replica to the last sync, by batches of a thousand as the
store does it; the C program times its renames alone, and a loop in Python the same calls as the store's, but for the
syncs, with nothing round them. The same tree serves all, is put back in between, and the disk is synced then, so that
nobody's barriers pay for what was written before. The opening of a store is measured against a scan. A listing is
measured in processor time, without that of one ``listdir``; so are the replicas that a simulation makes on disks in
memory, and a FULL request that changes nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from layout.ours import parse_ledger
from layout.scheme import LEDGER_FILE
from tools.benchmarks import trees as bench_trees
from tools.benchmarks.process import compiled, report_target, run_process

YARDSTICK = Path(__file__).with_name("stage.c")
LOGSTORE = str(Path(sys.executable).with_name("logstore"))
MOST_RENAMES, MOST_CALLS, MOST_OPENING = 2.5, 4.0, 1.3
MOST_LISTING = 5.0
"""Microseconds of processor time for each directory that is listed."""

_MADE, _ASKED = 5_000, 15_000
MOST_MAKING, MOST_ASKED = 0.3, 3.0
"""Seconds of processor time for the replicas made; and microseconds for each partition of a FULL request."""

_STAGE = """
import sys, time
from logstore.fs import Disk
from logstore import StoreOptions
from logstore import LogStore

class Counting(Disk):
    calls = 0
    def __getattribute__(self, name):
        if name in ("create", "write", "truncate", "mkdir", "rename", "link", "unlink", "rmdir"):
            type(self).calls += 1
        return super().__getattribute__(name)

class NoSync(Disk):
    def sync(self, descriptor): pass
    def sync_file_system(self, descriptor): return True

disk = {"durable": Disk, "no-sync": NoSync, "counting": Counting}[sys.argv[2]]()
with LogStore.open([sys.argv[1]], StoreOptions(disk=disk)) as store:
    partitions = [replica.partition for replica in store.replicas()]
    Counting.calls = 0
    started = time.perf_counter()
    outcome = store.stage(partitions, "UNKNOWN_TOPIC", "the metadata knows neither the topic nor its topic ID")
    seconds = time.perf_counter() - started
assert not outcome.refused
print(Counting.calls / len(partitions) if sys.argv[2] == "counting" else seconds)
"""
_BARE = """
import os, sys, time
directory, plain = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, os.O_RDONLY | os.O_NOFOLLOW
log_dir = os.open(sys.argv[1], directory)
staging = os.open("deleting", directory, dir_fd=log_dir)
names = [name for name in os.listdir(log_dir) if "-" in name]
for name in names:  # as the opening of a store does before
    os.close(os.open(name + "/partition.metadata", plain, dir_fd=log_dir))

started = time.perf_counter()
for first in range(0, len(names), 1000):
    batch = names[first : first + 1000]
    file = os.open("ledger", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644, dir_fd=staging)
    os.write(file, bytes(300 * len(batch)))
    os.close(file)
    for name in batch:
        opened = os.open(name, directory | os.O_PATH, dir_fd=log_dir)
        os.fstat(opened)
        file = os.open("partition.metadata", plain, dir_fd=opened)
        os.read(file, 256)
        os.close(file)
        os.close(opened)
        os.rename(name, name, src_dir_fd=log_dir, dst_dir_fd=staging)
        os.stat(name, dir_fd=staging, follow_symlinks=False)
print(time.perf_counter() - started)
os.unlink("ledger", dir_fd=staging)
"""
_LIST = """
import os, sys, time
from logstore.log_dir import ReadOnlyLogDir
from logstore.staging import find_staged
with ReadOnlyLogDir.open(sys.argv[1]) as log_dir:
    started = time.process_time()
    names = os.listdir(sys.argv[1] + "/deleting")
    listed = time.process_time()
    found = find_staged(log_dir)
    print(time.process_time() - listed - (listed - started))
assert len(found) == len(names) - 1 and all(staged.record for staged in found)
"""
_SIMULATE = """
import sys, time
from random import Random
from layout.ids import TopicId
from layout.meta_properties import MetaProperties
from layout.topic import TopicPartition
from logstore import LogDir, LogStore, ManualClock, StoreOptions
from logstore.fs.crash_disk import MachineDisks
from reconciler import Broker
from reconciler.protocol import LeaderAndIsrRequest, PartitionState, RequestType, TopicState

what, count, random = sys.argv[1], int(sys.argv[2]), Random(1)
ids = {f"topic-{number}": TopicId.random(random.randbytes) for number in range(count // 50)}
with MachineDisks.in_memory() as disks:
    (path,) = disks.log_dirs
    LogDir.format(path, MetaProperties(1, "simulated", 1, None, scheme="flat"), disk=disks.disk).close()
    with LogStore.open(path, StoreOptions(clock=ManualClock(), disk=disks.disk)) as store:
        wanted = {TopicPartition(topic, each): topic_id for topic, topic_id in ids.items() for each in range(50)}
        started = time.process_time()
        store.create_many(wanted)
        seconds = time.process_time() - started
        assert len(store) == len(wanted) == count
        if what == "full":
            states = tuple(PartitionState(each, 1, 1, 1, (1,), 0, (1,)) for each in range(50))
            topics = tuple(TopicState(topic, topic_id, states) for topic, topic_id in ids.items())
            request = LeaderAndIsrRequest(1, 1, topics, 1, RequestType.FULL)
            broker = Broker(store)
            broker.handle(request)
            started = time.process_time()
            for _ in range(5):
                broker.handle(request)
            seconds = (time.process_time() - started) / 5
print(seconds)
"""
_OPEN = """
from logstore.parallel import do_without_pandas
do_without_pandas()
import sys
from logstore import LogStore
with LogStore.open(sys.argv[1:]) as store:
    assert len(store)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Build the trees, measure, print. Exit code 1 when a target is missed."""
    options = _options(argv)
    with tempfile.TemporaryDirectory(prefix="logstore-bench-", dir=options.folder) as folder:
        met = _staging(folder, options.replicas, options.runs)
        met = _opening(folder, options.dirs, options.runs) and met
        return 0 if _simulating(options.runs) and met else 1


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("tools/bench stage", description=__doc__)
    parser.add_argument("--replicas", type=int, default=10_000, metavar="N", help="replicas to stage [10000]")
    parser.add_argument("--dirs", type=int, default=100_000, metavar="N", help="replicas of the store to open [100000]")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each [3]")
    parser.add_argument("--folder", metavar="DIR", help="where to build the trees [a temporary folder]")
    options = parser.parse_args(argv)
    if options.folder and not os.path.isdir(options.folder):
        parser.error(f"--folder: {options.folder} is no directory")
    if min(options.runs, options.replicas, options.dirs) < 1:
        parser.error("--replicas, --dirs and --runs want numbers from 1 on")
    return options


def _staging(folder: str, replicas: int, runs: int) -> bool:
    log_dir = Path(folder, "log-dir")
    print(f"building {replicas:,} replicas of {bench_trees.FILES} files in {log_dir}", flush=True)
    bench_trees.build_log_dir(log_dir, replicas, ours=True)
    subprocess.run(["sync", "--file-system", log_dir], check=True)
    yardstick = compiled(YARDSTICK, folder)
    contenders: dict[str, Callable[[], float]] = {
        "durable": lambda: _python(_STAGE, str(log_dir), "durable"),
        "without syncs": lambda: _python(_STAGE, str(log_dir), "no-sync"),
        "Python, bare calls": lambda: _python(_BARE, str(log_dir)),
    }
    if yardstick:
        contenders["C, bare renames"] = lambda: _printed([yardstick, str(log_dir), str(log_dir / "deleting")])
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(runs + 1):
        for name, measure in contenders.items():
            taken = measure()
            _put_back(log_dir)
            if number:
                seconds[name].append(taken)
    calls = _python(_STAGE, str(log_dir), "counting")
    shutil.rmtree(log_dir)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"\nstaging {replicas:,} replicas by batches of 1,000, median of {runs}")
    for name, taken in median.items():
        print(f"{name:24}{taken:8.3f} s{1e6 * taken / replicas:8.1f} µs each")
    met = report_target(
        calls <= MOST_CALLS, f"calls that change the disk, per replica: {calls:.2f}, target {MOST_CALLS:.0f}"
    )
    if yardstick:
        ratio, floor = (median[name] / median["C, bare renames"] for name in ("durable", "Python, bare calls"))
        text = f"durable / C: {ratio:.2f}, target {MOST_RENAMES} (the same calls bare, without syncs: {floor:.2f})"
        met &= report_target(ratio <= MOST_RENAMES, text)
    return met


def _opening(folder: str, directories: int, runs: int) -> bool:
    log_dir = Path(folder, "store")
    print(f"\nbuilding {directories:,} replicas of {bench_trees.FILES} files in {log_dir}", flush=True)
    bench_trees.build_log_dir(log_dir, directories, ours=True)
    peers = {
        "open a store": [sys.executable, "-c", _OPEN, str(log_dir)],
        "scan --no-sizes": [LOGSTORE, "scan", str(log_dir), "--no-sizes", "--format", "arrow", "-o", f"{folder}/out"],
    }
    wall: dict[str, list[float]] = {name: [] for name in peers}
    for number in range(runs + 1):
        for name, command in peers.items():
            taken = run_process(name, command).wall
            if number:
                wall[name].append(taken)
    _python(_STAGE, str(log_dir), "no-sync")
    listing = 1e6 * statistics.median(_python(_LIST, str(log_dir)) for _ in range(runs)) / directories
    shutil.rmtree(log_dir)
    median = {name: statistics.median(values) for name, values in wall.items()}
    print(f"\nopening {directories:,} replicas, whole processes, and listing what is staged, median of {runs}")
    for name, taken in median.items():
        print(f"{name:24}{taken:8.3f} s")
    ratio = median["open a store"] / median["scan --no-sizes"]
    met = report_target(ratio <= MOST_OPENING, f"open / scan: {ratio:.2f}, target {MOST_OPENING}")
    text = f"processor time of a listing, each: {listing:.1f} µs, target {MOST_LISTING} µs"
    return report_target(listing <= MOST_LISTING, text) and met


def _simulating(runs: int) -> bool:
    made = statistics.median(_python(_SIMULATE, "create", str(_MADE)) for _ in range(runs))
    full = 1e6 * statistics.median(_python(_SIMULATE, "full", str(_ASKED)) for _ in range(runs)) / _ASKED
    print(f"\nin a simulation, processor time, median of {runs}")
    text = f"{_MADE:,} replicas made on a disk in memory: {made:.2f} s, target {MOST_MAKING} s"
    met = report_target(made <= MOST_MAKING, text)
    text = f"a FULL request of {_ASKED:,} partitions that changes nothing, each: {full:.1f} µs, target {MOST_ASKED} µs"
    return report_target(full <= MOST_ASKED, text) and met


def _python(script: str, *arguments: str) -> float:
    return _printed([sys.executable, "-c", script, *arguments])


def _printed(command: Sequence[str]) -> float:
    """Run a contender that prints its own figure."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def _put_back(log_dir: Path) -> None:
    """Rename what was staged back to where it was, without any ceremony, and sync that."""
    staging = log_dir / "deleting"
    ledger = staging / LEDGER_FILE
    entries = parse_ledger(ledger.read_bytes()).entries if ledger.exists() else {}
    ledger.unlink(missing_ok=True)
    for directory in list(staging.iterdir()):
        entry = entries.get(directory.name)
        assert entry is None or entry.record is not None
        directory.rename(log_dir / (directory.name if entry is None or entry.record is None else entry.record.path))
    subprocess.run(["sync", "--file-system", log_dir], check=True)


if __name__ == "__main__":
    sys.exit(main())
