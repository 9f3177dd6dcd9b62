"""Short games beside a history, each with one part of the engine alone, whose rare cases a cluster seldom comes to."""

from reconciler.simulator.drills.controller import drill_controller
from reconciler.simulator.drills.draw import drill
from reconciler.simulator.drills.engine import drill_engine
from reconciler.simulator.drills.files import drill_files
from reconciler.simulator.drills.formats import drill_formats
from reconciler.simulator.drills.journals import drill_journals
from reconciler.simulator.drills.judgement import drill_judgement
from reconciler.simulator.drills.log_dirs import drill_log_dirs
from reconciler.simulator.drills.metadata import drill_metadata
from reconciler.simulator.drills.plans import drill_plans
from reconciler.simulator.drills.purging import drill_purging
from reconciler.simulator.drills.repairs import drill_repairs
from reconciler.simulator.drills.requests import drill_by_hand, drill_requests, drill_troubled
from reconciler.simulator.drills.scenes import drill_scenes
from reconciler.simulator.drills.staging import drill_staging

__all__ = [
    "drill",
    "drill_by_hand",
    "drill_controller",
    "drill_engine",
    "drill_files",
    "drill_formats",
    "drill_journals",
    "drill_judgement",
    "drill_log_dirs",
    "drill_metadata",
    "drill_plans",
    "drill_purging",
    "drill_repairs",
    "drill_requests",
    "drill_scenes",
    "drill_staging",
    "drill_troubled",
]
