"""Scenes of two replicas of one name: copies on two disks, and one that was made after another went."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from layout import partition_metadata
from layout.ids import TopicId
from logstore import InconsistentTopicIdError
from logstore.fs import Directory, make_directory, remove_tree
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import Bench
from reconciler.simulator.drills.looking import offsets_of
from reconciler.simulator.drills.scenes.scene import AT, expect, made, restarted, with_offsets


def copies(bench: Bench, random: Random) -> None:
    """Stage one of two copies of a replica, on two disks; the other one goes on."""
    path, _ = made(bench, TopicId(random.randbytes(16)), random)
    (other,) = [each for each in bench.log_dirs if not path.startswith(f"{each}/")]
    bench.close()
    with Directory.open(other) as root:
        make_directory(bench.disks.disk, root, str(AT)).close()
    for name in sorted(os.listdir(path)):
        bench.write(f"{other}/{AT}", name, Path(path, name).read_bytes())
    bench.open()
    copies = [bench.store.get(AT), *bench.store.duplicates]
    expect("where a partition with two copies lies", {each.log_dir for each in copies}, set(bench.log_dirs))
    staged = random.choice(copies)
    outcome = bench.store.stage_copies({staged: ("DUPLICATE", "a drill")})
    expect("what is refused", list(outcome.refused), [])
    for _ in range(2):
        found = bench.store.find(AT)
        left = (set(bench.log_dirs) - {staged.log_dir}, 0)
        expect("what is live", ({each.log_dir for each in (found,) if each}, len(bench.store.duplicates)), left)
        restarted(bench, crash=random.random() < 0.5)


def successor(bench: Bench, random: Random) -> None:
    """Make a topic anew beside its staged replica, and crash; the new one keeps its offsets."""
    made(bench, TopicId(random.randbytes(16)), random)
    bench.store.stage([AT], "STALE_ID", "a drill")
    new_id = TopicId(random.randbytes(16))
    log_dir = bench.store.create(AT, new_id).log_dir
    offsets = with_offsets(bench, random)
    for _ in range(2):
        restarted(bench, crash=random.random() < 0.8)
        replica = bench.store.get(AT)
        expect("the topic ID of the successor", (replica.topic_id, replica.log_dir), (new_id, log_dir))
        expect("the offsets of the successor", offsets_of(log_dir, AT), offsets)


def unreadable(bench: Bench, random: Random) -> None:
    """Assign a topic ID to a replica whose own cannot be read, which is refused."""
    topic_id = TopicId(random.randbytes(16))
    path, _ = made(bench, topic_id, random)
    data = random.choice((b"", b"version: 0\n", b"version: 0\ntopic_id: ?", bytes(43), b"{"))
    bench.write(path, partition_metadata.FILE_NAME, data)
    restarted(bench, crash=random.random() < 0.5)
    wanted = random.choice((topic_id, TopicId(random.randbytes(16))))
    try:
        found = bench.store.assign_topic_id(AT, wanted)
    except InconsistentTopicIdError:
        expect("a partition.metadata that cannot be read", Path(path, partition_metadata.FILE_NAME).read_bytes(), data)
        return
    raise BrokenInvariantError(f"a topic ID is written over {data!r}: {found}")


def by_hand(bench: Bench, random: Random) -> None:
    """Make a replica anew where somebody has removed one of its name, of which a ledger and entries still speak."""
    path, offsets = made(bench, TopicId(random.randbytes(16)), random)
    is_staged = random.random() < 0.6
    if is_staged:
        bench.store.stage([AT], "STALE_ID", "a drill")
        (staged,) = [each for each in bench.store.staged() if each.record is not None]
        path = os.path.normpath(f"{staged.log_dir}/{staged.location}")
    log_dir = next(each for each in bench.store.log_dirs if path.startswith(each.path))
    bench.close()
    with Directory.open(os.path.dirname(path)) as parent:
        remove_tree(bench.disks.disk, parent, os.path.basename(path))
    bench.write_back()
    bench.open()
    new_id = TopicId(random.randbytes(16))
    bench.store.create(AT, new_id, directory_id=log_dir.identity.directory_id)
    own = with_offsets(bench, random) if random.random() < 0.4 else {}
    for _ in range(2):
        restarted(bench, crash=random.random() < 0.8)
        found = bench.store.get(AT)
        expect("the replica that was made anew", (found.topic_id, found.log_dir), (new_id, log_dir.path))
        expect(f"its offsets, when its former ones were {offsets},", offsets_of(log_dir.path, AT), own)
