"""Runs the command line: the script ``logstore``, and ``python -m reconciler.cli`` where no script is installed."""

import sys

_INTERRUPTED = 130
"""As :class:`reconciler.cli.frame.Exit` has it, which may not be loaded yet."""


def main() -> None:
    """Run the command line and leave with its exit code, silently where an interrupt comes while it is loaded."""
    try:
        from reconciler.cli.verbs import run

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
