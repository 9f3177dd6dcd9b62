"""What is given again and again: options in files and in the environment, and how much is said in which form."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.settings.log_lines import (
        LOG_FORMATS,
        Level,
        Verbosity,
        choose_log_format,
        choose_verbosity,
        is_json,
        is_said,
        log_line,
        verbosity,
    )
    from reconciler.cli.settings.quiet_and_verbose import add_verbosity
    from reconciler.cli.settings.settings_file import (
        DEFAULT_PLACES,
        GENERAL,
        LOG_DIRS,
        LOG_FORMAT,
        Settings,
        changes_log_dirs,
        read_settings,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "log_lines": (
                "LOG_FORMATS", "Level", "Verbosity", "choose_log_format", "choose_verbosity", "is_json", "is_said",
                "log_line", "verbosity",
            ),
            "quiet_and_verbose": ("add_verbosity",),
            "settings_file": (
                "DEFAULT_PLACES", "GENERAL", "LOG_DIRS", "LOG_FORMAT", "Settings", "changes_log_dirs", "read_settings",
            ),
        },
    )  # fmt: skip

__all__ = [
    "DEFAULT_PLACES",
    "GENERAL",
    "LOG_DIRS",
    "LOG_FORMAT",
    "LOG_FORMATS",
    "Level",
    "Settings",
    "Verbosity",
    "add_verbosity",
    "changes_log_dirs",
    "choose_log_format",
    "choose_verbosity",
    "is_json",
    "is_said",
    "log_line",
    "read_settings",
    "verbosity",
]
