"""Namespaces, topic names and schemes of a store: every change is planned, can be shown, and is done wholly or not."""

from logstore.namespaces.apply import (
    carry_out,
    convert,
    create_namespace,
    delete_namespace,
    move_namespace,
    move_topic,
    rename_topic,
)
from logstore.namespaces.move import plan_move_namespace
from logstore.namespaces.namespaces import list_namespaces, plan_create, plan_delete
from logstore.namespaces.plan import PlannedChange
from logstore.namespaces.rename import plan_move, plan_rename
from logstore.namespaces.schemes import plan_convert

__all__ = [
    "PlannedChange",
    "carry_out",
    "convert",
    "create_namespace",
    "delete_namespace",
    "list_namespaces",
    "move_namespace",
    "move_topic",
    "plan_convert",
    "plan_create",
    "plan_delete",
    "plan_move",
    "plan_move_namespace",
    "plan_rename",
    "rename_topic",
]
