"""Where the desired state comes from: one module for each kind of source, and one that tells what a spec is.

    kraft/                  a KRaft metadata directory or snapshot
    zookeeper_snapshot.py   a ZooKeeper snapshot file (jute.py: its bytes)
    zookeeper_live.py       a live ZooKeeper (zookeeper_reading.py: all its nodes as of one moment)
      znodes.py zookeeper_state.py      what Kafka keeps in the nodes, and the state of it, for both
    kafka_admin.py          a live cluster, by its brokers (kafka_admin_reading.py: what is asked, and when it is whole)
    kafka_topics.py         the output of kafka-topics --describe (kafka_topics_text.py: its lines)
    request_json.py         LeaderAndIsr requests as JSON (json_fields.py: typed fields)
    request_wire.py         LeaderAndIsr requests as bytes
      request_files.py request_state.py the files that requests lie in, and the state of them, for both
    first_bytes.py          a look at the beginning of any file
    parquet.py              a desired state that was saved before
    kinds.py                the table of these, each imported when something is asked of it
    locate.py               which of these a path, ``scheme:path`` or ``scheme:address`` is

Each source offers ``load(path) -> DesiredState``; those that are files also ``recognises(path) -> bool``, which looks
at names and first bytes only. Nothing here compares anything with a disk, nothing here changes a cluster, and nothing
here writes, but ``parquet.save``. A source that cannot be read whole is refused: a shorter list would make replicas
look unwanted.
Source: DESIGN §7.
"""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.sources.locate import candidates, find, load, newest_per_cluster, split_spec
    from reconciler.sources.parquet import is_saved_state, save_state
    from reconciler.sources.request_file import STANDARD_INPUT, read_request
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "locate": ("candidates", "find", "load", "newest_per_cluster", "split_spec"),
            "parquet": ("is_saved_state", "save_state"),
            "request_file": ("STANDARD_INPUT", "read_request"),
        },
    )

__all__ = [
    "STANDARD_INPUT",
    "candidates",
    "find",
    "is_saved_state",
    "load",
    "newest_per_cluster",
    "read_request",
    "save_state",
    "split_spec",
]
