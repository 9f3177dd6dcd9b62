"""The drill of plans on disks: what was made for one state of the disks is applied to another one."""

from reconciler.simulator.drills.plans.drill import drill_plans

__all__ = ["drill_plans"]
