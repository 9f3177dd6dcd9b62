"""One broker's log dirs as one: create, find, fence, stage, restore, move, purge, recover."""

from logstore.store.create_many import spread_over_log_dirs
from logstore.store.creation import metadata_bytes
from logstore.store.open_store import OpenStore, StoreOptions
from logstore.store.opening import recover_all
from logstore.store.recovery import recover
from logstore.store.replica_index import Entry, Replica, ReplicaIndex, replica_of
from logstore.store.store import LogStore

__all__ = [
    "Entry",
    "LogStore",
    "OpenStore",
    "Replica",
    "ReplicaIndex",
    "StoreOptions",
    "metadata_bytes",
    "recover",
    "recover_all",
    "replica_of",
    "spread_over_log_dirs",
]
