"""The options, inputs, output and exit codes that commands share."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.frame.changes import (
        CHANGE_SCHEMA_VERSION,
        OpenedLogDirs,
        change_store,
        describe_staged,
        refuse_unrecovered,
        say_in_use,
        warn_unfinished,
        why_in_use,
        write_change,
    )
    from reconciler.cli.frame.engines import AuditJob, fit_address_space, run_embedded, run_join, run_spark
    from reconciler.cli.frame.inputs import (
        Inputs,
        PathInLogDir,
        check_locations,
        closed_at,
        forbidden_in,
        is_inventory,
        is_location,
        location_among,
        log_dir_of_path,
        log_dirs_in,
        of_this_machine,
        read_inputs,
        refuse_part_of_log_dir,
        report_closed,
        report_unreadable,
        sort_inputs,
        sort_log_dirs,
        sort_paths,
    )
    from reconciler.cli.frame.lifecycle import (
        SETTINGS,
        Commands,
        Exit,
        InterruptedRunError,
        PartlyFailedError,
        abandon_output,
        carry_out,
        detail,
        is_output_unread,
        may_be_unread,
        note_json,
        say,
        say_incomplete,
        say_step,
        say_warnings,
        since,
        warn,
    )
    from reconciler.cli.frame.metadata import NO_METADATA, choose_metadata, say_problems
    from reconciler.cli.frame.options import (
        DEFAULT_RELEASE,
        TEXT_FORMATS,
        broker_options,
        change_options,
        check_question,
        fallback_records,
        fallback_records_option,
        is_given,
        is_of_settings,
        metadata_option,
        output_options,
        parse_duration_option,
        parse_rate,
        parse_share,
        parse_size,
        passed_on_fallback_option,
        passed_on_options,
        policy_option,
        read_policy,
        scan_options,
        user_name,
        without_settings,
        words_of_call,
    )
    from reconciler.cli.frame.other_log_dirs import KnownLogDirs, Returning, TwinSearch, find_log_dirs
    from reconciler.cli.frame.output import (
        Format,
        Page,
        check_output,
        destination,
        is_standard,
        open_page,
        refuse_inside,
        show_busy,
        show_text,
        tell_of,
        with_progress,
        write_document,
        write_rows,
    )
    from reconciler.cli.frame.question import broker_in_question, say_assumed_release
    from reconciler.cli.frame.second_look import SecondLook, ask_again, say_went_back
    from reconciler.cli.frame.suggestions import SuggestingGroup
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "changes": (
                "CHANGE_SCHEMA_VERSION", "OpenedLogDirs", "change_store", "describe_staged", "refuse_unrecovered",
                "say_in_use", "warn_unfinished", "why_in_use", "write_change",
            ),
            "engines": ("AuditJob", "fit_address_space", "run_embedded", "run_join", "run_spark"),
            "inputs": (
                "Inputs", "PathInLogDir", "forbidden_in", "is_inventory", "log_dir_of_path", "log_dirs_in",
                "closed_at", "read_inputs", "refuse_part_of_log_dir", "report_unreadable", "sort_inputs",
                "sort_log_dirs", "sort_paths", "report_closed", "of_this_machine", "check_locations", "is_location",
                "location_among",
            ),
            "lifecycle": (
                "SETTINGS", "Commands", "Exit", "InterruptedRunError", "PartlyFailedError", "abandon_output",
                "carry_out", "detail", "is_output_unread", "may_be_unread", "note_json", "say", "say_incomplete",
                "say_step", "say_warnings", "since", "warn",
            ),
            "metadata": ("NO_METADATA", "choose_metadata", "say_problems"),
            "options": (
                "DEFAULT_RELEASE", "TEXT_FORMATS", "broker_options", "change_options", "check_question",
                "fallback_records", "fallback_records_option", "is_given", "is_of_settings", "metadata_option",
                "output_options", "parse_duration_option", "parse_rate", "parse_share", "parse_size",
                "passed_on_fallback_option", "passed_on_options", "policy_option", "read_policy", "scan_options",
                "user_name", "without_settings", "words_of_call",
            ),
            "other_log_dirs": ("KnownLogDirs", "Returning", "TwinSearch", "find_log_dirs"),
            "output": (
                "Format", "Page", "check_output", "destination", "is_standard", "open_page", "refuse_inside",
                "show_busy", "show_text", "tell_of", "with_progress", "write_document", "write_rows",
            ),
            "question": ("broker_in_question", "say_assumed_release"),
            "second_look": ("SecondLook", "ask_again", "say_went_back"),
            "suggestions": ("SuggestingGroup",),
        },
    )  # fmt: skip

__all__ = [
    "CHANGE_SCHEMA_VERSION", "DEFAULT_RELEASE", "NO_METADATA", "SETTINGS", "TEXT_FORMATS", "AuditJob", "Commands",
    "Exit", "Format", "Inputs", "InterruptedRunError", "KnownLogDirs", "OpenedLogDirs", "Page", "PartlyFailedError",
    "PathInLogDir", "Returning", "SecondLook", "SuggestingGroup", "TwinSearch", "abandon_output", "ask_again",
    "broker_in_question", "broker_options", "carry_out", "change_options", "change_store", "check_locations",
    "check_output", "check_question", "choose_metadata", "closed_at", "describe_staged", "destination", "detail",
    "fallback_records", "fallback_records_option", "find_log_dirs", "fit_address_space", "forbidden_in", "is_given",
    "is_inventory", "is_location", "is_of_settings", "is_output_unread", "is_standard", "location_among",
    "log_dir_of_path", "log_dirs_in", "may_be_unread", "metadata_option", "note_json", "of_this_machine", "open_page",
    "output_options", "parse_duration_option", "parse_rate", "parse_share", "parse_size", "passed_on_fallback_option",
    "passed_on_options", "policy_option", "read_inputs", "read_policy", "refuse_inside", "refuse_part_of_log_dir",
    "refuse_unrecovered", "report_closed", "report_unreadable", "run_embedded", "run_join", "run_spark", "say",
    "say_assumed_release", "say_in_use", "say_incomplete", "say_problems", "say_step", "say_warnings", "say_went_back",
    "scan_options", "show_busy", "show_text", "since", "sort_inputs", "sort_log_dirs", "sort_paths", "tell_of",
    "user_name", "warn", "warn_unfinished", "why_in_use", "with_progress", "without_settings", "words_of_call",
    "write_change", "write_document", "write_rows",
]  # fmt: skip
