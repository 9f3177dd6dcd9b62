"""One broker's log dirs as one store: create, find, fence, stage, restore, move, purge and recover replicas."""

from logstore.store.create import metadata_bytes, spread_over_log_dirs
from logstore.store.index import Entry, Replica, ReplicaIndex, entry_of, replica_of
from logstore.store.open import OpenStore, StoreOptions, recover_all
from logstore.store.recovery import recover
from logstore.store.store import LogStore

__all__ = [
    "Entry",
    "LogStore",
    "OpenStore",
    "Replica",
    "ReplicaIndex",
    "StoreOptions",
    "entry_of",
    "metadata_bytes",
    "recover",
    "recover_all",
    "replica_of",
    "spread_over_log_dirs",
]
