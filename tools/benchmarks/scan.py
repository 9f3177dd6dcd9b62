"""Measures ``logstore scan`` on one log dir against its peers: shell pipelines, a C program, and everyday Python.

Every figure is of whole processes, start and output included. All peers run in turn on the same tree, several times,
and the median counts. A second means nothing on another machine, so the targets are ratios, and memory.
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
from pathlib import Path

from tools.benchmarks import trees as bench_trees
from tools.benchmarks.process import ProcessRun, compiled, report_target, run_process

YARDSTICK = Path(__file__).with_name("scan.c")
LOGSTORE = str(Path(sys.executable).with_name("logstore"))
DROP_CACHES = "/proc/sys/vm/drop_caches"
MOST_MEMORY = 250 << 20

# In the shell scripts $1 is the log dir and $2 the output. {id} is the place where awk may read the topic ID too.
_FIND = r"""find "$1" -mindepth 2 -maxdepth 2 -type f """
_WEIGH = (
    _FIND
    + r"""-printf '%h\t%f\t%s\t%b\t%T@\n' | awk -F'\t' '
    { files[$1]++; bytes[$1] += $3; disk[$1] += 512 * $4; if ($5 > newest[$1]) newest[$1] = $5 }
    $2 ~ /\.(deleted|cleaned|swap|tmp|part)$/ { leftovers[$1]++ }
    {id}
    END { for (d in files) print d, bytes[d], disk[d], files[d], leftovers[d] + 0, newest[d], id[d] }' > "$2"
"""
)
_READ_ID = r"""$2 == "partition.metadata" {
        file = $1 "/" $2; while ((getline line < file) > 0) if (line ~ /^topic_id: /) id[$1] = substr(line, 11)
        close(file)
    }"""
_IDS = _FIND + r"""-name partition.metadata -print0 | xargs -0 awk '/^topic_id: / { print FILENAME, $2 }' >> "$2" """

_NAIVE = """
import sys
from pathlib import Path
with open(sys.argv[2], "w") as out:
    for directory in Path(sys.argv[1]).iterdir():
        if directory.is_dir():
            lines = (directory / "partition.metadata").read_text().splitlines()
            row = [directory.name, *directory.name.rsplit("-", 1), lines[1].split(": ")[1]]
            if sys.argv[3:] == ["sizes"]:
                found = [file.stat() for file in directory.iterdir() if file.is_file()]
                row += [sum(f.st_size for f in found), sum(512 * f.st_blocks for f in found), len(found)]
                row += [max(f.st_mtime for f in found)]
            print(*row, file=out)
"""

_BARE = """
import os, sys
log_dir, sizes = sys.argv[1] + "/", sys.argv[2:] == ["sizes"]
for name in os.listdir(log_dir):
    directory = log_dir + name
    try:
        descriptor = os.open(directory + "/partition.metadata", os.O_RDONLY)
    except OSError:
        continue
    os.read(descriptor, 256)
    os.close(descriptor)
    if sizes:
        for file in os.listdir(directory):
            os.lstat(directory + "/" + file)
