"""The columns of a scan's rows: one Arrow schema that every format, both audits and every inventory share.

What a row stands for, and what its words mean, is told by ``rows``.
"""

from __future__ import annotations

import pyarrow as pa

from logstore.rows.rows import SCHEMA_VERSION, VERSION_KEY

ROW_SCHEMA = pa.schema(
    [
        pa.field("host", pa.string()),  # name of the machine that scanned
        pa.field("cluster_id", pa.string()),  # cluster.id of meta.properties
        pa.field("node_id", pa.int32()),  # node.id or broker.id
        pa.field("directory_id", pa.string()),  # directory.id, base64url; null before Kafka 3.7
        pa.field("log_dir", pa.string()),  # absolute path; bytes that are not UTF-8 stand as \xNN
        pa.field("name", pa.string()),  # path below the log dir; "." for the log dir itself
        pa.field("kind", pa.string()),  # a Kind
        pa.field("namespace", pa.string()),  # tiers joined by ":"; "" is the default namespace
        pa.field("topic", pa.string()),  # full name, namespace included; null where none can be told
        pa.field("partition", pa.int32()),
        pa.field("topic_id", pa.string()),  # canonical base64url; null where the disk holds none
        pa.field("metadata_state", pa.string()),  # a MetadataState; null where none is expected
        pa.field("problem", pa.string()),  # one sentence, null where all is well
        pa.field("bytes", pa.int64()),  # sum of the files' lengths
        pa.field("disk_bytes", pa.int64()),  # what they occupy: 512 × st_blocks; preallocated indexes make it smaller
        pa.field("files", pa.int32()),
        pa.field("leftovers", pa.int32()),  # files with a transient suffix: .deleted, .cleaned, .swap, .tmp
        pa.field("segments", pa.int32()),  # .log files among them; a broker never leaves a replica without one
        pa.field("modified_ms", pa.int64()),  # newest mtime in the directory, ms since 1970
        pa.field("inode", pa.int64()),
        pa.field("due_ms", pa.int64()),  # staged only: when a purge may take it, ms since 1970
        pa.field("end_offset", pa.int64()),  # recovery point of the checkpoint: a lower bound of the log end offset
        pa.field("leader_epoch", pa.int32()),  # last epoch of leader-epoch-checkpoint; read for duplicates only
        pa.field("scanned_ms", pa.int64()),  # when this log dir was looked at, ms since 1970
        pa.field("clean_shutdown", pa.bool_()),  # the log dir has the marker that a clean stop leaves
    ],
    metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()},
)
