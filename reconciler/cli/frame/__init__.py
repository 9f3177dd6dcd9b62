"""What verbs share: options, inputs, output, exit codes, signals."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.frame.commands import Commands
    from reconciler.cli.frame.engines import Job, run_embedded, run_spark
    from reconciler.cli.frame.exits import Exit, PartlyFailedError, abandon_output, say
    from reconciler.cli.frame.inputs import Inputs, sort_out
    from reconciler.cli.frame.layout_options import (
        SCHEMA_VERSION,
        TEXTS,
        change,
        change_options,
        refuse_unsorted,
        write,
    )
    from reconciler.cli.frame.metadata_choice import NONE, choose
    from reconciler.cli.frame.options import metadata_option, output_options, scan_options
    from reconciler.cli.frame.output import Format, check_output, destination, is_standard, refuse_inside, write_rows
    from reconciler.cli.frame.progress import busy, followed
    from reconciler.cli.frame.signals import interrupt_on_signals, on_signals
    from reconciler.cli.frame.staging_options import Opened, describe, in_use, log_dirs_in, spare_option, spare_records
    from reconciler.cli.frame.tables import Column, Page, page
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "commands": ("Commands",),
            "engines": ("Job", "run_embedded", "run_spark"),
            "exits": ("Exit", "PartlyFailedError", "abandon_output", "say"),
            "inputs": ("Inputs", "sort_out"),
            "layout_options": ("SCHEMA_VERSION", "TEXTS", "change", "change_options", "refuse_unsorted", "write"),
            "metadata_choice": ("NONE", "choose"),
            "options": ("metadata_option", "output_options", "scan_options"),
            "output": ("Format", "check_output", "destination", "is_standard", "refuse_inside", "write_rows"),
            "progress": ("busy", "followed"),
            "signals": ("interrupt_on_signals", "on_signals"),
            "staging_options": ("Opened", "describe", "in_use", "log_dirs_in", "spare_option", "spare_records"),
            "tables": ("Column", "Page", "page"),
        },
    )

__all__ = [
    "NONE",
    "SCHEMA_VERSION",
    "TEXTS",
    "Column",
    "Commands",
    "Exit",
    "Format",
    "Inputs",
    "Job",
    "Opened",
    "Page",
    "PartlyFailedError",
    "abandon_output",
    "busy",
    "change",
    "change_options",
    "check_output",
    "choose",
    "describe",
    "destination",
    "followed",
    "in_use",
    "interrupt_on_signals",
    "is_standard",
    "log_dirs_in",
    "metadata_option",
    "on_signals",
    "output_options",
    "page",
    "refuse_inside",
    "refuse_unsorted",
    "run_embedded",
    "run_spark",
    "say",
    "scan_options",
    "sort_out",
    "spare_option",
    "spare_records",
    "write",
    "write_rows",
]
