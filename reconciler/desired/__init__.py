"""What a cluster wants on which broker, whose word that is, how complete and how old."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.desired.mode import Mode
    from reconciler.desired.scope import (
        BrokerKey,
        JudgedBroker,
        RegisteredLogDir,
        by_cluster,
        is_own_copy,
        registered_log_dirs,
        speaking,
    )
    from reconciler.desired.state import (
        BROKER_SCHEMA,
        DESIRED_VERSION,
        REPLICA_SCHEMA,
        TOPIC_SCHEMA,
        Completeness,
        DesiredBuilder,
        DesiredState,
        MetadataIdentity,
        SavedTable,
        check_columns,
        in_full,
        in_memory,
        is_none_in_sync,
        is_only_in_sync,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "mode": ("Mode",),
            "scope": (
                "BrokerKey",
                "RegisteredLogDir",
                "JudgedBroker",
                "by_cluster",
                "is_own_copy",
                "registered_log_dirs",
                "speaking",
            ),
            "state": (
                "BROKER_SCHEMA",
                "Completeness",
                "DESIRED_VERSION",
                "DesiredBuilder",
                "DesiredState",
                "MetadataIdentity",
                "REPLICA_SCHEMA",
                "SavedTable",
                "TOPIC_SCHEMA",
                "check_columns",
                "in_full",
                "in_memory",
                "is_none_in_sync",
                "is_only_in_sync",
            ),
        },
    )

__all__ = [
    "BROKER_SCHEMA",
    "DESIRED_VERSION",
    "REPLICA_SCHEMA",
    "TOPIC_SCHEMA",
    "BrokerKey",
    "Completeness",
    "DesiredBuilder",
    "DesiredState",
    "JudgedBroker",
    "MetadataIdentity",
    "Mode",
    "RegisteredLogDir",
    "SavedTable",
    "by_cluster",
    "check_columns",
    "in_full",
    "in_memory",
    "is_none_in_sync",
    "is_only_in_sync",
    "is_own_copy",
    "registered_log_dirs",
    "speaking",
]
