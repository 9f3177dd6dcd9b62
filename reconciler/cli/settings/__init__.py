"""What is given again and again: options in files and in the environment, and the form of log lines."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.settings.log_lines import LOG_FORMATS, Level, choose_log_format, is_json, log_line
    from reconciler.cli.settings.settings_file import DEFAULT_PLACES, GENERAL, LOG_FORMAT, Settings, read_settings
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "log_lines": ("LOG_FORMATS", "Level", "choose_log_format", "is_json", "log_line"),
            "settings_file": ("DEFAULT_PLACES", "GENERAL", "LOG_FORMAT", "Settings", "read_settings"),
        },
    )

__all__ = [
    "DEFAULT_PLACES",
    "GENERAL",
    "LOG_FORMAT",
    "LOG_FORMATS",
    "Level",
    "Settings",
    "choose_log_format",
    "is_json",
    "log_line",
    "read_settings",
]
