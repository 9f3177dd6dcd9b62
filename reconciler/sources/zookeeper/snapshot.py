"""A ZooKeeper snapshot file as a metadata source: choose the file, open it, and find the cluster in it.

Of the transaction log beside a snapshot only the times are read (``transactions``). So changes after the snapshot's
zxid are unknown, and the state says so. Source: FACTS §8; KIP516-11; KIP37-4.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from logstore.parallel import paused_gc
from reconciler.desired import DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.files import first_bytes
from reconciler.sources.zookeeper import jute, znodes
from reconciler.sources.zookeeper.jute import ZooKeeperSnapshot
from reconciler.sources.zookeeper.state import assemble
from reconciler.sources.zookeeper.transactions import last_spoken_for
from reconciler.text import listed

DATA_DIR = "version-2"
SHOWN = 5
"""The most snapshots of which a message says what is wrong."""

MAX_UNPACKED_BYTES = 1 << 30
"""A compressed snapshot that unpacks to more bytes is refused."""

MOST_TIMES, ALWAYS_UNPACKED = 100, 4 << 20
"""So is one that unpacks to more than this many times its own size, once that is more than 4 MiB: nodes carry ids and
times of their own, so a server's snapshot packs to a twentieth or so, and what packs better is made to cost time."""

_NAME = re.compile(r"snapshot\.([0-9a-f]{1,16})(\.gz|\.snappy)?", re.ASCII)


def is_data_dir(folder: str) -> bool:
    """Whether a folder is one in which a ZooKeeper keeps its snapshots."""
    return os.path.basename(os.path.normpath(folder)) == DATA_DIR and recognises(folder)


def recognises(path: str) -> bool:
    """Whether the path is a snapshot file, by name or first bytes, or a folder that holds one (or its version-2)."""
    if os.path.isdir(path):
        try:
            return bool(_snapshots(path))
        except OSError:
            return os.path.basename(os.path.normpath(path)) == DATA_DIR
    if not os.path.isfile(path):
        return False
    return _NAME.fullmatch(os.path.basename(path)) is not None or first_bytes(path, len(jute.MAGIC)) == jute.MAGIC


def load(path: str) -> DesiredState:
    """Read a snapshot file, or the newest sound one of a folder; newer damaged ones become problems.

    Raises:
        UsageError: no such path, or its folder cannot be listed.
        MetadataError: no snapshot there, none is sound, or several clusters keep their nodes in it.
    """
    if not os.path.lexists(path):
        raise UsageError(f"{path}: no such file or directory")
    if os.path.isfile(path):
        return _load_file(path, path)
    if not os.path.isdir(path):
        raise UsageError(f"{path} is neither a file nor a folder")
    try:
        files = _snapshots(path)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be looked at: {error.strerror or error}") from error
    if not files:
        raise MetadataError(f"{path} holds no snapshot.<zxid> file, nor does {DATA_DIR} below it")
    failures: list[str] = []
    for file in files:
        try:
            state = _load_file(file, path)
        except MetadataError as error:
            failures.append(f"{os.path.basename(file)} is passed over: {error}")
        else:
            problems = (*failures, *state.identity.problems)
            early = (*failures, *state.identity.ends_early)
            return replace(state, identity=replace(state.identity, problems=problems, ends_early=early))
    raise MetadataError(f"{path}: none of {len(files)} snapshots is sound: {'; '.join(failures[:SHOWN])}")


def _snapshots(folder: str) -> list[str]:
    """The snapshot files of a folder, or else of its ``version-2``, newest zxid first."""
    found = [(int(match[1], 16), name) for name in os.listdir(folder) if (match := _NAME.fullmatch(name))]
    below = os.path.join(folder, DATA_DIR)
    if not found and os.path.isdir(below):
        return _snapshots(below)
    return [os.path.join(folder, name) for _, name in sorted(found, reverse=True)]


