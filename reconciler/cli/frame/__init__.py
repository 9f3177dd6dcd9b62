"""What verbs share: options, inputs, output, exit codes, signals."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.frame.commands import Commands
    from reconciler.cli.frame.engines import Job, run_embedded, run_spark
    from reconciler.cli.frame.exits import Exit, PartlyFailedError, abandon_output, say
    from reconciler.cli.frame.inputs import Inputs, sort_inputs
    from reconciler.cli.frame.layout_options import (
        SCHEMA_VERSION,
        TEXT_FORMATS,
        change_options,
        change_store,
        refuse_unsorted,
        write_change,
    )
    from reconciler.cli.frame.metadata_choice import NO_METADATA, choose_metadata
    from reconciler.cli.frame.options import metadata_option, output_options, scan_options
    from reconciler.cli.frame.output import Format, check_output, destination, is_standard, refuse_inside, write_rows
    from reconciler.cli.frame.progress import show_busy, with_progress
    from reconciler.cli.frame.signals import interrupt_on_signals, on_signals
    from reconciler.cli.frame.staging_options import (
        Opened,
        describe_staged,
        log_dirs_in,
        spare_option,
        spare_records,
        why_in_use,
    )
    from reconciler.cli.frame.tables import Column, Page, open_page
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "commands": ("Commands",),
            "engines": ("Job", "run_embedded", "run_spark"),
            "exits": ("Exit", "PartlyFailedError", "abandon_output", "say"),
            "inputs": ("Inputs", "sort_inputs"),
            "layout_options": (
                "SCHEMA_VERSION",
                "TEXT_FORMATS",
                "change_options",
                "change_store",
                "refuse_unsorted",
                "write_change",
            ),
            "metadata_choice": ("NO_METADATA", "choose_metadata"),
            "options": ("metadata_option", "output_options", "scan_options"),
            "output": ("Format", "check_output", "destination", "is_standard", "refuse_inside", "write_rows"),
            "progress": ("show_busy", "with_progress"),
            "signals": ("interrupt_on_signals", "on_signals"),
            "staging_options": (
                "Opened",
                "describe_staged",
                "log_dirs_in",
                "spare_option",
                "spare_records",
                "why_in_use",
            ),
            "tables": ("Column", "Page", "open_page"),
        },
    )

__all__ = [
    "NO_METADATA",
    "SCHEMA_VERSION",
    "TEXT_FORMATS",
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
    "change_options",
    "change_store",
    "check_output",
    "choose_metadata",
    "describe_staged",
    "destination",
    "interrupt_on_signals",
    "is_standard",
    "log_dirs_in",
    "metadata_option",
    "on_signals",
    "open_page",
    "output_options",
    "refuse_inside",
    "refuse_unsorted",
    "run_embedded",
    "run_spark",
    "say",
    "scan_options",
    "show_busy",
    "sort_inputs",
    "spare_option",
    "spare_records",
    "why_in_use",
    "with_progress",
    "write_change",
    "write_rows",
]
