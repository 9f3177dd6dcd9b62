"""Where the desired state comes from: one module for each kind of source, and one that tells what a path is.

    kraft/                  a KRaft metadata directory or snapshot
    zookeeper_snapshot.py   a ZooKeeper snapshot file (jute.py: its bytes; znodes.py: what Kafka keeps in the nodes)
    request_json.py         LeaderAndIsr requests as JSON (json_fields.py: typed fields; request_state.py: their state)
    bulk.py                 loading much at once
    parquet.py              a desired state that was saved before
    locate.py               which of these a path or ``scheme:path`` is

Each source offers ``load(path) -> DesiredState``, and ``recognises(path) -> bool``, which looks at names and first
bytes only. Nothing here compares anything with a disk, and nothing here writes, but ``parquet.save``.
Source: DESIGN §7.
"""

from reconciler.sources.locate import find, load

__all__ = ["find", "load"]