def _load_file(file: str, location: str) -> DesiredState:
    name = _NAME.fullmatch(os.path.basename(file))
    with paused_gc(), _opened(file) as raw:
        up_to = int(name[1], 16) if name else None
        snapshot = jute.read(_unpacked(raw, file), file, znodes.keep, up_to=up_to)
        digest = hashlib.sha256(raw).hexdigest()  # last, because the first bytes may say that it is no snapshot
        zxid = snapshot.last_zxid if up_to is None else up_to
        identity = MetadataIdentity("zookeeper-snapshot", location, offset=zxid, digest=digest)
        return _state(snapshot, _dated(identity, snapshot, file, up_to), file)


def _dated(identity: MetadataIdentity, snapshot: ZooKeeperSnapshot, file: str, up_to: int | None) -> MetadataIdentity:
    """Say as of when a snapshot speaks: by the log beside it where that has its last transaction, else by its nodes."""
    spoken = None
    if up_to is not None:
        folder = os.path.dirname(os.path.abspath(file))
        spoken = last_spoken_for(folder, up_to, znodes.keep, snapshot.owners)
    if spoken is None or up_to is None:
        rests_on = "the newest of its nodes, because its last transaction is in no log.<zxid> file beside it"
        return replace(identity, timestamp_ms=snapshot.modified_ms or None, as_of_from=rests_on)
    rests_on = f"the time of its last transaction {up_to:#x} in the log beside it"
    if spoken.last_zxid > up_to:
        rests_on += f", and up to {spoken.last_zxid:#x} nothing changed that is read here"
    return replace(identity, timestamp_ms=spoken.as_of_ms, as_of_from=rests_on)


@contextmanager
def _opened(path: str) -> Iterator[jute.Buffer]:
    """Map the bytes of a regular file."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                yield b""
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                yield mapped
    except OSError as error:
        raise MetadataError(f"{path} cannot be read: {error.strerror or error}") from error


def _unpacked(raw: jute.Buffer, file: str) -> jute.Buffer:
    if file.endswith(".snappy"):
        raise MetadataError(
            f"{file} is compressed with snappy, which is not read here: unpack it, or give another snapshot"
        )
    if not file.endswith(".gz"):
        return raw
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    most = min(MAX_UNPACKED_BYTES, max(ALWAYS_UNPACKED, MOST_TIMES * len(raw)))
    try:
        data = unpacker.decompress(raw, most)
    except zlib.error as error:
        raise MetadataError(f"{file} is no sound gzip file: {error}") from error
    if unpacker.unconsumed_tail:
        raise MetadataError(f"{file} has {len(raw)} bytes and unpacks to more than {most}, the most that is read of it")
    if not unpacker.eof:
        raise MetadataError(f"{file} is no sound gzip file: it is cut short")
    return data


def _state(snapshot: ZooKeeperSnapshot, identity: MetadataIdentity, file: str) -> DesiredState:
    """Assemble tables and identity from the nodes of one cluster."""
    root, problems = _root(snapshot, file)
    nodes = {path.removeprefix(root): node for path, node in snapshot.nodes.items() if path.startswith(f"{root}/")}
    limits = [
        f"of the transaction log after {os.path.basename(file)} only the times are read: changes after zxid "
        f"{identity.offset:#x} are unknown, and some of those that the server made while it wrote the file may be in it"
    ]
    if snapshot.problem:
        limits.append(snapshot.problem)
    return assemble(nodes, replace(identity, problems=tuple(problems)), limits)


def _root(snapshot: ZooKeeperSnapshot, file: str) -> tuple[str, list[str]]:
    """Find the chroot of the cluster, and the problems with it."""
    places = znodes.chroots(snapshot.nodes)
    if not places:
        return "", [f"there is no {znodes.TOPICS}: this ZooKeeper keeps no topics of a Kafka cluster"]
    if places == [""]:
        return "", []
    if "" in places:
        return "", [f"other clusters keep their nodes here too and are passed over: {listed(places[1:])}"]
    if len(places) > 1:
        raise MetadataError(f"{file} holds the nodes of {len(places)} clusters, and one is expected: {listed(places)}")
    return places[0], []
