"""KRaft metadata from a metadata log dir or a snapshot, without a broker and without a JVM.

records.py     the frame of a metadata record, the key of a control record
batches.py     record batches: header, CRC-32C, codec, envelopes
image.py       the state that records give, played in order
commitment.py  how far the log is surely committed
files.py       snapshots and segments by name
replay.py      the newest state, and how far it can be trusted
source.py      that state as a desired state
encoding.py    records and batches as bytes, for drills and sample fleets
"""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.sources.kraft.batches import Batch, BrokenBatchError, read_batches
    from reconciler.sources.kraft.encoding import batch, control_record, proposed_record, record
    from reconciler.sources.kraft.files import find_metadata_dir, list_files, open_file
    from reconciler.sources.kraft.records import RecordDecoder, read_frame
    from reconciler.sources.kraft.source import load
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "batches": ("Batch", "BrokenBatchError", "read_batches"),
            "encoding": ("batch", "control_record", "proposed_record", "record"),
            "files": ("find_metadata_dir", "list_files", "open_file"),
            "records": ("RecordDecoder", "read_frame"),
            "source": ("load",),
        },
    )

__all__ = [
    "Batch",
    "BrokenBatchError",
    "RecordDecoder",
    "batch",
    "control_record",
    "find_metadata_dir",
    "list_files",
    "load",
    "open_file",
    "proposed_record",
    "read_batches",
    "read_frame",
    "record",
]
