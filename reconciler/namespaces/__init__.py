"""Configs and ACLs of the namespaces of a cluster in ZooKeeper: what holds for one, from where, and changes of it."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.namespaces.held import (
        HeldAcl,
        HeldConfig,
        changed_acls,
        changed_configs,
        check_namespace_name,
        held_acls,
        held_configs,
    )
    from reconciler.namespaces.write import NamespaceSeen, check_all_newer, read_namespace, write_acls, write_configs
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "held": (
                "HeldAcl",
                "HeldConfig",
                "changed_acls",
                "changed_configs",
                "check_namespace_name",
                "held_acls",
                "held_configs",
            ),
            "write": ("NamespaceSeen", "check_all_newer", "read_namespace", "write_acls", "write_configs"),
        },
    )

__all__ = [
    "HeldAcl",
    "HeldConfig",
    "NamespaceSeen",
    "changed_acls",
    "changed_configs",
    "check_all_newer",
    "check_namespace_name",
    "held_acls",
    "held_configs",
    "read_namespace",
    "write_acls",
    "write_configs",
]
