"""Builds the sample fleet: 12 brokers with two log dirs each, on a real disk, with damage of every kind.

::

    FLEET/broker-01/disk-1/            a log dir
    FLEET/controller/                  a controller's log dir, with __cluster_metadata-0
    FLEET/broker-06/disk-1.deleting/   replicas that were staged out of broker-06/disk-1
    FLEET/truth.json                   what a right audit must find, written by the builder

``sample_cluster`` has the desired state, ``sample_damage`` the damage, the bytes of the files come from
``sample_disks``; this module puts them together. The same seed and time give the same bytes.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from layout import checkpoint
from layout.directory_name import parse
from reconciler.verdicts import Verdict
from tools.fleet import sample_cluster, sample_damage
from tools.fleet.sample_cluster import BROKERS, DISKS
from tools.fleet.sample_disks import DiskWriter
from tools.fleet.sample_plan import Planted, PlantedFleet, SamplePlan, lay_out, log_dir
from tools.writers import write_metadata_dir

TRUTH_FILE = "truth.json"
TRUTH_VERSION = 1
METADATA_LOG_DIR = "controller"
CONTROLLER = 100
SNAPSHOT_END_OFFSET = 48_210
CONTROLLER_EPOCH = 4

_LOST_WITH_ITS_DIRECTORY = frozenset(
    {
        Verdict.STALE_ID,
        Verdict.NOT_ASSIGNED,
        Verdict.UNKNOWN_TOPIC,
        Verdict.STRAY,
        Verdict.MARKED_DELETE,
        Verdict.RENAMED,
    }
)
"""Verdicts that suggest a directory could go; where it is the only one with its data, that must be said."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The facts of a fleet that its builder knows, and that a right audit must find."""

    seed: int
    cluster_id: str
    metadata: str
    """Log dir that holds the KRaft metadata, below the fleet's folder, as are all log dirs here."""
    log_dirs: tuple[str, ...]
    ok: int
    """Live replicas with nothing wrong."""
    findings: tuple[Planted, ...]
    fleet: tuple[PlantedFleet, ...]

    @property
    def by_verdict(self) -> Mapping[str, int]:
        """How many findings of each verdict were planted."""
        return Counter(planted.verdict for planted in self.findings)


def build(folder: str, *, now_ms: int, seed: int = 516) -> Truth:
    """Build the fleet in a folder that is empty or does not exist yet, and write the truth about it beside it.

    The seed is of everything that is invented; what is staged is due a week before or after the present.

    Raises:
        FileExistsError: the folder holds something already, or is a file.
    """
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise FileExistsError(f"{folder} is not empty: the sample fleet needs a folder of its own")
    rng = random.Random(seed)
    plan = lay_out(sample_cluster.design(rng), rng, now_ms)
    for story in sample_damage.STORIES:
        story(plan)
    _write(plan, folder)
    truth = _truth_of(plan, seed)
    with open(os.path.join(folder, TRUTH_FILE), "w", encoding="utf-8") as file:
        json.dump({"schema_version": TRUTH_VERSION, **asdict(truth)}, file, indent=1)
    return truth


def load_truth(folder: str) -> Truth:
    """Read what :func:`build` wrote about the fleet in a folder."""
    with open(os.path.join(folder, TRUTH_FILE), encoding="utf-8") as file:
        document = json.load(file)
    return Truth(
        seed=document["seed"],
        cluster_id=document["cluster_id"],
        metadata=document["metadata"],
        log_dirs=tuple(document["log_dirs"]),
        ok=document["ok"],
        findings=tuple(Planted(**entry) for entry in document["findings"]),
        fleet=tuple(PlantedFleet(**entry) for entry in document["fleet"]),
    )


def _write(plan: SamplePlan, folder: str) -> None:
    """Write everything that is planned, with checkpoints that fit what lies in each log dir."""
    disks = DiskWriter(folder, plan.rng)
    end_offsets = {path: disks.partition(path, replica.metadata) for path, replica in plan.replicas.items()}
    offsets: dict[str, dict[tuple[str, int], int]] = {}
    for home, name in plan.live():
        read = parse(name)
        assert read.topic is not None and read.partition is not None
        offsets.setdefault(home, {})[read.topic, read.partition] = end_offsets[f"{home}/{name}"]
    for node in range(1, BROKERS + 1):
        for disk in range(DISKS):
            _write_log_dir(plan, disks, node, disk, offsets.get(log_dir(node, disk), {}))
    for path in plan.folders:
        disks.folder(path)
    for path, content in plan.files.items():
        disks.file(path, content)
    write_metadata_dir(
        os.path.join(folder, METADATA_LOG_DIR),
        snapshot=sample_cluster.snapshot_records(plan.cluster),
        end_offset=SNAPSHOT_END_OFFSET,
        log=sample_cluster.log_records(plan.cluster),
        epoch=CONTROLLER_EPOCH,
        timestamp_ms=plan.now_ms - 90_000,
        cluster_id=plan.cluster.cluster_id,
        node_id=CONTROLLER,
    )
    disks.date(plan.now_ms - 3_600_000)


def _write_log_dir(
    plan: SamplePlan, disks: DiskWriter, node: int, disk: int, offsets: Mapping[tuple[str, int], int]
) -> None:
    """Write what a log dir holds beside its partition dirs; nothing at all where no disk is mounted."""
    home = log_dir(node, disk)
    disks.folder(home)
    if home in plan.unmounted:
        return
    registered = plan.cluster.directory_ids[node]
    cluster_id = plan.foreign_disks.get(home, plan.cluster.cluster_id)
    # A disk of another cluster is a clone here, so it still carries the directory ID of the disk it was made from.
    disks.identity(home, cluster_id, node, registered[disk % len(registered)])
    held = {
        name: dict(offsets) for name in (checkpoint.RECOVERY_POINT_CHECKPOINT, checkpoint.HIGH_WATERMARK_CHECKPOINT)
    }
    for where, file, topic, partition in plan.forgotten:
        if where == home:
            held[file][topic, partition] = plan.rng.randint(1, 5000)
    disks.checkpoints(home, held)


def _truth_of(plan: SamplePlan, seed: int) -> Truth:
    """Count what is right, and add the fleet findings that follow from several directories together."""
    found = {f"{planted.log_dir}/{planted.name}" for planted in plan.findings}
    return Truth(
        seed=seed,
        cluster_id=plan.cluster.cluster_id,
        metadata=METADATA_LOG_DIR,
        log_dirs=tuple(log_dir(node, disk) for node in range(1, BROKERS + 1) for disk in range(DISKS)),
        ok=sum(f"{home}/{name}" not in found for home, name in plan.live()),
        findings=tuple(sorted(plan.findings)),
        fleet=tuple(sorted([*plan.fleet, *_only_copies(plan)])),
    )


def _only_copies(plan: SamplePlan) -> list[PlantedFleet]:
    """Directories that could go by their verdict, and are the only ones with their topic ID and partition, by topic."""
    copies = Counter((replica.topic_id, replica.partition) for replica in plan.replicas.values())
    alone = set()
    for planted in plan.findings:
        replica = plan.replicas.get(f"{planted.log_dir}/{planted.name}")
        if replica is None or replica.topic_id is None or planted.verdict not in _LOST_WITH_ITS_DIRECTORY:
            continue
        if copies[replica.topic_id, replica.partition] == 1:
            alone.add((parse(planted.name).topic or "", replica.topic_id, planted.verdict))
    return [PlantedFleet("ONLY_KNOWN_COPY", topic) for topic, _, _ in alone]