"""

OURS, OURS_TWICE, OUR_IDS, OUR_IDS_TWICE = "logstore", "logstore, 2 jobs", "logstore, IDs", "logstore, IDs, 2 jobs"
FIND, FIND_ONCE, FIND_IDS = "find | awk, twice", "find | awk, once", "find | xargs awk, IDs"
C, C_IDS, NAIVE, NAIVE_IDS = "C", "C, IDs", "pathlib", "pathlib, IDs"
BARE, BARE_IDS = "bare calls", "bare calls, IDs"
"""The system calls of our scan made from a loop in Python that keeps nothing: what one process cannot go below."""


@dataclass(frozen=True, slots=True)
class RatioTarget:
    """The first peer should take at most ``most`` times as long as the second."""

    ours: str
    theirs: str
    most: float
    floor: str | None = None
    """A peer that does less than ours has to; its ratio is printed beside the target."""


WARM = (
    RatioTarget(OURS, FIND, 0.75, BARE),
    RatioTarget(OURS_TWICE, FIND, 0.45),
    RatioTarget(OUR_IDS, FIND_IDS, 0.7, BARE_IDS),
    RatioTarget(OURS, C, 1.7, BARE),
    RatioTarget(OUR_IDS, C_IDS, 1.7, BARE_IDS),
    RatioTarget(OUR_IDS_TWICE, C_IDS, 1.35),
)
COLD = (
    RatioTarget(OURS, FIND, 0.45),
    RatioTarget(OURS_TWICE, FIND, 0.45),
)
"""With one process, and with two, which is what a scan takes by itself on two processors."""


def main(argv: Sequence[str] | None = None) -> int:
    """Build the trees, measure, print. Exit code 1 when a target is missed."""
    options = _options(argv)
    met = True
    with tempfile.TemporaryDirectory(prefix="logstore-bench-", dir=options.folder) as folder:
        out = os.path.join(folder, "out")
        for directories in options.dirs:
            log_dir = Path(folder, f"log-dir-{directories}")
            print(f"building {directories:,} partition dirs of {bench_trees.FILES} files in {log_dir}", flush=True)
            bench_trees.build_log_dir(log_dir, directories)
            peers = _peers(str(log_dir), out, compiled(YARDSTICK, folder))
            met &= _report("warm", _measure(peers, options.runs, cold=False), WARM, directories)
            if options.cold:
                some = {name: peers[name] for name in (OURS, OURS_TWICE, OUR_IDS, FIND, FIND_IDS, C) if name in peers}
                met &= _report("cold", _measure(some, options.runs, cold=True), COLD, directories)
            shutil.rmtree(log_dir)
    return 0 if met else 1


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("tools/bench scan", description="Measures logstore scan against its peers.")
    parser.add_argument("--dirs", type=int, nargs="+", default=[100_000], metavar="N", help="partition dirs [100000]")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each peer [3]")
    parser.add_argument("--cold", action="store_true", help="measure with dropped caches as well; needs root")
    parser.add_argument("--folder", metavar="DIR", help="where to build the trees [a temporary folder]")
    options = parser.parse_args(argv)
    if options.folder and not os.path.isdir(options.folder):
        parser.error(f"--folder: {options.folder} is no directory")
    if min(options.runs, *options.dirs) < 1:
        parser.error("--dirs and --runs want numbers from 1 on")
    if options.cold and not os.access(DROP_CACHES, os.W_OK):
        parser.error(f"--cold: {DROP_CACHES} cannot be written")
    return options


def _peers(log_dir: str, out: str, yardstick: str | None) -> dict[str, list[str]]:
    """Command lines by the peers' names."""

    def ours(*flags: str) -> list[str]:
        return [LOGSTORE, "scan", log_dir, *flags, "--format", "arrow", "-o", f"{out}.arrow"]

    def shell(script: str) -> list[str]:
        return ["bash", "-c", script, "bench", log_dir, out]

    def naive(*flags: str) -> list[str]:
        return [sys.executable, "-c", _NAIVE, log_dir, out, *flags]

    def bare(*flags: str) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", _BARE, log_dir, *flags]

    peers = {
        OURS: ours("--jobs", "1"),
        OURS_TWICE: ours("--jobs", "2"),
        FIND: shell(_WEIGH.replace("{id}", "") + _IDS),
        FIND_ONCE: shell(_WEIGH.replace("{id}", _READ_ID)),
        NAIVE: naive("sizes"),
        BARE: bare("sizes"),
        OUR_IDS: ours("--jobs", "1", "--no-sizes"),
        OUR_IDS_TWICE: ours("--jobs", "2", "--no-sizes"),
        FIND_IDS: shell(': > "$2"; ' + _IDS),
        NAIVE_IDS: naive(),
        BARE_IDS: bare(),
    }
    if yardstick:
        peers[C] = shell(f'\'{yardstick}\' --sizes "$1" > "$2"')
        peers[C_IDS] = shell(f'\'{yardstick}\' "$1" > "$2"')
    return peers


def _measure(peers: dict[str, list[str]], runs: int, *, cold: bool) -> dict[str, list[ProcessRun]]:
    """Run all the peers in turn, again and again; warm, one more round goes before, and does not count."""
    results: dict[str, list[ProcessRun]] = {name: [] for name in peers}
    for number in range(runs if cold else runs + 1):
        for name, command in peers.items():
            if cold:
                _drop_caches()
            run = run_process(name, command)
            if cold or number:
                results[name].append(run)
    return results


def _drop_caches() -> None:
    os.sync()
    with open(DROP_CACHES, "w", encoding="ascii") as control:
        control.write("3")


def _report(title: str, results: dict[str, list[ProcessRun]], targets: Sequence[RatioTarget], directories: int) -> bool:
    """Print the figures and the targets; True when all are met."""
    print(f"\n{directories:,} partition dirs, {title} caches, median of {len(next(iter(results.values())))}")
    print(f"{'':24}{'wall s':>8}{'cpu s':>8}{'µs/dir':>8}{'peak MB':>9}")
    wall = {name: statistics.median(run.wall for run in runs) for name, runs in results.items()}
    peak = {name: max(run.peak for run in runs) for name, runs in results.items()}
    for name, runs in results.items():
        processor = statistics.median(run.processor for run in runs)
        each = 1e6 * wall[name] / directories
        print(f"{name:24}{wall[name]:8.2f}{processor:8.2f}{each:8.1f}{peak[name] / (1 << 20):9.0f}")
    met = True
    for target in targets:
        if target.ours in wall and target.theirs in wall:
            theirs = wall[target.theirs]
            ratio, floor = wall[target.ours] / theirs, wall.get(target.floor or "")
            below = "" if floor is None else f" ({target.floor}: {floor / theirs:.2f})"
            text = f"{target.ours} / {target.theirs}: {ratio:.2f}, target {target.most}{below}"
            met &= report_target(ratio <= target.most, text)
    largest = max(peak[name] for name in peak if name.startswith("logstore"))
    return report_target(largest <= MOST_MEMORY, f"memory: {largest >> 20} MB, target {MOST_MEMORY >> 20} MB") and met


if __name__ == "__main__":
    sys.exit(main())
