"""Runs the command line: the scripts ``logstore`` and ``logstore-spark-audit``.

Where no script is installed, ``python -m reconciler.cli`` is ``logstore``.
"""

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


def spark_audit() -> None:
    """Run ``logstore audit --spark`` with the arguments of this process, as a job for spark-submit."""
    sys.argv[1:1] = ["audit", "--spark"]
    main()


if __name__ == "__main__":
    main()
